/* SPDX-License-Identifier: MIT */
/* shim - the calls of a program on the files below one folder, counted, and some
 * of them made to fail
 *
 * A shared library in front of libc: the actor is linked with it, other programs use it by
 * LD_PRELOAD. Only calls on files below $FAULT_ROOT count, so call n is the same one in every run.
 * dt_fault_arm, or in other programs $FAULT, selects the fault:
 *
 *     "0"               nothing, they are only counted
 *     "N MODE"          call N, counted from 1
 *     "N MODE ever"     call N and all that follow
 *
 *     before after                    killed (SIGKILL) before the call, after it
 *     first half last zeros           of a write: killed when one byte, half, all but one byte are in the file, or when
 *                                     the file has its new length but zeros for what was written
 *     short                           of a write: half is written, and it says so
 *     EIO ENOSPC EDQUOT EROFS EINTR   the call is not made and fails (a close is made); EINTR "ever" is 64 in a row
 *     memory                          call N of malloc, calloc, realloc returns NULL instead
 *
 * $FAULT_LOG is a file that gets a line for each change, for power.py; $FAULT_SHARED one that holds
 * the counters, which outlive a killed process.
 */
#ifndef DT_TESTS_DB_FAULTS_SHIM_H
#define DT_TESTS_DB_FAULTS_SHIM_H

#define DT_FAULT_CALLS 65536

struct dt_fault_counters {
    int calls, hits;            /* calls since arming, and how many of them were made to fail */
    long allocations;           /* since it was armed */
    long live;                  /* allocated and not freed since it was armed */
    char kinds[DT_FAULT_CALLS]; /* a letter for each call, as in shim.c */
};

/* The counters start at 0 again. NULL: calls are made as they are. */
void dt_fault_arm(const char *what);
struct dt_fault_counters *dt_fault_counters(void);

/* A line of the log that is no change: what the program told others. */
void dt_fault_note(const char *text);

#endif
