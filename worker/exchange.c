/* SPDX-License-Identifier: MIT */
/* Times exchanges alone, for the fit of latency and bandwidth: with the communicators and calls of
 * a plan, on messages of several sizes. The first exchange of a size is not timed (it registers
 * buffers and connects), and its data are compared byte by byte. */
#include "base/clock.h"
#include "worker/requests.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WHAT        "the request exchange"
#define SIZES_MOST  64
#define TIMES_MOST  1000
#define PATIENCE_NS (60 * DT_NS_PER_SECOND)
#define BYTES_MOST  ((int64_t)1 << 30)

struct kind {
    const char *name;
    bool blocks; /* a rank's bytes consist of one block per rank of the group */
    dt_status (*post)(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                      struct dt_request *request);
};

static const struct kind kinds[] = {
    {"alltoall", true, dt_comm_alltoall},
    {"shift", false, dt_comm_shift},
};

struct probe {
    const struct kind *kind;
    int64_t group, stride, n;
    int64_t bytes[SIZES_MOST]; /* bytes of a rank */
    size_t sizes;
    struct dt_comm *comm;
    int64_t first; /* the group's first rank */
    struct dt_device *device;
    void *send, *recv;   /* buffers of the largest size, in the memory that exchanges use */
    unsigned char *host; /* the same size: sent data, then received data */
    int64_t *ns;         /* [sizes * n] */
    int64_t wrong,
        wrong_bytes; /* index of the first wrong byte, and the number of bytes; -1: none */
};

static dt_status find_kind(const char *name, const struct kind **kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0) {
            *kind = &kinds[i];
            return DT_OK;
        }
    return dt_fail(DT_EUSAGE, "unknown kind of exchange '%.20s': expected alltoall or shift", name);
}

static dt_status read_sizes(const json_t *request, struct probe *probe)
{
    json_t *array = json_object_get(request, "bytes");
    probe->sizes = json_array_size(array);
    if (probe->sizes < 1 || probe->sizes > SIZES_MOST)
        return dt_fail(DT_EUSAGE, WHAT ": bytes has %zu sizes, expected 1 to %d", probe->sizes,
                       SIZES_MOST);
    for (size_t i = 0; i < probe->sizes; i++) {
        json_t *value = json_array_get(array, i);
        probe->bytes[i] = json_is_integer(value) ? json_integer_value(value) : 0;
        if (probe->bytes[i] < 1 || probe->bytes[i] > BYTES_MOST)
            return dt_fail(DT_EUSAGE, WHAT ": size %zu is not a count of 1 to %lld bytes", i,
                           (long long)BYTES_MOST);
        if (probe->kind->blocks && probe->bytes[i] % probe->group != 0)
            return dt_fail(DT_EUSAGE, WHAT ": %lld bytes are not %lld equal blocks",
                           (long long)probe->bytes[i], (long long)probe->group);
    }
    return DT_OK;
}

static dt_status read_request(const struct dt_rank *self, const json_t *request,
                              struct probe *probe)
{
    const char *kind;
    int64_t ranks = self->seat.size;
    probe->stride = 1;
    DT_TRY(dt_json_string(request, WHAT, "kind", &kind));
    DT_TRY(find_kind(kind, &probe->kind));
    DT_TRY(dt_json_int(request, WHAT, "group", 2, 65536, &probe->group));
    if (dt_json_has(request, "stride"))
        DT_TRY(dt_json_int(request, WHAT, "stride", 1, 65536, &probe->stride));
    if (ranks % (probe->group * probe->stride) != 0)
        return dt_fail(DT_EUSAGE, "%lld ranks form no groups of %lld, %lld apart", (long long)ranks,
                       (long long)probe->group, (long long)probe->stride);
    DT_TRY(dt_json_int(request, WHAT, "n", 1, TIMES_MOST, &probe->n));
    return read_sizes(request, probe);
}

static dt_status allocate_probe(const struct dt_rank *self, struct probe *probe)
{
    int64_t most = 1;
    assert(probe->sizes > 0 && probe->n > 0);
    for (size_t i = 0; i < probe->sizes; i++)
        most = probe->bytes[i] > most ? probe->bytes[i] : most;
    probe->device = self->device;
    DT_TRY(self->compute->memory.alloc(probe->device, most, &probe->send));
    DT_TRY(self->compute->memory.alloc(probe->device, most, &probe->recv));
    probe->host = malloc((size_t)most);
    probe->ns = calloc(probe->sizes * (size_t)probe->n, sizeof *probe->ns);
    if (probe->host == NULL || probe->ns == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for exchanges of %lld bytes", (long long)most);
    return DT_OK;
}

/* Members of a group are `stride` ranks apart, as in a plan (model/plan.h). */
static dt_status form_group(const struct dt_rank *self, struct probe *probe)
{
    int stride = (int)probe->stride, group = (int)probe->group, rank = self->seat.rank;
    assert(stride > 0 && group > 1);
    probe->first = rank - rank / stride % group * stride;
    int color = rank / (group * stride) * stride + rank % stride;
    return self->world->ops->split(self->world, color, rank / stride % group, NULL, &probe->comm);
}

/* Byte i of the data that member m of the group sends. */
static unsigned char probe_word(const struct probe *probe, int m, int64_t i)
{
    return (unsigned char)((probe->first + m * probe->stride) * 37 + i * 11 + (i >> 8) * 7);
}

static int64_t block_of(const struct probe *probe, int64_t bytes)
{
    return probe->kind->blocks ? bytes / probe->group : bytes;
}

static dt_status check_comm(void *comm)
{
    return dt_comm_check(comm);
}

static dt_status exchange_probe(const struct probe *probe, int64_t bytes)
{
    struct dt_request request = {.bytes = 0};
    DT_TRY(probe->kind->post(probe->comm, probe->send, probe->recv, (size_t)block_of(probe, bytes),
                             &request));
    DT_TRY(probe->comm->ops->wait(probe->comm, &request));
    return probe->device->compute->finish(probe->device, dt_clock_ns() + PATIENCE_NS, check_comm,
                                          probe->comm);
}

/* Block b is the one that rank b of the group sent to this rank; a shift has one block,
 * from the previous rank. Errors are reported at the end: a rank that left now would
 * keep the others waiting. */
static void compare_probe(struct probe *probe, int64_t bytes)
{
    int64_t block = block_of(probe, bytes);
    int size = probe->comm->size, rank = probe->comm->rank;
    for (int64_t i = 0; i < bytes && probe->wrong < 0; i++) {
        int from = probe->kind->blocks ? (int)(i / block) : (rank + size - 1) % size;
        int64_t there = probe->kind->blocks ? rank * block + i % block : i;
        if (probe->host[i] != probe_word(probe, from, there)) {
            probe->wrong = i;
            probe->wrong_bytes = bytes;
        }
    }
}

static dt_status time_size(struct dt_rank *self, struct probe *probe, size_t at)
{
    int64_t bytes = probe->bytes[at];
    const struct dt_compute *compute = self->compute;
    for (int64_t i = 0; i < bytes; i++)
        probe->host[i] = probe_word(probe, probe->comm->rank, i);
    DT_TRY(compute->memory.put(probe->device, probe->send, probe->host, bytes));
    compute->memory.fill(probe->device, probe->recv, 0, bytes);
    DT_TRY(exchange_probe(probe, bytes));
    DT_TRY(compute->memory.get(probe->device, probe->host, probe->recv, bytes));
    compare_probe(probe, bytes);
    for (int64_t i = 0; i < probe->n; i++) {
        DT_TRY(dt_rank_align(self));
        int64_t start = dt_clock_ns();
        DT_TRY(exchange_probe(probe, bytes));
        probe->ns[(int64_t)at * probe->n + i] = dt_clock_ns() - start;
        DT_TRY(dt_rank_beat(self));
    }
    return DT_OK;
}

static json_t *list_probe(const struct probe *probe)
{
    json_t *array = json_array();
    for (size_t i = 0; i < probe->sizes * (size_t)probe->n; i++)
        json_array_append_new(array, json_integer(probe->ns[i]));
    return array;
}

/* ns[size][n], the slowest rank's. */
static json_t *exchange_reply(const struct probe *probe, const json_t *parts)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < probe->sizes; i++) {
        json_t *row = json_array();
        for (size_t k = i * (size_t)probe->n; k < (i + 1) * (size_t)probe->n; k++) {
            json_int_t most = 0;
            for (size_t r = 0; r < json_array_size(parts); r++) {
                json_int_t ns = json_integer_value(json_array_get(json_array_get(parts, r), k));
                most = ns > most ? ns : most;
            }
            json_array_append_new(row, json_integer(most));
        }
        json_array_append_new(rows, row);
    }
    return json_pack("{s:s,s:o}", "op", "exchanged", "ns", rows);
}

static dt_status time_all(struct dt_rank *self, struct probe *probe)
{
    DT_TRY(form_group(self, probe));
    for (size_t i = 0; i < probe->sizes; i++)
        DT_TRY(time_size(self, probe, i));
    if (probe->wrong >= 0)
        return dt_fail(DT_ELIB, "byte %lld of an exchange of %lld bytes is not what was sent",
                       (long long)probe->wrong, (long long)probe->wrong_bytes);
    return DT_OK;
}

dt_status dt_request_exchange(struct dt_rank *self, const json_t *request, json_t **answer)
{
    struct probe probe = {.wrong = -1};
    json_auto_t *parts = NULL;
    dt_status status = read_request(self, request, &probe);
    if (status == DT_OK)
        status = allocate_probe(self, &probe);
    status = dt_links_agree(&self->links, status, NULL, NULL);
    if (status == DT_OK) {
        status = time_all(self, &probe);
        if (status != DT_EDEAD)
            status =
                dt_rank_settle(self, status, status == DT_OK ? list_probe(&probe) : NULL, &parts);
    }
    if (status == DT_OK && self->seat.rank == 0)
        *answer = exchange_reply(&probe, parts);
    dt_comm_free(probe.comm);
    self->compute->memory.release(self->device, probe.send);
    self->compute->memory.release(self->device, probe.recv);
    free(probe.host);
    free(probe.ns);
    return status;
}
