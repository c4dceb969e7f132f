/* SPDX-License-Identifier: MIT */
/* Sums over requests of what a worker says: numbers at the edge of what an integer holds neither wrap nor end the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tuner/measure/result.h"
#include "tuner/runner/runner.h"

#include <stdio.h>
#include <string.h>

#define LARGEST "9007199254740992" /* 2^53 */

static json_t *parsed(const char *text)
{
    json_t *root = NULL;
    assert_int_equal(dt_json_parse(text, strlen(text), "a test", &root), DT_OK);
    return root;
}

/* One measured step of one rank. */
static void add(struct dt_result *result, json_t *phases, json_t *telemetry)
{
    static long long ns[] = {1000};
    const struct dt_run run = {
        .steps = 1, .ranks = 1, .ns = ns, .phases = phases, .telemetry = telemetry};
    assert_int_equal(dt_result_add(result, &run, true), DT_OK);
}

static void phases_stay_at_the_largest(void **state)
{
    (void)state;
    struct dt_result result = {.report.steps = 0};
    json_t *phases =
        parsed("{\"steps\":1,\"step_ns\":9223372036854775807,\"host_ns\":-9223372036854775807,"
               "\"kinds\":[{\"name\":\"a\",\"ns\":4,\"count\":9223372036854775807}]}");
    for (int i = 0; i < 3; i++)
        add(&result, phases, NULL);
    const json_t *kind = json_array_get(json_object_get(result.report.phases, "kinds"), 0);
    assert_int_equal(json_integer_value(json_object_get(result.report.phases, "steps")), 3);
    assert_true(json_integer_value(json_object_get(result.report.phases, "step_ns")) == INT64_MAX);
    assert_true(json_integer_value(json_object_get(result.report.phases, "host_ns")) == INT64_MIN);
    assert_true(json_integer_value(json_object_get(kind, "count")) == INT64_MAX);
    assert_int_equal(json_integer_value(json_object_get(kind, "ns")), 12);
    json_decref(phases);
    dt_result_fini(&result);
}

static json_t *telemetry(const char *looks, const char *value)
{
    char text[256];
    json_t *kept = NULL;
    snprintf(text, sizeof text,
             "[{\"looks\":%s,\"power_mw\":{\"least\":%s,\"mean\":%s,\"most\":%s}}]", looks, value,
             value, value);
    json_t *said = parsed(text);
    if (!dt_device_answer_telemetry(said, 1, &kept))
        kept = NULL;
    json_decref(said);
    return kept;
}

static void means_stay_between_least_and_most(void **state)
{
    (void)state;
    static const struct {
        const char *looks, *value;
    } each[] = {{"1", "-" LARGEST}, {"1099511627776", LARGEST}, {"3", "7"}};
    struct dt_result result = {.report.steps = 0};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        json_t *one = telemetry(each[i].looks, each[i].value);
        assert_non_null(one);
        add(&result, NULL, one);
        json_decref(one);
    }
    const json_t *rank = json_array_get(result.device.telemetry, 0);
    const json_t *power = json_object_get(rank, "power_mw");
    assert_true(json_integer_value(json_object_get(rank, "looks")) == 1099511627780);
    assert_true(json_integer_value(json_object_get(power, "least")) == -9007199254740992);
    assert_true(json_integer_value(json_object_get(power, "most")) == 9007199254740992);
    assert_true(json_integer_value(json_object_get(power, "mean")) > 9007199254700000);
    dt_result_fini(&result);
    assert_null(telemetry("1", "9007199254740993"));
    assert_null(telemetry("1", "-9007199254740993"));
    assert_null(telemetry("1099511627777", "1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_stay_at_the_largest),
        cmocka_unit_test(means_stay_between_least_and_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
