/* SPDX-License-Identifier: MIT */
/* Shares are those of the layout, so uneven ones count in full: a step ends with its largest rank. */
#include "model/cost.h"

#include "model/family.h"

/* Like dt_workload_flops, for one rank's tokens, heads and sequences. */
static double flops(const struct dt_workload *workload, const struct dt_layout *layout)
{
    double t = dt_workload_tokens(workload);
    double width = (double)layout->heads * dt_network_head(&workload->network);
    double attention = 2 * t * layout->block * width * dt_family_attentions(workload);
    return 2 * layout->sequences * (dt_family_linear(workload, layout->tokens) + attention);
}

/* All-to-all of queries, keys, values and back; keys and values around the ring; the exchange of guidance. */
static double bytes(const struct dt_workload *workload, const struct dt_plan *plan,
                    const struct dt_layout *layout)
{
    const struct dt_network *network = &workload->network;
    double element = dt_dtype_bytes(workload->dtype), u = plan->ulysses;
    double width = (double)layout->heads * dt_network_head(network);
    double alltoall = 4.0 * layout->slots * network->hidden * (u - 1) / u;
    double ring = 2.0 * layout->block_slots * width * (plan->ring - 1);
    double eps = plan->cfg > 1 ? (double)layout->images * layout->tokens * network->in_channels *
                                     network->patch * network->patch * (double)sizeof(float)
                               : 0;
    return layout->sequences * dt_family_attentions(workload) * (alltoall + ring) * element + eps;
}

struct dt_cost dt_cost_of(const struct dt_workload *workload, const struct dt_plan *plan)
{
    struct dt_layout layout;
    dt_layout_init(&layout, workload, plan, 0);
    return (struct dt_cost){.flops = flops(workload, &layout),
                            .bytes = bytes(workload, plan, &layout)};
}

double dt_cost_step(const struct dt_workload *workload, const struct dt_plan *plan, int cores,
                    double flops_per_byte)
{
    struct dt_cost cost = dt_cost_of(workload, plan);
    double threads = plan->threads, all = threads * plan->ranks;
    double crowd = all > cores ? all / cores : 1;
    return (cost.flops / threads + cost.bytes * flops_per_byte) * crowd;
}
