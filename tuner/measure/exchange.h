/* SPDX-License-Identifier: MIT */
/* exchange - the exchanges of a plan, timed by themselves in the group that just ran it (docs/protocol.md) */
#ifndef DT_TUNER_MEASURE_EXCHANGE_H
#define DT_TUNER_MEASURE_EXCHANGE_H

#include "tuner/measure/rig.h"

struct dt_exchange {
    const char *kind; /* "alltoall" or "shift" */
    int ranks;        /* of a group */
    int stride;       /* from one member to the next */
};

/* Lists the plan's exchanges: heads among the ulysses ranks, keys and values around the ring, the halves of the
 * guidance. None for one rank, and for foreign workers, whose parameters have no known meaning. */
int dt_exchange_list(const struct dt_target *target, const struct dt_point *point,
                     struct dt_exchange out[DT_DEGREES]);

/* Fills report.exchanges of the result. A worker without support does not fail the trial: the entry has the reason. */
dt_status dt_exchange_measure(const struct dt_target *target, struct dt_resident *resident,
                              int64_t deadline_ns, struct dt_result *result) DT_MUST_CHECK;

#endif
