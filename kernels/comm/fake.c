/* SPDX-License-Identifier: MIT */
/* One list of messages under one lock serves every comm: a message is matched by comm, number of the call on that comm,
 * source and destination. Slow and plain: tests exchange kilobytes. */
#include "kernels/comm/fake_int.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_SECONDS = 20 };

/* What a comm is to one of its ranks. */
struct member {
    struct dt_fake *fake;
    uint64_t id, calls;
    int self;      /* world rank */
    int members[]; /* world ranks */
};

/* What a posted exchange still has to receive; lives in the request. */
struct pending {
    uint64_t call;
    char *recv;
    size_t bytes;
    int number; /* of the exchange on this rank */
    bool shift;
};
_Static_assert(sizeof(struct pending) <= sizeof((struct dt_request *)0)->state, "fits a request");

static struct dt_fake_rank *rank_of(const struct member *member)
{
    return &member->fake->ranks[member->self];
}

dt_status dt_fake_member(struct dt_fake *fake, uint64_t id, int size, int rank, const int members[],
                         struct dt_comm **out)
{
    struct dt_comm *comm = calloc(1, sizeof *comm);
    struct member *member = calloc(1, sizeof *member + (size_t)size * sizeof members[0]);
    if (comm == NULL || member == NULL) {
        free(comm);
        free(member);
        return dt_fail(DT_ENOMEM, "out of memory for a communicator");
    }
    *member = (struct member){.fake = fake, .id = id, .self = members[rank]};
    memcpy(member->members, members, (size_t)size * sizeof members[0]);
    *comm = (struct dt_comm){&dt_comm_fake_ops, rank, size, member};
    *out = comm;
    return DT_OK;
}

static void release(struct dt_comm *comm)
{
    free(comm->state);
    free(comm);
}

static dt_status put(const struct member *member, uint64_t call, int to, const void *data,
                     size_t bytes)
{
    struct dt_fake *fake = member->fake;
    struct dt_fake_message *message = malloc(sizeof *message + bytes);
    if (message == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a message of %zu bytes", bytes);
    *message = (struct dt_fake_message){.comm = member->id,
                                        .call = call,
                                        .from = member->self,
                                        .to = to,
                                        .posted_ns = rank_of(member)->clock_ns,
                                        .bytes = bytes};
    if (bytes > 0)
        memcpy(message->data, data, bytes);
    pthread_mutex_lock(&fake->lock);
    message->next = fake->messages;
    fake->messages = message;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return DT_OK;
}

/* Under the lock. */
static struct dt_fake_message *unlink_message(const struct member *member, uint64_t call, int from)
{
    for (struct dt_fake_message **at = &member->fake->messages; *at != NULL; at = &(*at)->next) {
        struct dt_fake_message *message = *at;
        if (message->comm == member->id && message->call == call && message->from == from &&
            message->to == member->self) {
            *at = message->next;
            return message;
        }
    }
    return NULL;
}

/* Blocks until the message is there; DT_ETIMEOUT when it was lost or an exchange failed elsewhere. */
static dt_status take(const struct member *member, uint64_t call, int from,
                      struct dt_fake_message **out)
{
    struct dt_fake *fake = member->fake;
    struct dt_fake_message *message = NULL;
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_SECONDS;
    pthread_mutex_lock(&fake->lock);
    while (error == 0 && !fake->broken && (message = unlink_message(member, call, from)) == NULL)
        error = pthread_cond_timedwait(&fake->changed, &fake->lock, &until);
    if (message == NULL || message->lost) {
        fake->broken = true;
        pthread_cond_broadcast(&fake->changed);
    }
    pthread_mutex_unlock(&fake->lock);
    if (message == NULL || message->lost) {
        free(message);
        return dt_fail(DT_ETIMEOUT, "rank %d waited in vain for rank %d", member->self, from);
    }
    *out = message;
    return DT_OK;
}

static dt_status receive(const struct member *member, uint64_t call, int from, void *data,
                         size_t bytes)
{
    struct dt_fake_message *message = NULL;
    DT_TRY(take(member, call, from, &message));
    size_t got = message->bytes;
    if (got == bytes && bytes > 0)
        memcpy(data, message->data, bytes);
    free(message);
    if (got != bytes)
        return dt_fail(DT_ELIB, "rank %d sent %zu bytes where rank %d expected %zu", from, got,
                       member->self, bytes);
    return DT_OK;
}

static dt_status gather(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    struct member *member = comm->state;
    uint64_t call = member->calls++;
    if (comm->rank != 0)
        return put(member, call, member->members[0], send, bytes);
    memcpy(recv, send, bytes);
    for (int i = 1; i < comm->size; i++)
        DT_TRY(receive(member, call, member->members[i], (char *)recv + (size_t)i * bytes, bytes));
    return DT_OK;
}

static dt_status broadcast(struct dt_comm *comm, void *data, size_t bytes)
{
    struct member *member = comm->state;
    uint64_t call = member->calls++;
    if (comm->rank != 0)
        return receive(member, call, member->members[0], data, bytes);
    for (int i = 1; i < comm->size; i++)
        DT_TRY(put(member, call, member->members[i], data, bytes));
    return DT_OK;
}

static dt_status barrier(struct dt_comm *comm)
{
    char *all = malloc((size_t)comm->size), mine = 0;
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a barrier");
    dt_status status = gather(comm, &mine, all, 1);
    if (status == DT_OK)
        status = broadcast(comm, all, 1);
    free(all);
    return status;
}

static dt_status split_among(struct dt_comm *comm, const int pairs[], int color,
                             struct dt_comm **out)
{
    struct member *member = comm->state;
    int *members = calloc((size_t)comm->size, sizeof *members);
    int size = 0, rank = 0;
    if (members == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to split a communicator");
    /* By key, ties by rank: the next smallest not yet taken. */
    for (int64_t last = INT64_MIN;;) {
        int64_t best = INT64_MAX;
        for (int i = 0; i < comm->size; i++) {
            int64_t order = (int64_t)pairs[2 * i + 1] * comm->size + i;
            if (pairs[2 * i] == color && order > last && order < best)
                best = order;
        }
        if (best == INT64_MAX)
            break;
        last = best;
        int index = (int)(((best % comm->size) + comm->size) % comm->size);
        rank = index == comm->rank ? size : rank;
        members[size++] = member->members[index];
    }
    uint64_t id = dt_rng_hash(member->id, member->calls, (uint64_t)(uint32_t)color);
    dt_status status = dt_fake_member(member->fake, id, size, rank, members, out);
    free(members);
    return status;
}

static dt_status split(struct dt_comm *comm, int color, int key, struct dt_comm **out)
{
    int mine[2] = {color, key};
    size_t bytes = (size_t)comm->size * sizeof mine;
    int *pairs = malloc(bytes);
    if (pairs == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to split a communicator");
    dt_status status = gather(comm, mine, pairs, sizeof mine);
    if (status == DT_OK)
        status = broadcast(comm, pairs, bytes);
    if (status == DT_OK)
        status = split_among(comm, pairs, color, out);
    free(pairs);
    return status;
}

/* The fault, applied to the messages this rank has just posted, before anyone takes them. */
static void spoil(const struct member *member, uint64_t call, int64_t element)
{
    int64_t floats = 0;
    for (struct dt_fake_message *m = member->fake->messages; m != NULL; m = m->next)
        if (m->comm == member->id && m->call == call && m->from == member->self &&
            m->to != member->self)
            floats += (int64_t)(m->bytes / sizeof(float));
    element = floats > 0 ? element % floats : 0;
    for (struct dt_fake_message *m = member->fake->messages; m != NULL; m = m->next) {
        int64_t here = (int64_t)(m->bytes / sizeof(float));
        if (m->comm != member->id || m->call != call || m->from != member->self)
            continue;
        if (member->fake->options.fault == DT_FAKE_DROP)
            m->lost = true;
        if (m->to == member->self)
            continue;
        if (member->fake->options.fault == DT_FAKE_CORRUPT && element >= 0 && element < here) {
            float value;
            memcpy(&value, m->data + element * (int64_t)sizeof value, sizeof value);
            value = -value;
            memcpy(m->data + element * (int64_t)sizeof value, &value, sizeof value);
        }
        element -= here;
    }
}

/* Posts to members first .. first+n-1 (cyclic), block i of send to the i-th, under one lock. */
static dt_status post(struct dt_comm *comm, const char *send, const struct pending *pending,
                      struct dt_request *request)
{
    struct member *member = comm->state;
    struct dt_fake *fake = member->fake;
    struct dt_fake_rank *rank = rank_of(member);
    const struct dt_fake_options *options = &fake->options;
    bool faulty = options->fault != DT_FAKE_NONE && options->fault_rank == member->self &&
                  options->fault_exchange == pending->number;
    dt_status status = DT_OK;
    dt_text_add(&rank->log, "post %d;", pending->number);
    if (faulty && options->fault == DT_FAKE_ERROR) {
        pthread_mutex_lock(&fake->lock);
        fake->broken = true;
        pthread_cond_broadcast(&fake->changed);
        pthread_mutex_unlock(&fake->lock);
        return dt_fail(DT_ELIB, "rank %d: exchange %d failed", member->self, pending->number);
    }
    pthread_mutex_lock(&fake->lock); /* recursive: nobody takes a message before it is spoilt */
    for (int i = 0; status == DT_OK && i < comm->size; i++) {
        int to = member->members[i];
        if (!pending->shift)
            status =
                put(member, pending->call, to, send + (size_t)i * pending->bytes, pending->bytes);
        else if (i == (comm->rank + 1) % comm->size)
            status = put(member, pending->call, to, send, pending->bytes);
    }
    if (faulty)
        spoil(member, pending->call, options->fault_element);
    pthread_mutex_unlock(&fake->lock);
    memcpy(request->state, pending, sizeof *pending);
    return status;
}

static dt_status alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                          struct dt_request *request)
{
    struct member *member = comm->state;
    struct pending pending = {.call = member->calls++,
                              .recv = recv,
                              .bytes = bytes,
                              .number = rank_of(member)->exchanges++};
    return post(comm, send, &pending, request);
}

static dt_status shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                       struct dt_request *request)
{
    struct member *member = comm->state;
    struct pending pending = {.call = member->calls++,
                              .recv = recv,
                              .bytes = bytes,
                              .number = rank_of(member)->exchanges++,
                              .shift = true};
    return post(comm, send, &pending, request);
}

static dt_status wait(struct dt_comm *comm, struct dt_request *request)
{
    struct member *member = comm->state;
    struct dt_fake_rank *rank = rank_of(member);
    struct pending pending;
    memcpy(&pending, request->state, sizeof pending);
    int64_t ready = rank->clock_ns;
    for (int i = 0; i < comm->size; i++) {
        struct dt_fake_message *message = NULL;
        char *to = pending.recv + (pending.shift ? 0 : (size_t)i * pending.bytes);
        if (pending.shift && i != (comm->rank + comm->size - 1) % comm->size)
            continue;
        DT_TRY(take(member, pending.call, member->members[i], &message));
        if (pending.bytes > 0)
            memcpy(to, message->data, pending.bytes);
        int64_t arrival = message->posted_ns + member->fake->options.delay_ns;
        ready = arrival > ready ? arrival : ready;
        free(message);
    }
    dt_text_add(&rank->log, "wait %d;", pending.number);
    rank->exposed_ns += ready - rank->clock_ns;
    rank->clock_ns = ready;
    return DT_OK;
}

static void note(struct dt_comm *comm, const char *what, int index)
{
    struct member *member = comm->state;
    dt_text_add(&rank_of(member)->log, "%s %d;", what, index);
    rank_of(member)->clock_ns += member->fake->options.compute_ns;
}

const struct dt_comm_ops dt_comm_fake_ops = {
    .name = "fake",
    .doc = "ranks as threads of one process, with a virtual clock and planted faults, for tests",
    .split = split,
    .free = release,
    .barrier = barrier,
    .gather = gather,
    .broadcast = broadcast,
    .alltoall = alltoall,
    .shift = shift,
    .wait = wait,
    .note = note,
};
