/* SPDX-License-Identifier: MIT */
/* ctest: dose slow */
/* Steps and drifts that are planted, series without any, and the permutation tests
 * against all orders. DITTUNE_DOSE=full takes the replicates of
 * docs/measuring-appendix.md and prints the rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/changes/changes_int.h"
#include "tests/lib/dose.h"
#include "tests/stats/noise.h"

#include <stdio.h>
#include <string.h>

enum { POINTS = 60, MOST = 2000 };

static int replicates(int full, int small)
{
    return dose_full() ? full : small;
}

/* Deviation 2 %, or about that. */
static double noise_of(struct dt_rng *rng, int kind)
{
    double z = 0.02 * dt_rng_normal(rng);
    switch (kind) {
    case 0:
        return z;
    case 1: /* one point in twenty has five times the noise */
        return dt_rng_uniform(rng) < 0.05 ? 5 * z : z;
    case 2:
        return 0.02 * exponential(rng);
    default: /* many ties */
        return round(z * 50) / 50;
    }
}

static struct dt_changes changes_of(const double x[], int n)
{
    struct dt_changes changes;
    assert_int_equal(dt_stats_changes(x, n, &changes), DT_OK);
    return changes;
}

static bool is_flat(const struct dt_changes *changes)
{
    return changes->count == 0 && changes->stretch[0].slope == 0;
}

static void noise_has_no_changes(void **state)
{
    static const int lengths[] = {5, 10, 12, 20, 60, 200};
    double x[MOST];
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (int i = 0; i < LENGTH(lengths); i++) {
            struct dt_rng rng = dt_rng_at(11, "null");
            int n = lengths[i], count = replicates(10000, 100), flagged = 0;
            for (int k = 0; k < count; k++) {
                for (int j = 0; j < n; j++)
                    x[j] = noise_of(&rng, kind);
                struct dt_changes changes = changes_of(x, n);
                flagged += !is_flat(&changes);
            }
            print_message("noise %d, %d points: flagged %.2f %%\n", kind, n,
                          100.0 * flagged / count);
            assert_true(flagged <= count * (0.01 + margin(0.01, count)));
        }
}

/* The maximum-likelihood place of one step, and the best answer to "where, give or take three?" of
 * who knows both levels and the noise: no method can do better than the second. */
static void others(const double x[], int n, double step, int *likeliest, int *best)
{
    double chance[POINTS + 1] = {1}, all = 0, most = 0, sum = 0;
    for (int k = 1; k <= n; k++)
        chance[k] = chance[k - 1] * exp((pow(x[k - 1] - step, 2) - pow(x[k - 1], 2)) / 0.0008);
    for (int k = 0; k <= n; k++) {
        double near = 0;
        for (int j = k - 3; j <= k + 3; j++)
            near += j >= 0 && j <= n ? chance[j] : 0;
        if (near > most) {
            most = near;
            *best = k;
        }
    }
    for (int j = 0; j < n; j++)
        all += x[j];
    most = 0;
    for (int k = 1; k < n; k++) {
        sum += x[k - 1];
        double between = pow(sum / k - (all - sum) / (n - k), 2) * k * (n - k);
        if (between > most) {
            most = between;
            *likeliest = k;
        }
    }
}

struct planted {
    double step;
    int from, places; /* of the step: any of them */
    double found;     /* share that is asked for within 3 points; 95 % ranges miss 5 % at most */
    int full;         /* replicates of the full dose */
};

static void check_planted(const struct planted *planted)
{
    struct dt_rng rng = dt_rng_at(12, "step");
    int count = replicates(planted->full, 24), found = 0, near[2] = {0}, one = 0, held = 0,
        either = 0;
    double x[POINTS], step = log(1 + planted->step);
    for (int i = 0; i < count; i++) {
        int k = planted->from + (int)dt_rng_below(&rng, (uint64_t)planted->places), place[2] = {0};
        bool any = false;
        for (int j = 0; j < POINTS; j++)
            x[j] = noise_of(&rng, 0) + (j >= k ? step : 0);
        struct dt_changes changes = changes_of(x, POINTS);
        for (int j = 0; j < changes.count; j++)
            any = any || abs(changes.change[j].at - k) <= 3;
        found += any;
        others(x, POINTS, step, &place[0], &place[1]);
        for (int j = 0; j < 2; j++)
            near[j] += abs(place[j] - k) <= 3;
        if (changes.count != 1)
            continue;
        one++;
        either += changes.change[0].may_be_line;
        held += changes.change[0].earliest <= k && k <= changes.change[0].latest;
    }
    print_message(
        "%.1f %% at %d to %d: within 3 points %.1f %%; the likeliest place of a step known to be "
        "there "
        "%.1f %%, the best of known levels %.1f %%; ranges hold %.1f %%; maybe a drift %.1f %%\n",
        100 * planted->step, planted->from, planted->from + planted->places - 1,
        100.0 * found / count, 100.0 * near[0] / count, 100.0 * near[1] / count, 100.0 * held / one,
        100.0 * either / one);
    assert_true(found >= count * (planted->found - margin(planted->found, count)));
    assert_true(one - held <= one * (0.05 + margin(0.05, one)));
}

static void a_step_is_found(void **state)
{
    static const struct planted planted[] = {
        {0.03, 30, 1, 0.89, 10000},  {0.03, 10, 41, 0.83, 10000}, {0.035, 10, 41, 0.90, 2000},
        {0.04, 10, 41, 0.965, 2000}, {0.05, 10, 41, 0.99, 2000},  {0.10, 5, 51, 0.99, 2000},
    };
    (void)state;
    for (int i = 0; i < LENGTH(planted); i++)
        check_planted(&planted[i]);
}

/* Where the drift is small against the noise it cannot be distinguished from a step,
 * and may_be_line is set. */
static void a_drift_is_no_step(void **state)
{
    static const double drifts[] = {0.02, 0.04, 0.06, 0.08, 0.12, 0.3, -0.3};
    double x[POINTS];
    (void)state;
    for (int i = 0; i < LENGTH(drifts); i++) {
        struct dt_rng rng = dt_rng_at(13, "drift");
        int count = replicates(1000, 10), clear = 0, line = 0, cut = 0;
        double slope = 0;
        for (int k = 0; k < count; k++) {
            bool sure = false;
            for (int j = 0; j < POINTS; j++)
                x[j] = noise_of(&rng, 0) + drifts[i] * j / (POINTS - 1);
            struct dt_changes changes = changes_of(x, POINTS);
            for (int j = 0; j < changes.count; j++)
                sure = sure || !changes.change[j].may_be_line;
            clear += sure;
            cut += changes.count > 0;
            if (changes.count == 0 && changes.stretch[0].slope != 0) {
                line++;
                slope += changes.stretch[0].slope;
            }
        }
        print_message("drift of %.0f %%: a line %.1f %%, cut %.1f %%, without a doubt %.1f %%\n",
                      100 * drifts[i], 100.0 * line / count, 100.0 * cut / count,
                      100.0 * clear / count);
        assert_true(clear <= count * (0.06 + margin(0.06, count)));
        if (fabs(drifts[i]) > 0.1) {
            assert_true(line >= count * (0.94 - margin(0.94, count)));
            assert_near(slope / line * (POINTS - 1), drifts[i], 0.01);
        }
    }
}

/* levels[] of 20 points each. */
static void check_levels(const double levels[], int stretches, double share)
{
    struct dt_rng rng = dt_rng_at(14, "levels");
    int count = replicates(500, 5), right = 0, n = 20 * stretches;
    double x[MOST];
    for (int k = 0; k < count; k++) {
        int found = 0;
        for (int j = 0; j < n; j++)
            x[j] = levels[j / 20] + noise_of(&rng, 0);
        struct dt_changes changes = changes_of(x, n);
        for (int j = 0; j < changes.count; j++)
            found += abs((changes.change[j].at + 10) % 20 - 10) <= 3;
        right += changes.count == stretches - 1 && found == stretches - 1;
    }
    print_message("%d stretches: all found, and no more, %.1f %%\n", stretches,
                  100.0 * right / count);
    assert_true(right >= count * (share - margin(share, count)));
}

static void several_steps_are_found(void **state)
{
    static const double saw[] = {0, 0.06, 0, 0.06, 0}, far[] = {0, 0.1, 0.3, 0.2, 0.25, 0};
    static const double pulse[] = {0, 0.06, 0}, hill[] = {0, 0, 0, 0, 0, 0, 0.06, 0, 0, 0, 0, 0};
    (void)state;
    check_levels(saw, LENGTH(saw), 0.9);
    check_levels(far, LENGTH(far), 0.9);
    check_levels(pulse, LENGTH(pulse), 0.9);
    struct dt_rng rng = dt_rng_at(15, "hill");
    int count = replicates(300, 3), right = 0;
    for (int k = 0; k < count; k++) {
        double x[240];
        for (int j = 0; j < 240; j++)
            x[j] = hill[j / 20] + noise_of(&rng, 0);
        struct dt_changes changes = changes_of(x, 240);
        right += changes.count == 2 && abs(changes.change[0].at - 120) <= 3 &&
                 abs(changes.change[1].at - 140) <= 3;
    }
    assert_true(right >= count * (0.9 - margin(0.9, count)));
}

/* One point of a half more, anywhere, the ends included. */
static void an_outlier_is_no_step(void **state)
{
    (void)state;
    for (int n = 12; n <= 300; n *= 5) {
        struct dt_rng rng = dt_rng_at(16, "outlier");
        int count = replicates(5000, 90), flagged = 0;
        for (int k = 0; k < count; k++) {
            double x[MOST];
            int at = k % 3 == 0 ? 0 : k % 3 == 1 ? n - 1 : (int)dt_rng_below(&rng, (uint64_t)n);
            for (int j = 0; j < n; j++)
                x[j] = noise_of(&rng, 0) + (j == at ? 0.5 : 0);
            struct dt_changes changes = changes_of(x, n);
            flagged += !is_flat(&changes);
        }
        print_message("one outlier of %d points: flagged %.2f %%\n", n, 100.0 * flagged / count);
        assert_true(flagged <= count * (0.012 + margin(0.012, count)));
    }
}

static void noiseless_steps_are_placed_exactly(void **state)
{
    double x[200];
    (void)state;
    for (int k = 6; k <= 54; k += 4) {
        for (int j = 0; j < POINTS; j++)
            x[j] = j < k ? 5 : 6;
        struct dt_changes changes = changes_of(x, POINTS);
        assert_int_equal(changes.count, 1);
        assert_int_equal(changes.change[0].at, k);
        assert_int_equal(changes.change[0].earliest, k);
        assert_int_equal(changes.change[0].latest, k);
        assert_true(changes.change[0].before == 5 && changes.change[0].after == 6);
        assert_int_equal(changes.stretch[0].count, k);
        assert_int_equal(changes.stretch[1].count, POINTS - k);
        assert_false(changes.change[0].may_be_line);
    }
    for (int j = 0; j < POINTS; j++)
        x[j] = 2.5 - 0.25 * j;
    struct dt_changes changes = changes_of(x, POINTS);
    assert_int_equal(changes.count, 0);
    assert_near(changes.stretch[0].slope, -0.25, 1e-9);
    assert_near(changes.stretch[0].level, 2.5 - 0.25 * (POINTS - 1) / 2.0, 1e-9);
    for (int j = 0; j < 200; j++)
        x[j] = 7;
    for (int n = 0; n <= 200; n++) {
        changes = changes_of(x, n);
        assert_true(is_flat(&changes) && changes.stretch[0].count == n && !changes.more);
    }
}

/* Any unit, either sign, the same cuts; and again the same. */
static void the_unit_does_not_matter(void **state)
{
    struct dt_rng rng = dt_rng_at(17, "unit");
    double x[100], y[100];
    int cuts = 0;
    (void)state;
    for (int k = 0; k < 10; k++) {
        for (int j = 0; j < 100; j++) {
            x[j] = noise_of(&rng, 0) + (j >= 40 ? 0.05 : 0) + (j >= 70 ? 0.05 : 0);
            y[j] = 3 - 1000 * x[j];
        }
        struct dt_changes one = changes_of(x, 100), other = changes_of(y, 100);
        cuts += one.count;
        assert_int_equal(one.count, other.count);
        for (int i = 0; i < one.count; i++) {
            assert_int_equal(one.change[i].at, other.change[i].at);
            assert_near(other.change[i].after, 3 - 1000 * one.change[i].after, 1e-9);
        }
    }
    assert_true(cuts >= 15);
}

/* Visits every order of x[at..n-1]; how many, and in how many the statistic is as large. */
static void visit(double x[], int n, int at, double seen, long count[2])
{
    if (at == n) {
        const struct dt_order order = {.x = x, .n = n, .parts = 1};
        count[0]++;
        count[1] += dt_split(&order, NULL) >= seen * (1 - 1e-9);
        return;
    }
    for (int i = at; i < n; i++) {
        double keep = x[at];
        x[at] = x[i], x[i] = keep;
        visit(x, n, at + 1, seen, count);
        keep = x[at], x[at] = x[i], x[i] = keep;
    }
}

static void rarity_matches_all_orders(void **state)
{
    struct dt_rng rng = dt_rng_at(18, "orders");
    double x[8], room[8];
    (void)state;
    for (int k = 0; k < 20; k++) {
        long count[2] = {0};
        for (int j = 0; j < 8; j++)
            x[j] = dt_rng_normal(&rng) + (j >= 4 ? 0.1 * k : 0);
        const struct dt_order order = {.x = x, .shuffled = room, .n = 8, .parts = 1};
        visit(x, 8, 0, dt_split(&order, NULL), count);
        assert_int_equal(count[0], 40320);
        double p = (double)count[1] / 40320, error = 4 * sqrt(p * (1 - p) / 5000) + 0.001;
        assert_true(dt_order_rare(&order, DT_CHANGE_SPLIT, p + error));
        assert_false(dt_order_rare(&order, DT_CHANGE_SPLIT, p - error));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_has_no_changes),
        cmocka_unit_test(a_step_is_found),
        cmocka_unit_test(a_drift_is_no_step),
        cmocka_unit_test(several_steps_are_found),
        cmocka_unit_test(an_outlier_is_no_step),
        cmocka_unit_test(noiseless_steps_are_placed_exactly),
        cmocka_unit_test(the_unit_does_not_matter),
        cmocka_unit_test(rarity_matches_all_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
