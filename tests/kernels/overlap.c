/* SPDX-License-Identifier: MIT */
/* The order of events on fake ranks: what overlap promises is that the next exchange is posted
 * before this block is computed; with a virtual clock that hides the whole delay behind a long
 * computation. And what happens when an exchange goes wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/kernels/case.h"

#define DELAY_NS 5000000

static struct dt_workload one_block(void)
{
    struct dt_workload workload = case_workload(4, 8, 8, 8);
    workload.guidance = false;
    workload.network.depth = 1;
    return workload;
}

/* One step of the plan; the log and clocks of rank 0. */
static void record(const struct dt_workload *workload, const struct dt_plan *plan,
                   const struct dt_fake_options *options, struct dt_fake **fake)
{
    struct dt_weights *weights = NULL;
    float *out = calloc((size_t)case_image(workload), sizeof *out);
    assert_int_equal(dt_weights_new(workload, case_device(), &weights), DT_OK);
    struct case_run run = {
        .workload = workload, .plan = plan, .weights = weights, .steps = 1, .out = out};
    assert_int_equal(dt_fake_new(plan->ranks, options, fake), DT_OK);
    assert_int_equal(dt_fake_run(*fake, case_body, &run, NULL), DT_OK);
    dt_weights_free(weights);
    free(out);
}

static void expect_log(struct dt_plan plan, const char *expected)
{
    struct dt_workload workload = one_block();
    struct dt_fake *fake = NULL;
    record(&workload, &plan, &(struct dt_fake_options){0}, &fake);
    for (int rank = 0; rank < plan.ranks; rank++)
        assert_string_equal(dt_fake_log(fake, rank), expected);
    dt_fake_free(fake);
}

static void ring_posts_before_it_computes(void **state)
{
    (void)state;
    struct dt_plan plan = case_plan(1, 1, 3);
    plan.overlap = 1;
    expect_log(plan, "post 0;attention 0;wait 0;post 1;attention 0;wait 1;attention 0;");
    plan.overlap = 0;
    expect_log(plan, "attention 0;post 0;wait 0;attention 0;post 1;wait 1;attention 0;");
}

static void ulysses_posts_the_next_chunk_before_it_computes(void **state)
{
    (void)state;
    struct dt_plan plan = case_plan(1, 2, 1);
    plan.chunks = 2;
    plan.overlap = 1;
    expect_log(plan, "post 0;post 1;wait 0;attention 0;post 2;wait 1;attention 0;post 3;"
                     "wait 2;wait 3;");
    plan.overlap = 0;
    expect_log(plan, "post 0;wait 0;attention 0;post 1;wait 1;"
                     "post 2;wait 2;attention 0;post 3;wait 3;");
}

static void both_together_overlap(void **state)
{
    (void)state;
    struct dt_plan plan = case_plan(1, 2, 2);
    plan.chunks = 2;
    plan.overlap = 1;
    expect_log(plan, "post 0;post 1;wait 0;post 2;attention 0;wait 2;attention 0;post 3;"
                     "wait 1;post 4;attention 0;wait 4;attention 0;post 5;wait 3;wait 5;");
}

/* Time a ring of three stands still in one step. */
static int64_t ring_exposed(int overlap, int64_t compute_ns)
{
    struct dt_workload workload = one_block();
    struct dt_plan plan = case_plan(1, 1, 3);
    struct dt_fake_options options = {.delay_ns = DELAY_NS, .compute_ns = compute_ns};
    struct dt_fake *fake = NULL;
    plan.overlap = overlap;
    record(&workload, &plan, &options, &fake);
    int64_t exposed = dt_fake_exposed_ns(fake, 0);
    assert_int_equal(dt_fake_clock_ns(fake, 0), exposed + 3 * compute_ns);
    dt_fake_free(fake);
    return exposed;
}

static void a_long_computation_hides_the_delay(void **state)
{
    (void)state;
    assert_int_equal(ring_exposed(1, 20000000), 0);
    assert_int_equal(ring_exposed(0, 20000000), 2 * DELAY_NS);
    assert_int_equal(ring_exposed(1, 2000000), 2 * (DELAY_NS - 2000000)); /* as much as there is */
}

static int64_t ulysses_exposed(int overlap, int chunks)
{
    struct dt_workload workload = one_block();
    struct dt_plan plan = case_plan(1, 2, 1);
    struct dt_fake_options options = {.delay_ns = DELAY_NS, .compute_ns = 20000000};
    struct dt_fake *fake = NULL;
    plan.overlap = overlap;
    plan.chunks = chunks;
    record(&workload, &plan, &options, &fake);
    int64_t exposed = dt_fake_exposed_ns(fake, 0);
    dt_fake_free(fake);
    return exposed;
}

/* The first chunk's way in and the last one's way out have nothing to hide behind. */
static void chunks_hide_all_but_the_first_and_the_last(void **state)
{
    (void)state;
    assert_int_equal(ulysses_exposed(0, 1), 2 * DELAY_NS);
    assert_int_equal(ulysses_exposed(0, 2), 4 * DELAY_NS);
    assert_int_equal(ulysses_exposed(1, 2), 2 * DELAY_NS);
}

/* Exchanges take 5 ms each, the computations between them 6 ms: the share of the delay that
 * overlap hides on the worst rank is at least `least`. `ends` exchanges of a block have no
 * computation beside them. */
static void expect_hidden(struct dt_plan plan, int ends, double least)
{
    struct dt_workload workload = case_workload(12, 8, 8, 8);
    struct dt_fake_options options = {.delay_ns = DELAY_NS, .compute_ns = 6000000};
    int64_t exposed[2] = {0, 0}, clock[2] = {0, 0};
    workload.guidance = false;
    for (int overlap = 0; overlap < 2; overlap++) {
        struct dt_fake *fake = NULL;
        plan.overlap = overlap;
        record(&workload, &plan, &options, &fake);
        for (int rank = 0; rank < plan.ranks; rank++) {
            int64_t ns = dt_fake_exposed_ns(fake, rank);
            exposed[overlap] = ns > exposed[overlap] ? ns : exposed[overlap];
            ns = dt_fake_clock_ns(fake, rank);
            clock[overlap] = ns > clock[overlap] ? ns : clock[overlap];
        }
        dt_fake_free(fake);
    }
    int64_t bare = (int64_t)ends * workload.network.depth * DELAY_NS;
    double hidden = 1 - (double)exposed[1] / (double)exposed[0];
    print_message("ulysses=%d ring=%d chunks=%d: %2lld of %3lld ms of delay left: %3.0f %% hidden; "
                  "%3.0f %% of what has a computation beside it\n",
                  plan.ulysses, plan.ring, plan.chunks, (long long)exposed[1] / 1000000,
                  (long long)exposed[0] / 1000000, 100 * hidden,
                  100 * (double)(exposed[0] - exposed[1]) / (double)(exposed[0] - bare));
    assert_true(exposed[0] >= 2 * DELAY_NS && clock[0] - clock[1] == exposed[0] - exposed[1]);
    assert_int_equal(exposed[1], bare);
    assert_true(hidden >= least);
}

static void four_fifths_of_the_delay_are_hidden(void **state)
{
    (void)state;
    struct dt_plan plan = case_plan(1, 2, 1);
    for (int ring = 2; ring <= 4; ring++)
        expect_hidden(case_plan(1, 1, ring), 0, 0.8);
    plan.chunks = 3;
    expect_hidden(plan, 2, 0.66);
    plan.chunks = 6;
    expect_hidden(plan, 2, 0.8);
    plan = case_plan(1, 2, 3);
    plan.chunks = 6;
    expect_hidden(plan, 2, 0.8);
}

static dt_status run_faulty(const struct dt_plan *plan, const struct dt_fake_options *options,
                            struct case_run *run, int *exchanges)
{
    struct dt_fake *fake = NULL;
    assert_int_equal(dt_fake_new(plan->ranks, options, &fake), DT_OK);
    dt_status status = dt_fake_run(fake, case_body, run, NULL);
    if (exchanges != NULL)
        *exchanges = dt_fake_exchanges(fake, options->fault_rank);
    dt_fake_free(fake);
    return status;
}

/* The comparison of two groups in docs/protocol.md. */
static double verified_error(const struct case_run *a, const struct case_run *b, int images)
{
    double worst = 0.0;
    for (int i = 0; i < images; i++) {
        double sum = 0.0;
        for (int k = 0; k < 16; k++)
            sum += pow(a->projections[i * 16 + k] - b->projections[i * 16 + k], 2) / 16;
        double error = sqrt(sum) / b->norm[i];
        worst = error > worst || isnan(error) ? error : worst;
    }
    return worst;
}

/* One negated element of one exchange of one rank, two steps in all; the error
 * that verification sees. */
static double error_of_flip(const struct case_run *reference, const struct dt_plan *plan,
                            int at_rank, int exchange, int element)
{
    struct case_run run = *reference;
    struct dt_fake_options options = {.fault = DT_FAKE_CORRUPT,
                                      .fault_rank = at_rank,
                                      .fault_exchange = exchange,
                                      .fault_element = element};
    run.plan = plan;
    assert_int_equal(run_faulty(plan, &options, &run, NULL), DT_OK);
    return verified_error(&run, reference, 1);
}

/* Every exchange of two steps on every rank, one at a time. On the second an element near zero
 * changes nothing that matters, so where the first does not show, another one must. */
static void one_wrong_element_is_caught(struct dt_plan plan)
{
    struct dt_workload workload = case_workload(4, 8, 16, 16);
    struct dt_weights *weights = NULL;
    struct dt_plan single = case_plan(1, 1, 1);
    int64_t size = case_image(&workload);
    float *out = calloc((size_t)size, sizeof *out);
    int exchanges = 0, second = 0;
    assert_int_equal(dt_weights_new(&workload, case_device(), &weights), DT_OK);
    struct case_run reference = {
        .workload = &workload, .plan = &single, .weights = weights, .steps = 2, .out = out};
    assert_int_equal(case_run_plan(&reference, &(struct dt_fake_options){0}), DT_OK);
    struct case_run run = reference;
    run.plan = &plan;
    assert_int_equal(run_faulty(&plan, &(struct dt_fake_options){0}, &run, &exchanges), DT_OK);
    assert_true(verified_error(&run, &reference, 1) < 5e-6);
    for (int rank = 0; rank < plan.ranks; rank++) {
        for (int exchange = 0; exchange < exchanges; exchange++) {
            int element = 101 + 7 * exchange;
            double error = error_of_flip(&reference, &plan, rank, exchange, element);
            if (exchange < exchanges / 2)
                assert_true(error > 0.9); /* counted word by word on the first step */
            if (error > 1e-5)
                continue;
            second++;
            if (!(error_of_flip(&reference, &plan, rank, exchange, element + 1) > 1e-5))
                fail_msg("rank %d, exchange %d: a flipped element is not seen", rank, exchange);
        }
    }
    print_message("%d of %d exchanges needed another element\n", second, plan.ranks * exchanges);
    assert_true(second <= plan.ranks * exchanges / 20);
    dt_weights_free(weights);
    free(out);
}

static void a_flipped_element_is_caught(void **state)
{
    (void)state;
    struct dt_plan plan = case_plan(2, 2, 1);
    plan.chunks = 2;
    one_wrong_element_is_caught(plan);
    one_wrong_element_is_caught(case_plan(2, 1, 2));
    plan = case_plan(1, 2, 2);
    plan.overlap = 1;
    one_wrong_element_is_caught(plan);
}

/* Rank 0 collects from everybody, so it always learns of it; a rank that had only to
 * send may be done before. */
static void expect_statuses(const struct dt_plan *plan, struct case_run *run,
                            const struct dt_fake_options *options)
{
    struct dt_fake *fake = NULL;
    dt_status statuses[8];
    assert_int_equal(dt_fake_new(plan->ranks, options, &fake), DT_OK);
    assert_int_not_equal(dt_fake_run(fake, case_body, run, statuses), DT_OK);
    assert_int_equal(statuses[0], DT_ETIMEOUT);
    for (int rank = 1; rank < plan->ranks; rank++) {
        bool culprit = rank == options->fault_rank;
        if (culprit && options->fault == DT_FAKE_ERROR)
            assert_int_equal(statuses[rank], DT_ELIB);
        else
            assert_true(statuses[rank] == DT_ETIMEOUT || statuses[rank] == DT_OK);
    }
    dt_fake_free(fake);
}

static void expect_failure(enum dt_fake_fault fault)
{
    struct dt_workload workload = case_workload(4, 8, 8, 8);
    struct dt_weights *weights = NULL;
    float *out = calloc((size_t)case_image(&workload), sizeof *out);
    assert_int_equal(dt_weights_new(&workload, case_device(), &weights), DT_OK);
    for (int overlap = 0; overlap < 2; overlap++) {
        struct dt_plan plan = case_plan(2, 2, 2);
        plan.overlap = overlap;
        struct case_run run = {
            .workload = &workload, .plan = &plan, .weights = weights, .steps = 2, .out = out};
        for (int exchange = 0; exchange < 14; exchange++)
            expect_statuses(&plan, &run,
                            &(struct dt_fake_options){
                                .fault = fault, .fault_rank = 3, .fault_exchange = exchange});
    }
    dt_weights_free(weights);
    free(out);
}

static void a_dropped_exchange_is_a_status(void **state)
{
    (void)state;
    expect_failure(DT_FAKE_DROP);
}

static void a_refused_exchange_is_a_status(void **state)
{
    (void)state;
    expect_failure(DT_FAKE_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_posts_before_it_computes),
        cmocka_unit_test(ulysses_posts_the_next_chunk_before_it_computes),
        cmocka_unit_test(both_together_overlap),
        cmocka_unit_test(a_long_computation_hides_the_delay),
        cmocka_unit_test(chunks_hide_all_but_the_first_and_the_last),
        cmocka_unit_test(four_fifths_of_the_delay_are_hidden),
        cmocka_unit_test(a_flipped_element_is_caught),
        cmocka_unit_test(a_dropped_exchange_is_a_status),
        cmocka_unit_test(a_refused_exchange_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
