/* SPDX-License-Identifier: MIT */
/* Every exchange is a list of pieces. A planted fault corrupts the pieces of a rank before any
 * other rank can take them. */
#include "tests/kernels/fake_ranks/fake_int.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 64 };

static struct dt_fake_rank *rank_of(const struct dt_fake_seat *seat)
{
    return &seat->fake->ranks[seat->self];
}

/* Number of pieces before `at` with the same peer. */
static int index_of(const struct dt_message pieces[], int at)
{
    int index = 0;
    for (int i = 0; i < at; i++)
        index += pieces[i].peer == pieces[at].peer;
    return index;
}

static bool own(const struct dt_fake_seat *seat, uint64_t call,
                const struct dt_fake_message *message)
{
    return message->comm == seat->id && message->call == call && message->from == seat->self;
}

/* Applies the fault to the messages this rank has just posted. */
static void spoil(const struct dt_fake_seat *seat, uint64_t call, int64_t element)
{
    enum dt_fake_fault fault = seat->fake->options.fault;
    int64_t floats = 0;
    for (struct dt_fake_message *m = seat->fake->messages; m != NULL; m = m->next)
        if (own(seat, call, m) && m->to != seat->self)
            floats += (int64_t)(m->bytes / sizeof(float));
    element = floats > 0 ? element % floats : 0;
    for (struct dt_fake_message *m = seat->fake->messages; m != NULL; m = m->next) {
        int64_t here = (int64_t)(m->bytes / sizeof(float));
        if (!own(seat, call, m))
            continue;
        if (fault == DT_FAKE_DROP)
            m->lost = true;
        if (m->to == seat->self)
            continue;
        if (fault == DT_FAKE_CORRUPT && element >= 0 && element < here) {
            float value;
            memcpy(&value, m->data + element * (int64_t)sizeof value, sizeof value);
            value = -value;
            memcpy(m->data + element * (int64_t)sizeof value, &value, sizeof value);
        }
        element -= here;
    }
}

static dt_status keep(struct dt_fake_seat *seat, const struct dt_message *recvs, int count,
                      struct dt_fake_pending **out)
{
    size_t bytes = (size_t)count * sizeof *recvs;
    struct dt_fake_pending *pending = malloc(sizeof *pending + bytes);
    if (pending == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for an exchange of %d pieces", count);
    *pending = (struct dt_fake_pending){.next = seat->pending,
                                        .call = seat->calls++,
                                        .number = rank_of(seat)->exchanges++,
                                        .count = count};
    if (count > 0)
        memcpy(pending->recvs, recvs, bytes);
    seat->pending = pending;
    *out = pending;
    return DT_OK;
}

static dt_status refuse(struct dt_fake_seat *seat, int number)
{
    struct dt_fake *fake = seat->fake;
    pthread_mutex_lock(&fake->lock);
    fake->broken = true;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return dt_fail(DT_ELIB, "rank %d: exchange %d failed", seat->self, number);
}

static dt_status post(struct dt_comm *comm, const struct dt_pieces *pieces,
                      struct dt_request *request)
{
    struct dt_fake_seat *seat = comm->state;
    const struct dt_fake_options *options = &seat->fake->options;
    struct dt_fake_pending *pending = NULL;
    DT_TRY(keep(seat, pieces->recvs, pieces->recv_count, &pending));
    bool faulty = options->fault != DT_FAKE_NONE && options->fault_rank == seat->self &&
                  options->fault_exchange == pending->number;
    dt_status status = DT_OK;
    dt_text_add(&rank_of(seat)->log, "post %d;", pending->number);
    if (faulty && options->fault == DT_FAKE_ERROR)
        return refuse(seat, pending->number);
    pthread_mutex_lock(
        &seat->fake->lock); /* recursive: no rank takes a message before the fault is applied */
    for (int i = 0; status == DT_OK && i < pieces->send_count; i++)
        status = dt_fake_put(seat, pending->call, index_of(pieces->sends, i), &pieces->sends[i]);
    if (faulty)
        spoil(seat, pending->call, options->fault_element);
    pthread_mutex_unlock(&seat->fake->lock);
    request->state[0] = pending;
    return status;
}

static void note_order(const struct dt_fake_seat *seat, const char *op, size_t bytes)
{
    struct dt_text *order = &rank_of(seat)->order;
    dt_text_add(order, "%016llx %s", (unsigned long long)seat->id, op);
    if (bytes > 0)
        dt_text_add(order, " %zu", bytes);
    dt_text_add(order, ";");
}

dt_status dt_fake_alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                           struct dt_request *request)
{
    struct dt_message sends[MOST_RANKS], recvs[MOST_RANKS];
    if (comm->size > MOST_RANKS)
        return dt_fail(DT_EUNSUP, "%d fake ranks are more than %d", comm->size, MOST_RANKS);
    for (int i = 0; i < comm->size; i++) {
        sends[i] = (struct dt_message){i, (char *)send + (size_t)i * bytes, bytes};
        recvs[i] = (struct dt_message){i, (char *)recv + (size_t)i * bytes, bytes};
    }
    note_order(comm->state, "alltoall", bytes);
    return post(comm, &(struct dt_pieces){sends, recvs, comm->size, comm->size}, request);
}

dt_status dt_fake_shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                        struct dt_request *request)
{
    struct dt_message to = {(comm->rank + 1) % comm->size, (void *)send, bytes};
    struct dt_message from = {(comm->rank + comm->size - 1) % comm->size, recv, bytes};
    note_order(comm->state, "shift", bytes);
    return post(comm, &(struct dt_pieces){&to, &from, 1, 1}, request);
}

/* Sizes may differ between the ranks of an exchange; the sizes of each pair are
 * compared on receipt. */
dt_status dt_fake_exchange(struct dt_comm *comm, const struct dt_pieces *pieces,
                           struct dt_request *request)
{
    note_order(comm->state, "exchange", 0);
    return post(comm, pieces, request);
}

static dt_status receive(struct dt_fake_seat *seat, const struct dt_fake_pending *pending, int i,
                         int64_t *ready)
{
    const struct dt_message *to = &pending->recvs[i];
    struct dt_fake_message *message = NULL;
    DT_TRY(dt_fake_take(seat, pending->call, index_of(pending->recvs, i), seat->members[to->peer],
                        &message));
    size_t got = message->bytes;
    int64_t arrival = message->posted_ns + seat->fake->options.delay_ns;
    if (got == to->bytes && got > 0)
        memcpy(to->at, message->data, got);
    free(message);
    if (got != to->bytes)
        return dt_fail(DT_ELIB, "rank %d sent %zu bytes where rank %d expected %zu",
                       seat->members[to->peer], got, seat->self, to->bytes);
    *ready = arrival > *ready ? arrival : *ready;
    return DT_OK;
}

dt_status dt_fake_wait(struct dt_comm *comm, struct dt_request *request)
{
    struct dt_fake_seat *seat = comm->state;
    struct dt_fake_rank *rank = rank_of(seat);
    struct dt_fake_pending *pending = request->state[0], **at = &seat->pending;
    int64_t ready = rank->clock_ns;
    for (int i = 0; i < pending->count; i++)
        DT_TRY(receive(seat, pending, i, &ready));
    dt_text_add(&rank->log, "wait %d;", pending->number);
    rank->exposed_ns += ready - rank->clock_ns;
    rank->clock_ns = ready;
    while (*at != pending)
        at = &(*at)->next;
    *at = pending->next;
    free(pending);
    return DT_OK;
}
