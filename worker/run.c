/* SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/clock.h"
#include "base/json.h"
#include "kernels/forward.h"
#include "worker/gpus/telemetry.h"
#include "worker/requests.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The parts of a step on each rank, and the processor time that it took: of a few steps
 * after those that count, since looking slows a GPU down. Spans are those of the last step,
 * medians those of all. */

#define WHAT "the request trace"

enum { STEPS_MOST = 64, SPANS_MOST = 65536, LAYERS_MOST = 1024 };

struct trace {
    struct dt_step_parts spans;
    int64_t (*layers)[STEPS_MOST]; /* [LAYERS_MOST] times of each block */
    int steps, layer_count;
    int64_t start_ns, step_ns; /* the last step's */
    int64_t wall_ns,
        cpu_ns; /* all steps'; the processor's time includes the alignment of ranks before a step */
};

/* Processor time of all threads of this process (CLOCK_PROCESS_CPUTIME_ID). */
static int64_t worker_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * DT_NS_PER_SECOND + now.tv_nsec;
}

static void keep_layers(struct trace *trace, int step)
{
    int layer = 0;
    for (int i = 0; i < trace->spans.count; i++)
        if (trace->spans.at[i].block && layer < LAYERS_MOST)
            trace->layers[layer++][step] = trace->spans.at[i].ns;
    trace->layer_count = layer;
}

#define PATIENCE_NS (60 * DT_NS_PER_SECOND)

static dt_status check_world(void *arg)
{
    return dt_comm_check(((struct dt_rank *)arg)->world);
}

/* Waits for all that was queued before the step, so that neither clock times it: ranks
 * are aligned by exchanges, which take longer the more ranks there are. */
static dt_status begin_step(struct dt_rank *self)
{
    const struct dt_compute *compute = self->compute;
    if (compute->timeline.clock != NULL)
        compute->timeline.clock(self->device, 0);
    DT_TRY(dt_rank_align(self));
    if (compute->host)
        return DT_OK;
    return compute->finish(self->device, dt_clock_ns() + PATIENCE_NS, check_world, self);
}

/* One step that all ranks begin together, with its beginning by the host's clock and its
 * duration. phases may be NULL. */
static dt_status session_step(struct dt_rank *self, struct dt_pass *pass, struct dt_phases *phases,
                              int64_t *start_ns, int64_t *ns)
{
    const struct dt_compute *compute = self->compute;
    DT_TRY(begin_step(self));
    *start_ns = dt_clock_ns();
    DT_TRY(dt_pass_step(pass, phases));
    *ns = dt_clock_ns() - *start_ns;
    if (compute->timeline.clock != NULL)
        compute->timeline.clock(self->device, 1);
    return dt_rank_beat(self);
}

static dt_status trace_steps(struct dt_rank *self, struct dt_pass *pass, struct trace *trace)
{
    memset(&self->phases, 0, sizeof self->phases);
    self->phases.spans = &trace->spans;
    dt_status status = DT_OK;
    for (int i = 0; i < trace->steps && status == DT_OK; i++) {
        trace->spans.count = 0;
        int64_t wall = dt_clock_ns(), cpu = worker_cpu_ns();
        status = session_step(self, pass, &self->phases, &trace->start_ns, &trace->step_ns);
        trace->wall_ns += dt_clock_ns() - wall;
        trace->cpu_ns += worker_cpu_ns() - cpu;
        keep_layers(trace, i);
    }
    self->phases.spans = NULL;
    return status;
}

static const char *name_of(const struct dt_step_part *span)
{
    if (span->block)
        return dt_block_text((enum dt_block_kind)span->kind);
    return span->kind == DT_PHASE_EXCHANGE ? dt_exchange_text((enum dt_exchange_kind)span->exchange)
                                           : dt_phase_text((enum dt_phase_kind)span->kind);
}

static const char *category_of(const struct dt_step_part *span)
{
    if (span->block)
        return "layer";
    if (span->kind != DT_PHASE_EXCHANGE)
        return span->kind == DT_PHASE_IDLE ? "idle" : "work";
    return span->waits ? "wait" : "exchange";
}

static json_t *describe_trace(struct trace *trace)
{
    json_t *spans = json_array(), *layers = json_array();
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    for (int i = 0, layer = 0; i < trace->spans.count; i++) {
        const struct dt_step_part *span = &trace->spans.at[i];
        json_array_append_new(spans, json_pack("[s, s, I, I]", name_of(span), category_of(span),
                                               (json_int_t)span->begin_ns, (json_int_t)span->ns));
        if (!span->block || layer == trace->layer_count)
            continue;
        int64_t *ns = trace->layers[layer++];
        qsort(ns, (size_t)trace->steps, sizeof *ns, dt_ascending_int64);
        json_array_append_new(layers,
                              json_pack("[s, I]", name_of(span), (json_int_t)ns[trace->steps / 2]));
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "host", host, "start_ns",
                     (json_int_t)trace->start_ns, "step_ns", (json_int_t)trace->step_ns, "wall_ns",
                     (json_int_t)trace->wall_ns, "cpu_ns", (json_int_t)trace->cpu_ns, "layers",
                     layers, "spans", spans);
}

dt_status dt_request_trace(struct dt_rank *self, const json_t *request, json_t **answer)
{
    struct dt_loaded *resident;
    int64_t n;
    json_auto_t *parts = NULL;
    json_t *mine = NULL;
    dt_auto_free struct dt_step_part *spans = calloc(SPANS_MOST, sizeof *spans);
    dt_auto_free int64_t(*layers)[STEPS_MOST] = calloc(LAYERS_MOST, sizeof *layers);
    DT_TRY(dt_rank_find(self, request, &resident));
    DT_TRY(dt_json_int(request, WHAT, "n", 1, STEPS_MOST, &n));
    struct trace trace = {
        .steps = (int)n, .spans = {.at = spans, .room = SPANS_MOST}, .layers = layers};
    dt_status status = spans != NULL && layers != NULL
                           ? dt_seat_threads(&self->seat, resident->plan.threads)
                           : dt_fail(DT_ENOMEM, "out of memory for a trace");
    if (status == DT_OK)
        status = trace_steps(self, resident->pass, &trace);
    if (status == DT_OK)
        mine = describe_trace(&trace);
    if (status != DT_EDEAD)
        status = dt_rank_settle(self, status, mine, &parts);
    if (status == DT_OK && self->seat.rank == 0)
        *answer = json_pack("{s:s, s:i, s:I, s:O}", "op", "traced", "handle", resident->handle, "n",
                            (json_int_t)n, "ranks", parts);
    return status;
}

#define RUN_WHAT      "the request run"
#define MOST_STEPS    100000
#define LAYER_SAMPLES 64 /* samples of a layer, for its median */

/* ---- phases as they stand in the answer to run (docs/protocol.md) */

static int64_t middle_ns(int64_t values[], int64_t n)
{
    if (n == 0)
        return 0;
    qsort(values, (size_t)n, sizeof values[0], dt_ascending_int64);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The host has no idle time. */
static json_t *list_kinds(const struct dt_phases *phases, bool host)
{
    json_t *kinds = json_array();
    for (int i = 0; i < (host ? DT_PHASE_IDLE : DT_PHASE_KINDS); i++) {
        json_t *kind = json_pack("{s:s,s:I}", "name", dt_phase_text((enum dt_phase_kind)i), "ns",
                                 (json_int_t)phases->kind_ns[i]);
        if (i == DT_PHASE_EXCHANGE) {
            json_object_set_new(kind, "bytes", json_integer(phases->exchange_bytes));
            json_object_set_new(kind, "in_flight_ns", json_integer(phases->exchange_in_flight_ns));
        }
        json_array_append_new(kinds, kind);
    }
    return kinds;
}

static json_t *list_times(const int64_t values[], int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(array, json_integer(values[i]));
    return array;
}

/* Medians of each layer of a kind, of which a step has several: its samples are in their order.
 * NULL: there is one, or they are not the same in each step. */
static json_t *list_layers(const int64_t samples[], int64_t count, int64_t kept, int steps)
{
    int64_t layers = steps > 0 && count % steps == 0 ? count / steps : 0, column[LAYER_SAMPLES];
    if (layers < 2 || layers > kept)
        return NULL;
    json_t *list = json_array();
    for (int64_t layer = 0; layer < layers; layer++) {
        int64_t n = 0;
        for (int64_t k = layer; k < kept && n < LAYER_SAMPLES; k += layers)
            column[n++] = samples[k];
        json_array_append_new(list, json_integer(middle_ns(column, n)));
    }
    return list;
}

/* Sorts the samples of each block kind: phases are cleared before the next run. */
static json_t *list_blocks(struct dt_phases *phases, int steps)
{
    json_t *blocks = json_array();
    for (int i = 0; i < DT_BLOCK_KINDS; i++) {
        int64_t count = phases->block_count[i];
        int64_t kept = count < DT_PHASE_SAMPLES ? count : DT_PHASE_SAMPLES;
        json_t *layers = list_layers(phases->block_ns[i], count, kept, steps);
        json_array_append_new(blocks, json_pack("{s:s,s:I,s:I,s:o*}", "name",
                                                dt_block_text((enum dt_block_kind)i), "count",
                                                (json_int_t)count, "median_ns",
                                                (json_int_t)middle_ns(phases->block_ns[i], kept),
                                                "layers_ns", layers));
    }
    return blocks;
}

/* Lists the exchanges of the plan. */
static json_t *list_exchanges(const struct dt_phases *phases, const struct dt_plan *plan)
{
    json_t *list = json_array();
    for (int i = 0; i < DT_EXCHANGE_KINDS; i++) {
        const struct dt_exchanged *row = &phases->exchanges[i];
        int degree = dt_exchange_degree((enum dt_exchange_kind)i);
        int ranks = dt_plan_degree(plan, degree);
        if (ranks > 1)
            json_array_append_new(list,
                                  json_pack("{s:s,s:s,s:i,s:I,s:I,s:I,s:I}", "name",
                                            dt_exchange_text((enum dt_exchange_kind)i), "kind",
                                            dt_degrees[degree].exchange, "ranks", ranks, "count",
                                            (json_int_t)row->count, "ns", (json_int_t)row->ns,
                                            "bytes", (json_int_t)row->bytes, "in_flight_ns",
                                            (json_int_t)row->in_flight_ns));
    }
    return list;
}

/* The object "phases" of `steps` steps, without host_ns and rank. Sorts the samples of the blocks.
 * host: the device is the host, which is never idle. */
static json_t *phases_json(struct dt_phases *phases, const struct dt_plan *plan, bool host,
                           int steps)
{
    return json_pack("{s:i,s:o,s:o,s:o,s:I}", "steps", steps, "kinds", list_kinds(phases, host),
                     "exchanges", list_exchanges(phases, plan), "blocks",
                     list_blocks(phases, steps), "step_ns", (json_int_t)phases->step_ns);
}

/* ---- the run */

/* Measurements of a rank: n steps by its own clock (ns) and by its device's. */
struct times {
    int n;
    int64_t *ns, *device_ns;
    int64_t looked_ns; /* time of the traced steps by its own clock */
    int64_t wall_ns,
        cpu_ns; /* all steps'; the processor's time includes the alignment of ranks before a step */
    double *clock; /* Hz; 0: unknown */
    struct dt_telemetry telemetry;
};

static dt_status read_clock(struct dt_rank *self, double *hz)
{
    const struct dt_compute *compute = self->compute;
    if (compute->timeline.clock == NULL)
        return DT_OK;
    DT_TRY(compute->finish(self->device, dt_clock_ns() + PATIENCE_NS, NULL, NULL));
    return compute->timeline.clock_rate(self->device, hz);
}

/* Tracing slows a GPU down, so one extra step is traced that does not count. */
static dt_status run_steps(struct dt_rank *self, struct dt_pass *pass, struct times *times)
{
    bool host = self->compute->host;
    int64_t start;
    for (int i = 0; i < times->n; i++) {
        DT_TRY(session_step(self, pass, host ? &self->phases : NULL, &start, &times->ns[i]));
        times->looked_ns += times->ns[i];
        int64_t own = dt_pass_device_ns(pass);
        times->device_ns[i] = own > 0 ? own : 1; /* below what an event resolves */
        DT_TRY(read_clock(self, &times->clock[i]));
    }
    return host ? DT_OK : session_step(self, pass, &self->phases, &start, &times->looked_ns);
}

/* The processor is looked at before the first step and after the last, so no
 * step's time includes it. */
static dt_status timed_steps(struct dt_rank *self, struct dt_pass *pass, struct times *times)
{
    int64_t wall = dt_clock_ns(), cpu = worker_cpu_ns();
    dt_status status = run_steps(self, pass, times);
    times->wall_ns = dt_clock_ns() - wall;
    times->cpu_ns = worker_cpu_ns() - cpu;
    return status;
}

/* NULL unless all values are known. */
static json_t *list_clock(const struct times *times)
{
    json_auto_t *array = json_array();
    for (int i = 0; i < times->n; i++) {
        if (!(times->clock[i] > 0))
            return NULL;
        json_array_append_new(array, json_real(times->clock[i]));
    }
    return json_incref(array);
}

/* A step of a GPU is judged by the device's time. */
static json_t *run_describe(struct dt_rank *self, const struct dt_plan *plan, struct times *times)
{
    bool host = self->compute->host;
    json_t *phases = phases_json(&self->phases, plan, host, host ? times->n : 1);
    json_object_set_new(phases, "host_ns", json_integer(times->looked_ns));
    return json_pack("{s:I,s:I,s:o,s:o*,s:o*,s:o*,s:o}", "cpu_ns", (json_int_t)times->cpu_ns,
                     "wall_ns", (json_int_t)times->wall_ns, "ns",
                     list_times(host ? times->ns : times->device_ns, times->n), "host_ns",
                     host ? NULL : list_times(times->ns, times->n), "clock", list_clock(times),
                     "telemetry", dt_telemetry_json(&times->telemetry), "phases", phases);
}

static json_t *entry_of(const json_t *parts, const char *key, size_t rank, int step)
{
    const json_t *times = json_object_get(json_array_get(parts, rank), key);
    return json_array_get(times, (size_t)step);
}

static json_int_t time_of(const json_t *parts, size_t rank, int step)
{
    return json_integer_value(entry_of(parts, "ns", rank, step));
}

static bool all_have(const json_t *parts, const char *key)
{
    for (size_t rank = 0; rank < json_array_size(parts); rank++)
        if (json_object_get(json_array_get(parts, rank), key) == NULL)
            return false;
    return true;
}

/* The step x rank matrix of key; NULL when a rank has none. */
static json_t *turn_times(const json_t *parts, const char *key, int n)
{
    if (!all_have(parts, key))
        return NULL;
    json_t *matrix = json_array();
    for (int step = 0; step < n; step++) {
        json_t *row = json_array();
        for (size_t rank = 0; rank < json_array_size(parts); rank++)
            json_array_append(row, entry_of(parts, key, rank, step));
        json_array_append_new(matrix, row);
    }
    return matrix;
}

/* The rank that was last most often, the lowest among equals. */
static size_t find_slowest(const json_t *parts, int n)
{
    size_t ranks = json_array_size(parts), slowest = 0;
    dt_auto_free int *last = calloc(ranks, sizeof *last);
    for (int step = 0; last != NULL && step < n; step++) {
        size_t worst = 0;
        for (size_t rank = 0; rank < ranks; rank++)
            if (time_of(parts, rank, step) > time_of(parts, worst, step))
                worst = rank;
        last[worst]++;
    }
    for (size_t rank = 1; rank < ranks && last != NULL; rank++)
        slowest = last[rank] > last[slowest] ? rank : slowest;
    return slowest;
}

static json_t *run_reply(int handle, int n, const json_t *parts, json_t *verify)
{
    size_t slowest = find_slowest(parts, n);
    json_t *phases = json_object_get(json_array_get(parts, slowest), "phases");
    json_t *telemetry = all_have(parts, "telemetry") ? dt_rank_column(parts, "telemetry") : NULL;
    json_object_set_new(phases, "rank", json_integer((json_int_t)slowest));
    json_object_set_new(phases, "cpu_ns", dt_rank_column(parts, "cpu_ns"));
    json_object_set_new(phases, "wall_ns", dt_rank_column(parts, "wall_ns"));
    return json_pack("{s:s,s:i,s:o,s:o*,s:o*,s:o*,s:O,s:O*}", "op", "samples", "handle", handle,
                     "ns", turn_times(parts, "ns", n), "host_ns", turn_times(parts, "host_ns", n),
                     "clock", turn_times(parts, "clock", n), "telemetry", telemetry, "phases",
                     phases, "verify", verify);
}

static dt_status read_request(struct dt_rank *self, const json_t *request,
                              struct dt_loaded **resident, int64_t *n)
{
    const char *mode;
    DT_TRY(dt_rank_find(self, request, resident));
    DT_TRY(dt_json_int(request, RUN_WHAT, "n", 1, MOST_STEPS, n));
    DT_TRY(dt_json_string(request, RUN_WHAT, "mode", &mode));
    if (strcmp(mode, "warmup") != 0 && strcmp(mode, "measure") != 0)
        return dt_fail(DT_EPROTO, "mode '%.20s': expected warmup or measure", mode);
    return DT_OK;
}

/* The first two steps of the trajectory once more, so that the output can be compared
 * with that of prepare. */
static dt_status verify_again(struct dt_rank *self, const json_t *request,
                              const struct dt_loaded *resident, json_t **verify)
{
    dt_pass_reset(resident->pass);
    for (int step = 0; step < 2; step++) {
        DT_TRY(dt_pass_step(resident->pass, NULL));
        DT_TRY(dt_rank_beat(self));
    }
    return dt_rank_verify(self, request, resident, verify);
}

/* A reading of the rank's device. */
static void look_at_health(void *of, struct dt_health *health)
{
    struct dt_device *device = of;
    device->compute->health.read(device, health);
}

dt_status dt_request_run(struct dt_rank *self, const json_t *request, json_t **answer)
{
    const struct dt_compute *compute = self->compute;
    struct dt_loaded *resident;
    int64_t n;
    json_auto_t *parts = NULL, *verify = NULL;
    json_t *mine = NULL;
    DT_TRY(read_request(self, request, &resident, &n));
    dt_auto_free int64_t *ns = calloc((size_t)n, sizeof *ns);
    dt_auto_free int64_t *device_ns = calloc((size_t)n, sizeof *device_ns);
    dt_auto_free double *clock = calloc((size_t)n, sizeof *clock);
    struct times times = {.n = (int)n, .ns = ns, .device_ns = device_ns, .clock = clock};
    dt_status status = DT_OK;
    dt_telemetry_start(
        &times.telemetry,
        &(struct dt_telemetry_source){.read = compute->health.read != NULL ? look_at_health : NULL,
                                      .reason = compute->health.reason,
                                      .of = self->device});
    if (ns == NULL || device_ns == NULL || clock == NULL)
        status = dt_fail(DT_ENOMEM, "out of memory for %d times", (int)n);
    memset(&self->phases, 0, sizeof self->phases);
    if (status == DT_OK)
        status = dt_seat_threads(&self->seat, resident->plan.threads);
    if (status == DT_OK)
        status = timed_steps(self, resident->pass, &times);
    dt_telemetry_stop(&times.telemetry);
    if (status == DT_OK)
        mine = run_describe(self, &resident->plan, &times);
    if (status == DT_OK && json_is_object(json_object_get(request, "verify")))
        status = verify_again(self, request, resident, &verify);
    if (status != DT_EDEAD)
        status = dt_rank_settle(self, status, mine, &parts);
    if (status == DT_OK && self->seat.rank == 0)
        *answer = run_reply(resident->handle, (int)n, parts, verify);
    return status;
}
