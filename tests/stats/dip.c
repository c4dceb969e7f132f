/* SPDX-License-Identifier: MIT */
/* The dip: values known exactly, symmetries, and bounds by distributions that are unimodal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/stats_int.h"
#include "tests/stats/noise.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double dip(const double sorted[], int n)
{
    return dt_dip(sorted, n) / sqrt(n);
}

static void matches_known_values(void **state)
{
    (void)state;
    for (int n = 4; n <= 64; n += 4) {
        double even[64], atoms[64], lumps[64];
        for (int i = 0; i < n; i++) {
            even[i] = 3 + 0.7 * i;
            atoms[i] = i < n / 2 ? 1 : 2;
            lumps[i] = i < n / 2 ? 1e-9 * i : 1 + 1e-9 * i;
        }
        assert_near(dip(even, n), 1.0 / (2 * n), 1e-12); /* the least there is */
        assert_near(dip(atoms, n), 0.25, 1e-12);         /* the most there is */
        /* the best unimodal one goes straight from the foot of one lump to the head of the other */
        assert_near(dip(lumps, n), 0.25, 1.0 / n);
    }
    /* a quarter in one atom, the rest in another: half of the smaller is what cannot be met */
    const double uneven[] = {1, 1, 5, 5, 5, 5, 5, 5};
    assert_near(dip(uneven, 8), 0.125, 1e-12);
    const double equal[] = {1, 1, 1, 1, 1};
    assert_true(dip(equal, 5) == 0);
    assert_true(isnan(dt_dip(equal, 3)) && isnan(dt_dip(equal, 0)));
}

/* Largest distance of the empirical distribution to the uniform one over the sample's
 * range, which is unimodal. */
static double distance(const double sorted[], int n)
{
    double most = 0, low = sorted[0], range = sorted[n - 1] - low;
    for (int i = 0; i < n; i++) {
        double f = (sorted[i] - low) / range;
        most = fmax(most, fmax(f - (double)i / n, (i + 1.0) / n - f));
    }
    return most;
}

static void symmetries_and_bounds(void **state)
{
    (void)state;
    for (int d = 0; d < LENGTH(noises); d++) {
        struct dt_rng rng = {.seed = 31, .stream = (uint64_t)d};
        for (int i = 0; i < 500; i++) {
            int n = 4 + (int)dt_rng_below(&rng, 60);
            double x[64], mirrored[64], moved[64];
            for (int j = 0; j < n; j++)
                x[j] = noises[d].draw(&rng);
            qsort(x, (size_t)n, sizeof x[0], ascending);
            for (int j = 0; j < n; j++) {
                mirrored[n - 1 - j] = -x[j];
                moved[j] = 16 * x[j];
            }
            double value = dip(x, n);
            assert_near(dip(mirrored, n), value, 1e-9);
            assert_near(dip(moved, n), value, 1e-9);
            assert_true(value >= 1.0 / (2 * n) - 1e-12 && value <= 0.25 + 1e-12);
            assert_true(value <= distance(x, n) + 1e-9);
        }
    }
}

/* Samples of one mode come nearer to unimodal as they grow; of two modes they do not. */
static void separates_one_mode_from_two(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(32, "limit");
    double one[2000], two[2000];
    for (int i = 0; i < 2000; i++) {
        one[i] = log_normal(&rng);
        two[i] = (i % 10 < 7 ? 1 : 2) + 1e-6 * dt_rng_normal(&rng);
    }
    qsort(one, 2000, sizeof one[0], ascending);
    qsort(two, 2000, sizeof two[0], ascending);
    assert_true(dip(one, 2000) < 0.02);
    assert_near(dip(two, 2000), 0.15, 0.002); /* half of the smaller mode */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_known_values),
        cmocka_unit_test(symmetries_and_bounds),
        cmocka_unit_test(separates_one_mode_from_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
