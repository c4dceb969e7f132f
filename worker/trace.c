/* SPDX-License-Identifier: MIT */
/* The parts of a step on each rank, and the processor time that it took: of a few steps after those that count, since looking
 * slows a GPU down. Spans are those of the last step, medians those of all. */
#include "base/clock.h"
#include "worker/requests.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WHAT "the request trace"
enum { STEPS_MOST = 64, SPANS_MOST = 65536, LAYERS_MOST = 1024 };

struct trace {
    struct dt_step_parts spans;
    int64_t (*layers)[STEPS_MOST]; /* [LAYERS_MOST] times of each block */
    int steps, layer_count;
    int64_t start_ns, step_ns; /* of the last step */
    int64_t wall_ns,
        cpu_ns; /* of all; the processor's time includes the alignment of ranks before a step */
};

int64_t dt_worker_cpu_ns(void)
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

static dt_status steps(struct dt_worker_session *session, struct dt_pass *pass, struct trace *trace)
{
    memset(&session->phases, 0, sizeof session->phases);
    session->phases.spans = &trace->spans;
    dt_status status = DT_OK;
    for (int i = 0; i < trace->steps && status == DT_OK; i++) {
        trace->spans.count = 0;
        int64_t wall = dt_clock_ns(), cpu = dt_worker_cpu_ns();
        status =
            dt_session_step(session, pass, &session->phases, &trace->start_ns, &trace->step_ns);
        trace->wall_ns += dt_clock_ns() - wall;
        trace->cpu_ns += dt_worker_cpu_ns() - cpu;
        keep_layers(trace, i);
    }
    session->phases.spans = NULL;
    return status;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
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

static json_t *describe(struct trace *trace)
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
        qsort(ns, (size_t)trace->steps, sizeof *ns, ascending);
        json_array_append_new(layers,
                              json_pack("[s, I]", name_of(span), (json_int_t)ns[trace->steps / 2]));
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "host", host, "start_ns",
                     (json_int_t)trace->start_ns, "step_ns", (json_int_t)trace->step_ns, "wall_ns",
                     (json_int_t)trace->wall_ns, "cpu_ns", (json_int_t)trace->cpu_ns, "layers",
                     layers, "spans", spans);
}

dt_status dt_request_trace(struct dt_worker_session *session, const json_t *request,
                           json_t **answer)
{
    struct dt_loaded *resident;
    int64_t n;
    json_t *parts = NULL, *mine = NULL;
    DT_TRY(dt_session_find(session, request, &resident));
    DT_TRY(dt_json_int(request, WHAT, "n", 1, STEPS_MOST, &n));
    struct trace trace = {
        .steps = (int)n,
        .spans = {.at = calloc(SPANS_MOST, sizeof *trace.spans.at), .room = SPANS_MOST},
        .layers = calloc(LAYERS_MOST, sizeof *trace.layers)};
    dt_status status = trace.spans.at != NULL && trace.layers != NULL
                           ? dt_seat_threads(&session->seat, resident->plan.threads)
                           : dt_fail(DT_ENOMEM, "out of memory for a trace");
    if (status == DT_OK)
        status = steps(session, resident->pass, &trace);
    if (status == DT_OK)
        mine = describe(&trace);
    free(trace.spans.at);
    free(trace.layers);
    if (status != DT_EDEAD)
        status = dt_session_settle(session, status, mine, &parts);
    if (status == DT_OK && session->seat.rank == 0)
        *answer = json_pack("{s:s, s:i, s:I, s:O}", "op", "traced", "handle", resident->handle, "n",
                            (json_int_t)n, "ranks", parts);
    json_decref(parts);
    return status;
}
