/* SPDX-License-Identifier: MIT */
/* load - what other programs do on the cores of this process, between two readings
 *
 *     struct dt_load_reading before, after;
 *     dt_load_read(&before);
 *     ..
 *     dt_load_read(&after);
 *     struct dt_load load = dt_load_between(&before, &after);
 *     if (load.others > 0.2) ..
 *
 * Busy time of the cores that this process may use, less the time of its own processes, and the time that a hypervisor gave
 * to others: not the host's load average, which counts other cores too and, in a container, other containers'. Sources: proc(5),
 * /proc/stat (user, nice, system, irq, softirq, steal of each cpu) and /proc/PID/stat (utime, stime, cutime, cstime). Both count
 * ticks of 10 ms, so a window of a second knows a load to about a twentieth of a core.
 */
#ifndef DT_TUNER_RUNNER_LOAD_H
#define DT_TUNER_RUNNER_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DT_LOAD_PROGRAMS                                                                           \
    256 /* of others that a reading remembers: those with the most time so far */

struct dt_load_program {
    pid_t pid;
    double seconds; /* of processor time */
    char name[17];
};

struct dt_load_reading {
    bool known;
    double at;     /* seconds */
    double busy;   /* seconds of the cores, by anybody */
    double stolen; /* seconds that other virtual machines had of them */
    double ours;   /* seconds of this process and its descendants, ended ones included */
    struct dt_load_program programs[DT_LOAD_PROGRAMS];
    int count;
};

struct dt_load {
    double
        ours; /* mean number of cores that this process and its descendants kept busy; NAN: not known */
    double
        others; /* mean number of cores that others kept busy, stolen ones included; NAN: not known */
    char name[17]; /* the program among them with the most time; "": not known */
};

/* DITTUNE_LOAD=none, or a system without /proc/stat: not known. */
void dt_load_read(struct dt_load_reading *reading);
struct dt_load dt_load_between(const struct dt_load_reading *before,
                               const struct dt_load_reading *after);
#endif
