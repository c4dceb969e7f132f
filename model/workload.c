/* SPDX-License-Identifier: MIT */
/* Counts are sums over the family's tensors and operations; tests compare them with the published
 * parameter and operation counts of the presets. */
#include "model/workload.h"

#include "model/tensors.h"

int dt_workload_tokens(const struct dt_workload *workload)
{
    int patch = workload->network.patch;
    return workload->height / patch * (workload->width / patch);
}

int dt_workload_passes(const struct dt_workload *workload)
{
    return workload->guidance ? 2 : 1;
}

int dt_workload_share(int tokens, int ranks, int index)
{
    return tokens / ranks + (index < tokens % ranks ? 1 : 0);
}

int dt_workload_offset(int tokens, int ranks, int index)
{
    int more = tokens % ranks;
    return tokens / ranks * index + (index < more ? index : more);
}

double dt_workload_flops(const struct dt_workload *workload, int batch)
{
    double multiply_adds = dt_family_linear(workload, dt_workload_tokens(workload));
    return 2 * multiply_adds * dt_workload_passes(workload) * batch +
           dt_workload_attention_flops(workload, batch);
}

double dt_workload_attention_flops(const struct dt_workload *workload, int batch)
{
    double t = dt_workload_tokens(workload);
    double multiply_adds = 2 * t * t * workload->network.hidden * dt_family_attentions(workload);
    return 2 * multiply_adds * dt_workload_passes(workload) * batch;
}

double dt_workload_rest_bytes(const struct dt_workload *workload, int batch)
{
    return dt_family_rest_bytes(workload) * dt_workload_tokens(workload) *
           dt_workload_passes(workload) * batch;
}

int64_t dt_workload_parameters(const struct dt_workload *workload)
{
    int64_t sum = 0;
    for (int i = 0; i < dt_tensor_count(&workload->network); i++) {
        struct dt_tensor tensor;
        dt_tensor_init(&tensor, workload, i);
        sum += tensor.size;
    }
    return sum;
}

/* All blocks are equal, and this is called for every plan of a space. */
int64_t dt_workload_weight_bytes(const struct dt_workload *workload)
{
    const struct dt_family *family = workload->network.family;
    int64_t whole = 0, block = 0;
    for (int i = 0; i < family->whole + family->of_block; i++) {
        struct dt_tensor tensor;
        dt_tensor_init(&tensor, workload, i);
        *(i < family->whole ? &whole : &block) += (tensor.bytes + 63) / 64 * 64;
    }
    return whole + workload->network.depth * block;
}

int64_t dt_workload_activation_bytes(const struct dt_workload *workload, const struct dt_plan *plan)
{
    return dt_layout_bytes(workload, plan);
}

int64_t dt_workload_rank_bytes(const struct dt_workload *workload, const struct dt_plan *plan)
{
    return dt_workload_weight_bytes(workload) + dt_workload_activation_bytes(workload, plan);
}
