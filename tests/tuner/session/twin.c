/* SPDX-License-Identifier: MIT */
/* ctest: alone */
/* A whole session with the scenario worker on virtual time: the second copy of a plan is slower by
 * a planted share, or cannot be had, and the verdict follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/clock/virtual.c" /* NOLINT(bugprone-suspicious-include): this test is linked with it alone */
#include "tuner/session/session_int.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#define WORKER   DT_BINARY_DIR "/tests/scenario"
#define SCENARIO DT_BINARY_DIR "/tests/test_session_twin.json"
#define CLOCK    DT_BINARY_DIR "/tests/test_session_twin.clock"

/* Plan 0 is the default, visits differ by a thousandth; `more` is what is special. Later
 * plans need less memory. */
#define PLANS(ns, more)                                                                            \
    "{\"ns\":[" ns "], \"swing\":0.0005, \"cold\":2, \"verify\":false, \"log\":false,"             \
    " \"bytes\":{\"0\":300, \"1\":200, \"2\":100}" more "}"
#define SECOND(fault) ", \"faults\":[{\"copy\":true, " fault "}]"

static const char quiet[] = PLANS("1e6, 0.97e6", ""),
                  placed[] = PLANS("1e6, 0.97e6", ", \"copy\":0.05"),
                  placed_fast[] = PLANS("1e6, 0.9e6", ", \"copy\":0.05"),
                  no_memory[] = PLANS("1e6, 0.97e6", SECOND("\"do\":\"memory\"")),
                  dies[] = PLANS("1e6, 0.97e6", SECOND("\"do\":\"exit\", \"at\":\"prepare\"")),
                  hangs[] = PLANS("1e6, 0.97e6", SECOND("\"do\":\"hang\", \"at\":\"prepare\"")),
                  sleeps[] = PLANS("1e6, 0.97e6", SECOND("\"do\":\"delay\", \"ns\":5e8")),
                  long_steps[] = PLANS("60e6, 50e6", ""), near[] = PLANS("1e6, 0.9e6, 0.905e6", ""),
                  apart[] = PLANS("1e6, 0.9e6, 0.918e6", "");

static struct dt_target *target;
static struct dt_tuning tuning;
static const struct dt_session *session;
static struct dt_noise noise;
static char note[256];

/* Workers that are started from now on do what it says. */
static void plant(const char *scenario)
{
    FILE *file = fopen(SCENARIO, "w");
    assert_non_null(file);
    assert_true(fputs(scenario, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void hold(const char *scenario, int seconds)
{
    static struct dt_job job;
    struct dt_text text = {0};
    job = (struct dt_job){.worker = {WORKER, NULL}, .seed = 1};
    plant(scenario);
    assert_int_equal(dt_objective_find("latency", &job.objective), DT_OK);
    assert_int_equal(dt_target_new(&job, &target), DT_OK);
    int64_t now = dt_clock_ns();
    const struct dt_session_opts opts = {.job = &job,
                                         .target = target,
                                         .strategy = "exhaustive",
                                         .began_ns = now,
                                         .deadline_ns = now + seconds * DT_NS_PER_SECOND};
    assert_int_equal(dt_tuning_open(&tuning, &opts), DT_OK);
    session = tuning.session;
    dt_status status = dt_tuning_run(&tuning);
    assert_int_equal(status, dt_session_provisional(session) ? DT_EPROVISIONAL : DT_OK);
    noise = dt_session_noise(session);
    dt_session_noise_note(session, &text);
    snprintf(note, sizeof note, "%s", dt_text_at(&text));
    dt_text_fini(&text);
}

static int best_plan(void)
{
    return (int)dt_point_value(target->space, &session->finals.entrants[session->finals.best].point,
                               0);
}

static void end(void)
{
    dt_tuning_fini(&tuning);
    dt_target_free(target);
}

static void a_quiet_machine_resolves_3_percent(void **state)
{
    (void)state;
    hold(quiet, 20);
    assert_int_equal(session->verdict, DT_VERDICT_FASTER);
    assert_int_equal(session->finals.sets.count, 4);
    assert_true(noise.sets == 4 && noise.margin < 0.003 && !noise.noisy);
    assert_string_equal(note, "");
    end();
}

/* The second copy takes 5 % more, always: a gain of 3 % may be that, too. */
static void a_gain_within_the_margin_is_a_tie(void **state)
{
    (void)state;
    hold(placed, 20);
    assert_int_equal(session->verdict, DT_VERDICT_TIE);
    assert_int_equal(best_plan(), 0);
    assert_int_equal(session->finals.sets.count,
                     16); /* more sets could have made the margin smaller */
    assert_true(dt_entrant_faster(&session->finals.entrants[1]));
    assert_true(fabs(noise.ratio - 1.05) < 0.002 && noise.margin >= 0.05 && noise.noisy &&
                noise.differs);
    assert_non_null(strstr(note, "the machine is not quiet"));
    assert_non_null(strstr(note, "differed from itself"));
    end();
    hold(placed_fast, 20);
    assert_int_equal(session->verdict, DT_VERDICT_FASTER);
    assert_int_equal(session->finals.sets.count, 4);
    end();
}

/* Without a noise floor nothing is decided, and the default stays. */
static void test_without_a_twin_nothing_is_decided(void **state)
{
    static const char *const rows[][2] = {{dies, "crashed"}, {hangs, "hung"}};
    (void)state;
    hold(no_memory, 10); /* beside the default; by itself it runs */
    assert_int_equal(session->verdict, DT_VERDICT_FASTER);
    assert_true(noise.sets >= 4 && session->finals.sets.company == DT_ONE_ALONE);
    end();
    for (int i = 0; i < 2; i++) {
        hold(rows[i][0], 10);
        assert_int_equal(session->verdict, DT_VERDICT_PROVISIONAL);
        assert_int_equal(session->finals.sets.count, 4);
        assert_int_equal(noise.pairs, 0);
        assert_non_null(strstr(note, "the second copy of the default failed"));
        assert_non_null(strstr(note, rows[i][1]));
        end();
    }
}

/* A set of a plan is three steps to prepare, two to warm up and two rounds of two: nine of
 * 60 ms. Four sets of three plans would take 1.3 times 6.5 s, of two 4.3 s; the trials
 * leave about 6 s of 9. */
static void the_twin_is_left_out_when_time_is_short(void **state)
{
    (void)state;
    hold(long_steps, 9);
    assert_int_equal(session->verdict, DT_VERDICT_PROVISIONAL);
    assert_int_equal(session->finals.entrant_count, 2);
    assert_non_null(strstr(note, "no time for a second copy"));
    end();
    hold(sleeps,
         10); /* its rounds turn out to be too long: fewer sets are made, and nothing is decided */
    assert_int_equal(session->verdict, DT_VERDICT_INCONCLUSIVE);
    assert_int_equal(noise.pairs, 0);
    end();
    hold(long_steps, 20);
    assert_int_equal(session->finals.entrant_count, 3);
    assert_string_equal(note, "");
    end();
}

/* Plan 2 needs less memory than plan 1: in the shoot-out half a per cent makes
 * a tie, 2 % does not. */
static void test_the_shootout_prefers_the_simpler_of_ties(void **state)
{
    (void)state;
    hold(near, 20);
    assert_int_equal(best_plan(), 2);
    assert_int_equal(session->finals.tie_count, 1);
    end();
    hold(apart, 20);
    assert_int_equal(best_plan(), 1);
    assert_int_equal(session->finals.tie_count, 0);
    end();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    unlink(CLOCK);
    setenv("DITTUNE_CLOCK", CLOCK, 1);
    setenv("SCENARIO", SCENARIO, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_machine_resolves_3_percent),
        cmocka_unit_test(a_gain_within_the_margin_is_a_tie),
        cmocka_unit_test(test_without_a_twin_nothing_is_decided),
        cmocka_unit_test(the_twin_is_left_out_when_time_is_short),
        cmocka_unit_test(test_the_shootout_prefers_the_simpler_of_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
