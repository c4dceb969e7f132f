/* SPDX-License-Identifier: MIT */
#include "base/host.h"
#include "kernels/nccl.h"
#include "kernels/shared.h"
#include "model/workload_json.h"
#include "worker/seat.h"
#include "worker/session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* This process has no launcher and starts the other ranks of its group itself. */
static bool starts_ranks(const struct dt_worker_session *session)
{
#ifdef DT_HAVE_MPI
    return session->seat.size == 1 && !session->compute->host;
#else
    return session->seat.size == 1;
#endif
}

/* Checks a hello without acting on it; stores the workload in session->workload. */
static dt_status read_hello(struct dt_worker_session *session, const json_t *hello)
{
    int64_t protocol, ranks = session->seat.size;
    DT_TRY(dt_json_int(hello, "hello", "protocol", 1, 1000000, &protocol));
    if (dt_json_has(hello, "ranks"))
        DT_TRY(dt_json_int(hello, "hello", "ranks", 1, 65536, &ranks));
    if (ranks != session->seat.size && !starts_ranks(session))
        return dt_fail(DT_EUSAGE, "hello wants ranks=%d, but %d were started: use mpirun -np %d",
                       (int)ranks, session->seat.size, (int)ranks);
    if (!json_is_object(json_object_get(hello, "workload")))
        return dt_fail(DT_EUSAGE, "hello has no workload, and dittune-worker has no default");
    return dt_workload_from_json(json_object_get(hello, "workload"), "the workload",
                                 &session->workload);
}

/* The version of the protocol is the controller's, or ours if that is lower. */
static dt_status answer_hello(struct dt_worker_session *session, const json_t *hello)
{
    int64_t asked = json_integer_value(json_object_get(hello, "protocol"));
    int version = asked < DT_PROTOCOL_VERSION ? (int)asked : DT_PROTOCOL_VERSION;
    json_t *answer = json_pack(
        "{s:s,s:i,s:s,s:s,s:s,s:s,s:s,s:s}", "op", "hello", "protocol", version, "name",
        "dittune-worker", "version", DT_VERSION, "engine", "dittune", "mode", "eager", "launch",
        starts_ranks(session) ? "self" : "mpirun", "workload", session->workload.network.name);
    dt_status status = dt_wire_write(&session->wire, answer);
    json_decref(answer);
    return status;
}

/* Reads until a valid hello; refuses other requests. */
static dt_status await_hello(struct dt_worker_session *session, json_t **hello)
{
    for (;;) {
        json_t *message = NULL;
        dt_status status = dt_wire_read(&session->wire, DT_WIRE_FOREVER, &message);
        if (status == DT_EINTR)
            continue;
        if (status == DT_EDEAD)
            return DT_DONE;
        if (status < 0 && status != DT_EPROTO)
            return status;
        if (status == DT_OK && strcmp(dt_wire_op(message), "quit") == 0) {
            json_decref(message);
            return DT_DONE;
        }
        if (status == DT_OK && strcmp(dt_wire_op(message), "hello") == 0)
            status = read_hello(session, message);
        else if (status == DT_OK)
            status = dt_fail(DT_EPROTO, "'%.40s' before hello", dt_wire_op(message));
        if (status == DT_OK) {
            *hello = message;
            return answer_hello(session, message);
        }
        json_decref(message);
        DT_TRY(dt_session_refuse(session, status));
    }
}

/* fd: shared memory of ranks started by this process, or -1. */
static dt_status connect_host(struct dt_worker_session *session, int fd, int *argc, char ***argv)
{
    const struct dt_seat *seat = &session->seat;
    if (seat->size == 1)
        return dt_comm_self(&session->host);
    if (fd >= 0)
        return dt_comm_shared(fd, seat->rank, seat->size, &session->host);
#ifdef DT_HAVE_MPI
    return dt_comm_mpi(argc, argv, seat->oversubscribed, &session->host);
#else
    (void)argc, (void)argv;
    return dt_fail(DT_EUNSUP,
                   "this dittune-worker was built without MPI: start it without a launcher");
#endif
}

/* Assigns a host's devices to its ranks in turn. */
static dt_status open_device(struct dt_worker_session *session)
{
    int count = session->compute->count();
    int index = count > 0 ? session->seat.host_rank % count : 0;
    DT_TRY(session->compute->open(index, &session->device));
    if (session->compute->health.read !=
        NULL) { /* opens NVML, which takes locks of the driver, before anything is timed */
        struct dt_health health;
        session->compute->health.read(session->device, &health);
    }
    return DT_OK;
}

/* Collective. The ranks' devices determine the comm. */
static dt_status connect_devices(struct dt_worker_session *session)
{
    struct dt_comm *world = NULL;
    DT_TRY(dt_comm_world(session->host, session->device, getenv("DITTUNE_COMM"), &world));
    session->world = world;
    if (world->device != NULL) {
        const int64_t bytes = 2LL * world->size * DT_SESSION_TOKEN;
        DT_TRY(session->compute->memory.alloc(session->device, bytes, &session->tokens));
        session->compute->memory.fill(session->device, session->tokens, 0, bytes);
    }
    return DT_OK;
}

/* MPI tells its version without being initialised (MPI 3.1, section 8.1.1). */
static json_t *versions(const struct dt_compute *compute)
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
static json_t *entry(const struct dt_worker_session *session)
{
    const struct dt_seat *seat = &session->seat;
    int64_t free_bytes = 0, total = 0;
    if (session->device != NULL &&
        session->compute->memory.space(session->device, &free_bytes, &total) != DT_OK)
        total = 0;
    return json_pack("{s:i,s:i,s:s,s:s,s:s,s:s,s:o,s:i,s:b,s:b,s:I,s:o}", "rank", seat->rank, "pid",
                     (int)getpid(), "host", dt_host_name(), "version", DT_VERSION, "device",
                     session->compute->name, "processor",
                     session->device != NULL ? session->compute->model(session->device) : "",
                     "cores", dt_json_ints(seat->cores, seat->core_count), "threads",
                     seat->core_count, "bound", seat->bound, "oversubscribed", seat->oversubscribed,
                     "memory_bytes", (json_int_t)total, "versions", versions(session->compute));
}

static dt_status say_ready(struct dt_worker_session *session, json_t *parts)
{
    json_t *ready = json_pack("{s:s,s:O,s:s}", "op", "ready", "ranks", parts, "comm",
                              session->world->ops->name);
    dt_status status = dt_wire_write(&session->wire, ready);
    json_decref(ready);
    return status;
}

/* Rank 0 forwards the hello; from here on all ranks learn of a failure. */
static dt_status gather_ranks(struct dt_worker_session *session, json_t *hello)
{
    json_t *received = NULL, *parts = NULL;
    bool first = session->seat.rank == 0;
    dt_status status = first ? dt_links_send(&session->links, hello)
                             : dt_links_receive(&session->links, &received);
    if (status == DT_EDEAD && !first)
        return DT_DONE;
    if (status == DT_OK && !first)
        status = read_hello(session, received);
    json_decref(received);
    if (status == DT_OK)
        status = open_device(session);
    DT_TRY(dt_links_agree(&session->links, status, entry(session), &parts));
    status = dt_links_agree(&session->links, connect_devices(session), NULL, NULL);
    if (status == DT_OK && first)
        status = say_ready(session, parts);
    json_decref(parts);
    return status;
}

/* Starts as many ranks as the hello requests, this one included. */
static dt_status start_ranks(struct dt_worker_session *session, const json_t *hello, int *fd)
{
    int64_t ranks = 1;
    if (dt_json_has(hello, "ranks"))
        DT_TRY(dt_json_int(hello, "hello", "ranks", 1, 65536, &ranks));
    if (ranks == 1)
        return DT_OK;
    DT_TRY(dt_ranks_start(&session->seat, (int)ranks, fd));
    return dt_seat_bind(&session->seat);
}

/* Ranks started by this process need their number from the hello first. Under a launcher MPI starts while the
 * controller writes its hello; its failure is the answer to the hello. */
dt_status dt_session_start(struct dt_worker_session *session, int *argc, char ***argv)
{
    json_t *hello = NULL;
    bool first = session->seat.rank == 0;
    int fd = dt_ranks_shared();
    dt_status status = DT_OK;
    session->compute = dt_compute_best();
    session->seat.loose = !session->compute->host;
    if (first && starts_ranks(session))
        status = await_hello(session, &hello);
    if (status == DT_OK && hello != NULL)
        status = start_ranks(session, hello, &fd);
    if (status == DT_OK)
        status = connect_host(session, fd, argc, argv);
    if (status == DT_OK)
        status = dt_links_open(&session->links, session->host,
                               session->seat.host_size == session->seat.size);
    if (status == DT_OK && first && hello == NULL)
        status = await_hello(session, &hello);
    if (status == DT_OK)
        status = gather_ranks(session, hello);
    json_decref(hello);
    if (status < 0 && first)
        DT_TRY(dt_session_refuse(session, status));
    return status;
}

void dt_session_fini(struct dt_worker_session *session)
{
    for (int i = 0; i < DT_SESSION_RESIDENTS; i++)
        dt_pass_free(session->residents[i].pass);
    dt_weights_free(session->weights);
    if (session->device != NULL)
        session->compute->memory.release(session->device, session->tokens);
    dt_comm_free(session->world != NULL ? session->world : session->host);
    if (session->device != NULL)
        session->device->compute->close(session->device);
    dt_links_close(&session->links);
    dt_wire_fini(&session->wire);
}
