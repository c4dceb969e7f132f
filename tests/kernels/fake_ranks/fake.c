/* SPDX-License-Identifier: MIT */
/* One list of messages under one lock serves every comm: a message is matched by comm, number of
 * the call on that comm, source and destination. Slow and plain: tests exchange kilobytes. */
#include "kernels/comm/comm_int.h"
#include "tests/kernels/fake_ranks/fake_int.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Only a bug takes that long, even on a busy machine. */
enum { PATIENCE_SECONDS = 600 };

static struct dt_fake_rank *rank_of(const struct dt_fake_seat *seat)
{
    return &seat->fake->ranks[seat->self];
}

dt_status dt_fake_member(struct dt_fake *fake, uint64_t id, int size, int rank, const int members[],
                         struct dt_comm **out)
{
    struct dt_comm *comm = calloc(1, sizeof *comm);
    struct dt_fake_seat *seat = calloc(1, sizeof *seat + (size_t)size * sizeof members[0]);
    if (comm == NULL || seat == NULL) {
        free(comm);
        free(seat);
        return dt_fail(DT_ENOMEM, "out of memory for a communicator");
    }
    *seat = (struct dt_fake_seat){.fake = fake, .id = id, .self = members[rank]};
    memcpy(seat->members, members, (size_t)size * sizeof members[0]);
    *comm = (struct dt_comm){.ops = &dt_comm_fake_ops, .rank = rank, .size = size, .state = seat};
    *out = comm;
    return DT_OK;
}

static void release(struct dt_comm *comm)
{
    struct dt_fake_seat *seat = comm->state;
    while (seat->pending != NULL) {
        struct dt_fake_pending *next = seat->pending->next;
        free(seat->pending);
        seat->pending = next;
    }
    free(comm->state);
    free(comm);
}

dt_status dt_fake_put(const struct dt_fake_seat *seat, uint64_t call, int index,
                      const struct dt_message *piece)
{
    struct dt_fake *fake = seat->fake;
    struct dt_fake_message *message = malloc(sizeof *message + piece->bytes);
    if (message == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a message of %zu bytes", piece->bytes);
    *message = (struct dt_fake_message){.comm = seat->id,
                                        .call = call,
                                        .from = seat->self,
                                        .to = seat->members[piece->peer],
                                        .index = index,
                                        .posted_ns = rank_of(seat)->clock_ns,
                                        .bytes = piece->bytes};
    if (piece->bytes > 0)
        memcpy(message->data, piece->at, piece->bytes);
    pthread_mutex_lock(&fake->lock);
    message->next = fake->messages;
    fake->messages = message;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return DT_OK;
}

/* The caller holds the lock. */
static struct dt_fake_message *unlink_message(const struct dt_fake_seat *seat, uint64_t call,
                                              int index, int from)
{
    for (struct dt_fake_message **at = &seat->fake->messages; *at != NULL; at = &(*at)->next) {
        struct dt_fake_message *message = *at;
        if (message->comm == seat->id && message->call == call && message->from == from &&
            message->to == seat->self && message->index == index) {
            *at = message->next;
            return message;
        }
    }
    return NULL;
}

dt_status dt_fake_take(const struct dt_fake_seat *seat, uint64_t call, int index, int from,
                       struct dt_fake_message **out)
{
    struct dt_fake *fake = seat->fake;
    struct dt_fake_message *message = NULL;
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_SECONDS;
    pthread_mutex_lock(&fake->lock);
    while (error == 0 && !fake->broken &&
           (message = unlink_message(seat, call, index, from)) == NULL)
        error = pthread_cond_timedwait(&fake->changed, &fake->lock, &until);
    if (message == NULL || message->lost) {
        fake->broken = true;
        pthread_cond_broadcast(&fake->changed);
    }
    pthread_mutex_unlock(&fake->lock);
    if (message == NULL || message->lost) {
        free(message);
        return dt_fail(DT_ETIMEOUT, "rank %d waited in vain for rank %d", seat->self, from);
    }
    *out = message;
    return DT_OK;
}

static dt_status receive(const struct dt_fake_seat *seat, uint64_t call, int from, void *data,
                         size_t bytes)
{
    struct dt_fake_message *message = NULL;
    DT_TRY(dt_fake_take(seat, call, 0, from, &message));
    size_t got = message->bytes;
    if (got == bytes && bytes > 0)
        memcpy(data, message->data, bytes);
    free(message);
    if (got != bytes)
        return dt_fail(DT_ELIB, "rank %d sent %zu bytes where rank %d expected %zu", from, got,
                       seat->self, bytes);
    return DT_OK;
}

static dt_status gather(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    struct dt_fake_seat *seat = comm->state;
    uint64_t call = seat->calls++;
    if (comm->rank != 0)
        return dt_fake_put(seat, call, 0, &(struct dt_message){0, (void *)send, bytes});
    memcpy(recv, send, bytes);
    for (int i = 1; i < comm->size; i++)
        DT_TRY(receive(seat, call, seat->members[i], (char *)recv + (size_t)i * bytes, bytes));
    return DT_OK;
}

static dt_status broadcast(struct dt_comm *comm, void *data, size_t bytes)
{
    struct dt_fake_seat *seat = comm->state;
    uint64_t call = seat->calls++;
    if (comm->rank != 0)
        return receive(seat, call, seat->members[0], data, bytes);
    for (int i = 1; i < comm->size; i++)
        DT_TRY(dt_fake_put(seat, call, 0, &(struct dt_message){i, data, bytes}));
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
    struct dt_fake_seat *seat = comm->state;
    int *members = calloc((size_t)comm->size, sizeof *members);
    int rank = 0;
    if (members == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to split a communicator");
    int size = dt_comm_members(comm, pairs, color, members, &rank);
    for (int i = 0; i < size; i++)
        members[i] = seat->members[members[i]];
    uint64_t id = dt_rng_hash(seat->id, seat->calls, (uint64_t)(uint32_t)color);
    dt_status status = dt_fake_member(seat->fake, id, size, rank, members, out);
    free(members);
    return status;
}

static dt_status split(struct dt_comm *comm, int color, int key,
                       const struct dt_comm_config *config, struct dt_comm **out)
{
    (void)config;
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

static void note(struct dt_comm *comm, const char *what, int index)
{
    struct dt_fake_seat *seat = comm->state;
    dt_text_add(&rank_of(seat)->log, "%s %d;", what, index);
    rank_of(seat)->clock_ns += seat->fake->options.compute_ns;
}

const struct dt_comm_ops dt_comm_fake_ops = {
    .name = "fake",
    .split = split,
    .free = release,
    .barrier = barrier,
    .gather = gather,
    .broadcast = broadcast,
    .alltoall = dt_fake_alltoall,
    .shift = dt_fake_shift,
    .exchange = dt_fake_exchange,
    .wait = dt_fake_wait,
    .note = note,
};
