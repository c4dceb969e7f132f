/* SPDX-License-Identifier: MIT */
/* ctest: alone dose slow */
/* Planted sessions on virtual time: after every record the session that runs equals the one that is
 * read back from its journal so far, field by field. Plans fail, others load the machine, limits
 * are broken, references fail; a part of the sessions is killed after some record, and gone on
 * with. Two objectives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "db/outline.h"
#include "tests/clock/virtual.c" /* NOLINT(bugprone-suspicious-include): this test is linked with it alone */
#include "tests/lib/dose.h"
#include "tests/tuner/session/same_session.h"
#include "tuner/session/replay.h"
#include "tuner/session/session_int.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#define WORKER   DT_BINARY_DIR "/tests/scenario"
#define SCENARIO DT_BINARY_DIR "/tests/test_session_live_is_replayed.json"
#define CLOCK    DT_BINARY_DIR "/tests/test_session_live_is_replayed.clock"
#define OTHERS   DT_BINARY_DIR "/tests/test_session_live_is_replayed.others"

enum { SESSIONS = 300, SESSIONS_THIN = 40, PLANS = 12 };

/* The session that runs, and the one made of its journal's records. */
static struct dt_tuning tuning;
static struct dt_log *shadow;
static int records, resumed, compared, failed, disturbed, undone, limited;
static const char *wrong; /* the first field that differed */
static char wrong_at[160];

static char scratch[] = "/tmp/dittune_live_XXXXXX";

static void compare(const char *after)
{
    const char *field = tuning.session->target == NULL || dt_log_session(shadow)->target == NULL
                            ? NULL
                            : differs_session(tuning.session, dt_log_session(shadow));
    if (field == NULL || wrong != NULL)
        return;
    wrong = field;
    snprintf(wrong_at, sizeof wrong_at, "before a record \"%s\" of session %s", after,
             tuning.session->id);
}

/* Called when a record was written, before it is applied to the session that runs: both have
 * the records before it. */
static void record_added(const char *text, size_t size)
{
    json_t *record = NULL;
    assert_int_equal(dt_json_parse(text, size, "a record", &record), DT_OK);
    compare(dt_json_text_at(record, "kind"));
    if (strcmp(dt_json_text_at(record, "kind"), "search") == 0) /* also in a journal that goes on */
        assert_true(dt_json_integer_at(record, "evaluations") > 0);
    const struct dt_journal_reader reader = {.record = record,
                                             .kind = dt_json_text_at(record, "kind")};
    assert_int_equal(dt_log_read(shadow, &reader, "a record"), DT_OK);
    json_decref(record);
    records++;
}

/* ---- what is planted */

static double seconds_now(void)
{
    return (double)(dt_clock_ns() - START_NS) * 1e-9;
}

static double draw(struct dt_rng *rng)
{
    return dt_rng_uniform(rng);
}

static const char *fault_of(struct dt_rng *rng)
{
    static const char *const faults[] = {
        "{\"when\": {\"plan\": 3}, \"do\": \"exit\"}",
        "{\"when\": {\"plan\": 4}, \"do\": \"memory\"}",
        "{\"when\": {\"plan\": 5}, \"do\": \"wrong\", \"size\": 0.5}",
        "{\"when\": {\"plan\": 6}, \"do\": \"hang\"}",
        "{\"when\": {\"plan\": 2}, \"do\": \"error\", \"first\": 1}",
        "{\"when\": {\"plan\": 0}, \"do\": \"exit\", \"at\": \"measure\", \"skip\": 2}",
        "{\"copy\": true, \"do\": \"memory\"}",
        "{\"when\": {\"plan\": 1}, \"do\": \"delay\", \"ns\": 3e8, \"first\": 3}",
        "{\"do\": \"segv\", \"first\": 1}"};
    return faults[dt_rng_below(rng, sizeof faults / sizeof faults[0])];
}

/* slow: steps that take so long that others begin and end to load the machine
 * while the search goes on. */
static void plant(struct dt_rng *rng, bool slow)
{
    FILE *file = fopen(SCENARIO, "w");
    assert_non_null(file);
    fprintf(file, "{\"seed\": %d, \"ns\": [", (int)dt_rng_below(rng, 1000000));
    for (int i = 0; i < PLANS; i++)
        fprintf(file, "%s%.0f", i > 0 ? ", " : "", (slow ? 5e7 : 2e6) * exp(draw(rng) - 0.5));
    fprintf(file, "], \"log\": false, \"cold\": 2, \"cv\": %.3f", 0.03 * draw(rng));
    if (draw(rng) < 0.5)
        fprintf(file, ", \"process_sd\": %.4f, \"residency_sd\": %.4f", 0.02 * draw(rng),
                0.01 * draw(rng));
    if (draw(rng) < 0.3)
        fprintf(file,
                ", \"slow_clock\": 0.6, \"slow_rank\": 0, \"slow_at\": 20, \"slow_steps\": 9");
    if (slow)
        fprintf(file, ", \"busy\": [[%.1f, %.2f], [%.1f, 1]]", seconds_now() + 4 + 3 * draw(rng),
                1.5 + draw(rng), seconds_now() + 10 + 10 * draw(rng));
    if (draw(rng) < 0.3)
        fprintf(file, ", \"batches\": {\"1\": 0.4, \"2\": 0.6, \"4\": 1}");
    if (draw(rng) < 0.5)
        fprintf(file, ", \"documented\": [{\"plan\": {\"plan\": \"%d\"}, \"source\": \"here\"}]",
                (int)dt_rng_below(rng, PLANS));
    int faults = draw(rng) < 0.6 ? 1 + (int)dt_rng_below(rng, 3) : 0;
    for (int i = 0; i < faults; i++)
        fprintf(file, "%s%s", i == 0 ? ", \"faults\": [" : ", ", fault_of(rng));
    fprintf(file, "%s}\n", faults > 0 ? "]" : "");
    assert_int_equal(fclose(file), 0);
}

/* Lines of second, busy cores and stolen ones, of the next 12 seconds (tests/clock/virtual.c). */
static void plant_load(struct dt_rng *rng)
{
    double at = seconds_now();
    FILE *file = fopen(OTHERS, "w");
    assert_non_null(file);
    bool loaded = draw(rng) < 0.5;
    for (int i = 0; i < 12 && loaded; i++)
        fprintf(file, "%.2f %.2f 0\n", at + i, draw(rng) < 0.3 ? 1 + draw(rng) : 0.02 * draw(rng));
    assert_int_equal(fclose(file), 0);
}

/* ---- a session and what it leaves */

static void run_session(struct dt_rng *rng, struct dt_job *job, double seconds, bool resume)
{
    static const char *const searches[] = {"auto", "exhaustive", "tpe", "stages"};
    struct dt_target *target = NULL;
    assert_int_equal(dt_target_new(job, &target), DT_OK);
    int64_t now = dt_clock_ns();
    const struct dt_session_opts opts = {
        .job = job,
        .target = target,
        .directory = scratch,
        .strategy = searches[dt_rng_below(rng, sizeof searches / sizeof searches[0])],
        .against = draw(rng) < 0.2 ? "plan=7" : NULL,
        .resume = resume,
        .began_ns = now,
        .deadline_ns = now + (int64_t)(seconds * 1e9)};
    assert_int_equal(dt_tuning_open(&tuning, &opts), DT_OK);
    assert_int_equal(dt_log_new(&shadow), DT_OK);
    assert_int_equal(dt_tuning_begin(&tuning), DT_OK);
    resumed += tuning.resume.id[0] != '\0';
    (void)!dt_tuning_run(&tuning);
    compare("none");
    const struct dt_session *session = tuning.session;
    compared += session->finals.entrant_count > 0;
    limited += dt_session_limit_broken(session);
    disturbed += session->finals.sets.count > dt_sets_quiet(&session->finals.sets);
    for (int i = 0; i < session->count; i++) {
        failed += session->trials[i].outcome != DT_TRIAL_OK;
        undone += session->trials[i].undone;
    }
}

static void end_session(char *path, size_t room)
{
    struct dt_text text = {0};
    dt_journals_path(scratch, tuning.session->id, &text);
    snprintf(path, room, "%s", dt_text_at(&text));
    dt_text_fini(&text);
    struct dt_target *target = (struct dt_target *)tuning.target;
    dt_tuning_fini(&tuning);
    dt_target_free(target);
    dt_log_free(shadow);
    shadow = NULL;
}

/* The journal as a kill leaves it: its first `keep` of all bytes. */
static void cut_journal(const char *path, double keep)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    assert_int_equal(ftruncate(fileno(file), (off_t)(keep * (double)ftell(file))), 0);
    assert_int_equal(fclose(file), 0);
}

static void live_sessions_are_what_their_records_say(void **state)
{
    int sessions = dose_full() ? SESSIONS : SESSIONS_THIN;
    uint64_t seed = dose_seed("sessions", 1);
    (void)state;
    dt_journal_added = record_added;
    for (int i = 0; i < sessions && wrong == NULL; i++) {
        struct dt_rng rng = dt_rng_at(seed + (uint64_t)i, "session");
        struct dt_job job = {.worker = {WORKER, NULL}, .seed = i};
        char path[4096];
        job.max_latency_ns = draw(&rng) < 0.2 ? (int64_t)(1e6 + 2e6 * draw(&rng)) : 0;
        assert_int_equal(
            dt_objective_find(draw(&rng) < 0.5 ? "latency" : "throughput", &job.objective), DT_OK);
        bool slow = i % 3 == 0;
        double seconds = slow ? 60 : 12;
        plant(&rng, slow);
        plant_load(&rng);
        run_session(&rng, &job, seconds * (0.2 + 0.8 * draw(&rng)), false);
        end_session(path, sizeof path);
        if (wrong == NULL && draw(&rng) < 0.4) {
            cut_journal(path, 0.2 + 0.8 * draw(&rng));
            run_session(&rng, &job, seconds, true);
            end_session(path, sizeof path);
        }
    }
    dt_journal_added = NULL;
    printf(
        "%d sessions, %d records: %d resumed, %d compared, %d failed and %d undone trials, %d with "
        "disturbed sets, %d with broken limits\n",
        sessions, records, resumed, compared, failed, undone, disturbed, limited);
    if (wrong != NULL)
        fail_msg("%s differs %s", wrong, wrong_at);
    assert_true(records > 20 * sessions && resumed > 0 && compared > 0 && failed > 0 &&
                undone > 0 && disturbed > 0 && limited > 0);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    unlink(CLOCK);
    setenv("DITTUNE_CLOCK", CLOCK, 1);
    setenv("DITTUNE_CLOCK_OTHERS", OTHERS, 1);
    setenv("SCENARIO", SCENARIO, 1);
    unsetenv("DITTUNE_LOAD");
    if (mkdtemp(scratch) == NULL)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_sessions_are_what_their_records_say),
    };
    int status = cmocka_run_group_tests(tests, NULL, NULL);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    return system(command) == 0 ? status : 1; /* NOLINT(cert-env33-c,concurrency-mt-unsafe) */
}
