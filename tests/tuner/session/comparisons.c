/* SPDX-License-Identifier: MIT */
/* What the records of several comparisons make of a session: one whose first entrant fell and is repeated without it, or is not; a second
 * one that finds less than the first; a shoot-out that no comparison followed. Times are planted, so that each answer is known. */
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
    struct dt_entrant entrant = {.role = plan == 0 ? DT_ENTRANT_DEFAULT : DT_ENTRANT_CANDIDATE,
                                 .point = plan_at(plan),
                                 .decisive = plan > 0,
                                 .out = falls,
                                 .out_set = falls ? sets : -1};
    entrant.result = result_of(plan, seconds, sets * ROUNDS, falls ? DT_TRIAL_WRONG : DT_TRIAL_OK);
    for (int i = 0; i < DT_ROUNDS_MOST; i++)
        entrant.visits[i] = i < sets * ROUNDS ? seconds : NAN;
    return entrant;
}

/* plans: seconds of each, 0: it does not take part. fallen: after two sets the first plan computes something else. */
static void compare(const char *name, const double plans[PLANS], bool fallen)
{
    struct dt_entrant entrants[DT_ENTRANTS];
    struct dt_log_record record = {
        .kind = DT_LOG_COMPARISON,
        .compared = {.name = name, .entrants = entrants, .complete = true}};
    struct dt_sets *sets = &record.compared.sets;
    sets->count = fallen ? 2 : SETS;
    for (int i = 0; i < sets->count; i++)
        sets->rounds[i] = ROUNDS;
    for (int plan = 0; plan < PLANS; plan++)
        if (plans[plan] > 0)
            entrants[record.compared.count++] =
                entrant_of(plan, plans[plan], sets->count, fallen && plan == 0);
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

static int teardown(void **state)
{
    (void)state;
    dt_session_fini(&session);
    dt_space_free(target.space);
    return 0;
}

static void a_fallen_comparison_decides_nothing_and_is_repeated(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.9, 0}, true);
    assert_true(dt_verdict_first_fell(&session));
    assert_int_equal(session.verdict, DT_VERDICT_PROVISIONAL);
    assert_int_equal(session.finals.best, -1);
    compare(DT_FINAL_COMPARISON, (double[]){0, 0.9, 0}, false);
    assert_false(dt_verdict_first_fell(&session));
    assert_int_equal(session.finals.entrant_count, 1);
    assert_int_equal(session.finals.sets.count, SETS);
}

static void the_comparison_before_stays_where_the_repetition_does_not_come(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.9, 0}, false);
    assert_int_equal(session.verdict, DT_VERDICT_FASTER);
    compare(DT_FINAL_COMPARISON, (double[]){1, 0, 0.8}, true);
    assert_int_equal(session.verdict, DT_VERDICT_PROVISIONAL);
    end();
    assert_int_equal(session.finals.entrants[1].point.index[0], 1);
    assert_int_equal(session.finals.verdict, DT_VERDICT_FASTER);
    assert_int_equal(session.before.entrant_count, 0);
}

static void of_two_comparisons_the_faster_winner_counts(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.8, 0}, false);
    compare(DT_FINAL_COMPARISON, (double[]){1, 0, 0.9}, false);
    assert_int_equal(best_plan(), 1);
    compare(DT_FINAL_COMPARISON, (double[]){1, 0, 0.7}, false);
    assert_int_equal(best_plan(), 2);
    compare(DT_FINAL_COMPARISON, (double[]){1, 1.1, 0}, false);
    assert_int_equal(best_plan(), 2);
    assert_int_equal(session.verdict, DT_VERDICT_FASTER);
}

static void a_shootout_belongs_to_the_comparison_of_its_winner(void **state)
{
    (void)state;
    compare(DT_SHOOTOUT, (double[]){1, 0.9, 0.8}, false);
    assert_int_equal(session.next.winner.index[0], 2);
    compare(DT_FINAL_COMPARISON, (double[]){1, 0, 0.8}, false);
    assert_int_equal(session.finals.shot_count, PLANS);
    compare(DT_SHOOTOUT, (double[]){1, 0.9, 0.8}, false); /* its winner was compared already */
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.7, 0}, false);
    assert_int_equal(best_plan(), 1);
    assert_int_equal(session.finals.shot_count, 0);
    assert_int_equal(session.next.shot_count, 0);
}

static void a_comparison_that_goes_on_takes_the_place_of_its_begin(void **state)
{
    (void)state;
    compare(DT_FINAL_COMPARISON, (double[]){1, 0.8, 0}, false);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
