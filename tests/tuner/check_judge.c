/* SPDX-License-Identifier: MIT */
/* What check's judge says of rounds whose order statistics are known (tests/tuner/judge.c has them): at the looks of 8, 16,
 * 32 and 64 pairs the interval runs from the 1st, 3rd, 9th, 23rd smallest ratio to the mirror of that. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tuner/check/judge.h"

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

/* The tuned plan takes `ratio` times as long as rival i, in round k a little more: 0, 1, 2 and 3 ten-thousandths. */
static void plant(int i, double ratio)
{
    for (int k = 0; k < DT_ROUNDS_MOST; k++)
        rivals[i][k] = 1 / (ratio + 1e-4 * (k % 4));
}

static int rounds(int most)
{
    for (int round = 1; round <= most; round++)
        if (dt_check_look(&judge, round))
            return round;
    dt_check_end(&judge, most);
    return most;
}

static void test_wins_at_the_first_look(void **state)
{
    (void)state;
    fresh(1, 80);
    plant(0, 0.9);
    assert_int_equal(rounds(64), 8);
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_WINS);
    assert_true(fabs(judge.rivals[0].ratio.ratio - 0.90015) < 1e-6);
    assert_true(fabs(judge.rivals[0].ratio.interval.low - 0.9) < 1e-9);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_WINS);
}

/* Sixteen of sixteen on one side have a chance of 2^-16, and the first of the looks that may say LOSES has .238 of the run's
 * .01: that is enough for each of 155 comparisons (.01 x .238 x 2^16 = 155.97), not of 156. */
static void test_loses_at_the_rate_of_the_run(void **state)
{
    (void)state;
    fresh(1, 1);
    plant(0, 1.1);
    assert_int_equal(rounds(8), 8);
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_INCONCLUSIVE); /* however clear: 16 pairs */
    fresh(1, 155);
    plant(0, 1.1);
    assert_int_equal(rounds(64), 16);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_LOSES);
    fresh(1, 156);
    plant(0, 1.1);
    assert_int_equal(rounds(64), 32);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_LOSES);
}

/* One round of sixteen on the other side has a chance of 17/2^16: enough for 9 comparisons, not for 10. */
static void test_one_round_the_other_way(void **state)
{
    (void)state;
    static const int comparisons[] = {9, 10}, decided[] = {16, 32};
    for (int i = 0; i < 2; i++) {
        fresh(1, comparisons[i]);
        plant(0, 1.1);
        rivals[0][5] = 1.05;
        assert_int_equal(rounds(64), decided[i]);
        assert_int_equal(dt_check_verdict(&judge), DT_CHECK_LOSES);
    }
}

/* Clearly slower, but by less than matters. */
static void test_little_is_a_tie(void **state)
{
    (void)state;
    fresh(1, 80);
    plant(0, 1.015);
    assert_int_equal(rounds(64), 8);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_TIES);
    fresh(1, 80);
    judge.threshold = 0.01;
    plant(0, 1.015);
    assert_int_equal(rounds(64), 16);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_LOSES);
}

/* The twin swings by 2 %: until its interval narrows, 4 % is within what the same plan may differ by. Four rounds of the
 * first 16 and none after: at 32 the 9th value from either end is quiet. */
static void test_noise_widens_only_what_loses(void **state)
{
    (void)state;
    fresh(2, 80);
    plant(0, 1.04);
    plant(1, 1.015);
    for (int k = 0; k < 8; k++)
        twin[k] = k % 2 == 0 ? 0.975 : 1.025;
    assert_int_equal(rounds(16), 16);
    assert_true(judge.limit > 0.045);
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_INCONCLUSIVE);
    assert_int_equal(judge.rivals[1].verdict, DT_CHECK_TIES);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_INCONCLUSIVE);
    assert_true(dt_check_look(&judge, 32));
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_LOSES);
}

/* A shift of the twin in every round is no noise that more rounds take away: a gain must be larger, and a loss. */
static void test_a_shifted_twin(void **state)
{
    (void)state;
    fresh(2, 80);
    plant(0, 0.97);
    plant(1, 1.045);
    for (int k = 0; k < DT_ROUNDS_MOST; k++)
        twin[k] = 1.05;
    assert_int_equal(rounds(64), 64);
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_TIES);
    assert_int_equal(judge.rivals[1].verdict, DT_CHECK_INCONCLUSIVE);
    fresh(1, 80);
    judge.twin = NULL;
    plant(0, 0.97);
    assert_int_equal(rounds(64), 8);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_WINS);
    assert_true(isnan(judge.margin));
}

/* Ratios that alternate by a third say nothing, however many. */
static void test_noise_refuses(void **state)
{
    (void)state;
    fresh(1, 80);
    for (int k = 0; k < DT_ROUNDS_MOST; k++)
        rivals[0][k] = k % 2 == 0 ? 1.2 : 1.6;
    assert_int_equal(rounds(64), 64);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_INCONCLUSIVE);
    assert_true(judge.rivals[0].ratio.interval.high < 1 && judge.rivals[0].cv > DT_CHECK_CV_MOST);
}

/* A tie with the plan that is to be beaten may be a win with more rounds; a tie with another rests. */
static void test_a_tie_may_become_a_win(void **state)
{
    (void)state;
    fresh(2, 80);
    for (int i = 0; i < 2; i++) {
        plant(i, 0.98);
        rivals[i][3] = 1 / 1.01;
        rivals[i][4] = 1 / 0.94;
    }
    assert_false(dt_check_look(&judge, 8));
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_TIES);
    assert_false(dt_check_decided(&judge, 0));
    assert_true(dt_check_decided(&judge, 1));
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_TIES);
    for (int k = 8; k < DT_ROUNDS_MOST; k++)
        rivals[1][k] = NAN;
    assert_true(dt_check_look(&judge, 16));
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_WINS);
    assert_int_equal(judge.rivals[1].verdict, DT_CHECK_TIES);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_WINS);
}

/* Rounds that end between two looks are judged, too; below eight nothing is said. */
static void test_ends_between_looks(void **state)
{
    (void)state;
    fresh(1, 80);
    plant(0, 1.1);
    assert_int_equal(rounds(20), 16);
    fresh(1, 156);
    plant(0, 1.1);
    assert_int_equal(rounds(20), 20); /* at the alpha of 32: .01 x .286 / 156 > 2^-20 */
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_LOSES);
    assert_int_equal(judge.rivals[0].ratio.pairs, 20);
    fresh(1, 1);
    plant(0, 1.1);
    assert_int_equal(rounds(15), 15); /* however clear */
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_INCONCLUSIVE);
    fresh(1, 80);
    plant(0, 0.5);
    assert_int_equal(rounds(7), 7);
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
    assert_int_equal(rounds(64), 8);
    assert_int_equal(dt_check_verdict(&judge), tie);
}

/* Rival 0 is the default, the tuned plan loses to rival 1 alone. */
static void test_who_takes_the_place(void **state)
{
    (void)state;
    fresh(2, 8);
    plant(0, 1.02);
    plant(1, 1.035);
    assert_int_equal(rounds(64), 16);
    assert_int_equal(dt_check_verdict(&judge), DT_CHECK_LOSES);
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_TIES);
    assert_int_equal(dt_check_successor(&judge, 0), 1); /* better than the default by 1.5 % */
    judge.margin = 0.016;
    assert_int_equal(dt_check_successor(&judge, 0), 0); /* which may be the noise of one plan */
    assert_int_equal(dt_check_successor(&judge, -1), 1);
    judge.rivals[0].verdict = DT_CHECK_WINS;
    assert_int_equal(dt_check_successor(&judge, 0), -1);
    judge.rivals[1].out = true;
    assert_int_equal(dt_check_successor(&judge, 0), -1);
    fresh(2, 8);
    plant(1, 1.035);
    for (int k = 0; k < DT_ROUNDS_MOST; k++)
        rivals[0][k] = k % 2 == 0 ? 1 : 1 / 1.06;
    assert_int_equal(rounds(64), 64);
    assert_int_equal(judge.rivals[0].verdict, DT_CHECK_INCONCLUSIVE);
    assert_int_equal(judge.rivals[1].verdict, DT_CHECK_LOSES);
    assert_int_equal(dt_check_successor(&judge, 0), 0); /* each is faster in half of the rounds */
    plant(0, 1.05);
    judge.rivals[0].verdict = DT_CHECK_LOSES;
    judge.rivals[0].ratio.ratio = 1.05;
    assert_int_equal(dt_check_successor(&judge, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wins_at_the_first_look),
        cmocka_unit_test(test_loses_at_the_rate_of_the_run),
        cmocka_unit_test(test_one_round_the_other_way),
        cmocka_unit_test(test_little_is_a_tie),
        cmocka_unit_test(test_noise_widens_only_what_loses),
        cmocka_unit_test(test_a_shifted_twin),
        cmocka_unit_test(test_noise_refuses),
        cmocka_unit_test(test_a_tie_may_become_a_win),
        cmocka_unit_test(test_ends_between_looks),
        cmocka_unit_test(test_an_entry_of_several_rivals),
        cmocka_unit_test(test_who_takes_the_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
