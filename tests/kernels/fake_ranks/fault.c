/* SPDX-License-Identifier: MIT */
/* The wrapped comm and all its splits share one reference-counted plan of the fault. */
#include "tests/kernels/fake_ranks/fault.h"

#include "kernels/compute.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plan {
    const struct kind *kind;
    long rank, exchange, element; /* exchange: counted from 1 */
    long seen;                    /* exchanges posted so far */
    int world_rank, users;
    const struct dt_request *target; /* the exchange to corrupt, between its post and its wait */
    struct dt_device *device;        /* device of the received data; NULL: the host */
    float *received;
    size_t count, skipped; /* floats of that piece, and of the pieces before it */
};

struct wrapper {
    struct dt_comm *inner;
    struct plan *plan;
};

struct kind {
    const char *name;
    dt_status (*strike)(struct plan *plan); /* called when the exchange has arrived */
};

static dt_status flip(struct plan *plan)
{
    size_t at = (size_t)plan->element;
    if (at - plan->skipped >= plan->count)
        return dt_fail(DT_EUSAGE,
                       "the fault's element=%ld is beyond the %zu floats of the exchange",
                       plan->element, plan->skipped + plan->count);
    float *element = plan->received + (at - plan->skipped), value;
    if (plan->device == NULL) {
        *element = -*element;
        return DT_OK;
    }
    const struct dt_compute *compute = plan->device->compute;
    DT_TRY(compute->memory.get(plan->device, &value, element, sizeof value));
    value = -value;
    DT_TRY(compute->memory.put(plan->device, element, &value, sizeof value));
    return DT_OK;
}

static dt_status crash(struct plan *plan)
{
    (void)plan;
    raise(SIGSEGV);
    return dt_fail(DT_ELIB, "SIGSEGV was survived");
}

static dt_status leave(struct plan *plan)
{
    (void)plan;
    _exit(3);
}

static dt_status hang(struct plan *plan)
{
    volatile const struct plan *never = plan;
    while (never->users > 0)
        ;
    return DT_OK;
}

static dt_status error(struct plan *plan)
{
    return dt_fail(DT_ELIB, "exchange %ld failed, as the fault asked", plan->exchange);
}

static const struct kind kinds[] = {
    {"flip", flip}, {"crash", crash}, {"exit", leave}, {"hang", hang}, {"error", error},
};

static const struct kind *find_kind(const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strlen(kinds[i].name) == size && memcmp(kinds[i].name, name, size) == 0)
            return &kinds[i];
    return NULL;
}

static dt_status parse_field(const char *field, struct plan *plan)
{
    static const char *const names[] = {"rank=", "exchange=", "element="};
    long *const values[] = {&plan->rank, &plan->exchange, &plan->element};
    for (int i = 0; i < 3; i++) {
        size_t size = strlen(names[i]);
        if (strncmp(field, names[i], size) != 0)
            continue;
        char *end;
        errno = 0;
        long value = strtol(field + size, &end, 10);
        if (errno != 0 || end == field + size || (*end != ':' && *end != '\0') || value < 0)
            break;
        *values[i] = value;
        return DT_OK;
    }
    return dt_fail(DT_EUSAGE, "fault '%.60s': expected rank=, exchange= or element= with a number",
                   field);
}

static dt_status parse(const char *spec, struct plan *plan)
{
    plan->kind = find_kind(spec, strcspn(spec, ":"));
    if (plan->kind == NULL)
        return dt_fail(DT_EUSAGE,
                       "unknown fault '%.60s': expected flip, crash, exit, hang or error", spec);
    for (const char *at = strchr(spec, ':'); at != NULL; at = strchr(at + 1, ':'))
        DT_TRY(parse_field(at + 1, plan));
    if (plan->exchange < 1)
        return dt_fail(DT_EUSAGE, "fault '%.60s': exchange is counted from 1", spec);
    return DT_OK;
}

static struct wrapper *of(struct dt_comm *comm)
{
    return comm->state;
}

static dt_status wrap(struct dt_comm *inner, struct plan *plan, struct dt_comm **out);

static dt_status split(struct dt_comm *comm, int color, int key,
                       const struct dt_comm_config *config, struct dt_comm **out)
{
    struct dt_comm *part = NULL;
    DT_TRY(of(comm)->inner->ops->split(of(comm)->inner, color, key, config, &part));
    dt_status status = wrap(part, of(comm)->plan, out);
    if (status < 0)
        dt_comm_free(part);
    return status;
}

static void release(struct dt_comm *comm)
{
    struct wrapper *wrapper = of(comm);
    if (--wrapper->plan->users == 0)
        free(wrapper->plan);
    dt_comm_free(wrapper->inner);
    free(wrapper);
    free(comm);
}

static dt_status barrier(struct dt_comm *comm)
{
    return of(comm)->inner->ops->barrier(of(comm)->inner);
}

static dt_status gather(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    return of(comm)->inner->ops->gather(of(comm)->inner, send, recv, bytes);
}

static dt_status broadcast(struct dt_comm *comm, void *data, size_t bytes)
{
    return of(comm)->inner->ops->broadcast(of(comm)->inner, data, bytes);
}

static void count(struct dt_comm *comm, void *recv, size_t bytes, const struct dt_request *request)
{
    struct plan *plan = of(comm)->plan;
    if (comm->size < 2 || plan->world_rank != plan->rank || ++plan->seen != plan->exchange)
        return;
    plan->target = request;
    plan->received = recv;
    plan->device = comm->device;
    plan->count = bytes / sizeof(float);
    plan->skipped = 0;
}

static dt_status alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                          struct dt_request *request)
{
    struct dt_comm *inner = of(comm)->inner;
    DT_TRY(inner->ops->alltoall(inner, send, recv, bytes, request));
    count(comm, recv, bytes * (size_t)comm->size, request);
    return DT_OK;
}

static dt_status shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                       struct dt_request *request)
{
    struct dt_comm *inner = of(comm)->inner;
    DT_TRY(inner->ops->shift(inner, send, recv, bytes, request));
    count(comm, recv, bytes, request);
    return DT_OK;
}

/* The piece from another rank that has the element, or the last one. */
static dt_status exchange(struct dt_comm *comm, const struct dt_pieces *pieces,
                          struct dt_request *request)
{
    struct dt_comm *inner = of(comm)->inner;
    struct plan *plan = of(comm)->plan;
    DT_TRY(inner->ops->exchange(inner, pieces, request));
    count(comm, NULL, 0, request);
    if (plan->target != request)
        return DT_OK;
    for (int i = 0; i < pieces->recv_count && (size_t)plan->element - plan->skipped >= plan->count;
         i++) {
        const struct dt_message *recv = &pieces->recvs[i];
        if (recv->peer == comm->rank)
            continue;
        plan->skipped += plan->count;
        plan->received = recv->at;
        plan->count = recv->bytes / sizeof(float);
    }
    return DT_OK;
}

static dt_status wait(struct dt_comm *comm, struct dt_request *request)
{
    struct plan *plan = of(comm)->plan;
    DT_TRY(of(comm)->inner->ops->wait(of(comm)->inner, request));
    if (plan->target != request)
        return DT_OK;
    plan->target = NULL;
    return plan->kind->strike(plan);
}

static dt_status check(struct dt_comm *comm)
{
    return dt_comm_check(of(comm)->inner);
}

static dt_status abort_inner(struct dt_comm *comm, int64_t deadline_ns)
{
    struct dt_comm *inner = of(comm)->inner;
    return inner->ops->abort != NULL ? inner->ops->abort(inner, deadline_ns) : DT_OK;
}

static void poll_inner(struct dt_comm *comm)
{
    struct dt_comm *inner = of(comm)->inner;
    if (inner->ops->poll != NULL)
        inner->ops->poll(inner);
}

static void note(struct dt_comm *comm, const char *what, int index)
{
    struct dt_comm *inner = of(comm)->inner;
    if (inner->ops->note != NULL)
        inner->ops->note(inner, what, index);
}

static const struct dt_comm_ops ops = {
    .name = "fault",
    .split = split,
    .free = release,
    .barrier = barrier,
    .gather = gather,
    .broadcast = broadcast,
    .alltoall = alltoall,
    .shift = shift,
    .exchange = exchange,
    .wait = wait,
    .poll = poll_inner,
    .check = check,
    .abort = abort_inner,
    .note = note,
};

static dt_status wrap(struct dt_comm *inner, struct plan *plan, struct dt_comm **out)
{
    struct dt_comm *comm = malloc(sizeof *comm);
    struct wrapper *wrapper = malloc(sizeof *wrapper);
    if (comm == NULL || wrapper == NULL) {
        free(comm);
        free(wrapper);
        return dt_fail(DT_ENOMEM, "out of memory for a communicator");
    }
    *wrapper = (struct wrapper){inner, plan};
    *comm = (struct dt_comm){.ops = &ops,
                             .rank = inner->rank,
                             .size = inner->size,
                             .device = inner->device,
                             .state = wrapper};
    plan->users++;
    *out = comm;
    return DT_OK;
}

dt_status dt_comm_fault(struct dt_comm *inner, const char *spec, struct dt_comm **comm)
{
    struct plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a fault");
    plan->world_rank = inner->rank;
    plan->exchange = 1;
    dt_status status = parse(spec, plan);
    if (status == DT_OK)
        status = wrap(inner, plan, comm);
    if (status != DT_OK)
        free(plan);
    return status; /* NOLINT(clang-analyzer-unix.Malloc): *comm holds the plan */
}
