/* SPDX-License-Identifier: MIT */
/* launch - the command line and environment that start a worker: by itself, under
 * mpirun, or as torchrun does */
#ifndef DT_TUNER_RUNNER_LAUNCH_H
#define DT_TUNER_RUNNER_LAUNCH_H

#include "tuner/runner/runner.h"
#include "tuner/runner/supervisor.h"

struct dt_start {
    char path[4096];     /* program to execute */
    char **argv, **envp; /* NULL-ended, owned */
    int processes;       /* to start; the environment is that of rank 0 */
    /* created for this group; the supervisor removes them */
    char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM];
};

/* Finds the programs, makes the folders, and the first time removes those of dead sessions.
 * DT_EUSAGE when the program or mpirun is missing. */
dt_status dt_start_make(const struct dt_launch *launch, struct dt_start *start) DT_MUST_CHECK;
void dt_start_fini(struct dt_start *start); /* frees memory; folders stay */
void dt_start_drop(struct dt_start *start); /* removes the folders of a group that did not start */

#endif
