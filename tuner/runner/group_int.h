/* SPDX-License-Identifier: MIT */
/* group_int - the inside of a group, for group.c and a test of its waiting */
#ifndef DT_TUNER_RUNNER_GROUP_INT_H
#define DT_TUNER_RUNNER_GROUP_INT_H

#include "tuner/runner/runner.h"
#include "tuner/runner/supervisor.h"
#include "worker/wire.h"

#include <stdio.h>

#define DT_GROUP_MESSAGES 4096

struct dt_group {
    struct dt_supervised process;
    struct dt_wire wire;
    json_t *hello, *ready;
    const char *phase; /* "preparing", for failure sentences */
    const char *shown; /* "verifying", for displays */
    char messages[DT_GROUP_MESSAGES + 1];
    size_t messages_size;
    /* [member_count] replicas, owned; of one replica the group itself */
    struct dt_group *members[DT_REPLICAS_MOST];
    int member_count;
    struct dt_group *parent; /* that this is a member of; itself, of one replica */
    bool alive, is_private;  /* unused where there are several replicas: their members have them */
    bool awaited;            /* a member, whose answer to the request was not read yet */
    int processes;           /* that the controller has started */
    int64_t paused_ns;       /* during the last request */
    int64_t until_ns;        /* heartbeats extend deadlines up to this time; 0: they do not */
    char beat[80];           /* text of the last heartbeat of the last request; "": none */
    FILE *transcript; /* $DITTUNE_TRANSCRIPT: every message, with its direction; NULL: none */
};

#endif
