/* SPDX-License-Identifier: MIT */
/* levels - how much of a plan's noise comes from the visits, the residencies and the starts of its processes */
#ifndef DT_TUNER_MEASURE_COMPARE_LEVELS_H
#define DT_TUNER_MEASURE_COMPARE_LEVELS_H

#include "tuner/measure/compare/entrant.h"

/* Standard deviations of the logarithm of the time, so shares of it. NAN: too few sets to tell. */
struct dt_levels {
    int sets;         /* that had visits of both copies */
    double visit;     /* from visit to visit of one residency, drift within the set included */
    double residency; /* from one residency to another in the same processes */
    double start; /* from one start of the processes to the next, drift between the sets included */
};

/* Two copies of a plan, resident side by side in each set: nested analysis of variance (Searle, Casella, McCulloch 1992,
 * *Variance Components*, 3.6), an estimate below 0 is 0. */
struct dt_levels dt_levels(const struct dt_entrant copies[2], const struct dt_sets *sets);

#endif
