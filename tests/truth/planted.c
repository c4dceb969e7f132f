/* SPDX-License-Identifier: MIT */
/* planted - a worker that computes nothing: it draws its times from a scenario, so that the truth is known
 *
 * It speaks docs/protocol.md and shares no code with dittune. PLANTED=FILE names the scenario, one JSON object: "ns" holds the
 * true time of each plan, all else are the numbers of the table below. Everything told is also appended to FILE.log, one
 * JSON line each, for the oracle. The n-th process of one scenario draws from stream n of the seed: a session repeats.
 *
 * A step of plan p on rank r takes
 *   ns[p] * process * exp(drift + noise) * (1 + spike) * (1 + mode) * (1 + warm) * (1 + step) * (1 + late_r)
 * with process, drift, noise, spike, mode common to all ranks, and process, drift, noise to all plans of the process:
 *   process  exp(process_sd z), drawn at the start of the process
 *   drift    Ornstein-Uhlenbeck of deviation drift_sd and correlation time drift_tau steps
 *   noise    log-normal of coefficient of variation cv, autoregressive with ar1
 *   spike    with probability spike_share exponential of mean spike_mean
 *   mode     mode_size with probability mode_share
 *   warm     of a handle's k-th step (after warm_skip): warm_size for warm_steps steps, or decaying over warm_tau
 *   step     step_size from a handle's step_at-th step on
 *   late_r   lateness z_r, and late_size more on rank late_rank
 * With slow_clock the clocks of the ranks are told, too: 1, but slow_clock on rank slow_rank, whose steps take as much longer,
 * from the process's slow_at-th step of run requests on, slow_steps steps long.
 */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PLANS_MOST 4096

struct scenario {
    double seed, ranks, cold, process_sd, drift_sd, drift_tau, cv, ar1, spike_share, spike_mean;
    double mode_share, mode_size, warm_size, warm_steps, warm_tau, warm_skip, step_at, step_size;
    double lateness, late_rank, late_size, slow_clock, slow_rank, slow_at, slow_steps;
    double ns[PLANS_MOST];
    int plans;
};

#define ROW(name, usual)                                                                           \
    {                                                                                              \
#name, offsetof(struct scenario, name), usual                                              \
    }
static const struct {
    const char *name;
    size_t at;
    double usual;
} numbers[] = {
    ROW(seed, 1),        ROW(ranks, 1),      ROW(cold, 3),       ROW(process_sd, 0),
    ROW(drift_sd, 0),    ROW(drift_tau, 60), ROW(cv, 0),         ROW(ar1, 0),
    ROW(spike_share, 0), ROW(spike_mean, 0), ROW(mode_share, 0), ROW(mode_size, 0),
    ROW(warm_size, 0),   ROW(warm_steps, 0), ROW(warm_tau, 0),   ROW(warm_skip, 0),
    ROW(step_at, 0),     ROW(step_size, 0),  ROW(lateness, 0),   ROW(late_rank, 0),
    ROW(late_size, 0),   ROW(slow_clock, 0), ROW(slow_rank, 0),  ROW(slow_at, 0),
    ROW(slow_steps, 0),
};

struct stream {
    uint64_t state;
    double process, drift, noise;
};

struct handle {
    int plan, steps;
};

struct worker {
    struct scenario scenario;
    struct stream stream;
    struct handle *handles;
    int count; /* of handles */
    int steps; /* of run requests */
    int log;
    FILE *out;
};

static void die(const char *what, const char *name)
{
    fprintf(stderr, "planted: %s %s\n", what, name);
    exit(64);
}

/* ---- the scenario */

static void set_number(struct scenario *scenario, const char *name, const json_t *value)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(numbers[i].name, name) == 0 && json_is_number(value)) {
            double number = json_number_value(value);
            memcpy((char *)scenario + numbers[i].at, &number, sizeof number);
            return;
        }
    die("the scenario has a bad", name);
}

static void read_scenario(const char *path, struct scenario *scenario)
{
    json_t *root = json_load_file(path, 0, NULL), *value;
    const char *name;
    if (!json_is_object(root))
        die("cannot read the scenario", path);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        memcpy((char *)scenario + numbers[i].at, &numbers[i].usual, sizeof(double));
    json_object_foreach(root, name, value)
    {
        if (strcmp(name, "ns") != 0)
            set_number(scenario, name, value);
    }
    json_t *ns = json_object_get(root, "ns");
    scenario->plans = (int)json_array_size(ns);
    if (scenario->plans < 1 || scenario->plans > PLANS_MOST)
        die("the scenario has a bad", "ns");
    for (int i = 0; i < scenario->plans; i++)
        scenario->ns[i] = json_number_value(json_array_get(ns, (size_t)i));
    json_decref(root);
}

/* ---- what chance does */

/* Steele, Lea, Flood 2014: splitmix64 */
static uint64_t next(struct stream *stream)
{
    uint64_t z = stream->state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* in (0, 1) */
static double uniform(struct stream *stream)
{
    return ((double)(next(stream) >> 12) + 0.5) * 0x1p-52;
}

/* Box, Muller 1958 */
static double normal(struct stream *stream)
{
    double radius = sqrt(-2 * log(uniform(stream)));
    return radius * cos(2 * 3.14159265358979323846 * uniform(stream));
}

static void start_stream(const struct scenario *scenario, int process, struct stream *stream)
{
    struct stream seed = {.state = (uint64_t)scenario->seed << 20 | (uint64_t)process};
    stream->state = next(&seed);
    stream->process = exp(scenario->process_sd * normal(stream));
    stream->drift = scenario->drift_sd * normal(stream);
    stream->noise = normal(stream);
}

static double warm(const struct scenario *scenario, int step)
{
    double k = step - scenario->warm_skip;
    if (k < 0)
        return 0;
    if (scenario->warm_tau > 0)
        return scenario->warm_size * exp(-k / scenario->warm_tau);
    return k < scenario->warm_steps ? scenario->warm_size : 0;
}

/* What multiplies the true time of every rank. */
static double common(const struct scenario *scenario, struct stream *stream, int step)
{
    double keep = exp(-1 / scenario->drift_tau), sd = sqrt(log1p(scenario->cv * scenario->cv));
    stream->drift =
        keep * stream->drift + scenario->drift_sd * sqrt(1 - keep * keep) * normal(stream);
    stream->noise =
        scenario->ar1 * stream->noise + sqrt(1 - scenario->ar1 * scenario->ar1) * normal(stream);
    double factor = stream->process * exp(stream->drift + sd * stream->noise);
    if (uniform(stream) < scenario->spike_share)
        factor *= 1 - scenario->spike_mean * log(uniform(stream));
    if (uniform(stream) < scenario->mode_share)
        factor *= 1 + scenario->mode_size;
    if (scenario->step_size != 0 && step >= scenario->step_at)
        factor *= 1 + scenario->step_size;
    return factor * (1 + warm(scenario, step));
}

/* The clock of a rank in the step that comes. */
static double clock_of(const struct worker *worker, int rank)
{
    const struct scenario *scenario = &worker->scenario;
    double k = worker->steps - scenario->slow_at;
    bool slow = scenario->slow_clock > 0 && rank == (int)scenario->slow_rank && k >= 0 &&
                k < scenario->slow_steps;
    return slow ? scenario->slow_clock : 1;
}

static json_t *clocks(const struct worker *worker)
{
    json_t *row = json_array();
    for (int r = 0; r < (int)worker->scenario.ranks; r++)
        json_array_append_new(row, json_real(clock_of(worker, r)));
    return row;
}

static json_t *one_step(struct worker *worker, int plan, int step)
{
    const struct scenario *scenario = &worker->scenario;
    double all = scenario->ns[plan] * common(scenario, &worker->stream, step);
    json_t *row = json_array();
    for (int r = 0; r < (int)scenario->ranks; r++) {
        double late = scenario->lateness * normal(&worker->stream);
        late += r == (int)scenario->late_rank ? scenario->late_size : 0;
        long long ns = llround(all * (1 + late) / clock_of(worker, r));
        json_array_append_new(row, json_integer(ns > 0 ? ns : 1));
    }
    return row;
}

/* ---- the protocol */

static void note(const struct worker *worker, json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    if (text == NULL || dprintf(worker->log, "%s\n", text) < 0)
        die("cannot write", "the log");
    free(text);
    json_decref(line);
}

static void say(const struct worker *worker, json_t *message)
{
    if (json_dumpf(message, worker->out, JSON_COMPACT) < 0 || fputc('\n', worker->out) == EOF ||
        fflush(worker->out) != 0)
        exit(1);
    json_decref(message);
}

/* Which process of the scenario this is: as many starts as the log holds. */
static void open_log(const char *scenario, struct worker *worker)
{
    char path[4096];
    int process = 0;
    if ((size_t)snprintf(path, sizeof path, "%s.log", scenario) >= sizeof path)
        die("the path is too long:", scenario);
    worker->log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (worker->log < 0 || flock(worker->log, LOCK_EX) != 0)
        die("cannot open", path);
    FILE *log = fopen(path, "r");
    for (int begin = 1, c; log != NULL && (c = fgetc(log)) != EOF; begin = c == '\n')
        process += begin && c == '#';
    if (log != NULL)
        fclose(log);
    start_stream(&worker->scenario, process, &worker->stream);
    dprintf(worker->log, "# process %d\n", process);
    flock(worker->log, LOCK_UN);
}

static void hello(const struct worker *worker)
{
    json_t *values = json_array(), *ranks = json_array();
    for (int i = 0; i < worker->scenario.plans; i++)
        json_array_append_new(values, json_integer(i));
    for (int r = 0; r < (int)worker->scenario.ranks; r++)
        json_array_append_new(ranks, json_pack("{s:i, s:i, s:s, s:s, s:[i], s:i}", "rank", r, "pid",
                                               (int)getpid(), "host", "here", "device", "cpu",
                                               "cores", 0, "threads", 1));
    say(worker,
        json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:[{s:s, s:o, s:i}]}", "op", "hello", "protocol",
                  1, "name", "planted", "version", "1", "launch", "self", "workload",
                  "planted times", "parameters", "name", "plan", "values", values, "default", 0));
    say(worker, json_pack("{s:s, s:o}", "op", "ready", "ranks", ranks));
}

static void fail(const struct worker *worker, const char *why)
{
    say(worker, json_pack("{s:s, s:s, s:s}", "op", "failed", "kind", "error", "say", why));
}

/* Every plan has the same output: any number that depends on seed and projection alone. */
static json_t *projections(const json_t *verify)
{
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(verify, "seed"));
    json_int_t n = json_integer_value(json_object_get(verify, "projections"));
    struct stream stream = {.state = seed};
    json_t *row = json_array();
    for (json_int_t k = 0; k < n && k < PLANS_MOST; k++)
        json_array_append_new(row, json_real(uniform(&stream)));
    return row;
}

static void prepare(struct worker *worker, const json_t *request)
{
    const json_t *plan = json_object_get(json_object_get(request, "plan"), "plan");
    int k = (int)json_integer_value(plan);
    if (!json_is_integer(plan) || k < 0 || k >= worker->scenario.plans) {
        fail(worker, "there is no such plan");
        return;
    }
    struct handle *more =
        realloc(worker->handles, ((size_t)worker->count + 1) * sizeof *worker->handles);
    if (more == NULL)
        exit(1);
    worker->handles = more;
    worker->handles[worker->count] = (struct handle){.plan = k};
    json_t *cold = json_array(), *peak = json_array();
    for (int r = 0; r < (int)worker->scenario.ranks; r++) {
        double ns = worker->scenario.cold * worker->scenario.ns[k];
        json_array_append_new(cold, json_integer(llround(ns)));
        json_array_append_new(peak, json_integer(1 << 20));
    }
    note(worker, json_pack("{s:s, s:i, s:i}", "op", "prepare", "handle", worker->count, "plan", k));
    say(worker, json_pack("{s:s, s:i, s:o, s:i, s:o, s:{s:[i], s:[o]}}", "op", "prepared", "handle",
                          worker->count, "peak_bytes", peak, "resident_bytes", 1 << 20, "cold_ns",
                          cold, "verify", "norm", 1, "projections",
                          projections(json_object_get(request, "verify"))));
    worker->count++;
}

static void run(struct worker *worker, const json_t *request)
{
    int at = (int)json_integer_value(json_object_get(request, "handle"));
    json_int_t n = json_integer_value(json_object_get(request, "n"));
    if (at < 0 || at >= worker->count || worker->handles[at].plan < 0 || n < 1 || n > 1 << 20) {
        fail(worker, "no such plan is resident, or n is absurd");
        return;
    }
    struct handle *handle = &worker->handles[at];
    json_t *rows = json_array();
    json_t *clock = worker->scenario.slow_clock > 0 ? json_array() : NULL;
    for (json_int_t i = 0; i < n; i++) {
        if (clock != NULL)
            json_array_append_new(clock, clocks(worker));
        json_array_append_new(rows, one_step(worker, handle->plan, handle->steps++));
        worker->steps++;
    }
    note(worker, json_pack("{s:s, s:i, s:i, s:O, s:O, s:O*}", "op", "run", "handle", at, "plan",
                           handle->plan, "mode", json_object_get(request, "mode"), "ns", rows,
                           "clock", clock));
    say(worker, json_pack("{s:s, s:i, s:o, s:o*}", "op", "samples", "handle", at, "ns", rows,
                          "clock", clock));
}

static void release(struct worker *worker, const json_t *request)
{
    int at = (int)json_integer_value(json_object_get(request, "handle"));
    if (at < 0 || at >= worker->count) {
        fail(worker, "no such plan is resident");
        return;
    }
    worker->handles[at].plan = -1;
    say(worker, json_pack("{s:s, s:i}", "op", "released", "handle", at));
}

/* false: quit */
static int answer(struct worker *worker, const json_t *request)
{
    const char *op = json_string_value(json_object_get(request, "op"));
    if (op == NULL || strcmp(op, "quit") == 0)
        return 0;
    if (strcmp(op, "hello") == 0)
        hello(worker);
    else if (strcmp(op, "prepare") == 0)
        prepare(worker, request);
    else if (strcmp(op, "run") == 0)
        run(worker, request);
    else if (strcmp(op, "release") == 0)
        release(worker, request);
    else
        fail(worker, "unknown request");
    return 1;
}

int main(void)
{
    static struct worker worker;
    const char *path = getenv("PLANTED");
    char *line = NULL;
    size_t room = 0;
    if (path == NULL)
        die("set PLANTED to", "the scenario's file");
    read_scenario(path, &worker.scenario);
    open_log(path, &worker);
    worker.out = fdopen(dup(STDOUT_FILENO), "w");
    if (worker.out == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return 1;
    for (int more = 1; more && getline(&line, &room, stdin) > 0;) {
        json_t *request = json_loads(line, 0, NULL);
        more = answer(&worker, request);
        json_decref(request);
    }
    free(line);
    free(worker.handles);
    return 0;
}
