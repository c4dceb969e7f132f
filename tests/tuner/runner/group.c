/* SPDX-License-Identifier: MIT */
/* A group against a worker that repeats a script: good answers become plain values, each bad one an
 * outcome with its cause, and nothing of the worker is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/proc.h"
#include "tests/tuner/replay.h"
#include "tuner/runner/runner.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#define GREETING                                                                                   \
    "> {\"op\":\"hello\",\"protocol\":2,\"ranks\":1}\n"                                            \
    "< {\"op\":\"hello\",\"protocol\":1,\"name\":\"script\"}\n"                                    \
    "< {\"op\":\"heartbeat\"}\n"                                                                   \
    "< {\"op\":\"ready\",\"ranks\":[{\"rank\":0,\"pid\":1,\"host\":\"here\"},"                     \
    "{\"rank\":1,\"pid\":2,\"host\":\"here\"}],\"comm\":\"self\"}\n"

#define ANSWER                                                                                     \
    "< {\"op\":\"prepared\",\"handle\":3,\"peak_bytes\":[100,70],\"resident_bytes\":170,"          \
    "\"cold_ns\":[900,1100],\"verify\":{\"norm\":[2.5,1.5],"                                       \
    "\"projections\":[[0.5,-1.0],[2.0,null]]}}\n"

#define PREPARED                                                                                   \
    "> "                                                                                           \
    "{\"op\":\"prepare\",\"plan\":{\"tile\":8},\"seed\":5,\"verify\":{\"projections\":2,\"seed\":" \
    "5}}\n" ANSWER

#define OTHERS 16 /* busy programs on one core */
#define PATIENCE_NS                                                                                \
    (60 * DT_NS_PER_SECOND) /* for what comes at once, however busy the machine is */

static char path[256];

static struct dt_group *start(const char *text)
{
    struct dt_group *group = NULL;
    struct dt_failure failure;
    struct dt_launch launch = {.program = replay_text(path, text), .ranks = 1};
    assert_int_equal(dt_group_start(&launch, NULL, replay_deadline(), &group, &failure), DT_OK);
    return group;
}

static dt_status prepare_until(struct dt_group *group, int64_t deadline_ns,
                               struct dt_prepared *prepared, struct dt_failure *failure)
{
    struct dt_verify verify = {.projections = 2, .seed = 5};
    json_t *plan = json_pack("{s:i}", "tile", 8);
    dt_status status = dt_group_prepare(group, plan, &verify, deadline_ns, prepared, failure);
    json_decref(plan);
    return status;
}

static dt_status prepare(struct dt_group *group, struct dt_prepared *prepared,
                         struct dt_failure *failure)
{
    return prepare_until(group, replay_deadline(), prepared, failure);
}

static void test_answers_become_values(void **state)
{
    (void)state;
    struct dt_prepared prepared = {0};
    struct dt_failure failure;
    struct dt_run run = {0};
    struct dt_group *group = start(
        GREETING PREPARED
        "> {\"op\":\"run\",\"handle\":3,\"n\":2,\"mode\":\"measure\"}\n"
        "< {\"op\":\"samples\",\"handle\":3,\"ns\":[[10,20],[40,30]],\"phases\":{\"steps\":2}}\n"
        "> {\"op\":\"release\",\"handle\":3}\n"
        "< {\"op\":\"released\",\"handle\":3}\n");
    assert_int_equal(dt_group_ranks(group), 2);
    assert_int_equal(prepare(group, &prepared, &failure), DT_OK);
    assert_int_equal(prepared.handle, 3);
    assert_int_equal(prepared.ranks, 2);
    assert_int_equal(prepared.cold_ns, 1100); /* of the slowest rank */
    assert_int_equal(prepared.peak_bytes, 100);
    assert_int_equal(prepared.resident_bytes, 170);
    assert_int_equal(prepared.output.rows, 2);
    assert_true(prepared.output.projection[1] == -1.0 && prepared.output.norm[1] == 1.5);
    assert_true(prepared.output.projection[3] != prepared.output.projection[3]); /* null is NAN */
    assert_int_equal(dt_group_run(group, &(struct dt_steps){3, 2, DT_MODE_MEASURE, NULL, false},
                                  replay_deadline(), &run, &failure),
                     DT_OK);
    assert_int_equal(run.steps, 2);
    assert_int_equal(run.ranks, 2);
    assert_int_equal(run.ns[1], 20);
    assert_int_equal(run.ns[2], 40);
    assert_non_null(run.phases);
    assert_int_equal(dt_group_release(group, 3, replay_deadline(), &failure), DT_OK);
    dt_run_fini(&run);
    dt_prepared_fini(&prepared);
    dt_group_stop(group, DT_NS_PER_SECOND);
}

static struct dt_group *start_replicas(const char *text)
{
    struct dt_group *group = NULL;
    struct dt_failure failure;
    struct dt_launch launch = {.program = replay_text(path, text), .ranks = 1, .replicas = 3};
    assert_int_equal(dt_group_start(&launch, NULL, replay_deadline(), &group, &failure), DT_OK);
    return group;
}

/* Each of three replicas has two ranks, which follow each other. */
static void test_replicas_answer_as_one(void **state)
{
    (void)state;
    struct dt_prepared prepared = {0};
    struct dt_failure failure;
    struct dt_run run = {0};
    struct dt_group *group =
        start_replicas(GREETING PREPARED "> {\"op\":\"run\",\"handle\":3,\"n\":2}\n"
                                         "< {\"op\":\"samples\",\"ns\":[[10,20],[40,30]]}\n"
                                         "> {\"op\":\"run\",\"n\":1}\n! exit 3\n");
    assert_int_equal(dt_group_ranks(group), 6);
    assert_int_equal(prepare(group, &prepared, &failure), DT_OK);
    assert_int_equal(prepared.ranks, 6);
    assert_int_equal(prepared.cold_ns, 1100);
    assert_int_equal(prepared.output.ranks, 3);
    assert_true(prepared.output.norm[5] == 1.5 && prepared.output.projection[9] == -1.0);
    const struct dt_steps steps = {3, 2, DT_MODE_MEASURE, NULL, false},
                          more = {3, 1, DT_MODE_MEASURE, NULL, false};
    assert_int_equal(dt_group_run(group, &steps, replay_deadline(), &run, &failure), DT_OK);
    assert_int_equal(run.steps, 2);
    assert_int_equal(run.ranks, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(run.ns[i], i % 2 == 0 ? 10 : 20);
        assert_int_equal(run.ns[6 + i], i % 2 == 0 ? 40 : 30);
    }
    dt_run_fini(&run);
    assert_int_equal(dt_group_run(group, &more, replay_deadline(), &run, &failure), DT_FAILED);
    assert_int_equal(failure.outcome, DT_TRIAL_CRASHED);
    assert_non_null(strstr(
        failure.cause, ": exited with 3 while running")); /* of the first of two that was seen */
    assert_false(dt_group_alive(group));
    dt_prepared_fini(&prepared);
    dt_group_stop(group, DT_NS_PER_SECOND);
}

/* One of three ends while the first one is awaited, which says nothing: the end
 * is seen all the same. */
static void test_the_end_of_any_replica_is_seen(void **state)
{
    (void)state;
    struct dt_prepared prepared = {0};
    struct dt_failure failure;
    struct dt_run run = {0};
    const struct dt_steps steps = {3, 1, DT_MODE_MEASURE, NULL, false};
    struct dt_group *group = start_replicas(GREETING PREPARED "> {\"op\":\"run\",\"n\":1}\n"
                                                              "! replica 1 exit 3\n! hang\n");
    assert_int_equal(prepare(group, &prepared, &failure), DT_OK);
    assert_int_equal(dt_group_run(group, &steps, dt_clock_ns() + PATIENCE_NS, &run, &failure),
                     DT_FAILED);
    assert_string_equal(failure.cause, "replica 1: exited with 3 while running");
    dt_prepared_fini(&prepared);
    dt_group_stop(group, DT_NS_PER_SECOND);
    struct dt_launch launch = {
        .program = replay_text(path, "! replica 2 exit 3\n! hang\n"), .ranks = 1, .replicas = 3};
    assert_int_equal(dt_group_start(&launch, NULL, dt_clock_ns() + PATIENCE_NS, &group, &failure),
                     DT_FAILED);
    assert_string_equal(failure.cause, "replica 2: exited with 3 while starting");
}

/* A replica that answers in time and then ends has answered. */
static void test_a_last_answer_counts(void **state)
{
    (void)state;
    struct dt_prepared prepared = {0};
    struct dt_failure failure;
    struct dt_group *group = start_replicas(
        GREETING
        "> {\"op\":\"prepare\"}\n"
        "! replica 0 hang\n"
        "< {\"op\":\"failed\",\"kind\":\"memory\",\"say\":\"no room\",\"last\":true}\n! exit 3\n");
    assert_int_equal(prepare_until(group, dt_clock_ns() + PATIENCE_NS, &prepared, &failure),
                     DT_FAILED);
    assert_int_equal(failure.outcome, DT_TRIAL_MEMORY);
    assert_non_null(strstr(failure.cause, ": no room")); /* of the first of two that was seen */
    dt_group_stop(group, DT_NS_PER_SECOND);
}

#define OUTPUT(norm) "{\"norm\":[" norm "],\"projections\":[[1,2]]}"

static void test_what_replicas_compared(void **state)
{
    (void)state;
    struct dt_prepared prepared = {0};
    struct dt_failure failure;
    struct dt_group *group = start_replicas(
        GREETING
        "> {\"op\":\"prepare\"}\n"
        "! replica 0 say {\"op\":\"prepared\",\"handle\":3,\"peak_bytes\":[1,1],"
        "\"cold_ns\":[9,9],\"image\":[" OUTPUT("1") "," OUTPUT(
            "2") "]}\n"
                 "! replica 1 say {\"op\":\"prepared\",\"handle\":3,\"peak_bytes\":[1,1],"
                 "\"cold_ns\":[9,9],\"error\":0.5,\"image\":[" OUTPUT(
                     "3") "]}\n"
                          "! replica 2 say {\"op\":\"prepared\",\"handle\":3,\"peak_bytes\":[1,1],"
                          "\"cold_ns\":[9,9],\"error\":null,\"image\":[" OUTPUT("4") "," OUTPUT(
                              "5") "]}\n");
    assert_int_equal(prepare(group, &prepared, &failure), DT_OK);
    assert_true(prepared.error == 0.5); /* that of the one that compared */
    assert_int_equal(prepared.image.ranks, 3);
    assert_true(prepared.image.norm[0] == 1 && prepared.image.norm[1] == 3 &&
                prepared.image.norm[2] == 4);
    dt_prepared_fini(&prepared);
    dt_group_stop(group, DT_NS_PER_SECOND);
}

/* What ns is of must be the same for all. */
static void test_answers_of_replicas_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        const char *first, *others, *cause;
    } rows[] = {
        {"\"host_ns\":[[12,13]]", "\"x\":0", "host_ns is not of all replicas"},
        {"\"starts\":[1]", "\"x\":0", "starts are not of all replicas"},
        {"\"verify\":" OUTPUT("1"), "\"x\":0", "verify differs in shape among replicas"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[4096], cause[256];
        struct dt_prepared prepared = {0};
        struct dt_failure failure;
        struct dt_run run = {0};
        const char *answer = "{\"op\":\"samples\",\"ns\":[[10,20]],";
        const struct dt_verify verify = {.projections = 2, .seed = 5};
        const struct dt_steps steps = {3, 1, DT_MODE_MEASURE, &verify, true};
        snprintf(text, sizeof text,
                 GREETING PREPARED "> {\"op\":\"run\",\"n\":1}\n"
                                   "! replica 0 say %s%s}\n! replica 1 say %s%s}\n"
                                   "! replica 2 say %s%s}\n",
                 answer, rows[i].first, answer, rows[i].others, answer, rows[i].others);
        snprintf(cause, sizeof cause, "replica 2: the answer's %s while running", rows[i].cause);
        struct dt_group *group = start_replicas(text);
        assert_int_equal(prepare(group, &prepared, &failure), DT_OK);
        assert_int_equal(dt_group_run(group, &steps, replay_deadline(), &run, &failure), DT_FAILED);
        assert_int_equal(failure.outcome, DT_TRIAL_PROTOCOL);
        assert_string_equal(failure.cause, cause);
        assert_false(dt_group_alive(group));
        dt_prepared_fini(&prepared);
        dt_group_stop(group, DT_NS_PER_SECOND);
    }
}

/* Runs of a program: of starts as many, and of each as many steps, as all have. */
static void test_starts_of_replicas_are_cut(void **state)
{
    (void)state;
    long long a[] = {1, 2, 3, 4, 5, 6}, b[] = {10, 20, 30};
    int starts_of_a[] = {2, 3, 1}, starts_of_b[] = {1, 2};
    struct dt_run whole = {0}, parts[2] = {{.steps = 6, .ranks = 1}, {.steps = 3, .ranks = 1}};
    parts[0].ns = a;
    parts[0].starts = starts_of_a;
    parts[0].start_count = 3;
    parts[1].ns = b;
    parts[1].starts = starts_of_b;
    parts[1].start_count = 2;
    assert_int_equal(dt_run_join(parts, 2, &whole), DT_OK);
    const long long expected[] = {1, 10, 3, 20, 4, 30};
    assert_int_equal(whole.steps, 3);
    assert_int_equal(whole.start_count, 2);
    assert_true(whole.starts[0] == 1 && whole.starts[1] == 2);
    assert_memory_equal(whole.ns, expected, sizeof expected);
    dt_run_fini(&whole);
}

static void test_failed_leaves_the_group_alive(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        enum dt_outcome outcome;
    } rows[] = {{"memory", DT_TRIAL_MEMORY},
                {"infeasible", DT_TRIAL_INFEASIBLE},
                {"unapplied", DT_TRIAL_UNAPPLIED},
                {"error", DT_TRIAL_FAILED},
                {"sulking", DT_TRIAL_FAILED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[2048];
        struct dt_prepared prepared = {0};
        struct dt_failure failure;
        snprintf(text, sizeof text,
                 GREETING
                 "> {\"op\":\"prepare\"}\n< "
                 "{\"op\":\"failed\",\"kind\":\"%s\",\"say\":\"no\\u0007 room\"}\n" PREPARED,
                 rows[i].kind);
        struct dt_group *group = start(text);
        assert_int_equal(prepare(group, &prepared, &failure), DT_FAILED);
        assert_int_equal(failure.outcome, rows[i].outcome);
        assert_string_equal(failure.cause, "no? room"); /* what a terminal would obey is gone */
        assert_true(dt_group_alive(group));
        assert_int_equal(prepare(group, &prepared, &failure), DT_OK);
        dt_prepared_fini(&prepared);
        dt_group_stop(group, DT_NS_PER_SECOND);
    }
}

static const struct misdeed {
    const char *script; /* after the request to prepare */
    enum dt_outcome outcome;
    const char *cause; /* part of it */
} misdeeds[] = {
    {"! exit 3\n", DT_TRIAL_CRASHED, "exited with 3"},
    {"! exit 0\n", DT_TRIAL_CRASHED, "exited with 0"},
    {"! kill 11\n", DT_TRIAL_CRASHED, "killed by signal 11 (SIGSEGV)"},
    {"! hang\n", DT_TRIAL_HUNG, "no answer before the deadline while preparing"},
    {"< {\"op\":\"heartbeat\",\"say\":\"loading \\u0007weights, 40 %\"}\n! hang\n", DT_TRIAL_HUNG,
     "(last heartbeat: loading ?weights, 40 %)"},
    {"! raw \xc3\x28\x80 garbage\n! exit 0\n", DT_TRIAL_PROTOCOL, "middle of a line"},
    {"! say \xc3\x28\x80\x1b[2J garbage\n! hang\n", DT_TRIAL_PROTOCOL, "'(??[2J garbage'"},
    {"! raw {\"op\":\"prep\n! exit 0\n", DT_TRIAL_PROTOCOL, "middle of a line"},
    {"! raw {\"op\":\"prep\n! hang\n", DT_TRIAL_HUNG, "no answer"},
    {"< {\"op\":\"samples\"}\n", DT_TRIAL_PROTOCOL, "said 'samples', expected 'prepared'"},
    {"< {\"op\":\"prepared\"}\n", DT_TRIAL_PROTOCOL, "handle"},
    {"< {\"op\":\"prepared\",\"handle\":1,\"peak_bytes\":[1,1],\"cold_ns\":[1]}\n",
     DT_TRIAL_PROTOCOL, "cold_ns"},
    {"< {\"op\":\"prepared\",\"handle\":1,\"peak_bytes\":[1,1],\"cold_ns\":[1,0]}\n",
     DT_TRIAL_PROTOCOL, "cold_ns"},
    {"< {\"op\":\"prepared\",\"handle\":1,\"peak_bytes\":[1,-1],\"cold_ns\":[1,1]}\n",
     DT_TRIAL_PROTOCOL, "peak_bytes"},
    {"< {\"op\":\"prepared\",\"handle\":-1,\"peak_bytes\":[1,1],\"cold_ns\":[1,1]}\n",
     DT_TRIAL_PROTOCOL, "handle"},
    {"< {\"op\":\"prepared\",\"handle\":1,\"peak_bytes\":[1,1],\"cold_ns\":[1,1],"
     "\"verify\":{\"norm\":[1,1],\"projections\":[[1,2],[1]]}}\n",
     DT_TRIAL_PROTOCOL, "verify"},
};

static void breaking_the_protocol_ends_the_group(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof misdeeds / sizeof misdeeds[0]; i++) {
        char text[2048];
        struct dt_prepared prepared = {.handle = 77};
        struct dt_failure failure;
        snprintf(text, sizeof text, GREETING "> {\"op\":\"prepare\"}\n%s", misdeeds[i].script);
        struct dt_group *group = start(text);
        int64_t deadline = misdeeds[i].outcome == DT_TRIAL_HUNG
                               ? dt_clock_ns() + DT_NS_PER_SECOND / 2
                               : replay_deadline();
        assert_int_equal(prepare_until(group, deadline, &prepared, &failure), DT_FAILED);
        if (failure.outcome != misdeeds[i].outcome ||
            strstr(failure.cause, misdeeds[i].cause) == NULL)
            fail_msg("script %zu: outcome '%s' because '%s'", i, dt_outcome_text(failure.outcome),
                     failure.cause);
        assert_int_equal(prepared.handle, 77); /* outputs are set on success only */
        assert_false(dt_group_alive(group));
        assert_int_equal(prepare(group, &prepared, &failure), DT_FAILED);
        dt_group_stop(group, DT_NS_PER_SECOND);
    }
}

/* Programs of sessions of their own, so that each has its share of the core even where the
 * kernel groups by session. */
static void occupy(pid_t others[OTHERS], int64_t until_ns)
{
    for (int i = 0; i < OTHERS; i++) {
        others[i] = fork();
        if (others[i] == 0) {
            setsid();
            while (dt_clock_machine_ns() < until_ns)
                ;
            _exit(0);
        }
    }
}

/* A group that would answer if it had a core: other programs have it until after the deadline. */
static void starve(int64_t extend_ns, struct dt_failure *failure, dt_status expected)
{
    struct dt_prepared prepared = {0};
    pid_t others[OTHERS];
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t core = 0; CPU_COUNT(&one) == 0; core++)
        if (CPU_ISSET(core, &all))
            CPU_SET(core, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0); /* inherited by all of them */
    struct dt_group *group = start(GREETING "> {\"op\":\"prepare\"}\n! compute\n" ANSWER);
    dt_group_extend(group, extend_ns);
    int64_t now = dt_clock_machine_ns();
    occupy(others, now + 5 * DT_NS_PER_SECOND);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(prepare_until(group, dt_clock_ns() + 3 * DT_NS_PER_SECOND, &prepared, failure),
                     expected);
    for (int i = 0; i < OTHERS; i++)
        waitpid(others[i], NULL, 0);
    dt_prepared_fini(&prepared);
    dt_group_stop(group, DT_NS_PER_SECOND);
}

static void test_a_starved_group_does_not_hang(void **state)
{
    (void)state;
    struct dt_failure failure = {.cause = ""};
    if (dt_proc_time_below(getppid()).waited_ns == 0)
        skip(); /* the kernel does not tell */
    starve(replay_deadline(), &failure, DT_OK);
    starve(0, &failure, DT_FAILED);
    assert_int_equal(failure.outcome, DT_TRIAL_HUNG);
    assert_true(failure.early);
    assert_non_null(strstr(failure.cause, "other programs had the cores"));
}

static void test_samples_are_checked(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "[[1,1]]", "[[1,1],[1]]", "[[1,1],[1,0]]",      "[[1,1],[1,\"2\"]]", "[[1,1],[1,2.5]]",
        "[]",      "{}",          "[[1,1],[1,1],[1,1]]"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[4096];
        struct dt_prepared prepared = {0};
        struct dt_failure failure;
        struct dt_run run = {0};
        snprintf(text, sizeof text,
                 GREETING PREPARED "> {\"op\":\"run\"}\n< {\"op\":\"samples\",\"ns\":%s}\n",
                 bad[i]);
        struct dt_group *group = start(text);
        assert_int_equal(prepare(group, &prepared, &failure), DT_OK);
        assert_int_equal(dt_group_run(group, &(struct dt_steps){3, 2, DT_MODE_MEASURE, NULL, false},
                                      replay_deadline(), &run, &failure),
                         DT_FAILED);
        assert_int_equal(failure.outcome, DT_TRIAL_PROTOCOL);
        assert_null(run.ns);
        dt_prepared_fini(&prepared);
        dt_group_stop(group, DT_NS_PER_SECOND);
    }
}

static void test_greetings_are_checked(void **state)
{
    (void)state;
    static const struct misdeed rows[] = {
        {"! exit 0\n", DT_TRIAL_CRASHED, "exited with 0"},
        {"> {\"op\":\"hello\"}\n< {\"op\":\"hello\",\"protocol\":3}\n", DT_TRIAL_PROTOCOL,
         "version"},
        {"> {\"op\":\"hello\"}\n< {\"op\":\"hello\",\"protocol\":1}\n"
         "< {\"op\":\"ready\",\"ranks\":[]}\n",
         DT_TRIAL_PROTOCOL, "no ranks"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dt_group *group = NULL;
        struct dt_failure failure;
        struct dt_launch launch = {.program = replay_text(path, rows[i].script), .ranks = 1};
        assert_int_equal(dt_group_start(&launch, NULL, replay_deadline(), &group, &failure),
                         DT_FAILED);
        assert_int_equal(failure.outcome, rows[i].outcome);
        assert_non_null(strstr(failure.cause, rows[i].cause));
        assert_null(group);
    }
}

static void a_missing_program_is_a_usage_error(void **state)
{
    (void)state;
    static const char *const names[] = {"./nowhere", "/etc", "no-such-program-in-path",
                                        "/etc/passwd"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct dt_group *group = NULL;
        struct dt_failure failure;
        struct dt_launch launch = {.program = names[i], .ranks = 1};
        assert_int_equal(dt_group_start(&launch, NULL, replay_deadline(), &group, &failure),
                         DT_EUSAGE);
        assert_non_null(strstr(dt_message(), names[i]));
    }
}

static void quit_and_end_of_file_end_the_worker(void **state)
{
    (void)state;
    for (int say_quit = 0; say_quit < 2; say_quit++) {
        char how[160];
        struct dt_group *group = start(GREETING);
        assert_true(dt_group_end(group, say_quit, 600 * DT_NS_PER_SECOND, how, sizeof how));
        assert_string_equal(how, say_quit ? "exited with 0" : "exited with 95");
        assert_false(dt_group_alive(group));
        dt_group_stop(group, 0);
    }
}

static void a_signal_interrupts_a_wait(void **state)
{
    (void)state;
    struct dt_prepared prepared = {0};
    struct dt_failure failure;
    struct dt_group *group = start(GREETING "! hang\n");
    dt_group_interrupted = SIGINT;
    assert_int_equal(prepare(group, &prepared, &failure), DT_EINTR);
    dt_group_interrupted = 0;
    dt_group_stop(group, DT_NS_PER_SECOND / 5);
}

int main(void)
{
    const char *script = getenv("DITTUNE_REPLAY");
    if (script != NULL)
        _exit(replay(script)); /* no leak check of what was never meant to end */
    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof path, "%s/tests/test_runner_group.script", DT_BINARY_DIR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_become_values),
        cmocka_unit_test(test_replicas_answer_as_one),
        cmocka_unit_test(test_the_end_of_any_replica_is_seen),
        cmocka_unit_test(test_a_last_answer_counts),
        cmocka_unit_test(test_what_replicas_compared),
        cmocka_unit_test(test_answers_of_replicas_that_do_not_fit),
        cmocka_unit_test(test_starts_of_replicas_are_cut),
        cmocka_unit_test(test_failed_leaves_the_group_alive),
        cmocka_unit_test(test_a_starved_group_does_not_hang),
        cmocka_unit_test(breaking_the_protocol_ends_the_group),
        cmocka_unit_test(test_samples_are_checked),
        cmocka_unit_test(test_greetings_are_checked),
        cmocka_unit_test(a_missing_program_is_a_usage_error),
        cmocka_unit_test(quit_and_end_of_file_end_the_worker),
        cmocka_unit_test(a_signal_interrupts_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
