/* SPDX-License-Identifier: MIT */
#include "stats/stats.h"

#include <math.h>

static double square(double x)
{
    return x * x;
}

struct dt_mix dt_stats_mix(const struct dt_mix_part parts[], int n)
{
    struct dt_mix mix = {0, 0, NAN, {NAN, NAN}};
    double shares = 0, below = 0, above = 0;
    for (int i = 0; i < n; i++) {
        shares += parts[i].share;
        mix.seconds += parts[i].share * parts[i].seconds;
        mix.tuned += parts[i].share * parts[i].seconds / parts[i].gain;
    }
    for (int i = 0; i < n; i++) {
        double part = parts[i].share * parts[i].seconds / parts[i].gain / mix.tuned;
        below += square(part * log(parts[i].gain / parts[i].interval.low));
        above += square(part * log(parts[i].interval.high / parts[i].gain));
    }
    mix.gain = mix.seconds / mix.tuned;
    mix.interval.low = mix.gain * exp(-sqrt(below));
    mix.interval.high = mix.gain * exp(sqrt(above));
    mix.seconds /= shares;
    mix.tuned /= shares;
    return mix;
}
