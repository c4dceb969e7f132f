/* SPDX-License-Identifier: MIT */
/* The gain of a mix: closed forms, laws, and the spread of the same mix drawn many times. */
#include "stats/stats.h"

#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define DRAWS       20000
#define CLOSE(a, b) assert_true(fabs((a) / (b)-1) < 1e-12)

static void of_one(void **state)
{
    const struct dt_mix_part one = {3, 0.5, 1.25, {1.1, 1.5}};
    struct dt_mix mix = dt_stats_mix(&one, 1);
    (void)state;
    CLOSE(mix.seconds, 0.5);
    CLOSE(mix.tuned, 0.4);
    CLOSE(mix.gain, 1.25);
    CLOSE(mix.interval.low, 1.1);
    CLOSE(mix.interval.high, 1.5);
}

/* Four alike: half the width. A part that stays takes its part of the gain and of the width. */
static void by_hand(void **state)
{
    const struct dt_mix_part part = {1, 2, 1.2, {1.2 / 1.1, 1.2 * 1.1}};
    struct dt_mix_part parts[] = {part, part, part, part};
    struct dt_mix mix = dt_stats_mix(parts, 4);
    (void)state;
    CLOSE(mix.gain, 1.2);
    CLOSE(mix.interval.high, 1.2 * sqrt(1.1));
    CLOSE(mix.interval.low, 1.2 / sqrt(1.1));
    const struct dt_mix_part half[] = {{1, 3, 1.5, {1.5 / 1.21, 1.5 * 1.21}}, {1, 2, 1, {1, 1}}};
    mix = dt_stats_mix(half, 2); /* 2 of 4 tuned seconds gain */
    CLOSE(mix.gain, 1.25);
    CLOSE(mix.interval.high, 1.25 * 1.1);
    CLOSE(mix.seconds, 2.5);
    CLOSE(mix.tuned, 2);
}

/* Neither the unit of time nor that of shares matters; a part may be split. */
static void laws(void **state)
{
    struct dt_mix_part parts[] = {
        {5, 0.1, 1.3, {1.2, 1.4}}, {2, 0.7, 1, {1, 1}}, {1, 3, 1.05, {1.01, 1.2}}};
    struct dt_mix before = dt_stats_mix(parts, 3);
    (void)state;
    for (int i = 0; i < 3; i++) {
        parts[i].share *= 7;
        parts[i].seconds *= 1e-3;
    }
    struct dt_mix after = dt_stats_mix(parts, 3);
    CLOSE(after.gain, before.gain);
    CLOSE(after.interval.low, before.interval.low);
    CLOSE(after.interval.high, before.interval.high);
    CLOSE(after.seconds, before.seconds * 1e-3);
    assert_true(isnan(dt_stats_mix(parts, 0).gain));
    assert_true(isnan(dt_stats_mix(parts, 0).interval.low));
}

/* Gains drawn log-normally, with intervals of 1.96 deviations: so is the mix's. */
static void drawn(void **state)
{
    static const double sd[] = {0.02, 0.05, 0.01};
    struct dt_mix_part parts[] = {
        {5, 0.1, 1.3, {0, 0}}, {2, 0.7, 1.1, {0, 0}}, {1, 3, 1.05, {0, 0}}};
    double sum = 0, squares = 0;
    struct dt_rng rng = dt_rng_at(20261124, "gains");
    (void)state;
    for (int i = 0; i < 3; i++)
        parts[i].interval = (struct dt_interval){parts[i].gain * exp(-1.96 * sd[i]),
                                                 parts[i].gain * exp(1.96 * sd[i])};
    struct dt_mix mix = dt_stats_mix(parts, 3);
    for (int draw = 0; draw < DRAWS; draw++) {
        struct dt_mix_part drawn[3];
        for (int i = 0; i < 3; i++) {
            drawn[i] = parts[i];
            drawn[i].gain *= exp(sd[i] * dt_rng_normal(&rng));
        }
        double gain = log(dt_stats_mix(drawn, 3).gain);
        sum += gain;
        squares += gain * gain;
    }
    double deviation = sqrt(squares / DRAWS - sum / DRAWS * (sum / DRAWS));
    assert_true(fabs(log(mix.interval.high / mix.gain) / (1.96 * deviation) - 1) < 0.03);
    assert_true(fabs(sum / DRAWS - log(mix.gain)) < 0.001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_one), cmocka_unit_test(by_hand),
                                       cmocka_unit_test(laws), cmocka_unit_test(drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
