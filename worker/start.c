/* SPDX-License-Identifier: MIT */
#include "base/host.h"
#include "kernels/nccl.h"
#include "kernels/shared.h"
#include "model/workload_json.h"
#include "worker/rank.h"
#include "worker/seat.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* This process has no launcher and starts the other ranks of its group itself. */
static bool starts_ranks(const struct dt_rank *self)
{
#ifdef DT_HAVE_MPI
    return self->seat.size == 1 && !self->compute->host;
#else
    return self->seat.size == 1;
#endif
}

/* Checks a hello without acting on it; stores the workload in self->workload. */
static dt_status read_hello(struct dt_rank *self, const json_t *hello)
{
    int64_t protocol, ranks = self->seat.size;
    DT_TRY(dt_json_int(hello, "hello", "protocol", 1, 1000000, &protocol));
    if (dt_json_has(hello, "ranks"))
        DT_TRY(dt_json_int(hello, "hello", "ranks", 1, 65536, &ranks));
    if (ranks != self->seat.size && !starts_ranks(self))
        return dt_fail(DT_EUSAGE, "hello wants ranks=%d, but %d were started: use mpirun -np %d",
                       (int)ranks, self->seat.size, (int)ranks);
    if (!json_is_object(json_object_get(hello, "workload")))
        return dt_fail(DT_EUSAGE, "hello has no workload, and dittune-worker has no default");
    return dt_workload_from_json(json_object_get(hello, "workload"), "the workload",
                                 &self->workload);
}

/* The version of the protocol is the controller's, or ours if that is lower. */
static dt_status answer_hello(struct dt_rank *self, const json_t *hello)
{
    json_int_t asked = dt_json_integer_at(hello, "protocol");
    int version = asked < DT_PROTOCOL_VERSION ? (int)asked : DT_PROTOCOL_VERSION;
    json_t *answer = json_pack(
        "{s:s,s:i,s:s,s:s,s:s,s:s,s:s,s:s}", "op", "hello", "protocol", version, "name",
        "dittune-worker", "version", DT_VERSION, "engine", "dittune", "mode", "eager", "launch",
        starts_ranks(self) ? "self" : "mpirun", "workload", self->workload.network.name);
    return dt_wire_send(&self->wire, answer);
}

/* Reads until a valid hello; refuses other requests. */
static dt_status await_hello(struct dt_rank *self, json_t **hello)
{
    for (;;) {
        json_auto_t *message = NULL;
        dt_status status = dt_wire_read(&self->wire, DT_WIRE_FOREVER, &message);
        if (status == DT_EINTR)
            continue;
        if (status == DT_EDEAD || (status == DT_OK && strcmp(dt_wire_op(message), "quit") == 0))
            return DT_DONE;
        if (status < 0 && status != DT_EPROTO)
            return status;
        if (status == DT_OK && strcmp(dt_wire_op(message), "hello") == 0)
            status = read_hello(self, message);
        else if (status == DT_OK)
            status = dt_fail(DT_EPROTO, "'%.40s' before hello", dt_wire_op(message));
        if (status == DT_OK) {
            *hello = json_incref(message);
            return answer_hello(self, message);
        }
        DT_TRY(dt_rank_refuse(self, status));
    }
}

/* fd: shared memory of ranks started by this process, or -1. */
static dt_status connect_host(struct dt_rank *self, int fd, int *argc, char ***argv)
{
    const struct dt_seat *seat = &self->seat;
    if (seat->size == 1)
        return dt_comm_self(&self->host);
    if (fd >= 0)
        return dt_comm_shared(fd, seat->rank, seat->size, &self->host);
#ifdef DT_HAVE_MPI
    return dt_comm_mpi(argc, argv, seat->oversubscribed, &self->host);
#else
    (void)argc, (void)argv;
    return dt_fail(DT_EUNSUP,
                   "this dittune-worker was built without MPI: start it without a launcher");
#endif
}

/* Assigns a host's devices to its ranks in turn. */
static dt_status open_device(struct dt_rank *self)
{
    int count = self->compute->count();
    int index = count > 0 ? self->seat.host_rank % count : 0;
    DT_TRY(self->compute->open(index, &self->device));
    if (self->compute->health.read !=
        NULL) { /* opens NVML, which takes locks of the driver, before anything is timed */
        struct dt_health health;
        self->compute->health.read(self->device, &health);
    }
    return DT_OK;
}

/* Collective. The ranks' devices determine the comm. */
static dt_status connect_devices(struct dt_rank *self)
{
    struct dt_comm *world = NULL;
    DT_TRY(dt_comm_world(self->host, self->device, getenv("DITTUNE_COMM"), &world));
    self->world = world;
    if (world->device != NULL) {
        const int64_t bytes = 2LL * world->size * DT_RANK_TOKEN;
        DT_TRY(self->compute->memory.alloc(self->device, bytes, &self->tokens));
        self->compute->memory.fill(self->device, self->tokens, 0, bytes);
    }
    return DT_OK;
}

/* MPI tells its version without being initialised (MPI 3.1, section 8.1.1). */
static json_t *versions_json(const struct dt_compute *compute)
{
    json_t *object = json_object();
    for (const struct dt_version *row = compute->versions(); row != NULL && row->name != NULL;
         row++)
        json_object_set_new(object, row->name, json_string(row->version));
    json_object_set_new(object, "hwloc", json_string(dt_host_hwloc_version()));
#ifdef __clang__
    json_object_set_new(object, "compiler", json_string("clang " __clang_version__));
#else
    json_object_set_new(object, "compiler", json_string("gcc " __VERSION__));
#endif
#ifdef DT_HAVE_MPI
    json_object_set_new(object, "mpi", json_string(dt_comm_mpi_version()));
#endif
#ifdef DT_HAVE_NCCL
    json_object_set_new(object, "nccl", json_string(dt_comm_nccl_version()));
#endif
    return object;
}

/* This rank's entry of ready. */
static json_t *entry_json(const struct dt_rank *self)
{
    const struct dt_seat *seat = &self->seat;
    int64_t free_bytes = 0, total = 0;
    if (self->device != NULL &&
        self->compute->memory.space(self->device, &free_bytes, &total) != DT_OK)
        total = 0;
    return json_pack("{s:i,s:i,s:s,s:s,s:s,s:s,s:o,s:i,s:b,s:b,s:I,s:o}", "rank", seat->rank, "pid",
                     (int)getpid(), "host", dt_host_name(), "version", DT_VERSION, "device",
                     self->compute->name, "processor",
                     self->device != NULL ? self->compute->model(self->device) : "", "cores",
                     dt_json_ints(seat->cores, seat->core_count), "threads", seat->core_count,
                     "bound", seat->bound, "oversubscribed", seat->oversubscribed, "memory_bytes",
                     (json_int_t)total, "versions", versions_json(self->compute));
}

/* Rank 0 forwards the hello; from here on all ranks learn of a failure. */
static dt_status gather_ranks(struct dt_rank *self, json_t *hello)
{
    json_auto_t *received = NULL, *parts = NULL;
    bool first = self->seat.rank == 0;
    dt_status status =
        first ? dt_links_send(&self->links, hello) : dt_links_receive(&self->links, &received);
    if (status == DT_EDEAD && !first)
        return DT_DONE;
    if (status == DT_OK && !first)
        status = read_hello(self, received);
    if (status == DT_OK)
        status = open_device(self);
    DT_TRY(dt_links_agree(&self->links, status, entry_json(self), &parts));
    status = dt_links_agree(&self->links, connect_devices(self), NULL, NULL);
    if (status != DT_OK || !first)
        return status;
    return dt_wire_send(&self->wire, json_pack("{s:s,s:O,s:s}", "op", "ready", "ranks", parts,
                                               "comm", self->world->ops->name));
}

/* Starts as many ranks as the hello requests, this one included. */
static dt_status start_ranks(struct dt_rank *self, const json_t *hello, int *fd)
{
    json_int_t ranks = dt_json_integer_at(hello, "ranks"); /* read_hello has checked it */
    if (ranks <= 1)
        return DT_OK;
    DT_TRY(dt_ranks_start(&self->seat, (int)ranks, fd));
    return dt_seat_bind(&self->seat);
}

/* Ranks started by this process need their number from the hello first. Under a launcher MPI starts
 * while the controller writes its hello; its failure is the answer to the hello. */
dt_status dt_rank_start(struct dt_rank *self, int *argc, char ***argv)
{
    json_auto_t *hello = NULL;
    bool first = self->seat.rank == 0;
    int fd = dt_ranks_shared();
    dt_status status = DT_OK;
    self->compute = dt_compute_best();
    self->seat.loose = !self->compute->host;
    if (first && starts_ranks(self))
        status = await_hello(self, &hello);
    if (status == DT_OK && hello != NULL)
        status = start_ranks(self, hello, &fd);
    if (status == DT_OK)
        status = connect_host(self, fd, argc, argv);
    if (status == DT_OK)
        status = dt_links_open(&self->links, self->host, self->seat.host_size == self->seat.size);
    if (status == DT_OK && first && hello == NULL)
        status = await_hello(self, &hello);
    if (status == DT_OK)
        status = gather_ranks(self, hello);
    if (status < 0 && first)
        DT_TRY(dt_rank_refuse(self, status));
    return status;
}

void dt_rank_fini(struct dt_rank *self)
{
    for (int i = 0; i < DT_RANK_RESIDENTS; i++)
        dt_pass_free(self->residents[i].pass);
    dt_weights_free(self->weights);
    if (self->device != NULL)
        self->compute->memory.release(self->device, self->tokens);
    dt_comm_free(self->world != NULL ? self->world : self->host);
    if (self->device != NULL)
        self->device->compute->close(self->device);
    dt_links_close(&self->links);
    dt_wire_fini(&self->wire);
}
