/* SPDX-License-Identifier: MIT */
/* Builds the graph of one operation and the first plan of the heuristics' proposals that works. Sequence and attribute
 * types: cuDNN's backend API (cudnn_graph.h of version 9). */
#include "kernels/cuda/cudnn_int.h"

#include <math.h>
#include <string.h>

/* Heuristics propose 1 to 3 plans for an attention; more are ignored. */
#define PROPOSALS 8
#define TENSORS   6

dt_status dt_cudnn_check(cudnnStatus_t status, const char *call)
{
    char reason[400] = "";
    if (status == CUDNN_STATUS_SUCCESS)
        return DT_OK;
    cudnnGetLastErrorString(reason, sizeof reason);
    dt_status code = status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000 ? DT_EUNSUP : DT_ELIB;
    return dt_fail(code, "cuDNN: %s: %s%s%s", call, cudnnGetErrorString(status),
                   reason[0] != '\0' ? ": " : "", reason);
}

dt_status dt_cudnn_set(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    return dt_cudnn_check(cudnnBackendSetAttribute(to, name, type, count, values), "an attribute");
}

dt_status dt_cudnn_new(cudnnBackendDescriptorType_t type, const char *name,
                       cudnnBackendDescriptor_t *descriptor)
{
    return dt_cudnn_check(cudnnBackendCreateDescriptor(type, descriptor), name);
}

dt_status dt_cudnn_finalize(cudnnBackendDescriptor_t descriptor, const char *name)
{
    return dt_cudnn_check(cudnnBackendFinalize(descriptor), name);
}

void dt_cudnn_destroy(cudnnBackendDescriptor_t descriptor)
{
    if (descriptor != NULL)
        cudnnBackendDestroyDescriptor(descriptor);
}

struct tensor {
    const char *name;
    int64_t uid, dims[4], strides[4];
    cudnnDataType_t type;
    bool by_value;
};

static dt_status tensor_set(cudnnBackendDescriptor_t to, const struct tensor *tensor)
{
    int64_t alignment = tensor->type == CUDNN_DATA_BFLOAT16 ? 16 : 4;
    DT_TRY(dt_cudnn_set(to, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &tensor->type));
    DT_TRY(dt_cudnn_set(to, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, tensor->dims));
    DT_TRY(dt_cudnn_set(to, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, tensor->strides));
    DT_TRY(dt_cudnn_set(to, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &tensor->uid));
    DT_TRY(dt_cudnn_set(to, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment));
    DT_TRY(
        dt_cudnn_set(to, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &tensor->by_value));
    return dt_cudnn_finalize(to, tensor->name);
}

/* [B, H, rows, D]: heads lie D apart. The stride of one sequence alone has no meaning, but must not be 0. */
static struct tensor rows_tensor(const char *name, int64_t uid, const struct dt_attention *op,
                                 int rows, struct dt_strides at)
{
    int64_t sequence = op->sequences > 1 ? at.sequence : at.row * rows;
    return (struct tensor){.name = name,
                           .uid = uid,
                           .dims = {op->sequences, op->heads, rows, op->head},
                           .strides = {sequence, op->head, at.row, 1},
                           .type = CUDNN_DATA_BFLOAT16};
}

struct graph {
    cudnnBackendDescriptor_t tensors[TENSORS], operation, graph;
};

static void graph_fini(struct graph *graph)
{
    dt_cudnn_destroy(graph->graph);
    dt_cudnn_destroy(graph->operation);
    for (int i = 0; i < TENSORS; i++)
        dt_cudnn_destroy(graph->tensors[i]);
}

static dt_status graph_tensors(struct graph *graph, const struct dt_attention *op)
{
    const struct tensor tensors[TENSORS] = {
        rows_tensor("q", DT_CUDNN_Q, op, op->queries, op->q_at),
        rows_tensor("k", DT_CUDNN_K, op, op->keys, op->kv_at),
        rows_tensor("v", DT_CUDNN_V, op, op->keys, op->kv_at),
        rows_tensor("out", DT_CUDNN_OUT, op, op->queries, op->out_at),
        {"lse",
         DT_CUDNN_LSE,
         {op->sequences, op->heads, op->queries, 1},
         {(int64_t)op->heads * op->queries, op->queries, 1, 1},
         CUDNN_DATA_FLOAT,
         false},
        {"scale", DT_CUDNN_SCALE, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, true},
    };
    for (int i = 0; i < TENSORS; i++) {
        DT_TRY(dt_cudnn_new(CUDNN_BACKEND_TENSOR_DESCRIPTOR, tensors[i].name, &graph->tensors[i]));
        DT_TRY(tensor_set(graph->tensors[i], &tensors[i]));
    }
    return DT_OK;
}

static dt_status graph_init(struct graph *graph, const struct dt_cudnn_target *target,
                            const struct dt_attention *op)
{
    static const cudnnBackendAttributeName_t names[TENSORS] = {
        CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC,     CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
        CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC,     CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
        CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC,
    };
    DT_TRY(graph_tensors(graph, op));
    DT_TRY(dt_cudnn_new(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, "the attention operation",
                        &graph->operation));
    for (int i = 0; i < TENSORS; i++)
        if (op->lse != NULL || names[i] != CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC)
            DT_TRY(dt_cudnn_set(graph->operation, names[i], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                &graph->tensors[i]));
    DT_TRY(dt_cudnn_finalize(graph->operation, "the attention operation"));
    DT_TRY(dt_cudnn_new(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "the graph", &graph->graph));
    DT_TRY(dt_cudnn_set(graph->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        1, &graph->operation));
    if (target->handle != NULL)
        DT_TRY(dt_cudnn_set(graph->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                            &target->handle));
    return dt_cudnn_finalize(graph->graph, "the graph");
}

/* Fills *count of configs[PROPOSALS], which the caller created, best first. */
static dt_status ask_heuristics(const struct dt_cudnn_target *target,
                                cudnnBackendDescriptor_t graph, cudnnBackendDescriptor_t configs[],
                                int64_t *count)
{
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    cudnnBackendDescriptor_t heuristics = NULL;
    DT_TRY(dt_cudnn_new(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "the heuristics", &heuristics));
    dt_status status = dt_cudnn_set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    if (status == DT_OK)
        status =
            dt_cudnn_set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (status == DT_OK && target->device != NULL)
        status = dt_cudnn_set(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target->device);
    if (status == DT_OK)
        status = dt_cudnn_finalize(heuristics, "the heuristics");
    if (status == DT_OK)
        status = dt_cudnn_check(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, PROPOSALS,
                                                         count, configs),
                                "the heuristics' proposals");
    dt_cudnn_destroy(heuristics);
    return status;
}

/* The number of the engine of a configuration, for the record; -1: unknown. */
static int64_t engine_of(cudnnBackendDescriptor_t config)
{
    cudnnBackendDescriptor_t engine = NULL;
    int64_t index = -1, n = 0;
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) !=
        CUDNN_STATUS_SUCCESS)
        return -1;
    if (cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 1, &n, &engine) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n,
                                 &index) != CUDNN_STATUS_SUCCESS)
        index = -1;
    dt_cudnn_destroy(engine);
    return index;
}

static dt_status plan_set(const struct dt_cudnn_target *target, cudnnBackendDescriptor_t config,
                          cudnnBackendDescriptor_t plan, int64_t *bytes)
{
    int64_t n = 0;
    if (target->handle != NULL)
        DT_TRY(dt_cudnn_set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                            &target->handle));
    else
        DT_TRY(dt_cudnn_set(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target->device));
    DT_TRY(dt_cudnn_set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config));
    DT_TRY(dt_cudnn_finalize(plan, "the execution plan"));
    return dt_cudnn_check(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                   CUDNN_TYPE_INT64, 1, &n, bytes),
                          "the workspace of a plan");
}

static dt_status plan_try(const struct dt_cudnn_target *target, cudnnBackendDescriptor_t config,
                          int64_t most, cudnnBackendDescriptor_t *plan,
                          struct dt_cuda_sdpa_plan *about)
{
    cudnnBackendDescriptor_t made = NULL;
    int64_t bytes = 0;
    DT_TRY(dt_cudnn_new(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "the execution plan", &made));
    dt_status status = plan_set(target, config, made, &bytes);
    if (status == DT_OK && bytes > most)
        status =
            dt_fail(DT_EUNSUP, "cuDNN's plan asks for a workspace of %lld bytes, %lld are there",
                    (long long)bytes, (long long)most);
    if (status != DT_OK) {
        dt_cudnn_destroy(made);
        return status;
    }
    about->engine = engine_of(config);
    about->workspace_bytes = bytes;
    *plan = made;
    return DT_OK;
}

/* Reports the last refusal, which is the fallback's. */
static dt_status plan_first(const struct dt_cudnn_target *target, cudnnBackendDescriptor_t graph,
                            int64_t workspace_bytes, cudnnBackendDescriptor_t *plan,
                            struct dt_cuda_sdpa_plan *about)
{
    cudnnBackendDescriptor_t configs[PROPOSALS] = {NULL};
    int64_t count = 0;
    dt_status status = DT_OK;
    for (int i = 0; status == DT_OK && i < PROPOSALS; i++)
        status = dt_cudnn_new(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "a configuration", &configs[i]);
    if (status == DT_OK)
        status = ask_heuristics(target, graph, configs, &count);
    if (status == DT_OK && count == 0)
        status = dt_fail(DT_EUNSUP, "cuDNN proposes no engine");
    struct dt_cuda_sdpa_plan found = {.proposed = (int)count};
    for (int64_t i = 0; i < count && (status == DT_OK || i > 0); i++) {
        status = plan_try(target, configs[i], workspace_bytes, plan, &found);
        if (status == DT_OK)
            break;
        found.skipped++;
    }
    if (status == DT_OK)
        *about = found;
    for (int i = 0; i < PROPOSALS; i++)
        dt_cudnn_destroy(configs[i]);
    return status;
}

dt_status dt_cudnn_plan_new(const struct dt_cudnn_target *target, const struct dt_attention *op,
                            int64_t workspace_bytes, cudnnBackendDescriptor_t *plan,
                            struct dt_cuda_sdpa_plan *about)
{
    struct graph graph = {.graph = NULL};
    dt_status status = graph_init(&graph, target, op);
    if (status == DT_OK)
        status = plan_first(target, graph.graph, workspace_bytes, plan, about);
    graph_fini(&graph);
    return status;
}
