/* SPDX-License-Identifier: MIT */
/* heard - what the devices that a plan ran on told beside the host's clock, and what follows from it (docs/measuring.md)
 *
 * All of it is optional: a worker on cores tells nothing. It is kept as it was told; what is printed is computed from that.
 */
#ifndef DT_TUNER_MEASURE_HEARD_H
#define DT_TUNER_MEASURE_HEARD_H

#include "base/json.h"
#include "base/text.h"
#include "tuner/runner/group.h"

struct dt_result;

struct dt_heard {
    long long
        *ns; /* [steps * ranks] by the device's clock, 0 where it told none; NULL: never; owned */
    json_t *telemetry; /* [rank], over the measured requests; owned, NULL: none */
    json_t *reasons;   /* of each measured request, names of all ranks; owned, NULL: none */
    json_t *memory;    /* as dt_said_memory; owned, NULL: none */
};
void dt_heard_fini(struct dt_heard *heard);

/* Takes what a run told; `old` values are there already; request: its number among the measured ones, -1: it is none. */
dt_status dt_heard_add(struct dt_heard *heard, const struct dt_run *run, size_t old,
                       int request) DT_MUST_CHECK;

/* The steps whose clocks disagree. */
struct dt_two_clocks {
    int steps;             /* that both clocks timed, of the steady ones */
    double device_seconds; /* median step by the devices' clocks, slowest rank */
    double apart_seconds;  /* median of what the host's clock has more, of the rank that was last */
    bool disagree;         /* by more than 2 % of the step or 50 us */
};
struct dt_two_clocks dt_heard_clocks(const struct dt_result *result);

/* Shares of a device's memory, of the rank that has the largest; NAN where it is not known. */
struct dt_heard_memory {
    double used;  /* of all there is, while the plan was resident, whoever took it */
    double taken; /* what the worker took, over what was predicted */
    bool full;    /* used is above 0.95 */
};
struct dt_heard_memory dt_heard_memory(const struct dt_result *result);

/* Names of the reasons why clocks were lower in the requests that had throttled samples; new reference, maybe empty. */
json_t *dt_heard_reasons(const struct dt_result *result);

/* The object "device" of docs/json.md, new reference; NULL when nothing was heard. */
json_t *dt_heard_json(const struct dt_result *result);

/* Into a record and back from it, after its steps. Errors name `what`. */
void dt_heard_record(const struct dt_result *result, json_t *record);
dt_status dt_heard_read(const json_t *record, const char *what,
                        struct dt_result *result) DT_MUST_CHECK;

/* A line about the devices; and a warning for each thing that a reader must know. */
void dt_heard_text(const struct dt_result *result, struct dt_text *out);
void dt_heard_warnings(const struct dt_result *result, struct dt_text *out);

#endif
