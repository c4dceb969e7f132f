/* SPDX-License-Identifier: MIT */
/* dittune-worker-command - runs any command line as a worker (docs/protocol.md): a step is one run of the command
 *
 *     dittune-worker-command --space FILE --time regex:'took ([0-9.]+) s' --command 'torchrun --nproc-per-node {ranks} run.py'
 *
 * dittune starts it so for --command. Its options and the file are read when the controller says hello, so that what is
 * wrong with them reaches the user as an answer. */
#include "space/json/json.h"
#include "worker/command/child.h"
#include "worker/command/definition.h"

#include "base/array.h"
#include "base/clock.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plan {
    char **argv; /* owned; NULL: released */
    int ranks;
};

struct worker {
    const char *text, *space_path, *time, *unit, *timeout; /* options; NULL: not given */
    bool shell;
    struct dt_wire wire;
    json_t *file; /* the file of the space; NULL before hello */
    struct dt_space *space;
    struct dt_command_line command;
    struct dt_timing timing;
    int64_t timeout_ns;
    struct plan *plans; /* [plan_count], of handle i + 1 */
    int plan_count;
};

static dt_status read_timeout(const char *text, int64_t *ns)
{
    char *end;
    double seconds = strtod(text, &end);
    if (*text == 0 || *end != 0 || !(seconds > 0 && seconds < 1e9))
        return dt_fail(DT_EUSAGE, "--timeout '%s' is not a number of seconds above zero", text);
    *ns = (int64_t)(seconds * 1e9);
    return DT_OK;
}

static dt_status configure(struct worker *worker)
{
    if (worker->text == NULL || worker->space_path == NULL || worker->time == NULL)
        return dt_fail(DT_EUSAGE, "a command needs --command, --space and --time");
    DT_TRY(read_timeout(worker->timeout, &worker->timeout_ns));
    DT_TRY(dt_space_file(worker->space_path, worker->space_path, &worker->file));
    DT_TRY(dt_space_from_json(worker->file, worker->space_path, &worker->space));
    DT_TRY(dt_timing_init(&worker->timing, worker->time, worker->unit));
    DT_TRY(dt_line_read(worker->text, worker->shell, &worker->command));
    return dt_line_check(&worker->command, worker->space);
}

static dt_status say(struct worker *worker, json_t *message)
{
    dt_status status = message != NULL ? dt_wire_write(&worker->wire, message)
                                       : dt_fail(DT_ENOMEM, "out of memory");
    json_decref(message);
    return status;
}

static dt_status refuse(struct worker *worker, dt_status why)
{
    bool refused = why == DT_EUSAGE || why == DT_EINFEASIBLE || why == DT_EUNSUP;
    const char *kind = why == DT_ENOMEM ? "memory" : refused ? "infeasible" : "error";
    return say(worker,
               json_pack("{s:s,s:s,s:s}", "op", "failed", "kind", kind, "say", dt_message()));
}

static json_t *cores(void)
{
    json_t *list = json_array();
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (size_t i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &set))
                json_array_append_new(list, json_integer((json_int_t)i));
    return list;
}

static dt_status hello(struct worker *worker)
{
    char host[256] = "";
    const json_t *file = worker->file;
    const struct dt_definition definition = {&worker->command, worker->space, worker->time,
                                             worker->unit};
    json_t *job = NULL;
    dt_status status = dt_definition_job(&definition, &job);
    if (status < 0)
        return refuse(worker, status);
    gethostname(host, sizeof host - 1);
    DT_TRY(say(worker, json_pack("{s:s,s:i,s:s,s:s,s:s,s:s,s:s,s:O,s:o,s:O,s:O*,s:O*}", "op",
                                 "hello", "protocol", 2, "name", "command", "version", DT_VERSION,
                                 "engine", "command", "launch", "self", "unit", "run", "workload",
                                 json_object_get(job, "command"), "job", job, "parameters",
                                 json_object_get(file, "parameters"), "constants",
                                 json_object_get(file, "constants"), "rules",
                                 json_object_get(file, "rules"))));
    return say(worker,
               json_pack("{s:s,s:s,s:[{s:i,s:i,s:s,s:o,s:i,s:o}]}", "op", "ready", "comm",
                         "command", "ranks", "rank", 0, "pid", (int)getpid(), "host", host, "cores",
                         cores(), "threads", 1, "versions", dt_definition_files(&worker->command)));
}

/* One run of the command: the time of a step, and that from its start to its end. */
static dt_status step(struct worker *worker, char **argv, int64_t *ns, int64_t *wall_ns,
                      int64_t *peak_bytes)
{
    struct dt_child_output output;
    struct dt_leftovers left;
    const struct dt_child_rules rules = {worker->timeout_ns, false};
    dt_status status = dt_child_run(argv, &rules, &worker->wire, &output, &left);
    *peak_bytes = output.peak_bytes;
    if (status == DT_OK)
        status = dt_timing_take(&worker->timing, &output, ns);
    if (status == DT_OK)
        *wall_ns = output.wall_ns;
    dt_child_output_fini(&output);
    return status;
}

/* [value, ..], one for each rank: the command reports one time for all. */
static json_t *each_rank(int64_t value, int ranks)
{
    json_t *row = json_array();
    for (int i = 0; i < ranks; i++)
        json_array_append_new(row, json_integer(value));
    return row;
}

static dt_status prepare(struct worker *worker, const json_t *request, json_t **answer)
{
    json_t *values;
    struct dt_point point;
    struct plan plan = {.ranks = 1};
    int64_t ns = 0, wall_ns = 0, peak_bytes = 0;
    int ranks = dt_space_role(worker->space, DT_ROLE_RANKS);
    DT_TRY(dt_json_object(request, "the request", "plan", &values));
    DT_TRY(dt_point_from_json(worker->space, values, &point));
    DT_TRY(DT_GROW(worker->plans, worker->plan_count, 1));
    DT_TRY(dt_line_fill(&worker->command, worker->space, &point, &plan.argv));
    dt_status status = step(worker, plan.argv, &ns, &wall_ns, &peak_bytes);
    if (status < 0) {
        dt_line_free(plan.argv);
        return status;
    }
    if (ranks >= 0)
        plan.ranks = (int)dt_point_value(worker->space, &point, ranks);
    worker->plans[worker->plan_count++] = plan;
    /* The limits of later requests follow from the cold step: each of their steps is a whole start, too. */
    *answer = json_pack("{s:s,s:i,s:o,s:i,s:o}", "op", "prepared", "handle", worker->plan_count,
                        "peak_bytes", each_rank(peak_bytes, plan.ranks), "resident_bytes", 0,
                        "cold_ns", each_rank(wall_ns > ns ? wall_ns : ns, plan.ranks));
    return DT_OK;
}

static dt_status find(const struct worker *worker, const json_t *request, int64_t *handle)
{
    DT_TRY(dt_json_int(request, "the request", "handle", 1, INT32_MAX, handle));
    if (*handle > worker->plan_count || worker->plans[*handle - 1].argv == NULL)
        return dt_fail(DT_EPROTO, "no plan of handle %lld is resident", (long long)*handle);
    return DT_OK;
}

static dt_status run(struct worker *worker, const json_t *request, json_t **answer)
{
    int64_t handle, n, ns = 0, wall_ns, peak_bytes;
    DT_TRY(find(worker, request, &handle));
    DT_TRY(dt_json_int(request, "the request", "n", 1, 1 << 20, &n));
    json_t *rows = json_array();
    dt_status status = DT_OK;
    for (int64_t i = 0; i < n && status == DT_OK; i++) {
        const struct plan *plan = &worker->plans[handle - 1];
        status = step(worker, plan->argv, &ns, &wall_ns, &peak_bytes);
        json_array_append_new(rows, each_rank(ns, plan->ranks));
    }
    *answer = json_pack("{s:s,s:I,s:o}", "op", "samples", "handle", (json_int_t)handle, "ns", rows);
    return status;
}

static dt_status release(struct worker *worker, const json_t *request, json_t **answer)
{
    int64_t handle;
    DT_TRY(find(worker, request, &handle));
    dt_line_free(worker->plans[handle - 1].argv);
    worker->plans[handle - 1].argv = NULL;
    *answer = json_pack("{s:s,s:I}", "op", "released", "handle", (json_int_t)handle);
    return DT_OK;
}

static dt_status answer_to(struct worker *worker, const json_t *request, json_t **answer)
{
    static const struct {
        const char *name;
        dt_status (*execute)(struct worker *worker, const json_t *request, json_t **answer);
    } table[] = {{"prepare", prepare}, {"run", run}, {"release", release}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, dt_wire_op(request)) == 0)
            return table[i].execute(worker, request, answer);
    return dt_fail(DT_EPROTO, "unknown request '%.40s'; this worker knows prepare, run and release",
                   dt_wire_op(request));
}

/* DT_DONE: the controller sent quit. */
static dt_status serve(struct worker *worker, const json_t *request)
{
    json_t *answer = NULL;
    dt_status status;
    if (strcmp(dt_wire_op(request), "quit") == 0)
        return DT_DONE;
    if (strcmp(dt_wire_op(request), "hello") == 0) {
        status = configure(worker);
        return status == DT_OK ? hello(worker) : refuse(worker, status);
    }
    status = worker->file != NULL ? answer_to(worker, request, &answer)
                                  : dt_fail(DT_EPROTO, "hello comes first");
    if (status == DT_OK)
        return say(worker, answer);
    json_decref(answer);
    return status == DT_EDEAD ? status : refuse(worker, status);
}

static dt_status work(struct worker *worker)
{
    dt_status status = DT_OK;
    while (status == DT_OK) {
        json_t *request = NULL;
        status = dt_wire_read(&worker->wire, DT_WIRE_FOREVER, &request);
        if (status == DT_OK)
            status = serve(worker, request);
        else if (status == DT_EPROTO)
            status = refuse(worker, status);
        else if (status == DT_EINTR)
            status = DT_OK;
        json_decref(request);
    }
    return status == DT_EDEAD ? DT_DONE : status;
}

static bool read_options(int argc, char **argv, struct worker *worker)
{
    static const struct option options[] = {{"command", required_argument, NULL, 'c'},
                                            {"space", required_argument, NULL, 's'},
                                            {"time", required_argument, NULL, 't'},
                                            {"unit", required_argument, NULL, 'u'},
                                            {"timeout", required_argument, NULL, 'o'},
                                            {"shell", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'c')
            worker->text = optarg;
        else if (option == 's')
            worker->space_path = optarg;
        else if (option == 't')
            worker->time = optarg;
        else if (option == 'u')
            worker->unit = optarg;
        else if (option == 'o')
            worker->timeout = optarg;
        else if (option == 'h')
            worker->shell = true;
        else
            return false;
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    struct worker worker = {.unit = "s", .timeout = "600"};
    if (!read_options(argc, argv, &worker)) {
        fprintf(stderr, "usage: dittune-worker-command --command TEXT --space FILE --time "
                        "wall|regex:EXPRESSION|json:PATH "
                        "[--unit s|ms|us|ns] [--timeout SECONDS] [--shell]; dittune starts it and "
                        "talks to it\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    dt_leftovers_adopt();
    dt_wire_init(&worker.wire, STDIN_FILENO, STDOUT_FILENO);
    dt_status status = work(&worker);
    if (status < 0)
        fprintf(stderr, "dittune-worker-command: %s\n", dt_message());
    for (int i = 0; i < worker.plan_count; i++)
        dt_line_free(worker.plans[i].argv);
    free(worker.plans);
    dt_timing_fini(&worker.timing);
    dt_line_fini(&worker.command);
    json_decref(worker.file);
    dt_space_free(worker.space);
    dt_wire_fini(&worker.wire);
    return status < 0 ? 1 : 0;
}
