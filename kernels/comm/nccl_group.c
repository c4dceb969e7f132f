/* SPDX-License-Identifier: MIT */
/* Creates, caches and destroys communicators, which block: each call for it is made on a thread of its own. The ranks of
 * a new one agree over the host's comm, so that either all ranks have it or none. */
#include "kernels/comm/nccl_int.h"

#include "base/clock.h"
#include "base/rng.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define INIT_NS     (120 * DT_NS_PER_SECOND) /* modules for all architectures alone have taken 52 s */
#define END_NS      (10 * DT_NS_PER_SECOND)
#define REGISTER_NS (60 * DT_NS_PER_SECOND)
#define REFUSE_NS   DT_NS_PER_SECOND /* a rank whose call fails at once says so to the others */

enum { KEPT = 4 };

static void unlink_group(struct dt_nccl_root *root, const struct dt_nccl_group *group)
{
    struct dt_nccl_group **at = &root->groups;
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
}

/* Windows: memory registered by all ranks of a communicator, with equal sizes; exchanges between windows need no copy
 * through NCCL's buffers, and no multiprocessor where copy engines can do it (NCCL's user guide, "User buffer
 * registration"). */
static struct dt_nccl_window **find_window(struct dt_nccl_group *group, const void *at)
{
    struct dt_nccl_window **window = &group->windows;
    while (*window != NULL && (*window)->at != at)
        window = &(*window)->next;
    return window;
}

static ncclResult_t register_window(struct dt_nccl_call *call)
{
    return ncclCommWindowRegister(call->comm, call->at, call->bytes, &call->window,
                                  NCCL_WIN_COLL_SYMMETRIC);
}

dt_status dt_nccl_window_add(struct dt_nccl_root *root, struct dt_nccl_group *group,
                             const struct dt_nccl_memory *memory)
{
    if (!group->config.windows || *find_window(group, memory->at) != NULL)
        return DT_OK;
    struct dt_nccl_window *window = calloc(1, sizeof *window);
    struct dt_nccl_call call = {.name = "ncclCommWindowRegister",
                                .make = register_window,
                                .comm = group->comm,
                                .at = memory->at,
                                .bytes = memory->bytes};
    dt_status status = window != NULL ? dt_nccl_within(root, &call, REGISTER_NS)
                                      : dt_fail(DT_ENOMEM, "no memory for a window");
    if (status != DT_OK) {
        free(window);
        return status;
    }
    *window = (struct dt_nccl_window){group->windows, memory->at, call.window};
    group->windows = window;
    return DT_OK;
}

static ncclResult_t deregister_window(struct dt_nccl_call *call)
{
    return ncclCommWindowDeregister(call->comm, call->window);
}

/* It waits for the streams (NCCL 2.28.9, dev_runtime.cc), and so for ever on a GPU that hangs. */
static dt_status end_window(struct dt_nccl_root *root, struct dt_nccl_group *group,
                            struct dt_nccl_window **at)
{
    struct dt_nccl_window *window = *at;
    struct dt_nccl_call call = {.name = "ncclCommWindowDeregister",
                                .make = deregister_window,
                                .comm = group->comm,
                                .window = window->handle};
    if (group->comm != NULL)
        DT_TRY(dt_nccl_within(root, &call, atomic_load(&dt_nccl_patience_ns)));
    *at = window->next;
    free(window);
    return DT_OK;
}

dt_status dt_nccl_window_drop(struct dt_nccl_root *root, const struct dt_nccl_memory *memory)
{
    for (struct dt_nccl_group *group = root->groups; group != NULL; group = group->next) {
        struct dt_nccl_window **at = find_window(group, memory->at);
        if (*at != NULL)
            DT_TRY(end_window(root, group, at));
    }
    return DT_OK;
}

void dt_nccl_windows_forget(struct dt_nccl_group *group)
{
    while (group->windows != NULL) {
        struct dt_nccl_window *next = group->windows->next;
        free(group->windows);
        group->windows = next;
    }
}

static ncclResult_t destroy(struct dt_nccl_call *call)
{
    ncclResult_t result = ncclCommFinalize(call->comm);
    return result == ncclSuccess ? ncclCommDestroy(call->comm) : result;
}

static void free_group(const struct dt_nccl_root *root, struct dt_nccl_group *group)
{
    if (group->stream != NULL && group->stream != root->stream)
        (void)cudaStreamDestroy(group->stream);
    free(group);
}

/* Regular end: finishes pending work, then destroys the communicator. */
static dt_status end_group(struct dt_nccl_root *root, struct dt_nccl_group *group)
{
    struct dt_nccl_call call = {
        .name = "the end of a communicator", .make = destroy, .comm = group->comm};
    while (group->windows != NULL)
        DT_TRY(end_window(root, group, &group->windows));
    DT_TRY(dt_nccl_within(root, &call, END_NS));
    group->comm = NULL;
    unlink_group(root, group);
    free_group(root, group);
    return DT_OK;
}

static bool is_idle(cudaStream_t stream)
{
    bool idle = cudaStreamQuery(stream) == cudaSuccess;
    (void)cudaGetLastError(); /* "not ready" counts as one */
    return idle;
}

void dt_nccl_end(struct dt_nccl_root *root)
{
    bool whole = root->lost.status == DT_OK && is_idle(root->stream);
    for (const struct dt_nccl_group *group = root->groups; group != NULL; group = group->next)
        whole = whole && is_idle(group->stream);
    dt_status status = whole ? DT_OK : DT_ELIB;
    while (status == DT_OK && root->groups != NULL)
        status = end_group(root, root->groups);
    if (status != DT_OK && dt_nccl_abort(root, dt_clock_ns() + END_NS) != DT_OK)
        root->stuck = true;
    while (!root->stuck && root->groups != NULL) {
        struct dt_nccl_group *group = root->groups;
        root->groups = group->next;
        dt_nccl_windows_forget(group);
        free_group(root, group);
    }
}

/* Destroys the least recently used communicators that no comm uses. */
static dt_status make_room(struct dt_nccl_root *root)
{
    for (;;) {
        struct dt_nccl_group *oldest = NULL;
        int unused = 0;
        for (struct dt_nccl_group *group = root->groups; group != NULL; group = group->next) {
            unused += group->users == 0;
            if (group->users == 0 && (oldest == NULL || group->last < oldest->last))
                oldest = group;
        }
        if (unused < KEPT)
            return DT_OK;
        DT_TRY(end_group(root, oldest));
    }
}

static ncclConfig_t nccl_config(const struct dt_comm_config *config)
{
    ncclConfig_t made = NCCL_CONFIG_INITIALIZER;
    made.blocking = 1;
    if (config->ctas > 0)
        made.maxCTAs = config->ctas;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
    if (config->windows)
        made.CTAPolicy = NCCL_CTA_POLICY_ZERO; /* copy engines */
#endif
    return made;
}

/* Decision of rank 0 of a part. */
struct decision {
    dt_status status;
    bool found; /* all ranks have the communicator with this serial */
    uint64_t serial;
    ncclUniqueId id;
};

static uint64_t serial_of(const ncclUniqueId *id)
{
    return dt_rng_bytes(DT_RNG_FNV, id->internal, sizeof *id) | 1;
}

static dt_status decide(struct dt_nccl_root *root, struct dt_comm *host, uint64_t own,
                        struct decision *decision)
{
    uint64_t *all = calloc((size_t)host->size, sizeof *all);
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a communicator");
    dt_status status = host->ops->gather(host, &own, all, sizeof own);
    if (status == DT_OK && host->rank == 0) {
        decision->found = own != 0;
        for (int i = 0; i < host->size; i++)
            decision->found = decision->found && all[i] == own;
        decision->serial = own;
        if (!decision->found)
            decision->status =
                dt_nccl_check(root, ncclGetUniqueId(&decision->id), NULL, "ncclGetUniqueId");
        if (!decision->found)
            decision->serial = serial_of(&decision->id);
    }
    free(all);
    DT_TRY(status);
    DT_TRY(host->ops->broadcast(host, decision, sizeof *decision));
    if (decision->status != DT_OK && host->rank != 0)
        return dt_fail(decision->status, "no communicator: another rank could not begin it");
    return decision->status;
}

/* All ranks of host get the worst status. */
static dt_status agree(struct dt_comm *host, dt_status own)
{
    dt_status worst = own, *all = calloc((size_t)host->size, sizeof *all);
    dt_status status = all != NULL ? host->ops->gather(host, &own, all, sizeof own)
                                   : dt_fail(DT_ENOMEM, "out of memory for a communicator");
    for (int i = 0; status == DT_OK && host->rank == 0 && i < host->size; i++)
        worst = all[i] < worst ? all[i] : worst;
    free(all);
    if (status == DT_OK)
        status = host->ops->broadcast(host, &worst, sizeof worst);
    if (status != DT_OK || own != DT_OK)
        return own != DT_OK ? own : status;
    return worst == DT_OK ? DT_OK
                          : dt_fail(worst, "no communicator: another rank could not make it");
}

static ncclResult_t init(struct dt_nccl_call *call)
{
    return ncclCommInitRankConfig(&call->comm, call->size, call->id, call->rank, &call->config);
}

/* A rank that cannot begin reports it before the others wait for it; their calls are abandoned. */
static dt_status new_group(struct dt_nccl_root *root, struct dt_comm *host,
                           const struct decision *decision, struct dt_nccl_group *group)
{
    struct dt_nccl_call call = {.name = "ncclCommInitRankConfig",
                                .make = init,
                                .size = host->size,
                                .rank = host->rank,
                                .id = decision->id,
                                .config = nccl_config(&group->config)};
    struct dt_nccl_pending *pending = NULL;
    struct dt_error error = {DT_OK, ""};
    dt_status status = dt_nccl_begin(root, &call, &pending);
    bool ended = status != DT_OK || dt_nccl_await(pending, REFUSE_NS);
    if (pending != NULL && ended)
        status = dt_nccl_finish(root, pending, 0, &call);
    dt_error_keep(&error, agree(host, status));
    if (!ended)
        status = dt_nccl_finish(root, pending, error.status == DT_OK ? INIT_NS : 0, &call);
    if (error.status == DT_OK)
        dt_error_keep(&error, agree(host, status));
    group->comm = call.comm;
    return dt_error_raise(&error);
}

static struct dt_nccl_group *find(const struct dt_nccl_root *root, int size, const int members[],
                                  const struct dt_comm_config *config)
{
    struct dt_nccl_group *group = root->groups;
    while (group != NULL &&
           (group->size != size || group->config.ctas != config->ctas ||
            group->config.windows != config->windows ||
            memcmp(group->members, members, (size_t)size * sizeof members[0]) != 0))
        group = group->next;
    return group;
}

static dt_status find_stream(const struct dt_nccl_root *root, struct dt_nccl_group *group)
{
    group->stream = root->stream;
    if (root->ordered)
        DT_CUDA(root->cuda,
                cudaStreamCreateWithPriority(&group->stream, cudaStreamNonBlocking, root->priority),
                "make a stream");
    return DT_OK;
}

static dt_status add_group(struct dt_nccl_root *root, struct dt_comm *host, const int members[],
                           const struct dt_comm_config *config, const struct decision *decision,
                           struct dt_nccl_group **out)
{
    size_t bytes = (size_t)host->size * sizeof members[0];
    struct dt_nccl_group *group = calloc(1, sizeof *group + bytes);
    dt_status status =
        group != NULL ? make_room(root) : dt_fail(DT_ENOMEM, "out of memory for a communicator");
    if (group != NULL) {
        group->config = *config;
        group->size = host->size;
        group->serial = decision->serial;
        memcpy(group->members, members, bytes);
        group->next = root->groups;
        root->groups = group;
        dt_status streamed = find_stream(root, group);
        status = status == DT_OK ? streamed : status;
    }
    status = agree(host, status);
    if (status == DT_OK && group != NULL)
        status = new_group(root, host, decision, group);
    if (status != DT_OK)
        dt_nccl_lose(root); /* some ranks may have it */
    *out = group;
    return status;
}

dt_status dt_nccl_group_take(struct dt_nccl_root *root, struct dt_comm *host, const int members[],
                             const struct dt_comm_config *config, struct dt_nccl_group **out)
{
    struct dt_nccl_group *group = find(root, host->size, members, config);
    struct decision decision = {.status = dt_nccl_ready(root)};
    uint64_t own = group != NULL ? group->serial : 0;
    DT_TRY(agree(host, decision.status));
    DT_TRY(decide(root, host, own, &decision));
    if (!decision.found || group == NULL)
        DT_TRY(add_group(root, host, members, config, &decision, &group));
    if (group == NULL)
        return DT_ENOMEM;
    group->users++;
    group->last = ++root->splits;
    for (const struct dt_nccl_memory *at = root->memories; at != NULL; at = at->next)
        if (at->whole)
            DT_TRY(dt_nccl_window_add(root, group, at));
    *out = group;
    return DT_OK;
}

void dt_nccl_group_give_back(struct dt_nccl_group *group)
{
    if (group != NULL)
        group->users--;
}
