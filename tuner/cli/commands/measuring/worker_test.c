/* SPDX-License-Identifier: MIT */
/* The conformance test for authors of workers (docs/protocol.md): a row is a promise of the
 * protocol and the function that tests it. The checks run in order in one group; when a failure
 * ends the group, the rest is skipped. */
#include "base/clock.h"
#include "base/host.h"
#include "space/json/json.h"
#include "tuner/cli/alone.h"
#include "tuner/cli/options_job.h"
#include "tuner/cli/print.h"
#include "tuner/measure/measure.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS  (120 * DT_NS_PER_SECOND)
#define EXTENDED_NS  (1200 * DT_NS_PER_SECOND) /* by heartbeats */
#define PLANS_MOST   16
#define RANKS_LEAST  4 /* that plans may have, also on a machine of fewer cores */
#define PARKED_NS    (2 * DT_NS_PER_SECOND)
#define PARKED_SHARE 0.01
#define SEED         7
#define LATER_STEPS  6 /* between the two outputs of a plan that are verified */
#define PROJECTIONS  16

struct test {
    struct dt_target *target;
    int64_t start_ns; /* time to get ready */
    struct dt_group *group;
    struct dt_failure failure;
    bool starts;                      /* the first check passed */
    struct dt_prepared first, second; /* the default plan, made resident twice */
    bool skipped;                     /* the check does not apply */
    int failures, skips;              /* so far */
    char why[320];                    /* reason of a failure, or a finding */
};

static bool test_failed(struct test *test, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool test_failed(struct test *test, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(test->why, sizeof test->why, format, list);
    va_end(list);
    return false;
}

static bool test_passed(struct test *test, dt_status status)
{
    return status == DT_OK || test_failed(test, "%s", dt_message());
}

/* Skips a promise about an optional part that the worker lacks. */
static bool test_skipped(struct test *test, const char *why)
{
    test->skipped = true;
    snprintf(test->why, sizeof test->why, "%s", why);
    return true;
}

static const char unverified[] =
    "there is no verify, which is optional: its plans are labelled unverified";

/* The deadline of the next request. */
static int64_t test_deadline(const struct test *test)
{
    if (test->group != NULL)
        dt_group_extend(test->group, dt_clock_ns() + EXTENDED_NS);
    return dt_clock_ns() + PATIENCE_NS;
}

/* A prepare may load a model: heartbeats give it the time of a start. */
static bool prepare_plan(struct test *test, uint64_t seed, struct dt_prepared *prepared)
{
    dt_group_extend(test->group, dt_clock_ns() + test->start_ns);
    json_auto_t *plan = dt_point_json(test->target->space, &test->target->baseline);
    struct dt_verify verify = {.projections = PROJECTIONS, .seed = seed};
    dt_status status =
        dt_group_prepare(test->group, plan, &verify, test_deadline(test), prepared, &test->failure);
    dt_group_extend(test->group, 0);
    return test_passed(test, status);
}

static bool start_worker(struct test *test)
{
    struct dt_launch launch = {.program = test->target->worker.program,
                               .arguments = test->target->worker.arguments,
                               .assigned = test->target->worker.assigned,
                               .ranks = 1};
    dt_status status = dt_group_start(&launch, test->target->workload,
                                      dt_clock_ns() + test->start_ns, &test->group, &test->failure);
    return test_passed(test, status);
}

static bool check_start(struct test *test)
{
    if (!start_worker(test))
        return false;
    const json_t *entry, *ranks = json_object_get(dt_group_ready(test->group), "ranks");
    size_t i;
    json_array_foreach(ranks, i, entry)
    {
        if (!json_is_integer(json_object_get(entry, "pid")) ||
            !json_is_string(json_object_get(entry, "host")))
            return test_failed(test, "entry %zu of ready's ranks lacks pid or host", i);
    }
    return true;
}

/* The different steps of a request, whose shape dt_target_new has checked, are all of the job's. */
static bool check_step_kinds(struct test *test)
{
    const json_t *hello = dt_group_hello(test->group), *item;
    json_int_t all = dt_json_integer_at(json_object_get(hello, "job"), "steps"), sum = 0;
    size_t i;
    json_array_foreach(json_object_get(hello, "steps"), i, item) sum +=
        dt_json_integer_at(item, "count");
    if (dt_json_has(hello, "steps") && sum != all)
        return test_failed(
            test, "the counts of hello's 'steps' add up to %lld, and its job has %lld steps",
            (long long)sum, (long long)all);
    return true;
}

/* Version 2: "job" is complete, so that it can identify what is stored. */
static bool check_job(struct test *test)
{
    const json_t *hello = dt_group_hello(test->group), *name;
    const json_t *obeys = json_object_get(hello, "obeys"), *job = json_object_get(hello, "job");
    size_t i;
    if (!check_step_kinds(test))
        return false;
    if (dt_json_integer_at(hello, "protocol") < 2 || obeys == NULL) {
        snprintf(test->why, sizeof test->why, "it obeys none");
        return true;
    }
    json_array_foreach(obeys, i, name)
    {
        const char *field = json_string_value(name);
        if (field != NULL && json_object_get(job, field) == NULL)
            return test_failed(test, "it obeys %.40s, but hello's job lacks it", field);
    }
    return true;
}

static bool check_prepare(struct test *test)
{
    return prepare_plan(test, SEED, &test->first);
}

/* The same plan, inputs and seed: the same projections up to rounding. */
static bool check_repeat(struct test *test)
{
    const struct dt_outputs *a = &test->first.output, *b = &test->second.output;
    bool alone = test->target->worker.alone;
    int handle = test->first.handle;
    if (alone && !test_passed(test, dt_group_release(test->group, handle, test_deadline(test),
                                                     &test->failure)))
        return false;
    if (!prepare_plan(test, SEED, &test->second))
        return false;
    if (alone)
        test->first.handle = test->second.handle;
    if (handle == test->second.handle)
        return test_failed(test, "two resident plans have the same handle %d", handle);
    if (a->ranks != b->ranks || a->rows != b->rows || a->projections != b->projections)
        return test_failed(test, "the second time verify has another shape");
    for (int i = 0; i < a->ranks * a->rows * a->projections; i++) {
        double allowed = 1e-5 * a->norm[i / a->projections];
        if (!(fabs(a->projection[i] - b->projection[i]) <= allowed))
            return test_failed(test, "projection %d was %.9g, then %.9g", i, a->projection[i],
                               b->projection[i]);
    }
    if (a->ranks == 0)
        snprintf(test->why, sizeof test->why, "only the handles: there is no output to compare");
    return true;
}

static bool check_verify(struct test *test)
{
    struct dt_prepared other = {.handle = -1};
    const struct dt_outputs *first = &test->first.output;
    int n = first->ranks * first->rows * first->projections, changed = 0;
    if (n == 0)
        return test_skipped(test, unverified);
    if (first->projections != PROJECTIONS)
        return test_failed(test, "%d projections, asked for %d", first->projections, PROJECTIONS);
    if (!prepare_plan(test, SEED + 1, &other))
        return false;
    for (int i = 0; i < n; i++)
        changed += other.output.projection[i] != first->projection[i];
    dt_status status =
        dt_group_release(test->group, other.handle, test_deadline(test), &test->failure);
    dt_prepared_fini(&other);
    if (!test_passed(test, status))
        return false;
    return changed > n / 2 || test_failed(test, "another seed gave the same projections");
}

static bool run_steps(struct test *test, int handle, int n, enum dt_mode mode)
{
    struct dt_run run = {.ns = NULL};
    const char *unit = dt_json_text_at(dt_group_hello(test->group), "unit");
    const struct dt_steps steps = {handle, n, mode, NULL, strcmp(unit, "run") == 0};
    dt_status status = dt_group_run(test->group, &steps, test_deadline(test), &run, &test->failure);
    bool same = status != DT_OK || run.ranks == test->first.ranks;
    dt_run_fini(&run);
    if (!same)
        return test_failed(test, "ns has another number of ranks than cold_ns");
    return test_passed(test, status);
}

static bool check_run(struct test *test)
{
    return run_steps(test, test->first.handle, 2, DT_MODE_WARMUP) &&
           run_steps(test, test->first.handle, 3, DT_MODE_MEASURE);
}

static bool check_interleave(struct test *test)
{
    if (test->target->worker.alone)
        return test_skipped(test, "it has one plan at a time");
    for (int i = 0; i < 4; i++)
        if (!run_steps(test, i % 3 == 0 ? test->first.handle : test->second.handle, 1,
                       DT_MODE_MEASURE))
            return false;
    return true;
}

/* The worker answers the request by 'failed' and stays usable. */
static bool refuses_request(struct test *test, json_t *request, const char *what)
{
    json_auto_t *answer = NULL;
    dt_status status =
        dt_group_call(test->group, request, "failed", test_deadline(test), &answer, &test->failure);
    json_decref(request);
    if (status == DT_FAILED && dt_group_alive(test->group))
        return true;
    return test_failed(test, "%s: %s", what,
                       dt_group_alive(test->group) ? "it was accepted" : test->failure.cause);
}

static bool check_refuse_unknown(struct test *test)
{
    return refuses_request(test, json_pack("{s:s}", "op", "conformance"), "an unknown request");
}

static bool check_refuse_value(struct test *test)
{
    json_t *plan = dt_point_json(test->target->space, &test->target->baseline);
    json_object_set_new(plan, dt_space_axis(test->target->space, 0)->name, json_integer(-1));
    return refuses_request(test,
                           json_pack("{s:s, s:o, s:i, s:{s:i, s:i}}", "op", "prepare", "plan", plan,
                                     "seed", SEED, "verify", "projections", PROJECTIONS, "seed",
                                     SEED),
                           "a plan with the value -1");
}

static bool check_release(struct test *test)
{
    if (!test_passed(test, dt_group_release(test->group, test->second.handle, test_deadline(test),
                                            &test->failure)))
        return false;
    return refuses_request(test,
                           json_pack("{s:s, s:i, s:i, s:s}", "op", "run", "handle",
                                     test->second.handle, "n", 1, "mode",
                                     dt_mode_text(DT_MODE_MEASURE)),
                           "a run of a released handle");
}

/* Processor time of all threads of the ranks that have not ended. */
static int64_t cpu_ns(const struct dt_group *group)
{
    int64_t sum = 0;
    const json_t *entry, *ranks = json_object_get(dt_group_ready(group), "ranks");
    size_t i;
    json_array_foreach(ranks, i, entry)
    {
        clockid_t clock;
        struct timespec now;
        if (clock_getcpuclockid((pid_t)dt_json_integer_at(entry, "pid"), &clock) == 0 &&
            clock_gettime(clock, &now) == 0)
            sum += now.tv_sec * DT_NS_PER_SECOND + now.tv_nsec;
    }
    return sum;
}

static bool check_parked(struct test *test)
{
    dt_clock_sleep_ns(DT_NS_PER_SECOND / 2); /* limit of spinning after a parallel region */
    int64_t before = cpu_ns(test->group), began = dt_clock_machine_ns();
    dt_clock_sleep_ns(PARKED_NS);
    double share = (double)(cpu_ns(test->group) - before) / (double)(dt_clock_machine_ns() - began);
    snprintf(test->why, sizeof test->why, "%.2f %% of a core", 100 * share);
    return share < PARKED_SHARE;
}

static bool check_quit(struct test *test)
{
    char how[160];
    bool ended = dt_group_end(test->group, true, 5 * DT_NS_PER_SECOND, how, sizeof how);
    dt_group_stop(test->group, 0);
    test->group = NULL;
    if (!ended)
        return test_failed(test, "it still ran 5 s after quit");
    return strcmp(how, "exited with 0") == 0 || test_failed(test, "after quit it was %s", how);
}

static bool check_end_of_file(struct test *test)
{
    char how[160];
    dt_group_stop(test->group, 0);
    test->group = NULL;
    if (!start_worker(test))
        return false;
    bool ended = dt_group_end(test->group, false, 5 * DT_NS_PER_SECOND, how, sizeof how);
    dt_group_stop(test->group, 0);
    test->group = NULL;
    return ended || test_failed(test, "it still ran 5 s after the end of its standard input");
}

/* Sixteen plans, spread over the list, give the 1-rank plan's output. The projections of `first`
 * are kept after its group ends. */
static bool check_agree(struct test *test)
{
    struct dt_rig rig;
    const struct dt_target *target = test->target;
    int64_t count = dt_space_count(target->space);
    int n = count >= 0 && count < PLANS_MOST ? (int)count : PLANS_MOST;
    if (test->first.output.ranks == 0)
        return test_skipped(test, unverified);
    struct dt_rng rng = dt_rng_at(SEED, "plans");
    dt_rig_init(&rig, target, SEED);
    bool fine = true;
    for (int i = 0; i < n && fine; i++) {
        struct dt_resident resident;
        struct dt_point point;
        rig.until_ns = dt_clock_ns() + EXTENDED_NS;
        if (dt_space_listed(target->space))
            dt_space_at(target->space, n > 1 ? i * ((count - 1) / (n - 1)) : 0, &point);
        else
            dt_space_draw(target->space, &rng, &point);
        struct dt_result result;
        dt_result_init(&result, target, &point);
        dt_status status = dt_rig_prepare(&rig, &point, test_deadline(test), &resident);
        bool again = status == DT_OK && resident.failure.outcome == DT_TRIAL_OK &&
                     resident.prepared.verifies_runs;
        if (again)
            status = dt_rig_run(&rig, &resident, LATER_STEPS, DT_MODE_WARMUP, test_deadline(test),
                                &result);
        if (again && status == DT_OK && resident.failure.outcome == DT_TRIAL_OK)
            status = dt_rig_verify_again(&rig, &resident, test_deadline(test), &result);
        dt_result_fini(&result);
        fine = status == DT_OK && resident.failure.outcome == DT_TRIAL_OK;
        if (!fine) {
            dt_auto_text text = {0};
            dt_point_short(target->space, &point, &text);
            test_failed(test, "%s: %s", dt_text_at(&text),
                        status == DT_OK ? resident.failure.cause : dt_message());
        }
        dt_rig_release(&rig, &resident);
    }
    dt_rig_fini(&rig, DT_NS_PER_SECOND);
    return fine;
}

static const struct check {
    const char *name, *promise;
    bool (*run)(struct test *test);
    bool alone; /* runs without a group; other checks are skipped without one */
} checks[] = {
    {"start", "answers hello, then ready with one entry a rank", check_start, true},
    {"job", "announces a job with each field that it obeys", check_job, false},
    {"prepare", "makes its 1-rank plan resident", check_prepare, false},
    {"repeat", "gives the same output the second time, under another handle", check_repeat, false},
    {"verify", "sums up its output by as many seeded projections as asked for", check_verify,
     false},
    {"run", "warms up and measures: one time a step and rank", check_run, false},
    {"interleave", "runs two resident plans in turn", check_interleave, false},
    {"unknown", "refuses a request it does not know, and lives on", check_refuse_unknown, false},
    {"illegal", "refuses a value that it did not announce, and lives on", check_refuse_value,
     false},
    {"release", "releases a plan, and refuses to run it afterwards", check_release, false},
    {"parked", "uses under 1 % of a core between requests", check_parked, false},
    {"quit", "exits with 0 on quit", check_quit, false},
    {"eof", "exits when its standard input ends", check_end_of_file, true},
    {"agree", "other plans give the output of the 1-rank plan", check_agree, true},
};
enum { CHECKS = sizeof checks / sizeof checks[0] };

/* The worker runs the built-in network: told of it in hello, it starts and announces no
 * parameters of its own. */
static bool runs_network(const struct dt_target *target, int64_t start_ns)
{
    struct dt_launch launch = {.program = target->worker.program, .ranks = 1};
    struct dt_group *group = NULL;
    struct dt_failure failure;
    dt_status status =
        dt_group_start(&launch, target->workload, dt_clock_ns() + start_ns, &group, &failure);
    bool runs = status == DT_OK && json_object_get(dt_group_hello(group), "parameters") == NULL;
    dt_group_stop(group, DT_NS_PER_SECOND);
    return runs;
}

/* A worker that announces no parameters runs the built-in network. One that does not
 * start is tested nevertheless; one that refuses the job, or whose hello cannot be used,
 * has given the reason. */
static dt_status find_target(const struct dt_options *options, const char *program,
                             struct dt_target **target)
{
    struct dt_options with = *options;
    struct dt_job job;
    with.worker.program.path = program;
    DT_TRY(dt_options_job(&with, NULL, &job));
    if (job.devices == 0 && dt_host_cores() < RANKS_LEAST)
        job.devices = RANKS_LEAST;
    struct dt_error error = {DT_OK, ""};
    dt_status status = dt_error_keep(&error, dt_target_new(&job, target));
    if (status != DT_FAILED && status != DT_EUSAGE)
        return status;
    job.worker = (struct dt_program){NULL, NULL};
    job.devices = 0;
    if (access(program, X_OK) == 0 && dt_target_new(&job, target) == DT_OK) {
        snprintf((*target)->worker.program, sizeof(*target)->worker.program, "%s", program);
        if (status == DT_FAILED || runs_network(*target, options->worker.start_ns))
            return DT_OK;
        dt_target_free(*target);
        *target = NULL;
    }
    return dt_error_raise(&error);
}

static void check_one(struct test *test, const struct check *check, bool first, bool json,
                      json_t *list)
{
    bool possible = (check->alone || dt_group_alive(test->group)) && (first || test->starts);
    test->why[0] = '\0';
    test->skipped = !possible;
    bool kept = possible && check->run(test);
    test->starts = test->starts || kept;
    test->skips += test->skipped;
    test->failures += !kept && !test->skipped;
    const char *result = test->skipped ? "skipped" : kept ? "ok" : "FAILED";
    if (json) {
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:s}", "check", check->name, "promise",
                                        check->promise, "result", result, "note", test->why));
        return;
    }
    printf("%-8s %-10s %s%s%s\n", result, check->name, check->promise,
           test->why[0] != '\0' ? ": " : "", test->why);
    fflush(stdout);
}

dt_status dt_command_worker_test(const struct dt_options *options)
{
    bool named = options->words.rest_count > 0;
    const char *program = named ? options->words.rest[0] : options->worker.program.path;
    if (named == (options->worker.engine != NULL))
        return dt_fail(DT_EUSAGE, "'dittune worker-test' needs %s",
                       named ? "PROGRAM or --engine NAME, not both" : "PROGRAM or --engine NAME");
    struct test test = {.start_ns = options->worker.start_ns};
    json_auto_t *list = json_array();
    dt_status status = dt_alone(options);
    if (status == DT_OK)
        status = find_target(options, program, &test.target);
    for (int i = 0; i < CHECKS && status == DT_OK && dt_group_interrupted == 0; i++)
        check_one(&test, &checks[i], i == 0, options->print.json, list);
    if (status == DT_OK && options->print.json)
        status = dt_print_json(json_pack("{s:s, s:b, s:O}", "program", program, "conforms",
                                         test.failures == 0, "checks", list));
    dt_group_stop(test.group, DT_NS_PER_SECOND);
    dt_prepared_fini(&test.first);
    dt_prepared_fini(&test.second);
    dt_target_free(test.target);
    DT_TRY(status);
    if (dt_group_interrupted != 0)
        return dt_fail(DT_EINTR, "interrupted");
    return test.failures == 0
               ? DT_OK
               : dt_fail(DT_FAILED,
                         "%s breaks %d of %d promises of the protocol; %d could not be tested",
                         program, test.failures, (int)CHECKS, test.skips);
}
