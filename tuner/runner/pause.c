/* SPDX-License-Identifier: MIT */
#include "tuner/runner/pause.h"

#include "base/clock.h"

#define TICK_NS DT_NS_PER_SECOND
/* beyond the tick; deadlines of requests are 5 s and more */
#define LEAST_NS (2 * DT_NS_PER_SECOND)

int64_t dt_pause_between(int64_t before_ns, int64_t now_ns)
{
    int64_t late_ns = now_ns - before_ns - TICK_NS;
    return late_ns >= LEAST_NS ? late_ns : 0;
}

struct dt_pause dt_pause_begin(void)
{
    return (struct dt_pause){.looked_ns = dt_clock_machine_ns()};
}

void dt_pause_look(struct dt_pause *pause)
{
    int64_t now = dt_clock_machine_ns(), paused = dt_pause_between(pause->looked_ns, now);
    if (paused > 0)
        dt_clock_skip_ns(paused);
    pause->looked_ns = now;
    pause->paused_ns += paused;
}
