/* SPDX-License-Identifier: MIT */
/* belief - the prior of a session's search
 *
 *     --prior FILE      a table that another machine recorded (docs/search.md)
 *     --prior cost      operations and bytes of each plan (model/cost.h); the built-in network's default
 *     --prior none
 */
#ifndef DT_TUNER_SESSION_BELIEF_H
#define DT_TUNER_SESSION_BELIEF_H

#include "model/workload.h"
#include "search/landscape/landscape.h"
#include "search/search.h"
#include "tuner/measure/measure.h"

struct dt_belief {
    const struct dt_target *target;
    struct dt_workload workload; /* of the built-in network */
    struct dt_landscape *source; /* owned; NULL: the cost model is used */
    struct dt_transfer transfer; /* from the source */
    char name[160];              /* "" when there is none */
    struct dt_prior prior;       /* points into the belief, which must not move */
};

/* DT_EUSAGE, DT_EIO: the file is no table, or has no plan of the target. */
dt_status dt_belief_init(struct dt_belief *belief, const struct dt_target *target,
                         const char *option) DT_MUST_CHECK;
void dt_belief_fini(struct dt_belief *belief);

/* For dt_search_opts; NULL: none. */
const struct dt_prior *dt_belief_prior(const struct dt_belief *belief);

#endif
