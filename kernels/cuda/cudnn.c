/* SPDX-License-Identifier: MIT */
/* The cache of plans by shape, and their execution. A plan's variant packs (sets of pointers) are cached, too: the
 * layers of a network use the same buffers, and a step should create nothing. */
#include "kernels/cuda/cudnn_int.h"

#include "base/clock.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Variant packs per plan: the parts of a ring alternate between two buffers, a marked step uses both. */
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
        dt_cudnn_destroy(entry->packs[i].pack);
    dt_cudnn_destroy(entry->plan);
    *entry = (struct entry){.plan = NULL};
}

void dt_cuda_sdpa_close(struct dt_cuda_sdpa *sdpa)
{
    if (sdpa == NULL)
        return;
    for (int i = 0; i < DT_CUDA_SDPA_PLANS; i++)
        entry_clear(&sdpa->entries[i]);
    dt_cudnn_destroy(sdpa->target.device);
    if (sdpa->target.handle != NULL)
        cudnnDestroy(sdpa->target.handle);
    free(sdpa);
}

/* A descriptor that is not finalized crashes the heuristics, so only finalized ones are kept. */
static dt_status device_new(const char *json, cudnnBackendDescriptor_t *device)
{
    cudnnBackendDescriptor_t made = NULL;
    DT_TRY(dt_cudnn_new(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "the device's description", &made));
    dt_status status = dt_cudnn_set(made, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                    CUDNN_TYPE_CHAR, (int64_t)strlen(json) + 1, json);
    if (status == DT_OK)
        status = dt_cudnn_finalize(made, "the device's description");
    if (status == DT_OK)
        *device = made;
    else
        dt_cudnn_destroy(made);
    return status;
}

/* The loaded library may differ from the one at build time. NVIDIA/cudnn-frontend, sdpa_support_surface.h. */
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
    DT_TRY(dt_cudnn_check(cudnnCreate(&handle), "cudnnCreate"));
    dt_status status = dt_cudnn_check(cudnnSetStream(handle, sdpa->stream), "cudnnSetStream");
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

static struct entry *find(const struct dt_cuda_sdpa *sdpa, const struct dt_attention *op)
{
    struct shape shape = shape_of(op);
    for (int i = 0; i < DT_CUDA_SDPA_PLANS; i++) {
        const struct entry *entry = &sdpa->entries[i];
        if (entry->plan != NULL && shape_equal(&entry->shape, &shape))
            return (struct entry *)entry;
    }
    return NULL;
}

static dt_status drain(struct dt_cuda_sdpa *sdpa)
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

/* A free entry, or the least recently used one. Its kernel may still run, so this waits for the stream. */
static dt_status place(struct dt_cuda_sdpa *sdpa, struct entry **where)
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
        DT_TRY(drain(sdpa));
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

static dt_status refused(const struct dt_attention *op, dt_status status)
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
    struct entry *entry = find(sdpa, op);
    if (entry != NULL) {
        entry->used = ++sdpa->clock;
        return DT_OK;
    }
    struct entry made = {
        .shape = shape_of(op), .scale = (float)(1 / sqrt((double)op->head)), .used = ++sdpa->clock};
    DT_TRY(check_shape(op));
    DT_TRY(target_ready(sdpa));
    DT_TRY(refused(op,
                   dt_cudnn_plan_new(&sdpa->target, op, workspace_bytes, &made.plan, &made.about)));
    dt_status status = place(sdpa, &entry);
    if (status == DT_OK)
        *entry = made;
    else
        dt_cudnn_destroy(made.plan);
    return status;
}

bool dt_cuda_sdpa_plan(const struct dt_cuda_sdpa *sdpa, const struct dt_attention *op,
                       struct dt_cuda_sdpa_plan *plan)
{
    const struct entry *entry = find(sdpa, op);
    if (entry != NULL)
        *plan = entry->about;
    return entry != NULL;
}

static dt_status pack_set(cudnnBackendDescriptor_t pack, void *const pointers[], void *workspace)
{
    static const int64_t all[POINTERS] = {DT_CUDNN_Q,   DT_CUDNN_K,     DT_CUDNN_V,
                                          DT_CUDNN_OUT, DT_CUDNN_SCALE, DT_CUDNN_LSE};
    int64_t n = pointers[POINTERS - 1] != NULL ? POINTERS : POINTERS - 1;
    DT_TRY(dt_cudnn_set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, all));
    DT_TRY(dt_cudnn_set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n,
                        pointers));
    DT_TRY(
        dt_cudnn_set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace));
    return dt_cudnn_finalize(pack, "the variant pack");
}

/* Finds or creates the pack of these pointers: the host does not need a pack after its launch has returned. */
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
    DT_TRY(dt_cudnn_new(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "the variant pack", &made));
    dt_status status = pack_set(made, pointers, workspace);
    if (status != DT_OK) {
        dt_cudnn_destroy(made);
        return status;
    }
    struct pack *slot = &entry->packs[entry->next];
    entry->next = (entry->next + 1) % PACKS;
    dt_cudnn_destroy(slot->pack);
    slot->pack = made;
    slot->workspace = workspace;
    memcpy(slot->pointers, pointers, sizeof slot->pointers);
    *pack = made;
    return DT_OK;
}

dt_status dt_cuda_sdpa_run(struct dt_cuda_sdpa *sdpa, const struct dt_attention *op,
                           void *workspace, int64_t workspace_bytes)
{
    struct entry *entry = sdpa != NULL ? find(sdpa, op) : NULL;
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
    return dt_cudnn_check(cudnnBackendExecute(sdpa->target.handle, entry->plan, pack),
                          "cudnnBackendExecute");
}

const char *dt_cuda_sdpa_version(void)
{
    static char text[32];
    size_t n = cudnnGetVersion(); /* 91900: major * 10000 + minor * 100 + patch since version 9 */
    snprintf(text, sizeof text, "%zu.%zu.%zu", n / 10000, n / 100 % 100, n % 100);
    return text;
}
