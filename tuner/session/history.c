/* SPDX-License-Identifier: MIT */
#include "tuner/session/history.h"

#include "space/json/json.h"
#include "tuner/measure/measure.h"
#include "tuner/session/session_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing */

/* Consumes the record; does nothing without a journal. */
static dt_status journal_add(struct dt_journal *journal, const char *kind, json_t *record)
{
    dt_status status = journal == NULL  ? DT_OK
                       : record == NULL ? dt_fail(DT_ENOMEM, "out of memory")
                                        : dt_journal_add(journal, kind, record);
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
    if (session->opts.list.works > 1)
        json_object_set_new(
            identity, "list",
            json_pack("{s:s, s:i, s:i}", "id",
                      session->opts.list.id[0] != '\0' ? session->opts.list.id : session->store.id,
                      "work", session->opts.list.work, "works", session->opts.list.works));
    return journal_add(session->store.journal, "session", identity);
}

dt_status dt_history_search(const struct dt_session *session, const struct dt_search_opts *opts)
{
    return journal_add(session->store.journal, "search",
                       json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:i}", "search",
                                 session->search.name, "search_reason", session->search.why,
                                 "prior", session->search.belief.name, "known",
                                 dt_raw_points(session->target->space, session->search.known,
                                               session->search.known_count),
                                 "evaluations", (json_int_t)opts->evaluations, "left_ns",
                                 (json_int_t)llround(opts->seconds * 1e9), "capacity_bytes",
                                 (json_int_t)opts->capacity_bytes, "in_a_row",
                                 opts->groups->in_a_row));
}

dt_status dt_history_resumed(const struct dt_session *session)
{
    return journal_add(session->store.journal, "resumed",
                       json_pack("{s:s, s:I}", "of", session->resume.id, "spent_ns",
                                 (json_int_t)session->resume.spent_ns));
}

dt_status dt_history_taken(const struct dt_session *session)
{
    return journal_add(session->store.journal, "taken",
                       json_pack("{s:s, s:i}", "of", session->resume.id, "trials", session->count));
}

dt_status dt_history_plan(const struct dt_session *session, const char *kind,
                          const struct dt_point *point)
{
    return journal_add(session->store.journal, kind,
                       json_pack("{s:o}", "plan", dt_point_json(session->target->space, point)));
}

static json_t *looks_json(const struct dt_result *result, const struct dt_target *target)
{
    json_t *record = dt_raw_result(result, target);
    json_object_set_new(record, "looks", json_true());
    return record;
}

dt_status dt_history_result(const struct dt_session *session, const char *kind,
                            const struct dt_result *result)
{
    return journal_add(session->store.journal, kind, looks_json(result, session->target));
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
    return journal_add(session->store.journal, "links", record);
}

dt_status dt_history_searched(const struct dt_session *session)
{
    return journal_add(session->store.journal, "searched",
                       json_pack("{s:s, s:b}", "search_note", session->search.note,
                                 "search_stopped", session->search.stopped));
}

dt_status dt_history_copy(const struct dt_session *session, const json_t *record)
{
    return record == NULL ? DT_OK
                          : journal_add(session->store.journal, dt_json_text_at(record, "kind"),
                                        dt_journal_bare(record));
}

dt_status dt_history_comparison(const struct dt_session *session, const char *kind,
                                const struct dt_compared *compared)
{
    return journal_add(session->store.journal, kind, dt_raw_comparison(compared, session->target));
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
    for (int i = 0; i < rig->reference_count; i++)
        if (rig->references[i].failed)
            json_array_append_new(unverified,
                                  json_pack("{s:i, s:s}", "batch", rig->references[i].batch,
                                            "cause", rig->references[i].cause));
    return journal_add(
        session->store.journal, "end",
        json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:o, s:s, s:o}", "search",
                  session->search.name, "search_reason", session->search.why, "search_note",
                  session->search.note, "search_stopped", session->search.stopped, "elapsed_ns",
                  (json_int_t)llround(session->clock.elapsed_seconds * 1e9), "need_ns",
                  (json_int_t)llround(session->clock.need_seconds * 1e9), "compared_ns",
                  (json_int_t)rig->compared_ns, "unverified", unverified, "verdict",
                  dt_verdict_text(session->verdict), "importance", importance_json(session)));
}

dt_status dt_history_run(struct dt_journal *journal, const struct dt_target *target,
                         const struct dt_sweep *sweep, int value)
{
    json_t *record = dt_raw_target(target);
    json_object_set_new(record, "sweep",
                        value > 0 ? json_string(sweep->ranks ? "ranks" : "batch") : json_null());
    json_object_set_new(record, "value", json_integer(value));
    return journal_add(journal, "run", record);
}

dt_status dt_history_left_out(struct dt_journal *journal, const struct dt_sweep *sweep, int value,
                              const char *reason)
{
    return journal_add(journal, "left_out",
                       json_pack("{s:s, s:i, s:s}", "sweep", sweep->ranks ? "ranks" : "batch",
                                 "value", value, "reason", reason));
}

dt_status dt_history_measurement(struct dt_journal *journal, const struct dt_target *target,
                                 enum dt_entrant_role role, const struct dt_result *result)
{
    json_t *record = looks_json(result, target);
    json_object_set_new(record, "role", json_string(dt_entrant_role_text(role)));
    return journal_add(journal, "trial", record);
}

/* ---- reading a session back */

static dt_status read_session(struct dt_replay *replay, const json_t *record, const char *what)
{
    struct dt_session *session = &replay->session;
    const json_t *against = json_object_get(record, "against");
    const char *run;
    if (replay->target != NULL)
        return dt_fail(DT_EUSAGE, "%s: a second session in one file", what);
    DT_TRY(dt_json_string(record, what, "run", &run));
    DT_TRY(dt_json_int(record, what, "max_latency_ns", 0, INT64_MAX, &replay->job.max_latency_ns));
    DT_TRY(dt_raw_read_target(record, what, &replay->target));
    session->finals.best = -1;
    session->job = &replay->job;
    session->target = replay->target;
    snprintf(session->store.id, sizeof session->store.id, "%s", run);
    if (against == NULL || json_is_null(against))
        return DT_OK;
    session->has_against = true;
    return dt_point_read(replay->target->space, against, &session->against);
}

static dt_status trial_read(struct dt_session *session, const json_t *record, const char *what,
                            struct dt_result *result)
{
    DT_TRY(dt_raw_read_result(record, what, session->target, result));
    result->throttling.clocks = &session->rig.clocks;
    if (result->report.request_count > 0)
        DT_TRY(dt_raw_finish_trial(record, what, result));
    DT_TRY(dt_clocks_learn(result->throttling.clocks, result));
    return dt_session_keep(session, result);
}

static dt_status apply_trial(struct dt_session *session, const json_t *record, const char *what)
{
    struct dt_result result;
    dt_status status = trial_read(session, record, what, &result);
    if (status < 0)
        dt_result_fini(&result);
    return status;
}

static dt_status apply_undone(struct dt_session *session, const json_t *record, const char *what)
{
    struct dt_point point;
    (void)what;
    DT_TRY(dt_point_read(session->target->space, json_object_get(record, "plan"), &point));
    dt_session_undo(session, &point);
    return DT_OK;
}

static dt_status apply_comparison(struct dt_session *session, const json_t *record,
                                  const char *what)
{
    struct dt_entrant entrants[DT_ENTRANTS];
    struct dt_compared compared = {.entrants = entrants, .clocks = &session->rig.clocks};
    dt_status status = dt_raw_read_comparison(record, what, session->target, &compared);
    bool last = status == DT_OK && strcmp(compared.name, "final comparison") == 0;
    if (status == DT_OK && session->finals.entrant_count > 0)
        dt_verdict_again(session);
    if (status < 0 || !last) {
        if (status == DT_OK && compared.complete && compared.count > 1)
            dt_verdict_choose(session, entrants, compared.count);
        if (status == DT_OK && compared.complete)
            dt_entry_keep_shots(session, entrants, compared.count);
        for (int i = 0; i < compared.count; i++)
            dt_entrant_fini(&entrants[i]);
        return status;
    }
    memcpy(session->finals.entrants, entrants, (size_t)compared.count * sizeof entrants[0]);
    session->finals.entrant_count = compared.count;
    session->finals.sets = compared.sets;
    dt_verdict_decide(session);
    dt_verdict_settle(session);
    return DT_OK;
}

static dt_status apply_search(struct dt_session *session, const json_t *record, const char *what)
{
    const char *search, *why, *prior;
    json_t *known;
    DT_TRY(dt_json_string(record, what, "search", &search));
    DT_TRY(dt_json_string(record, what, "search_reason", &why));
    DT_TRY(dt_json_string(record, what, "prior", &prior));
    DT_TRY(dt_json_array(record, what, "known", &known));
    snprintf(session->search.name, sizeof session->search.name, "%s", search);
    snprintf(session->search.why, sizeof session->search.why, "%s", why);
    snprintf(session->search.belief.name, sizeof session->search.belief.name, "%s", prior);
    session->search.known_count =
        dt_raw_read_points(known, session->target->space, session->search.known, DT_KNOWN);
    return DT_OK;
}

/* Sessions of few plans have none. */
static void read_importance(struct dt_session *session, const json_t *shares)
{
    const struct dt_space *space = session->target->space;
    const int axes = dt_space_axes(space);
    int known = 0;
    for (int axis = 0; axis < axes; axis++) {
        const json_t *share = json_object_get(shares, dt_space_axis(space, axis)->name);
        double value = json_is_number(share) ? json_number_value(share) : NAN;
        session->search.importance[axis] = value;
        known += value >= 0 && value <= 1;
    }
    session->search.weighed = axes > 0 && known == axes;
}

static dt_status apply_end(struct dt_session *session, const json_t *record, const char *what)
{
    const char *search, *why;
    int64_t elapsed_ns;
    json_t *unverified;
    DT_TRY(dt_json_string(record, what, "search", &search));
    DT_TRY(dt_json_string(record, what, "search_reason", &why));
    DT_TRY(dt_json_int(record, what, "elapsed_ns", 0, INT64_MAX, &elapsed_ns));
    DT_TRY(dt_json_array(record, what, "unverified", &unverified));
    snprintf(session->search.name, sizeof session->search.name, "%s", search);
    snprintf(session->search.why, sizeof session->search.why, "%s", why);
    snprintf(session->search.note, sizeof session->search.note, "%s",
             dt_json_text_at(record, "search_note"));
    session->search.stopped = json_is_true(json_object_get(record, "search_stopped"));
    session->clock.elapsed_seconds = (double)elapsed_ns * 1e-9;
    session->clock.need_seconds = json_number_value(json_object_get(record, "need_ns")) / 1e9;
    read_importance(session, json_object_get(record, "importance"));
    for (size_t i = 0; i < json_array_size(unverified) && i < DT_RIG_REFERENCES; i++) {
        const json_t *row = json_array_get(unverified, i);
        struct dt_reference *reference = &session->rig.references[i];
        const char *cause;
        int64_t batch;
        DT_TRY(dt_json_int(row, what, "batch", 1, INT32_MAX, &batch));
        DT_TRY(dt_json_string(row, what, "cause", &cause));
        reference->batch = (int)batch;
        reference->failed = true;
        snprintf(reference->cause, sizeof reference->cause, "%s", cause);
        session->rig.reference_count = (int)i + 1;
    }
    return DT_OK;
}

dt_status dt_session_apply(struct dt_session *session, const json_t *record, const char *what)
{
    static const struct {
        const char *kind;
        dt_status (*apply)(struct dt_session *session, const json_t *record, const char *what);
    } kinds[] = {{"search", apply_search},
                 {"trial", apply_trial},
                 {"undone", apply_undone},
                 {"comparison", apply_comparison},
                 {"end", apply_end}};
    const char *kind;
    DT_TRY(dt_json_string(record, what, "kind", &kind));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            return session->target != NULL
                       ? kinds[i].apply(session, record, what)
                       : dt_fail(DT_ECORRUPT, "%s: a '%s' record before the record of its session",
                                 what, kind);
    return DT_OK;
}

dt_status dt_replay_record(struct dt_replay *replay, const json_t *record, const char *what)
{
    const char *kind = dt_json_text_at(record, "kind");
    if (strcmp(kind, "session") == 0)
        return read_session(replay, record, what);
    DT_TRY(dt_session_apply(&replay->session, record, what));
    replay->ended = replay->ended || strcmp(kind, "end") == 0;
    return DT_OK;
}

void dt_replay_end(struct dt_replay *replay)
{
    dt_verdict_settle(&replay->session);
    dt_verdict_end(&replay->session);
}

dt_status dt_replay_open(const char *path, bool foreign, struct dt_replay *replay)
{
    struct dt_journal_reader reader = {.path = path, .foreign = foreign};
    *replay = (struct dt_replay){.target = NULL};
    while (dt_journal_next(&reader)) {
        if (replay->first == NULL)
            replay->first = json_incref(reader.record);
        if (strcmp(dt_json_text_at(replay->first, "kind"), "session") != 0)
            break;
        reader.status = dt_replay_record(replay, reader.record, path);
    }
    replay->damaged = reader.damaged;
    DT_TRY(dt_journal_end(&reader));
    if (replay->target != NULL)
        dt_replay_end(replay);
    return DT_OK;
}

void dt_replay_fini(struct dt_replay *replay)
{
    dt_session_fini(&replay->session);
    dt_clocks_fini(&replay->session.rig.clocks);
    dt_target_free(replay->target);
    replay->target = NULL;
    json_decref(replay->first);
    replay->first = NULL;
}

/* ---- reading a run back */

/* Like dt_measure_processes: a single process, or the first failed one, is the result. */
static dt_status run_join(struct dt_replay_run *run, struct dt_result *result)
{
    struct dt_result *last = &run->parts[run->count - 1];
    if (run->count > 1 && last->outcome == DT_TRIAL_OK) {
        dt_result_init(result, run->target, &last->point);
        return dt_processes_join(run->parts, run->count, result);
    }
    *result = *last;
    *last = (struct dt_result){0};
    return DT_OK;
}

static void run_forget_plan(struct dt_replay_run *run)
{
    for (int i = 0; i < run->count; i++)
        dt_result_fini(&run->parts[i]);
    run->count = 0;
    dt_result_fini(&run->one);
    run->one = (struct dt_result){0};
    dt_clocks_fini(&run->clocks);
    dt_target_free(run->target);
    run->target = NULL;
}

dt_status dt_replay_run_end(struct dt_replay_run *run)
{
    struct dt_result result = {0};
    if (run->target == NULL && run->any)
        return DT_OK; /* the last step was left out */
    if (run->count == 0)
        return dt_fail(DT_EUSAGE, "the file ends before the plan was measured");
    dt_status status = run_join(run, &result);
    bool left_out = run->sweep.values.count > 0 && result.outcome != DT_TRIAL_OK;
    if (status == DT_OK && !left_out) /* its reason follows in a separate record */
        status = dt_result_status(&result);
    if (status == DT_OK && !left_out) {
        run->any = true;
        run->measured(run->context, &result, &run->one, run->target);
    }
    dt_result_fini(&result);
    run_forget_plan(run);
    return status;
}

/* The facts about a sweep that each of its records has. */
static void run_read_sweep(struct dt_replay_run *run, const json_t *record, int64_t value)
{
    const char *sweep = json_string_value(json_object_get(record, "sweep"));
    struct dt_ints *values = &run->sweep.values;
    if (sweep == NULL || values->count == DT_LIST_MAX)
        return;
    run->sweep.ranks = strcmp(sweep, "ranks") == 0;
    values->values[values->count++] = (int)value;
}

/* It may have a record of kind "run" before this one, when it was measured and failed. */
static dt_status run_read_left_out(struct dt_replay_run *run, const json_t *record,
                                   const char *what)
{
    const char *reason;
    int64_t value;
    if (run->target != NULL && run->count > 0)
        DT_TRY(dt_replay_run_end(run));
    run_forget_plan(run);
    DT_TRY(dt_json_int(record, what, "value", 0, INT32_MAX, &value));
    DT_TRY(dt_json_string(record, what, "reason", &reason));
    run_read_sweep(run, record, value);
    run->any = true;
    run->left_out(run->context, &run->sweep, (int)value, reason);
    return DT_OK;
}

static dt_status run_read_begin(struct dt_replay_run *run, const json_t *record, const char *what)
{
    int64_t value;
    if (run->target != NULL)
        DT_TRY(dt_replay_run_end(run));
    DT_TRY(dt_json_int(record, what, "value", 0, INT32_MAX, &value));
    if (run->parts == NULL)
        run->parts = calloc(DT_PROCESSES_MOST, sizeof *run->parts);
    if (run->parts == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    run_read_sweep(run, record, value);
    return dt_raw_read_target(record, what, &run->target);
}

static dt_status run_read_measurement(struct dt_replay_run *run, const json_t *record,
                                      const char *what)
{
    const char *text;
    enum dt_entrant_role role;
    DT_TRY(dt_json_string(record, what, "role", &text));
    DT_TRY(dt_entrant_role_find(what, text, &role));
    bool plan = role == DT_ENTRANT_PLAN;
    if (run->target == NULL || (plan ? run->count == DT_PROCESSES_MOST : run->one.report.steps > 0))
        return dt_fail(DT_EUSAGE, "%s: one measurement too many", what);
    struct dt_result *result = plan ? &run->parts[run->count++] : &run->one;
    DT_TRY(dt_raw_read_result(record, what, run->target, result));
    result->throttling.clocks = &run->clocks;
    if (result->report.request_count == 0 && result->outcome == DT_TRIAL_OK)
        return dt_fail(DT_EUSAGE, "%s: the outcome is ok, but there are no 'requests'", what);
    if (result->report.request_count > 0)
        DT_TRY(dt_raw_finish_trial(record, what, result));
    return dt_clocks_learn(&run->clocks, result);
}

dt_status dt_replay_run_record(struct dt_replay_run *run, const json_t *record, const char *what)
{
    const char *kind;
    DT_TRY(dt_json_string(record, what, "kind", &kind));
    if (strcmp(kind, "run") == 0)
        return run_read_begin(run, record, what);
    if (strcmp(kind, "left_out") == 0)
        return run_read_left_out(run, record, what);
    return strcmp(kind, "trial") == 0 ? run_read_measurement(run, record, what) : DT_OK;
}

void dt_replay_run_fini(struct dt_replay_run *run)
{
    run_forget_plan(run);
    free(run->parts);
    *run = (struct dt_replay_run){0};
}

/* ---- reviving a session that was killed */

/* A killed session stored no result, but its trials are in its journal: they give the provisional entry that the
 * session would have stored. Key and fingerprint are those of its first record, not of the machine that reads it. */

/* A completed final comparison has a verdict that its session did not store any more. */
static json_t *revive_entry(struct dt_replay *replay)
{
    static const char *const copied[] = {"fingerprint", "network", "space"};
    struct dt_session *session = &replay->session;
    const struct dt_result *best = dt_session_best(session);
    if (best == NULL || !dt_session_eligible(session, best))
        return NULL;
    session->verdict = DT_VERDICT_PROVISIONAL;
    replay->target->identity.hard =
        json_incref(json_object_get(json_object_get(replay->first, "fingerprint"), "hard"));
    json_t *entry = dt_entry(session);
    for (size_t i = 0; entry != NULL && i < sizeof copied / sizeof copied[0]; i++)
        if (json_object_get(replay->first, copied[i]) != NULL)
            json_object_set(entry, copied[i], json_object_get(replay->first, copied[i]));
    return entry;
}

dt_status dt_revive(const char *path, json_t **entry)
{
    struct dt_replay replay;
    *entry = NULL;
    dt_status status = dt_replay_open(path, false, &replay);
    const json_t *fingerprint = json_object_get(replay.first, "fingerprint");
    if (status == DT_OK && replay.target != NULL && !replay.ended &&
        json_is_object(json_object_get(replay.first, "key")) &&
        json_is_object(json_object_get(fingerprint, "hard")))
        *entry = revive_entry(&replay);
    dt_replay_fini(&replay);
    return status == DT_EIO || status == DT_ENOMEM ? status : DT_OK;
}
