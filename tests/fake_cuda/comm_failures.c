/* SPDX-License-Identifier: MIT */
/* ctest: slow */
/* Failing exchanges by NCCL: an error at the post, a later error, a deadline without an error, an
 * abort, an abort that hangs, a post that hangs, a killed rank. Also the cache of communicators.
 * The ranks are processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/fake_cuda/fake_cuda.h"
#include "tests/kernels/fake_ranks/fault.h"
#include "tests/kernels/ranks.h"

static const struct ranks *const processes = &ranks_rows[1];

enum { BYTES = 100000 };

#define MS          1000000LL
#define PATIENCE_MS 120000 /* with what must succeed, on any machine */
#define MACHINE     "devices=8:memory=1g:delay=20:poison=64k"

struct way {
    int times;       /* exchanges tried */
    int fine;        /* the first of them, which succeed however long they take */
    bool split;      /* of a comm with its communicator made by then */
    bool killed;     /* rank 1 goes at the last of them */
    int64_t wait_ms; /* of finish, for those that do not */
    int64_t abort_ms;
    dt_status abort; /* what it must say */
    /* ranks without an error of their own give up a call that still waits: no abort succeeds */
    bool abandons;
};

/* Final state of each rank. */
struct told {
    dt_status status[RANKS_MOST];
    char message[RANKS_MOST][300];
    int messages; /* descriptor for standard error */
};

extern _Atomic int64_t dt_nccl_patience_ns; /* with a post */

static struct told *told;

static dt_status one_exchange(struct dt_comm *comm, char *memory, int64_t wait_ms, bool dies)
{
    struct dt_device *device = comm->device;
    struct dt_request request = {.bytes = 0};
    size_t all = (size_t)comm->size * BYTES;
    DT_TRY(dt_comm_alltoall(comm, memory, memory + all, BYTES, &request));
    if (dies)
        raise(SIGKILL);
    DT_TRY(comm->ops->wait(comm, &request));
    return device->compute->finish(device, dt_clock_ns() + wait_ms * MS, ranks_check, comm);
}

/* Reports the fault's sentence, then ends the comm as a worker would. */
static dt_status go_wrong(struct dt_comm *world, void *arg)
{
    const struct way *way = arg;
    struct dt_comm *comm = world, *part = NULL;
    char *memory = ranks_alloc(world, 2 * (size_t)world->size * BYTES);
    dt_status status = DT_OK;
    if (way->split)
        status = world->ops->split(world, 0, world->rank, NULL, &part);
    comm = part != NULL ? part : world;
    for (int i = 1; status == DT_OK && i <= way->times; i++)
        status = one_exchange(comm, memory, i <= way->fine ? PATIENCE_MS : way->wait_ms,
                              way->killed && comm->rank == 1 && i == way->times);
    told->status[world->rank] = status;
    snprintf(told->message[world->rank], sizeof told->message[0], "%s", dt_message());
    bool own = strstr(told->message[world->rank], "another rank") == NULL;
    dt_status abort = way->abandons && !own ? DT_ETIMEOUT : way->abort;
    if (status != DT_OK && comm->ops->abort(comm, dt_clock_ns() + way->abort_ms * MS) != abort)
        return dt_fail(DT_FAILED, "the abort of rank %d: %s", world->rank, dt_message());
    if (abort == DT_OK)
        ranks_release(world, memory); /* waits for the device, which is free again */
    dt_comm_free(part); /* NOLINT(clang-analyzer-unix.Malloc): a stuck device keeps its memory */
    return DT_OK;
}

static void go(int ranks, const char *fault, struct way way)
{
    char settings[300];
    memset(told, 0, sizeof *told);
    snprintf(settings, sizeof settings, MACHINE ":%s", fault);
    setenv("DITTUNE_FAKE_CUDA", settings, 1);
    way.times = way.times != 0 ? way.times : 3;
    way.wait_ms = way.wait_ms != 0 ? way.wait_ms : PATIENCE_MS;
    way.abort_ms = way.abort_ms != 0 ? way.abort_ms : PATIENCE_MS;
    dt_status statuses[RANKS_MOST] = {0};
    (void)ranks_run(processes, ranks, go_wrong, &way, statuses);
    for (int i = 0; i < ranks; i++)
        if (!(way.killed && i == 1))
            assert_int_equal(statuses[i], DT_OK);
}

static void expect(int rank, dt_status status, const char *words)
{
    if (told->status[rank] != status || strstr(told->message[rank], words) == NULL)
        fail_msg("rank %d: %d, '%s'; expected %d, '%s'", rank, told->status[rank],
                 told->message[rank], status, words);
}

static void exchanges_succeed_without_a_fault(void **state)
{
    (void)state;
    go(3, "seed=1", (struct way){.split = true});
    for (int i = 0; i < 3; i++)
        expect(i, DT_OK, "");
    go(2, "fault=exchange,do=delay,ms=300,rank=1", (struct way){.split = true});
    for (int i = 0; i < 2; i++)
        expect(i, DT_OK, "");
}

/* The rank that could not post says so; the others run into their deadline. */
static void an_error_at_the_post_is_reported(void **state)
{
    (void)state;
    go(2, "fault=ncclAlltoAll,code=3,at=2,rank=1",
       (struct way){.split = true, .fine = 1, .wait_ms = 500});
    expect(1, DT_ELIB, "communicator lost: ncclAlltoAll failed: internal error");
    expect(0, DT_ETIMEOUT, "");
    go(2, "fault=cudaEventRecord,code=1,at=3,rank=0",
       (struct way){.split = true, .fine = 1, .wait_ms = 500});
    expect(0, DT_ELIB, "");
}

static void a_late_error_is_reported(void **state)
{
    (void)state;
    go(2, "fault=exchange,do=error,code=6,at=2", (struct way){.split = true});
    for (int i = 0; i < 2; i++)
        expect(i, DT_ELIB,
               " an exchange failed: remote process exited or there was a network error");
}

static void a_lost_exchange_ends_at_the_deadline(void **state)
{
    (void)state;
    static const char *const faults[] = {"fault=exchange,do=hang,at=2,rank=1",
                                         "fault=exchange,do=drop,at=1,rank=0"};
    for (int i = 0; i < 2; i++) {
        go(2, faults[i], (struct way){.split = true, .fine = 1 - i, .wait_ms = 500});
        expect(0, DT_ETIMEOUT, "");
        expect(1, DT_ETIMEOUT, "");
    }
}

/* Nothing of it may be touched any more, and the process can still leave. */
static void an_abort_that_hangs_has_a_deadline(void **state)
{
    (void)state;
    go(2, "fault=exchange,do=hang,at=2:fault=ncclCommAbort,do=hang,at=0",
       (struct way){
           .split = true, .fine = 1, .wait_ms = 500, .abort_ms = 300, .abort = DT_ETIMEOUT});
    expect(0, DT_ETIMEOUT, "");
    expect(1, DT_ETIMEOUT, "");
}

/* The exchange that it posted hangs, or the fake GPU of a rank that is killed
 * could have finished it. */
static void a_killed_rank_costs_the_others_a_deadline(void **state)
{
    (void)state;
    go(3, "seed=2:fault=exchange,do=hang,at=3,rank=1",
       (struct way){.split = true, .fine = 2, .killed = true, .wait_ms = 1000});
    expect(0, DT_ETIMEOUT, "");
    expect(2, DT_ETIMEOUT, "");
}

/* Two communicators of the same ranks: the first one's exchange hangs, the second
 * one's comes after it. */
static dt_status overtake(struct dt_comm *world, void *arg)
{
    const int64_t *wait_ms = arg;
    const struct dt_comm_config configs[2] = {{.ctas = 1}, {.ctas = 2}};
    struct dt_comm *parts[2] = {NULL, NULL};
    struct dt_request request = {.bytes = 0};
    char *memory = ranks_alloc(world, 4 * (size_t)world->size * BYTES);
    dt_status status = DT_OK;
    for (int i = 0; status == DT_OK && i < 2; i++)
        status = world->ops->split(world, 0, world->rank, &configs[i], &parts[i]);
    if (status == DT_OK)
        status = dt_comm_alltoall(parts[0], memory, memory + (size_t)world->size * BYTES, BYTES,
                                  &request);
    if (status == DT_OK)
        status = one_exchange(parts[1], memory + 2 * (size_t)world->size * BYTES, *wait_ms, false);
    told->status[world->rank] = status;
    _exit(0); /* what hangs is left */
}

static void with_a_stream_each_exchanges_do_not_wait_for_others(void **state)
{
    (void)state;
    int64_t brief = 500, patient = PATIENCE_MS;
    setenv("DITTUNE_FAKE_CUDA", MACHINE ":fault=exchange,do=hang,at=1", 1);
    (void)ranks_run(processes, 2, overtake, &brief, NULL);
    expect(0, DT_ETIMEOUT, "");
    expect(1, DT_ETIMEOUT, "");
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1);
    (void)ranks_run(processes, 2, overtake, &patient, NULL);
    unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    expect(0, DT_OK, "");
    expect(1, DT_OK, "");
}

/* Its second exchange does not return from NCCL on rank 1. */
static dt_status never_return(struct dt_comm *world, void *arg)
{
    (void)arg;
    char *memory = ranks_alloc(world, 2 * (size_t)world->size * BYTES);
    struct dt_comm *part = NULL;
    dt_status status = world->ops->split(world, 0, world->rank, NULL, &part);
    if (status == DT_OK)
        status = one_exchange(part, memory, PATIENCE_MS, false);
    if (world->rank == 1) {
        (void)dup2(told->messages, STDERR_FILENO);
        dt_nccl_patience_ns = 100 * MS;
    }
    if (status == DT_OK)
        status = one_exchange(part, memory, 500, false);
    told->status[world->rank] = status;
    _exit(0); /* also of rank 1, if the watchdog is asleep */
}

static void a_post_that_hangs_ends_its_process(void **state)
{
    (void)state;
    dt_status statuses[2] = {0};
    char said[200] = "";
    int ends[2];
    memset(told, 0, sizeof *told);
    assert_int_equal(pipe(ends), 0);
    told->messages = ends[1];
    setenv("DITTUNE_FAKE_CUDA", MACHINE ":fault=ncclAlltoAll,do=hang,at=2,rank=1", 1);
    (void)ranks_run(processes, 2, never_return, NULL, statuses);
    close(ends[1]);
    assert_true(read(ends[0], said, sizeof said - 1) > 0);
    close(ends[0]);
    assert_int_equal(statuses[0], DT_OK);
    assert_int_equal(statuses[1], DT_FAILED); /* it exited with 1 */
    assert_int_equal(told->status[0], DT_ETIMEOUT);
    assert_string_equal(said,
                        "NCCL did not return from a post in 100 ms: a rank is hung or dead\n");
}

/* Nobody waits for a rank that could not begin. */
static void a_failed_communicator_is_reported_to_all(void **state)
{
    (void)state;
    go(3, "fault=ncclCommInitRankConfig,code=2,rank=1",
       (struct way){.split = true, .abandons = true});
    expect(1, DT_ELIB, "communicator lost: ncclCommInitRankConfig failed: unhandled system error");
    expect(0, DT_ELIB, "no communicator: another rank could not");
    expect(2, DT_ELIB, "no communicator: another rank could not");
    go(2, "fault=ncclCommInitRankConfig,code=5,rank=0", (struct way){.times = 1, .abandons = true});
    expect(0, DT_ELIB, "communicator lost: ncclCommInitRankConfig failed: invalid usage");
    expect(1, DT_ELIB, "no communicator: another rank could not");
}

/* The n-th call that makes a communicator fails: so many were made before. */
static dt_status keep(struct dt_comm *world, void *arg)
{
    const int *ctas = arg; /* 0-ended */
    char *memory = ranks_alloc(world, 2 * (size_t)world->size * BYTES);
    dt_status status = DT_OK;
    int made = 0;
    for (; status == DT_OK && ctas[made] != 0; made += status == DT_OK) {
        struct dt_comm_config config = {.ctas = ctas[made]};
        struct dt_comm *part = NULL;
        status = world->ops->split(world, 0, world->rank, &config, &part);
        if (status == DT_OK)
            status = one_exchange(part, memory, PATIENCE_MS, false);
        dt_comm_free(part);
    }
    told->status[world->rank] = made;
    ranks_release(world, memory);
    return DT_OK;
}

static void expect_kept(int nth, const int ctas[], int made)
{
    char settings[200];
    snprintf(settings, sizeof settings, MACHINE ":fault=ncclCommInitRankConfig,code=2,at=%d", nth);
    setenv("DITTUNE_FAKE_CUDA", settings, 1);
    assert_int_equal(ranks_run(processes, 2, keep, (void *)(uintptr_t)ctas, NULL), DT_OK);
    assert_int_equal(told->status[0], made);
    assert_int_equal(told->status[1], made);
}

static void unused_communicators_are_cached(void **state)
{
    (void)state;
    expect_kept(2, (const int[]){1, 1, 1, 2, 0}, 3);
    expect_kept(5, (const int[]){1, 2, 3, 4, 2, 1, 4, 3, 5, 0}, 8);    /* 4 stay */
    expect_kept(6, (const int[]){1, 2, 3, 4, 5, 2, 3, 4, 5, 1, 0}, 9); /* the first has gone */
    expect_kept(6, (const int[]){1, 2, 3, 4, 1, 5, 1, 3, 2, 0}, 8); /* the second, not used since */
}

/* Exchanges between windows, of a comm and of all; the fake NCCL complains of
 * memory that is none. */
static dt_status use_windows(struct dt_comm *world, void *arg)
{
    struct dt_comm_config config = {.ctas = 4, .windows = true};
    void *first = NULL, *second = NULL;
    struct dt_comm *part = NULL;
    size_t all = (size_t)world->size * BYTES;
    char *host = calloc(2, all);
    (void)arg;
    dt_status status = world->ops->alloc(world, (int64_t)(2 * all + (size_t)world->rank), &first);
    if (status == DT_OK)
        status = world->ops->split(world, 0, world->rank, &config, &part);
    if (status == DT_OK)
        status = part->ops->alloc(part, (int64_t)(2 * all), &second);
    for (int i = 0; status == DT_OK && i < 2; i++) {
        char *memory = i == 0 ? first : second;
        memset(host, 'a' + world->rank, 2 * all);
        ranks_put(world, memory, host, 2 * all);
        status = one_exchange(part, memory, PATIENCE_MS, false);
        if (status == DT_OK)
            status = ranks_get(world, host, memory + all, all);
        for (size_t k = 0; status == DT_OK && k < all; k++)
            if (host[k] != 'a' + (char)(k / BYTES))
                status = dt_fail(DT_FAILED, "byte %zu of window %d is wrong", k, i);
    }
    free(host);
    if (second != NULL)
        part->ops->release(part, second);
    dt_comm_free(part);
    if (first != NULL)
        world->ops->release(world, first);
    if (status == DT_OK && *dt_fake_cuda_complaint() != '\0')
        return dt_fail(DT_FAILED, "%s", dt_fake_cuda_complaint());
    return status;
}

static void windows_are_registered(void **state)
{
    (void)state;
    dt_status statuses[2] = {0};
    setenv("DITTUNE_FAKE_CUDA", MACHINE, 1);
    assert_int_equal(ranks_run(processes, 2, use_windows, NULL, NULL), DT_OK);
    setenv("DITTUNE_FAKE_CUDA", MACHINE ":fault=ncclCommWindowRegister,code=3", 1);
    assert_int_equal(ranks_run(processes, 2, use_windows, NULL, statuses), DT_ELIB);
    setenv("DITTUNE_FAKE_CUDA", MACHINE ":fault=ncclMemAlloc,code=1", 1);
    assert_int_equal(ranks_run(processes, 2, use_windows, NULL, statuses), DT_ENOMEM);
}

/* Its end of a window, or of memory, does not return from NCCL. */
static dt_status never_release(struct dt_comm *world, void *arg)
{
    struct dt_comm_config config = {.windows = true};
    struct dt_comm *part = NULL;
    size_t all = (size_t)world->size * BYTES;
    void *memory = NULL;
    (void)arg;
    dt_status status = world->ops->split(world, 0, world->rank, &config, &part);
    if (status == DT_OK)
        status = part->ops->alloc(part, (int64_t)(2 * all), &memory);
    if (status == DT_OK)
        status = one_exchange(part, memory, PATIENCE_MS, false);
    if (status != DT_OK)
        return status;
    dt_nccl_patience_ns = 100 * MS;
    part->ops->release(part, memory);
    struct dt_request request = {.bytes = 0};
    told->status[world->rank] =
        dt_comm_alltoall(part, memory, (char *)memory + all, BYTES, &request);
    snprintf(told->message[world->rank], sizeof told->message[0], "%s", dt_message());
    _exit(0); /* what hangs is left */
}

static void what_is_released_on_a_hung_gpu_has_a_deadline(void **state)
{
    static const char *const names[] = {"ncclCommWindowDeregister", "ncclMemFree"};
    static const char *const faults[] = {"ncclCommWindowDeregister", "cudaFree"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char settings[200], words[100];
        memset(told, 0, sizeof *told);
        snprintf(settings, sizeof settings, MACHINE ":fault=%s,do=hang,at=0", faults[i]);
        snprintf(words, sizeof words, "communicator lost: no end of %s: a rank is hung or dead",
                 names[i]);
        setenv("DITTUNE_FAKE_CUDA", settings, 1);
        assert_int_equal(ranks_run(processes, 2, never_release, NULL, NULL), DT_OK);
        for (int rank = 0; rank < 2; rank++)
            expect(rank, DT_ELIB, words);
    }
}

/* The planted fault of docs/protocol.md, in the memory of a GPU. */
static dt_status flip(struct dt_comm *world, void *arg)
{
    struct dt_comm *part = NULL, *comm = NULL;
    struct dt_request request = {.bytes = 0};
    float sent[8] = {1, 2, 3, 4, 5, 6, 7, 8}, got[8] = {0};
    float *memory = ranks_alloc(world, 2 * sizeof sent);
    (void)arg;
    ranks_put(world, memory, sent, sizeof sent);
    dt_status status = world->ops->split(world, 0, world->rank, NULL, &part);
    if (status == DT_OK)
        status = dt_comm_fault(part, "flip:rank=1:exchange=1:element=5", &comm);
    if (status == DT_OK && comm != NULL)
        status = dt_comm_shift(comm, memory, memory + 8, sizeof sent, &request);
    if (status == DT_OK && comm != NULL)
        status = comm->ops->wait(comm, &request);
    if (status == DT_OK)
        status = ranks_get(world, got, memory + 8, sizeof got);
    for (int i = 0; status == DT_OK && i < 8; i++)
        if (got[i] != (i == 5 && world->rank == 1 ? -sent[i] : sent[i]))
            status = dt_fail(DT_FAILED, "rank %d: element %d is %g", world->rank, i, got[i]);
    dt_comm_free(comm != NULL ? comm : part);
    ranks_release(world, memory);
    return status;
}

static void a_planted_fault_strikes_on_a_gpu(void **state)
{
    (void)state;
    setenv("DITTUNE_FAKE_CUDA", MACHINE, 1);
    assert_int_equal(ranks_run(processes, 2, flip, NULL, NULL), DT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_succeed_without_a_fault),
        cmocka_unit_test(an_error_at_the_post_is_reported),
        cmocka_unit_test(a_late_error_is_reported),
        cmocka_unit_test(a_lost_exchange_ends_at_the_deadline),
        cmocka_unit_test(an_abort_that_hangs_has_a_deadline),
        cmocka_unit_test(with_a_stream_each_exchanges_do_not_wait_for_others),
        cmocka_unit_test(a_post_that_hangs_ends_its_process),
        cmocka_unit_test(a_killed_rank_costs_the_others_a_deadline),
        cmocka_unit_test(a_failed_communicator_is_reported_to_all),
        cmocka_unit_test(unused_communicators_are_cached),
        cmocka_unit_test(windows_are_registered),
        cmocka_unit_test(what_is_released_on_a_hung_gpu_has_a_deadline),
        cmocka_unit_test(a_planted_fault_strikes_on_a_gpu),
    };
    told = ranks_common(sizeof *told);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
