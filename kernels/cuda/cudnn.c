/* SPDX-License-Identifier: MIT */
/* The cache of plans by shape, and their execution. A plan's variant packs (sets of pointers) are
 * cached, too: the layers of a network use the same buffers, and a step should create nothing. */
#include "kernels/cuda/cudnn.h"
#include "base/clock.h"

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Target of a plan: a handle, or the properties of an absent device. One of the two is NULL. */
struct dt_cudnn_target {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t device;
};

/* The names of the tensors within the graph. */
enum { DT_CUDNN_Q = 1, DT_CUDNN_K, DT_CUDNN_V, DT_CUDNN_OUT, DT_CUDNN_LSE, DT_CUDNN_SCALE };

/* Builds the graph of one operation and the first plan of the heuristics' proposals that works.
 * Sequence and attribute types: cuDNN's backend API (cudnn_graph.h of version 9). */

/* Heuristics propose 1 to 3 plans for an attention; more are ignored. */
#define PROPOSALS 8
#define TENSORS   6

/* Converts the status of a call: DT_OK, DT_EUNSUP where cuDNN means "not supported", else DT_ELIB,
 * with the call's name, cuDNN's text and its stored reason. */
static dt_status cudnn_check(cudnnStatus_t status, const char *call)
{
    char reason[400] = "";
    if (status == CUDNN_STATUS_SUCCESS)
        return DT_OK;
    cudnnGetLastErrorString(reason, sizeof reason);
    dt_status code = status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000 ? DT_EUNSUP : DT_ELIB;
    return dt_fail(code, "cuDNN: %s: %s%s%s", call, cudnnGetErrorString(status),
                   reason[0] != '\0' ? ": " : "", reason);
}

/* Sets attributes: `count` values of cuDNN's type at `values`. */
static dt_status cudnn_set(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    return cudnn_check(cudnnBackendSetAttribute(to, name, type, count, values), "an attribute");
}

/* Creates an empty descriptor; the error message has its name. */
static dt_status cudnn_new(cudnnBackendDescriptorType_t type, const char *name,
                           cudnnBackendDescriptor_t *descriptor)
{
    return cudnn_check(cudnnBackendCreateDescriptor(type, descriptor), name);
}

static dt_status cudnn_finalize(cudnnBackendDescriptor_t descriptor, const char *name)
{
    return cudnn_check(cudnnBackendFinalize(descriptor), name);
}

static void cudnn_destroy(cudnnBackendDescriptor_t descriptor)
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
    DT_TRY(cudnn_set(to, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &tensor->type));
    DT_TRY(cudnn_set(to, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, tensor->dims));
    DT_TRY(cudnn_set(to, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, tensor->strides));
    DT_TRY(cudnn_set(to, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &tensor->uid));
    DT_TRY(cudnn_set(to, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment));
    DT_TRY(cudnn_set(to, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &tensor->by_value));
    return cudnn_finalize(to, tensor->name);
}

/* [B, H, rows, D]: heads lie D apart. The stride of one sequence alone has no
 * meaning, but must not be 0. */
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
    cudnn_destroy(graph->graph);
    cudnn_destroy(graph->operation);
    for (int i = 0; i < TENSORS; i++)
        cudnn_destroy(graph->tensors[i]);
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
        DT_TRY(cudnn_new(CUDNN_BACKEND_TENSOR_DESCRIPTOR, tensors[i].name, &graph->tensors[i]));
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
    DT_TRY(cudnn_new(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, "the attention operation",
                     &graph->operation));
    for (int i = 0; i < TENSORS; i++)
        if (op->lse != NULL || names[i] != CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC)
            DT_TRY(cudnn_set(graph->operation, names[i], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                             &graph->tensors[i]));
    DT_TRY(cudnn_finalize(graph->operation, "the attention operation"));
    DT_TRY(cudnn_new(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "the graph", &graph->graph));
    DT_TRY(cudnn_set(graph->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                     &graph->operation));
    if (target->handle != NULL)
        DT_TRY(cudnn_set(graph->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                         &target->handle));
    return cudnn_finalize(graph->graph, "the graph");
}

/* Fills *count of configs[PROPOSALS], which the caller created, best first. */
static dt_status ask_heuristics(const struct dt_cudnn_target *target,
                                cudnnBackendDescriptor_t graph, cudnnBackendDescriptor_t configs[],
                                int64_t *count)
{
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    cudnnBackendDescriptor_t heuristics = NULL;
    DT_TRY(cudnn_new(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "the heuristics", &heuristics));
    dt_status status = cudnn_set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    if (status == DT_OK)
        status = cudnn_set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (status == DT_OK && target->device != NULL)
        status = cudnn_set(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target->device);
    if (status == DT_OK)
        status = cudnn_finalize(heuristics, "the heuristics");
    if (status == DT_OK)
        status = cudnn_check(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, PROPOSALS,
                                                      count, configs),
                             "the heuristics' proposals");
    cudnn_destroy(heuristics);
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
    cudnn_destroy(engine);
    return index;
}

static dt_status plan_set(const struct dt_cudnn_target *target, cudnnBackendDescriptor_t config,
                          cudnnBackendDescriptor_t plan, int64_t *bytes)
{
    int64_t n = 0;
    if (target->handle != NULL)
        DT_TRY(cudnn_set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                         &target->handle));
    else
        DT_TRY(cudnn_set(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                         1, &target->device));
    DT_TRY(cudnn_set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                     1, &config));
    DT_TRY(cudnn_finalize(plan, "the execution plan"));
    return cudnn_check(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                CUDNN_TYPE_INT64, 1, &n, bytes),
                       "the workspace of a plan");
}

static dt_status plan_try(const struct dt_cudnn_target *target, cudnnBackendDescriptor_t config,
                          int64_t most, cudnnBackendDescriptor_t *plan,
                          struct dt_cuda_sdpa_plan *about)
{
    cudnnBackendDescriptor_t made = NULL;
    int64_t bytes = 0;
    DT_TRY(cudnn_new(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "the execution plan", &made));
    dt_status status = plan_set(target, config, made, &bytes);
    if (status == DT_OK && bytes > most)
        status =
            dt_fail(DT_EUNSUP, "cuDNN's plan asks for a workspace of %lld bytes, %lld are there",
                    (long long)bytes, (long long)most);
    if (status != DT_OK) {
        cudnn_destroy(made);
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
        status = cudnn_new(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "a configuration", &configs[i]);
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
        cudnn_destroy(configs[i]);
    return status;
}

/* *plan gets a finalized execution plan (owned by the caller), *about its facts. */
static dt_status cudnn_plan_new(const struct dt_cudnn_target *target, const struct dt_attention *op,
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

/* Variant packs per plan: the parts of a ring alternate between two buffers, a
 * marked step uses both. */
#define PACKS    8
#define POINTERS 6

#define PATIENCE_NS (60 * DT_NS_PER_SECOND)

/* Properties of a shape that a plan depends on. */
struct shape {
    struct dt_strides q_at, kv_at, out_at;
    int sequences, heads, head, queries, keys;
    bool lse;
};

struct pack {
    cudnnBackendDescriptor_t pack; /* NULL: free */
    void *pointers[POINTERS], *workspace;
};

struct entry {
    struct shape shape;
    cudnnBackendDescriptor_t plan; /* NULL: free */
    struct dt_cuda_sdpa_plan about;
    float scale; /* read by the launch through its address */
    uint64_t used;
    struct pack packs[PACKS];
    int next; /* next pack to replace */
};

struct dt_cuda_sdpa {
    cudaStream_t stream;
    const char *device_json;
    struct dt_cudnn_target target;
    uint64_t clock;
    struct entry entries[DT_CUDA_SDPA_PLANS];
};

static dt_status sdpa_new(void *stream, const char *device_json, struct dt_cuda_sdpa **sdpa)
{
    struct dt_cuda_sdpa *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    made->stream = stream;
    made->device_json = device_json;
    *sdpa = made;
    return DT_OK;
}

dt_status dt_cuda_sdpa_open(void *stream, struct dt_cuda_sdpa **sdpa)
{
    return sdpa_new(stream, NULL, sdpa);
}

dt_status dt_cuda_sdpa_describe(const char *device_json, struct dt_cuda_sdpa **sdpa)
{
    return sdpa_new(NULL, device_json, sdpa);
}

static void entry_clear(struct entry *entry)
{
    for (int i = 0; i < PACKS; i++)
        cudnn_destroy(entry->packs[i].pack);
    cudnn_destroy(entry->plan);
    *entry = (struct entry){.plan = NULL};
}

void dt_cuda_sdpa_close(struct dt_cuda_sdpa *sdpa)
{
    if (sdpa == NULL)
        return;
    for (int i = 0; i < DT_CUDA_SDPA_PLANS; i++)
        entry_clear(&sdpa->entries[i]);
    cudnn_destroy(sdpa->target.device);
    if (sdpa->target.handle != NULL)
        cudnnDestroy(sdpa->target.handle);
    free(sdpa);
}

/* A descriptor that is not finalized crashes the heuristics, so only finalized ones are kept. */
static dt_status device_new(const char *json, cudnnBackendDescriptor_t *device)
{
    cudnnBackendDescriptor_t made = NULL;
    DT_TRY(cudnn_new(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "the device's description", &made));
    dt_status status = cudnn_set(made, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                 (int64_t)strlen(json) + 1, json);
    if (status == DT_OK)
        status = cudnn_finalize(made, "the device's description");
    if (status == DT_OK)
        *device = made;
    else
        cudnn_destroy(made);
    return status;
}

/* The loaded library may differ from the one at build time. NVIDIA/cudnn-frontend,
 * sdpa_support_surface.h. */
#define VERSION_LEAST 91301

static dt_status target_ready(struct dt_cuda_sdpa *sdpa)
{
    cudnnHandle_t handle = NULL;
    if (cudnnGetVersion() < VERSION_LEAST)
        return dt_fail(DT_EUNSUP,
                       "attention=cudnn: cuDNN %s is loaded, it has to be 9.13.1 or later",
                       dt_cuda_sdpa_version());
    if (sdpa->target.handle != NULL || sdpa->target.device != NULL)
        return DT_OK;
    if (sdpa->device_json != NULL)
        return device_new(sdpa->device_json, &sdpa->target.device);
    DT_TRY(cudnn_check(cudnnCreate(&handle), "cudnnCreate"));
    dt_status status = cudnn_check(cudnnSetStream(handle, sdpa->stream), "cudnnSetStream");
    if (status == DT_OK)
        sdpa->target.handle = handle;
    else
        cudnnDestroy(handle);
    return status;
}

static struct shape shape_of(const struct dt_attention *op)
{
    return (struct shape){op->q_at, op->kv_at,   op->out_at, op->sequences,  op->heads,
                          op->head, op->queries, op->keys,   op->lse != NULL};
}

static bool strides_equal(struct dt_strides a, struct dt_strides b)
{
    return a.sequence == b.sequence && a.row == b.row;
}

static bool shape_equal(const struct shape *a, const struct shape *b)
{
    return strides_equal(a->q_at, b->q_at) && strides_equal(a->kv_at, b->kv_at) &&
           strides_equal(a->out_at, b->out_at) && a->sequences == b->sequences &&
           a->heads == b->heads && a->head == b->head && a->queries == b->queries &&
           a->keys == b->keys && a->lse == b->lse;
}

static struct entry *find_entry(const struct dt_cuda_sdpa *sdpa, const struct dt_attention *op)
{
    struct shape shape = shape_of(op);
    for (int i = 0; i < DT_CUDA_SDPA_PLANS; i++) {
        const struct entry *entry = &sdpa->entries[i];
        if (entry->plan != NULL && shape_equal(&entry->shape, &shape))
            return (struct entry *)entry;
    }
    return NULL;
}

static dt_status drain_device(struct dt_cuda_sdpa *sdpa)
{
    const int64_t deadline = dt_clock_ns() + PATIENCE_NS;
    const struct timespec nap = {.tv_nsec = 20000};
    cudaError_t error;
    while ((error = cudaStreamQuery(sdpa->stream)) == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* "not ready" counts as one */
        if (dt_clock_ns() >= deadline)
            return dt_fail(DT_ETIMEOUT, "the GPU has not finished yet what was queued");
        nanosleep(&nap, NULL);
    }
    return error == cudaSuccess ? DT_OK : dt_fail(DT_ELIB, "CUDA: %s", cudaGetErrorString(error));
}

/* A free entry, or the least recently used one. Its kernel may still run, so this
 * waits for the stream. */
static dt_status place_entry(struct dt_cuda_sdpa *sdpa, struct entry **where)
{
    struct entry *oldest = &sdpa->entries[0];
    for (int i = 0; i < DT_CUDA_SDPA_PLANS; i++) {
        struct entry *entry = &sdpa->entries[i];
        if (entry->plan == NULL) {
            *where = entry;
            return DT_OK;
        }
        oldest = entry->used < oldest->used ? entry : oldest;
    }
    if (sdpa->target.handle != NULL)
        DT_TRY(drain_device(sdpa));
    entry_clear(oldest);
    *where = oldest;
    return DT_OK;
}

static bool in_eights(struct dt_strides at)
{
    return at.sequence % 8 == 0 && at.row % 8 == 0;
}

/* Reports violated requirements of cuDNN in our own words where they are known. */
static dt_status check_shape(const struct dt_attention *op)
{
    if (op->head < 8 || op->head % 8 != 0 || op->head > DT_CUDA_SDPA_HEAD_MOST)
        return dt_fail(DT_EUNSUP,
                       "attention=cudnn: the head dimension %d is no multiple of 8 up to %d",
                       op->head, DT_CUDA_SDPA_HEAD_MOST);
    if (op->keys < 1 || op->queries < 1)
        return dt_fail(DT_EUNSUP, "attention=cudnn: there are %d queries and %d keys", op->queries,
                       op->keys);
    if (!in_eights(op->q_at) || !in_eights(op->kv_at) || !in_eights(op->out_at))
        return dt_fail(DT_EUNSUP, "attention=cudnn: a stride is no multiple of 8 elements");
    return DT_OK;
}

static dt_status plan_refused(const struct dt_attention *op, dt_status status)
{
    if (status != DT_EUNSUP)
        return status;
    return dt_fail(DT_EUNSUP,
                   "attention=cudnn: no plan for %d x %d heads of %d, %d queries, %d keys%s: %s",
                   op->sequences, op->heads, op->head, op->queries, op->keys,
                   op->lse != NULL ? ", with log-sum-exp" : "", dt_message());
}

dt_status dt_cuda_sdpa_ready(struct dt_cuda_sdpa *sdpa, const struct dt_attention *op,
                             int64_t workspace_bytes)
{
    struct entry *entry = find_entry(sdpa, op);
    if (entry != NULL) {
        entry->used = ++sdpa->clock;
        return DT_OK;
    }
    struct entry made = {
        .shape = shape_of(op), .scale = (float)(1 / sqrt((double)op->head)), .used = ++sdpa->clock};
    DT_TRY(check_shape(op));
    DT_TRY(target_ready(sdpa));
    DT_TRY(plan_refused(
        op, cudnn_plan_new(&sdpa->target, op, workspace_bytes, &made.plan, &made.about)));
    dt_status status = place_entry(sdpa, &entry);
    if (status == DT_OK)
        *entry = made;
    else
        cudnn_destroy(made.plan);
    return status;
}

bool dt_cuda_sdpa_plan(const struct dt_cuda_sdpa *sdpa, const struct dt_attention *op,
                       struct dt_cuda_sdpa_plan *plan)
{
    const struct entry *entry = find_entry(sdpa, op);
    if (entry != NULL)
        *plan = entry->about;
    return entry != NULL;
}

static dt_status pack_set(cudnnBackendDescriptor_t pack, void *const pointers[], void *workspace)
{
    static const int64_t all[POINTERS] = {DT_CUDNN_Q,   DT_CUDNN_K,     DT_CUDNN_V,
                                          DT_CUDNN_OUT, DT_CUDNN_SCALE, DT_CUDNN_LSE};
    int64_t n = pointers[POINTERS - 1] != NULL ? POINTERS : POINTERS - 1;
    DT_TRY(cudnn_set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, all));
    DT_TRY(
        cudnn_set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers));
    DT_TRY(cudnn_set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace));
    return cudnn_finalize(pack, "the variant pack");
}

/* Finds or creates the pack of these pointers: the host does not need a pack after its
 * launch has returned. */
static dt_status pack_of(struct entry *entry, void *const pointers[], void *workspace,
                         cudnnBackendDescriptor_t *pack)
{
    cudnnBackendDescriptor_t made = NULL;
    for (int i = 0; i < PACKS; i++) {
        const struct pack *p = &entry->packs[i];
        if (p->pack != NULL && p->workspace == workspace &&
            memcmp(p->pointers, pointers, sizeof p->pointers) == 0) {
            *pack = p->pack;
            return DT_OK;
        }
    }
    DT_TRY(cudnn_new(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "the variant pack", &made));
    dt_status status = pack_set(made, pointers, workspace);
    if (status != DT_OK) {
        cudnn_destroy(made);
        return status;
    }
    struct pack *slot = &entry->packs[entry->next];
    entry->next = (entry->next + 1) % PACKS;
    cudnn_destroy(slot->pack);
    slot->pack = made;
    slot->workspace = workspace;
    memcpy(slot->pointers, pointers, sizeof slot->pointers);
    *pack = made;
    return DT_OK;
}

dt_status dt_cuda_sdpa_run(struct dt_cuda_sdpa *sdpa, const struct dt_attention *op,
                           void *workspace, int64_t workspace_bytes)
{
    struct entry *entry = sdpa != NULL ? find_entry(sdpa, op) : NULL;
    cudnnBackendDescriptor_t pack = NULL;
    if (entry == NULL || sdpa->target.handle == NULL)
        return dt_fail(DT_EUNSUP, "attention=cudnn: this shape was not made ready");
    if (entry->about.workspace_bytes > workspace_bytes)
        return dt_fail(DT_EUNSUP, "attention=cudnn: the plan asks for %lld bytes of %lld",
                       (long long)entry->about.workspace_bytes, (long long)workspace_bytes);
    entry->used = ++sdpa->clock;
    void *const pointers[POINTERS] = {(void *)op->q, (void *)op->k, (void *)op->v,
                                      op->out,       &entry->scale, op->lse};
    DT_TRY(pack_of(entry, pointers, workspace, &pack));
    return cudnn_check(cudnnBackendExecute(sdpa->target.handle, entry->plan, pack),
                       "cudnnBackendExecute");
}

const char *dt_cuda_sdpa_version(void)
{
    static char text[32];
    size_t n = cudnnGetVersion(); /* 91900: major * 10000 + minor * 100 + patch since version 9 */
    snprintf(text, sizeof text, "%zu.%zu.%zu", n / 10000, n / 100 % 100, n % 100);
    return text;
}
