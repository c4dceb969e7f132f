/* SPDX-License-Identifier: MIT */
#include "space/json/json.h"
#include "tuner/session/history.h"
#include "tuner/session/session_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

static dt_status read_trial(struct dt_replay *replay, const json_t *record, const char *what)
{
    struct dt_result result;
    dt_status status = dt_raw_read_result(record, what, replay->target, &result);
    result.throttling.clocks = &replay->session.rig.clocks;
    if (status == DT_OK && result.report.request_count > 0)
        status = dt_raw_finish_trial(record, what, &result);
    if (status == DT_OK)
        status = dt_clocks_learn(result.throttling.clocks, &result);
    if (status == DT_OK)
        status = dt_session_keep(&replay->session, &result);
    if (status < 0)
        dt_result_fini(&result);
    return status;
}

static dt_status read_undone(struct dt_replay *replay, const json_t *record, const char *what)
{
    struct dt_session *session = &replay->session;
    struct dt_point point;
    (void)what;
    DT_TRY(dt_point_read(replay->target->space, json_object_get(record, "plan"), &point));
    dt_session_undo(session, &point);
    return DT_OK;
}

static void free_entrants(struct dt_compared *compared)
{
    for (int i = 0; i < compared->count; i++)
        dt_entrant_fini(&compared->entrants[i]);
}

static dt_status read_comparison(struct dt_replay *replay, const json_t *record, const char *what)
{
    struct dt_session *session = &replay->session;
    struct dt_entrant entrants[DT_ENTRANTS];
    struct dt_compared compared = {.entrants = entrants, .clocks = &session->rig.clocks};
    dt_status status = dt_raw_read_comparison(record, what, replay->target, &compared);
    bool last = status == DT_OK && strcmp(compared.name, "final comparison") == 0;
    if (status == DT_OK && session->finals.entrant_count > 0)
        dt_verdict_again(session);
    if (status < 0 || !last) {
        if (status == DT_OK && compared.complete && compared.count > 1)
            dt_verdict_choose(session, entrants, compared.count);
        if (status == DT_OK && compared.complete)
            dt_entry_keep_shots(session, entrants, compared.count);
        free_entrants(&compared);
        return status;
    }
    memcpy(session->finals.entrants, entrants, (size_t)compared.count * sizeof entrants[0]);
    session->finals.entrant_count = compared.count;
    session->finals.sets = compared.sets;
    dt_verdict_decide(session);
    dt_verdict_settle(session);
    return DT_OK;
}

dt_status dt_replay_search(struct dt_session *session, const json_t *record, const char *what)
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

/* Older journals have no such record: their end record has a part of it. */
static dt_status read_search(struct dt_replay *replay, const json_t *record, const char *what)
{
    return dt_replay_search(&replay->session, record, what);
}

/* Older journals have none, and sessions of few plans. */
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

static dt_status read_end(struct dt_replay *replay, const json_t *record, const char *what)
{
    struct dt_session *session = &replay->session;
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
    session->clock.need_seconds =
        json_number_value(json_object_get(record, "need_ns")) / 1e9; /* older journals have none */
    read_importance(session, json_object_get(record, "importance"));
    replay->ended = true;
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

dt_status dt_replay_record(struct dt_replay *replay, const json_t *record, const char *what)
{
    static const struct {
        const char *kind;
        dt_status (*read)(struct dt_replay *replay, const json_t *record, const char *what);
    } kinds[] = {{"session", read_session}, {"search", read_search},         {"trial", read_trial},
                 {"undone", read_undone},   {"comparison", read_comparison}, {"end", read_end}};
    const char *kind;
    DT_TRY(dt_json_string(record, what, "kind", &kind));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].kind, kind) == 0) {
            if (replay->target == NULL && kinds[i].read != read_session)
                return dt_fail(DT_ECORRUPT, "%s: a '%s' record before the record of its session",
                               what, kind);
            return kinds[i].read(replay, record, what);
        }
    return DT_OK;
}

void dt_replay_end(struct dt_replay *replay)
{
    dt_verdict_settle(&replay->session);
    dt_verdict_end(&replay->session);
}

void dt_replay_fini(struct dt_replay *replay)
{
    dt_session_fini(&replay->session);
    dt_clocks_fini(&replay->session.rig.clocks);
    dt_target_free(replay->target);
    replay->target = NULL;
}
