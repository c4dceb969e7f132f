/* SPDX-License-Identifier: MIT */
/* measure - measures plans and compares them: the header that other folders include
 *
 *     job       what was asked for, as one typed value           target    what is tuned: its space, worker and identity
 *     rig       the worker groups of a session                   trial     one plan is measured
 *     result    the samples and statistics of one plan           compare   several plans, side by side
 *     noise     a plan compared with itself                      levels    components of that noise
 *     record    results as JSON, and back
 */
#ifndef DT_TUNER_MEASURE_MEASURE_H
#define DT_TUNER_MEASURE_MEASURE_H

#include "tuner/measure/compare/compare.h"
#include "tuner/measure/record/result_json.h"
#include "tuner/measure/trial.h"

#endif
