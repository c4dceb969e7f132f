/* SPDX-License-Identifier: MIT */
#include "tuner/session/belief.h"

#include "model/cost.h"
#include "model/workload_json.h"
#include "space/dit/dit.h"
#include "tuner/session/history.h"

#include <stdio.h>
#include <string.h>

/* Rough values, which the first answers correct; only the order of plans matters. Cores of 50 Gflop/s that send 5 GB/s;
 * GPUs of 500 Tflop/s that send 370 GB/s (NVLink 4 after its own overhead, github.com/NVIDIA/nccl-tests/issues/212). */
#define FLOPS_PER_BYTE     10
#define GPU_FLOPS_PER_BYTE 1350

static double cost_value(const void *context, const struct dt_point *point)
{
    const struct dt_belief *belief = context;
    const struct dt_target *target = belief->target;
    struct dt_plan plan = dt_dit_plan(target->space, point);
    double step = dt_cost_step(&belief->workload, &plan, target->hardware.cores,
                               target->hardware.backend.cuda ? GPU_FLOPS_PER_BYTE : FLOPS_PER_BYTE);
    return target->objective->value(step, dt_target_batch(target, point),
                                    dt_target_devices(target, point));
}

static dt_status believe_cost(struct dt_belief *belief)
{
    DT_TRY(dt_workload_from_json(belief->target->workload, "the workload", &belief->workload));
    snprintf(belief->name, sizeof belief->name, "operations and bytes of each plan");
    belief->prior = (struct dt_prior){.name = belief->name, .value = cost_value, .context = belief};
    return DT_OK;
}

static double table_value(const void *context, const struct dt_point *point)
{
    return dt_transfer_value(&((const struct dt_belief *)context)->transfer, point);
}

/* Number of the table's plans that exist here; iterates over the table, which is small. */
static int64_t shared(const struct dt_belief *belief)
{
    const struct dt_space *space = belief->target->space, *theirs = belief->source->space;
    int64_t n = 0;
    for (int64_t k = 0; k < belief->source->count; k++) {
        struct dt_point there, point = {{0}};
        bool here = true;
        dt_space_at(theirs, k, &there);
        for (int a = 0; a < dt_space_axes(space) && here; a++)
            here = dt_transfer_back(&belief->transfer, a, &there, &point.index[a]);
        n += here && dt_space_feasible(space, &point);
    }
    return n;
}

static dt_status believe_table(struct dt_belief *belief, const char *path)
{
    DT_TRY(dt_session_landscape(path, &belief->source));
    DT_TRY(dt_transfer_init(&belief->transfer, belief->target->space, NULL, belief->source));
    int64_t n = shared(belief);
    if (n == 0)
        return dt_fail(DT_EUSAGE, "--prior %s: none of its %lld plans is a plan of %s", path,
                       (long long)belief->source->count, belief->target->identity.title);
    snprintf(belief->name, sizeof belief->name, "%.80s (%lld plans)", path, (long long)n);
    belief->prior =
        (struct dt_prior){.name = belief->name, .value = table_value, .context = belief};
    return DT_OK;
}

dt_status dt_belief_init(struct dt_belief *belief, const struct dt_target *target,
                         const char *option)
{
    *belief = (struct dt_belief){.target = target};
    if (option == NULL ? target->foreign : strcmp(option, "none") == 0)
        return DT_OK;
    if (option != NULL && strcmp(option, "cost") != 0)
        return believe_table(belief, option);
    if (target->foreign)
        return dt_fail(DT_EUSAGE, "--prior cost knows the built-in network only, not the worker %s",
                       target->worker.program);
    return believe_cost(belief);
}

void dt_belief_fini(struct dt_belief *belief)
{
    dt_transfer_fini(&belief->transfer);
    dt_landscape_free(belief->source);
    belief->source = NULL;
}

const struct dt_prior *dt_belief_prior(const struct dt_belief *belief)
{
    return belief->prior.value != NULL ? &belief->prior : NULL;
}
