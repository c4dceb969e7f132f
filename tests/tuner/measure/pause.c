/* SPDX-License-Identifier: MIT */
/* ctest: alone */
/* Pauses and deadlines, on a clock that jumps when the test says so: the group's waiting looks
 * at it as at any other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/proc.h"
#include "tests/tuner/script.h"
#include "tuner/measure/rig.h"
#include "tuner/runner/group_int.h"
#include "tuner/runner/pause.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <time.h>

#define SECOND DT_NS_PER_SECOND

#define GREETING                                                                                   \
    "> {\"op\":\"hello\"}\n< {\"op\":\"hello\",\"protocol\":1,\"name\":\"script\"}\n"              \
    "< {\"op\":\"ready\",\"ranks\":[{\"rank\":0,\"pid\":1,\"host\":\"here\"}],"                    \
    "\"comm\":\"self\"}\n"
#define HEARTBEAT "{\"op\":\"heartbeat\"}\n"
#define ANSWER    "{\"op\":\"prepared\",\"handle\":1,\"peak_bytes\":[7],\"cold_ns\":[9]}\n"

static char path[256];

/* ---- the clock: base/clock.h, and what happens at a look of this process */

static int64_t jumped_ns, skipped_ns;
static int looks;
static void (*at_look)(int look); /* NULL: nothing */

static int64_t real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

int64_t dt_clock_ns(void)
{
    return real_ns() + jumped_ns - skipped_ns;
}

void dt_clock_skip_ns(int64_t ns)
{
    skipped_ns += ns;
}

int64_t dt_clock_skipped_ns(void)
{
    return skipped_ns;
}

int64_t dt_clock_machine_ns(void)
{
    if (at_look != NULL)
        at_look(++looks);
    return real_ns() + jumped_ns;
}

int64_t dt_clock_wall_ns(void)
{
    return real_ns();
}

int64_t dt_clock_thread_ns(void)
{
    return real_ns();
}

void dt_clock_sleep_ns(int64_t ns)
{
    struct timespec left = {.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static void arm(void (*what)(int look))
{
    looks = 0;
    at_look = what;
}

/* ---- the tests */

static void test_only_seconds_beyond_the_tick_are_a_pause(void **state)
{
    (void)state;
    assert_int_equal(dt_pause_between(5 * SECOND, 6 * SECOND), 0);
    assert_int_equal(dt_pause_between(5 * SECOND, 8 * SECOND - 1), 0);
    assert_int_equal(dt_pause_between(5 * SECOND, 8 * SECOND), 2 * SECOND);
    assert_int_equal(dt_pause_between(5 * SECOND, 606 * SECOND), 600 * SECOND);
}

static struct dt_group *group;

static void start(const char *text)
{
    struct dt_failure failure;
    struct dt_launch launch = {.program = replay_text(path, text), .ranks = 1};
    group = NULL;
    assert_int_equal(dt_group_start(&launch, NULL, replay_deadline(), &group, &failure), DT_OK);
}

static dt_status prepare(int64_t patience_ns, struct dt_prepared *prepared,
                         struct dt_failure *failure)
{
    struct dt_verify verify = {.projections = 2, .seed = 5};
    json_t *plan = json_pack("{s:i}", "tile", 8);
    dt_status status =
        dt_group_prepare(group, plan, &verify, dt_clock_ns() + patience_ns, prepared, failure);
    at_look = NULL;
    json_decref(plan);
    return status;
}

/* The first look begins the wait. When all three messages are in the pipe, the deadline passes. */
static void pass_the_deadline(int look)
{
    int unread = 0;
    if (look != 2)
        return;
    while (ioctl(group->process.from, FIONREAD, &unread) == 0 &&
           unread < (int)(2 * strlen(HEARTBEAT) + strlen(ANSWER)))
        dt_clock_sleep_ns(SECOND / 1000);
    jumped_ns += 2 * SECOND;
}

static void test_an_answer_in_the_pipe_is_in_time(void **state)
{
    (void)state;
    struct dt_prepared prepared = {0};
    struct dt_failure failure;
    start(GREETING "> {\"op\":\"prepare\"}\n< " HEARTBEAT "< " HEARTBEAT "< " ANSWER);
    arm(pass_the_deadline);
    assert_int_equal(prepare(SECOND, &prepared, &failure), DT_OK);
    assert_int_equal(dt_group_paused_ns(group), 0);
    dt_prepared_fini(&prepared);
    dt_group_stop(group, SECOND);
}

static void go_on(pid_t pid, void *context)
{
    (void)context;
    kill(pid, SIGCONT);
}

/* The worker has stopped itself before its answer: it is let go after the look that
 * found a minute gone. */
static void pause_a_minute(int look)
{
    if (look == 2)
        jumped_ns += 60 * SECOND;
    if (look > 3)
        dt_proc_below(group->process.pid, go_on, NULL);
}

static void test_a_pause_moves_the_deadline(void **state)
{
    (void)state;
    struct dt_prepared prepared = {0};
    struct dt_failure failure;
    int64_t before = dt_clock_ns();
    start(GREETING "> {\"op\":\"prepare\"}\n! stop\n< " ANSWER);
    arm(pause_a_minute);
    assert_int_equal(prepare(40 * SECOND, &prepared, &failure), DT_OK);
    assert_in_range(dt_group_paused_ns(group), 59 * SECOND, 60 * SECOND);
    assert_true(dt_clock_ns() - before < 30 * SECOND);
    dt_prepared_fini(&prepared);
    dt_group_stop(group, SECOND);
}

static void pause_once(int look)
{
    jumped_ns += look == 2 ? 60 * SECOND : 0;
}

static void test_steps_of_a_pause_are_run_again(void **state)
{
    (void)state;
    struct dt_point point;
    struct dt_rig rig;
    struct dt_resident resident;
    struct dt_result result;
    struct dt_target *target = script_target(
        path, SCRIPT_START
        "> {\"op\":\"prepare\"}\n"
        "< {\"op\":\"prepared\",\"handle\":1,\"peak_bytes\":[7],\"cold_ns\":[61000000000]}\n"
        "> {\"op\":\"release\"}\n< {\"op\":\"released\",\"handle\":1}\n"
        "> {\"op\":\"prepare\"}\n"
        "< {\"op\":\"prepared\",\"handle\":2,\"peak_bytes\":[7],\"cold_ns\":[61000000000]}\n"
        "> {\"op\":\"run\",\"n\":1}\n< {\"op\":\"samples\",\"ns\":[[60000000000]]}\n"
        "> {\"op\":\"run\",\"n\":1}\n< {\"op\":\"samples\",\"ns\":[[3000]]}\n");
    assert_int_equal(dt_target_plan(target, "tile=2", &point), DT_OK);
    dt_rig_init(&rig, target, 1);
    assert_int_equal(dt_rig_prepare(&rig, &point, replay_deadline(), &resident), DT_OK);
    dt_result_init(&result, target, &point);
    arm(pause_once);
    assert_int_equal(
        dt_rig_run(&rig, &resident, 1, DT_MODE_MEASURE, dt_clock_ns() + 40 * SECOND, &result),
        DT_OK);
    at_look = NULL;
    assert_int_equal(result.outcome, DT_TRIAL_OK);
    assert_int_equal(result.report.steps, 1);
    assert_int_equal(result.report.ns[0], 3000);
    dt_result_fini(&result);
    dt_rig_fini(&rig, SECOND / 10);
    dt_target_free(target);
}

int main(void)
{
    const char *script = getenv("DITTUNE_REPLAY");
    if (script != NULL)
        _exit(replay(script));
    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof path, "%s/tests/test_measure_pause.script", DT_BINARY_DIR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_seconds_beyond_the_tick_are_a_pause),
        cmocka_unit_test(test_an_answer_in_the_pipe_is_in_time),
        cmocka_unit_test(test_a_pause_moves_the_deadline),
        cmocka_unit_test(test_steps_of_a_pause_are_run_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
