/* SPDX-License-Identifier: MIT */
/* docs/protocol.md: a function for each request. All of them make a reply; reply_say lets the
 * faults strike, moves the clock, and notes and says what is left of it. */
#include "tests/scenario/scenario.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STEPS_MOST (1 << 20)

void write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t put = write(fd, bytes, size);
        if (put < 0 && errno != EINTR)
            exit(1);
        bytes += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
}

void reply_fail(struct reply *reply, const char *kind, const char *why)
{
    json_decref(reply->message);
    json_decref(reply->note);
    reply->message = json_pack("{s:s, s:s, s:s}", "op", "failed", "kind", kind, "say", why);
    reply->note = NULL;
    reply->ns = 0;
}

/* False when a failure is what was said. */
static bool reply_say(struct worker *worker, struct reply *reply)
{
    faults_strike(worker, reply);
    devices_spoil(&worker->scenario, reply->message);
    log_note(worker, reply->note);
    char *text = json_dumps(reply->message, JSON_COMPACT);
    if (text == NULL)
        die("cannot print the answer to", reply->at);
    size_t size = strlen(text);
    text[size] = '\n'; /* in the place of its end */
    clock_answer(worker->out, reply->ns + worker->scenario.cost_ns, text, size + 1);
    free(text);
    const char *op = json_string_value(json_object_get(reply->message, "op"));
    bool failed = op != NULL && strcmp(op, "failed") == 0;
    json_decref(reply->message);
    return !failed;
}

static void fail(struct worker *worker, const char *at, const char *kind, const char *why)
{
    struct reply reply = {.at = at};
    reply_fail(&reply, kind, why);
    reply_say(worker, &reply);
}

/* ---- hello */

static json_t *ready(const struct worker *worker)
{
    json_t *ranks = json_array(), *versions = json_object_get(worker->scenario.root, "versions");
    const json_t *card =
        json_object_get(worker->scenario.root, "card"); /* of a GPU for each rank */
    json_t *devices = card != NULL ? json_array() : NULL;
    for (int r = 0; r < worker->ranks && card != NULL; r++)
        json_array_append_new(devices, json_pack("{s:O, s:s, s:I}", "name", card, "compute", "9.0",
                                                 "memory_bytes", (json_int_t)80 << 30));
    for (int r = 0; r < worker->ranks; r++)
        json_array_append_new(ranks, json_pack("{s:i, s:i, s:s, s:s, s:[i], s:i, s:O*}", "rank", r,
                                               "pid", (int)getpid(), "host", "here", "device",
                                               card != NULL ? "gpu" : "cpu", "cores", r, "threads",
                                               1, "versions", r == 0 ? versions : NULL));
    return json_pack("{s:s, s:o, s:o*, s:s, s:O*}", "op", "ready", "ranks", ranks, "devices",
                     devices, "comm", "self", "text_and_vae_ns",
                     json_object_get(worker->scenario.root, "text_and_vae_ns"));
}

/* mpirun's, those of the scenario, or those that are asked for. */
static int group_size(const struct scenario *scenario, const json_t *request)
{
    const char *started = getenv("OMPI_COMM_WORLD_SIZE");
    if (started != NULL)
        return atoi(started);
    return (int)(scenario->ranks > 0 ? scenario->ranks : number_of(request, "ranks", 1));
}

static void hello(struct worker *worker, const json_t *request)
{
    static const char *const copied[] = {"engine",   "mode",  "constants",   "rules",      "obeys",
                                         "job",      "dtype", "tolerance",   "reference",  "switch",
                                         "protocol", "unit",  "least_fault", "documented", "steps"};
    const struct scenario *scenario = &worker->scenario;
    const json_t *root = scenario->root;
    struct reply said = {.at = "hello", .ns = scenario->start_ns, .note = json_deep_copy(request)};
    said.message = json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:o*}", "op", "hello", "protocol", 1, "name",
        text_of(root, "name", "planted"), "version", text_of(root, "version", "1"), "launch",
        text_of(root, "launch", scenario->model->launch), "workload",
        text_of(root, "workload", "planted times"), "parameters", scenario_parameters(scenario));
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
        if (json_object_get(root, copied[i]) != NULL)
            json_object_set(said.message, copied[i], json_object_get(root, copied[i]));
    worker->ranks = group_size(scenario, request);
    reply_say(worker, &said);
    reply_say(worker, &(struct reply){.at = "ready", .message = ready(worker)});
}

/* ---- prepare */

static bool holds(const json_t *values, const json_t *value)
{
    const json_t *one;
    size_t i;
    json_array_foreach(values, i, one)
    {
        if (json_equal(one, value))
            return true;
    }
    return false;
}

/* Every parameter that was announced with a list of values has one of them. */
static bool is_legal(const struct scenario *scenario, const json_t *plan)
{
    json_t *parameters = scenario_parameters(scenario), *parameter;
    bool legal = true;
    size_t i;
    json_array_foreach(parameters, i, parameter)
    {
        const json_t *values = json_object_get(parameter, "values");
        const char *name = text_of(parameter, "name", "");
        legal = legal && (!json_is_array(values) || holds(values, json_object_get(plan, name)));
    }
    json_decref(parameters);
    return legal;
}

/* All images of all plans have the same output. */
static json_t *verification(const struct scenario *scenario, const json_t *request)
{
    const json_t *asked = json_object_get(request, "verify");
    json_t *norms = json_array(), *rows = json_array();
    int images = (int)number_of(json_object_get(request, "plan"), "batch", 1);
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(asked, "seed"));
    json_int_t count = json_integer_value(json_object_get(asked, "projections"));
    for (int i = 0; i < images; i++) {
        json_array_append_new(norms, json_integer(1));
        json_array_append_new(rows, stream_projections(seed, count));
    }
    json_t *verify = json_pack("{s:o, s:o}", "norm", norms, "projections", rows);
    if (json_is_object(asked) && !json_is_false(json_object_get(scenario->root, "verify")))
        return verify;
    json_decref(verify);
    return NULL;
}

static json_int_t peak_bytes(const struct scenario *scenario, const json_t *plan)
{
    char name[32];
    const json_t *planted = plan_field(scenario, plan, "bytes");
    snprintf(name, sizeof name, "%.0f", number_of(plan, "plan", 0));
    const json_t *bytes = json_object_get(scenario->root, "bytes");
    return planted != NULL ? json_integer_value(planted)
                           : (json_int_t)number_of(bytes, name, 1 << 20);
}

static json_t *repeated(json_int_t value, int times)
{
    json_t *row = json_array();
    for (int i = 0; i < times; i++)
        json_array_append_new(row, json_integer(value));
    return row;
}

static int residents(const struct worker *worker)
{
    int n = 0;
    for (int i = 0; i < worker->count; i++)
        n += worker->handles[i].plan != NULL;
    return n;
}

static bool is_resident(const struct worker *worker, const json_t *plan)
{
    for (int i = 0; i < worker->count; i++)
        if (worker->handles[i].plan != NULL && json_equal(worker->handles[i].plan, plan))
            return true;
    return false;
}

/* A new handle of the plan, numbered from 1. */
static struct handle *new_handle(struct worker *worker, json_t *plan, double ns)
{
    const struct scenario *scenario = &worker->scenario;
    struct handle handle = {.plan = json_incref(plan), .copy = is_resident(worker, plan)};
    const json_t *swing = plan_field(scenario, plan, "swing");
    handle.ns =
        ns * (handle.copy ? 1 + scenario->copy : 1) * stream_residency(scenario, &worker->stream);
    handle.swing = swing != NULL ? json_number_value(swing) : scenario->swing;
    handle.ranks = (int)number_of(plan, "ranks", worker->ranks);
    size_t size = ((size_t)worker->count + 1) * sizeof *worker->handles;
    struct handle *handles = realloc(worker->handles, size);
    if (handles == NULL)
        exit(1);
    worker->handles = handles;
    handles[worker->count] = handle;
    return &handles[worker->count++];
}

static void drop(struct handle *handle)
{
    json_decref(handle->plan);
    handle->plan = NULL;
}

static void prepare(struct worker *worker, const json_t *request)
{
    const struct scenario *scenario = &worker->scenario;
    json_t *plan = json_object_get(request, "plan");
    double ns = is_legal(scenario, plan) ? scenario_ns(scenario, plan) : -1;
    if (!(ns > 0)) {
        fail(worker, "prepare", "infeasible", "there is no such plan");
        return;
    }
    if (residents(worker) >= (int)scenario->room) {
        fail(worker, "prepare", "memory", "there is no room beside the others");
        return;
    }
    struct handle *handle = new_handle(worker, plan, ns);
    const json_t *factor = plan_field(scenario, plan, "cold");
    double cold = ns * (factor != NULL ? json_number_value(factor) : scenario->cold);
    struct reply reply = {.at = "prepare", .plan = plan, .copy = handle->copy, .ns = cold + ns};
    reply.ns += worker->count == 1 ? scenario->load_ns : 0;
    reply.note =
        json_pack("{s:s, s:i, s:O}", "op", "prepare", "handle", worker->count, "plan", plan);
    reply.message = json_pack(
        "{s:s, s:i, s:o, s:i, s:o, s:o*}", "op", "prepared", "handle", worker->count, "peak_bytes",
        repeated(peak_bytes(scenario, plan), handle->ranks), "resident_bytes", 1 << 20, "cold_ns",
        repeated(llround(fmax(cold, 1)), handle->ranks), "verify", verification(scenario, request));
    devices_prepared(scenario, reply.message);
    if (!reply_say(worker, &reply))
        drop(handle);
}

/* ---- run */

static struct handle *find_handle(const struct worker *worker, const json_t *request)
{
    json_int_t at = json_integer_value(json_object_get(request, "handle"));
    bool resident = at >= 1 && at <= worker->count && worker->handles[at - 1].plan != NULL;
    return resident ? &worker->handles[at - 1] : NULL;
}

/* Steps of equal blocks, and of the plan's planted share of waiting for exchanges. */
static json_t *phases(const struct worker *worker, const json_t *plan, const json_t *rows)
{
    json_int_t n = (json_int_t)json_array_size(rows), sum = 0;
    json_int_t blocks = (json_int_t)worker->scenario.blocks;
    const json_t *row, *share = plan_field(&worker->scenario, plan, "exchange_share");
    size_t i;
    if (blocks < 1)
        return NULL;
    json_array_foreach(rows, i, row)
    {
        sum += json_integer_value(json_array_get(row, 0));
    }
    json_int_t waited = (json_int_t)((double)sum * json_number_value(share));
    return json_pack("{s:I, s:[{s:s, s:I}, {s:s, s:I}], s:[{s:s, s:I, s:I}], s:I}", "steps", n,
                     "kinds", "name", "rest", "ns", sum - waited, "name", "exchange", "ns", waited,
                     "blocks", "name", "block", "count", n * blocks, "median_ns",
                     sum / (n * blocks), "step_ns", sum);
}

static void wait_really(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)(1e9 * (seconds - floor(seconds)))};
    while (seconds > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static void run(struct worker *worker, const json_t *request)
{
    const struct scenario *scenario = &worker->scenario;
    struct handle *handle = find_handle(worker, request);
    json_int_t n = json_integer_value(json_object_get(request, "n"));
    if (handle == NULL || n < 1 || n > STEPS_MOST) {
        fail(worker, "run", "error", "no such plan is resident, or n is absurd");
        return;
    }
    struct reply reply = {.at = "run", .plan = handle->plan, .copy = handle->copy};
    reply.mode = text_of(request, "mode", "measure");
    json_t *rows = json_array(), *clocks = scenario->slow_clock > 0 ? json_array() : NULL;
    for (json_int_t i = 0; i < n; i++)
        json_array_append_new(rows,
                              stream_step(scenario, &worker->stream, handle, clocks, &reply.ns));
    reply.message = json_pack("{s:s, s:O, s:o, s:o*, s:o*}", "op", "samples", "handle",
                              json_object_get(request, "handle"), "ns", rows, "clock", clocks,
                              "phases", phases(worker, handle->plan, rows));
    devices_samples(worker, request, reply.message);
    reply.note = json_pack("{s:s, s:O, s:O, s:s, s:O, s:O*}", "op", "run", "handle",
                           json_object_get(request, "handle"), "plan", handle->plan, "mode",
                           reply.mode, "ns", json_object_get(reply.message, "ns"), "clock",
                           json_object_get(reply.message, "clock"));
    handle->visits += strcmp(reply.mode, "measure") == 0;
    worker->measured += strcmp(reply.mode, "measure") == 0;
    wait_really(scenario->sleep);
    reply_say(worker, &reply);
}

static void release(struct worker *worker, const json_t *request)
{
    struct handle *handle = find_handle(worker, request);
    if (handle == NULL) {
        fail(worker, "release", "error", "no such plan is resident");
        return;
    }
    struct reply reply = {.at = "release", .plan = handle->plan, .note = json_deep_copy(request)};
    reply.message =
        json_pack("{s:s, s:O}", "op", "released", "handle", json_object_get(request, "handle"));
    reply_say(worker, &reply);
    drop(handle);
}

/* ---- what a machine can do */

/* alpha + bytes / beta; the third size is disturbed and takes five times as long. */
static void exchange(struct worker *worker, const json_t *request)
{
    const json_t *law = json_object_get(worker->scenario.root, "exchange"), *bytes;
    int n = (int)number_of(request, "n", 1);
    size_t i;
    if (law == NULL) {
        fail(worker, "exchange", "error", "no exchanges here");
        return;
    }
    struct reply reply = {.at = "exchange", .note = json_deep_copy(request)};
    json_t *rows = json_array();
    json_array_foreach(json_object_get(request, "bytes"), i, bytes)
    {
        double ns = 1e9 * (number_of(law, "alpha", 0) +
                           json_number_value(bytes) / number_of(law, "beta", INFINITY));
        ns *= i == 2 ? 5 : 1;
        reply.ns += n * ns;
        json_array_append_new(rows, repeated(llround(ns), n));
    }
    reply.message = json_pack("{s:s, s:o}", "op", "exchanged", "ns", rows);
    reply_say(worker, &reply);
}

static void peak(struct worker *worker, const json_t *request)
{
    json_t *root = worker->scenario.root, *planted = json_object_get(root, "peak");
    struct reply reply = {.at = "peak", .note = json_deep_copy(request)};
    if (planted == NULL && json_object_get(root, "device") == NULL) {
        fail(worker, "peak", "error", "not known here");
        json_decref(reply.note);
        return;
    }
    reply.message =
        json_pack("{s:s, s:f, s:f}", "op", "peak", "flop_rate", 4e9, "copy_bytes_per_second", 2e9);
    if (planted != NULL)
        json_object_update(reply.message, planted);
    reply_say(worker, &reply);
}

static void quit(struct worker *worker, const json_t *request)
{
    (void)request;
    struct reply reply = {.at = "quit", .message = json_object()};
    faults_strike(worker, &reply);
    json_decref(reply.message);
}

/* ---- all of them */

static const struct {
    const char *op;
    void (*answer)(struct worker *, const json_t *request);
} requests[] = {
    {"hello", hello},       {"prepare", prepare}, {"run", run},   {"release", release},
    {"exchange", exchange}, {"peak", peak},       {"quit", quit},
};

static void answer(struct worker *worker, const json_t *request, const char *op)
{
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        if (strcmp(requests[i].op, op) == 0) {
            requests[i].answer(worker, request);
            return;
        }
    fail(worker, op, "error", "not known here");
}

void serve(struct worker *worker)
{
    char *line = NULL;
    size_t room = 0;
    for (bool more = true; more && getline(&line, &room, stdin) > 0;) {
        json_t *request = json_loads(line, 0, NULL);
        const char *op = text_of(request, "op", "quit");
        answer(worker, request, op);
        more = strcmp(op, "quit") != 0;
        json_decref(request);
    }
    free(line);
}
