/* SPDX-License-Identifier: MIT */
/* ctest: alone */
/* Recorded conversations with real workers, replayed without one
 * (tests/tuner/transcripts/README.md): the same requests give the same plain values, and a whole
 * trial gives the median that the recorded numbers have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tests/tuner/replay.h"
#include "tuner/measure/trial.h"

#include <dirent.h>
#include <math.h>

#define FOLDER DT_SOURCE_DIR "/tests/tuner/transcripts/"

static json_t *next_line(FILE *file, char direction)
{
    static char line[1 << 20];
    json_t *message = NULL;
    while (fgets(line, sizeof line, file) != NULL)
        if (line[0] == direction) {
            assert_int_equal(dt_json_parse(line + 2, strlen(line + 2), "a transcript", &message),
                             DT_OK);
            return message;
        }
    return NULL;
}

/* Every request of the file through a group; every answer comes back as it was recorded. */
static void talk_again(const char *path)
{
    struct dt_group *group = NULL;
    struct dt_failure failure;
    struct dt_launch launch = {.program = replay_self(path), .ranks = 1};
    FILE *requests = fopen(path, "r"), *answers = fopen(path, "r");
    assert_non_null(requests);
    json_decref(next_line(requests, '>'));
    json_decref(next_line(answers, '<'));
    json_t *ready = next_line(answers, '<'), *request;
    assert_int_equal(dt_group_start(&launch, NULL, replay_deadline(), &group, &failure), DT_OK);
    assert_true(json_equal(dt_group_ready(group), ready));
    json_decref(ready);
    int talked = 0;
    while ((request = next_line(requests, '>')) != NULL) {
        json_t *want = next_line(answers, '<'), *got = NULL;
        if (want == NULL)
            break; /* quit */
        dt_status status =
            dt_group_call(group, request, dt_wire_op(want), replay_deadline(), &got, &failure);
        if (strcmp(dt_wire_op(want), "failed") == 0)
            assert_int_equal(status, DT_FAILED);
        else
            assert_true(status == DT_OK && json_equal(want, got));
        json_decref(want);
        json_decref(got);
        json_decref(request);
        talked++;
    }
    json_decref(request);
    assert_true(talked >= 4);
    dt_group_stop(group, DT_NS_PER_SECOND);
    fclose(requests);
    fclose(answers);
}

static void every_transcript_is_reproduced(void **state)
{
    (void)state;
    int n = 0;
    DIR *folder = opendir(FOLDER);
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        if (strstr(entry->d_name, ".transcript") != NULL) {
            char path[512];
            snprintf(path, sizeof path, FOLDER "%.200s", entry->d_name);
            talk_again(path);
            n++;
        }
    if (folder != NULL)
        closedir(folder);
    assert_true(n >= 2);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median over the last n recorded steps of the slowest rank, from the bare numbers. */
static double recorded_median(const char *path, int n)
{
    double all[512], last[512];
    int count = 0;
    json_t *message, *row, *value;
    size_t i, r;
    FILE *file = fopen(path, "r");
    while ((message = next_line(file, '<')) != NULL) {
        json_array_foreach(json_object_get(message, "ns"), i, row)
        {
            all[count] = 0;
            json_array_foreach(row, r, value)
            {
                all[count] = fmax(all[count], (double)json_integer_value(value));
            }
            count++;
        }
        json_decref(message);
    }
    fclose(file);
    assert_in_range(n, 1, count);
    memcpy(last, all + count - n, (size_t)n * sizeof *last);
    qsort(last, (size_t)n, sizeof *last, compare);
    return n % 2 == 1 ? last[n / 2] : (last[n / 2 - 1] + last[n / 2]) / 2;
}

static struct dt_target *make_target(const char *program)
{
    struct dt_job job = {.worker = {program, NULL}, .plan = ""};
    struct dt_target *target = NULL;
    assert_int_equal(dt_objective_find("latency", &job.objective), DT_OK);
    assert_int_equal(dt_target_new(&job, &target), DT_OK);
    return target;
}

static void measure(const char *program, const char *plan, struct dt_result *result)
{
    struct dt_rig rig;
    struct dt_point point;
    struct dt_measure how = {.deadline_ns = replay_deadline(), .half_width = 0.01};
    struct dt_target *target = make_target(program);
    assert_int_equal(dt_target_plan(target, plan, &point), DT_OK);
    const char *record = getenv("DITTUNE_RECORD");
    if (record != NULL)
        setenv("DITTUNE_TRANSCRIPT", record, 1);
    dt_rig_init(&rig, target, 1);
    assert_int_equal(dt_measure_plan(&rig, &point, &how, result), DT_OK);
    dt_rig_fini(&rig, DT_NS_PER_SECOND);
    dt_target_free(target);
}

/* A whole trial: the requests must be those that were recorded, or the replaying worker refuses. */
static void a_trial_repeats_its_requests(void **state)
{
    (void)state;
    struct dt_result result;
    const char *path = FOLDER "minimal-trial.transcript";
    measure(replay_self(path), "", &result);
    if (result.outcome != DT_TRIAL_OK)
        fail_msg("%s: %s", dt_outcome_text(result.outcome), result.cause);
    assert_true(result.samples.n >= 8);
    double median = recorded_median(path, result.samples.n) * 1e-9;
    assert_true(fabs(result.summary.median - median) <= 1e-12);
    assert_true(result.facts.verified_error <= 1e-5);
    int look = dt_stats_look(result.samples.n);
    assert_true(look >= 0 && result.summary.level == 1 - dt_look_alpha[look]);
    assert_true(result.summary.interval.low <= median && median <= result.summary.interval.high);
    dt_result_fini(&result);
}

/* With DITTUNE_RECORD=FILE and the program's name as argument, records that trial instead. */
int main(int argc, char **argv)
{
    const char *script = getenv("DITTUNE_REPLAY");
    if (script != NULL)
        _exit(replay(script)); /* no leak check of what was never meant to end */
    signal(SIGPIPE, SIG_IGN);
    if (argc == 2) {
        struct dt_result result;
        measure(argv[1], "", &result);
        printf("%s, %d samples\n", dt_outcome_text(result.outcome), result.samples.n);
        dt_result_fini(&result);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_transcript_is_reproduced),
        cmocka_unit_test(a_trial_repeats_its_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
