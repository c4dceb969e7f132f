/* SPDX-License-Identifier: MIT */
/* The expected improvement against its integral, far into the tail where its closed
 * form has no digits left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "search/bayes/models.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_integration.h>
#include <math.h>

#define HALF_LOG_TWO_PI 0.918938533204672741780

/* E max(0, z + N) = phi(z) times the integral of t exp(z t - t^2 / 2): no factor in it is small. */
static double integrand(double t, void *z)
{
    return t * exp(*(double *)z * t - t * t / 2);
}

static double integrated(double z)
{
    double value, error;
    gsl_integration_workspace *work = gsl_integration_workspace_alloc(1000);
    assert_non_null(work);
    assert_int_equal(gsl_integration_qagiu(&(gsl_function){integrand, &z}, 0, 0, 1e-12, 1000, work,
                                           &value, &error),
                     0);
    gsl_integration_workspace_free(work);
    return log(value) - z * z / 2 - HALF_LOG_TWO_PI;
}

static void matches_the_integral(void **state)
{
    static const double at[] = {-40,    -33.3, -20,   -10, -7,   -5,  -3, -2, -1.5, -1.001, -1,
                                -0.999, -0.5,  -1e-9, 0,   1e-9, 0.3, 1,  2,  4,    6};
    (void)state;
    gsl_set_error_handler_off();
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        double expected = integrated(at[i]);
        if (fabs(dt_log_improvement(at[i]) - expected) > 1e-9 * (1 + fabs(expected)))
            fail_msg("at %g: %.15g, not %.15g", at[i], dt_log_improvement(at[i]), expected);
    }
}

/* h' = Phi and h'' = phi: log h rises with a falling slope everywhere, also where
 * the formula changes. */
static void is_smooth_and_concave(void **state)
{
    (void)state;
    double before = dt_log_improvement(-2e4), slope = INFINITY;
    for (int i = 1; i < 1280; i++) {
        double u = 2e4 * pow(0.99, i);
        double value = dt_log_improvement(-u), step = (value - before) / (u * (1 / 0.99 - 1));
        assert_true(value > before);
        if (step >= slope * (1 + 1e-6))
            fail_msg("the slope rises from %.9g to %.9g at %g", slope, step, -u);
        before = value;
        slope = step;
    }
    assert_true(fabs(dt_log_improvement(-1e6) - (-5e11 - HALF_LOG_TWO_PI - 2 * log(1e6))) < 1e-3);
    assert_true(isfinite(dt_log_improvement(-1e100)));
    for (double *u = (double[]){300, 999, 1001, 3000, 0}; *u > 0; u++) {
        double series = log1p(-3 / (*u * *u) + 15 / pow(*u, 4)) - 2 * log(*u);
        assert_true(fabs(dt_log_improvement(-*u) + *u * *u / 2 + HALF_LOG_TWO_PI - series) < 1e-8);
    }
}

static void bound_is_above(void **state)
{
    (void)state;
    for (int i = -6000; i < 2000; i++)
        assert_true(dt_log_improvement_bound(i / 100.0) >= dt_log_improvement(i / 100.0) - 1e-12);
    assert_true(dt_log_improvement_bound(-30) - dt_log_improvement(-30) < 0.01);
}

static void sums_of_logarithms(void **state)
{
    (void)state;
    assert_true(fabs(dt_log_sum(log(3), log(4)) - log(7)) < 1e-14);
    assert_true(fabs(dt_log_sum(-1000, -1000) - (-1000 + M_LN2)) < 1e-12);
    assert_true(dt_log_sum(-5, -INFINITY) == -5);
    assert_true(dt_log_sum(-INFINITY, -INFINITY) == -INFINITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_the_integral),
        cmocka_unit_test(is_smooth_and_concave),
        cmocka_unit_test(bound_is_above),
        cmocka_unit_test(sums_of_logarithms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
