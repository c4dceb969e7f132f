/* SPDX-License-Identifier: MIT */
/* supervisor - a small process between the controller and a worker's processes, so that none outlives its group
 *
 * It is forked, not executed (the controller has one thread and no CUDA or MPI), adopts orphans
 * (PR_SET_CHILD_SUBREAPER), and kills every descendant by pid: when it is told to, when the program ends, and when the
 * pipe from the controller closes because the controller died. Last it removes the group's directories.
 */
#ifndef DT_TUNER_PROCESS_SUPERVISOR_H
#define DT_TUNER_PROCESS_SUPERVISOR_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DT_SUPERVISOR_FOLDERS 2

struct dt_supervised {
    pid_t pid;              /* of the supervisor */
    int control;            /* write end: a request to kill; closing it kills at once */
    int status;             /* read end: the program's wait status, when it ended */
    int to, from, messages; /* the program's standard input, output, error */
};

/* Starts `path` with argv and envp. folders: directories to remove at the end, "" for none. DT_ELIB. */
dt_status dt_supervisor_start(const char *path, char *const argv[], char *const envp[],
                              const char folders[DT_SUPERVISOR_FOLDERS][256],
                              struct dt_supervised *out) DT_MUST_CHECK;

/* The program's wait status; false while it runs or when it is not known. Does not wait. */
bool dt_supervisor_ended(struct dt_supervised *supervised, int *wait_status);

/* TERM to all, KILL to what is left after grace_ns; returns when no descendant is left and the folders are gone.
 * Closes the descriptors. */
void dt_supervisor_stop(struct dt_supervised *supervised, int64_t grace_ns);

#endif
