/* SPDX-License-Identifier: MIT */
/* Throttled samples by scripted workers: told by the clock, left out, asked for again, and
 * never without an end. The scripts name the number of steps of every request; another
 * number ends the worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/tuner/script.h"
#include "tuner/measure/trial.h"

#include <math.h>

#define PREPARE(tile, handle)                                                                      \
    "> {\"op\":\"prepare\",\"plan\":{\"tile\":" tile "}}\n"                                        \
    "< {\"op\":\"prepared\",\"handle\":" handle                                                    \
    ",\"peak_bytes\":[7,7],\"resident_bytes\":7,\"cold_ns\":[2000000,2000000]}\n"
#define RELEASE(handle)                                                                            \
    "> {\"op\":\"release\",\"handle\":" handle "}\n< {\"op\":\"released\",\"handle\":" handle "}"  \
    "\n"
#define REFERENCE PREPARE("1", "0") RELEASE("0")

static char path[256];
static struct dt_text script;
static struct dt_target *target;
static struct dt_rig rig;

/* A request of as many steps as `clocks` has letters, and its answer: '.' 1 ms at full clock, 'x'
 * rank 1 at 60 % and 2 ms. */
static void run(const char *mode, const char *clocks)
{
    dt_text_add(&script, "> {\"op\":\"run\",\"n\":%zu,\"mode\":\"%s\"}\n", strlen(clocks), mode);
    dt_text_add(&script, "< {\"op\":\"samples\",\"ns\":[");
    for (size_t i = 0; clocks[i] != '\0'; i++)
        dt_text_add(&script, "%s[1000000,%d]", i > 0 ? "," : "", clocks[i] == 'x' ? 2000000 : 900);
    dt_text_add(&script, "],\"clock\":[");
    for (size_t i = 0; clocks[i] != '\0'; i++)
        dt_text_add(&script, "%s[1,%s]", i > 0 ? "," : "", clocks[i] == 'x' ? "1200" : "2000");
    dt_text_add(&script, "]}\n");
}

static void begin(void)
{
    dt_text_fini(&script);
    dt_text_add(&script, "%s", SCRIPT_START REFERENCE);
}

/* Plan 1 measured at full clock, which is the reference, and plan 2 made resident. */
static void begin_second(void)
{
    begin();
    dt_text_add(&script, "%s", PREPARE("1", "1"));
    run("warmup", "..");
    run("measure", "........");
    dt_text_add(&script, "%s", RELEASE("1") PREPARE("2", "2"));
}

/* The script begins: workers that are started from now on follow it. */
static void start(void)
{
    target = script_target(path, dt_text_at(&script));
    dt_rig_init(&rig, target, 1);
}

static struct dt_result measure(const char *plan, const struct dt_result *rival)
{
    struct dt_result result;
    struct dt_point point;
    struct dt_measure how = {
        .deadline_ns = replay_deadline(), .half_width = 0.9, .incumbent = rival};
    assert_int_equal(dt_target_plan(target, plan, &point), DT_OK);
    assert_int_equal(dt_measure_plan(&rig, &point, &how, &result), DT_OK);
    return result;
}

static void end(struct dt_result *result)
{
    dt_result_fini(result);
    dt_rig_fini(&rig, DT_NS_PER_SECOND / 10);
    dt_target_free(target);
}

/* Three of eight: three more are asked for. The reference is the trial's own median.
 * Warm-up is not judged. */
static void throttled_samples_are_replaced(void **state)
{
    (void)state;
    begin();
    dt_text_add(&script, "%s", PREPARE("1", "1"));
    run("warmup", "xx");
    run("measure", "..xx.x..");
    run("measure", "...");
    start();
    struct dt_result result = measure("tile=1", NULL);
    assert_int_equal(result.outcome, DT_TRIAL_OK);
    assert_int_equal(result.samples.n, 8);
    assert_int_equal(result.report.steps, 2 + 8 + 3);
    assert_int_equal(result.throttling.count, 3);
    assert_true(fabs(result.summary.max - 1e-3) < 1e-12);
    assert_true(fabs(result.samples.rank_seconds[1] - 900e-9) < 1e-15);
    for (int i = 0; i < result.report.steps; i++)
        assert_int_equal(result.throttling.marks[i], i == 4 || i == 5 || i == 7);
    assert_int_equal(rig.clocks.ranks, 2);
    assert_true(rig.clocks.rate[0] == 1 && rig.clocks.rate[1] == 2000);
    end(&result);
}

/* Persistent throttling: three more requests, then the trial goes on with the seven samples it has,
 * which are too few for an interval at the first look: eight more. */
static void replacements_are_limited(void **state)
{
    (void)state;
    begin();
    dt_text_add(&script, "%s", PREPARE("1", "1"));
    run("warmup", "..");
    run("measure", "....xxx.");
    run("measure", "..x");
    run("measure", "x");
    run("measure", "x");
    run("measure", "........");
    start();
    struct dt_result result = measure("tile=1", NULL);
    assert_int_equal(result.outcome, DT_TRIAL_OK);
    assert_int_equal(result.samples.n, 15);
    assert_int_equal(result.throttling.count, 6);
    assert_int_equal(result.report.request_count, 5);
    end(&result);
}

/* The second plan of a session is throttled throughout, by the reference of the first: all
 * its samples are used. */
static void only_throttled_samples_are_all_used(void **state)
{
    (void)state;
    begin_second();
    run("warmup", "xx");
    run("measure", "xxxxxxxx");
    run("measure", "xxxxxxxx");
    run("measure", "xxxxxxxx");
    run("measure", "xxxxxxxx");
    start();
    struct dt_result first = measure("tile=1", NULL), result = measure("tile=2", NULL);
    assert_int_equal(first.throttling.count, 0);
    assert_int_equal(result.outcome, DT_TRIAL_OK);
    assert_int_equal(result.samples.n, 32);
    assert_int_equal(result.throttling.count, 32);
    assert_true(fabs(result.summary.median - 2e-3) < 1e-12);
    assert_true(rig.clocks.rate[1] == 2000);
    json_t *json = dt_result_samples_json(&result);
    assert_int_equal(json_integer_value(json_object_get(json, "throttled_steps")), 32);
    assert_true(json_is_true(json_object_get(json_object_get(json, "series"), "throttled")));
    json_decref(json);
    dt_result_fini(&first);
    end(&result);
}

/* A plan is not dropped as slow for samples that are throttled, as long as others may come. */
static void test_throttled_is_not_slow(void **state)
{
    (void)state;
    begin_second();
    run("warmup", "..");
    run("measure", "xxx");
    run("measure", "........");
    start();
    struct dt_result first = measure("tile=1", NULL), result = measure("tile=2", &first);
    assert_int_equal(result.outcome, DT_TRIAL_OK);
    assert_int_equal(result.samples.n, 8);
    assert_int_equal(result.throttling.count, 3);
    dt_result_fini(&first);
    end(&result);
}

/* 95.1 % of the reference is not throttled, 94.9 % is; ranks are judged each by its own; unknown
 * ranks by their own median; steps without clocks are not. */
static void the_limit_is_95_percent_of_the_clock(void **state)
{
    (void)state;
    double known[] = {100, 10};
    double clock[] = {95.1,     10,   7,   /**/ 94.9, 10,  7,  /**/ 100, 9.49, 7,
                      /**/ 100, 9.51, 6.6, /**/ NAN,  NAN, NAN};
    long long ns[15] = {0};
    struct dt_clocks clocks = {.ranks = 2, .rate = known};
    struct dt_result result = {.report.steps = 5,
                               .ranks = 3,
                               .report.ns = ns,
                               .report.clock = clock,
                               .throttling.clocks = &clocks};
    assert_int_equal(dt_throttle_mark(&result, 0), DT_OK);
    const bool want[] = {false, true, true, true, false};
    assert_memory_equal(result.throttling.marks, want, sizeof want);
    assert_int_equal(result.throttling.count, 3);
    assert_int_equal(dt_throttle_mark(&result, 2), DT_OK);
    assert_false(result.throttling.marks[1]);
    free(result.throttling.marks);
}

/* Two processes: what one of them leaves out does not come back when they are joined. */
static void joined_processes_exclude_throttled_samples(void **state)
{
    (void)state;
    long long ns[] = {5, 99, 7, 6}, more[] = {8, 8, 9, 77};
    double clock[] = {10, 6, 10, 10}, slow[] = {10, 10, 10, 6};
    struct dt_run runs[] = {{.steps = 4, .ranks = 1, .ns = ns, .clock = clock},
                            {.steps = 4, .ranks = 1, .ns = more, .clock = slow}};
    struct dt_result parts[2] = {0}, whole = {0};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dt_result_add(&parts[i], &runs[i], true), DT_OK);
        assert_int_equal(dt_result_finish(&parts[i], 0.95, false, 1 - i), DT_OK);
    }
    assert_int_equal(dt_processes_join(parts, 2, &whole), DT_OK);
    const double want[] = {7, 6, 8, 8, 9}; /* the first step of the first is warm-up */
    assert_int_equal(whole.samples.n, 5);
    assert_int_equal(whole.throttling.count, 2);
    for (int i = 0; i < 5; i++)
        assert_true(fabs(whole.samples.seconds[i] - want[i] * 1e-9) < 1e-15);
    for (int i = 0; i < 2; i++)
        dt_result_fini(&parts[i]);
    dt_result_fini(&whole);
}

static void bad_clocks_break_the_protocol(void **state)
{
    static const char *const bad[] = {"[[1,1]]", "[[1,1],[1]]",       "[[1,1],[1,0]]",
                                      "7",       "[[1,1],[1,\"1\"]]", "[[1,1],[-1,1]]"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin();
        dt_text_add(&script,
                    "%s> {\"op\":\"run\",\"n\":2}\n< "
                    "{\"op\":\"samples\",\"ns\":[[1,1],[1,1]],\"clock\":%s}\n",
                    PREPARE("1", "1"), bad[i]);
        start();
        struct dt_result result = measure("tile=1", NULL);
        assert_int_equal(result.outcome, DT_TRIAL_PROTOCOL);
        assert_non_null(strstr(result.cause, "clock"));
        end(&result);
    }
}

int main(void)
{
    const char *transcript = getenv("DITTUNE_REPLAY");
    if (transcript != NULL)
        _exit(replay(transcript)); /* no leak check of what was never meant to end */
    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof path, "%s/tests/test_measure_throttle.script", DT_BINARY_DIR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(throttled_samples_are_replaced),
        cmocka_unit_test(replacements_are_limited),
        cmocka_unit_test(only_throttled_samples_are_all_used),
        cmocka_unit_test(test_throttled_is_not_slow),
        cmocka_unit_test(the_limit_is_95_percent_of_the_clock),
        cmocka_unit_test(joined_processes_exclude_throttled_samples),
        cmocka_unit_test(bad_clocks_break_the_protocol),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dt_text_fini(&script);
    return failed;
}
