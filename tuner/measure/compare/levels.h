/* SPDX-License-Identifier: MIT */
/* levels - parts of a plan's noise from visits, residencies and starts of its processes */
#ifndef DT_TUNER_MEASURE_COMPARE_LEVELS_H
#define DT_TUNER_MEASURE_COMPARE_LEVELS_H

#include "tuner/measure/compare/entrant.h"

/* Standard deviations of the log time, so shares of the time. NAN: too few sets. */
struct dt_levels {
    int sets;         /* sets with visits of both copies */
    double visit;     /* from visit to visit of one residency, drift within the set included */
    double residency; /* from one residency to another in the same processes */
    double start; /* from one start of the processes to the next, drift between the sets included */
};

/* Two copies of a plan, resident side by side in each set: nested analysis of variance (Searle, Casella, McCulloch 1992,
 * *Variance Components*, 3.6), an estimate below 0 is 0. */
struct dt_levels dt_levels(const struct dt_entrant copies[2], const struct dt_sets *sets);

#endif
