/* SPDX-License-Identifier: MIT */
/* proc - what /proc says of processes: who is below whom, who is still the one that had this pid */
#ifndef DT_TUNER_RUNNER_PROC_H
#define DT_TUNER_RUNNER_PROC_H

#include <stdbool.h>
#include <sys/types.h>

struct dt_proc {
    pid_t pid;
    char name[17];            /* of the program, cut by the kernel */
    char state;               /* as ps shows it: R, S, D, T, Z.. */
    unsigned long long start; /* ticks since boot: tells a pid from its next use */
};

/* False when there is no such process. */
bool dt_proc_read(pid_t pid, struct dt_proc *proc);

/* Calls visit for every descendant of pid: first those below a child, then the child. */
void dt_proc_below(pid_t pid, void (*visit)(pid_t pid, void *context), void *context);

#endif
