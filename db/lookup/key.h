/* SPDX-License-Identifier: MIT */
/* key - the key of stored plans and of questions, built here for sessions and look-ups alike
 *
 *     {"model","network","height","width","guidance","dtype","devices","batch":[..],"objective"}
 *     {"worker","workload"[,"job"],"devices","space","objective"}     of a foreign worker
 *     {"engine","job","devices","objective"}     of a question about the entries tuned on an engine
 *
 * each with "max_bytes", "reserve_bytes" and "max_latency_ns" where they are limited.
 */
#ifndef DT_DB_LOOKUP_KEY_H
#define DT_DB_LOOKUP_KEY_H

#include "base/json.h"
#include "model/workload.h"
#include "space/space.h"

#include <stdint.h>

#define DT_KEY_ID_SIZE 17 /* sixteen hexadecimal digits and NUL */

struct dt_key {
    /* NULL: a foreign worker, which has worker, program and space instead, or an engine. */
    const struct dt_workload *workload;
    const int *batches; /* ascending */
    int batch_count;
    const char *worker, *program; /* its name; the workload it tunes */
    const char *space;            /* dt_key_space; NULL: left out */
    const char *engine;           /* NULL: left out */
    const json_t *job;            /* the job in that worker's terms, borrowed; NULL: left out */
    int devices;
    const char *objective;                            /* NULL: left out */
    int64_t max_bytes, max_latency_ns, reserve_bytes; /* 0: left out */
    /* The built-in network: tuned with settings that change the output; false: left out. */
    bool lossy;
};

/* *json is a new reference. DT_ENOMEM. */
dt_status dt_key_json(const struct dt_key *key, json_t **json) DT_MUST_CHECK;

/* Id of the shape of a network, independent of its name. */
dt_status dt_key_network(const struct dt_network *network, char id[DT_KEY_ID_SIZE]) DT_MUST_CHECK;

/* Id of what the "parameters", "constants" and "rules" of a worker's hello, or of an entry's
 * "space", mean (dt_space_identity). DT_EUSAGE: they are no space. */
dt_status dt_key_space(const json_t *root, char id[DT_KEY_ID_SIZE]) DT_MUST_CHECK;
dt_status dt_key_space_of(const struct dt_space *space, char id[DT_KEY_ID_SIZE]) DT_MUST_CHECK;

/* Appends how a stored key differs from one that is asked for, fields of a job one by one:
 * "time 'wall' instead of 'json:t', unit none instead of 'ms'"; nothing where they are equal. */
void dt_key_add_differences(const json_t *stored, const json_t *asked, struct dt_text *out);

#endif
