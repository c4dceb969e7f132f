/* SPDX-License-Identifier: MIT */
/* Answers of a foreign worker to the controller's dialogue: hello, prepare, run, release and more.
 * The process is simulated here, so nothing is started or killed. */
#include "base/clock.h"
#include "tests/fuzz/mutant.h"
#include "tuner/runner/launch.h"
#include "tuner/runner/runner.h"
#include "worker/wire.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const words[] = {"\"op\"",
                                    "\"prepared\"",
                                    "\"samples\"",
                                    "\"released\"",
                                    "\"peak\"",
                                    "\"exchanged\"",
                                    "\"heartbeat\"",
                                    "\"failed\"",
                                    "\"kind\"",
                                    "\"memory\"",
                                    "\"infeasible\"",
                                    "\"say\"",
                                    "\"handle\"",
                                    "\"ns\"",
                                    "\"clock\"",
                                    "\"phases\"",
                                    "\"verify\"",
                                    "\"norm\"",
                                    "\"projections\"",
                                    "\"peak_bytes\"",
                                    "\"resident_bytes\"",
                                    "\"cold_ns\"",
                                    "[1,2]",
                                    "[[1,2],[3,4]]",
                                    "[null,0.5]",
                                    "{\"op\":\"heartbeat\"}",
                                    NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

static struct dt_supervised played;

dt_status dt_start_make(const struct dt_launch *launch, struct dt_start *start)
{
    (void)launch;
    *start = (struct dt_start){.argv = NULL};
    return DT_OK;
}

void dt_start_fini(struct dt_start *start)
{
    (void)start;
}

void dt_start_drop(struct dt_start *start)
{
    (void)start;
}

dt_status dt_supervisor_start(const struct dt_supervisor_program *program,
                              const char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM],
                              struct dt_supervised *out)
{
    (void)program, (void)folders;
    *out = played;
    return DT_OK;
}

void dt_supervisor_note(struct dt_supervised *supervised)
{
    (void)supervised;
}

bool dt_supervisor_ended(struct dt_supervised *supervised, struct dt_ended *ended)
{
    (void)supervised;
    *ended = (struct dt_ended){0, 0};
    return true;
}

void dt_supervisor_stop(struct dt_supervised *supervised, int64_t grace_ns)
{
    (void)supervised, (void)grace_ns;
}

static void check_failure(dt_status status, const struct dt_failure *failure)
{
    if (status != DT_FAILED || failure->outcome == DT_TRIAL_OK || failure->cause[0] == '\0' ||
        memchr(failure->cause, '\0', sizeof failure->cause) == NULL)
        abort();
    for (const char *c = failure->cause; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            abort();
}

static void prepare(struct dt_group *group, int64_t deadline_ns)
{
    static const struct dt_verify verify = {.projections = 2, .seed = 7};
    struct dt_prepared prepared = {.handle = -1};
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    json_t *plan = json_pack("{s:i}", "ranks", 1);
    dt_status status = dt_group_prepare(group, plan, &verify, deadline_ns, &prepared, &failure);
    double sum = 0;
    json_decref(plan);
    if (status != DT_OK) {
        check_failure(status, &failure);
        return;
    }
    if (prepared.ranks < 1 || prepared.peak_bytes < 0 || prepared.cold_ns < 0)
        abort();
    for (int i = 0; i < prepared.output.ranks * prepared.output.rows; i++)
        sum += prepared.output.norm[i];
    for (int i = 0; i < prepared.output.ranks * prepared.output.rows * prepared.output.projections;
         i++)
        sum += prepared.output.projection[i];
    if (isinf(sum) && prepared.output.ranks == 0)
        abort();
    dt_prepared_fini(&prepared);
}

static void run(struct dt_group *group, int64_t deadline_ns)
{
    struct dt_steps steps = {.handle = 1, .count = 2, .mode = DT_MODE_MEASURE};
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    struct dt_run got = {.ns = NULL};
    dt_status status = dt_group_run(group, &steps, deadline_ns, &got, &failure);
    if (status != DT_OK) {
        check_failure(status, &failure);
        return;
    }
    if (got.steps != 2 || got.ranks < 1)
        abort();
    for (int i = 0; i < got.steps * got.ranks; i++)
        if (got.ns[i] < 1 || (got.clock != NULL && got.clock[i] <= 0))
            abort();
    dt_run_fini(&got);
}

static void ask(struct dt_group *group, const char *op, const char *answer_op, int64_t deadline_ns)
{
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    json_t *answer = NULL, *request = json_pack("{s:s}", "op", op);
    dt_status status = dt_group_call(group, request, answer_op, deadline_ns, &answer, &failure);
    if (status != DT_OK)
        check_failure(status, &failure);
    json_decref(request);
    json_decref(answer);
}

static void talk(int64_t deadline_ns)
{
    static const struct dt_launch launch = {.program = "played", .ranks = 1};
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    struct dt_group *group = NULL;
    dt_status status = dt_group_start(&launch, NULL, deadline_ns, &group, &failure);
    if (status != DT_OK) {
        check_failure(status, &failure);
        return;
    }
    if (dt_group_ranks(group) < 1)
        abort();
    for (int i = 0; i < 4 && dt_group_alive(group); i++) {
        prepare(group, deadline_ns);
        run(group, deadline_ns);
        ask(group, "peak", "peak", deadline_ns);
        ask(group, "release", "released", deadline_ns);
    }
    dt_group_stop(group, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (size > 60000 || null < 0 || pipe(ends) != 0 || write(ends[1], data, size) != (ssize_t)size)
        abort();
    close(ends[1]);
    played = (struct dt_supervised){
        .pid = -1, .control = null, .status = null, .to = null, .from = ends[0], .messages = null};
    talk(dt_clock_ns() + DT_NS_PER_SECOND);
    close(ends[0]);
    close(null);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    struct mutant m = mutant_of(data, size, room < 60000 ? room : 60000, seed, words);
    size_t how = mutant_pick(&m, 16), line = mutant_line(&m);
    if (how == 0)
        mutant_bytes(&m);
    else if (how <= 2)
        mutant_lines(&m);
    else
        mutant_json(&m, line, mutant_line_end(&m, line));
    return m.size;
}
