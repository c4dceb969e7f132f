/* SPDX-License-Identifier: MIT */
/* The fake NCCL between threads and between processes: exchanges, splits, states,
 * mismatches, planted faults. */
#include "tests/fake_cuda/fake_cuda.h"

#include <nccl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 4, COUNT = 50000 };

static ncclUniqueId id;
static int failures[RANKS];

/* Not cmocka's: it must not be left by longjmp from another thread. */
#define CHECK(rank, what)                                                                          \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #what);                      \
            failures[rank]++;                                                                      \
        }                                                                                          \
    } while (0)

static ncclResult_t settled(ncclComm_t comm, ncclResult_t result)
{
    while (result == ncclInProgress) {
        usleep(50);
        if (ncclCommGetAsyncError(comm, &result) != ncclSuccess)
            return ncclInternalError;
    }
    return result;
}

struct rank {
    int rank, size;
    ncclComm_t comm;
    cudaStream_t stream;
    int *send, *recv;
};

static bool open_rank(struct rank *r, int blocking)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    size_t bytes = (size_t)r->size * COUNT * sizeof(int);
    config.blocking = blocking;
    config.maxCTAs = 4;
    CHECK(r->rank, cudaSetDevice(r->rank) == cudaSuccess);
    CHECK(r->rank, cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking) == cudaSuccess);
    ncclResult_t result = ncclCommInitRankConfig(&r->comm, r->size, id, r->rank, &config);
    CHECK(r->rank, blocking ? result == ncclSuccess : result == ncclInProgress);
    CHECK(r->rank, settled(r->comm, result) == ncclSuccess);
    CHECK(r->rank, ncclMemAlloc((void **)&r->send, bytes) == ncclSuccess);
    CHECK(r->rank, ncclMemAlloc((void **)&r->recv, bytes) == ncclSuccess);
    return failures[r->rank] == 0;
}

static void close_rank(struct rank *r)
{
    CHECK(r->rank, settled(r->comm, ncclCommFinalize(r->comm)) == ncclSuccess);
    CHECK(r->rank, ncclCommDestroy(r->comm) == ncclSuccess);
    CHECK(r->rank, ncclMemFree(r->send) == ncclSuccess && ncclMemFree(r->recv) == ncclSuccess);
    CHECK(r->rank, cudaStreamDestroy(r->stream) == cudaSuccess);
}

/* send[to][i] = value(rank, to, i) */
static int value(int from, int to, int i)
{
    return from * 1000003 + to * 10007 + i;
}

static void fill(const struct rank *r)
{
    int *host = malloc((size_t)r->size * COUNT * sizeof *host);
    for (int to = 0; to < r->size; to++)
        for (int i = 0; i < COUNT; i++)
            host[to * COUNT + i] = value(r->rank, to, i);
    CHECK(r->rank, cudaMemcpyAsync(r->send, host, (size_t)r->size * COUNT * sizeof *host,
                                   cudaMemcpyHostToDevice, r->stream) == cudaSuccess);
    free(host);
}

/* recv[from] is what `from` sent here, of the ranks in mask. */
static void expect(const struct rank *r, unsigned mask)
{
    int *host = malloc((size_t)r->size * COUNT * sizeof *host), wrong = 0;
    CHECK(r->rank, cudaMemcpyAsync(host, r->recv, (size_t)r->size * COUNT * sizeof *host,
                                   cudaMemcpyDeviceToHost, r->stream) == cudaSuccess);
    for (int from = 0; from < r->size; from++)
        for (int i = 0; i < COUNT && (mask >> from & 1) != 0; i++)
            wrong += host[from * COUNT + i] != value(from, r->rank, i);
    CHECK(r->rank, wrong == 0);
    free(host);
}

static void exchange(const struct rank *r)
{
    int next = (r->rank + 1) % r->size, before = (r->rank + r->size - 1) % r->size;
    fill(r);
    CHECK(r->rank, settled(r->comm, ncclAlltoAll(r->send, r->recv, COUNT, ncclInt32, r->comm,
                                                 r->stream)) == ncclSuccess);
    expect(r, 0xf);
    CHECK(r->rank, cudaMemsetAsync(r->recv, 0, (size_t)r->size * COUNT * sizeof(int), r->stream) ==
                       cudaSuccess);
    CHECK(r->rank, ncclGroupStart() == ncclSuccess);
    CHECK(r->rank, ncclSend(r->send + next * COUNT, COUNT, ncclInt32, next, r->comm, r->stream) ==
                       ncclSuccess);
    CHECK(r->rank, ncclRecv(r->recv + before * COUNT, COUNT, ncclInt32, before, r->comm,
                            r->stream) == ncclSuccess);
    CHECK(r->rank, settled(r->comm, ncclGroupEnd()) == ncclSuccess);
    expect(r, 1u << before);
    CHECK(r->rank, settled(r->comm, ncclAllReduce(r->send, r->recv, 1, ncclInt32, ncclMax, r->comm,
                                                  r->stream)) == ncclSuccess);
    int most = 0;
    CHECK(r->rank, cudaMemcpyAsync(&most, r->recv, sizeof most, cudaMemcpyDeviceToHost,
                                   r->stream) == cudaSuccess);
    CHECK(r->rank, most == value(r->size - 1, 0, 0));
}

static void split(const struct rank *r)
{
    ncclComm_t half = NULL;
    int color = r->rank % 2, rank = -1, size = -1;
    ncclResult_t result = ncclCommSplit(r->comm, color, -r->rank, &half, NULL);
    CHECK(r->rank, settled(r->comm, result) == ncclSuccess);
    CHECK(r->rank, half != NULL && settled(half, result) == ncclSuccess);
    CHECK(r->rank, ncclCommUserRank(half, &rank) == ncclSuccess);
    CHECK(r->rank, ncclCommCount(half, &size) == ncclSuccess);
    CHECK(r->rank, size == 2 && rank == (r->rank < 2)); /* the higher key first */
    ncclWindow_t window;
    CHECK(r->rank, settled(half, ncclCommWindowRegister(half, r->recv, COUNT * 4, &window,
                                                        NCCL_WIN_COLL_SYMMETRIC)) == ncclSuccess);
    CHECK(r->rank, settled(half, ncclAlltoAll(r->send, r->recv, 8, ncclInt32, half, r->stream)) ==
                       ncclSuccess);
    int got[16];
    CHECK(r->rank, cudaMemcpyAsync(got, r->recv, sizeof got, cudaMemcpyDeviceToHost, r->stream) ==
                       cudaSuccess);
    int other = (r->rank + 2) % 4, first = r->rank >= 2 ? r->rank : other; /* rank 0 of the half */
    CHECK(r->rank, got[0] == value(first, 0, rank * 8));
    CHECK(r->rank, got[8] == value(first == other ? r->rank : other, 0, rank * 8));
    CHECK(r->rank, ncclCommWindowDeregister(half, window) == ncclSuccess);
    CHECK(r->rank, settled(half, ncclCommFinalize(half)) == ncclSuccess);
    CHECK(r->rank, ncclCommDestroy(half) == ncclSuccess);
}

static void *whole(void *arg)
{
    struct rank r = {.rank = *(int *)arg, .size = RANKS};
    if (open_rank(&r, r.rank % 2)) {
        exchange(&r);
        split(&r);
        close_rank(&r);
    }
    return NULL;
}

static void run_threads(void *(*body)(void *), int count)
{
    pthread_t threads[RANKS];
    int ranks[RANKS];
    memset(failures, 0, sizeof failures);
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    for (int i = 0; i < count; i++) {
        ranks[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, body, &ranks[i]), 0);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++)
        assert_int_equal(failures[i], 0);
}

static void exchanges_between_threads(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 3; seed++) {
        char settings[64];
        snprintf(settings, sizeof settings, "devices=4:memory=64m:seed=%d", seed);
        dt_fake_cuda_set(settings);
        run_threads(whole, RANKS);
        assert_string_equal(dt_fake_cuda_complaint(), "");
        for (int i = 0; i < RANKS; i++)
            assert_int_equal(dt_fake_cuda_blocks(i), 0);
        assert_non_null(strstr(dt_fake_cuda_posted(0), "alltoall comm=0 >0:50000x2"));
        assert_string_not_equal(dt_fake_cuda_posted(0),
                                dt_fake_cuda_posted(1)); /* its neighbours are others */
    }
}

/* On one device, for which each rank is a host of its own. */
static void exchanges_between_processes(void **state)
{
    (void)state;
    pid_t children[2];
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct rank r = {.rank = i, .size = 2};
            setenv("NCCL_HOSTID", i == 0 ? "a" : "b", 1);
            dt_fake_cuda_set("devices=2:memory=64m");
            if (open_rank(&r, 0)) {
                exchange(&r);
                close_rank(&r);
            }
            _exit(failures[i] != 0 || dt_fake_cuda_complaint()[0] != 0);
        }
    }
    for (int i = 0; i < 2; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static ncclResult_t same_result[2];

static void *same_device(void *arg)
{
    int rank = *(int *)arg;
    ncclComm_t comm;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    CHECK(rank, cudaSetDevice(0) == cudaSuccess);
    ncclResult_t result = ncclCommInitRankConfig(&comm, 2, id, rank, &config);
    same_result[rank] = settled(comm, result);
    CHECK(rank, ncclCommAbort(comm) == ncclSuccess);
    return NULL;
}

static void refuses_two_ranks_on_one_device(void **state)
{
    (void)state;
    dt_fake_cuda_set("devices=2:memory=64m");
    run_threads(same_device, 2);
    assert_int_equal(same_result[0], ncclInvalidUsage);
    assert_int_equal(same_result[1], ncclInvalidUsage);
    assert_non_null(strstr(ncclGetLastError(NULL), "Duplicate GPU detected"));
}

static ncclResult_t ends[2];
static const ncclResult_t *expected;
static bool mismatch;

/* Rank 1 expects one element more; or what the settings plant happens. The state, when the exchange
 * has ended or failed, or after 300 ms of one that is to hang. */
static void *troubled(void *arg)
{
    struct rank r = {.rank = *(int *)arg, .size = 2};
    if (!open_rank(&r, 0))
        return NULL;
    fill(&r);
    int other = 1 - r.rank;
    CHECK(r.rank, ncclGroupStart() == ncclSuccess);
    CHECK(r.rank, ncclSend(r.send, 64, ncclInt32, other, r.comm, r.stream) == ncclSuccess);
    CHECK(r.rank, ncclRecv(r.recv, 64 + (size_t)(mismatch && r.rank == 1), ncclInt32, other, r.comm,
                           r.stream) == ncclSuccess);
    ncclResult_t result = settled(r.comm, ncclGroupEnd());
    CHECK(r.rank,
          result == ncclSuccess || result == ncclInternalError || result == ncclRemoteError);
    for (int i = 0; i < (expected[r.rank] == ncclInProgress ? 300 : 120000); i++) {
        CHECK(r.rank, ncclCommGetAsyncError(r.comm, &ends[r.rank]) == ncclSuccess);
        if (cudaStreamQuery(r.stream) == cudaSuccess || ends[r.rank] != ncclSuccess)
            break;
        usleep(1000);
    }
    (void)cudaGetLastError();
    if (cudaStreamQuery(r.stream) == cudaErrorNotReady && ends[r.rank] == ncclSuccess)
        ends[r.rank] = ncclInProgress; /* it hangs */
    CHECK(r.rank, ncclCommAbort(r.comm) == ncclSuccess);
    CHECK(r.rank, cudaStreamSynchronize(r.stream) == cudaSuccess);
    CHECK(r.rank, ncclMemFree(r.send) == ncclSuccess && ncclMemFree(r.recv) == ncclSuccess);
    return NULL;
}

static void reports_each_planted_fault(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        ncclResult_t end[2]; /* InProgress: hangs until the abort */
    } rows[] = {
        {"nothing", {ncclSuccess, ncclSuccess}},
        {"mismatch", {ncclSuccess, ncclInternalError}},
        {"fault=exchange,do=drop,rank=0", {ncclInProgress, ncclInProgress}},
        {"fault=exchange,do=hang,rank=1", {ncclInProgress, ncclInProgress}},
        {"fault=exchange,do=error,rank=1", {ncclInProgress, ncclRemoteError}},
        {"fault=exchange,do=delay,ms=30,rank=1", {ncclSuccess, ncclSuccess}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char settings[128];
        snprintf(settings, sizeof settings, "devices=2:memory=64m%s%s",
                 strchr(rows[i].settings, '=') != NULL ? ":" : ":seed=",
                 strchr(rows[i].settings, '=') != NULL ? rows[i].settings : "9");
        mismatch = strcmp(rows[i].settings, "mismatch") == 0;
        dt_fake_cuda_set(settings);
        expected = rows[i].end;
        run_threads(troubled, 2);
        for (int rank = 0; rank < 2; rank++)
            if (ends[rank] != rows[i].end[rank])
                fail_msg("%s: rank %d ends with %d", rows[i].settings, rank, (int)ends[rank]);
        if (mismatch)
            assert_non_null(strstr(dt_fake_cuda_complaint(),
                                   "rank 1 expects p2p number 0 from rank 0, 65 "
                                   "of type 2; it sent p2p number 0, 64"));
        else
            assert_string_equal(dt_fake_cuda_complaint(), "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_between_processes), /* forks before the first call */
        cmocka_unit_test(exchanges_between_threads),
        cmocka_unit_test(refuses_two_ranks_on_one_device),
        cmocka_unit_test(reports_each_planted_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
