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
 * Busy time of the cores that this process may use, less the time of its own processes, and the
 * time that a hypervisor gave to others: not the host's load average, which counts other cores too
 * and, in a container, other containers'. Where /proc/stat shows less than there is, as in some
 * containers, the kernel still tells how long all of our control group's threads that wanted a core
 * had to wait for one at the same time. They do not wait for each other then: somebody else had it.
 * Sources: proc(5), /proc/stat (user, nice, system, irq, softirq, steal of each cpu) and
 * /proc/PID/stat (utime, stime, cutime, cstime), which count ticks of 10 ms, so that a window of a
 * second knows a load to about a twentieth of a core; pressure stall information (Linux,
 * Documentation/accounting/psi.rst).
 */
#ifndef DT_TUNER_RUNNER_LOAD_H
#define DT_TUNER_RUNNER_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* programs of others that a reading remembers: those with the most time so far */
#define DT_LOAD_PROGRAMS 256

#define DT_OTHERS_MOST 0.2 /* cores of others that disturb what is measured beside them */

struct dt_load_program {
    pid_t pid;
    double seconds; /* processor time */
    char name[17];
};

/* Seconds in which threads waited for a core; NAN: the kernel does not tell. */
struct dt_load_waits {
    double some; /* one at least, of this process' control group, else of the system */
    /* all that wanted one, of the control group; not known where a quota makes them wait */
    double all;
};

struct dt_load_reading {
    bool known;
    double at;     /* seconds */
    double busy;   /* seconds of the cores, by anybody */
    double stolen; /* seconds that other virtual machines had of them */
    double ours;   /* seconds of this process and its descendants, ended ones included */
    struct dt_load_waits waits;
    struct dt_load_program programs[DT_LOAD_PROGRAMS];
    int count;
};

struct dt_load {
    /* mean number of cores that this process and its descendants kept busy; NAN: not known */
    double ours;
    /* mean number of cores that others kept busy, stolen ones included; NAN: not known */
    double others;
    double stolen; /* the part of others that a hypervisor gave to other machines; NAN: not known */
    double stalled; /* share of the time in which some thread waited for a core; NAN: not known */
    /* the program that had most of the others' time; "": none had, as where they are
     * many, or hidden from us */
    char name[17];
};

/* Others disturb what is measured: on GPUs where they use one, however busy the cores are, since a
 * step's work is there; else where they keep more than DT_OTHERS_MOST cores busy. gpus: that others
 * use; NAN: there are none, or they are not watched. */
bool dt_load_disturbs(double others, double gpus);

bool dt_load_wanted(void); /* not DITTUNE_LOAD=none */
/* DITTUNE_LOAD=none, or a system without /proc/stat: not known. */
void dt_load_read(struct dt_load_reading *reading);

/* Pressure stall information. root is put before /proc and /sys: "" for this machine. */
struct dt_load_waits dt_load_waits(const char *root);

struct dt_load dt_load_between(const struct dt_load_reading *before,
                               const struct dt_load_reading *after);

#endif
