/* SPDX-License-Identifier: MIT */
/* Sums over requests of what a worker says: numbers at the edge of what an integer holds neither
 * wrap nor end the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tuner/measure/result.h"
#include "tuner/runner/runner.h"
#include "tuner/runner/samples_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST "9007199254740992" /* 2^53 */

static json_t *parsed(const char *text)
{
    json_t *root = NULL;
    assert_int_equal(dt_json_parse(text, strlen(text), "a test", &root), DT_OK);
    return root;
}

/* One measured step of one rank, as a worker answers it. */
static void add(struct dt_result *result, const char *phases, const char *telemetry)
{
    char text[512];
    struct dt_run run = {0};
    struct dt_run_fault fault;
    snprintf(text, sizeof text, "{\"ns\":[[1000]],\"phases\":%s,\"telemetry\":%s}", phases,
             telemetry);
    json_t *answer = parsed(text);
    assert_int_equal(dt_run_read(answer, &(struct dt_run_form){0}, &run, &fault), DT_OK);
    assert_int_equal(dt_result_add(result, &run, true), DT_OK);
    dt_run_fini(&run);
    json_decref(answer);
}

static void phases_stay_at_the_largest(void **state)
{
    (void)state;
    struct dt_result result = {.report.steps = 0};
    for (int i = 0; i < 3; i++)
        add(&result,
            "{\"steps\":1,\"step_ns\":9223372036854775807,\"host_ns\":-9223372036854775807,"
            "\"kinds\":[{\"name\":\"a\",\"ns\":4,\"count\":9223372036854775807}]}",
            "null");
    const struct dt_phase_sums *phases = result.report.phases;
    assert_int_equal(phases->kinds.count, 1);
    assert_true(phases->steps.value == 3);
    assert_true(phases->step_ns.value == INT64_MAX);
    assert_true(phases->host_ns.value == INT64_MIN);
    assert_true(phases->kinds.at[0].count.value == INT64_MAX);
    assert_true(phases->kinds.at[0].ns.value == 12);
    assert_false(phases->kinds.at[0].bytes.known);
    dt_result_fini(&result);
}

/* Three requests of 2, 3 and 1 steps: what is summed is 1 + 2 + 3 times the first, what is not is
 * that of the longest, and all that was reported is written as it came. */
static void phases_add_up(void **state)
{
    (void)state;
    static const struct {
        int steps, times;
    } each[] = {{2, 1}, {3, 2}, {1, 3}};
    static const char form[] =
        "{\"steps\":%d,\"kinds\":[{\"name\":\"gemm\",\"ns\":%d},{\"name\":\"exchange\",\"ns\":%d,"
        "\"bytes\":%d,\"in_flight_ns\":%d}],\"exchanges\":[{\"name\":\"ring\",\"kind\":\"shift\","
        "\"ranks\":2,\"count\":%d,\"ns\":%d,\"bytes\":%d,\"in_flight_ns\":%d}],\"blocks\":[{"
        "\"name\":\"block\",\"count\":%d,\"median_ns\":%d,\"layers_ns\":[%d,%d]}],\"step_ns\":%d,"
        "\"host_ns\":%d,\"rank\":1,\"cpu_ns\":[%d,%d],\"wall_ns\":[%d,%d]}";
    static long long ns[] = {9, 9, 9, 9, 9, 9};
    struct dt_run sum = {0};
    char text[1024];
#define FORM(t, longest)                                                                           \
    form, t, 3 * (t), 5 * (t), 7 * (t), 11 * (t), 2 * (t), 13 * (t), 17 * (t), 19 * (t), 4 * (t),  \
        23 * (longest), 29 * (longest), 31 * (longest), 37 * (t), 41 * (t), 43 * (t), 47 * (t),    \
        53 * (t), 59 * (t)
    for (int i = 0; i < 3; i++) {
        struct dt_run_fault fault;
        struct dt_run_form how = {0};
        struct dt_run run = {0}, read = {0};
        snprintf(text, sizeof text, FORM(each[i].times, each[i].times));
        json_t *phases = parsed(text),
               *answer = json_pack("{s:[[i]], s:o}", "ns", 9, "phases", phases);
        assert_int_equal(dt_run_read(answer, &how, &read, &fault), DT_OK);
        run = read;
        run.steps = each[i].steps;
        run.ranks = 2;
        run.ns = ns;
        assert_int_equal(dt_run_add(&sum, &run, true), DT_OK);
        run.ns = read.ns;
        dt_run_fini(&run);
        json_decref(answer);
    }
    struct dt_text out = {0};
    json_t *written = dt_phases_json(sum.phases);
    snprintf(text, sizeof text, FORM(6, 2));
    assert_int_equal(dt_json_text(written, &out), DT_OK);
    assert_string_equal(dt_text_at(&out), text);
    assert_int_equal(sum.request_count, 3);
    assert_int_equal(sum.requests[1], 3);
    assert_int_equal(sum.steps, 6);
    dt_text_fini(&out);
    json_decref(written);
    dt_run_fini(&sum);
}

/* Of each request the reasons of all ranks, also where one before it had no telemetry; times by
 * other clocks are 0 and rates NAN where a run has none; remarks of equal words are one. */
static void parts_of_runs_are_kept_apart(void **state)
{
    (void)state;
    static const char *const answers[] = {
        "{\"ns\":[[5,6]],\"runs\":2,\"warnings\":[{\"say\":\"a\",\"runs\":1}]}",
        ("{\"ns\":[[7,8]],\"device_ns\":[[3,4]],\"clock\":[[1.5,2.5]],\"telemetry\":[{\"looks\":1,"
         "\"reasons\":[\"hot\"]},{\"looks\":3,\"sm_mhz\":{\"least\":1,\"mean\":2,\"most\":9}}],"
         "\"runs\":3,"
         "\"read\":\"there\",\"warnings\":[{\"say\":\"b\",\"runs\":1},{\"say\":\"a\",\"runs\":2}]"
         "}"),
        ("{\"ns\":[[9,1]],\"telemetry\":[{\"looks\":1,\"reasons\":[]},{\"looks\":1,"
         "\"sm_mhz\":{\"least\":0,\"mean\":6,\"most\":7},\"reasons\":[\"cap\",\"hot\"]}]}")};
    struct dt_run sum = {0};
    for (int i = 0; i < 3; i++) {
        struct dt_run run = {0};
        struct dt_run_fault fault;
        json_t *answer = parsed(answers[i]);
        assert_int_equal(
            dt_run_read(answer, &(struct dt_run_form){.remarks = answer}, &run, &fault), DT_OK);
        assert_int_equal(dt_run_add(&sum, &run, true), DT_OK);
        dt_run_fini(&run);
        json_decref(answer);
    }
    static const long long ns[] = {5, 6, 7, 8, 9, 1}, device[] = {0, 0, 3, 4, 0, 0};
    assert_memory_equal(sum.ns, ns, sizeof ns);
    assert_memory_equal(sum.device_ns, device, sizeof device);
    assert_null(sum.host_ns);
    assert_true(isnan(sum.clock[1]) && sum.clock[3] == 2.5 && isnan(sum.clock[4]));
    assert_int_equal(sum.reason_count, 3);
    assert_int_equal(sum.reasons[0].count, 0);
    assert_int_equal(sum.reasons[1].count, 1);
    assert_string_equal(sum.reasons[2].at[0], "cap");
    assert_int_equal(sum.telemetry[0].reasons.count, 1);
    assert_int_equal(sum.telemetry[1].reasons.count, 2);
    const struct dt_range *mhz = &sum.telemetry[1].sm_mhz;
    assert_true(mhz->least == 0 && mhz->mean == 3 && mhz->most == 9 && sum.telemetry[1].looks == 4);
    json_t *remarks = dt_remarks_json(sum.remarks);
    struct dt_text out = {0};
    assert_int_equal(dt_json_text(remarks, &out), DT_OK);
    assert_string_equal(dt_text_at(&out), "{\"runs\":5,\"warnings\":[{\"runs\":3,\"say\":\"a\"},"
                                          "{\"runs\":1,\"say\":\"b\"}],\"read\":\"there\"}");
    dt_text_fini(&out);
    json_decref(remarks);
    dt_run_fini(&sum);
}

static const char *telemetry(const char *looks, const char *value)
{
    static char text[256];
    snprintf(text, sizeof text,
             "[{\"looks\":%s,\"power_mw\":{\"least\":%s,\"mean\":%s,\"most\":%s}}]", looks, value,
             value, value);
    return text;
}

static bool is_telemetry(const char *looks, const char *value)
{
    struct dt_rank_telemetry *read = NULL;
    json_t *list = parsed(telemetry(looks, value));
    bool right = dt_telemetry_read(list, 1, &read);
    json_decref(list);
    free(read);
    return right;
}

static void means_stay_between_least_and_most(void **state)
{
    (void)state;
    static const struct {
        const char *looks, *value;
    } each[] = {{"1", "-" LARGEST}, {"1099511627776", LARGEST}, {"3", "7"}};
    struct dt_result result = {.report.steps = 0};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
        add(&result, "null", telemetry(each[i].looks, each[i].value));
    const struct dt_rank_telemetry *rank = &result.report.telemetry[0];
    const struct dt_range *power = &rank->power_mw;
    assert_true(rank->looks == 1099511627780);
    assert_true(power->least == -9007199254740992);
    assert_true(power->most == 9007199254740992);
    assert_true(power->mean > 9007199254700000);
    dt_result_fini(&result);
    assert_true(is_telemetry("1", LARGEST));
    assert_false(is_telemetry("1", "9007199254740993"));
    assert_false(is_telemetry("1", "-9007199254740993"));
    assert_false(is_telemetry("1099511627777", "1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_stay_at_the_largest),
        cmocka_unit_test(phases_add_up),
        cmocka_unit_test(parts_of_runs_are_kept_apart),
        cmocka_unit_test(means_stay_between_least_and_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
