/* SPDX-License-Identifier: MIT */
/* Three stages with an agreement after each, so that a rank that fails never leaves the others inside an exchange:
 * reading and sizing (alone), making resident (collective), the first two steps (collective). */
#include "base/clock.h"
#include "base/host.h"
#include "model/workload_json.h"
#include "space/dit/dit.h"
#include "worker/requests.h"

#include <stdlib.h>

#define WHAT "the request prepare"

static struct dt_loaded *free_place(struct dt_worker_session *session)
{
    for (int i = 0; i < DT_SESSION_RESIDENTS; i++)
        if (session->residents[i].handle == 0)
            return &session->residents[i];
    return NULL;
}

static dt_status read_plan(struct dt_worker_session *session, const json_t *request,
                           struct dt_plan *plan)
{
    json_t *object;
    DT_TRY(dt_json_object(request, WHAT, "plan", &object));
    DT_TRY(dt_plan_from_json(object, plan));
    if (plan->ranks != session->seat.size)
        return dt_fail(DT_EINFEASIBLE, "the plan wants ranks=%d, this group has %d", plan->ranks,
                       session->seat.size);
    DT_TRY(dt_dit_check(&session->workload, plan));
    if (free_place(session) == NULL)
        return dt_fail(DT_EINFEASIBLE, "%d plans are resident already: release one",
                       DT_SESSION_RESIDENTS);
    return DT_OK;
}

/* Number of this host's ranks that share the memory of this rank's device. */
static int sharers(const struct dt_worker_session *session)
{
    int ranks = session->seat.host_size, devices = session->compute->count();
    if (session->compute->host || devices < 1)
        return ranks;
    return (ranks + devices - 1) / devices;
}

/* Allocates nothing unless there is memory for every rank of the host. */
static dt_status check_memory(struct dt_worker_session *session, const struct dt_plan *plan)
{
    int64_t need = dt_workload_activation_bytes(&session->workload, plan);
    if (session->weights == NULL)
        need = dt_workload_rank_bytes(&session->workload, plan);
    int64_t there = 0, total = 0;
    DT_TRY(session->compute->memory.space(session->device, &there, &total));
    if (session->weights == NULL)
        session->free_bytes = there;
    session->before_bytes = there;
    there /= sharers(session);
    if (need > there)
        return dt_fail(
            DT_ENOMEM,
            "rank %d needs %lld more bytes for this plan, and %lld are available to it on %s",
            session->seat.rank, (long long)need, (long long)there, dt_host_name());
    return DT_OK;
}

/* The controller's rules leave out data types that are not computed here; a caller of one's own may ask for them. */
static dt_status load_weights(struct dt_worker_session *session)
{
    enum dt_dtype dtype = session->workload.dtype;
    if (session->weights != NULL)
        return DT_OK;
    if (!session->compute->usable(dtype))
        return dt_fail(DT_EUNSUP,
                       "%s is not computed by this processor, or not by the libraries "
                       "that are built in: float32 is",
                       dt_dtype_text(dtype));
    return dt_weights_new(&session->workload, session->device, &session->weights);
}

static dt_status first_step(struct dt_worker_session *session, struct dt_pass *pass,
                            int64_t *cold_ns)
{
    DT_TRY(dt_session_align(session));
    int64_t start = dt_clock_ns();
    DT_TRY(dt_pass_step(pass, NULL));
    *cold_ns = dt_clock_ns() - start;
    DT_TRY(dt_session_beat(session));
    DT_TRY(dt_pass_step(pass, NULL));
    return dt_session_beat(session);
}

/* A number that is not finite becomes null. */
static json_t *describe(const double norm[], const double projections[], int images, int count)
{
    json_t *norms = json_array(), *table = json_array();
    for (int i = 0; i < images; i++) {
        json_t *row = json_array();
        json_array_append_new(norms, dt_json_number(norm[i]));
        for (int k = 0; k < count; k++)
            json_array_append_new(
                row, dt_json_number(projections[(size_t)i * (size_t)count + (size_t)k]));
        json_array_append_new(table, row);
    }
    return json_pack("{s:o,s:o}", "norm", norms, "projections", table);
}

dt_status dt_session_verify(struct dt_worker_session *session, const json_t *request,
                            const struct dt_loaded *resident, json_t **verify)
{
    json_t *asked = json_object_get(request, "verify");
    int64_t count, seed;
    if (!json_is_object(asked))
        return DT_OK;
    DT_TRY(dt_json_int(asked, WHAT, "projections", 1, 4096, &count));
    DT_TRY(dt_json_int(asked, WHAT, "seed", INT64_MIN, INT64_MAX, &seed));
    size_t images = (size_t)resident->plan.batch;
    double *norm = calloc(images, sizeof *norm);
    double *projections = calloc(images * (size_t)count, sizeof *projections);
    dt_status status =
        norm != NULL && projections != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory to verify");
    if (status == DT_OK)
        status = dt_pass_verify(resident->pass, (uint64_t)seed, (int)count, norm, projections);
    if (status == DT_OK && session->seat.rank == 0)
        *verify = describe(norm, projections, (int)images, (int)count);
    free(norm);
    free(projections);
    return status;
}

static int64_t resident_bytes(const struct dt_worker_session *session)
{
    int64_t sum = dt_workload_weight_bytes(&session->workload);
    for (int i = 0; i < DT_SESSION_RESIDENTS; i++)
        if (session->residents[i].handle != 0)
            sum += dt_pass_bytes(session->residents[i].pass);
    return sum;
}

static json_t *reply(const struct dt_loaded *resident, const json_t *parts, json_t *verify)
{
    static const char *const counted[] = {"before_bytes", "taken_bytes", "free_bytes",
                                          "total_bytes"};
    json_int_t most = 0;
    json_t *part;
    size_t i;
    json_array_foreach((json_t *)parts, i, part)
    {
        json_int_t bytes = json_integer_value(json_object_get(part, "resident_bytes"));
        most = bytes > most ? bytes : most;
    }
    json_t *answer = json_pack(
        "{s:s,s:i,s:o,s:I,s:o,s:O*,s:b}", "op", "prepared", "handle", resident->handle,
        "peak_bytes", dt_session_column(parts, "peak_bytes"), "resident_bytes", most, "cold_ns",
        dt_session_column(parts, "cold_ns"), "verify", verify, "verifies_runs", verify != NULL);
    for (size_t k = 0; k < sizeof counted / sizeof counted[0]; k++)
        if (json_object_get(json_array_get(parts, 0), counted[k]) != NULL)
            json_object_set_new(answer, counted[k], dt_session_column(parts, counted[k]));
    return answer;
}

/* taken_bytes: decrease of the device's free memory since before the weights, including memory taken by libraries. */
static json_t *describe_rank(const struct dt_worker_session *session,
                             const struct dt_loaded *resident, int64_t cold_ns)
{
    int64_t peak = dt_workload_weight_bytes(&session->workload) + dt_pass_bytes(resident->pass);
    int64_t there = 0, total = 0;
    json_t *part = json_pack("{s:I,s:I,s:I}", "peak_bytes", (json_int_t)peak, "resident_bytes",
                             (json_int_t)resident_bytes(session), "cold_ns", (json_int_t)cold_ns);
    if (!session->compute->host &&
        session->compute->memory.space(session->device, &there, &total) == DT_OK) {
        json_object_set_new(part, "before_bytes", json_integer(session->before_bytes));
        json_object_set_new(part, "taken_bytes", json_integer(session->free_bytes - there));
        json_object_set_new(part, "free_bytes", json_integer(there));
        json_object_set_new(part, "total_bytes", json_integer(total));
    }
    return part;
}

static dt_status first_steps(struct dt_worker_session *session, const json_t *request,
                             struct dt_loaded *resident, json_t **answer)
{
    int64_t cold_ns = 0;
    json_t *verify = NULL, *parts = NULL, *mine = NULL;
    dt_status status = first_step(session, resident->pass, &cold_ns);
    if (status == DT_OK)
        status = dt_session_verify(session, request, resident, &verify);
    if (status == DT_OK)
        mine = describe_rank(session, resident, cold_ns);
    if (status != DT_EDEAD)
        status = dt_session_settle(session, status, mine, &parts);
    if (status == DT_OK && session->seat.rank == 0)
        *answer = reply(resident, parts, verify);
    json_decref(verify);
    json_decref(parts);
    return status;
}

dt_status dt_request_prepare(struct dt_worker_session *session, const json_t *request,
                             json_t **answer)
{
    struct dt_plan plan = {0};
    dt_status status = read_plan(session, request, &plan);
    if (status == DT_OK)
        status = check_memory(session, &plan);
    DT_TRY(dt_links_agree(&session->links, status, NULL, NULL));
    status = dt_seat_threads(&session->seat, plan.threads);
    if (status == DT_OK)
        status = load_weights(session);
    DT_TRY(dt_links_agree(&session->links, status, NULL, NULL));
    DT_TRY(dt_session_beat(session));
    struct dt_loaded *resident = free_place(session);
    struct dt_pass *pass = NULL;
    status = dt_pass_new(&session->workload, &plan, session->weights, session->world, &pass);
    status = dt_session_settle(session, status, NULL, NULL);
    if (status < 0) {
        dt_pass_free(pass);
        return status;
    }
    *resident = (struct dt_loaded){.handle = ++session->handles, .plan = plan, .pass = pass};
    dt_pass_reset(pass);
    status = first_steps(session, request, resident, answer);
    if (status < 0) {
        dt_pass_free(pass);
        *resident = (struct dt_loaded){0};
    }
    return status;
}
