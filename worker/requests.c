/* SPDX-License-Identifier: MIT */
#include "worker/requests.h"
#include "base/clock.h"
#include "worker/watch.h"

#include <string.h>

#define TOKEN DT_SESSION_TOKEN

static dt_status release(struct dt_worker_session *session, const json_t *request, json_t **answer)
{
    struct dt_loaded *resident = NULL;
    DT_TRY(dt_session_find(session, request, &resident));
    dt_pass_free(resident->pass);
    if (session->seat.rank == 0)
        *answer = json_pack("{s:s,s:i}", "op", "released", "handle", resident->handle);
    *resident = (struct dt_loaded){0};
    return DT_OK;
}

static dt_status write_output(struct dt_worker_session *session, const json_t *request,
                              json_t **answer)
{
    struct dt_loaded *resident = NULL;
    const char *path;
    DT_TRY(dt_session_find(session, request, &resident));
    DT_TRY(dt_json_string(request, "the request write", "path", &path));
    DT_TRY(dt_session_settle(session, dt_pass_write(resident->pass, path), NULL, NULL));
    if (session->seat.rank == 0)
        *answer = json_pack("{s:s}", "op", "written");
    return DT_OK;
}

static dt_status quit(struct dt_worker_session *session, const json_t *request, json_t **answer)
{
    (void)request, (void)answer;
    session->over = true;
    return DT_OK;
}

static const struct request {
    const char *name;
    dt_status (*execute)(struct dt_worker_session *session, const json_t *request, json_t **answer);
} table[] = {
    {"prepare", dt_request_prepare},
    {"run", dt_request_run},
    {"release", release},
    {"write", write_output},
    {"trace", dt_request_trace},
    {"peak", dt_request_peak},
    {"exchange", dt_request_exchange},
    {"quit", quit},
};

static dt_status unknown(const char *name)
{
    struct dt_text known = {0};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        dt_text_add(&known, "%s%s", i > 0 ? ", " : "", table[i].name);
    dt_status status = dt_fail(DT_EPROTO, "unknown request '%.40s'; this worker knows %s", name,
                               dt_text_at(&known));
    dt_text_fini(&known);
    return status;
}

static dt_status execute(struct dt_worker_session *session, const json_t *request, json_t **answer)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, dt_wire_op(request)) == 0)
            return table[i].execute(session, request, answer);
    return unknown(dt_wire_op(request));
}

dt_status dt_session_refuse(struct dt_worker_session *session, dt_status why)
{
    const char *kind = "error";
    if (why == DT_ENOMEM)
        kind = "memory";
    else if (why == DT_EINFEASIBLE || why == DT_EUSAGE || why == DT_EUNSUP)
        kind = "infeasible";
    json_t *message = json_pack("{s:s,s:s,s:s}", "op", "failed", "kind", kind, "say", dt_message());
    if (session->broken) /* this process ends */
        json_object_set_new(message, "last", json_true());
    dt_status status = dt_wire_write(&session->wire, message);
    json_decref(message);
    return status;
}

dt_status dt_session_serve(struct dt_worker_session *session, const json_t *request)
{
    json_t *answer = NULL;
    dt_watch_start(session->seat.rank == 0 ? &session->wire : &session->links.wires[0]);
    dt_status status = execute(session, request, &answer);
    dt_watch_stop();
    if (status == DT_EDEAD)
        return status;
    if (session->seat.rank == 0 && !session->over) {
        dt_status written =
            status < 0 ? dt_session_refuse(session, status) : dt_wire_write(&session->wire, answer);
        json_decref(answer);
        DT_TRY(written);
    }
    return session->broken ? dt_fail(DT_EDEAD, "a rank was lost within an exchange") : DT_OK;
}

dt_status dt_session_beat(struct dt_worker_session *session)
{
    if (session->seat.rank != 0 || dt_clock_ns() - session->wire.last_write_ns < DT_NS_PER_SECOND)
        return DT_OK;
    if (dt_watch_gone(&session->wire))
        return dt_fail(DT_EDEAD, "the controller has ended");
    json_t *message = json_pack("{s:s}", "op", "heartbeat");
    dt_status status = dt_wire_write(&session->wire, message);
    json_decref(message);
    return status;
}

dt_status dt_session_find(struct dt_worker_session *session, const json_t *request,
                          struct dt_loaded **resident)
{
    int64_t handle;
    DT_TRY(dt_json_int(request, "the request", "handle", 1, INT32_MAX, &handle));
    for (int i = 0; i < DT_SESSION_RESIDENTS; i++)
        if (session->residents[i].handle == handle) {
            *resident = &session->residents[i];
            return DT_OK;
        }
    return dt_fail(DT_EPROTO, "no plan of handle %lld is resident", (long long)handle);
}

dt_status dt_session_align(struct dt_worker_session *session)
{
    struct dt_comm *world = session->world;
    struct dt_request request = {.bytes = 0};
    char *tokens = session->tokens;
    DT_TRY(world->ops->barrier(world));
    DT_TRY(world->ops->barrier(world));
    for (int i = 0; i < (tokens != NULL ? 2 : 0); i++) {
        DT_TRY(dt_comm_alltoall(world, tokens, tokens + world->size * TOKEN, TOKEN, &request));
        DT_TRY(world->ops->wait(world, &request));
    }
    return DT_OK;
}

/* The status makes the group unusable: an exchange or a device is lost. On the processor nothing is lost. */
static bool is_lost(const struct dt_worker_session *session, dt_status status)
{
    bool lost = status == DT_ETIMEOUT || status == DT_ELIB;
    if (session->links.size == 1)
        return lost && !session->compute->host;
    return lost || status == DT_ENOMEM;
}

/* Other ranks may wait on their devices for data that this rank will never send. The first error is reported. */
static dt_status abort_exchanges(struct dt_worker_session *session, dt_status status)
{
    struct dt_comm *host = session->host;
    struct dt_error first = {DT_OK, ""};
    dt_error_keep(&first, status);
    if (session->links.size > 1 && host->ops->abort != NULL)
        dt_error_keep(&first, host->ops->abort(host, dt_clock_ns() + DT_NS_PER_SECOND));
    return dt_error_raise(&first);
}

dt_status dt_session_settle(struct dt_worker_session *session, dt_status status, json_t *mine,
                            json_t **parts)
{
    if (is_lost(session, status))
        status = abort_exchanges(session, status);
    status = dt_links_agree(&session->links, status, mine, parts);
    session->broken = is_lost(session, status);
    return status;
}

json_t *dt_session_column(const json_t *parts, const char *key)
{
    json_t *column = json_array(), *part;
    size_t i;
    json_array_foreach((json_t *)parts, i, part)
    {
        if (json_array_append(column, json_object_get(part, key)) != 0) {
            json_decref(column);
            return NULL;
        }
    }
    return column;
}
