/* SPDX-License-Identifier: MIT */
/* What a session expects of an engine's plans: their predicted steps as dt_predict has them, and of
 * plans that lack memory an order behind those that fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "space/json/json.h"
#include "tuner/session/tuning.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct dt_target target;

/* Wan2.1 of 14 billion parameters on an L40 of 48 GiB: too large for one device at 720p, not for
 * two that split its weights. */
static int setup(void **state)
{
    static const char text[] =
        "{\"parameters\": [{\"name\": \"tensor\", \"values\": [1, 2], \"default\": 1},"
        " {\"name\": \"offload\", \"values\": [\"auto\", \"layers\"], \"default\": \"auto\"}],"
        " \"rules\": []}";
    json_t *root = NULL;
    (void)state;
    if (dt_json_parse(text, sizeof text - 1, "a space", &root) != DT_OK ||
        dt_space_from_json(root, "a space", &target.space) != DT_OK)
        return -1;
    json_decref(root);
    snprintf(target.identity.engine, sizeof target.identity.engine, "sglang");
    target.identity.key = json_pack("{s:{s:s, s:i, s:i, s:i}}", "job", "model", "wan2.1-t2v-14b",
                                    "width", 1280, "height", 720, "frames", 81);
    target.identity.hard = json_pack("{s:s}", "device", "NVIDIA L40");
    target.foreign = true;
    return dt_objective_find("latency", &target.objective) == DT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    dt_space_free(target.space);
    json_decref(target.identity.key);
    json_decref(target.identity.hard);
    return 0;
}

enum { WHOLE, WHOLE_STREAMED, SPLIT, POINTS };

static void points(struct dt_point at[POINTS])
{
    static const char *const texts[] = {"tensor=1 offload=auto", "tensor=1 offload=layers",
                                        "tensor=2 offload=auto"};
    for (int i = 0; i < POINTS; i++)
        assert_int_equal(dt_target_plan(&target, texts[i], &at[i]), DT_OK);
}

/* Of the same plan by dt_predict. */
static double step_of(int tensor, unsigned settings)
{
    struct dt_card card;
    struct dt_machine_card machine;
    struct dt_prediction p;
    assert_int_equal(dt_card_load("wan2.1-t2v-14b", &card), DT_OK);
    assert_int_equal(dt_machine_card_load("l40", &machine), DT_OK);
    const struct dt_predict_job job = {.card = &card,
                                       .machine = &machine,
                                       .size = {1280, 720, 81},
                                       .text_tokens = card.text_tokens,
                                       .steps = 1,
                                       .guided = true};
    dt_predict(&job, &(struct dt_degrees){.tensor = tensor, .settings = settings}, &p);
    return p.step;
}

static double order_over_value(const struct dt_belief *belief, const struct dt_point *point)
{
    const struct dt_prior *prior = dt_belief_prior(belief), *order = dt_belief_order(belief);
    return order->value(order->context, point) / prior->value(prior->context, point);
}

static void what_lacks_memory_comes_late(void **state)
{
    struct dt_point at[POINTS];
    struct dt_belief belief;
    (void)state;
    points(at);
    assert_int_equal(dt_belief_init(&belief, &target, NULL), DT_OK);
    assert_non_null(dt_belief_prior(&belief));
    assert_true(order_over_value(&belief, &at[WHOLE]) > 1);
    assert_true(order_over_value(&belief, &at[WHOLE_STREAMED]) == 1);
    assert_true(order_over_value(&belief, &at[SPLIT]) == 1);
    target.max_bytes = INT64_C(20) << 30;
    assert_true(order_over_value(&belief, &at[SPLIT]) > 1);
    target.max_bytes = 0;
    dt_belief_fini(&belief);
}

static void seconds_are_those_of_a_step(void **state)
{
    static const char *const objectives[] = {"latency", "throughput", "cost"};
    const double expected[POINTS] = {step_of(1, 0), step_of(1, DT_SETTING_streams), step_of(2, 0)};
    struct dt_point at[POINTS];
    (void)state;
    points(at);
    for (size_t i = 0; i < sizeof objectives / sizeof objectives[0]; i++) {
        struct dt_belief belief;
        assert_int_equal(dt_objective_find(objectives[i], &target.objective), DT_OK);
        assert_int_equal(dt_belief_init(&belief, &target, NULL), DT_OK);
        for (int k = 0; k < POINTS; k++)
            assert_true(fabs(dt_belief_seconds(&belief, &at[k]) / expected[k] - 1) < 1e-12);
        dt_belief_fini(&belief);
        assert_int_equal(dt_belief_init(&belief, &target, "none"), DT_OK);
        assert_true(isnan(dt_belief_seconds(&belief, &at[0])));
        assert_null(dt_belief_order(&belief));
        dt_belief_fini(&belief);
    }
    assert_int_equal(dt_objective_find("latency", &target.objective), DT_OK);
}

/* Wan2.1 on one device takes 1.9 times as long as on two. */
static void a_trial_that_is_expected_to_take_longer_has_more_time(void **state)
{
    struct dt_point at[POINTS];
    struct dt_belief belief;
    struct dt_result trials[2] = {{.outcome = DT_TRIAL_OK}, {.outcome = DT_TRIAL_OK}};
    struct dt_session session = {.trials = trials};
    const double ratio = step_of(1, 0) / step_of(2, 0);
    (void)state;
    points(at);
    assert_int_equal(dt_belief_init(&belief, &target, NULL), DT_OK);
    assert_true(dt_belief_slower(&belief, &session, &at[WHOLE]) == 1); /* nothing ran */
    trials[0].point = at[SPLIT];
    trials[1].point = at[WHOLE];
    session.count = 1;
    assert_true(ratio > 1.5 && ratio < 8);
    assert_true(fabs(dt_belief_slower(&belief, &session, &at[WHOLE]) / ratio - 1) < 1e-12);
    assert_true(dt_belief_slower(&belief, &session, &at[SPLIT]) == 1);
    session.count = 2;
    assert_true(dt_belief_slower(&belief, &session, &at[WHOLE]) == 1); /* the slowest counts */
    trials[1].outcome = DT_TRIAL_HUNG;
    assert_true(dt_belief_slower(&belief, &session, &at[WHOLE]) > 1.5); /* of those that ran */
    dt_belief_fini(&belief);
    assert_int_equal(dt_belief_init(&belief, &target, "none"), DT_OK);
    assert_true(dt_belief_slower(&belief, &session, &at[WHOLE]) == 1);
    dt_belief_fini(&belief);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lacks_memory_comes_late),
        cmocka_unit_test(seconds_are_those_of_a_step),
        cmocka_unit_test(a_trial_that_is_expected_to_take_longer_has_more_time),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
