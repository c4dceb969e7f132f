/* SPDX-License-Identifier: MIT */
#include "kernels/comm.h"
#include "base/clock.h"
#include "base/text.h"
#include "kernels/comm/comm_int.h"
#include "kernels/compute.h"

#include <stdlib.h>
#include <string.h>

static dt_status self_split(struct dt_comm *comm, int color, int key,
                            const struct dt_comm_config *config, struct dt_comm **out)
{
    (void)config;
    (void)comm;
    (void)color;
    (void)key;
    return dt_comm_self(out);
}

static void self_release(struct dt_comm *comm)
{
    free(comm);
}

static dt_status self_barrier(struct dt_comm *comm)
{
    (void)comm;
    return DT_OK;
}

static dt_status self_gather(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    (void)comm;
    memcpy(recv, send, bytes);
    return DT_OK;
}

static dt_status self_broadcast(struct dt_comm *comm, void *data, size_t bytes)
{
    (void)comm;
    (void)data;
    (void)bytes;
    return DT_OK;
}

static dt_status self_copy(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                           struct dt_request *request)
{
    (void)comm;
    (void)request;
    memcpy(recv, send, bytes);
    return DT_OK;
}

static dt_status self_exchange(struct dt_comm *comm, const struct dt_pieces *pieces,
                               struct dt_request *request)
{
    (void)comm;
    (void)request;
    if (pieces->send_count != pieces->recv_count)
        return dt_fail(DT_EUSAGE, "%d pieces are sent where %d are received", pieces->send_count,
                       pieces->recv_count);
    for (int i = 0; i < pieces->send_count; i++) {
        const struct dt_message *from = &pieces->sends[i], *to = &pieces->recvs[i];
        if (from->bytes != to->bytes)
            return dt_fail(DT_EUSAGE, "%zu bytes are sent where %zu are received", from->bytes,
                           to->bytes);
        memcpy(to->at, from->at, from->bytes);
    }
    return DT_OK;
}

static dt_status self_wait(struct dt_comm *comm, struct dt_request *request)
{
    (void)comm;
    (void)request;
    return DT_OK;
}

static const struct dt_comm_ops ops;

dt_status dt_comm_make(const struct dt_comm_ops *of, size_t state_bytes, struct dt_comm **comm)
{
    struct dt_comm *made = calloc(1, sizeof *made + state_bytes);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a communicator");
    *made = (struct dt_comm){.ops = of, .size = 1, .state = made + 1};
    *comm = made;
    return DT_OK;
}

dt_status dt_comm_self(struct dt_comm **comm)
{
    return dt_comm_make(&ops, 0, comm);
}

static const struct dt_comm_ops ops = {
    .name = "self",
    .split = self_split,
    .free = self_release,
    .barrier = self_barrier,
    .gather = self_gather,
    .broadcast = self_broadcast,
    .alltoall = self_copy,
    .shift = self_copy,
    .exchange = self_exchange,
    .wait = self_wait,
};

#define DT_COMM(name) extern const struct dt_comm_ops dt_comm_##name##_ops;
#include "kernels/comm.def"

static const struct dt_comm_ops *const rows[] = {
#define DT_COMM(name) &dt_comm_##name##_ops,
#include "kernels/comm.def"
};

enum { ROWS = sizeof rows / sizeof rows[0] };

void dt_comm_free(struct dt_comm *comm)
{
    if (comm != NULL)
        comm->ops->free(comm);
}

dt_status dt_comm_alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                           struct dt_request *request)
{
    int64_t now = dt_clock_ns();
    DT_TRY(comm->ops->alltoall(comm, send, recv, bytes, request));
    request->posted_ns = now;
    request->bytes = (int64_t)bytes * (comm->size - 1);
    return DT_OK;
}

dt_status dt_comm_shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                        struct dt_request *request)
{
    int64_t now = dt_clock_ns();
    DT_TRY(comm->ops->shift(comm, send, recv, bytes, request));
    request->posted_ns = now;
    request->bytes = comm->size > 1 ? (int64_t)bytes : 0;
    return DT_OK;
}

dt_status dt_comm_exchange(struct dt_comm *comm, const struct dt_pieces *pieces,
                           struct dt_request *request)
{
    int64_t now = dt_clock_ns(), bytes = 0;
    for (int i = 0; i < pieces->send_count; i++)
        bytes += pieces->sends[i].peer != comm->rank ? (int64_t)pieces->sends[i].bytes : 0;
    DT_TRY(comm->ops->exchange(comm, pieces, request));
    request->posted_ns = now;
    request->bytes = bytes;
    return DT_OK;
}

dt_status dt_comm_copy_own(struct dt_comm *comm, const struct dt_pieces *pieces,
                           dt_status (*copy_to)(struct dt_comm *comm, void *to, const void *from,
                                                size_t bytes))
{
    int from = 0;
    for (int i = 0; i < pieces->recv_count; i++) {
        const struct dt_message *to = &pieces->recvs[i];
        if (to->peer != comm->rank)
            continue;
        while (from < pieces->send_count && pieces->sends[from].peer != comm->rank)
            from++;
        if (from == pieces->send_count || pieces->sends[from].bytes != to->bytes)
            return dt_fail(DT_EUSAGE, "rank %d does not send itself the %zu bytes it expects",
                           comm->rank, to->bytes);
        DT_TRY(copy_to(comm, to->at, pieces->sends[from++].at, to->bytes));
    }
    return DT_OK;
}

dt_status dt_comm_check(struct dt_comm *comm)
{
    return comm != NULL && comm->ops->check != NULL ? comm->ops->check(comm) : DT_OK;
}

/* The next smallest (key, rank) not yet taken. */
int dt_comm_members(const struct dt_comm *comm, const int pairs[], int color, int members[],
                    int *rank)
{
    int size = 0;
    for (int64_t last = INT64_MIN;;) {
        int64_t best = INT64_MAX;
        int index = 0;
        for (int i = 0; i < comm->size; i++) {
            int64_t order = (int64_t)pairs[2 * i + 1] * comm->size + i;
            if (pairs[2 * i] == color && order > last && order < best) {
                best = order;
                index = i;
            }
        }
        if (best == INT64_MAX)
            return size;
        last = best;
        *rank = index == comm->rank ? size : *rank;
        members[size++] = index;
    }
}

static dt_status unknown_comm(const char *name)
{
    dt_auto_text known = {0};
    for (int i = 0; i < ROWS; i++)
        dt_text_add(&known, "%s%s", i > 0 ? " or " : "", rows[i]->name);
    return dt_fail(DT_EUSAGE, "DITTUNE_COMM is '%.40s': this worker has %s", name,
                   dt_text_at(&known));
}

dt_status dt_comm_world(struct dt_comm *host, struct dt_device *device, const char *name,
                        struct dt_comm **comm)
{
    bool any = name == NULL || *name == '\0';
    if (device->compute->host || host->size == 1) {
        *comm = host;
        return DT_OK;
    }
    for (int i = 0; i < ROWS; i++) {
        bool fits = any || strcmp(name, rows[i]->name) == 0;
        if (any && rows[i]->fits != NULL)
            DT_TRY(rows[i]->fits(host, device, &fits));
        if (fits)
            return rows[i]->over(host, device, comm);
    }
    return unknown_comm(name);
}
