/* SPDX-License-Identifier: MIT */
/* ctest: slow */
/* The decision against plans whose times are planted, and the rule's own words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "search/racing.h"

#include <math.h>

enum { ROOM = 65 };

/* A cold first repetition, then log-normal noise around level. */
static void times(struct dt_rng *rng, double cold, double level, double noise, double out[ROOM])
{
    out[0] = cold;
    for (int i = 1; i < ROOM; i++)
        out[i] = level * exp(noise * dt_rng_normal(rng));
}

/* Repetitions used until it is decided, and how. */
static enum dt_race_next race_of(const struct dt_race *race, const double samples[], int *n)
{
    enum dt_race_next next;
    int until = 0;
    *n = 0;
    while ((next = dt_race_look(race, samples, *n, &until)) == DT_RACE_MORE) {
        assert_true(until > *n);
        *n = until;
    }
    return next;
}

static void looks_double_the_repetitions(void **state)
{
    static const int expected[] = {4, 9, 17, 33, 65};
    const struct dt_race race = {.most = 64};
    double samples[ROOM];
    struct dt_rng rng = dt_rng_at(1, "race");
    int n = 0, until = 0;
    (void)state;
    times(&rng, 1, 1, 0, samples);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(dt_race_look(&race, samples, n, &until), DT_RACE_MORE);
        assert_int_equal(until, expected[i]);
        n = until;
    }
    assert_int_equal(dt_race_look(&race, samples, n, &until), DT_RACE_ENOUGH);
    const struct dt_race brief = {.most = 5};
    assert_int_equal(dt_race_look(&brief, samples, 4, &until), DT_RACE_MORE);
    assert_int_equal(until, 6);
    assert_int_equal(dt_race_look(&brief, samples, 6, &until), DT_RACE_ENOUGH);
}

/* The cold repetition is a thousand times slower, or faster: nothing changes. */
static void cold_first_is_never_judged(void **state)
{
    double best[64], samples[ROOM];
    (void)state;
    for (int i = 0; i < 64; i++)
        best[i] = 1 + 0.001 * (i % 5);
    const struct dt_race race = {.best = best, .best_count = 64, .most = 64};
    for (int i = 1; i < ROOM; i++)
        samples[i] = 2;
    for (int k = 0; k < 2; k++) {
        int n = 0;
        samples[0] = k == 0 ? 1e3 : 1e-3;
        assert_int_equal(race_of(&race, samples, &n), DT_RACE_DROP);
        assert_int_equal(n, 1 + DT_RACE_WARM);
        for (int i = 1; i < ROOM; i++)
            samples[i] = 0.9;
        assert_int_equal(race_of(&race, samples, &n), DT_RACE_ENOUGH);
        for (int i = 1; i < ROOM; i++)
            samples[i] = 2;
    }
}

static void a_plan_25_percent_slower_is_dropped_early(void **state)
{
    const double best[] = {1, 1, 1, 5};
    const struct dt_race race = {.best = best, .best_count = 4, .most = 64};
    double samples[] = {9, 1.26, 1.3, 1.4};
    int until = 0;
    (void)state;
    assert_int_equal(dt_race_look(&race, samples, 4, &until), DT_RACE_DROP);
    assert_int_equal(dt_race_look(&race, samples, 3, &until), DT_RACE_MORE); /* two warm ones */
    samples[2] = 1.24;
    assert_int_equal(dt_race_look(&race, samples, 4, &until), DT_RACE_MORE);
}

/* At most 5 % of 2000 plans that are as fast as the incumbent are dropped, and nearly all that are
 * 5 % slower, at 2 % noise. */
static void drops_slower_plans(void **state)
{
    struct dt_rng rng = dt_rng_at(2, "race");
    int equal = 0, slower = 0, spent = 0;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        double best[ROOM], samples[ROOM];
        int n = 0;
        times(&rng, 3, 1, 0.02, best);
        const struct dt_race race = {.best = best + 1, .best_count = 64, .most = 64};
        times(&rng, 3, 1, 0.02, samples);
        equal += race_of(&race, samples, &n) == DT_RACE_SLOWER;
        times(&rng, 3, 1.05, 0.02, samples);
        slower += race_of(&race, samples, &n) == DT_RACE_SLOWER;
        spent += n;
    }
    assert_in_range(equal, 20, 100);
    assert_in_range(slower, 1995, 2000);
    assert_true(spent < 2000 * 16); /* of 65 */
}

/* A drift of 40 % that both share would hide a difference of 3 % from their means,
 * but not from the pairs. */
static void pairs_see_through_drift(void **state)
{
    double best[64], samples[ROOM];
    struct dt_rng rng = dt_rng_at(3, "race");
    int n = 0;
    (void)state;
    times(&rng, 1, 1, 0.002, samples);
    for (int i = 0; i < 64; i++) {
        double drift = 1 + 0.4 * sin(i);
        best[i] = drift * exp(0.002 * dt_rng_normal(&rng));
        samples[i + 1] *= 1.03 * drift;
    }
    const struct dt_race race = {.best = best, .best_count = 64, .most = 64};
    assert_int_equal(race_of(&race, samples, &n), DT_RACE_SLOWER);
    assert_true(n < 64);
}

/* An incumbent that is 10 % faster in a third of its samples has the lower mean; the plan
 * has the lower median. */
static void a_lower_median_stays(void **state)
{
    double best[64], samples[ROOM];
    int n = 0;
    (void)state;
    samples[0] = 1;
    for (int i = 0; i < 64; i++) {
        best[i] = (i % 3 == 0 ? 0.9 : 1) + 1e-4 * (i % 7);
        samples[i + 1] = 0.99 + 1e-4 * (i % 5);
    }
    const struct dt_race race = {.best = best, .best_count = 64, .most = 64};
    assert_int_equal(race_of(&race, samples, &n), DT_RACE_ENOUGH);
    for (int i = 1; i < ROOM; i++)
        samples[i] += 0.03;
    assert_int_equal(race_of(&race, samples, &n), DT_RACE_SLOWER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_double_the_repetitions),
        cmocka_unit_test(cold_first_is_never_judged),
        cmocka_unit_test(a_plan_25_percent_slower_is_dropped_early),
        cmocka_unit_test(drops_slower_plans),
        cmocka_unit_test(a_lower_median_stays),
        cmocka_unit_test(pairs_see_through_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
