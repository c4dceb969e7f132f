/* SPDX-License-Identifier: MIT */
/* Shares add up to the whole network's operations; bytes against sums made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/cost.h"

#include <math.h>

static struct dt_workload make(void)
{
    struct dt_workload workload = {.guidance = true, .sampler_steps = 50};
    assert_int_equal(dt_network_load("dit-s/2", &workload.network), DT_OK);
    workload.height = workload.width = workload.network.latent_size;
    return workload;
}

static struct dt_plan plan_of(int cfg, int ulysses, int ring)
{
    struct dt_plan plan = dt_plan_fallback;
    plan.ranks = cfg * ulysses * ring;
    plan.cfg = cfg;
    plan.ulysses = ulysses;
    plan.ring = ring;
    plan.batch = 4;
    return plan;
}

/* Guided halves are whole; what every rank of a sequence does once more is a thousandth. */
static void test_shares_add_up(void **state)
{
    (void)state;
    struct dt_workload workload = make();
    double whole = dt_workload_flops(&workload, 4);
    static const int rows[][3] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 4}, {2, 3, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dt_plan plan = plan_of(rows[i][0], rows[i][1], rows[i][2]);
        double sum = dt_cost_of(&workload, &plan).flops * plan.ranks;
        bool exact = plan.ulysses * plan.ring == 1;
        assert_true(fabs(sum / whole - 1) < (exact ? 1e-12 : 0.03));
        assert_true(sum >= whole * (1 - 1e-12));
    }
}

/* DiT-S/2: 12 blocks, 384 channels, 256 tokens; 4 images x 2 passes = 8 sequences of float32. */
static void exchanged_bytes_match_a_count_by_hand(void **state)
{
    (void)state;
    struct dt_workload workload = make();
    struct dt_plan one = plan_of(1, 1, 1), ulysses = plan_of(1, 2, 1), ring = plan_of(1, 1, 4),
                   cfg = plan_of(2, 1, 1);
    assert_true(dt_cost_of(&workload, &one).bytes == 0);
    assert_true(dt_cost_of(&workload, &ulysses).bytes == 12. * 8 * 128 * 384 * 4 * 4 / 2);
    assert_true(dt_cost_of(&workload, &ring).bytes == 12. * 8 * 64 * 384 * 2 * 3 * 4);
    assert_true(dt_cost_of(&workload, &cfg).bytes == 4. * 256 * 4 * 4 * 4);
}

static void test_more_threads_than_cores_gain_nothing(void **state)
{
    (void)state;
    struct dt_workload workload = make();
    struct dt_plan two = plan_of(2, 1, 1), four = plan_of(1, 1, 1);
    double half = dt_cost_step(&workload, &two, 2, 0);
    four.threads = 4;
    assert_true(fabs(dt_cost_step(&workload, &four, 2, 0) / half - 1) < 1e-12);
    assert_true(fabs(dt_cost_step(&workload, &four, 4, 0) / half - 0.5) < 1e-12);
    two.threads = 2;
    assert_true(fabs(dt_cost_step(&workload, &two, 4, 0) / half - 0.5) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_add_up),
        cmocka_unit_test(exchanged_bytes_match_a_count_by_hand),
        cmocka_unit_test(test_more_threads_than_cores_gain_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
