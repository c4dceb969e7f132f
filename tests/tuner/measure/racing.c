/* SPDX-License-Identifier: MIT */
/* Number of samples of a plan that races against an incumbent, with scripted workers: another
 * number of steps than the script's ends the worker. Three warm ones show what is far slower, eight
 * what is slower; what is not gets all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/tuner/script.h"
#include "tuner/measure/trial.h"

#include <math.h>

static char path[256];
static struct dt_text script;

static void prepare(int tile)
{
    dt_text_add(&script,
                "> {\"op\":\"prepare\",\"plan\":{\"tile\":%d}}\n< {\"op\":\"prepared\",\"handle\":"
                "%d,\"peak_bytes\":[7],\"resident_bytes\":7,\"cold_ns\":[90000000]}\n",
                tile, tile);
}

static void release(int tile)
{
    dt_text_add(&script,
                "> {\"op\":\"release\",\"handle\":%d}\n< {\"op\":\"released\",\"handle\":%d}\n",
                tile, tile);
}

/* n steps of about `us` microseconds: they go up and down by a hundredth. */
static void run(const char *mode, int n, int us)
{
    dt_text_add(&script,
                "> {\"op\":\"run\",\"n\":%d,\"mode\":\"%s\"}\n< {\"op\":\"samples\",\"ns\":[", n,
                mode);
    for (int i = 0; i < n; i++)
        dt_text_add(&script, "%s[%d]", i > 0 ? "," : "", us * (995 + 10 * (i * 7 % 3 != 0)));
    dt_text_add(&script, "]}\n");
}

/* The rival, 1 ms a step, and then a plan whose requests are listed (0 ends them); the
 * script has no others. */
static struct dt_result race(int us, const int requests[])
{
    struct dt_rig rig;
    struct dt_result rival, result;
    struct dt_measure how = {.deadline_ns = replay_deadline(), .half_width = 0.5};
    dt_text_clear(&script);
    dt_text_add(&script, "%s", SCRIPT_START);
    prepare(1);
    release(1);
    prepare(1);
    run("warmup", 2, 1000);
    run("measure", 8, 1000);
    release(1);
    prepare(2);
    run("warmup", 2, us);
    for (int i = 0; requests[i] > 0; i++)
        run("measure", requests[i], us);
    release(2);
    struct dt_target *target = script_target(path, dt_text_at(&script));
    struct dt_point one, two;
    assert_int_equal(dt_target_plan(target, "tile=1", &one), DT_OK);
    assert_int_equal(dt_target_plan(target, "tile=2", &two), DT_OK);
    dt_rig_init(&rig, target, 1);
    assert_int_equal(dt_measure_plan(&rig, &one, &how, &rival), DT_OK);
    assert_int_equal(rival.samples.n, 8);
    how.incumbent = &rival;
    how.half_width = 0;
    assert_int_equal(dt_measure_plan(&rig, &two, &how, &result), DT_OK);
    dt_rig_fini(&rig, DT_NS_PER_SECOND / 10);
    dt_result_fini(&rival);
    dt_target_free(target);
    return result;
}

static void test_far_slower_is_dropped_after_three(void **state)
{
    (void)state;
    struct dt_result result = race(1400, (int[]){3, 0});
    assert_int_equal(result.outcome, DT_TRIAL_SLOW);
    assert_int_equal(result.samples.n, 3);
    dt_result_fini(&result);
}

static void test_slower_is_seen_after_eight(void **state)
{
    (void)state;
    struct dt_result result = race(1100, (int[]){3, 5, 0});
    assert_int_equal(result.outcome, DT_TRIAL_OK);
    assert_int_equal(result.samples.n, 8);
    dt_result_fini(&result);
}

/* Faster or the same: all four looks. */
static void test_a_rival_of_its_own_speed_gets_all(void **state)
{
    (void)state;
    for (int us = 900; us <= 1000; us += 100) {
        struct dt_result result = race(us, (int[]){3, 5, 8, 16, 32, 0});
        assert_int_equal(result.outcome, DT_TRIAL_OK);
        assert_int_equal(result.samples.n, 64);
        dt_result_fini(&result);
    }
}

int main(void)
{
    const char *transcript = getenv("DITTUNE_REPLAY");
    if (transcript != NULL)
        _exit(replay(transcript)); /* no leak check of what was never meant to end */
    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof path, "%s/tests/test_measure_racing.script", DT_BINARY_DIR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_far_slower_is_dropped_after_three),
        cmocka_unit_test(test_slower_is_seen_after_eight),
        cmocka_unit_test(test_a_rival_of_its_own_speed_gets_all),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dt_text_fini(&script);
    return failed;
}
