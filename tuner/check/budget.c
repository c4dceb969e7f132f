/* SPDX-License-Identifier: MIT */
#include "tuner/check/budget.h"

#include "stats/stats.h"
#include "tuner/check/judge_rivals.h"
#include "tuner/measure/measure.h"

#include <math.h>

#define USUAL_START_SECONDS 0.5 /* start of a plan's processes */
#define SETUP_STEPS         5   /* cold, verified, warm */
#define VISIT_SECONDS       0.02
#define SET_ROUNDS          4 /* usual ones */
#define MARGIN              1.3

/* Seconds of a visit: one untimed step, and timed ones for 20 ms. */
static double visit_seconds(double step)
{
    double timed = step > 0 ? ceil(VISIT_SECONDS / step) : 1;
    return step * (1 + fmin(fmax(timed, 1), DT_VISIT_STEPS));
}

int64_t dt_check_estimate_ns(const double step_seconds[], int n, int sets)
{
    double seconds = 0;
    for (int i = 0; i < n; i++)
        seconds += USUAL_START_SECONDS + MARGIN * (SETUP_STEPS * step_seconds[i] +
                                                   SET_ROUNDS * visit_seconds(step_seconds[i]));
    return (int64_t)(sets * seconds * 1e9);
}

int64_t dt_check_share_ns(int64_t left_ns, int entries, bool first, int64_t least_ns,
                          int64_t lose_ns)
{
    int64_t even = left_ns / (entries > 0 ? entries : 1), half = left_ns / 2;
    int64_t share = lose_ns < half ? lose_ns : half;
    share = share > even ? share : even;
    if (first && share < least_ns && (entries <= 1 || least_ns <= left_ns))
        return left_ns;
    return share >= least_ns ? share : 0;
}
