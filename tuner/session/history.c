/* SPDX-License-Identifier: MIT */
#include "tuner/session/history.h"

#include "space/json/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static dt_status add(struct dt_journal *journal, const char *kind, json_t *record)
{
    dt_status status = record != NULL ? dt_journal_add(journal, kind, record)
                                      : dt_fail(DT_ENOMEM, "out of memory");
    json_decref(record);
    return status;
}

/* What started the ranks, so that a check can do it again; NULL: the built-in worker. */
static json_t *worker_json(const struct dt_session *session)
{
    const struct dt_job *job = session->job;
    json_t *words = json_array();
    const char *given = job->worker.path;
    char *path = given == NULL ? NULL : given[0] == '/' ? strdup(given) : realpath(given, NULL);
    for (int i = 0; job->worker.arguments != NULL && job->worker.arguments[i] != NULL; i++)
        json_array_append_new(words, json_string(job->worker.arguments[i]));
    json_t *worker = job->worker.path != NULL
                         ? json_pack("{s:s*, s:s*, s:O}", "engine", job->wanted.engine, "program",
                                     job->wanted.engine == NULL ? path : NULL, "arguments", words)
                         : NULL;
    json_decref(words);
    free(path);
    return worker;
}

dt_status dt_history_begin(const struct dt_session *session, json_t *identity)
{
    const struct dt_job *job = session->job;
    json_t *target = dt_raw_target(session->target);
    json_object_update(identity, target);
    json_decref(target);
    json_object_set_new(identity, "against",
                        session->has_against
                            ? dt_point_json(session->target->space, &session->against)
                            : json_null());
    if (job->worker.path != NULL && job->wanted.secret == NULL)
        json_object_set_new(identity, "worker", worker_json(session));
    json_object_set_new(identity, "max_latency_ns", json_integer(job->max_latency_ns));
    json_object_set_new(identity, "budget_ns",
                        json_integer(session->clock.deadline_ns - session->clock.began_ns));
    json_object_set_new(identity, "seed", json_integer(job->seed));
    if (session->list.works > 1)
        json_object_set_new(
            identity, "list",
            json_pack("{s:s, s:i, s:i}", "id",
                      session->list.id[0] != '\0' ? session->list.id : session->store.id, "work",
                      session->list.work, "works", session->list.works));
    if (session->store.journal != NULL)
        return add(session->store.journal, "session", identity);
    json_decref(identity);
    return DT_OK;
}

dt_status dt_history_search(const struct dt_session *session, const struct dt_search_opts *opts)
{
    if (session->store.journal == NULL)
        return DT_OK;
    return add(session->store.journal, "search",
               json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:i}", "search", session->search.name,
                         "search_reason", session->search.why, "prior", session->search.belief.name,
                         "known",
                         dt_raw_points(session->target->space, session->search.known,
                                       session->search.known_count),
                         "evaluations", (json_int_t)opts->evaluations, "left_ns",
                         (json_int_t)llround(opts->seconds * 1e9), "capacity_bytes",
                         (json_int_t)opts->capacity_bytes, "in_a_row", opts->groups->in_a_row));
}

dt_status dt_history_resumed(const struct dt_session *session)
{
    if (session->store.journal == NULL)
        return DT_OK;
    return add(session->store.journal, "resumed",
               json_pack("{s:s, s:I}", "of", session->resume.id, "spent_ns",
                         (json_int_t)session->resume.spent_ns));
}

dt_status dt_history_taken(const struct dt_session *session)
{
    if (session->store.journal == NULL)
        return DT_OK;
    return add(session->store.journal, "taken",
               json_pack("{s:s, s:i}", "of", session->resume.id, "trials", session->count));
}

dt_status dt_history_plan(const struct dt_session *session, const char *kind,
                          const struct dt_point *point)
{
    if (session->store.journal == NULL)
        return DT_OK;
    return add(session->store.journal, kind,
               json_pack("{s:o}", "plan", dt_point_json(session->target->space, point)));
}

static dt_status add_trial(const struct dt_session *session, const char *kind,
                           const struct dt_result *result)
{
    if (session->store.journal == NULL)
        return DT_OK;
    json_t *record = dt_raw_result(result, session->target);
    json_object_set_new(record, "looks", json_true());
    return add(session->store.journal, kind, record);
}

dt_status dt_history_trial(const struct dt_session *session, const struct dt_result *result)
{
    return add_trial(session, "trial", result);
}

dt_status dt_history_recheck(const struct dt_session *session, const struct dt_result *result)
{
    return add_trial(session, "recheck", result);
}

dt_status dt_history_visit(const struct dt_session *session, const struct dt_result *result)
{
    return add_trial(session, "visit", result);
}

static json_t *link_json(const struct dt_host_link *link)
{
    return link->known
               ? json_pack("{s:I, s:f}", "latency_ns", (json_int_t)llround(link->seconds * 1e9),
                           "bytes_per_second", link->bytes_per_second)
               : json_null();
}

dt_status dt_history_links(const struct dt_session *session, const struct dt_host_link *inside,
                           const struct dt_host_link *across)
{
    json_t *names = json_array();
    const struct dt_hosts *hosts = &session->target->hardware.hosts;
    for (int i = 0; i < hosts->count; i++)
        json_array_append_new(
            names, json_pack("{s:s, s:i}", "host", hosts->at[i].name, "slots", hosts->at[i].slots));
    json_t *record = json_pack("{s:o, s:o, s:o}", "hosts", names, "inside", link_json(inside),
                               "across", link_json(across));
    if (session->store.journal != NULL)
        return add(session->store.journal, "links", record);
    json_decref(record);
    return DT_OK;
}

dt_status dt_history_searched(const struct dt_session *session)
{
    if (session->store.journal == NULL)
        return DT_OK;
    return add(session->store.journal, "searched",
               json_pack("{s:s, s:b}", "search_note", session->search.note, "search_stopped",
                         session->search.stopped));
}

dt_status dt_history_sets(const struct dt_session *session, const struct dt_compared *compared)
{
    if (session->store.journal == NULL)
        return DT_OK;
    return add(session->store.journal, "sets", dt_raw_comparison(compared, session->target));
}

dt_status dt_history_copy(const struct dt_session *session, const json_t *record)
{
    static const char *const of_journal[] = {"v",         "seq",  "run", "t_wall_ns",
                                             "t_mono_ns", "kind", "crc"};
    if (session->store.journal == NULL || record == NULL)
        return DT_OK;
    json_t *copy = dt_json_copy(record);
    for (size_t i = 0; copy != NULL && i < sizeof of_journal / sizeof of_journal[0]; i++)
        json_object_del(copy, of_journal[i]);
    return add(session->store.journal, dt_json_text_at(record, "kind"), copy);
}

dt_status dt_history_comparison(const struct dt_session *session,
                                const struct dt_compared *compared)
{
    if (session->store.journal == NULL)
        return DT_OK;
    return add(session->store.journal, "comparison", dt_raw_comparison(compared, session->target));
}

static json_t *importance_json(const struct dt_session *session)
{
    const struct dt_space *space = session->target->space;
    json_t *object = session->search.weighed ? json_object() : json_null();
    for (int axis = 0; session->search.weighed && axis < dt_space_axes(space); axis++)
        json_object_set_new(object, dt_space_axis(space, axis)->name,
                            dt_json_number(session->search.importance[axis]));
    return object;
}

dt_status dt_history_end(const struct dt_session *session)
{
    const struct dt_rig *rig = &session->rig;
    json_t *unverified = json_array();
    if (session->store.journal == NULL)
        return DT_OK;
    for (int i = 0; i < rig->reference_count; i++)
        if (rig->references[i].failed)
            json_array_append_new(unverified,
                                  json_pack("{s:i, s:s}", "batch", rig->references[i].batch,
                                            "cause", rig->references[i].cause));
    return add(session->store.journal, "end",
               json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:o, s:s, s:o}", "search",
                         session->search.name, "search_reason", session->search.why, "search_note",
                         session->search.note, "search_stopped", session->search.stopped,
                         "elapsed_ns", (json_int_t)llround(session->clock.elapsed_seconds * 1e9),
                         "need_ns", (json_int_t)llround(session->clock.need_seconds * 1e9),
                         "compared_ns", (json_int_t)rig->compared_ns, "unverified", unverified,
                         "verdict", dt_verdict_text(session->verdict), "importance",
                         importance_json(session)));
}

dt_status dt_history_run(struct dt_journal *journal, const struct dt_target *target,
                         const struct dt_sweep *sweep, int value)
{
    if (journal == NULL)
        return DT_OK;
    json_t *record = dt_raw_target(target);
    json_object_set_new(record, "sweep",
                        value > 0 ? json_string(sweep->ranks ? "ranks" : "batch") : json_null());
    json_object_set_new(record, "value", json_integer(value));
    return add(journal, "run", record);
}

dt_status dt_history_left_out(struct dt_journal *journal, const struct dt_sweep *sweep, int value,
                              const char *reason)
{
    if (journal == NULL)
        return DT_OK;
    return add(journal, "left_out",
               json_pack("{s:s, s:i, s:s}", "sweep", sweep->ranks ? "ranks" : "batch", "value",
                         value, "reason", reason));
}

dt_status dt_history_measurement(struct dt_journal *journal, const struct dt_target *target,
                                 enum dt_entrant_role role, const struct dt_result *result)
{
    if (journal == NULL)
        return DT_OK;
    json_t *record = dt_raw_result(result, target);
    json_object_set_new(record, "looks", json_true());
    json_object_set_new(record, "role", json_string(dt_entrant_role_text(role)));
    return add(journal, "trial", record);
}
