/* SPDX-License-Identifier: MIT */
/* proc - processes as seen in /proc: descendants, and the identity behind a pid */
#ifndef DT_BASE_PROC_H
#define DT_BASE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct dt_proc {
    pid_t pid, parent;
    char name[17];                     /* program, cut by the kernel */
    bool kernel;                       /* a thread of the kernel's own */
    char state;                        /* ps's letter: R, S, D, T, Z.. */
    unsigned long long ticks;          /* processor time, user and kernel */
    unsigned long long children_ticks; /* the same of its children that have ended */
    unsigned long long start;          /* ticks since boot: distinguishes reuses of a pid */
};

/* False when there is no such process. */
bool dt_proc_read(pid_t pid, struct dt_proc *proc);

/* Bytes that this process and all below it have read from storage so far, ended ones included
 * (proc(5), /proc/PID/io): what the page cache had is none. -1: the kernel does not tell. */
int64_t dt_proc_storage_bytes(void);

/* Times of the threads of all processes below pid (proc(5), /proc/PID/task/TID/schedstat); zeros:
 * the kernel does not tell. */
struct dt_proc_time {
    int64_t ran_ns;    /* on a core */
    int64_t waited_ns; /* for one, though they could run */
};
struct dt_proc_time dt_proc_time_below(pid_t pid);

/* Calls visit for every descendant of pid, children after their own descendants. */
void dt_proc_below(pid_t pid, void (*visit)(pid_t pid, void *context), void *context);

#endif
