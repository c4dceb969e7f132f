/* SPDX-License-Identifier: MIT */
/* Compares the sign test's interval at each look with 0 and with log(1 + threshold). A failure needs both an interval
 * above 0, so that it is not noise, and a median beyond the threshold, so that it matters. */
#include "stats/stats.h"

#include <math.h>

static enum dt_gate verdict(const struct dt_ratio *ratio, double threshold)
{
    if (ratio->interval.high < 1)
        return DT_GATE_WIN;
    if (ratio->interval.high < 1 + threshold)
        return DT_GATE_PASS;
    if (ratio->interval.low > 1 && ratio->ratio > 1 + threshold)
        return DT_GATE_FAIL;
    return DT_GATE_INCONCLUSIVE;
}

enum dt_gate dt_stats_gate(const double log_ratio[], int n, double threshold,
                           struct dt_ratio *ratio)
{
    enum dt_gate said = DT_GATE_INCONCLUSIVE;
    *ratio = (struct dt_ratio){.ratio = NAN, .interval = {NAN, NAN}};
    for (int look = 0; look < DT_LOOKS && said == DT_GATE_INCONCLUSIVE; look++) {
        int before = look > 0 ? dt_look_samples[look - 1] : dt_look_samples[0] - 1;
        int pairs = n < dt_look_samples[look] ? n : dt_look_samples[look];
        if (pairs <= before)
            break;
        *ratio = dt_stats_ratio(log_ratio, pairs, 1 - dt_look_alpha[look]);
        said = verdict(ratio, threshold);
    }
    return said;
}

const char *dt_gate_text(enum dt_gate gate)
{
    static const char *const texts[] = {"inconclusive", "pass", "win", "fail"};
    return texts[gate];
}
