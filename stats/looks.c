/* SPDX-License-Identifier: MIT */
/* Repeated looks with optional stopping inflate the error: alpha is spent over the looks (group-sequential testing,
 * Lan, DeMets 1983), so that all intervals hold simultaneously. */
#include "stats/stats.h"

const int dt_look_samples[DT_LOOKS] = {8, 16, 32, 64};
const double dt_look_alpha[DT_LOOKS] = {.008, .010, .012, .020};

int dt_stats_look(int n)
{
    int look = -1;
    for (int i = 0; i < DT_LOOKS; i++)
        if (n >= dt_look_samples[i])
            look = i;
    return look;
}

double dt_stats_look_level(int n)
{
    int look = 0;
    while (look + 1 < DT_LOOKS && n > dt_look_samples[look])
        look++;
    return 1 - dt_look_alpha[look];
}
