/* SPDX-License-Identifier: MIT */
#include "tuner/cli/evidence/evidence.h"

#include "base/array.h"
#include "db/journal.h"
#include "model/cards/card.h"
#include "space/json/json.h"
#include "tuner/check/history/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fields of a key that do not change what a step of a plan takes. */
static bool is_same_work(const json_t *mine, const json_t *other)
{
    static const char *const free_to_differ[] = {
        "batch", "devices", "max_bytes", "max_latency_ns", "lossy", "objective", "space"};
    json_t *a = json_copy((json_t *)mine), *b = json_copy((json_t *)other);
    for (size_t i = 0; i < sizeof free_to_differ / sizeof free_to_differ[0]; i++) {
        json_object_del(a, free_to_differ[i]);
        json_object_del(b, free_to_differ[i]);
    }
    bool same = json_equal(a, b);
    json_decref(a);
    json_decref(b);
    return same;
}

static void visit(const json_t *record, void *context)
{
    struct dt_evidence *evidence = context;
    if (evidence->status == DT_OK)
        evidence->status = dt_replay_record(&evidence->replay, record, evidence->what);
}

/* Reads into *evidence, which must not move then. A journal that is missing, or not of a whole session, is no evidence. */
static dt_status open_run(const char *directory, const char *run, struct dt_evidence *evidence)
{
    struct dt_text path = {0};
    int bad;
    *evidence = (struct dt_evidence){.status = DT_OK};
    dt_text_add(&path, "%s/runs/%s.jsonl", directory, run);
    evidence->what = dt_text_at(&path);
    dt_status status = dt_journal_read(evidence->what, visit, evidence, &bad);
    evidence->what = NULL;
    dt_text_fini(&path);
    if (status == DT_OK && evidence->status == DT_OK && evidence->replay.target != NULL) {
        dt_replay_end(&evidence->replay);
        snprintf(evidence->run, sizeof evidence->run, "%s", run);
        return DT_OK;
    }
    bool lost = status == DT_ENOMEM || evidence->status == DT_ENOMEM;
    dt_evidence_fini(evidence);
    return lost ? DT_ENOMEM : DT_OK;
}

void dt_evidence_fini(struct dt_evidence *evidence)
{
    dt_replay_fini(&evidence->replay);
    *evidence = (struct dt_evidence){.status = DT_OK};
}

const struct dt_result *dt_evidence_trial(const struct dt_evidence *evidence, const json_t *plan)
{
    struct dt_point point;
    if (evidence->run[0] == '\0' || dt_point_read(evidence->replay.target->space, plan, &point) < 0)
        return NULL;
    return dt_session_trial(&evidence->replay.session, &point);
}

/* Moments of sessions, the newest first. */
struct moments {
    const struct dt_moment **at;
    int count;
};

static int by_age(const void *a, const void *b)
{
    int64_t one = (*(const struct dt_moment *const *)a)->t_wall_ns,
            other = (*(const struct dt_moment *const *)b)->t_wall_ns;
    return (one < other) - (one > other);
}

static dt_status add_moments(const struct dt_entry_timeline *line, struct moments *moments)
{
    for (int i = 0; i < line->count; i++) {
        if (line->moments[i].kind != DT_MOMENT_SESSION || line->moments[i].run[0] == '\0')
            continue;
        DT_TRY(DT_GROW(moments->at, moments->count, 1));
        moments->at[moments->count++] = &line->moments[i];
    }
    return DT_OK;
}

/* *evidence: the newest session that tried the plan, else the newest one. */
static dt_status choose(const char *directory, const struct moments *moments, const json_t *plan,
                        struct dt_evidence *evidence)
{
    const char *newest = NULL;
    for (int i = 0; i < moments->count; i++) {
        DT_TRY(open_run(directory, moments->at[i]->run, evidence));
        if (dt_evidence_trial(evidence, plan) != NULL)
            return DT_OK;
        newest = newest == NULL && evidence->run[0] != '\0' ? moments->at[i]->run : newest;
        dt_evidence_fini(evidence);
    }
    return newest != NULL ? open_run(directory, newest, evidence) : DT_OK;
}

/* Adds the moments of the lines that match, and sorts them. */
static dt_status add_lines(const struct dt_timelines *lines,
                           bool (*matches)(const struct dt_entry_timeline *line, const void *what),
                           const void *what, struct moments *moments)
{
    for (int i = 0; i < lines->count; i++)
        if (matches(&lines->lines[i], what))
            DT_TRY(add_moments(&lines->lines[i], moments));
    if (moments->count > 0)
        qsort(moments->at, (size_t)moments->count, sizeof *moments->at, by_age);
    return DT_OK;
}

static bool is_of_target(const struct dt_entry_timeline *line, const void *what)
{
    const struct dt_target *target = what;
    return is_same_work(target->identity.key, line->key) &&
           json_equal(target->identity.hard, line->hard);
}

dt_status dt_evidence_find(const char *directory, const struct dt_target *target,
                           const json_t *plan, struct dt_evidence *evidence)
{
    struct dt_timelines lines;
    struct moments moments = {.count = 0};
    const struct dt_moment_filter all = {.since_ns = INT64_MIN};
    *evidence = (struct dt_evidence){.status = DT_OK};
    DT_TRY(dt_timelines_read(directory, &all, &lines));
    dt_status status = add_lines(&lines, is_of_target, target, &moments);
    if (status == DT_OK)
        status = choose(directory, &moments, plan, evidence);
    free(moments.at);
    dt_timelines_fini(&lines);
    return status;
}

/* ---- of an engine whose worker is not asked */

struct engine {
    const char *name, *model;
};

/* A version behind the name does not count: workers store the name alone. */
static bool is_of_engine(const struct dt_entry_timeline *line, const void *what)
{
    const struct engine *engine = what;
    const char *stored = dt_json_text_at(line->hard, "engine");
    size_t size = strcspn(engine->name, ":");
    const char *model = dt_json_text_at(json_object_get(line->key, "job"), "model");
    return strlen(stored) == size && strncmp(stored, engine->name, size) == 0 &&
           strcmp(dt_card_full_name(model), dt_card_full_name(engine->model)) == 0;
}

/* *evidence: the newest session that tried the plan. */
static dt_status choose_tried(const char *directory, const struct moments *moments,
                              const char *plan, struct dt_evidence *evidence,
                              struct dt_point *point)
{
    for (int i = 0; i < moments->count; i++) {
        DT_TRY(open_run(directory, moments->at[i]->run, evidence));
        if (evidence->run[0] != '\0' &&
            dt_target_plan(evidence->replay.target, plan, point) == DT_OK &&
            dt_session_trial(&evidence->replay.session, point) != NULL)
            return DT_OK;
        dt_evidence_fini(evidence);
    }
    return DT_OK;
}

dt_status dt_evidence_of_engine(const char *directory, const char *engine, const char *model,
                                const char *plan, struct dt_evidence *evidence,
                                struct dt_point *point)
{
    struct dt_timelines lines;
    struct moments moments = {.count = 0};
    const struct dt_moment_filter all = {.since_ns = INT64_MIN};
    const struct engine what = {engine, model};
    *evidence = (struct dt_evidence){.status = DT_OK};
    DT_TRY(dt_timelines_read(directory, &all, &lines));
    dt_status status = add_lines(&lines, is_of_engine, &what, &moments);
    if (status == DT_OK)
        status = choose_tried(directory, &moments, plan, evidence, point);
    free(moments.at);
    dt_timelines_fini(&lines);
    return status;
}
