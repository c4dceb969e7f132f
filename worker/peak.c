/* SPDX-License-Identifier: MIT */
/* Peak rates of a device, the ceilings of a plan's rates: a large product, and a large copy by the call that plans use.
 * All ranks measure at once and their rates are added. */
#include "base/clock.h"
#include "worker/requests.h"

#define MOST_BYTES  (INT64_C(256) << 20) /* size of a copy: more than any cache */
#define HOST_BYTES  (INT64_C(32) << 20)
#define ROW_BYTES   (INT64_C(1) << 20)
#define LEAST_BYTES ROW_BYTES
#define COPY_NS     (DT_NS_PER_SECOND / 10)
#define PATIENCE_NS (60 * DT_NS_PER_SECOND)

/* The best of several copies; each byte is read and written once. */
static dt_status best_copy(struct dt_worker_session *session, char *memory, int64_t bytes,
                           double *rate)
{
    const struct dt_compute *compute = session->compute;
    const struct dt_copy op = {.to = memory + bytes,
                               .from = memory,
                               .count = {1, 1, bytes / ROW_BYTES},
                               .to_stride = {0, 0, ROW_BYTES / 4},
                               .from_stride = {0, 0, ROW_BYTES / 4},
                               .width = ROW_BYTES / 4,
                               .element = 4};
    int64_t end = dt_clock_ns() + COPY_NS;
    compute->memory.fill(session->device, memory, 1, 2 * bytes);
    DT_TRY(compute->finish(session->device, dt_clock_ns() + PATIENCE_NS, NULL, NULL));
    do {
        int64_t start = dt_clock_ns();
        compute->rows.copy(session->device, &op);
        DT_TRY(compute->finish(session->device, start + PATIENCE_NS, NULL, NULL));
        double now = 2e9 * (double)bytes / (double)(dt_clock_ns() - start);
        *rate = now > *rate ? now : *rate;
    } while (dt_clock_ns() < end);
    return DT_OK;
}

/* Uses free memory; 0 where there is too little. */
static dt_status copy_rate(struct dt_worker_session *session, double *rate)
{
    const struct dt_compute *compute = session->compute;
    int64_t there = 0, total = 0, bytes = compute->host ? HOST_BYTES : MOST_BYTES;
    void *memory = NULL;
    DT_TRY(compute->memory.space(session->device, &there, &total));
    while (bytes > there / 8 / (session->seat.host_size > 0 ? session->seat.host_size : 1))
        bytes /= 2;
    if (bytes < LEAST_BYTES)
        return DT_OK;
    DT_TRY(compute->memory.alloc(session->device, 2 * bytes, &memory));
    dt_status status = best_copy(session, memory, bytes, rate);
    compute->memory.release(session->device, memory);
    return status;
}

static json_t *measure(struct dt_worker_session *session, dt_status *status)
{
    double flop_rate = 0, byte_rate = 0;
    if (*status == DT_OK)
        *status = session->compute->peak(session->device, session->workload.dtype, &flop_rate);
    if (*status == DT_OK)
        *status = copy_rate(session, &byte_rate);
    return *status == DT_OK ? json_pack("[f,f]", flop_rate, byte_rate) : NULL;
}

dt_status dt_request_peak(struct dt_worker_session *session, const json_t *request, json_t **answer)
{
    (void)request;
    json_t *parts = NULL, *part;
    size_t i;
    double sums[2] = {0, 0};
    dt_status status = dt_seat_threads(&session->seat, session->seat.core_count);
    if (status == DT_OK)
        status = dt_session_align(session);
    json_t *mine = measure(session, &status);
    DT_TRY(dt_session_settle(session, status, mine, &parts));
    json_array_foreach(parts, i, part) for (size_t k = 0; k < 2; k++)
    {
        sums[k] += json_real_value(json_array_get(part, k));
    }
    if (session->seat.rank == 0)
        *answer = json_pack("{s:s,s:f}", "op", "peak", "flop_rate", sums[0]);
    if (session->seat.rank == 0 && sums[1] > 0)
        json_object_set_new(*answer, "copy_bytes_per_second", json_real(sums[1]));
    json_decref(parts);
    return DT_OK;
}
