/* SPDX-License-Identifier: MIT */
/* The process against closed forms of one and two answers, dense linear algebra, finite
 * differences and planted truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "search/bayes/process.h"
#include "tests/lib/close.h"
#include "tests/search/cloud.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <string.h>

enum { DIMS = 4, COUNT = 150, MOST = 100 };

static const struct dt_process_priors priors = {
    .length = {0.7, 0.8},
    .signal = {1.3, 1},
    .noise = {0.02, 1.5},
    .share = {1.5, 1},
    .constant = 0.9,
    .slope = 0.4,
    .starts = 2,
    .points = 300,
};

static void open_process(struct dt_process *process, const struct dt_cloud *cloud)
{
    gsl_set_error_handler_off();
    assert_int_equal(dt_process_init(process, cloud, &priors), DT_OK);
    for (int d = 0; d < cloud->dims; d++)
        process->kernel.length[d] = 0.3 + 0.2 * d;
}

/* n answers with their own noise, one of them twice. */
static void answer_some(struct dt_process *process, int n, uint64_t seed)
{
    struct dt_rng rng = dt_rng_at(seed, "answers");
    for (int i = 0; i < n; i++) {
        int k = i == 7 ? process->at[0] : (int)dt_rng_below(&rng, COUNT);
        assert_int_equal(dt_process_add(process, k, dt_rng_normal(&rng),
                                        i % 3 == 0 ? 0 : 0.1 * dt_rng_uniform(&rng)),
                         DT_OK);
    }
}

static void one_answer_matches_the_formula(void **state)
{
    (void)state;
    struct dt_cloud cloud = make_cloud(1, 2, 1);
    struct dt_process process;
    open_process(&process, &cloud);
    const double prior = 0.9 + 1.3, noise = 0.02 + 0.05;
    assert_close(dt_process_mean(&process, 0), 0, 0);
    assert_close(dt_process_deviation(&process, 0), sqrt(prior), 1e-12);
    assert_int_equal(dt_process_add(&process, 0, 1.7, 0.05), DT_OK);
    assert_close(dt_process_mean(&process, 0), 1.7 * prior / (prior + noise), 1e-6);
    assert_close(pow(dt_process_deviation(&process, 0), 2), prior - prior * prior / (prior + noise),
                 1e-5);
    /* Matern-5/2 in one dimension, written out again. */
    double r = fabs((double)cloud.x[0] - (double)cloud.x[1]) / 0.3;
    double k = 0.9 + 1.3 * (0.4 + 0.6 * (1 + sqrt(5) * r + 5 * r * r / 3) * exp(-sqrt(5) * r));
    assert_close(dt_process_mean(&process, 1), 1.7 * k / (prior + noise), 1e-6);
    assert_close(pow(dt_process_deviation(&process, 1), 2), prior - k * k / (prior + noise), 1e-5);
    dt_process_fini(&process);
    free_cloud(&cloud);
}

static void two_answers_match_the_formula(void **state)
{
    (void)state;
    struct dt_cloud cloud = make_cloud(DIMS, 3, 2);
    struct dt_process process;
    open_process(&process, &cloud);
    assert_int_equal(dt_process_add(&process, 0, 1, 0.1), DT_OK);
    assert_int_equal(dt_process_add(&process, 1, -2, 0), DT_OK);
    double a = dt_kernel_at(&process.kernel, &cloud, 0, 0) + 0.12,
           b = dt_kernel_at(&process.kernel, &cloud, 1, 1) + 0.02,
           c = dt_kernel_at(&process.kernel, &cloud, 0, 1),
           p = dt_kernel_at(&process.kernel, &cloud, 0, 2),
           q = dt_kernel_at(&process.kernel, &cloud, 1, 2), det = a * b - c * c;
    assert_close(dt_process_mean(&process, 2), (p * (b * 1 - c * -2) + q * (a * -2 - c * 1)) / det,
                 1e-5);
    assert_close(pow(dt_process_deviation(&process, 2), 2),
                 dt_kernel_at(&process.kernel, &cloud, 2, 2) -
                     (p * p * b - 2 * p * q * c + q * q * a) / det,
                 1e-5);
    dt_process_fini(&process);
    free_cloud(&cloud);
}

/* Posterior by the inverse of K + noise, in double precision and from the definition. */
static void check_dense(const struct dt_process *process)
{
    const size_t n = (size_t)process->n;
    const struct dt_cloud *cloud = process->cloud;
    gsl_matrix *k = gsl_matrix_alloc(n, n);
    gsl_vector *z = gsl_vector_alloc(n), *row = gsl_vector_alloc(n), *solved = gsl_vector_alloc(n);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            gsl_matrix_set(k, i, j,
                           dt_kernel_at(&process->kernel, cloud, process->at[i], process->at[j]));
        *gsl_matrix_ptr(k, i, i) +=
            process->noise + process->y_variance[i] / (process->scale * process->scale);
        double f = cloud->belief != NULL ? (double)cloud->belief[process->at[i]] : 0;
        gsl_vector_set(z, i, (process->y[i] - process->centre - f) / process->scale);
    }
    assert_int_equal(gsl_linalg_cholesky_decomp1(k), 0);
    for (int c = 0; c < cloud->count; c++) {
        double mean = 0, variance = dt_kernel_at(&process->kernel, cloud, c, c);
        for (size_t i = 0; i < n; i++)
            gsl_vector_set(row, i, dt_kernel_at(&process->kernel, cloud, process->at[i], c));
        gsl_linalg_cholesky_solve(k, row, solved);
        for (size_t i = 0; i < n; i++) {
            mean += gsl_vector_get(solved, i) * gsl_vector_get(z, i);
            variance -= gsl_vector_get(solved, i) * gsl_vector_get(row, i);
        }
        double f = cloud->belief != NULL ? (double)cloud->belief[c] : 0;
        assert_close(dt_process_mean(process, c), process->centre + f + process->scale * mean,
                     2e-4 * process->scale);
        assert_close(process->variance[c], variance, 2e-5);
    }
    gsl_matrix_free(k);
    gsl_vector_free(z);
    gsl_vector_free(row);
    gsl_vector_free(solved);
}

/* Row by row, over several blocks, taken back, afresh and after a fit:
 * always the same posterior. */
static void every_update_matches_the_dense_posterior(void **state)
{
    (void)state;
    for (int believed = 0; believed < 2; believed++) {
        struct dt_cloud cloud = make_cloud(DIMS, COUNT, 3);
        struct dt_process process;
        struct dt_rng rng = dt_rng_at(4, "fit");
        if (believed)
            believe(&cloud, 5);
        open_process(&process, &cloud);
        answer_some(&process, MOST, 6);
        check_dense(&process);
        for (int i = 0; i < 40; i++)
            dt_process_pop(&process);
        check_dense(&process);
        assert_int_equal(dt_process_refactor(&process), DT_OK);
        check_dense(&process);
        assert_int_equal(dt_process_fit(&process, &rng), DT_OK);
        answer_some(&process, 20, 7);
        check_dense(&process);
        assert_close(dt_process_covariance(&process, 5, 5),
                     pow(dt_process_deviation(&process, 5), 2), 1e-4);
        /* Two candidates change places. */
        double mean = dt_process_mean(&process, 148);
        for (int d = 0; d < DIMS; d++)
            cloud.x[(size_t)d * cloud.room + 149] = cloud.x[(size_t)d * cloud.room + 148];
        if (believed)
            cloud.belief[149] = cloud.belief[148];
        assert_int_equal(dt_process_columns(&process, 149, 150), DT_OK);
        assert_close(dt_process_mean(&process, 149), mean, 1e-4);
        dt_process_fini(&process);
        free_cloud(&cloud);
    }
}

/* Three axes, the middle one of two dimensions, the last of labels: the sum
 * over all sets of them. */
static void kernel_is_a_sum_of_sets(void **state)
{
    (void)state;
    struct dt_cloud cloud = make_cloud(DIMS, 2, 19);
    const struct dt_kernel kernel = {
        .length = {0.5, 0.6, 0.7, 1.4}, .share = 0.3, .signal = 2, .constant = 0.1};
    cloud.x[3 * cloud.room] = 0;
    cloud.x[3 * cloud.room + 1] = 2;
    double off[DIMS], matern[3], sum = 0;
    for (int d = 0; d < DIMS; d++)
        off[d] =
            (double)cloud.x[(size_t)d * cloud.room] - (double)cloud.x[(size_t)d * cloud.room + 1];
    const double r[3] = {fabs(off[0]) / 0.5, hypot(off[1] / 0.6, off[2] / 0.7), 1 / 1.4};
    for (int i = 0; i < 3; i++)
        matern[i] = (1 + sqrt(5) * r[i] + 5 * r[i] * r[i] / 3) * exp(-sqrt(5) * r[i]);
    for (int set = 0; set < 8; set++) {
        double term = 2;
        for (int i = 0; i < 3; i++)
            term *= set >> i & 1 ? 0.3 * matern[i] : 0.7;
        sum += term;
    }
    assert_close(dt_kernel_at(&kernel, &cloud, 0, 1), 0.1 + sum, 1e-12);
    free_cloud(&cloud);
}

static void rows_match_the_kernel(void **state)
{
    (void)state;
    struct dt_cloud cloud = make_cloud(DIMS, COUNT, 8);
    struct dt_process process;
    float row[COUNT];
    believe(&cloud, 9);
    open_process(&process, &cloud);
    for (int a = 0; a < COUNT; a += 7) {
        dt_kernel_row(&process.kernel, &cloud, a, 3, COUNT - 3, row);
        for (int b = 3; b < COUNT; b++)
            assert_close((double)row[b - 3], dt_kernel_at(&process.kernel, &cloud, a, b), 3e-6);
    }
    dt_process_fini(&process);
    free_cloud(&cloud);
}

/* Log density of y at the candidate, with noise of that variance and the floor. */
static double log_density(const struct dt_process *process, int candidate, double y,
                          double variance)
{
    double deviation = dt_process_deviation(process, candidate);
    double total =
        deviation * deviation + variance + process->noise * process->scale * process->scale;
    double off = y - dt_process_mean(process, candidate);
    return -0.5 * (log(2 * M_PI * total) + off * off / total);
}

static void leave_one_out_matches_refitting(void **state)
{
    enum { N = 25 };
    (void)state;
    struct dt_cloud cloud = make_cloud(DIMS, COUNT, 10);
    struct dt_process process, without;
    struct dt_rng rng = dt_rng_at(12, "fit");
    double density[N];
    open_process(&process, &cloud);
    answer_some(&process, N, 11);
    assert_int_equal(dt_process_fit(&process, &rng), DT_OK);
    assert_int_equal(dt_process_leave_one_out(&process, density), DT_OK);
    for (int left = 0; left < N; left++) {
        open_process(&without, &cloud);
        without.kernel = process.kernel;
        without.noise = process.noise;
        without.centre = process.centre;
        without.scale = process.scale;
        assert_int_equal(dt_process_refactor(&without), DT_OK);
        for (int i = 0; i < N; i++)
            if (i != left)
                assert_int_equal(
                    dt_process_add(&without, process.at[i], process.y[i], process.y_variance[i]),
                    DT_OK);
        assert_close(
            density[left],
            log_density(&without, process.at[left], process.y[left], process.y_variance[left]),
            1e-3);
        dt_process_fini(&without);
    }
    dt_process_fini(&process);
    free_cloud(&cloud);
}

static void gradients_match_differences(void **state)
{
    (void)state;
    struct dt_cloud cloud = make_cloud(DIMS, COUNT, 13);
    struct dt_process process;
    struct dt_rng rng = dt_rng_at(14, "theta");
    struct dt_fit fit;
    believe(&cloud, 15);
    open_process(&process, &cloud);
    answer_some(&process, 40, 16);
    assert_int_equal(dt_fit_init(&fit, &process, &rng), DT_OK);
    const int n = dt_fit_parameters(&process);
    for (int round = 0; round < 20; round++) {
        double theta[DT_DIMS_MAX + 8], gradient[DT_DIMS_MAX + 8];
        for (int i = 0; i < n; i++)
            theta[i] = -1 + 0.7 * dt_rng_normal(&rng);
        (void)dt_fit_cost(&fit, theta, gradient);
        for (int i = 0; i < n; i++) {
            const double at = theta[i], step = 1e-5;
            theta[i] = at + step;
            double above = dt_fit_cost(&fit, theta, NULL);
            theta[i] = at - step;
            double below = dt_fit_cost(&fit, theta, NULL);
            theta[i] = at;
            assert_close(gradient[i], (above - below) / (2 * step), 1e-4 * (1 + fabs(gradient[i])));
        }
    }
    dt_fit_fini(&fit);
    dt_process_fini(&process);
    free_cloud(&cloud);
}

/* Values that one coordinate decides: its length comes out short, the others long; and the
 * noise that was added. */
static void finds_the_relevant_coordinate(void **state)
{
    (void)state;
    struct dt_cloud cloud = make_cloud(DIMS, COUNT, 17);
    struct dt_process process;
    struct dt_rng rng = dt_rng_at(18, "noise");
    open_process(&process, &cloud);
    for (int i = 0; i < MOST; i++)
        assert_int_equal(dt_process_add(&process, i,
                                        40 + 3 * sin(6 * (double)cloud.x[cloud.room + (size_t)i]) +
                                            0.1 * dt_rng_normal(&rng),
                                        0),
                         DT_OK);
    assert_int_equal(dt_process_fit(&process, &rng), DT_OK);
    for (int d = 0; d < DIMS; d++)
        if (d != 1)
            assert_true(process.kernel.length[d] > 3 * process.kernel.length[1]);
    double noise = sqrt(process.noise) * process.scale;
    assert_true(noise > 0.07 && noise < 0.14);
    double squares = 0;
    for (int i = MOST; i < COUNT; i++)
        squares += pow(dt_process_mean(&process, i) - 40 -
                           3 * sin(6 * (double)cloud.x[cloud.room + (size_t)i]),
                       2);
    assert_true(sqrt(squares / (COUNT - MOST)) < 0.1);
    dt_process_fini(&process);
    free_cloud(&cloud);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_answer_matches_the_formula),
        cmocka_unit_test(two_answers_match_the_formula),
        cmocka_unit_test(every_update_matches_the_dense_posterior),
        cmocka_unit_test(rows_match_the_kernel),
        cmocka_unit_test(leave_one_out_matches_refitting),
        cmocka_unit_test(gradients_match_differences),
        cmocka_unit_test(finds_the_relevant_coordinate),
        cmocka_unit_test(kernel_is_a_sum_of_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
