/* SPDX-License-Identifier: MIT */
/* The process against scikit-learn's: means, deviations and the likelihood of a fixed kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "search/bayes/process.h"
#include "tests/search/bayes_reference.h"

#include <math.h>

static void fill(struct dt_cloud *cloud, float x[])
{
    *cloud = (struct dt_cloud){
        .dims = DIMENSIONS, .count = OBSERVED + ASKED, .room = OBSERVED + ASKED, .x = x};
    for (int i = 0; i < cloud->count; i++)
        for (int d = 0; d < DIMENSIONS; d++)
            x[d * cloud->count + i] = (float)points[i * DIMENSIONS + d];
    cloud->joined[2] = cloud->label[3] = true;
}

static void agrees_with_scikit_learn(void **state)
{
    static float x[DIMENSIONS * (OBSERVED + ASKED)];
    (void)state;
    struct dt_cloud cloud;
    fill(&cloud, x);
    const struct dt_process_priors priors = {.length = {1, 1},
                                             .signal = {SIGNAL, 1},
                                             .noise = {NOISE, 1},
                                             .share = {SHARE / (1 - SHARE), 1},
                                             .constant = CONSTANT,
                                             .starts = 1,
                                             .points = 300};
    struct dt_process process;
    struct dt_rng rng = dt_rng_at(1, "fit");
    struct dt_fit fit;
    assert_int_equal(dt_process_init(&process, &cloud, &priors), DT_OK);
    for (int d = 0; d < DIMENSIONS; d++)
        process.kernel.length[d] = lengths[d];
    for (int i = 0; i < OBSERVED; i++)
        assert_int_equal(dt_process_add(&process, i, values[i], variances[i]), DT_OK);
    for (int i = 0; i < ASKED; i++) {
        double mean = dt_process_mean(&process, OBSERVED + i);
        double deviation = dt_process_deviation(&process, OBSERVED + i);
        if (fabs(mean - means[i]) > 2e-5 || fabs(deviation - deviations[i]) > 2e-5)
            fail_msg("%d: %.8g +- %.8g, not %.8g +- %.8g", i, mean, deviation, means[i],
                     deviations[i]);
    }
    /* Priors are a constant where every parameter but the lengths is at its median. */
    double theta[] = {log(lengths[0]), log(lengths[1]),          log(lengths[2]), log(lengths[3]),
                      log(SIGNAL),     log(SHARE / (1 - SHARE)), log(NOISE)};
    double prior = 0;
    assert_int_equal(dt_fit_init(&fit, &process, &rng), DT_OK);
    assert_int_equal(dt_fit_parameters(&process), sizeof theta / sizeof theta[0]);
    for (int d = 0; d < DIMENSIONS; d++)
        prior += theta[d] * theta[d] / 2;
    double cost = dt_fit_cost(&fit, theta, NULL) - prior + OBSERVED * 0.918938533204672741780;
    if (fabs(cost + log_likelihood) > 1e-6)
        fail_msg("log likelihood %.9g, not %.9g", -cost, log_likelihood);
    dt_fit_fini(&fit);
    dt_process_fini(&process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_scikit_learn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
