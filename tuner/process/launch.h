/* SPDX-License-Identifier: MIT */
/* launch - the command line and environment that start a worker: by itself, or under mpirun */
#ifndef DT_TUNER_PROCESS_LAUNCH_H
#define DT_TUNER_PROCESS_LAUNCH_H

#include "tuner/process/group.h"
#include "tuner/process/supervisor.h"

struct dt_start {
    char path[4096];                          /* of the program to execute */
    char **argv, **envp;                      /* NULL-ended, owned */
    char folders[DT_SUPERVISOR_FOLDERS][256]; /* made for this group; the supervisor removes them */
};

/* Finds the programs, makes the folders. DT_EUSAGE when the program or mpirun is missing. */
dt_status dt_launch_plan(const struct dt_launch *launch, struct dt_start *start) DT_MUST_CHECK;
void dt_launch_fini(struct dt_start *start); /* frees memory; folders stay */

/* The program a name means: a path, or a name looked up in PATH; false when it is none that can be run. */
bool dt_launch_find(const char *name, char path[], size_t room);

#endif
