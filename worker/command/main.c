/* SPDX-License-Identifier: MIT */
/* dittune-worker-command - runs any command line as a worker (docs/protocol.md): a step is one run of the command
 *
 *     dittune-worker-command --space FILE --time regex:'took ([0-9.]+) s' --command 'torchrun --nproc-per-node {ranks} run.py'
 *
 * dittune starts it so for --command. Its options and the file are read when the controller says hello, so that what is
 * wrong with them reaches the user as an answer. */
#include "space/json/json.h"
#include "worker/command/definition.h"
#include "worker/command/quote.h"
#include "worker/command/run.h"
#include "worker/command/serve.h"

#include "base/array.h"
#include "base/clock.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plan {
    struct dt_run_plan run; /* without words: released */
    struct dt_times
        first; /* of the run that made it resident, for the next samples; count 0: used, or none */
    struct dt_error
        failed; /* of a run after others whose samples were sent: for the next request */
};

struct worker {
    const char *space_path; /* options; NULL: not given */
    struct dt_run_given options;
    const char *server; /* --server */
    struct dt_serve_options serve_options;
    struct dt_serve serve;
    struct dt_wire wire;
    json_t *file; /* the file of the space; NULL before hello */
    struct dt_space *space;
    struct dt_run_setup runs;
    struct plan *plans; /* [plan_count], of handle i + 1 */
    int plan_count;
};

static dt_status configure(struct worker *worker)
{
    struct dt_run_given *options = &worker->options;
    if (worker->server != NULL) {
        options->lines[DT_RUN_COMMAND] = worker->server;
        options->served = true;
        if (options->time == NULL && options->objective == NULL)
            options->time = "wall";
        if (worker->serve_options.request == NULL)
            return dt_fail(DT_EUSAGE, "a server needs --server, --space and --request");
    }
    if (options->lines[DT_RUN_COMMAND] == NULL || worker->space_path == NULL ||
        (options->time == NULL && options->objective == NULL))
        return dt_fail(DT_EUSAGE, "a command needs --command, --space and --time");
    DT_TRY(dt_space_file(worker->space_path, worker->space_path, &worker->file));
    DT_TRY(dt_space_from_json(worker->file, worker->space_path, &worker->space));
    DT_TRY(dt_runs_init(&worker->runs, options, worker->space));
    worker->serve = (struct dt_serve){.command = &worker->runs.lines[DT_RUN_COMMAND],
                                      .space = worker->space,
                                      .timing = &worker->runs.timing,
                                      .wire = &worker->wire};
    if (options->served && worker->runs.limit_count > 0)
        return dt_fail(DT_EUSAGE, "--limit belongs to --command");
    return options->served
               ? dt_serve_init(&worker->serve, &worker->serve_options, worker->runs.timeout_ns)
               : DT_OK;
}

static dt_status say(struct worker *worker, json_t *message)
{
    dt_status status = message != NULL ? dt_wire_write(&worker->wire, message)
                                       : dt_fail(DT_ENOMEM, "out of memory");
    json_decref(message);
    return status;
}

/* As `name`, and "brief" where it quotes the program's output. */
static void add_sentence(const char *name, const char *sentence, json_t *message)
{
    struct dt_text whole = {0}, brief = {0};
    dt_quote_split(sentence, &whole, &brief);
    json_object_set_new(message, name, json_string(dt_text_at(&whole)));
    if (brief.size > 0)
        json_object_set_new(message, "brief", json_string(dt_text_at(&brief)));
    dt_text_fini(&whole);
    dt_text_fini(&brief);
}

static dt_status refuse(struct worker *worker, dt_status why)
{
    bool refused = why == DT_EUSAGE || why == DT_EINFEASIBLE || why == DT_EUNSUP;
    const char *kind = why == DT_ENOMEM ? "memory"
                       : why == DT_DONE ? "wrong"
                       : why == DT_WAIT ? "limit"
                       : refused        ? "infeasible"
                                        : "error";
    if (dt_serve_kind(&worker->serve, why) != NULL)
        kind = dt_serve_kind(&worker->serve, why);
    json_t *message = json_pack("{s:s,s:s}", "op", "failed", "kind", kind);
    add_sentence("say", dt_message(), message);
    return say(worker, message);
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
    const struct dt_command_line *command = &worker->runs.lines[DT_RUN_COMMAND];
    const struct dt_run_setup *runs = &worker->runs;
    bool has_unit = strchr("rj", runs->timing.kind) != NULL && runs->timing.metric == NULL;
    struct dt_text limits = {0};
    dt_runs_limits_text(runs, &limits);
    const struct dt_definition definition = {
        command,
        worker->space,
        runs->time,
        has_unit ? runs->timing.unit_text : NULL,
        dt_text_at(&limits),
        worker->options.lines[DT_RUN_PREPARE] != NULL ? &runs->lines[DT_RUN_PREPARE] : NULL};
    json_t *job = NULL;
    dt_status status = dt_text_status(&limits);
    if (status == DT_OK)
        status = dt_definition_check(command);
    if (status == DT_OK)
        status = dt_definition_job(&definition, &job);
    dt_text_fini(&limits);
    if (status < 0)
        return refuse(worker, status);
    gethostname(host, sizeof host - 1);
    json_t *message = json_pack(
        "{s:s,s:i,s:s*,s:s,s:s,s:s,s:s,s:s,s:O,s:o,s:O,s:O*,s:O*}", "op", "hello", "protocol", 2,
        "objective", worker->options.objective, "name", "command", "version", DT_VERSION, "engine",
        "command", "launch", "self", "unit", "run", "workload", json_object_get(job, "command"),
        "job", job, "parameters", json_object_get(file, "parameters"), "constants",
        json_object_get(file, "constants"), "rules", json_object_get(file, "rules"));
    if (worker->options.served && (status = dt_serve_describe(&worker->serve, message, job)) < 0) {
        json_decref(message);
        return status;
    }
    DT_TRY(say(worker, message));
    return say(worker,
               json_pack("{s:s,s:s,s:[{s:i,s:i,s:s,s:o,s:i,s:o}]}", "op", "ready", "comm",
                         "command", "ranks", "rank", 0, "pid", (int)getpid(), "host", host, "cores",
                         cores(), "threads", 1, "versions", dt_definition_files(command)));
}

/* How many runs there were, and what is to be told of them. */
static void tell(json_t *answer, const struct dt_tally *tally)
{
    json_t *list = tally->count > 0 ? json_array() : NULL;
    json_object_set_new(answer, "runs", json_integer(tally->runs));
    for (int i = 0; i < tally->count; i++)
        json_array_append_new(
            list, json_pack("{s:s,s:i}", "say", tally->said[i].say, "runs", tally->said[i].runs));
    if (list != NULL)
        json_object_set_new(answer, "warnings", list);
}

/* The steps that the command printed in that run are the first samples; its whole time, with all that is cold, is none. */
static dt_status prepare(struct worker *worker, const json_t *request, json_t **answer)
{
    json_t *values;
    struct dt_point point;
    struct plan plan = {.failed.status = DT_OK};
    struct dt_tally tally = {.runs = 0};
    double error;
    DT_TRY(dt_json_object(request, "the request", "plan", &values));
    DT_TRY(dt_point_from_json(worker->space, values, &point));
    DT_TRY(DT_GROW(worker->plans, worker->plan_count, 1));
    DT_TRY(dt_runs_fill(&worker->runs, worker->space, &point, &plan.run));
    dt_status status =
        dt_runs_verified(&worker->runs, &plan.run, &worker->wire, &tally, &plan.first, &error);
    if (status != DT_OK) {
        dt_run_plan_fini(&plan.run);
        return status;
    }
    /* The limits of later requests follow from the cold step: each of their steps is a whole start, too. */
    *answer =
        json_pack("{s:s,s:i,s:o,s:i,s:o}", "op", "prepared", "handle", worker->plan_count + 1,
                  "peak_bytes", dt_each_rank(plan.first.peak_bytes, plan.run.ranks),
                  "resident_bytes", 0, "cold_ns", dt_each_rank(plan.first.wall_ns, plan.run.ranks));
    if (plan.first.read[0] != 0)
        add_sentence("read", plan.first.read, *answer);
    tell(*answer, &tally);
    if (isfinite(error))
        json_object_set_new(*answer, "error", json_real(error));
    if (worker->runs.timing.kind == 'w')
        dt_times_fini(&plan.first);
    worker->plans[worker->plan_count++] = plan;
    return DT_OK;
}

static dt_status find(const struct worker *worker, const json_t *request, int64_t *handle)
{
    DT_TRY(dt_json_int(request, "the request", "handle", 1, INT32_MAX, handle));
    if (*handle > worker->plan_count || worker->plans[*handle - 1].run.argv[DT_RUN_COMMAND] == NULL)
        return dt_fail(DT_EPROTO, "no plan of handle %lld is resident", (long long)*handle);
    return DT_OK;
}

/* The steps of one run. */
static dt_status add_run(struct worker *worker, struct plan *plan, json_t *rows, json_t *starts,
                         struct dt_tally *tally)
{
    struct dt_times times = plan->first;
    plan->first = (struct dt_times){.count = 0};
    if (times.count == 0)
        DT_TRY(dt_runs_make(&worker->runs, &plan->run, &worker->wire, tally, &times));
    for (int i = 0; i < times.count; i++)
        json_array_append_new(rows, dt_each_rank(times.ns[i], plan->run.ranks));
    json_array_append_new(starts, json_integer(times.count));
    dt_times_fini(&times);
    return DT_OK;
}

/* n runs. One that fails behind others ends the answer: what they measured is kept, and its failure answers the next request. */
static dt_status run(struct worker *worker, const json_t *request, json_t **answer)
{
    int64_t handle, n;
    struct dt_tally tally = {.runs = 0};
    DT_TRY(find(worker, request, &handle));
    DT_TRY(dt_json_int(request, "the request", "n", 1, 1 << 20, &n));
    struct plan *plan = &worker->plans[handle - 1];
    dt_status status = dt_error_raise(&plan->failed);
    plan->failed.status = DT_OK;
    DT_TRY(status);
    json_t *rows = json_array(), *starts = json_array();
    for (int64_t i = 0; i < n && status == DT_OK; i++)
        status = add_run(worker, plan, rows, starts, &tally);
    if (status < 0 && status != DT_EDEAD && json_array_size(starts) > 0) {
        dt_error_keep(&plan->failed, status);
        dt_tally_add(&tally, "failed");
        status = DT_OK;
    }
    *answer = json_pack("{s:s,s:I,s:o,s:o}", "op", "samples", "handle", (json_int_t)handle, "ns",
                        rows, "starts", starts);
    tell(*answer, &tally);
    return status == DT_OK ? dt_runs_limits(&worker->runs, &plan->run) : status;
}

static void free_plan(struct plan *plan)
{
    dt_run_plan_fini(&plan->run);
    dt_times_fini(&plan->first);
}

static dt_status release(struct worker *worker, const json_t *request, json_t **answer)
{
    int64_t handle;
    DT_TRY(find(worker, request, &handle));
    free_plan(&worker->plans[handle - 1]);
    *answer = json_pack("{s:s,s:I}", "op", "released", "handle", (json_int_t)handle);
    return DT_OK;
}

static dt_status answer_to(struct worker *worker, const json_t *request, json_t **answer)
{
    static const struct {
        const char *name;
        dt_status (*execute)(struct worker *worker, const json_t *request, json_t **answer);
    } table[] = {{"prepare", prepare}, {"run", run}, {"release", release}};
    if (worker->options.served)
        return dt_serve_answer(&worker->serve, request, answer);
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
        if (status == DT_OK)
            return hello(worker);
        return refuse(worker, status == DT_EIO ? DT_EUSAGE : status); /* a file that was named */
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
        bool up = dt_serve_up(&worker->serve);
        status = dt_wire_read(&worker->wire,
                              up ? dt_clock_ns() + DT_NS_PER_SECOND : DT_WIRE_FOREVER, &request);
        dt_serve_tend(&worker->serve);
        if (status == DT_OK)
            status = serve(worker, request);
        else if (status == DT_EPROTO)
            status = refuse(worker, status);
        else if (status == DT_EINTR || status == DT_ETIMEOUT)
            status = DT_OK;
        json_decref(request);
    }
    return status == DT_EDEAD ? DT_DONE : status;
}

/* One more of an option that may be given several times; false: too many. */
static bool add_option(const char *list[], const char *value)
{
    int count = 0;
    while (list[count] != NULL)
        count++;
    list[count] = count < DT_METRICS_MOST ? value : NULL;
    return count < DT_METRICS_MOST;
}

static bool read_options(int argc, char **argv, struct worker *worker)
{
    struct dt_run_given *options = &worker->options;
    const struct {
        const char *name;
        const char **value; /* NULL: --shell */
    } rows[] = {{"command", &options->lines[DT_RUN_COMMAND]},
                {"server", &worker->server},
                {"ready", &worker->serve_options.ready},
                {"request", &worker->serve_options.request},
                {"requests", &worker->serve_options.requests},
                {"start-timeout", &worker->serve_options.start_timeout},
                {"prepare", &options->lines[DT_RUN_PREPARE]},
                {"cleanup", &options->lines[DT_RUN_CLEANUP]},
                {"space", &worker->space_path},
                {"time", &options->time},
                {"unit", &options->unit},
                {"timeout", &options->timeout},
                {"retries", &options->retries},
                {"accept-codes", &options->accept},
                {"leftovers", &options->leftovers},
                {"verify-output", &options->output},
                {"compare", &options->compare},
                {"tolerance", &options->tolerance},
                {"objective", &options->objective},
                {"metric", options->metrics},
                {"limit", options->limits},
                {"shell", NULL}};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    struct option list[ROWS + 1] = {{NULL, 0, NULL, 0}};
    for (int i = 0; i < ROWS; i++)
        list[i] = (struct option){rows[i].name, rows[i].value != NULL, NULL, i};
    for (int option; (option = getopt_long(argc, argv, "", list, NULL)) != -1;) {
        if (option < 0 || option >= ROWS)
            return false;
        const char **value = rows[option].value;
        bool several = value == options->metrics || value == options->limits;
        if (several && !add_option(value, optarg))
            return false;
        if (value != NULL && !several)
            *value = optarg;
        else if (value == NULL)
            options->shell = true;
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    struct worker worker = {.serve.server.log = -1};
    if (!read_options(argc, argv, &worker)) {
        fprintf(stderr,
                "usage: dittune-worker-command --command TEXT --space FILE --time HOW [OPTIONS]: "
                "the options that dittune has beside --command (docs/command.md) or --server "
                "(docs/server.md); dittune starts it and talks to it. Options of dittune "
                "itself, such as --format, stand before the --\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    dt_leftovers_adopt();
    dt_wire_init(&worker.wire, STDIN_FILENO, STDOUT_FILENO);
    dt_status status = work(&worker);
    if (status < 0)
        fprintf(stderr, "dittune-worker-command: %s\n", dt_message());
    dt_serve_fini(&worker.serve);
    for (int i = 0; i < worker.plan_count; i++)
        free_plan(&worker.plans[i]);
    free(worker.plans);
    dt_runs_fini(&worker.runs);
    json_decref(worker.file);
    dt_space_free(worker.space);
    dt_wire_fini(&worker.wire);
    return status < 0 ? 1 : 0;
}
