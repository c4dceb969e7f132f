/* SPDX-License-Identifier: MIT */
/* machine - the machine of a question, from the output of `dittune machine --json`
 *
 *     {"format":"dittune-machine","version":{"major":1,"minor":0},
 *      "hard":{"device","cores" or "gpus","memory_gib","topology"},"soft":{..},"info":{..},
 *      "limits":{"memory_bytes":n,"bfloat16":true; of GPUs "shared_bytes":n,"nccl":n,"cudnn":true,"capture":true}}
 *
 * Nothing here inspects the current machine: a description may be of another one. Unknown fields
 * are kept and ignored.
 */
#ifndef DT_DB_LOOKUP_MACHINE_H
#define DT_DB_LOOKUP_MACHINE_H

#include "base/json.h"
#include "base/status.h"

#include "space/dit/dit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Immutable, so usable by any number of threads. */
struct dt_machine {
    json_t *hard;         /* owned; as written, without dtype, engine and mode */
    json_t *soft;         /* owned; an empty object when there is none */
    int cores;            /* hard.slots of several hosts, else hard.cores or hard.gpus */
    int hosts;            /* hard.hosts, that these are on; 0: one machine */
    struct dt_gpus gpus;  /* count 0: plans run on cores */
    int64_t memory_bytes; /* limits.memory_bytes, else hard.memory_gib */
    bool bfloat16;        /* limits.bfloat16, else false */
};

/* DT_EUSAGE with a sentence that begins with what: not such a description, or of a
 * newer major version. */
dt_status dt_machine_from_json(const json_t *root, const char *what,
                               struct dt_machine **machine) DT_MUST_CHECK;
dt_status dt_machine_parse(const char *text, size_t size, const char *what,
                           struct dt_machine **machine) DT_MUST_CHECK;
/* Reads a file; also DT_EIO. */
dt_status dt_machine_load(const char *path, struct dt_machine **machine) DT_MUST_CHECK;
void dt_machine_free(struct dt_machine *machine);
DT_FREE_AT(dt_machine_free, struct dt_machine)

#endif
