/* SPDX-License-Identifier: MIT */
/* The expected best of random search against every draw there is (small tables) and against Monte
 * Carlo (a large one); the score against its definition on runs worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "search/landscape/simulate.h"
#include "tests/lib/dose.h"

#include <math.h>
#include <stdio.h>

/* The mean of the least value over all subsets of t of the n. */
static double enumerate(const double values[], int n, int t)
{
    double sum = 0;
    int subsets = 0;
    for (unsigned set = 0; set < 1u << n; set++) {
        double least = INFINITY;
        if (__builtin_popcount(set) != t)
            continue;
        for (int i = 0; i < n; i++)
            if (set >> i & 1)
                least = fmin(least, values[i]);
        sum += least;
        subsets++;
    }
    return sum / subsets;
}

static void expectation_matches_every_draw(void **state)
{
    struct dt_rng rng = dt_rng_at(3, "score");
    (void)state;
    for (int n = 1; n <= 12; n++) {
        double values[12], ranked[12], expected[14], slowest = 0;
        for (int i = 0; i < n; i++) {
            double x = 1 + (double)dt_rng_below(&rng, 5); /* ties */
            values[i] = i > 0 && dt_rng_below(&rng, 4) == 0 ? NAN : x;
            slowest = fmax(slowest, isnan(values[i]) ? 0 : x);
        }
        for (int i = 0; i < n; i++)
            ranked[i] = isnan(values[i]) ? slowest : values[i];
        assert_int_equal(dt_score_random(values, n, n + 2, expected), DT_OK);
        for (int t = 1; t <= n; t++)
            assert_true(fabs(expected[t - 1] - enumerate(ranked, n, t)) < 1e-12);
        assert_true(expected[n] == expected[n - 1] && expected[n + 1] == expected[n - 1]);
    }
}

/* 4,000 runs, a quarter of them in the thin dose, of 100 draws from 20,000 log-normal values:
 * within five standard errors at each t. */
static void expectation_matches_a_simulation(void **state)
{
    enum { N = 20000, EVALS = 100 };
    static double values[N], sum[EVALS], squares[EVALS], expected[EVALS];
    const int runs = dose_thin() ? 1000 : 4000;
    struct dt_rng rng = dt_rng_at(4, "score");
    (void)state;
    for (int i = 0; i < N; i++)
        values[i] = exp(dt_rng_normal(&rng));
    for (int run = 0; run < runs; run++) {
        double least = INFINITY;
        int drawn[EVALS];
        for (int t = 0; t < EVALS; t++) {
            bool again = true;
            while (again) {
                again = false;
                drawn[t] = (int)dt_rng_below(&rng, N);
                for (int i = 0; i < t; i++)
                    again = again || drawn[i] == drawn[t];
            }
            least = fmin(least, values[drawn[t]]);
            sum[t] += least;
            squares[t] += least * least;
        }
    }
    assert_int_equal(dt_score_random(values, N, EVALS, expected), DT_OK);
    for (int t = 0; t < EVALS; t++) {
        double mean = sum[t] / runs, error = sqrt((squares[t] / runs - mean * mean) / runs);
        assert_true(fabs(mean - expected[t]) < 5 * error);
    }
}

/* The sum telescopes at t = 1 to the mean, and stays exact where binomial coefficients have left
 * every double behind. */
static void expectation_is_exact_for_large_spaces(void **state)
{
    enum { N = 1000000 };
    static double values[N];
    static double expected[N];
    (void)state;
    for (int i = 0; i < N; i++)
        values[i] = i + 1;
    assert_int_equal(dt_score_random(values, N, 150, expected), DT_OK);
    for (int t = 1; t <= 150; t++) /* of 1..N the least of t is (N + 1) / (t + 1) on average */
        assert_true(fabs(expected[t - 1] / ((N + 1.) / (t + 1)) - 1) < 1e-9);
}

static void score_follows_its_definition(void **state)
{
    const double expected[] = {5, 4, 2}, random[] = {5, 4, 2}, best[] = {1, 1, 1},
                 late[] = {9, 9, 1};
    const double sure[] = {5, 1, 1}, never[] = {1, 1, 1};
    (void)state;
    assert_true(dt_score_p(random, expected, 3, 1) == 0);
    assert_true(dt_score_p(best, expected, 3, 1) == 1);
    assert_true(fabs(dt_score_p(late, expected, 3, 1) - (-4. / 4 - 5. / 3 + 1) / 3) < 1e-15);
    assert_true(dt_score_p(late, sure, 3, 1) == -1);
    assert_true(dt_score_p(best, never, 3, 1) == 0);
}

static void best_so_far_skips_failures(void **state)
{
    struct dt_entry entries[] = {{.value = 3}, {.value = NAN}, {.value = 2}, {.value = 7}};
    const struct dt_landscape landscape = {
        .entries = entries, .count = 4, .optimum = 2, .slowest = 7};
    const int32_t order[] = {1, 3, 0, 1, 2, -1, -1};
    const double want[] = {7, 7, 3, 3, 2, 2, 2};
    double best[7];
    (void)state;
    dt_score_best(&landscape, order, 7, best);
    assert_memory_equal(best, want, sizeof want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expectation_matches_every_draw),
        cmocka_unit_test(expectation_matches_a_simulation),
        cmocka_unit_test(expectation_is_exact_for_large_spaces),
        cmocka_unit_test(score_follows_its_definition),
        cmocka_unit_test(best_so_far_skips_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
