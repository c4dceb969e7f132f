/* SPDX-License-Identifier: MIT */
/* Errors of the ranks of a shared comm when one of them ends, and the cost of waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tests/kernels/ranks.h"

static const struct ranks *const threads = &ranks_rows[1], *const processes = &ranks_rows[2];

enum { BYTES = 500000 }; /* of a block: more than lies between two ranks */

struct going {
    int rank, before; /* exchanges that rank takes part in before */
    bool killed;      /* else it frees its comm and goes */
    bool halfway;     /* it has posted the exchange */
};

static dt_status exchange_until_gone(struct dt_comm *comm, void *arg)
{
    const struct going *going = arg;
    char *data = calloc((size_t)comm->size * 2, BYTES);
    dt_status status = DT_OK;
    for (int i = 0; status == DT_OK && i < going->before + 3; i++) {
        struct dt_request request = {.bytes = 0};
        bool goes = comm->rank == going->rank && i == going->before;
        if (!goes || going->halfway)
            status =
                dt_comm_alltoall(comm, data, data + (size_t)comm->size * BYTES, BYTES, &request);
        if (goes && going->killed)
            raise(SIGKILL);
        if (goes)
            break;
        if (status == DT_OK)
            status = comm->ops->wait(comm, &request);
    }
    free(data);
    return status;
}

static void expect_told(const struct ranks *kind, struct going going)
{
    for (int size = 2; size <= 4; size++) {
        dt_status statuses[RANKS_MOST] = {0};
        going.rank = size - 1;
        assert_int_not_equal(ranks_run(kind, size, exchange_until_gone, &going, statuses), DT_OK);
        for (int i = 0; i < size - 1; i++)
            assert_int_equal(statuses[i], DT_EDEAD);
        assert_int_equal(statuses[size - 1], going.killed ? DT_FAILED : DT_OK);
    }
}

/* Its parent has not asked for its end yet: it is a zombie, and still dead. */
static void a_killed_rank_ends_the_waits_for_it(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++)
        for (int halfway = 0; halfway < 2; halfway++)
            expect_told(processes,
                        (struct going){.before = before, .killed = true, .halfway = halfway != 0});
}

static void a_rank_that_left_ends_the_waits_for_it(void **state)
{
    (void)state;
    expect_told(processes, (struct going){.before = 1});
    expect_told(threads, (struct going){.before = 1});
    expect_told(threads, (struct going){.before = 0, .halfway = true});
}

/* Data sent before a rank leaves arrives. */
static dt_status send_and_leave(struct dt_comm *comm, void *arg)
{
    char own[64] = "from 0", got[64] = "";
    struct dt_message to = {1, own, sizeof own}, from = {0, got, sizeof got};
    struct dt_request request = {.bytes = 0};
    (void)arg;
    while (comm->rank == 1 && __atomic_load_n(ranks_gone, __ATOMIC_SEQ_CST) == 0)
        dt_clock_sleep_ns(DT_NS_PER_SECOND / 1000);
    const struct dt_pieces pieces = {&to, &from, comm->rank == 0, comm->rank == 1};
    DT_TRY(dt_comm_exchange(comm, &pieces, &request));
    DT_TRY(comm->ops->wait(comm, &request));
    return comm->rank == 0 || strcmp(got, own) == 0
               ? DT_OK
               : dt_fail(DT_FAILED, "what was sent before did not arrive");
}

static void what_was_sent_before_arrives(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(threads, 2, send_and_leave, NULL, NULL), DT_OK);
    assert_int_equal(ranks_run(processes, 2, send_and_leave, NULL, NULL), DT_OK);
}

static dt_status disagree(struct dt_comm *comm, void *arg)
{
    char out[8] = "", in[16];
    struct dt_message to = {1 - comm->rank, out, sizeof out},
                      from = {1 - comm->rank, in, sizeof in};
    struct dt_request request = {.bytes = 0};
    (void)arg;
    from.bytes = comm->rank == 0 ? 16 : 8;
    dt_status status = dt_comm_exchange(comm, &(struct dt_pieces){&to, &from, 1, 1}, &request);
    if (status == DT_OK)
        status = comm->ops->wait(comm, &request);
    if (comm->rank == 0 && status == DT_OK)
        return DT_OK;
    return comm->rank == 0 && strstr(dt_message(), "sent 8 bytes where") == NULL ? DT_FAILED
                                                                                 : status;
}

static void sizes_that_differ_are_an_error(void **state)
{
    (void)state;
    for (int row = 0; row < RANKS_ROWS; row++) {
        dt_status statuses[2] = {0};
        assert_int_not_equal(ranks_run(&ranks_rows[row], 2, disagree, NULL, statuses), DT_OK);
        assert_int_equal(statuses[0], DT_ELIB);
    }
}

static dt_status wait_for_a_slow_one(struct dt_comm *comm, void *arg)
{
    int64_t *used = arg;
    int64_t before = dt_clock_thread_ns();
    if (comm->rank == 1)
        dt_clock_sleep_ns(2 * DT_NS_PER_SECOND);
    DT_TRY(comm->ops->barrier(comm));
    if (comm->rank == 0)
        *used = dt_clock_thread_ns() - before;
    return DT_OK;
}

/* Processor time, so other programs do not count. */
static void waiting_costs_no_core(void **state)
{
    (void)state;
    int64_t *used = ranks_common(sizeof *used);
    assert_int_equal(ranks_run(processes, 2, wait_for_a_slow_one, used, NULL), DT_OK);
    print_message("a wait of 2 s took %.3f ms of a core\n", (double)*used / 1e6);
    assert_true(*used < DT_NS_PER_SECOND / 50); /* 1 % of it */
    munmap(used, sizeof *used);
}

static void a_region_of_another_size_is_refused(void **state)
{
    (void)state;
    struct dt_comm *comm = NULL;
    int fd = -1;
    assert_int_equal(dt_shared_new(0, &fd), DT_EUSAGE);
    assert_int_equal(dt_shared_new(3, &fd), DT_OK);
    assert_int_equal(dt_comm_shared(fd, 0, 2, &comm), DT_EUSAGE);
    assert_int_equal(dt_comm_shared(fd, 3, 3, &comm), DT_EUSAGE);
    assert_int_equal(dt_comm_shared(fd, 2, 3, &comm), DT_OK);
    dt_comm_free(comm);
    close(fd);
    assert_int_equal(dt_comm_shared(fd, 2, 3, &comm), DT_ELIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_rank_ends_the_waits_for_it),
        cmocka_unit_test(a_rank_that_left_ends_the_waits_for_it),
        cmocka_unit_test(what_was_sent_before_arrives),
        cmocka_unit_test(sizes_that_differ_are_an_error),
        cmocka_unit_test(waiting_costs_no_core),
        cmocka_unit_test(a_region_of_another_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
