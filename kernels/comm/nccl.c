/* SPDX-License-Identifier: MIT */
/* The comms of a rank share one root, which the last of them frees. Control messages use the host's
 * comm of the same ranks. */
#include "kernels/nccl.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/host.h"
#include "base/rng.h"
#include "kernels/comm/comm_int.h"
#include "kernels/cuda/cuda_int.h"

#include <errno.h>
#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Memory from alloc; it is a window of each communicator that has windows. */
struct dt_nccl_memory {
    struct dt_nccl_memory *next;
    void *at;
    size_t bytes;
    bool whole; /* allocated by all ranks of the root */
};

struct dt_nccl_window {
    struct dt_nccl_window *next;
    const void *at;
    ncclWindow_t handle;
};

/* A communicator, with the properties that decide whether another split can use it. */
struct dt_nccl_group {
    struct dt_nccl_group *next;
    ncclComm_t comm;
    cudaStream_t stream; /* the root's, or its own */
    int users;           /* comms that use it now */
    uint64_t last;       /* time of the last request */
    uint64_t serial;     /* unique, and equal on all its ranks */
    struct dt_comm_config config;
    struct dt_nccl_window *windows;
    int size;
    int members[]; /* ranks of the root */
};

/* Events of an exchange: the compute stream has reached it; it is done. */
struct dt_nccl_events {
    struct dt_nccl_events *next;
    cudaEvent_t ready, done;
};

/* The thread that ends the process when a post does not return. */
struct dt_nccl_watch {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool on, over;
    _Atomic uint64_t calls; /* begun and ended: odd within a call */
};

struct dt_nccl_root {
    struct dt_cuda *cuda; /* borrowed */
    struct dt_nccl_watch watch;
    cudaStream_t stream; /* with the highest priority */
    int priority;
    /* NCCL keeps the order of several communicators: each may have a stream of its own */
    bool ordered;
    int users; /* comms */
    uint64_t splits;
    struct dt_nccl_group *groups;
    struct dt_nccl_memory *memories;
    struct dt_nccl_events *idle, *posted;
    struct dt_error lost; /* why NCCL failed */
    bool stuck;           /* a call of NCCL hangs: nothing may be freed */
};

/* This rank's view of a comm. */
struct dt_nccl_seat {
    struct dt_nccl_root *root;
    struct dt_comm *host; /* owned; the same ranks */
    struct dt_nccl_group *group;
    struct dt_comm_config config;
    bool whole;    /* the first comm, with all ranks */
    int members[]; /* ranks of the root */
};

/* A call that waits for other ranks. make uses nothing but what is in it, since it
 * may outlive its caller. */
struct dt_nccl_call {
    const char *name;
    ncclResult_t (*make)(struct dt_nccl_call *call);
    ncclResult_t result;
    ncclComm_t comm; /* in or out */
    int size, rank;  /* a new communicator's */
    ncclUniqueId id;
    ncclConfig_t config;
    void *at; /* a window's memory, or memory to free */
    size_t bytes;
    ncclWindow_t window; /* in or out */
};

/* For calls that wait for this rank's GPU only: a minute; tests shorten it. */
extern _Atomic int64_t dt_nccl_patience_ns;

/* The stream of a seat's exchanges, also while it has no communicator. */
static inline cudaStream_t dt_nccl_stream(const struct dt_nccl_seat *seat)
{
    return seat->group != NULL ? seat->group->stream : seat->root->stream;
}

/* NCCL's errors, and its calls that may never return: making, ending and aborting a communicator,
 * and registering memory wait for other ranks. Each is made on a thread of its own, which is
 * abandoned at the deadline. After every error except an invalid argument only ncclCommAbort may be
 * called on a communicator (NCCL's user guide, "Fault tolerance"). */

/* From now on every call on the root fails with this thread's error message, or
 * with an earlier one. */
static void nccl_lose(struct dt_nccl_root *root)
{
    dt_error_keep(&root->lost, DT_ELIB);
}

/* DT_OK for success; else DT_ELIB, with "communicator lost" unless only this call
 * failed. comm may be NULL. */
static dt_status nccl_check(struct dt_nccl_root *root, ncclResult_t code, ncclComm_t comm,
                            const char *what)
{
    if (code == ncclSuccess)
        return DT_OK;
    const char *last = ncclGetLastError(comm);
    bool fatal = code != ncclInvalidArgument;
    dt_status status = dt_fail(DT_ELIB, "%s%s failed: %s%s%.300s",
                               fatal ? "communicator lost: " : "", what, ncclGetErrorString(code),
                               last != NULL && *last != '\0' ? ": " : "", last != NULL ? last : "");
    if (fatal)
        nccl_lose(root);
    return status;
}

/* Returns the stored error; DT_OK if there is none. */
static dt_status nccl_ready(struct dt_nccl_root *root)
{
    return dt_error_raise(&root->lost);
}

/* Shared by the thread of the call and the one that waits for it; the last of them frees it. */
struct dt_nccl_pending {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int users, device;
    bool done;
    struct dt_nccl_call call;
};

static void leave_pending(struct dt_nccl_pending *pending)
{
    int users = --pending->users;
    pthread_mutex_unlock(&pending->mutex);
    if (users > 0)
        return;
    pthread_cond_destroy(&pending->changed);
    pthread_mutex_destroy(&pending->mutex);
    free(pending);
}

static void *make_call(void *arg)
{
    struct dt_nccl_pending *pending = arg;
    (void)cudaSetDevice(pending->device);
    ncclResult_t result = pending->call.make(&pending->call);
    pthread_mutex_lock(&pending->mutex);
    pending->call.result = result;
    pending->done = true;
    pthread_cond_signal(&pending->changed);
    leave_pending(pending);
    return NULL;
}

/* Begins the call on a thread of its own, on the root's device. await: whether it ends within the
 * time. finish waits, and copies to *call (NULL: nowhere) what the call has left; DT_ETIMEOUT if it
 * does not end: the communicators are lost and the root is stuck. within does both. */
static dt_status nccl_begin(struct dt_nccl_root *root, const struct dt_nccl_call *call,
                            struct dt_nccl_pending **out)
{
    struct dt_nccl_pending *pending = calloc(1, sizeof *pending);
    pthread_condattr_t monotonic;
    pthread_t thread;
    if (pending == NULL)
        return dt_fail(DT_ENOMEM, "no memory to call %s", call->name);
    pending->users = 2;
    pending->device = root->cuda->base.index;
    pending->call = *call;
    pthread_mutex_init(&pending->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pending->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&thread, NULL, make_call, pending) != 0) {
        pthread_mutex_lock(&pending->mutex);
        pending->users = 1;
        leave_pending(pending);
        return dt_fail(DT_ELIB, "cannot start a thread for %s", call->name);
    }
    pthread_detach(thread);
    *out = pending;
    return DT_OK;
}

static bool nccl_await(struct dt_nccl_pending *pending, int64_t wait_ns)
{
    int64_t deadline_ns = dt_clock_machine_ns() + wait_ns;
    struct timespec until = {.tv_sec = deadline_ns / DT_NS_PER_SECOND,
                             .tv_nsec = deadline_ns % DT_NS_PER_SECOND};
    int error = 0;
    pthread_mutex_lock(&pending->mutex);
    while (!pending->done && error == 0)
        error = pthread_cond_timedwait(&pending->changed, &pending->mutex, &until);
    bool done = pending->done;
    pthread_mutex_unlock(&pending->mutex);
    return done;
}

static dt_status nccl_finish(struct dt_nccl_root *root, struct dt_nccl_pending *pending,
                             int64_t wait_ns, struct dt_nccl_call *call)
{
    bool done = nccl_await(pending, wait_ns);
    const char *name = pending->call.name;
    pthread_mutex_lock(&pending->mutex);
    if (done && call != NULL)
        *call = pending->call;
    ncclResult_t result = done ? pending->call.result : ncclInProgress;
    ncclComm_t comm = done ? pending->call.comm : NULL;
    leave_pending(pending);
    if (done)
        return nccl_check(root, result, comm, name);
    root->stuck = true;
    dt_status status =
        dt_fail(DT_ETIMEOUT, "communicator lost: no end of %s: a rank is hung or dead", name);
    nccl_lose(root);
    return status;
}

static dt_status nccl_within(struct dt_nccl_root *root, struct dt_nccl_call *call, int64_t wait_ns)
{
    struct dt_nccl_pending *pending = NULL;
    DT_TRY(nccl_begin(root, call, &pending));
    return nccl_finish(root, pending, wait_ns, call);
}

static ncclResult_t abort_one(struct dt_nccl_call *call)
{
    return ncclCommAbort(call->comm);
}

/* Aborts all communicators. DT_ETIMEOUT if a call of NCCL hangs.
 * What an abort returns tells nothing: the communicator is gone in any case. */
static dt_status nccl_abort(struct dt_nccl_root *root, int64_t deadline_ns)
{
    struct dt_nccl_pending *pending = NULL;
    if (root->lost.status == DT_OK)
        root->lost = (struct dt_error){DT_ELIB, "communicator lost: it was aborted"};
    for (struct dt_nccl_group *group = root->groups; !root->stuck && group != NULL;
         group = group->next) {
        const struct dt_nccl_call call = {
            .name = "ncclCommAbort", .make = abort_one, .comm = group->comm};
        group->comm = NULL;
        if (call.comm == NULL)
            continue;
        dt_status status = nccl_begin(root, &call, &pending);
        root->stuck = status != DT_OK;
        DT_TRY(status);
        if (nccl_finish(root, pending, deadline_ns - dt_clock_ns(), NULL) == DT_ETIMEOUT)
            break;
    }
    return !root->stuck
               ? DT_OK
               : dt_fail(DT_ETIMEOUT, "a call of NCCL does not end: this process must be replaced");
}

/* The watchdog of the posts. A post is a call of NCCL on the rank's own thread, which may not
 * return if a GPU or another rank hangs. The communicators block, because each post of one that
 * does not block starts a thread: NCCL 2.28.9, src/group.cc, ncclGroupEndInternal calls
 * pthread_create for it, and groupLaunch directly for one that blocks.
 *
 * The watchdog ends the process. It does not abort the communicator first: the hung call still uses
 * it, and ncclCommAbort frees it. The other ranks see the end of the process, and the controller
 * replaces all of them.
 *
 * A process that was stopped and goes on has not hung: what counts is how often the watchdog itself
 * has seen the same call. */

enum { LOOKS = 60 }; /* at one call, before it counts as hung */

_Atomic int64_t dt_nccl_patience_ns = 60 * DT_NS_PER_SECOND; /* the first post connects two ranks */

static void end_process(void)
{
    char text[120];
    double seconds = (double)atomic_load(&dt_nccl_patience_ns) / DT_NS_PER_SECOND;
    int size = snprintf(text, sizeof text,
                        "NCCL did not return from a post in %s: a rank is hung or dead\n",
                        dt_figure_of(seconds).text);
    ssize_t written = write(STDERR_FILENO, text, (size_t)size);
    (void)written;
    _exit(1);
}

/* Until it is stopped, or for the time between two looks. */
static bool goes_on(struct dt_nccl_watch *watch)
{
    int64_t next = dt_clock_machine_ns() + atomic_load(&dt_nccl_patience_ns) / LOOKS;
    struct timespec until = {.tv_sec = next / DT_NS_PER_SECOND, .tv_nsec = next % DT_NS_PER_SECOND};
    int error = 0;
    pthread_mutex_lock(&watch->mutex);
    while (!watch->over && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&watch->changed, &watch->mutex, &until);
    bool over = watch->over;
    pthread_mutex_unlock(&watch->mutex);
    return !over;
}

static void *watch_calls(void *arg)
{
    struct dt_nccl_watch *watch = arg;
    uint64_t seen = 0;
    int times = 0;
    while (goes_on(watch)) {
        uint64_t now = atomic_load(&watch->calls);
        times = now % 2 == 1 && now == seen ? times + 1 : 0;
        seen = now;
        if (times >= LOOKS)
            end_process();
    }
    return NULL;
}

/* Around the calls of a post: a call that does not return within dt_nccl_patience_ns ends the
 * process with a sentence and exit code 1. */
static dt_status nccl_watch_start(struct dt_nccl_watch *watch)
{
    pthread_condattr_t monotonic;
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int error = pthread_create(&watch->thread, NULL, watch_calls, watch);
    watch->on = error == 0;
    return error == 0
               ? DT_OK
               : dt_fail(DT_ELIB, "cannot start the watchdog of NCCL's posts: %s", strerror(error));
}

static void nccl_watch_stop(struct dt_nccl_watch *watch)
{
    if (!watch->on)
        return;
    pthread_mutex_lock(&watch->mutex);
    watch->over = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->mutex);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->mutex);
}

/* Creates, caches and destroys communicators, which block: each call for it is made on a
 * thread of its own. The ranks of a new one agree over the host's comm, so that either all
 * ranks have it or none. */

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

/* Windows: memory registered by all ranks of a communicator, with equal sizes; exchanges between
 * windows need no copy through NCCL's buffers, and no multiprocessor where copy engines can do it
 * (NCCL's user guide, "User buffer registration"). */
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

/* add registers memory as a window of the group, if it has windows and not yet this one; drop
 * removes it from all groups. DT_ETIMEOUT if NCCL does not return: the root is stuck. */
static dt_status nccl_window_add(struct dt_nccl_root *root, struct dt_nccl_group *group,
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
    dt_status status = window != NULL ? nccl_within(root, &call, REGISTER_NS)
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
        DT_TRY(nccl_within(root, &call, atomic_load(&dt_nccl_patience_ns)));
    *at = window->next;
    free(window);
    return DT_OK;
}

static dt_status nccl_window_drop(struct dt_nccl_root *root, const struct dt_nccl_memory *memory)
{
    for (struct dt_nccl_group *group = root->groups; group != NULL; group = group->next) {
        struct dt_nccl_window **at = find_window(group, memory->at);
        if (*at != NULL)
            DT_TRY(end_window(root, group, at));
    }
    return DT_OK;
}

/* Forgets the windows of a group that was aborted. */
static void nccl_windows_forget(struct dt_nccl_group *group)
{
    while (group->windows != NULL) {
        struct dt_nccl_window *next = group->windows->next;
        free(group->windows);
        group->windows = next;
    }
}

static ncclResult_t destroy_comm(struct dt_nccl_call *call)
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
        .name = "the end of a communicator", .make = destroy_comm, .comm = group->comm};
    while (group->windows != NULL)
        DT_TRY(end_window(root, group, &group->windows));
    DT_TRY(nccl_within(root, &call, END_NS));
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

static void nccl_end(struct dt_nccl_root *root)
{
    bool whole = root->lost.status == DT_OK && is_idle(root->stream);
    for (const struct dt_nccl_group *group = root->groups; group != NULL; group = group->next)
        whole = whole && is_idle(group->stream);
    dt_status status = whole ? DT_OK : DT_ELIB;
    while (status == DT_OK && root->groups != NULL)
        status = end_group(root, root->groups);
    if (status != DT_OK && nccl_abort(root, dt_clock_ns() + END_NS) != DT_OK)
        root->stuck = true;
    while (!root->stuck && root->groups != NULL) {
        struct dt_nccl_group *group = root->groups;
        root->groups = group->next;
        nccl_windows_forget(group);
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

static dt_status decide_group(struct dt_nccl_root *root, struct dt_comm *host, uint64_t own,
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
                nccl_check(root, ncclGetUniqueId(&decision->id), NULL, "ncclGetUniqueId");
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
static dt_status agree_on_status(struct dt_comm *host, dt_status own)
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

static ncclResult_t init_comm(struct dt_nccl_call *call)
{
    return ncclCommInitRankConfig(&call->comm, call->size, call->id, call->rank, &call->config);
}

/* A rank that cannot begin reports it before the others wait for it; their calls are abandoned. */
static dt_status new_group(struct dt_nccl_root *root, struct dt_comm *host,
                           const struct decision *decision, struct dt_nccl_group *group)
{
    struct dt_nccl_call call = {.name = "ncclCommInitRankConfig",
                                .make = init_comm,
                                .size = host->size,
                                .rank = host->rank,
                                .id = decision->id,
                                .config = nccl_config(&group->config)};
    struct dt_nccl_pending *pending = NULL;
    struct dt_error error = {DT_OK, ""};
    dt_status status = nccl_begin(root, &call, &pending);
    bool ended = status != DT_OK || nccl_await(pending, REFUSE_NS);
    if (pending != NULL && ended)
        status = nccl_finish(root, pending, 0, &call);
    dt_error_keep(&error, agree_on_status(host, status));
    if (!ended)
        status = nccl_finish(root, pending, error.status == DT_OK ? INIT_NS : 0, &call);
    if (error.status == DT_OK)
        dt_error_keep(&error, agree_on_status(host, status));
    group->comm = call.comm;
    return dt_error_raise(&error);
}

static struct dt_nccl_group *find_group(const struct dt_nccl_root *root, int size,
                                        const int members[], const struct dt_comm_config *config)
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
    status = agree_on_status(host, status);
    if (status == DT_OK && group != NULL)
        status = new_group(root, host, decision, group);
    if (status != DT_OK)
        nccl_lose(root); /* some ranks may have it */
    *out = group;
    return status;
}

/* The communicator of host's ranks, the members[] of the root: a cached one or a new one.
 * Collective over host. */
static dt_status nccl_group_take(struct dt_nccl_root *root, struct dt_comm *host,
                                 const int members[], const struct dt_comm_config *config,
                                 struct dt_nccl_group **out)
{
    struct dt_nccl_group *group = find_group(root, host->size, members, config);
    struct decision decision = {.status = nccl_ready(root)};
    uint64_t own = group != NULL ? group->serial : 0;
    DT_TRY(agree_on_status(host, decision.status));
    DT_TRY(decide_group(root, host, own, &decision));
    if (!decision.found || group == NULL)
        DT_TRY(add_group(root, host, members, config, &decision, &group));
    if (group == NULL)
        return DT_ENOMEM;
    group->users++;
    group->last = ++root->splits;
    for (const struct dt_nccl_memory *at = root->memories; at != NULL; at = at->next)
        if (at->whole)
            DT_TRY(nccl_window_add(root, group, at));
    *out = group;
    return DT_OK;
}

static void nccl_group_give_back(struct dt_nccl_group *group)
{
    if (group != NULL)
        group->users--;
}

/* An exchange begins when the compute stream has reached its post (an event), and ends with an
 * event on the exchange stream, for which wait makes the compute stream wait. The events are
 * created beforehand, so that a post allocates nothing and can be recorded into a graph. */

static struct dt_nccl_seat *seat_of(struct dt_comm *comm)
{
    return comm->state;
}

/* Adds one pair to idle. */
static dt_status nccl_events_new(struct dt_nccl_root *root)
{
    struct dt_nccl_events *events = calloc(1, sizeof *events);
    if (events == NULL)
        return dt_fail(DT_ENOMEM, "no memory for events");
    events->next = root->idle;
    root->idle = events;
    DT_CUDA(root->cuda, cudaEventCreateWithFlags(&events->ready, cudaEventDisableTiming),
            "make an event");
    DT_CUDA(root->cuda, cudaEventCreateWithFlags(&events->done, cudaEventDisableTiming),
            "make an event");
    return DT_OK;
}

/* Makes sure that the seat has its communicator; collective if it has to be created. */
static dt_status nccl_seat_group(struct dt_nccl_seat *seat)
{
    if (seat->group != NULL)
        return nccl_ready(seat->root);
    return nccl_group_take(seat->root, seat->host, seat->members, &seat->config, &seat->group);
}

/* Makes the exchange stream wait for the work queued on the device. */
static dt_status begin_exchange(struct dt_comm *comm, struct dt_nccl_events **out)
{
    struct dt_nccl_root *root = seat_of(comm)->root;
    struct dt_cuda *cuda = root->cuda;
    if (dt_cuda_enter(&cuda->base) == NULL)
        DT_TRY(dt_cuda_ready(cuda));
    if (comm->size > 1)
        DT_TRY(nccl_seat_group(seat_of(comm)));
    if (root->idle == NULL)
        DT_TRY(nccl_events_new(root));
    struct dt_nccl_events *events = root->idle;
    DT_CUDA(cuda, cudaEventRecord(events->ready, cuda->stream), "begin an exchange");
    DT_CUDA(cuda, cudaStreamWaitEvent(dt_nccl_stream(seat_of(comm)), events->ready, 0),
            "begin an exchange");
    root->idle = events->next;
    events->next = root->posted;
    root->posted = events;
    *out = events;
    return DT_OK;
}

static dt_status end_exchange(struct dt_comm *comm, struct dt_nccl_events *events,
                              struct dt_request *request)
{
    struct dt_nccl_root *root = seat_of(comm)->root;
    DT_CUDA(root->cuda, cudaEventRecord(events->done, dt_nccl_stream(seat_of(comm))),
            "end an exchange");
    request->state[0] = events;
    return DT_OK;
}

static dt_status copy_here(struct dt_comm *comm, void *to, const void *from, size_t bytes)
{
    const struct dt_nccl_seat *seat = seat_of(comm);
    DT_CUDA(seat->root->cuda,
            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, dt_nccl_stream(seat)),
            "copy what a rank sends itself");
    return DT_OK;
}

/* Posts the pieces to and from other ranks, between ncclGroupStart and ncclGroupEnd. */
static dt_status send_and_receive(struct dt_comm *comm, const struct dt_pieces *pieces)
{
    struct dt_nccl_root *root = seat_of(comm)->root;
    ncclComm_t nccl = seat_of(comm)->group->comm;
    cudaStream_t stream = dt_nccl_stream(seat_of(comm));
    for (int i = 0; i < pieces->send_count; i++) {
        const struct dt_message *to = &pieces->sends[i];
        if (to->peer != comm->rank)
            DT_TRY(nccl_check(root, ncclSend(to->at, to->bytes, ncclUint8, to->peer, nccl, stream),
                              nccl, "ncclSend"));
    }
    for (int i = 0; i < pieces->recv_count; i++) {
        const struct dt_message *from = &pieces->recvs[i];
        if (from->peer != comm->rank)
            DT_TRY(nccl_check(root,
                              ncclRecv(from->at, from->bytes, ncclUint8, from->peer, nccl, stream),
                              nccl, "ncclRecv"));
    }
    return DT_OK;
}

/* The calls of a post, under the eyes of the watchdog. */
static dt_status post_pieces(struct dt_comm *comm, const struct dt_pieces *pieces)
{
    struct dt_nccl_root *root = seat_of(comm)->root;
    ncclComm_t nccl = seat_of(comm)->group->comm;
    atomic_fetch_add(&root->watch.calls, 1);
    dt_status status = nccl_check(root, ncclGroupStart(), nccl, "ncclGroupStart");
    if (status == DT_OK) {
        status = send_and_receive(comm, pieces);
        ncclResult_t code = ncclGroupEnd(); /* always, also after an error */
        if (status == DT_OK)
            status = nccl_check(root, code, nccl, "ncclGroupEnd");
    }
    atomic_fetch_add(&root->watch.calls, 1);
    return status;
}

/* The exchanges of the table. */
static dt_status nccl_exchange(struct dt_comm *comm, const struct dt_pieces *pieces,
                               struct dt_request *request)
{
    struct dt_nccl_events *events = NULL;
    DT_TRY(begin_exchange(comm, &events));
    DT_TRY(dt_comm_copy_own(comm, pieces, copy_here));
    if (comm->size > 1)
        DT_TRY(post_pieces(comm, pieces));
    return end_exchange(comm, events, request);
}

static dt_status nccl_shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                            struct dt_request *request)
{
    struct dt_message to = {(comm->rank + 1) % comm->size, (void *)send, bytes};
    struct dt_message from = {(comm->rank + comm->size - 1) % comm->size, recv, bytes};
    return nccl_exchange(comm, &(struct dt_pieces){&to, &from, 1, 1}, request);
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
static dt_status alltoall_of(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    struct dt_nccl_root *root = seat_of(comm)->root;
    ncclComm_t nccl = seat_of(comm)->group->comm;
    atomic_fetch_add(&root->watch.calls, 1);
    ncclResult_t code =
        ncclAlltoAll(send, recv, bytes, ncclUint8, nccl, dt_nccl_stream(seat_of(comm)));
    atomic_fetch_add(&root->watch.calls, 1);
    return nccl_check(root, code, nccl, "ncclAlltoAll");
}
#else
static dt_status alltoall_of(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    struct dt_nccl_root *root = seat_of(comm)->root;
    ncclComm_t nccl = seat_of(comm)->group->comm;
    atomic_fetch_add(&root->watch.calls, 1);
    dt_status status = nccl_check(root, ncclGroupStart(), nccl, "ncclGroupStart");
    for (int i = 0; status == DT_OK && i < comm->size; i++) {
        struct dt_message to = {i, (char *)send + (size_t)i * bytes, bytes};
        struct dt_message from = {i, (char *)recv + (size_t)i * bytes, bytes};
        status = i == comm->rank ? copy_here(comm, from.at, to.at, bytes)
                                 : send_and_receive(comm, &(struct dt_pieces){&to, &from, 1, 1});
    }
    ncclResult_t code = ncclGroupEnd();
    atomic_fetch_add(&root->watch.calls, 1);
    DT_TRY(status);
    return nccl_check(root, code, nccl, "ncclGroupEnd");
}
#endif

static dt_status nccl_alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                               struct dt_request *request)
{
    struct dt_nccl_events *events = NULL;
    DT_TRY(begin_exchange(comm, &events));
    if (comm->size == 1)
        DT_TRY(copy_here(comm, recv, send, bytes));
    else
        DT_TRY(alltoall_of(comm, send, recv, bytes));
    return end_exchange(comm, events, request);
}

static dt_status nccl_wait(struct dt_comm *comm, struct dt_request *request)
{
    struct dt_nccl_root *root = seat_of(comm)->root;
    struct dt_nccl_events *events = request->state[0], **at = &root->posted;
    struct dt_cuda *cuda = root->cuda;
    if (dt_cuda_enter(&cuda->base) == NULL)
        DT_TRY(dt_cuda_ready(cuda));
    DT_CUDA(cuda, cudaStreamWaitEvent(cuda->stream, events->done, 0), "wait for an exchange");
    while (*at != events)
        at = &(*at)->next;
    *at = events->next;
    events->next = root->idle;
    root->idle = events;
    return DT_OK;
}

enum { EVENTS = 64 };

extern const struct dt_comm_ops dt_comm_nccl_ops;

static void free_events(struct dt_nccl_events *first)
{
    while (first != NULL) {
        struct dt_nccl_events *next = first->next;
        if (first->ready != NULL)
            (void)cudaEventDestroy(first->ready);
        if (first->done != NULL)
            (void)cudaEventDestroy(first->done);
        free(first);
        first = next;
    }
}

static ncclResult_t free_memory(struct dt_nccl_call *call)
{
    return ncclMemFree(call->at);
}

/* The first of *at. Stays where NCCL does not return, or where a window of it does not end. */
static dt_status end_memory(struct dt_nccl_root *root, struct dt_nccl_memory **at)
{
    struct dt_nccl_memory *memory = *at;
    struct dt_nccl_call call = {.name = "ncclMemFree", .make = free_memory, .at = memory->at};
    DT_TRY(nccl_window_drop(root, memory));
    DT_TRY(nccl_within(root, &call, atomic_load(&dt_nccl_patience_ns)));
    *at = memory->next;
    free(memory);
    return DT_OK;
}

/* Memory that a hung call may still use is never freed. */
static void free_root(struct dt_nccl_root *root)
{
    (void)dt_cuda_of(&root->cuda->base);
    if (root->stream != NULL)
        nccl_end(root);
    nccl_watch_stop(&root->watch);
    while (root->memories != NULL && !root->stuck)
        if (end_memory(root, &root->memories) != DT_OK)
            root->stuck = true;
    if (root->stuck)
        return;
    free_events(root->idle);
    free_events(root->posted);
    if (root->stream != NULL)
        (void)cudaStreamDestroy(root->stream);
    free(root);
}

/* NCCL_LAUNCH_ORDER_IMPLICIT: NCCL starts operations of several communicators in the order in which
 * this rank posts them, as far as they may run at the same time (NCCL's user guide, "Using multiple
 * NCCL communicators concurrently"; since 2.26). Without it only one stream keeps them from waiting
 * for each other for ever. */
static bool is_ordered(void)
{
    const char *text = getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    int version = 0;
    return text != NULL && strtol(text, NULL, 0) != 0 && ncclGetVersion(&version) == ncclSuccess &&
           version >= 22600;
}

static dt_status make_root(struct dt_nccl_root *root)
{
    int least = 0;
    DT_TRY(nccl_watch_start(&root->watch));
    root->ordered = is_ordered();
    DT_CUDA(root->cuda, cudaDeviceGetStreamPriorityRange(&least, &root->priority),
            "have priorities");
    DT_CUDA(root->cuda,
            cudaStreamCreateWithPriority(&root->stream, cudaStreamNonBlocking, root->priority),
            "make a stream");
    for (int i = 0; i < EVENTS; i++)
        DT_TRY(nccl_events_new(root));
    return DT_OK;
}

/* Owns host on success. */
static dt_status join_group(struct dt_nccl_root *root, struct dt_comm *host, const int members[],
                            const struct dt_comm_config *config, struct dt_comm **out)
{
    size_t bytes = (size_t)host->size * sizeof members[0];
    struct dt_comm *comm = NULL;
    DT_TRY(dt_comm_make(&dt_comm_nccl_ops, sizeof(struct dt_nccl_seat) + bytes, &comm));
    struct dt_nccl_seat *seat = seat_of(comm);
    seat->root = root;
    seat->host = host;
    if (config != NULL)
        seat->config = *config;
    memcpy(seat->members, members, bytes);
    comm->rank = host->rank;
    comm->size = host->size;
    comm->device = &root->cuda->base;
    root->users++;
    *out = comm;
    return DT_OK;
}

static void nccl_release(struct dt_comm *comm)
{
    struct dt_nccl_seat *seat = seat_of(comm);
    nccl_group_give_back(seat->group);
    if (--seat->root->users == 0)
        free_root(seat->root);
    dt_comm_free(seat->host);
    free(comm);
}

static dt_status nccl_check_calls(struct dt_comm *comm)
{
    struct dt_nccl_root *root = seat_of(comm)->root;
    DT_TRY(nccl_ready(root));
    DT_TRY(dt_comm_check(seat_of(comm)->host));
    for (struct dt_nccl_group *group = root->groups; group != NULL; group = group->next) {
        ncclResult_t state = ncclSuccess;
        ncclResult_t code = ncclCommGetAsyncError(group->comm, &state);
        DT_TRY(nccl_check(root, code, group->comm, "ncclCommGetAsyncError"));
        DT_TRY(nccl_check(root, state, group->comm, "an exchange"));
    }
    return DT_OK;
}

static dt_status abort_all(struct dt_comm *comm, int64_t deadline_ns)
{
    return nccl_abort(seat_of(comm)->root, deadline_ns);
}

static dt_status nccl_barrier(struct dt_comm *comm)
{
    return seat_of(comm)->host->ops->barrier(seat_of(comm)->host);
}

static dt_status nccl_gather(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    return seat_of(comm)->host->ops->gather(seat_of(comm)->host, send, recv, bytes);
}

static dt_status nccl_broadcast(struct dt_comm *comm, void *data, size_t bytes)
{
    return seat_of(comm)->host->ops->broadcast(seat_of(comm)->host, data, bytes);
}

/* Writes the part's ranks in the root to members[part->size]. */
static dt_status name_members(const struct dt_nccl_seat *seat, int rank, struct dt_comm *part,
                              int members[])
{
    int own = seat->members[rank];
    DT_TRY(part->ops->gather(part, &own, members, sizeof own));
    return part->ops->broadcast(part, members, (size_t)part->size * sizeof own);
}

static dt_status nccl_split(struct dt_comm *comm, int color, int key,
                            const struct dt_comm_config *config, struct dt_comm **out)
{
    struct dt_nccl_seat *seat = seat_of(comm);
    struct dt_comm *part = NULL, *made = NULL;
    DT_TRY(seat->host->ops->split(seat->host, color, key, config, &part));
    int *members = calloc((size_t)part->size, sizeof *members);
    dt_status status = members != NULL ? name_members(seat, comm->rank, part, members)
                                       : dt_fail(DT_ENOMEM, "out of memory for a communicator");
    if (status == DT_OK)
        status = join_group(seat->root, part, members, config, &made);
    free(members);
    if (status != DT_OK) {
        dt_comm_free(part);
        return status;
    }
    if (made->size > 1)
        status = nccl_seat_group(seat_of(made));
    if (status != DT_OK) {
        dt_comm_free(made);
        return status;
    }
    *out = made;
    return DT_OK;
}

/* Windows must be of equal size on all ranks. */
static dt_status largest_buffer(struct dt_comm *host, int64_t *bytes)
{
    int64_t most = *bytes, *all = calloc((size_t)host->size, sizeof *all);
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to agree among %d ranks", host->size);
    dt_status status = host->ops->gather(host, bytes, all, sizeof *bytes);
    for (int i = 0; status == DT_OK && host->rank == 0 && i < host->size; i++)
        most = all[i] > most ? all[i] : most;
    free(all);
    DT_TRY(status);
    DT_TRY(host->ops->broadcast(host, &most, sizeof most));
    *bytes = most;
    return DT_OK;
}

static dt_status nccl_alloc(struct dt_comm *comm, int64_t bytes, void **memory)
{
    struct dt_nccl_seat *seat = seat_of(comm);
    struct dt_nccl_root *root = seat->root;
    DT_TRY(largest_buffer(seat->host, &bytes));
    struct dt_nccl_memory *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a window");
    (void)dt_cuda_of(&root->cuda->base);
    made->bytes = (size_t)bytes;
    made->whole = seat->whole;
    if (ncclMemAlloc(&made->at, made->bytes) != ncclSuccess) {
        free(made);
        (void)cudaGetLastError();
        return dt_fail(DT_ENOMEM, "GPU %d has not the memory for %lld bytes of exchanges",
                       root->cuda->base.index, (long long)bytes);
    }
    made->next = root->memories;
    root->memories = made;
    for (struct dt_nccl_group *group = root->groups; group != NULL; group = group->next)
        if (made->whole ? group->users > 0 : group == seat->group)
            DT_TRY(nccl_window_add(root, group, made));
    *memory = made->at;
    return DT_OK;
}

static void release_memory(struct dt_comm *comm, void *memory)
{
    struct dt_nccl_root *root = seat_of(comm)->root;
    struct dt_nccl_memory **at = &root->memories;
    while (*at != NULL && (*at)->at != memory)
        at = &(*at)->next;
    if (*at != NULL && !root->stuck && end_memory(root, at) != DT_OK)
        nccl_lose(root); /* reported by the next call */
}

dt_status dt_comm_nccl(struct dt_comm *host, struct dt_device *device, struct dt_comm **comm)
{
    struct dt_nccl_root *root = calloc(1, sizeof *root);
    int *members = calloc((size_t)host->size, sizeof *members);
    struct dt_comm *made = NULL;
    dt_status status = root != NULL && members != NULL
                           ? DT_OK
                           : dt_fail(DT_ENOMEM, "out of memory for a communicator");
    if (status == DT_OK) {
        root->cuda = dt_cuda_of(device);
        status = make_root(root);
    }
    for (int i = 0; status == DT_OK && i < host->size; i++)
        members[i] = i;
    if (status == DT_OK)
        status = join_group(root, host, members, NULL, &made);
    free(members);
    if (status != DT_OK) {
        if (root != NULL && root->cuda != NULL)
            free_root(root);
        else
            free(root);
        return status;
    }
    seat_of(made)->whole = true;
    *comm = made;
    return DT_OK;
}

/* Host and device of a rank. */
struct place {
    char host[128], device[32];
};

static bool all_differ(const struct place places[], int count)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (memcmp(&places[i], &places[j], sizeof places[i]) == 0)
                return false;
    return true;
}

/* Each rank of host has a GPU of its own, as NCCL requires: no two have the same
 * host and PCI device. */
static dt_status nccl_fit(struct dt_comm *host, const struct dt_device *device, bool *fits)
{
    struct place own = {"", ""}, *all = calloc((size_t)host->size, sizeof *all);
    bool differ = false;
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to ask %d ranks", host->size);
    snprintf(own.host, sizeof own.host, "%s", dt_host_name());
    if (cudaDeviceGetPCIBusId(own.device, sizeof own.device, device->index) != cudaSuccess) {
        (void)cudaGetLastError();
        memset(own.device, 0, sizeof own.device); /* unknown, like any other's */
    }
    dt_status status = host->ops->gather(host, &own, all, sizeof own);
    if (status == DT_OK && host->rank == 0)
        differ = all_differ(all, host->size);
    free(all);
    DT_TRY(status);
    DT_TRY(host->ops->broadcast(host, &differ, sizeof differ));
    *fits = differ;
    return DT_OK;
}

/* NCCL refuses two ranks on one GPU unless they appear to be on different hosts (2.28: init.cc):
 * for tests of correctness only. */
static dt_status nccl_over(struct dt_comm *host, struct dt_device *device, struct dt_comm **comm)
{
    bool fits = false;
    char id[32];
    DT_TRY(nccl_fit(host, device, &fits));
    snprintf(id, sizeof id, "dittune-%d", host->rank);
    if (!fits && setenv("NCCL_HOSTID", id, 0) != 0)
        return dt_fail(DT_ENOMEM, "no memory for the environment");
    return dt_comm_nccl(host, device, comm);
}

const char *dt_comm_nccl_version(void)
{
    static char text[32];
    int version = 0;
    if (text[0] == '\0' && ncclGetVersion(&version) == ncclSuccess) /* 22809, since 2.9 */
        snprintf(text, sizeof text, "%d.%d.%d", version / 10000, version / 100 % 100,
                 version % 100);
    return text;
}

const struct dt_comm_ops dt_comm_nccl_ops = {
    .name = "nccl",
    .over = nccl_over,
    .fits = nccl_fit,
    .recordable = true,
    .split = nccl_split,
    .free = nccl_release,
    .barrier = nccl_barrier,
    .gather = nccl_gather,
    .broadcast = nccl_broadcast,
    .alltoall = nccl_alltoall,
    .shift = nccl_shift,
    .exchange = nccl_exchange,
    .wait = nccl_wait,
    .check = nccl_check_calls,
    .abort = abort_all,
    .alloc = nccl_alloc,
    .release = release_memory,
};
