/* SPDX-License-Identifier: MIT */
/* supervisor - a small process between the controller and a worker's processes, so that
 * none outlives its group
 *
 * It is forked, not executed (the controller has one thread and no CUDA or MPI), adopts orphans
 * (PR_SET_CHILD_SUBREAPER), and kills every descendant by pid: on request, when the program ends,
 * and when the pipe from the controller closes because the controller died. Finally it removes the
 * group's directories, and files that a killed OpenMP library (libomp) left in /dev/shm. When the
 * supervisor itself is killed, the kernel kills the program.
 */
#ifndef DT_TUNER_RUNNER_SUPERVISOR_H
#define DT_TUNER_RUNNER_SUPERVISOR_H

#include "tuner/runner/folders.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DT_SUPERVISOR_FOLDERS 2
#define DT_SUPERVISOR_RANKS   1024 /* most processes of a program */

/* How a program ended. */
struct dt_ended {
    int rank;   /* the first of its processes that failed; 0: none */
    int status; /* its wait status; 0: all exited with 0 */
};

struct dt_supervised {
    pid_t pid;              /* the supervisor's pid */
    int64_t patience_ns;    /* time after the grace until dt_supervisor_stop gives up */
    int control;            /* write end: a request to kill; closing it kills at once */
    int status;             /* read end: a struct dt_ended */
    int to, from, messages; /* the program's standard input, output, error */
    char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM];
};

/* The program to start, `ranks` times: from the second on, RANK and LOCAL_RANK are set, standard
 * input is empty and standard output goes to standard error. With parts above 1 all of it is bound
 * to one of so many equal parts of the cores. */
struct dt_supervisor_program {
    const char *path;
    char *const *argv, *const *envp;
    int ranks, part, parts;
};
/* folders: directories to remove at the end, "" for none. DT_ELIB. */
dt_status dt_supervisor_start(const struct dt_supervisor_program *program,
                              const char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM],
                              struct dt_supervised *out) DT_MUST_CHECK;

/* True when all processes of the program have ended, or one has failed, which ends the others;
 * once. Does not wait. */
bool dt_supervisor_ended(struct dt_supervised *supervised, struct dt_ended *ended);

/* Records the current processes, so that their files in /dev/shm are removed however they end. */
void dt_supervisor_note(struct dt_supervised *supervised);

/* TERM to all, KILL to the remaining ones after grace_ns; returns when no descendant is left and
 * the folders are gone. Closes the descriptors. A group that does not end (a process that waits in
 * a driver or a frozen file system cannot be killed) is given up after the patience: a sentence on
 * standard error names the process and its state, and its supervisor goes on until it has ended. */
void dt_supervisor_stop(struct dt_supervised *supervised, int64_t grace_ns);

#endif
