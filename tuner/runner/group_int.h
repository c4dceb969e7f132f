/* SPDX-License-Identifier: MIT */
/* group_int - shared by the files of the group only: the dialogue (group.c), its answers as plain values
 * (group_answer.c), and how it ends (group_end.c) */
#ifndef DT_TUNER_RUNNER_GROUP_INT_H
#define DT_TUNER_RUNNER_GROUP_INT_H

#include "tuner/runner/runner.h"
#include "tuner/runner/supervisor.h"
#include "worker/wire.h"

#include <stdio.h>

#define DT_GROUP_KEPT 4096

struct dt_group {
    struct dt_supervised process;
    struct dt_wire wire;
    json_t *hello, *ready;
    const char *phase; /* "preparing", for failure sentences */
    const char *shown; /* "verifying", for displays */
    char messages[DT_GROUP_KEPT + 1];
    size_t kept;
    bool alive, is_private;
    int processes;     /* that the controller has started */
    int64_t paused_ns; /* during the last request */
    int64_t until_ns;  /* heartbeats extend deadlines up to this time; 0: they do not */
    char said[80];     /* text of the last heartbeat of the last request; "": none */
    FILE *transcript;  /* $DITTUNE_TRANSCRIPT: every message, with its direction; NULL: none */
};

/* Reads available standard error and keeps its last bytes. False at end of file. */
bool dt_group_drain(struct dt_group *group);

/* Kills the group and sets the cause. DT_FAILED. */
dt_status dt_group_break(struct dt_group *group, struct dt_failure *failure,
                         enum dt_outcome outcome, const char *why);

/* Kills a group that broke the protocol; *failure is already set. DT_FAILED. */
dt_status dt_group_condemn(struct dt_group *group, struct dt_failure *failure);

/* The worker's output ended: finds out whether and how the program ended. DT_FAILED. */
dt_status dt_group_dead(struct dt_group *group, struct dt_failure *failure);
/* Handles a missed deadline; the last line of standard error may give the cause. */
dt_status dt_group_hung(struct dt_group *group, struct dt_failure *failure) DT_MUST_CHECK;

#endif
