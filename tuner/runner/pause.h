/* SPDX-License-Identifier: MIT */
/* pause - time in which this process and its workers were stopped (SIGSTOP, docker
 * pause, a cgroup's freezer)
 *
 * Every wait looks at the clock at least once a second. A look that is seconds late means that the
 * processes were stopped: that time is taken out of dt_clock_ns, so no deadline of a request or
 * session runs meanwhile:
 *
 *     struct dt_pause pause = dt_pause_begin();
 *     for (;; poll(.., at most 1000 ms)) {
 *         dt_pause_look(&pause);
 *         if (dt_clock_ns() >= deadline_ns) ..
 *     }
 */
#ifndef DT_TUNER_RUNNER_PAUSE_H
#define DT_TUNER_RUNNER_PAUSE_H

#include <stdint.h>

struct dt_pause {
    int64_t looked_ns; /* at the last look, by dt_clock_machine_ns */
    int64_t paused_ns; /* taken out since it began */
};

struct dt_pause dt_pause_begin(void);

/* Takes a pause since the last look out of dt_clock_ns. */
void dt_pause_look(struct dt_pause *pause);

/* The part of the time between two looks that was a pause: the excess over the tick, if a busy
 * machine cannot explain it; else 0. */
int64_t dt_pause_between(int64_t before_ns, int64_t now_ns);

#endif
