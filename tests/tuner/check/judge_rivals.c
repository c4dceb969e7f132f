/* SPDX-License-Identifier: MIT */
/* Verdicts of check's judge on sets of fresh processes. Each has two rounds, whose ratios are the
 * set's, and the sets alternate about the planted ratio, so that intervals can be computed by hand
 * (tests/tuner/measure/judge_sets.c). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tuner/check/judge_rivals.h"

enum { ROUNDS = 2 }; /* of a set */

static double tuned[DT_ROUNDS_MOST], twin[DT_ROUNDS_MOST];
static double rivals[DT_CHECK_RIVALS][DT_ROUNDS_MOST];
static struct dt_check_judge judge;

/* Everything takes 1; what is written to the values afterwards is the truth. */
static void fresh(int count, int comparisons)
{
    judge = (struct dt_check_judge){.threshold = 0.03,
                                    .lose_alpha = dt_check_lose_alpha(comparisons),
                                    .tuned = tuned,
                                    .twin = twin,
                                    .count = count};
    for (int k = 0; k < DT_ROUNDS_MOST; k++) {
        tuned[k] = twin[k] = 1;
        for (int i = 0; i < DT_CHECK_RIVALS; i++)
            rivals[i][k] = 1;
    }
    for (int i = 0; i < count; i++)
        judge.rivals[i].values = rivals[i];
}

/* The tuned plan takes ratio * exp(+-spread) times as long as rival i, in turn from set to set. */
static void plant(int i, double ratio, double spread)
{
    for (int k = 0; k < DT_ROUNDS_MOST; k++)
        rivals[i][k] = 1 / (ratio * exp(k / ROUNDS % 2 == 0 ? spread : -spread));
}

static struct dt_sets made(int count)
{
    struct dt_sets sets = {.count = count};
    for (int s = 0; s < count; s++)
        sets.rounds[s] = ROUNDS;
    return sets;
}

static int compare(int most)
{
    struct dt_sets sets = {0};
    for (int count = 1; count <= most; count++) {
        sets = made(count);
        if (dt_check_look(&judge, &sets))
            return count;
    }
    dt_check_end(&judge, &sets);
    return most;
}

static void test_wins_at_the_first_look(void **state)
{
    (void)state;
    fresh(1, 80);
    plant(0, 0.9, 0.001);
    assert_int_equal(compare(16), 4);
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_WINS);
    assert_true(fabs(judge.rivals[0].ratio.ratio - 0.9) < 1e-9);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_WINS);
}

/* A loss needs six sets, however clear. Then its interval is that of the run: with a
 * deviation of .027 between sets and one comparison t(.999; 5) = 5.9 is exceeded by a loss of
 * 10 % (.065 < .095), with 80 t(1 - 1.25e-5; 5) = 16 is not, and t(1 - 2.5e-5; 7) = 9.4 of
 * the next look is (.090 < .095). */
static void test_loses_at_the_rate_of_the_run(void **state)
{
    (void)state;
    static const int comparisons[] = {1, 80}, decided[] = {6, 8};
    for (int i = 0; i < 2; i++) {
        fresh(1, comparisons[i]);
        plant(0, 1.1, 0.025);
        assert_int_equal(compare(16), decided[i]);
        assert_int_equal(dt_check_verdict(&judge), DT_CHECK_LOSES);
    }
    fresh(1, 1);
    plant(0, 1.1, 0.0001);
    assert_int_equal(compare(4), 4);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_INCONCLUSIVE);
    assert_int_equal(compare(16), 6);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_LOSES);
}

/* Slower, but by less than matters. */
static void test_little_is_a_tie(void **state)
{
    (void)state;
    fresh(1, 80);
    plant(0, 1.015, 0.001);
    assert_int_equal(compare(16), 4);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_TIES);
    fresh(1, 80);
    judge.threshold = 0.01;
    plant(0, 1.015, 0.0001);
    assert_int_equal(compare(16), 6);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_LOSES);
}

/* The twin differs by 2 % from set to set: until its interval narrows, 6 % is within what the
 * same plan may differ by. */
static void test_noise_widens_only_what_loses(void **state)
{
    (void)state;
    fresh(2, 80);
    plant(0, 1.06, 0.0001);
    plant(1, 1.015, 0.0001);
    for (int k = 0; k < DT_ROUNDS_MOST; k++)
        twin[k] = k / ROUNDS % 2 == 0 ? exp(-0.02) : exp(0.02);
    assert_int_equal(compare(6), 6);
    assert_true(judge.limit > 0.06);
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_INCONCLUSIVE);
    assert_int_equal(judge.rivals[1].verdict, DT_CHECK_TIES);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_INCONCLUSIVE);
    assert_int_equal(compare(16), 8);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_LOSES);
}

/* A shift of the twin in every set is no noise that more sets take away: a gain must
 * be larger, and a loss. */
static void test_a_shifted_twin(void **state)
{
    (void)state;
    fresh(2, 80);
    plant(0, 0.97, 0.0001);
    plant(1, 1.045, 0.0001);
    for (int k = 0; k < DT_ROUNDS_MOST; k++)
        twin[k] = 1.05;
    assert_int_equal(compare(16), 16);
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_TIES);
    assert_int_equal(judge.rivals[1].verdict, DT_CHECK_INCONCLUSIVE);
    fresh(1, 80);
    judge.twin = NULL;
    plant(0, 0.97, 0.0001);
    assert_int_equal(compare(16), 4);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_WINS);
    assert_true(isnan(judge.margin));
}

/* One comparison at this noise of a visit, judged by a session and by check: default, tuned
 * plan, the default's twin, and the tuned plan's, which differs from it as the default's
 * does from the default. */
static bool session_takes(double noise, int seed)
{
    static double fallback_twin[DT_ROUNDS_MOST];
    struct dt_rng rng = dt_rng_at((uint64_t)seed, "same noise");
    fresh(1, 1);
    for (int k = 0; k < DT_ROUNDS_MOST; k++) {
        tuned[k] = exp(noise * dt_rng_normal(&rng)) / 1.3;
        rivals[0][k] = exp(noise * dt_rng_normal(&rng));
        fallback_twin[k] = exp(noise * dt_rng_normal(&rng));
        twin[k] = tuned[k] * fallback_twin[k] / rivals[0][k];
    }
    struct dt_judged judged[] = {{.values = rivals[0]},
                                 {.values = tuned, .decisive = true},
                                 {.values = fallback_twin, .twin = true}};
    struct dt_sets sets = {.count = DT_SETS_USUAL};
    for (int s = 0; s < sets.count; s++)
        sets.rounds[s] = 4;
    sets.count = dt_judge_sets(judged, 3, &sets);
    dt_check_look(&judge, &sets);
    dt_check_end(&judge, &sets);
    return dt_judge_beats(&judged[1].ratio, dt_judge_margin(&judged[2].ratio));
}

/* What a session takes as faster wins in a check of the same visits, however much they spread. */
static void test_check_takes_what_a_session_takes(void **state)
{
    (void)state;
    static const double noises[] = {.01, .05, .08, .15};
    for (int i = 0; i < 4; i++) {
        int taken = 0;
        double most = 0;
        for (int seed = 0; seed < 100; seed++) {
            if (!session_takes(noises[i], seed))
                continue;
            taken++;
            most = fmax(most, judge.rivals[0].cv);
            assert_int_equal(dt_check_verdict(&judge), DT_CHECK_WINS);
        }
        assert_true(taken >= 20 && most > noises[i]);
    }
}

/* A tie with the plan that is to be beaten may be a win with more sets; a tie
 * with another is final. */
static void test_a_tie_may_become_a_win(void **state)
{
    (void)state;
    fresh(2, 80);
    plant(0, 0.98, 0.008); /* half of the interval: .032 at 4 sets, .015 at 6 */
    plant(1, 0.98, 0.008);
    struct dt_sets sets = made(4);
    assert_false(dt_check_look(&judge, &sets));
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_TIES);
    assert_false(dt_check_decided(&judge, 0));
    assert_true(dt_check_decided(&judge, 1));
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_TIES);
    for (int k = 4 * ROUNDS; k < DT_ROUNDS_MOST; k++)
        rivals[1][k] = NAN;
    sets = made(6);
    assert_true(dt_check_look(&judge, &sets));
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_WINS);
    assert_int_equal(judge.rivals[1].verdict, DT_CHECK_TIES);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_WINS);
}

/* Sets that end between two looks are judged, too; below four nothing is decided. */
static void test_ends_between_looks(void **state)
{
    (void)state;
    fresh(1, 80);
    plant(0, 1.1, 0.025);
    assert_int_equal(compare(7), 7);
    assert_int_equal(judge.rivals[0].ratio.sets, 7);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_INCONCLUSIVE);
    fresh(1, 80);
    plant(0, 0.9, 0.01);
    assert_int_equal(compare(5), 4);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_WINS);
    fresh(1, 80);
    plant(0, 0.5, 0.0001);
    assert_int_equal(compare(3), 3);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_INCONCLUSIVE);
}

static enum dt_check_verdict all(int first, enum dt_check_verdict a, enum dt_check_verdict b,
                                 enum dt_check_verdict c)
{
    fresh(3, 80);
    judge.first = first;
    judge.rivals[0].verdict = a;
    judge.rivals[1].verdict = b;
    judge.rivals[2].verdict = c;
    return dt_check_verdict(&judge);
}

static void test_an_entry_of_several_rivals(void **state)
{
    (void)state;
    enum dt_check_verdict win = DT_CHECK_WINS, tie = DT_CHECK_TIES, lose = DT_CHECK_LOSES;
    enum dt_check_verdict open = DT_CHECK_INCONCLUSIVE;
    assert_int_equal(all(0, win, tie, tie), win);
    assert_int_equal(all(0, tie, win, win), tie);
    assert_int_equal(all(1, tie, win, tie), win);
    assert_int_equal(all(-1, win, win, win), tie); /* nothing to be beaten */
    assert_int_equal(all(0, win, win, lose), lose);
    assert_int_equal(all(0, open, open, lose), lose);
    assert_int_equal(all(0, win, win, open), open);
    assert_int_equal(all(0, win, win, win), win);
    judge.rivals[0].out = true;
    assert_int_equal(dt_check_verdict(&judge), tie);
    judge.rivals[1].out = judge.rivals[2].out = true;
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_NOT_CHECKED);
    judge.rivals[2].aside = true; /* it ran, but need not be beaten */
    assert_int_equal(dt_check_verdict(&judge), tie);
    fresh(0, 80);
    assert_int_equal(compare(16), 4);
    assert_int_equal(dt_check_verdict(&judge), tie);
}

/* Rival 0 is the default, the tuned plan loses to rival 1 alone. */
static void test_who_takes_the_place(void **state)
{
    (void)state;
    struct dt_sets sets = made(6);
    fresh(2, 8);
    plant(0, 1.02, 0.0001);
    plant(1, 1.035, 0.0001);
    assert_int_equal(compare(16), 6);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_LOSES);
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_TIES);
    assert_int_equal(dt_check_successor(&judge, &sets, 0, -1),
                     1); /* better than the default by 1.5 % */
    judge.margin = 0.016;
    assert_int_equal(dt_check_successor(&judge, &sets, 0, -1),
                     0); /* which may be the noise of one plan */
    assert_int_equal(dt_check_successor(&judge, &sets, -1, -1), 1);
    judge.rivals[0].verdict = DT_CHECK_WINS;
    assert_int_equal(dt_check_successor(&judge, &sets, 0, -1), -1);
    judge.rivals[1].out = true;
    assert_int_equal(dt_check_successor(&judge, &sets, 0, -1), -1);
    fresh(2, 8);
    plant(1, 1.035, 0.0001);
    plant(0, 1.03, 0.03);
    sets = made(16);
    assert_int_equal(compare(16), 16);
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_INCONCLUSIVE);
    assert_int_equal(judge.rivals[1].verdict, DT_CHECK_LOSES);
    assert_int_equal(dt_check_successor(&judge, &sets, 0, -1),
                     0); /* each is faster in half of the sets */
}

/* Rival 0 is the default, 1 the documented plan. */
static void test_the_documented_plan_takes_the_place(void **state)
{
    (void)state;
    struct dt_sets sets = made(6);
    fresh(3, 8);
    plant(0, 1.001, 0.0001);
    plant(1, 1.099, 0.0001);
    plant(2, 1.1, 0.0001);
    assert_int_equal(compare(16), 6);
    assert_int_equal(judge.rivals[2].verdict, DT_CHECK_LOSES);
    judge.margin = 0.005;
    assert_int_equal(dt_check_successor(&judge, &sets, 0, 1), 1); /* the lead may be noise */
    assert_int_equal(dt_check_successor(&judge, &sets, -1, 1), 1);
    assert_int_equal(dt_check_successor(&judge, &sets, 0, -1), 2);
    plant(2, 1.11, 0.0001);
    assert_int_equal(dt_check_successor(&judge, &sets, 0, 1), 2);
    plant(1, 1, 0.0001); /* the default is the better of the two */
    assert_int_equal(dt_check_successor(&judge, &sets, 0, 1), 2);
    plant(0, 1.109, 0.0001);
    assert_int_equal(dt_check_successor(&judge, &sets, 0, 1), 0);
}

static void test_whom_a_gain_is_over(void **state)
{
    (void)state;
    assert_int_equal(dt_judge_opponent(-1, -1, NAN), -1);
    assert_int_equal(dt_judge_opponent(-1, 2, NAN), 2);
    assert_int_equal(dt_judge_opponent(1, -1, NAN), 1);
    assert_int_equal(dt_judge_opponent(1, 2, 0.99), 2);
    assert_int_equal(dt_judge_opponent(1, 2, 1), 1);
    assert_int_equal(dt_judge_opponent(1, 2, NAN), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wins_at_the_first_look),
        cmocka_unit_test(test_loses_at_the_rate_of_the_run),
        cmocka_unit_test(test_little_is_a_tie),
        cmocka_unit_test(test_noise_widens_only_what_loses),
        cmocka_unit_test(test_a_shifted_twin),
        cmocka_unit_test(test_check_takes_what_a_session_takes),
        cmocka_unit_test(test_a_tie_may_become_a_win),
        cmocka_unit_test(test_ends_between_looks),
        cmocka_unit_test(test_an_entry_of_several_rivals),
        cmocka_unit_test(test_who_takes_the_place),
        cmocka_unit_test(test_the_documented_plan_takes_the_place),
        cmocka_unit_test(test_whom_a_gain_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
