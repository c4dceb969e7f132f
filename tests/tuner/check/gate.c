/* SPDX-License-Identifier: MIT */
/* ctest: dose slow */
/* Whole runs of `dittune check` on planted clocks, through the real judge, the real order of visits
 * and the real plan of the budget: how often it says what is not so. The noise is that of
 * docs/measuring-appendix.md: log-normal from visit to visit, a drift that all plans share
 * (deviation 2 %, correlation time 60 visits), spikes of mean 15 % on 2 % of the visits.
 *
 * DITTUNE_DOSE=full takes 10,000 runs each (some minutes) and prints the table of docs/check.md;
 * limits are the targets and as much as the binomial distribution exceeds in one of 740 runs (three
 * sigmas). Seeds are fixed. */
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
#include "tuner/check/check.h"
#include "tuner/check/judge_rivals.h"
#include "tuner/measure/measure.h"

#define ENTRIES   20
#define RIVALS    4
#define ENTRANTS  (RIVALS + 2) /* the tuned plan, its rivals, its twin */
#define ROUNDS    4            /* of a set */
#define ALL       (DT_SETS_USUAL * ROUNDS)
#define DRIFT     0.02
#define DRIFT_TAU 60.0

struct noise {
    struct dt_rng rng;
    double cv, drift;
    double place[ENTRANTS]; /* of each plan, as long as it is resident */
};

/* Planted effects of a run: the tuned plan takes (1 + slower) times as long as its first `against`
 * rivals, and as long as the others. */
struct planted {
    double cv, slower;
    double residency; /* deviation of a plan's time from one residency to the next */
    double modes;     /* or it is slower by this share in every second one, by chance */
    int rivals, against;
    bool blocks; /* control: the visits of a plan one after the other */
};

struct said {
    int runs, runs_losing;                 /* in which an entry was called LOSES */
    int entries[DT_CHECK_UNSUPPORTED + 1]; /* by verdict */
    int first[DT_CHECK_UNSUPPORTED + 1];   /* of the first rival alone */
    int64_t sets, first_sets;              /* of the entries; until the first rival was decided */
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

static double values[ENTRANTS][DT_ROUNDS_MOST];

static struct dt_check_judge judge_of(int rivals)
{
    struct dt_check_judge judge = {.threshold = 0.03,
                                   .lose_alpha = dt_check_lose_alpha(ENTRIES * RIVALS),
                                   .tuned = values[0],
                                   .twin = values[rivals + 1],
                                   .count = rivals};
    for (int i = 0; i < rivals; i++)
        judge.rivals[i].values = values[i + 1];
    return judge;
}

static double place_of(const struct planted *planted, struct noise *noise)
{
    double place =
        planted->residency > 0 ? exp(planted->residency * dt_rng_normal(&noise->rng)) : 1;
    return planted->modes > 0 && dt_rng_uniform(&noise->rng) < 0.5 ? place * (1 + planted->modes)
                                                                   : place;
}

/* One round: rivals that are decided are skipped. Returns how many visits it made. */
static int visit_all(const struct planted *planted, const struct dt_check_judge *judge,
                     struct noise *noise, int round, uint64_t seed)
{
    int order[ENTRANTS], n = planted->rivals + 2, visits = 0;
    dt_compare_order(order, n, round, seed);
    for (int k = 0; k < n; k++) {
        int i = order[k];
        bool rival = i >= 1 && i <= planted->rivals;
        bool decided = rival && dt_check_decided(judge, i - 1);
        double truth = rival && i <= planted->against ? 1 / (1 + planted->slower) : 1;
        values[i][round] = decided ? NAN : truth * noise->place[i] * next_factor(noise);
        visits += !decided;
    }
    return visits;
}

/* One set as dt_compare_run makes it. */
static int visit_set(const struct planted *planted, const struct dt_check_judge *judge,
                     struct noise *noise, struct dt_sets *sets, uint64_t seed)
{
    int base = dt_sets_rounds(sets), visits = 0;
    for (int i = 0; i < planted->rivals + 2; i++)
        noise->place[i] = place_of(planted, noise);
    for (int k = 0; k < ROUNDS; k++)
        visits += visit_all(planted, judge, noise, base + k, seed);
    sets->rounds[sets->count++] = ROUNDS;
    return visits;
}

static void fill_blocks(int n, struct noise *noise)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < ALL; k++)
            values[i][k] = next_factor(noise);
}

static void check_entry(const struct planted *planted, struct noise *noise, uint64_t seed,
                        struct said *said)
{
    struct dt_check_judge judge = judge_of(planted->rivals);
    struct dt_sets sets = {0};
    bool decided = false;
    if (planted->blocks)
        fill_blocks(planted->rivals + 2, noise);
    while (sets.count < DT_SETS_USUAL && !decided) {
        if (planted->blocks)
            sets.rounds[sets.count++] = ROUNDS;
        else
            visit_set(planted, &judge, noise, &sets, seed);
        decided = dt_check_look(&judge, &sets);
    }
    dt_check_end(&judge, &sets);
    said->sets += sets.count;
    said->first_sets += judge.rivals[0].ratio.sets;
    enum dt_check_verdict verdict = dt_check_verdict(&judge);
    said->entries[verdict]++;
    said->first[judge.rivals[0].verdict]++;
}

static int dose(int small, int full)
{
    const char *asked = getenv("DITTUNE_DOSE");
    return asked != NULL && strcmp(asked, "full") == 0 ? full : small;
}

static double share(int64_t k, int64_t n)
{
    return (double)k / (double)n;
}

static struct said simulate(const char *name, const struct planted *planted)
{
    struct said said = {.runs = dose(40, 10000)};
    int n = said.runs * ENTRIES;
    for (int run = 0; run < said.runs; run++) {
        struct noise noise = {.rng = {.seed = (uint64_t)run, .stream = dt_rng_stream(name)},
                              .cv = planted->cv};
        int before = said.entries[DT_CHECK_LOSES];
        noise.drift = DRIFT * dt_rng_normal(&noise.rng);
        for (int i = 0; i < ENTRIES; i++)
            check_entry(planted, &noise, (uint64_t)(run * ENTRIES + i), &said);
        said.runs_losing += said.entries[DT_CHECK_LOSES] > before;
    }
    print_message("%-22s %d rivals, cv %3.1f %%: wins %.4f ties %.5f loses %.5f inconclusive %.4f; "
                  "%4.1f sets, first %4.1f; runs with a LOSES %.4f\n",
                  name, planted->rivals, 100 * planted->cv, share(said.entries[DT_CHECK_WINS], n),
                  share(said.entries[DT_CHECK_TIES], n), share(said.entries[DT_CHECK_LOSES], n),
                  share(said.entries[DT_CHECK_INCONCLUSIVE], n), share(said.sets, n),
                  share(said.first_sets, n), share(said.runs_losing, said.runs));
    return said;
}

/* At most p of n, and three sigmas. */
static bool at_most(int k, int n, double p)
{
    return k <= n * p + 3 * sqrt(n * p * (1 - p));
}

static const double noises[] = {0.005, 0.01, 0.02, 0.03, 0.05, 0.1};
#define NOISES (int)(sizeof noises / sizeof noises[0])
#define QUIET  4 /* noises that must be judged right: up to 3 % */

/* A run of 20 entries with 4 rivals each, all as fast: it says LOSES in at most one of a hundred
 * runs. A WIN is a false one, too, at the rate of a comparison. */
static void test_equal_plans_do_not_lose(void **state)
{
    (void)state;
    for (int i = 0; i < NOISES; i++) {
        struct planted planted = {.cv = noises[i], .rivals = RIVALS};
        struct said said = simulate("equal plans", &planted);
        assert_true(at_most(said.runs_losing, said.runs, DT_CHECK_RUN_ALPHA));
        assert_true(at_most(said.entries[DT_CHECK_WINS], said.runs * ENTRIES, 0.025));
    }
}

/* Places: what stays constant while a plan is resident, and differs in the next set. */
static const struct {
    const char *name;
    double residency, modes;
} places[] = {{"places .5 %", 0.005, 0},
              {"places 1 %", 0.01, 0},
              {"places 2 %", 0.02, 0},
              {"two places, 8 % apart", 0, 0.08}};

static void test_places_do_not_decide(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct planted planted = {.cv = 0.01,
                                  .rivals = RIVALS,
                                  .residency = places[i].residency,
                                  .modes = places[i].modes};
        struct said said = simulate(places[i].name, &planted);
        assert_true(at_most(said.runs_losing, said.runs, DT_CHECK_RUN_ALPHA));
        assert_true(at_most(said.entries[DT_CHECK_WINS], said.runs * ENTRIES, 0.01));
        planted.slower = 0.05;
        planted.against = 1;
        said = simulate("5 % slower", &planted);
        assert_true(at_most(said.entries[DT_CHECK_WINS], said.runs * ENTRIES, 0.001));
    }
}

/* Slower than one rival, as fast as three others; and slower than all. Neither may pass. */
static void test_slower_plans_do_not_pass(void **state)
{
    (void)state;
    for (int i = 0; i < QUIET; i++)
        for (int against = 1; against <= RIVALS; against += RIVALS - 1) {
            struct planted planted = {
                .cv = noises[i], .slower = 0.045, .rivals = RIVALS, .against = against};
            struct said said = simulate(against == 1 ? "+4.5 % to one" : "+4.5 % to all", &planted);
            int wrong = said.entries[DT_CHECK_WINS] + said.entries[DT_CHECK_TIES];
            int first = said.first[DT_CHECK_WINS] + said.first[DT_CHECK_TIES];
            assert_true(at_most(wrong, said.runs * ENTRIES, 0.001));
            assert_true(at_most(first, said.runs * ENTRIES, 0.001));
        }
}

/* Losses of 6 % or 10 % are detected for nearly every entry. */
static void test_losses_are_seen(void **state)
{
    (void)state;
    static const double slower[] = {0.06, 0.10}, least[] = {0.95, 0.99};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < QUIET; i++) {
            struct planted planted = {
                .cv = noises[i], .slower = slower[k], .rivals = RIVALS, .against = 1};
            struct said said = simulate(k == 0 ? "+6 % to one" : "+10 % to one", &planted);
            int n = said.runs * ENTRIES;
            assert_true(at_most(n - said.entries[DT_CHECK_LOSES], n, 1 - least[k]));
        }
}

/* A plan that is 1.5 % slower is no win: not once in a thousand; at the
 * threshold itself neither. */
static void test_a_little_slower_never_wins(void **state)
{
    (void)state;
    static const double slower[] = {0.015, 0.03};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < NOISES; i++) {
            struct planted planted = {
                .cv = noises[i], .slower = slower[k], .rivals = RIVALS, .against = 1};
            struct said said = simulate(k == 0 ? "+1.5 % to one" : "+3 % to one", &planted);
            assert_true(at_most(said.entries[DT_CHECK_WINS], said.runs * ENTRIES, 0.001));
            assert_true(at_most(said.first[DT_CHECK_WINS], said.runs * ENTRIES, 0.001));
        }
}

static void test_wins_are_cheap(void **state)
{
    (void)state;
    for (int i = 0; i < NOISES; i++) {
        struct planted planted = {
            .cv = noises[i], .slower = 1 / 1.1 - 1, .rivals = 1, .against = 1};
        struct said said = simulate("10 % faster", &planted);
        double sets = share(said.first_sets, said.runs * ENTRIES);
        if (noises[i] < 0.025)
            assert_true(sets < 6);
        if (i < QUIET)
            assert_true(at_most(said.runs * ENTRIES - said.entries[DT_CHECK_WINS],
                                said.runs * ENTRIES, 0.01));
    }
}

/* What must go wrong: blocks of visits under drift. */
static void test_control_fails(void **state)
{
    (void)state;
    for (int i = 0; i < QUIET; i++) {
        struct planted blocks = {.cv = noises[i], .rivals = RIVALS, .blocks = true};
        struct said said = simulate("control: blocks", &blocks);
        assert_false(at_most(said.runs_losing, said.runs, DT_CHECK_RUN_ALPHA));
    }
}

/* ---- the budget, on a simulated clock */

struct clock {
    double now, end;
};

static double visit_seconds(double step)
{
    double timed = ceil(0.02 / step);
    return step * (1 + (timed < 1 ? 1 : timed > DT_VISIT_STEPS ? DT_VISIT_STEPS : timed));
}

/* Sets that one entry got: it starts, sets up and visits as dt_compare_run does, and stops at the
 * look that decides or before a set that may not fit. Two fifths of a second to start a plan are
 * measured time, not the plan's estimate. */
static int spend(struct clock *clock, int left, double step, struct noise *noise)
{
    struct planted planted = {.cv = noise->cv, .slower = -0.05, .rivals = RIVALS, .against = 2};
    struct dt_check_judge judge = judge_of(RIVALS);
    struct dt_sets sets = {0};
    double steps[ENTRANTS], longest = 0;
    bool decided = false;
    for (int i = 0; i < ENTRANTS; i++)
        steps[i] = step;
    int64_t share_ns =
        dt_check_share_ns((int64_t)((clock->end - clock->now) * 1e9), left, left == ENTRIES,
                          dt_check_estimate_ns(steps, ENTRANTS, DT_SETS_LEAST),
                          dt_check_estimate_ns(steps, ENTRANTS, DT_CHECK_LEAST_LOSE));
    double deadline = clock->now + (double)share_ns * 1e-9;
    if (share_ns == 0)
        return 0;
    while (!decided && sets.count < DT_SETS_USUAL && clock->now + 1.1 * longest <= deadline) {
        int visits = visit_set(&planted, &judge, noise, &sets, (uint64_t)left);
        double took = ENTRANTS * (0.4 + 5 * step) + visits * visit_seconds(step);
        longest = took > longest ? took : longest;
        clock->now += took;
        decided = dt_check_look(&judge, &sets);
    }
    return sets.count;
}

static void test_twenty_entries_in_ten_minutes(void **state)
{
    (void)state;
    static const double slowest[] = {0.02, 0.1, 0.2, 0.4, 1.6};
    for (int k = 0; k < 5; k++) {
        struct noise noise = {.rng = dt_rng_at(7, "budget"), .cv = 0.02};
        struct clock clock = {.end = 600};
        int judged = 0, sets = 0;
        for (int i = 0; i < ENTRIES; i++) {
            int made =
                spend(&clock, ENTRIES - i, slowest[k] * pow(0.01, (double)(i % 5) / 4), &noise);
            judged += made >= DT_SETS_LEAST;
            sets += made;
        }
        print_message(
            "budget: 20 entries of steps %.1f to %.0f ms, 10 minutes: %d judged, %.1f sets "
            "each, %.0f s\n",
            10 * slowest[k], 1e3 * slowest[k], judged, (double)sets / ENTRIES, clock.now);
        assert_true(clock.now <= clock.end);
        assert_true(slowest[k] > 0.05 || judged == ENTRIES);
        assert_true(judged >= 8); /* one slow entry leaves room for quick ones */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_plans_do_not_lose),
        cmocka_unit_test(test_places_do_not_decide),
        cmocka_unit_test(test_slower_plans_do_not_pass),
        cmocka_unit_test(test_losses_are_seen),
        cmocka_unit_test(test_a_little_slower_never_wins),
        cmocka_unit_test(test_wins_are_cheap),
        cmocka_unit_test(test_control_fails),
        cmocka_unit_test(test_twenty_entries_in_ten_minutes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
