/* SPDX-License-Identifier: MIT */
/* The pipes and bells under the comm of shared memory, in one mapping. Ranks have a mapping each,
 * as processes have; there ThreadSanitizer sees no two accesses to one address. Here it sees all of
 * them, so it finds what is not ordered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "kernels/comm/shared_int.h"
#include "kernels/shared.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

enum { RANKS = 2, MOST = 70000, BYTES = 4 << 20 };

/* Data sent and received by one rank, in pieces of any size. */
struct rank {
    struct dt_shared_map map;
    int64_t sent, received, wrong, unheard; /* unheard: a bell that did not wake it */
};

static unsigned char byte_of(int from, int64_t k)
{
    return (unsigned char)(((uint64_t)k * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)from) >> 56);
}

static size_t piece(struct dt_rng *rng, int64_t done)
{
    size_t size = 1 + (size_t)dt_rng_below(rng, MOST), left = (size_t)(BYTES - done);
    return size < left ? size : left;
}

static bool send_some(struct rank *rank, struct dt_rng *rng, unsigned char *buffer)
{
    int other = 1 - rank->map.rank;
    size_t size = piece(rng, rank->sent);
    for (size_t i = 0; i < size; i++)
        buffer[i] = byte_of(rank->map.rank, rank->sent + (int64_t)i);
    size_t moved = size > 0 ? dt_shared_write(&rank->map, other, buffer, size) : 0;
    rank->sent += (int64_t)moved;
    return moved > 0;
}

static bool receive_some(struct rank *rank, struct dt_rng *rng, unsigned char *buffer)
{
    int other = 1 - rank->map.rank;
    size_t size = piece(rng, rank->received);
    size_t moved = size > 0 ? dt_shared_read(&rank->map, other, buffer, size) : 0;
    for (size_t i = 0; i < moved; i++)
        rank->wrong += buffer[i] != byte_of(other, rank->received + (int64_t)i);
    rank->received += (int64_t)moved;
    return moved > 0;
}

static bool idle(const struct rank *rank)
{
    int other = 1 - rank->map.rank;
    bool may_send = rank->sent < BYTES && dt_shared_room(&rank->map, other) > 0;
    return !may_send && dt_shared_ready(&rank->map, other) == 0;
}

/* One way only, and without bells: nothing but the counter orders the bytes. */
static void *send_all(void *arg)
{
    struct rank *rank = arg;
    struct dt_rng rng = {.seed = 1};
    unsigned char *buffer = malloc(MOST);
    while (buffer != NULL && rank->sent < BYTES)
        if (!send_some(rank, &rng, buffer))
            sched_yield();
    free(buffer);
    return NULL;
}

static void *receive_all(void *arg)
{
    struct rank *rank = arg;
    struct dt_rng rng = {.seed = 2};
    unsigned char *buffer = malloc(MOST);
    while (buffer != NULL && rank->received < BYTES)
        if (!receive_some(rank, &rng, buffer))
            sched_yield();
    free(buffer);
    return NULL;
}

/* Both ways, asleep while there is nothing to do. */
static void *exchange(void *arg)
{
    struct rank *rank = arg;
    struct dt_rng rng = {.seed = 3, .stream = (uint64_t)rank->map.rank};
    unsigned char *buffer = malloc(MOST);
    while (buffer != NULL && (rank->sent < BYTES || rank->received < BYTES)) {
        bool moved = send_some(rank, &rng, buffer);
        moved |= receive_some(rank, &rng, buffer);
        if (moved) {
            dt_shared_ring(&rank->map, 1 - rank->map.rank);
            continue;
        }
        uint32_t announced = dt_shared_announce(&rank->map);
        if (idle(rank))
            rank->unheard += !dt_shared_sleep(&rank->map, announced, 600 * DT_NS_PER_SECOND);
        else
            dt_shared_rise(&rank->map);
    }
    free(buffer);
    return NULL;
}

/* Runs each rank in a thread, in one mapping. */
static void run(struct rank ranks[RANKS], void *(*const body[RANKS])(void *))
{
    pthread_t threads[RANKS];
    int fd;
    assert_int_equal(dt_shared_new(RANKS, &fd), DT_OK);
    assert_int_equal(dt_shared_map(fd, 0, RANKS, &ranks[0].map), DT_OK);
    close(fd);
    ranks[1].map = ranks[0].map;
    ranks[1].map.rank = 1;
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body[i], &ranks[i]), 0);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(ranks[i].sent, ranks[1 - i].received);
        assert_int_equal(ranks[i].wrong, 0);
        assert_int_equal(ranks[i].unheard, 0);
        assert_int_equal(dt_shared_ready(&ranks[i].map, 1 - i), 0);
    }
    dt_shared_unmap(&ranks[0].map);
}

static void data_flows_one_way(void **state)
{
    (void)state;
    struct rank ranks[RANKS] = {0};
    run(ranks, (void *(*const[])(void *)){send_all, receive_all});
    assert_int_equal(ranks[0].sent, BYTES);
}

static void data_flows_both_ways(void **state)
{
    (void)state;
    struct rank ranks[RANKS] = {0};
    run(ranks, (void *(*const[])(void *)){exchange, exchange});
    assert_int_equal(ranks[0].sent, BYTES);
    assert_int_equal(ranks[1].sent, BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(data_flows_one_way),
                                       cmocka_unit_test(data_flows_both_ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
