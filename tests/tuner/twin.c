/* SPDX-License-Identifier: MIT */
/* A whole session with a worker whose times are written down below (this program, started once more with DITTUNE_SCRIPT):
 * the second copy of a plan is slower by a planted share, or cannot be had, and the verdict follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/tuner/replay.h"
#include "tuner/session/finals.h"
#include "tuner/session/verdict.h"

#include <math.h>
#include <time.h>

#define HANDLES 256

struct script {
    const char *name;
    double step[3]; /* seconds of the plans: 0 is the default; 0: there is no such plan */
    double swing;   /* of plan 2 from visit to visit */
    double copy;    /* share by which a second copy is slower */
    char
        second; /* what a second copy does: 'r'uns, 'm'emory, 'x' exits, 'h'angs, 's'leeps half a second a request */
};

static const struct script scripts[] = {
    {"quiet", {1e-3, 0.97e-3}, 0, 0, 'r'},
    {"placed", {1e-3, 0.97e-3}, 0, 0.05, 'r'},
    {"placed-fast", {1e-3, 0.9e-3}, 0, 0.05, 'r'},
    {"no-memory", {1e-3, 0.97e-3}, 0, 0, 'm'},
    {"dies", {1e-3, 0.97e-3}, 0, 0, 'x'},
    {"hangs", {1e-3, 0.97e-3}, 0, 0, 'h'},
    {"sleeps", {1e-3, 0.97e-3}, 0, 0, 's'},
    {"long", {60e-3, 50e-3}, 0, 0, 'r'},
    {"near", {1e-3, 0.9e-3, 0.918e-3}, 0.065, 0, 'r'},
    {"near-placed", {1e-3, 0.9e-3, 0.918e-3}, 0.065, 0.05, 'r'},
};

static const struct script *script_of(const char *name)
{
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        if (strcmp(scripts[i].name, name) == 0)
            return &scripts[i];
    return &scripts[0];
}

/* ---- the worker */

struct handle {
    bool live, second;
    int plan, visits;
    double step;
};

static json_t *hello(const struct script *script)
{
    return json_pack("{s:s, s:i, s:s, s:s, s:[{s:s, s:o, s:i}]}", "op", "hello", "protocol", 1,
                     "name", "script", "launch", "self", "parameters", "name", "plan", "values",
                     script->step[2] > 0 ? json_pack("[i,i,i]", 0, 1, 2) : json_pack("[i,i]", 0, 1),
                     "default", 0);
}

static json_t *prepare(const struct script *script, struct handle handles[], int *count, int plan)
{
    bool second = false;
    for (int i = 0; i < *count; i++)
        second = second || (handles[i].live && handles[i].plan == plan);
    if (second && script->second == 'x')
        exit(3);
    while (second && script->second == 'h')
        pause();
    if (second && script->second == 'm')
        return json_pack("{s:s, s:s, s:s}", "op", "failed", "kind", "memory", "say", "too large");
    handles[*count] = (struct handle){.live = true,
                                      .second = second,
                                      .plan = plan,
                                      .step = script->step[plan] * (1 + second * script->copy)};
    return json_pack("{s:s, s:i, s:[i], s:i, s:[i]}", "op", "prepared", "handle", (*count)++,
                     "peak_bytes", 300 - 100 * plan, "resident_bytes", 300, "cold_ns", 2000000);
}

/* Steps of a visit are alike; visits differ by a thousandth, those of plan 2 by its swing, up and down in turn. */
static json_t *run(const struct script *script, struct handle *handle, int n, bool measured)
{
    double swing = handle->plan == 2 ? script->swing : 0.0005;
    double step = handle->step * (handle->visits % 2 == 0 ? 1 - swing : 1 + swing);
    json_t *rows = json_array();
    if (handle->second && script->second == 's')
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    for (int i = 0; i < n; i++)
        json_array_append_new(rows, json_pack("[I]", (json_int_t)(1e9 * step)));
    handle->visits += measured;
    return json_pack("{s:s, s:o}", "op", "samples", "ns", rows);
}

static json_t *answer(const struct script *script, struct handle handles[], int *count,
                      const json_t *request)
{
    const char *op = dt_wire_op(request);
    int handle = (int)json_integer_value(json_object_get(request, "handle"));
    if (strcmp(op, "prepare") == 0 && *count < HANDLES)
        return prepare(
            script, handles, count,
            (int)json_integer_value(json_object_get(json_object_get(request, "plan"), "plan")));
    if (strcmp(op, "run") == 0)
        return run(script, &handles[handle], (int)json_integer_value(json_object_get(request, "n")),
                   strcmp(json_string_value(json_object_get(request, "mode")), "measure") == 0);
    handles[handle].live = false;
    return json_pack("{s:s, s:i}", "op", "released", "handle", handle);
}

static int serve(const struct script *script)
{
    static struct handle handles[HANDLES];
    int count = 0;
    struct dt_wire wire;
    json_t *request = NULL, *said;
    dt_wire_init(&wire, STDIN_FILENO, STDOUT_FILENO);
    while (dt_wire_read(&wire, DT_WIRE_FOREVER, &request) == DT_OK) {
        bool first = strcmp(dt_wire_op(request), "hello") == 0;
        if (strcmp(dt_wire_op(request), "quit") == 0)
            return 0;
        said = first ? hello(script) : answer(script, handles, &count, request);
        if (dt_wire_write(&wire, said) < 0)
            return 1;
        json_decref(said);
        said = json_pack("{s:s, s:[{s:i, s:i, s:s}], s:s}", "op", "ready", "ranks", "rank", 0,
                         "pid", (int)getpid(), "host", "here", "comm", "self");
        if (first && dt_wire_write(&wire, said) < 0)
            return 1;
        json_decref(said);
        json_decref(request);
    }
    return 0;
}

/* ---- the sessions */

static struct dt_target *target;
static struct dt_session session;
static struct dt_noise noise;
static char note[256];

static void hold(const char *script, int seconds)
{
    static struct dt_options options;
    struct dt_target_opts opts = {.size = 0};
    struct dt_text text = {0};
    options = (struct dt_options){.objective = "latency",
                                  .dtype = "float32",
                                  .search = "exhaustive",
                                  .worker = replay_self(""),
                                  .seed = 1,
                                  .quiet = true};
    setenv("DITTUNE_SCRIPT", script, 1);
    assert_int_equal(dt_target_new(&options, &opts, &target), DT_OK);
    int64_t now = dt_clock_ns();
    session = (struct dt_session){.options = &options,
                                  .target = target,
                                  .began_ns = now,
                                  .deadline_ns = now + seconds * DT_NS_PER_SECOND,
                                  .best = -1};
    assert_int_equal(dt_session_run(&session), DT_OK);
    noise = dt_session_noise(&session);
    dt_session_noise_note(&session, &text);
    snprintf(note, sizeof note, "%s", dt_text_at(&text));
    dt_text_fini(&text);
}

static int best_plan(void)
{
    return (int)dt_point_value(target->space, &session.entrants[session.best].point, 0);
}

static void end(void)
{
    dt_session_fini(&session);
    dt_target_free(target);
}

static void test_a_quiet_machine_tells_3_percent(void **state)
{
    (void)state;
    hold("quiet", 20);
    assert_int_equal(session.verdict, DT_VERDICT_FASTER);
    assert_int_equal(session.rounds, 8);
    assert_true(noise.pairs == 8 && noise.margin < 0.003 && !noise.noisy);
    assert_string_equal(note, "");
    end();
}

/* The second copy takes 5 % more, always: a gain of 3 % may be that, too. */
static void test_within_the_margin_is_a_tie(void **state)
{
    (void)state;
    hold("placed", 20);
    assert_int_equal(session.verdict, DT_VERDICT_TIE);
    assert_int_equal(best_plan(), 0);
    assert_int_equal(session.rounds, 64); /* more rounds could have made the margin smaller */
    assert_true(dt_entrant_faster(&session.entrants[1]));
    assert_true(fabs(noise.ratio - 1.05) < 0.002 && noise.margin >= 0.05 && noise.noisy &&
                noise.differs);
    assert_non_null(strstr(note, "too noisy to judge"));
    assert_non_null(strstr(note, "differed from itself"));
    end();
    hold("placed-fast", 20);
    assert_int_equal(session.verdict, DT_VERDICT_FASTER);
    assert_int_equal(session.rounds, 8);
    end();
}

static void test_a_twin_that_fails_harms_nobody(void **state)
{
    static const char *const scripts_of[][2] = {
        {"no-memory", "out of memory"}, {"dies", "crashed"}, {"hangs", "hung"}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        hold(scripts_of[i][0], 10);
        assert_int_equal(session.verdict, DT_VERDICT_FASTER);
        assert_int_equal(session.rounds, 8);
        assert_int_equal(noise.pairs, 0);
        assert_non_null(strstr(note, "the second copy of the default failed"));
        assert_non_null(strstr(note, scripts_of[i][1]));
        end();
    }
}

/* Eight rounds of the default, a challenger and the twin would take (by the trials' times) .5 + 1.3 * 21 * .18 s = 5.4 s. */
static void test_no_time_for_a_twin(void **state)
{
    (void)state;
    hold("long", 5);
    assert_int_equal(session.verdict, DT_VERDICT_FASTER);
    assert_int_equal(session.entrant_count, 2);
    assert_non_null(strstr(note, "no time for a second copy"));
    end();
    hold("sleeps", 5); /* its rounds turn out to be too long: it goes, and eight rounds are made */
    assert_int_equal(session.verdict, DT_VERDICT_FASTER);
    assert_int_equal(noise.pairs, 0);
    assert_non_null(strstr(note, "no time for a second copy"));
    end();
    hold("long", 20);
    assert_int_equal(session.entrant_count, 3);
    assert_string_equal(note, "");
    end();
}

/* Plan 2 needs less memory; in the shoot-out its ratio to plan 1 is 1.02, some rounds below 1 and some above. */
static void test_the_shootout_ties_within_the_margin(void **state)
{
    (void)state;
    hold("near", 20);
    assert_int_equal(best_plan(), 1);
    end();
    hold("near-placed", 20);
    assert_int_equal(dt_point_value(target->space, &session.entrants[1].point, 0), 2);
    end();
}

int main(void)
{
    const char *script = getenv("DITTUNE_SCRIPT");
    if (script != NULL)
        _exit(serve(script_of(script))); /* no leak check of what was never meant to end */
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_quiet_machine_tells_3_percent),
        cmocka_unit_test(test_within_the_margin_is_a_tie),
        cmocka_unit_test(test_a_twin_that_fails_harms_nobody),
        cmocka_unit_test(test_no_time_for_a_twin),
        cmocka_unit_test(test_the_shootout_ties_within_the_margin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
