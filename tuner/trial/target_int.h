/* SPDX-License-Identifier: MIT */
/* target_int - the two kinds of target: the built-in network (target.c) and a worker's own (target_foreign.c) */
#ifndef DT_TUNER_TRIAL_TARGET_INT_H
#define DT_TUNER_TRIAL_TARGET_INT_H

#include "tuner/trial/target.h"

/* Starts the worker once and reads its hello. */
dt_status dt_target_foreign(const struct dt_options *options,
                            struct dt_target *target) DT_MUST_CHECK;

#endif
