/* SPDX-License-Identifier: MIT */
/* The three fits: exact lines come back exactly, closed forms agree, planted truths lie where the
 * errors say, and what the points do not say is not said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/fit.h"
#include "tests/stats/noise.h"

#include <gsl/gsl_errno.h>

#define ALPHA 20e-6
#define BETA  5e9

static const double sizes[] = {1024,    4096,    16384,    65536,   262144,
                               1048576, 4194304, 16777216, 67108864};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

#define assert_close(a, b, share) assert_true(fabs((a) / (b)-1) <= (share))

static void exact_lines_come_back(void **state)
{
    (void)state;
    double t[SIZES], ranks[] = {1, 2, 4, 8}, times[4], batches[] = {1, 2, 4}, steps[3];
    for (int i = 0; i < SIZES; i++)
        t[i] = ALPHA + sizes[i] / BETA;
    struct dt_alpha_beta link = dt_stats_alpha_beta(sizes, t, SIZES);
    assert_null(link.line.why);
    assert_close(link.seconds, ALPHA, 1e-9);
    assert_close(link.bytes_per_second, BETA, 1e-9);
    for (int i = 0; i < SIZES; i++)
        assert_near(link.line.residual[i], 0, 1e-9);
    for (int i = 0; i < 4; i++)
        times[i] = 0.8 * (0.07 + 0.93 / ranks[i]);
    struct dt_amdahl scaling = dt_stats_amdahl(ranks, times, 4);
    assert_null(scaling.line.why);
    assert_close(scaling.serial, 0.07, 1e-9);
    assert_close(scaling.seconds, 0.8, 1e-9);
    assert_int_equal(scaling.bounded, 0);
    for (int i = 0; i < 3; i++)
        steps[i] = 0.003 + 0.05 * batches[i];
    struct dt_line line = dt_stats_line(batches, steps, 3);
    assert_null(line.why);
    assert_close(line.a, 0.003, 1e-9);
    assert_close(line.b, 0.05, 1e-9);
}

/* Weighted least squares by the normal equations, written out, at the weights of the answer: the
 * same line, and the textbook errors. */
static void closed_form_agrees(void **state)
{
    (void)state;
    double x[] = {1, 2, 3, 5, 8}, t[] = {1.02, 1.49, 2.03, 2.98, 4.6};
    struct dt_line line = dt_stats_line(x, t, 5);
    double s = 0, sx = 0, sxx = 0, st = 0, sxt = 0, chi = 0;
    for (int i = 0; i < 5; i++) {
        double f = line.a + line.b * x[i], w = 1 / (f * f);
        s += w;
        sx += w * x[i];
        sxx += w * x[i] * x[i];
        st += w * t[i];
        sxt += w * x[i] * t[i];
        chi += (t[i] / f - 1) * (t[i] / f - 1);
        assert_near(line.residual[i], t[i] / f - 1, 1e-12);
    }
    double d = s * sxx - sx * sx, variance = chi / 3;
    assert_close(line.a, (sxx * st - sx * sxt) / d, 1e-9);
    assert_close(line.b, (s * sxt - sx * st) / d, 1e-9);
    assert_close(line.a_error, sqrt(variance * sxx / d), 1e-6);
    assert_close(line.b_error, sqrt(variance * s / d), 1e-6);
    assert_close(line.covariance, -variance * sx / d, 1e-6);
    assert_close(line.spread, sqrt(variance), 1e-6);
}

/* The same points in other units give the same fit in those units. */
static void units_do_not_matter(void **state)
{
    (void)state;
    double x[] = {1, 2, 3, 5, 8}, t[] = {1.02, 1.49, 2.03, 2.98, 4.6}, y[5], u[5];
    for (int i = 0; i < 5; i++) {
        y[i] = x[i] * 1e7;
        u[i] = t[i] * 1e-5;
    }
    struct dt_alpha_beta here = dt_stats_alpha_beta(x, t, 5), there = dt_stats_alpha_beta(y, u, 5);
    assert_close(there.seconds, here.seconds * 1e-5, 1e-9);
    assert_close(there.seconds_error, here.seconds_error * 1e-5, 1e-6);
    assert_close(there.bytes_per_second, here.bytes_per_second * 1e12, 1e-9);
    assert_close(there.bytes_per_second_error, here.bytes_per_second_error * 1e12, 1e-6);
}

/* 2 % noise, and of nine sizes one, at random, up to three times as slow as it should be: alpha and
 * beta are still found, which plain least squares misses by far. */
static void a_disturbed_size_is_left_aside(void **state)
{
    (void)state;
    enum { REPLICATES = 1000 };
    struct dt_rng rng = {.seed = 3, .stream = 1};
    int far = 0, plain = 0, away = 0;
    for (int r = 0; r < REPLICATES; r++) {
        double t[SIZES];
        for (int i = 0; i < SIZES; i++)
            t[i] = (ALPHA + sizes[i] / BETA) * exp(0.02 * dt_rng_normal(&rng));
        int late = (int)(dt_rng_uniform(&rng) * SIZES);
        t[late] *= 2 + dt_rng_uniform(&rng);
        struct dt_alpha_beta fit = dt_stats_alpha_beta(sizes, t, SIZES);
        struct dt_line least = dt_stats_line(sizes, t, SIZES);
        assert_null(fit.line.why);
        far += fabs(fit.seconds / ALPHA - 1) > 0.06 || fabs(fit.bytes_per_second / BETA - 1) > 0.06;
        plain += fabs(least.a / ALPHA - 1) > 0.06 || fabs(least.b * BETA - 1) > 0.06;
        away += fit.line.residual[late] > 0.8;
    }
    assert_true(far <= REPLICATES / 100);
    assert_true(plain >= REPLICATES * 9 / 10);
    assert_true(away >= REPLICATES * 99 / 100);
}

/* Are the errors those of the estimates? Student's t of the degrees of freedom says how often
 * truth is further off. */
static void standard_errors_are_calibrated(void **state)
{
    (void)state;
    enum { REPLICATES = 4000 };
    struct dt_rng rng = {.seed = 3, .stream = 2};
    const double ranks[] = {1, 2, 3, 4, 6, 8}, t975_4 = 2.776445, t975_7 = 2.364624;
    int alpha = 0, beta = 0, serial = 0, first = 0, each = 0;
    for (int r = 0; r < REPLICATES; r++) {
        double t[SIZES];
        for (int i = 0; i < SIZES; i++)
            t[i] = (ALPHA + sizes[i] / BETA) * exp(0.02 * dt_rng_normal(&rng));
        struct dt_alpha_beta link = dt_stats_alpha_beta(sizes, t, SIZES);
        alpha += fabs(link.seconds - ALPHA) <= t975_7 * link.seconds_error;
        beta += fabs(link.bytes_per_second - BETA) <= t975_7 * link.bytes_per_second_error;
        for (int i = 0; i < 6; i++)
            t[i] = (0.2 + 0.8 / ranks[i]) * exp(0.02 * dt_rng_normal(&rng));
        struct dt_amdahl scaling = dt_stats_amdahl(ranks, t, 6);
        serial += fabs(scaling.serial - 0.2) <= t975_4 * scaling.serial_error;
        for (int i = 0; i < 6; i++)
            t[i] = (0.3 + 0.1 * ranks[i]) * exp(0.02 * dt_rng_normal(&rng));
        struct dt_line line = dt_stats_line(ranks, t, 6);
        first += fabs(line.a - 0.3) <= t975_4 * line.a_error;
        each += fabs(line.b - 0.1) <= t975_4 * line.b_error;
    }
    const int counts[] = {alpha, beta, serial, first, each};
    for (int i = 0; i < LENGTH(counts); i++) {
        assert_true(counts[i] >= (0.95 - margin(0.95, REPLICATES) - 0.015) * REPLICATES);
        assert_true(counts[i] <= (0.95 + margin(0.95, REPLICATES) + 0.01) * REPLICATES);
    }
}

/* Faster than the number of ranks, and slower with each: s stays in 0..1, and the one
 * parameter left is fitted. */
static void the_serial_part_keeps_its_bounds(void **state)
{
    (void)state;
    const double ranks[] = {1, 2, 4}, fast[] = {1, 0.45, 0.2}, slow[] = {1, 1.1, 1.3};
    struct dt_amdahl fit = dt_stats_amdahl(ranks, fast, 3);
    assert_null(fit.line.why);
    assert_int_equal(fit.bounded, -1);
    assert_true(fit.serial == 0 && fit.serial_error > 0);
    assert_close(fit.seconds, (1 + 0.9 + 0.8) / 3, 1e-12);
    assert_close(fit.line.residual[2], 0.8 / 0.9 - 1, 1e-9);
    fit = dt_stats_amdahl(ranks, slow, 3);
    assert_int_equal(fit.bounded, 1);
    assert_true(fit.serial == 1);
    assert_close(fit.seconds, 3.4 / 3, 1e-12);
}

static void undetermined_fits_have_a_reason(void **state)
{
    (void)state;
    const double same[] = {2, 2, 2, 2}, x[] = {1, 2, 3, 4}, t[] = {4, 3, 2, 1},
                 bad[] = {1, 0, 2, 3};
    assert_string_equal(dt_stats_alpha_beta(x, t, 3).line.why,
                        "a fit needs 4 message sizes or more");
    assert_string_equal(dt_stats_alpha_beta(same, t, 4).line.why,
                        "a fit needs 4 message sizes or more");
    assert_string_equal(dt_stats_alpha_beta(x, t, 4).line.why,
                        "the time does not grow with the message");
    assert_string_equal(dt_stats_amdahl(x, t, 2).line.why, "a fit needs 3 rank counts or more");
    assert_string_equal(dt_stats_line(x, t, 0).why, "a fit needs 3 different values or more");
    assert_string_equal(dt_stats_line(x, bad, 4).why, "a time is not a positive number");
    double many[DT_FIT_MOST + 1];
    for (int i = 0; i <= DT_FIT_MOST; i++)
        many[i] = i + 1;
    assert_null(dt_stats_line(many, many, DT_FIT_MOST).why);
    assert_string_equal(dt_stats_line(many, many, DT_FIT_MOST + 1).why,
                        "too many points for a fit");
    assert_string_equal(dt_stats_amdahl(many, many, DT_FIT_MOST + 1).line.why,
                        "too many points for a fit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_lines_come_back),
        cmocka_unit_test(closed_form_agrees),
        cmocka_unit_test(units_do_not_matter),
        cmocka_unit_test(a_disturbed_size_is_left_aside),
        cmocka_unit_test(standard_errors_are_calibrated),
        cmocka_unit_test(the_serial_part_keeps_its_bounds),
        cmocka_unit_test(undetermined_fits_have_a_reason),
    };
    gsl_set_error_handler_off();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
