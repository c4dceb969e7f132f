/* SPDX-License-Identifier: MIT */
/* What the records of several comparisons make of a session: one whose first entrant fell and is
 * repeated without it, or is not; a second one that finds less than the first; a shoot-out that
 * no comparison followed; what a documented plan, plan 1, changes. Times are planted, so that
 * each answer is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"
#include "tuner/session/session_int.h"

#include <math.h>
#include <string.h>

enum { PLANS = 3, SETS = 4, ROUNDS = 2 };

static struct dt_target target;
static struct dt_session session;
static double wobble; /* share by which plan 1 differs from its time, up and down from set to set */

static struct dt_point plan_at(int plan)
{
    return (struct dt_point){{plan}};
}

static void apply(struct dt_log_record *record)
{
    assert_int_equal(dt_session_apply(&session, record), DT_OK);
}

/* Steps of so many seconds; or a failure, with the steps before it. */
static struct dt_result result_of(int plan, double seconds, int steps, enum dt_outcome outcome)
{
    long long ns[SETS * ROUNDS];
    struct dt_point point = plan_at(plan);
    struct dt_result result;
    for (int i = 0; i < steps; i++)
        ns[i] = llround(seconds * 1e9);
    struct dt_run run = {.steps = steps, .ranks = 1, .ns = ns};
    dt_result_init(&result, &target, &point);
    assert_int_equal(dt_result_add(&result, &run, true), DT_OK);
    assert_int_equal(dt_result_finish(&result, 0.95, false, 0), DT_OK);
    result.outcome = outcome;
    return result;
}

static void add_trial(int plan, double seconds)
{
    apply(&(struct dt_log_record){.kind = DT_LOG_TRIAL,
                                  .result = result_of(plan, seconds, 8, DT_TRIAL_OK)});
}

static struct dt_entrant entrant_of(int plan, double seconds, int sets, bool falls)
{
    struct dt_point point = plan_at(plan);
    bool documented = dt_target_documented(&target, &point);
    struct dt_entrant entrant = {.role = plan == 0    ? DT_ENTRANT_DEFAULT
                                         : documented ? DT_ENTRANT_DOCUMENTED
                                                      : DT_ENTRANT_CANDIDATE,
                                 .point = point,
                                 .decisive = plan > 0,
                                 .out = falls,
                                 .out_set = falls ? sets : -1};
    entrant.result = result_of(plan, seconds, sets * ROUNDS, falls ? DT_TRIAL_WRONG : DT_TRIAL_OK);
    for (int i = 0; i < DT_ROUNDS_MOST; i++)
        entrant.visits[i] = i >= sets * ROUNDS ? NAN
                            : plan == 1 ? seconds * (1 + (i / ROUNDS % 2 == 0 ? wobble : -wobble))
                                        : seconds;
    return entrant;
}

/* plans: seconds of each, 0: it does not take part. fallen: after so many sets the first plan
 * computes something else;
 * 0: never. */
static void compare(const char *name, const double plans[PLANS], int fallen)
{
    struct dt_entrant entrants[DT_ENTRANTS];
    struct dt_log_record record = {
        .kind = DT_LOG_COMPARISON,
        .compared = {.name = name, .entrants = entrants, .complete = true}};
    struct dt_sets *sets = &record.compared.sets;
    sets->count = fallen > 0 ? fallen : SETS;
    for (int i = 0; i < sets->count; i++)
        sets->rounds[i] = ROUNDS;
    for (int plan = 0; plan < PLANS; plan++)
        if (plans[plan] > 0)
            entrants[record.compared.count++] =
                entrant_of(plan, plans[plan], sets->count, fallen > 0 && plan == 0);
    assert_int_equal(dt_entrants_rejudge(&target, entrants, record.compared.count, sets), DT_OK);
    apply(&record);
    assert_int_equal(record.compared.count, 0); /* the session has them */
}

static int best_plan(void)
{
    const struct dt_session_finals *finals = &session.finals;
    return finals->best >= 0 ? finals->entrants[finals->best].point.index[0] : -1;
}

static void end(void)
{
    apply(&(struct dt_log_record){.kind = DT_LOG_END,
                                  .ended = {.searched = {"", true}, .closing.known = true}});
}

static int setup(void **state)
{
    (void)state;
    target = (struct dt_target){.space = make_line(PLANS), .plans = PLANS};
    assert_int_equal(dt_objective_find("latency", &target.objective), DT_OK);
    struct dt_job job = {.seed = 0};
    session = (struct dt_session){.target = NULL};
    apply(&(struct dt_log_record){.kind = DT_LOG_SESSION,
                                  .begun = {.id = "", .target = &target, .job = &job}});
    for (int plan = 0; plan < PLANS; plan++)
        add_trial(plan, 1 - 0.1 * plan);
    return 0;
}

/* Plan 1 is the documented one. */
static int setup_documented(void **state)
{
    int failed = setup(state);
    target.documented = (struct dt_documented){.known = true, .point = plan_at(1)};
    return failed;
}

static int teardown(void **state)
{
    (void)state;
    wobble = 0;
    dt_session_fini(&session);
    dt_space_free(target.space);
    return 0;
}

static void a_fallen_comparison_decides_nothing_and_is_repeated(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.9, 0}, 2);
    assert_true(dt_verdict_first_fell(&session));
    assert_int_equal(session.verdict, DT_VERDICT_PROVISIONAL);
    assert_int_equal(session.finals.best, -1);
    compare(DT_FINAL_COMPARISON, (double[]){0, 0.9, 0}, 0);
    assert_false(dt_verdict_first_fell(&session));
    assert_int_equal(session.finals.entrant_count, 1);
    assert_int_equal(session.finals.sets.count, SETS);
}

static void the_comparison_before_stays_where_the_repetition_does_not_come(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.9, 0}, 0);
    assert_int_equal(session.verdict, DT_VERDICT_FASTER);
    compare(DT_FINAL_COMPARISON, (double[]){1, 0, 0.8}, 2);
    assert_int_equal(session.verdict, DT_VERDICT_PROVISIONAL);
    end();
    assert_int_equal(session.finals.entrants[1].point.index[0], 1);
    assert_int_equal(session.finals.verdict, DT_VERDICT_FASTER);
    assert_int_equal(session.before.entrant_count, 0);
}

static void of_two_comparisons_the_faster_winner_counts(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.8, 0}, 0);
    compare(DT_FINAL_COMPARISON, (double[]){1, 0, 0.9}, 0);
    assert_int_equal(best_plan(), 1);
    compare(DT_FINAL_COMPARISON, (double[]){1, 0, 0.7}, 0);
    assert_int_equal(best_plan(), 2);
    compare(DT_FINAL_COMPARISON, (double[]){1, 1.1, 0}, 0);
    assert_int_equal(best_plan(), 2);
    assert_int_equal(session.verdict, DT_VERDICT_FASTER);
}

static void a_shootout_belongs_to_the_comparison_of_its_winner(void **state)
{
    (void)state;
    compare(DT_SHOOTOUT, (double[]){1, 0.9, 0.8}, 0);
    assert_int_equal(session.next.winner.index[0], 2);
    compare(DT_FINAL_COMPARISON, (double[]){1, 0, 0.8}, 0);
    assert_int_equal(session.finals.shot_count, PLANS);
    compare(DT_SHOOTOUT, (double[]){1, 0.9, 0.8}, 0); /* its winner was compared already */
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.7, 0}, 0);
    assert_int_equal(best_plan(), 1);
    assert_int_equal(session.finals.shot_count, 0);
    assert_int_equal(session.next.shot_count, 0);
}

static void a_comparison_that_goes_on_takes_the_place_of_its_begin(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.8, 0}, 0);
    struct dt_entrant entrants[DT_ENTRANTS] = {entrant_of(0, 1, SETS, false),
                                               entrant_of(1, 1.2, SETS, false)};
    struct dt_log_record record = {.kind = DT_LOG_COMPARISON,
                                   .compared = {.name = DT_FINAL_COMPARISON,
                                                .entrants = entrants,
                                                .count = 2,
                                                .complete = true,
                                                .goes_on = true,
                                                .sets.count = SETS}};
    for (int i = 0; i < SETS; i++)
        record.compared.sets.rounds[i] = ROUNDS;
    assert_int_equal(dt_entrants_rejudge(&target, entrants, 2, &record.compared.sets), DT_OK);
    apply(&record);
    assert_int_equal(best_plan(), 0); /* not the winner of its begin */
}

/* ---- with a documented plan */

static void assert_decided(enum dt_verdict verdict, int plan)
{
    assert_string_equal(dt_verdict_text(session.finals.verdict), dt_verdict_text(verdict));
    assert_int_equal(best_plan(), plan);
}

/* over: NULL: the default. */
static void assert_gain(double ratio, const char *over)
{
    const struct dt_gain gain = dt_session_gain(&session);
    assert_true(gain.known);
    assert_true(fabs(gain.ratio - ratio) < 1e-6);
    assert_int_equal(over == NULL, gain.over == NULL);
    if (over != NULL)
        assert_string_equal(gain.over, over);
}

static void a_default_that_falls_late_leaves_the_documented_plan(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.9, 0.6}, SETS);
    assert_false(dt_verdict_first_fell(&session)); /* there are sets enough */
    assert_decided(DT_VERDICT_FASTER, 2);
    assert_gain(1.5, "documented");
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.5, 0.6}, SETS);
    assert_decided(DT_VERDICT_FASTER, 2); /* of the one before, as that one found a faster plan */
}

static void the_documented_plan_is_enough_where_the_default_fell_late(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.5, 0.6}, SETS);
    assert_decided(DT_VERDICT_DOCUMENTED, 1);
    assert_false(dt_session_gain(&session).known); /* not over a default that cannot be used */
}

static void a_default_that_fails_for_now_decides_nothing(void **state)
{
    (void)state;
    struct dt_entrant entrants[DT_ENTRANTS] = {entrant_of(0, 1, SETS, true),
                                               entrant_of(1, 0.5, SETS, false)};
    struct dt_log_record record = {.kind = DT_LOG_COMPARISON,
                                   .compared = {.name = DT_FINAL_COMPARISON,
                                                .entrants = entrants,
                                                .count = 2,
                                                .complete = true,
                                                .sets.count = SETS}};
    entrants[0].result.outcome = DT_TRIAL_CRASHED;
    for (int i = 0; i < SETS; i++)
        record.compared.sets.rounds[i] = ROUNDS;
    assert_int_equal(dt_entrants_rejudge(&target, entrants, 2, &record.compared.sets), DT_OK);
    apply(&record);
    assert_decided(DT_VERDICT_PROVISIONAL, -1);
    assert_false(dt_session_gain(&session).known);
}

static void the_documented_plan_is_first_where_the_default_is_not_compared(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){0, 0.9, 0.6}, 0);
    assert_decided(DT_VERDICT_FASTER, 2);
    assert_gain(1.5, "documented");
}

static void a_default_that_stays_has_a_gain_over_itself(void **state)
{
    (void)state;
    wobble = 0.1;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.98, 1.2}, 0);
    assert_int_equal(session.finals.opponent, 1); /* by its mean, but that is not shown */
    assert_decided(DT_VERDICT_DEFAULT, 0);
    assert_gain(1, NULL);
}

static void the_documented_plan_is_enough_where_it_replaces_what_beats_the_default(void **state)
{
    (void)state;
    wobble = 0.05;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.98, 0.97}, 0);
    const struct dt_gain gain = dt_session_gain(&session);
    assert_decided(DT_VERDICT_DOCUMENTED, 1);
    assert_true(gain.known && gain.over == NULL);
    assert_true(gain.interval.low < 1 && gain.interval.high > 1);
}

static void documented_then_faster_then_documented(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.8, 0}, 0);
    assert_decided(DT_VERDICT_DOCUMENTED, 1);
    assert_gain(1.25, NULL);
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.8, 0.9}, 0);
    assert_decided(DT_VERDICT_DOCUMENTED, 1);
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.8, 0.4}, 0);
    assert_decided(DT_VERDICT_FASTER, 2);
    assert_gain(2, "documented");
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.8, 0}, 0);
    assert_decided(DT_VERDICT_FASTER, 2);
}

static void winners_are_compared_over_a_plan_of_both_comparisons(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.5, 0.4}, 0); /* 0.8 of the documented plan */
    compare(DT_FINAL_COMPARISON, (double[]){0, 0.5, 0.35}, 0);
    assert_int_equal(session.finals.entrant_count, 2); /* 0.7 of it, though 0.4 of the default */
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.5, 0.45}, 0);
    assert_int_equal(session.finals.entrant_count, 2); /* 0.9 of it, though 0.45 of the default */
    assert_gain(0.5 / 0.35, "documented");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_fallen_comparison_decides_nothing_and_is_repeated, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            the_comparison_before_stays_where_the_repetition_does_not_come, setup, teardown),
        cmocka_unit_test_setup_teardown(of_two_comparisons_the_faster_winner_counts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_shootout_belongs_to_the_comparison_of_its_winner, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_comparison_that_goes_on_takes_the_place_of_its_begin,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_default_that_falls_late_leaves_the_documented_plan,
                                        setup_documented, teardown),
        cmocka_unit_test_setup_teardown(the_documented_plan_is_enough_where_the_default_fell_late,
                                        setup_documented, teardown),
        cmocka_unit_test_setup_teardown(a_default_that_fails_for_now_decides_nothing,
                                        setup_documented, teardown),
        cmocka_unit_test_setup_teardown(
            the_documented_plan_is_first_where_the_default_is_not_compared, setup_documented,
            teardown),
        cmocka_unit_test_setup_teardown(a_default_that_stays_has_a_gain_over_itself,
                                        setup_documented, teardown),
        cmocka_unit_test_setup_teardown(
            the_documented_plan_is_enough_where_it_replaces_what_beats_the_default,
            setup_documented, teardown),
        cmocka_unit_test_setup_teardown(documented_then_faster_then_documented, setup_documented,
                                        teardown),
        cmocka_unit_test_setup_teardown(winners_are_compared_over_a_plan_of_both_comparisons,
                                        setup_documented, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
