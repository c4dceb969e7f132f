/* SPDX-License-Identifier: MIT */
/* Signed ranks against all sign patterns, counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "stats/stats.h"

#include <math.h>

/* The rank of |x[i]| among the non-zero sizes, twice, by counting. */
static int twice_rank(const double x[], int n, int i)
{
    int below = 0, equal = 0;
    for (int j = 0; j < n; j++) {
        below += x[j] != 0 && fabs(x[j]) < fabs(x[i]);
        equal += fabs(x[j]) == fabs(x[i]);
    }
    return 2 * below + equal + 1;
}

/* Share of all 2^n sign patterns whose positive ranks sum up to what was seen or more. */
static double counted(const double x[], int n)
{
    int rank[16], m = 0, seen = 0, as_much = 0;
    for (int i = 0; i < n; i++) {
        if (x[i] == 0)
            continue;
        rank[m] = twice_rank(x, n, i);
        seen += x[i] > 0 ? rank[m] : 0;
        m++;
    }
    for (int signs = 0; signs < 1 << m; signs++) {
        int sum = 0;
        for (int i = 0; i < m; i++)
            sum += (signs >> i & 1) != 0 ? rank[i] : 0;
        as_much += sum >= seen;
    }
    return (double)as_much / (1 << m);
}

static void signed_rank_matches_all_signs(void **state)
{
    struct dt_rng rng = dt_rng_at(4, "signs");
    (void)state;
    for (int n = 0; n <= 12; n++) {
        for (int k = 0; k < 20; k++) {
            double x[16];
            for (int i = 0; i < n; i++) /* half of the rounds with ties and zeros */
                x[i] = k % 2 == 0 ? dt_rng_normal(&rng) : (double)dt_rng_below(&rng, 9) - 3;
            assert_true(fabs(dt_stats_signed_rank(x, n) - counted(x, n)) < 1e-12);
        }
    }
    double ones[64];
    for (int i = 0; i < 64; i++)
        ones[i] = 1 + i;
    assert_true(fabs(dt_stats_signed_rank(ones, 64) / pow(0.5, 64) - 1) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signed_rank_matches_all_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
