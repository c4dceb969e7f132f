/* SPDX-License-Identifier: MIT */
/* ctest: alone dose */
/* Every comm against the definitions of its calls, in bytes that say where they come from: many
 * sizes, two to eight ranks, splits, several exchanges under way, uneven pieces, orders that
 * differ between ranks. */
#include "base/rng.h"
#include "tests/kernels/ranks.h"
#include "tests/lib/dose.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Byte k of what rank `from` sends to rank `to` in exchange number `call`;
 * seed is of these three. */
static uint64_t seed_of(int call, int from, int to)
{
    return dt_rng_hash((uint64_t)call, (uint64_t)from, (uint64_t)to);
}

static unsigned char byte_of(uint64_t seed, size_t k)
{
    return (unsigned char)(((seed ^ k) * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

static void write_bytes(unsigned char *at, size_t bytes, int call, int from, int to)
{
    uint64_t seed = seed_of(call, from, to);
    for (size_t k = 0; k < bytes; k++)
        at[k] = byte_of(seed, k);
}

static dt_status check_bytes(const unsigned char *at, size_t bytes, int call, int from, int to)
{
    uint64_t seed = seed_of(call, from, to);
    for (size_t k = 0; k < bytes; k++)
        if (at[k] != byte_of(seed, k))
            return dt_fail(DT_FAILED, "exchange %d: byte %zu of %zu from %d to %d is wrong", call,
                           k, bytes, from, to);
    return DT_OK;
}

/* An exchange of some kind: its buffers on one rank. */
struct posted {
    struct dt_comm *comm;
    int call, offset;                 /* offset: of comm's ranks in what the bytes say */
    size_t bytes;                     /* of a block */
    unsigned char *send, *recv;       /* as the host sees them */
    unsigned char *at_send, *at_recv; /* where the exchange finds them */
    size_t received;
    struct dt_message sends[64], recvs[64];
    int send_count, recv_count;
    struct dt_request request;
    dt_status (*check)(const struct posted *posted);
};

static void prepare(struct posted *p, size_t send, size_t recv)
{
    p->send = calloc(1, send);
    p->recv = calloc(1, recv);
    p->at_send = ranks_alloc(p->comm, send);
    p->at_recv = ranks_alloc(p->comm, recv);
    p->received = recv;
    ranks_put(p->comm, p->at_recv, p->recv, recv);
}

static dt_status check_alltoall(const struct posted *p)
{
    for (int i = 0; i < p->comm->size; i++)
        DT_TRY(check_bytes(p->recv + (size_t)i * p->bytes, p->bytes, p->call, p->offset + i,
                           p->offset + p->comm->rank));
    return DT_OK;
}

static dt_status post_alltoall(struct posted *p)
{
    int size = p->comm->size;
    prepare(p, (size_t)size * p->bytes, (size_t)size * p->bytes);
    p->check = check_alltoall;
    for (int i = 0; i < size; i++)
        write_bytes(p->send + (size_t)i * p->bytes, p->bytes, p->call, p->offset + p->comm->rank,
                    p->offset + i);
    ranks_put(p->comm, p->at_send, p->send, (size_t)size * p->bytes);
    DT_TRY(dt_comm_alltoall(p->comm, p->at_send, p->at_recv, p->bytes, &p->request));
    return p->request.bytes == (int64_t)p->bytes * (size - 1) && p->request.posted_ns > 0
               ? DT_OK
               : dt_fail(DT_FAILED, "the request was not filled in");
}

static dt_status check_shift(const struct posted *p)
{
    int previous = (p->comm->rank + p->comm->size - 1) % p->comm->size;
    return check_bytes(p->recv, p->bytes, p->call, p->offset + previous, p->offset + p->comm->rank);
}

static dt_status post_shift(struct posted *p)
{
    int next = (p->comm->rank + 1) % p->comm->size;
    prepare(p, p->bytes, p->bytes);
    p->check = check_shift;
    write_bytes(p->send, p->bytes, p->call, p->offset + p->comm->rank, p->offset + next);
    ranks_put(p->comm, p->at_send, p->send, p->bytes);
    return dt_comm_shift(p->comm, p->at_send, p->at_recv, p->bytes, &p->request);
}

/* Zero to three pieces between each two ranks, the own one too; sizes up to
 * p->bytes, no two alike. */
static int pieces_of(const struct posted *p, int from, int to)
{
    return (int)(dt_rng_hash((uint64_t)p->call, (uint64_t)from, (uint64_t)to) % 4);
}

static size_t piece_bytes(const struct posted *p, int from, int to, int index)
{
    uint64_t hash =
        dt_rng_hash((uint64_t)p->call * 64 + (uint64_t)from, (uint64_t)to, 1000 + (uint64_t)index);
    return 1 + (size_t)(hash % p->bytes);
}

/* The pieces of one side, in an order that mixes peers, but not the pieces of one. */
static int list_pieces(const struct posted *p, bool out, unsigned char *memory,
                       struct dt_message list[])
{
    unsigned char *host = p->send;
    int own = p->comm->rank, size = p->comm->size, count = 0, next[RANKS_MOST] = {0};
    for (int left = 1; left > 0;) {
        left = 0;
        for (int i = 0; i < size; i++) {
            int peer = out ? (own + i) % size : (own + size - i) % size;
            int from = out ? own : peer, to = out ? peer : own;
            if (next[peer] == pieces_of(p, from, to))
                continue;
            size_t bytes = piece_bytes(p, from, to, next[peer]++);
            if (out)
                write_bytes(host, bytes, p->call + next[peer], from, to);
            list[count++] = (struct dt_message){peer, memory, bytes};
            memory += bytes;
            host += bytes;
            left++;
        }
    }
    return count;
}

static dt_status check_pieces(const struct posted *p)
{
    int next[RANKS_MOST] = {0};
    for (int i = 0; i < p->recv_count; i++) {
        int peer = p->recvs[i].peer;
        const unsigned char *at = p->recv + ((unsigned char *)p->recvs[i].at - p->at_recv);
        DT_TRY(check_bytes(at, p->recvs[i].bytes, p->call + ++next[peer], peer, p->comm->rank));
    }
    return DT_OK;
}

static dt_status post_pieces(struct posted *p)
{
    size_t most = (size_t)p->comm->size * 3 * p->bytes;
    prepare(p, most, most);
    p->check = check_pieces;
    p->send_count = list_pieces(p, true, p->at_send, p->sends);
    p->recv_count = list_pieces(p, false, p->at_recv, p->recvs);
    ranks_put(p->comm, p->at_send, p->send, most);
    struct dt_message sends[64], recvs[64]; /* the lists may be used again on return */
    memcpy(sends, p->sends, sizeof sends);
    memcpy(recvs, p->recvs, sizeof recvs);
    dt_status status = dt_comm_exchange(
        p->comm, &(struct dt_pieces){sends, recvs, p->send_count, p->recv_count}, &p->request);
    memset(sends, 0xff, sizeof sends);
    memset(recvs, 0xff, sizeof recvs);
    return status;
}

static dt_status finish(struct posted *p)
{
    dt_status status = p->comm->ops->wait(p->comm, &p->request);
    if (status == DT_OK)
        status = dt_comm_check(p->comm);
    if (status == DT_OK)
        status = ranks_get(p->comm, p->recv, p->at_recv, p->received);
    if (status == DT_OK)
        status = p->check(p);
    ranks_release(p->comm, p->at_send);
    ranks_release(p->comm, p->at_recv);
    free(p->send);
    free(p->recv);
    return status;
}

static dt_status (*const posts[])(struct posted *) = {post_alltoall, post_shift, post_pieces};

static dt_status every_size(struct dt_comm *comm, void *arg)
{
    static const size_t sizes[] = {1, 3, 64, 4097, 70001, 300011};
    (void)arg;
    for (int size = 0; size < 6; size++)
        for (int op = 0; op < 3; op++) {
            struct posted p = {.comm = comm, .call = 100 * size + 10 * op, .bytes = sizes[size]};
            DT_TRY(posts[op](&p));
            DT_TRY(finish(&p));
        }
    return DT_OK;
}

/* Number of the sizes below for a kind of comm. */
static int sizes_of(const struct ranks *kind)
{
    return dose_thin() ? 1 : kind->gpu ? 2 : dose_full() ? 4 : 3;
}

/* Up to five ranks; eight, which have 64 pairs, in the full dose. */
static void on_all(ranks_body body)
{
    static const int sizes[] = {3, 5, 2, 8};
    for (int row = 0; row < RANKS_ROWS; row++)
        for (int i = 0; i < sizes_of(&ranks_rows[row]); i++)
            assert_int_equal(ranks_run(&ranks_rows[row], sizes[i], body, NULL, NULL), DT_OK);
}

static void exchanges_of_every_size(void **state)
{
    (void)state;
    on_all(every_size);
}

/* Under way at once, waited for in another order, with polls in between. */
static dt_status many_under_way(struct dt_comm *comm, void *arg)
{
    enum { COUNT = 12 };
    struct posted *all = calloc(COUNT, sizeof *all);
    dt_status status = DT_OK;
    (void)arg;
    for (int i = 0; status == DT_OK && i < COUNT; i++) {
        all[i] = (struct posted){.comm = comm, .call = 10 * i, .bytes = (size_t)(30011 * i + 1)};
        status = posts[i % 3](&all[i]);
    }
    for (int i = 0; status == DT_OK && i < COUNT; i++) {
        if (comm->ops->poll != NULL)
            comm->ops->poll(comm);
        status = finish(&all[(i * 5 + comm->rank) % COUNT]);
    }
    free(all);
    return status;
}

static void several_exchanges_are_in_flight(void **state)
{
    (void)state;
    on_all(many_under_way);
}

/* Broadcast from rank 0, gather, and a barrier that no rank leaves before the last one arrives. */
static dt_status told_and_gathered(struct dt_comm *comm, void *arg)
{
    int *came = arg;
    for (int round = 1; round <= (dose_thin() ? 8 : 20); round++) {
        size_t bytes = (size_t)(round * round * round * 50);
        unsigned char *one = calloc(1, bytes), *all = calloc((size_t)comm->size, bytes);
        write_bytes(one, bytes, round, comm->rank, 0);
        dt_status status = comm->ops->gather(comm, one, comm->rank == 0 ? all : NULL, bytes);
        for (int i = 0; status == DT_OK && comm->rank == 0 && i < comm->size; i++)
            status = check_bytes(all + (size_t)i * bytes, bytes, round, i, 0);
        if (status == DT_OK)
            status = comm->ops->broadcast(comm, one, bytes);
        if (status == DT_OK)
            status = check_bytes(one, bytes, round, 0, 0);
        free(one);
        free(all);
        DT_TRY(status);
        __atomic_fetch_add(came, 1, __ATOMIC_SEQ_CST);
        DT_TRY(comm->ops->barrier(comm));
        if (__atomic_load_n(came, __ATOMIC_SEQ_CST) < round * comm->size)
            return dt_fail(DT_FAILED, "rank %d left barrier %d before the last came", comm->rank,
                           round);
        DT_TRY(comm->ops->barrier(comm));
    }
    return DT_OK;
}

static void all_hear_and_nobody_leaves_a_barrier_early(void **state)
{
    (void)state;
    int *came = ranks_common(sizeof *came);
    for (int row = 0; row < RANKS_ROWS; row++)
        for (int size = 1; size <= (ranks_rows[row].gpu ? 3 : RANKS_MOST);
             size += dose_thin() ? 2 : 1) {
            *came = 0;
            assert_int_equal(ranks_run(&ranks_rows[row], size, told_and_gathered, came, NULL),
                             DT_OK);
        }
    munmap(came, sizeof *came);
}

static dt_status expect_comm(const struct dt_comm *comm, int rank, int size)
{
    return comm->rank == rank && comm->size == size
               ? DT_OK
               : dt_fail(DT_FAILED, "rank %d of %d after a split, expected %d of %d", comm->rank,
                         comm->size, rank, size);
}

/* Rows and columns of the grid, ordered backwards by the key, with an
 * exchange under way on both. */
static dt_status grid(struct dt_comm *world, int columns)
{
    int row = world->rank / columns, column = world->rank % columns, rows = world->size / columns;
    struct dt_comm *across = NULL, *down = NULL;
    struct dt_comm_config config = {.ctas = 2};
    dt_status status = world->ops->split(world, row, -column, &config, &across);
    if (status == DT_OK)
        status = world->ops->split(world, 1000 - column, row, NULL, &down);
    if (status == DT_OK)
        status = expect_comm(across, columns - 1 - column, columns);
    if (status == DT_OK)
        status = expect_comm(down, row, rows);
    for (int op = 0; status == DT_OK && op < 2; op++) {
        struct posted a = {.comm = across, .call = 1, .offset = 20 * row, .bytes = 5001};
        struct posted b = {.comm = down, .call = 2, .offset = 20 * column, .bytes = 70001};
        status = posts[op](&a);
        if (status == DT_OK)
            status = posts[1 - op](&b);
        if (status == DT_OK)
            status = finish(op == 0 ? &a : &b);
        if (status == DT_OK)
            status = finish(op == 0 ? &b : &a);
    }
    dt_comm_free(across);
    dt_comm_free(down);
    return status;
}

static dt_status every_grid(struct dt_comm *world, void *arg)
{
    (void)arg;
    for (int columns = 1; columns <= world->size; columns++)
        if (world->size % columns == 0)
            DT_TRY(grid(world, columns));
    return DT_OK;
}

static void splits_make_grids(void **state)
{
    (void)state;
    on_all(every_grid);
}

/* Two comms of the same ranks: the even ones post to the first one first, the odd ones to the
 * second, and large enough that none fits into what lies between. */
static dt_status crossed(struct dt_comm *world, void *arg)
{
    struct dt_comm *parts[2] = {NULL, NULL};
    dt_status status = DT_OK;
    (void)arg;
    for (int i = 0; status == DT_OK && i < 2; i++)
        status = world->ops->split(world, 0, world->rank, NULL, &parts[i]);
    for (int round = 0; status == DT_OK && round < (dose_full() ? 6 : 3); round++) {
        struct posted p[2];
        int first = world->ops->recordable ? 0 : (world->rank + round) % 2;
        for (int i = 0; i < 2; i++)
            p[i] = (struct posted){.comm = parts[i], .call = 20 * round + 10 * i, .bytes = 300007};
        for (int i = 0; status == DT_OK && i < 2; i++)
            status = posts[round % 3](&p[i == 0 ? first : 1 - first]);
        int wait_first = world->rank / 2 % 2;
        for (int i = 0; status == DT_OK && i < 2; i++)
            status = finish(&p[i == 0 ? wait_first : 1 - wait_first]);
    }
    dt_comm_free(parts[0]);
    dt_comm_free(parts[1]);
    return status;
}

/* Each comm has its own order, but on a device all share one. */
static void comms_do_not_wait_for_each_other(void **state)
{
    (void)state;
    on_all(crossed);
}

/* Under mpirun, where each rank is this program: the same bodies. */
static int by_mpi(int *argc, char ***argv)
{
#ifdef DT_HAVE_MPI
    static const ranks_body bodies[] = {every_size, many_under_way, every_grid, crossed};
    struct dt_comm *comm = NULL;
    dt_status status = dt_comm_mpi(argc, argv, 1, &comm);
    for (int i = 0; status == DT_OK && i < 4; i++)
        status = bodies[i](comm, NULL);
    if (comm != NULL)
        printf("rank %d of %d: %s\n", comm->rank, comm->size,
               status == DT_OK ? "mpi keeps to the definitions" : dt_message());
    dt_comm_free(comm);
    dt_comm_mpi_end();
    return status == DT_OK ? 0 : 1;
#else
    (void)argc, (void)argv;
    return 77;
#endif
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return by_mpi(&argc, &argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_of_every_size),
        cmocka_unit_test(several_exchanges_are_in_flight),
        cmocka_unit_test(all_hear_and_nobody_leaves_a_barrier_early),
        cmocka_unit_test(splits_make_grids),
        cmocka_unit_test(comms_do_not_wait_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
