/* SPDX-License-Identifier: MIT */
/* Every wait is a loop of MPI_Test with a deadline: a peer that died or hangs must become an error
 * here, and when ranks share a core each unsuccessful test yields it (MPI's own blocking calls do
 * neither). Counts are MPI_BYTE, whose int bounds one message to 2 GiB. */
#include "base/clock.h"
#include "kernels/comm.h"
#include "kernels/comm/comm_int.h"

#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (60 * DT_NS_PER_SECOND)
#define SHIFT_TAG   7
#define PIECE_TAG   9

/* The first two slots of a request's state hold an MPI_Request each, the second often
 * MPI_REQUEST_NULL; the third the pieces of an exchange, or NULL. */
_Static_assert(sizeof(MPI_Request) <= sizeof(void *), "an MPI_Request fits a slot of dt_request");

/* MPI's handles of one exchange of pieces; reused by later exchanges. */
struct handles {
    struct handles *next;
    int count, room;
    MPI_Request at[];
};

struct world {
    MPI_Comm comm;
    int yields; /* more ranks than cores */
    struct handles *idle;
};

static dt_status mpi_failed(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int size = 0;
    MPI_Error_string(code, text, &size);
    return dt_fail(DT_ELIB, "%s failed: %s", what, text);
}

#define DT_MPI(call)                                                                               \
    do {                                                                                           \
        int dt_mpi_ = (call);                                                                      \
        if (dt_mpi_ != MPI_SUCCESS)                                                                \
            return mpi_failed(dt_mpi_, #call);                                                     \
    } while (0)

static dt_status finish_requests(const struct world *world, MPI_Request *requests, int n,
                                 const char *what)
{
    int64_t start = 0;
    int done = 0;
    for (unsigned tries = 1;; tries++) {
        int code = MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE);
        if (code != MPI_SUCCESS)
            return mpi_failed(code, what);
        if (done)
            return DT_OK;
        if (world->yields)
            sched_yield();
        if (tries % 1024 != 0)
            continue;
        if (start == 0)
            start = dt_clock_ns();
        if (dt_clock_ns() - start > PATIENCE_NS)
            return dt_fail(DT_ETIMEOUT, "no end of the %s after %lld s: a rank is hung or dead",
                           what, (long long)(PATIENCE_NS / DT_NS_PER_SECOND));
    }
}

static dt_status check_count(size_t bytes)
{
    if (bytes > INT_MAX)
        return dt_fail(
            DT_EUNSUP,
            "one message of %zu bytes is more than MPI's %d: use more chunks or a smaller batch",
            bytes, INT_MAX);
    return DT_OK;
}

static dt_status mpi_barrier(struct dt_comm *comm)
{
    struct world *world = comm->state;
    MPI_Request request;
    DT_MPI(MPI_Ibarrier(world->comm, &request));
    return finish_requests(world, &request, 1, "barrier");
}

static dt_status mpi_gather(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    struct world *world = comm->state;
    MPI_Request request;
    DT_TRY(check_count(bytes));
    DT_MPI(MPI_Igather(send, (int)bytes, MPI_BYTE, recv, (int)bytes, MPI_BYTE, 0, world->comm,
                       &request));
    return finish_requests(world, &request, 1, "gather");
}

static dt_status mpi_broadcast(struct dt_comm *comm, void *data, size_t bytes)
{
    struct world *world = comm->state;
    MPI_Request request;
    DT_TRY(check_count(bytes));
    DT_MPI(MPI_Ibcast(data, (int)bytes, MPI_BYTE, 0, world->comm, &request));
    return finish_requests(world, &request, 1, "broadcast");
}

static void keep_handles(struct dt_request *request, const MPI_Request handles[2])
{
    memcpy(&request->state[0], &handles[0], sizeof(MPI_Request));
    memcpy(&request->state[1], &handles[1], sizeof(MPI_Request));
    request->state[2] = NULL;
}

static dt_status mpi_alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                              struct dt_request *request)
{
    struct world *world = comm->state;
    MPI_Request handles[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    DT_TRY(check_count(bytes));
    DT_MPI(MPI_Ialltoall(send, (int)bytes, MPI_BYTE, recv, (int)bytes, MPI_BYTE, world->comm,
                         &handles[0]));
    keep_handles(request, handles);
    return DT_OK;
}

static dt_status mpi_shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                           struct dt_request *request)
{
    struct world *world = comm->state;
    MPI_Request handles[2];
    int next = (comm->rank + 1) % comm->size, previous = (comm->rank + comm->size - 1) % comm->size;
    DT_TRY(check_count(bytes));
    DT_MPI(MPI_Irecv(recv, (int)bytes, MPI_BYTE, previous, SHIFT_TAG, world->comm, &handles[0]));
    DT_MPI(MPI_Isend(send, (int)bytes, MPI_BYTE, next, SHIFT_TAG, world->comm, &handles[1]));
    keep_handles(request, handles);
    return DT_OK;
}

/* Messages between two ranks with one tag stay in order, so the i-th send
 * matches the i-th receive. */
static dt_status post_pieces(struct world *world, const struct dt_pieces *pieces,
                             struct handles *handles)
{
    for (int i = 0; i < pieces->recv_count; i++) {
        const struct dt_message *recv = &pieces->recvs[i];
        DT_TRY(check_count(recv->bytes));
        DT_MPI(MPI_Irecv(recv->at, (int)recv->bytes, MPI_BYTE, recv->peer, PIECE_TAG, world->comm,
                         &handles->at[handles->count]));
        handles->count++;
    }
    for (int i = 0; i < pieces->send_count; i++) {
        const struct dt_message *send = &pieces->sends[i];
        DT_TRY(check_count(send->bytes));
        DT_MPI(MPI_Isend(send->at, (int)send->bytes, MPI_BYTE, send->peer, PIECE_TAG, world->comm,
                         &handles->at[handles->count]));
        handles->count++;
    }
    return DT_OK;
}

/* The first idle ones with room for n. */
static struct handles *take_handles(struct world *world, int n)
{
    for (struct handles **at = &world->idle; *at != NULL; at = &(*at)->next) {
        struct handles *handles = *at;
        if (handles->room < n)
            continue;
        *at = handles->next;
        handles->count = 0;
        return handles;
    }
    struct handles *made = malloc(sizeof *made + (size_t)n * sizeof(MPI_Request));
    if (made != NULL)
        *made = (struct handles){.room = n};
    return made;
}

static dt_status mpi_exchange(struct dt_comm *comm, const struct dt_pieces *pieces,
                              struct dt_request *request)
{
    struct world *world = comm->state;
    int count = pieces->send_count + pieces->recv_count;
    struct handles *handles = take_handles(world, count);
    if (handles == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for %d pieces of an exchange", count);
    dt_status status = post_pieces(world, pieces, handles);
    if (status < 0) { /* posted operations stay posted: MPI still owns the handles */
        free(handles);
        return status;
    }
    *request = (struct dt_request){.state = {[2] = handles}};
    return DT_OK;
}

static dt_status mpi_wait(struct dt_comm *comm, struct dt_request *request)
{
    struct world *world = comm->state;
    struct handles *handles = request->state[2];
    MPI_Request pair[2];
    if (handles != NULL) {
        dt_status status = finish_requests(world, handles->at, handles->count, "exchange");
        request->state[2] = NULL;
        handles->next = world->idle;
        world->idle = handles;
        return status;
    }
    memcpy(&pair[0], &request->state[0], sizeof(MPI_Request));
    memcpy(&pair[1], &request->state[1], sizeof(MPI_Request));
    return finish_requests(comm->state, pair, 2, "exchange");
}

/* Any call that enters MPI's progress engine will do; a probe is the cheapest. */
static void poll_once(struct dt_comm *comm)
{
    struct world *world = comm->state;
    int there;
    (void)MPI_Iprobe(MPI_ANY_SOURCE, SHIFT_TAG + 1, world->comm, &there, MPI_STATUS_IGNORE);
}

static const struct dt_comm_ops ops;

/* Owns handle, also on failure. */
static dt_status wrap_handle(MPI_Comm handle, int yields, struct dt_comm **out)
{
    struct dt_comm *comm = NULL;
    dt_status status = dt_comm_make(&ops, sizeof(struct world), &comm);
    if (status < 0) {
        if (handle != MPI_COMM_WORLD)
            MPI_Comm_free(&handle);
        return status;
    }
    *(struct world *)comm->state = (struct world){.comm = handle, .yields = yields};
    MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
    MPI_Comm_rank(handle, &comm->rank);
    MPI_Comm_size(handle, &comm->size);
    *out = comm;
    return DT_OK;
}

/* MPI_Comm_split blocks without a deadline, so a barrier with a deadline goes first. */
static dt_status mpi_split(struct dt_comm *comm, int color, int key,
                           const struct dt_comm_config *config, struct dt_comm **out)
{
    (void)config;
    struct world *world = comm->state;
    MPI_Comm part;
    DT_TRY(mpi_barrier(comm));
    DT_MPI(MPI_Comm_split(world->comm, color, key, &part));
    return wrap_handle(part, world->yields, out);
}

static void mpi_release(struct dt_comm *comm)
{
    struct world *world = comm->state;
    int over = 0;
    MPI_Finalized(&over);
    if (!over && world->comm != MPI_COMM_WORLD)
        MPI_Comm_free(&world->comm);
    while (world->idle != NULL) {
        struct handles *next = world->idle->next;
        free(world->idle);
        world->idle = next;
    }
    free(comm);
}

/* Open MPI catches what kills a program, to print a stack first: a rank that crashed
 * would not end at once. */
static dt_status init_keeping_signals(int *argc, char ***argv)
{
    static const int deadly[] = {SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
    enum { DEADLY = sizeof deadly / sizeof *deadly };
    struct sigaction before[DEADLY];
    int level;
    for (int i = 0; i < DEADLY; i++)
        sigaction(deadly[i], NULL, &before[i]);
    DT_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level));
    for (int i = 0; i < DEADLY; i++)
        sigaction(deadly[i], &before[i], NULL);
    return DT_OK;
}

dt_status dt_comm_mpi(int *argc, char ***argv, int oversubscribed, struct dt_comm **comm)
{
    int there = 0;
    DT_MPI(MPI_Initialized(&there));
    if (!there)
        DT_TRY(init_keeping_signals(argc, argv));
    return wrap_handle(MPI_COMM_WORLD, oversubscribed, comm);
}

void dt_comm_mpi_end(void)
{
    int there = 0, over = 0;
    MPI_Initialized(&there);
    MPI_Finalized(&over);
    if (there && !over)
        MPI_Finalize();
}

const char *dt_comm_mpi_version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int size = 0;
    if (text[0] == '\0' && MPI_Get_library_version(text, &size) == MPI_SUCCESS)
        text[strcspn(text, ",\n")] = '\0';
    return text;
}

static const struct dt_comm_ops ops = {
    .name = "mpi",
    .split = mpi_split,
    .free = mpi_release,
    .barrier = mpi_barrier,
    .gather = mpi_gather,
    .broadcast = mpi_broadcast,
    .alltoall = mpi_alltoall,
    .shift = mpi_shift,
    .exchange = mpi_exchange,
    .wait = mpi_wait,
    .poll = poll_once,
};
