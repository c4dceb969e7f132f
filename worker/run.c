/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "worker/session.h"

#include <stdlib.h>
#include <string.h>

#define WHAT       "the request run"
#define MOST_STEPS 100000

static dt_status steps(struct dt_session *session, struct dt_pass *pass, int n, int64_t ns[])
{
    for (int i = 0; i < n; i++) {
        DT_TRY(dt_session_align(session));
        int64_t start = dt_clock_ns();
        DT_TRY(dt_pass_step(pass, &session->phases));
        ns[i] = dt_clock_ns() - start;
        DT_TRY(dt_session_beat(session));
    }
    return DT_OK;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median(int64_t values[], int64_t n)
{
    if (n == 0)
        return 0;
    qsort(values, (size_t)n, sizeof values[0], ascending);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* A host is never idle. */
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

/* Sorts the samples of each block kind: phases are cleared before the next run. */
static json_t *list_blocks(struct dt_phases *phases)
{
    json_t *blocks = json_array();
    for (int i = 0; i < DT_BLOCK_KINDS; i++) {
        int64_t count = phases->block_count[i];
        int64_t kept = count < DT_PHASE_SAMPLES ? count : DT_PHASE_SAMPLES;
        json_array_append_new(blocks, json_pack("{s:s,s:I,s:I}", "name",
                                                dt_block_text((enum dt_block_kind)i), "count",
                                                (json_int_t)count, "median_ns",
                                                (json_int_t)median(phases->block_ns[i], kept)));
    }
    return blocks;
}

static json_t *describe(struct dt_session *session, int n, const int64_t ns[])
{
    struct dt_phases *phases = &session->phases;
    json_t *times = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(times, json_integer(ns[i]));
    return json_pack("{s:o,s:{s:i,s:o,s:o,s:I}}", "ns", times, "phases", "steps", n, "kinds",
                     list_kinds(phases, session->device->compute->host), "blocks",
                     list_blocks(phases), "step_ns", (json_int_t)phases->step_ns);
}

static json_int_t time_of(const json_t *parts, size_t rank, int step)
{
    const json_t *times = json_object_get(json_array_get(parts, rank), "ns");
    return json_integer_value(json_array_get(times, (size_t)step));
}

/* The rank that was last most often, the lowest of equals; on the way fills the step x rank matrix. */
static size_t turn(const json_t *parts, int n, json_t *matrix)
{
    size_t ranks = json_array_size(parts), slowest = 0;
    int *last = calloc(ranks, sizeof *last);
    for (int step = 0; step < n; step++) {
        json_t *row = json_array();
        size_t worst = 0;
        for (size_t rank = 0; rank < ranks; rank++) {
            json_array_append_new(row, json_integer(time_of(parts, rank, step)));
            worst = time_of(parts, rank, step) > time_of(parts, worst, step) ? rank : worst;
        }
        json_array_append_new(matrix, row);
        if (last != NULL)
            last[worst]++;
    }
    for (size_t rank = 1; rank < ranks && last != NULL; rank++)
        slowest = last[rank] > last[slowest] ? rank : slowest;
    free(last);
    return slowest;
}

static json_t *reply(int handle, int n, const json_t *parts)
{
    json_t *matrix = json_array();
    size_t slowest = turn(parts, n, matrix);
    return json_pack("{s:s,s:i,s:o,s:O}", "op", "samples", "handle", handle, "ns", matrix, "phases",
                     json_object_get(json_array_get(parts, slowest), "phases"));
}

static dt_status read_request(struct dt_session *session, const json_t *request,
                              struct dt_resident **resident, int64_t *n)
{
    const char *mode;
    DT_TRY(dt_session_find(session, request, resident));
    DT_TRY(dt_json_int(request, WHAT, "n", 1, MOST_STEPS, n));
    DT_TRY(dt_json_string(request, WHAT, "mode", &mode));
    if (strcmp(mode, "warmup") != 0 && strcmp(mode, "measure") != 0)
        return dt_fail(DT_EPROTO, "mode '%.20s': expected warmup or measure", mode);
    return DT_OK;
}

dt_status dt_request_run(struct dt_session *session, const json_t *request, json_t **answer)
{
    struct dt_resident *resident;
    int64_t n;
    json_t *parts = NULL, *mine = NULL;
    DT_TRY(read_request(session, request, &resident, &n));
    int64_t *ns = calloc((size_t)n, sizeof *ns);
    dt_status status =
        ns != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory for %d times", (int)n);
    memset(&session->phases, 0, sizeof session->phases);
    if (status == DT_OK)
        status = dt_seat_threads(&session->seat, resident->plan.threads);
    if (status == DT_OK)
        status = steps(session, resident->pass, (int)n, ns);
    if (status == DT_OK)
        mine = describe(session, (int)n, ns);
    free(ns);
    if (status != DT_EDEAD)
        status = dt_session_settle(session, status, mine, &parts);
    if (status == DT_OK && session->seat.rank == 0)
        *answer = reply(resident->handle, (int)n, parts);
    json_decref(parts);
    return status;
}

dt_status dt_request_peak(struct dt_session *session, const json_t *request, json_t **answer)
{
    (void)request;
    json_t *parts = NULL, *mine = NULL, *rate;
    size_t i;
    double sum = 0, flop_rate = 0;
    dt_status status = dt_seat_threads(&session->seat, session->seat.core_count);
    if (status == DT_OK)
        status = dt_session_align(session);
    if (status == DT_OK)
        status =
            session->device->compute->peak(session->device, session->workload.dtype, &flop_rate);
    if (status == DT_OK)
        mine = json_real(flop_rate);
    DT_TRY(dt_session_settle(session, status, mine, &parts));
    json_array_foreach(parts, i, rate) sum += json_real_value(rate);
    if (session->seat.rank == 0)
        *answer = json_pack("{s:s,s:f}", "op", "peak", "flop_rate", sum);
    json_decref(parts);
    return DT_OK;
}
