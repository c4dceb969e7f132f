/* SPDX-License-Identifier: MIT */
/* Counts follow the layers of the authors' code one by one; the published parameter and operation counts of the
 * presets are their test. */
#include "model/workload.h"

#include "model/layout.h"
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
    const struct dt_network *network = &workload->network;
    double t = dt_workload_tokens(workload), c = network->hidden, mlp = dt_network_mlp(network);
    double token_in = (double)network->in_channels * network->patch * network->patch;
    double token_out = (double)dt_network_out_channels(network) * network->patch * network->patch;
    double embed = t * token_in * c + DT_TIME_CHANNELS * c + c * c;
    double linear = t * (3 * c * c + c * c + 2 * c * mlp) + 6 * c * c;
    double final = t * c * token_out + 2 * c * c;
    double multiply_adds = embed + network->depth * linear + final;
    return 2 * multiply_adds * dt_workload_passes(workload) * batch +
           dt_workload_attention_flops(workload, batch);
}

double dt_workload_attention_flops(const struct dt_workload *workload, int batch)
{
    double t = dt_workload_tokens(workload);
    double multiply_adds = 2 * t * t * workload->network.hidden * workload->network.depth;
    return 2 * multiply_adds * dt_workload_passes(workload) * batch;
}

double dt_workload_rest_bytes(const struct dt_workload *workload, int batch)
{
    double stream = sizeof(float), branch = dt_dtype_bytes(workload->dtype);
    double embed = 3 * stream, first = stream + branch; /* an element: embedded, position, stream */
    double join = 2 * (stream + branch);                /* read and written */
    double elements = (double)dt_workload_tokens(workload) * workload->network.hidden;
    return elements * (embed + first + 2 * workload->network.depth * join) *
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

/* The blocks are alike, and this is asked for every plan of a space. */
int64_t dt_workload_weight_bytes(const struct dt_workload *workload)
{
    int64_t whole = 0, block = 0;
    for (int i = 0; i < DT_TENSOR_BLOCKS + DT_TENSORS_OF_BLOCK; i++) {
        struct dt_tensor tensor;
        dt_tensor_init(&tensor, workload, i);
        *(i < DT_TENSOR_BLOCKS ? &whole : &block) += (tensor.bytes + 63) / 64 * 64;
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
