/* SPDX-License-Identifier: MIT */
#include "tuner/cli/evidence/evidence.h"

#include "base/figures.h"
#include "db/outline.h"
#include "model/cards/card.h"
#include "space/json/json.h"
#include "tuner/cli/report/report.h"
#include "tuner/cli/words.h"
#include "tuner/session/tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the session */

/* Fields of a key that do not change what a step of a plan takes. */
static bool is_same_work(const json_t *mine, const json_t *other)
{
    static const char *const free_to_differ[] = {"batch",          "devices",       "max_bytes",
                                                 "max_latency_ns", "reserve_bytes", "lossy",
                                                 "objective",      "space"};
    json_auto_t *a = dt_json_copy(mine), *b = dt_json_copy(other);
    for (size_t i = 0; i < sizeof free_to_differ / sizeof free_to_differ[0]; i++) {
        json_object_del(a, free_to_differ[i]);
        json_object_del(b, free_to_differ[i]);
    }
    bool same = json_equal(a, b);
    return same;
}

static bool is_wanted(const struct dt_evidence *wanted, const struct dt_outline *outline)
{
    const json_t *hard = json_object_get(outline->fingerprint, "hard");
    if (strcmp(outline->kind, "session") != 0)
        return false;
    if (wanted->target != NULL)
        return is_same_work(wanted->target->identity.key, outline->key) &&
               dt_stored_same_hard(wanted->target->identity.hard, hard);
    const char *engine = dt_json_text_at(hard, "engine");
    const char *model = dt_json_text_at(json_object_get(outline->key, "job"), "model");
    size_t size = strcspn(wanted->engine, ":"); /* workers store no version */
    return strlen(engine) == size && strncmp(engine, wanted->engine, size) == 0 &&
           strcmp(dt_card_full_name(model), dt_card_full_name(wanted->model)) == 0;
}

/* A trial that was cut off before it had samples says nothing. */
static bool has_tried(const struct dt_evidence *wanted, const struct dt_replay *replay,
                      struct dt_point *point)
{
    if (dt_replay_target(replay) == NULL)
        return false;
    dt_status status = wanted->words != NULL
                           ? dt_target_plan(dt_replay_target(replay), wanted->words, point)
                           : dt_point_read(dt_replay_target(replay)->space, wanted->plan, point);
    const struct dt_result *trial =
        status == DT_OK ? dt_session_trial(replay->session, point) : NULL;
    return trial != NULL && (trial->samples.n > 0 || trial->outcome != DT_TRIAL_INTERRUPTED);
}

/* A journal that cannot be read is no evidence. */
static dt_status session_open(const char *path, struct dt_replay *replay)
{
    dt_status status = dt_replay_open(path, false, replay);
    if (status < 0)
        dt_replay_fini(replay);
    return status == DT_ENOMEM ? status : DT_OK;
}

dt_status dt_evidence_find(const char *directory, const struct dt_evidence *wanted,
                           struct dt_replay *replay, struct dt_point *point)
{
    struct dt_journals runs = {.directory = directory};
    dt_auto_text newest = {0};
    bool found = false;
    *replay = (struct dt_replay){.log = NULL};
    while (!found && dt_journals_next(&runs)) {
        struct dt_outline outline;
        dt_outline_first(runs.path, &outline);
        bool fits = is_wanted(wanted, &outline);
        dt_outline_fini(&outline);
        if (!fits)
            continue;
        runs.status = session_open(runs.path, replay);
        found = has_tried(wanted, replay, point);
        if (newest.size == 0 && dt_replay_target(replay) != NULL && replay->session->count > 0)
            dt_text_add(&newest, "%s", runs.path);
        if (!found)
            dt_replay_fini(replay);
    }
    dt_status status = dt_journals_end(&runs);
    if (status == DT_OK && !found && wanted->target != NULL && newest.size > 0)
        status = session_open(dt_text_at(&newest), replay);
    return status;
}

/* ---- a plan against those that differ from it in one parameter: degrees and ranks are bound by a
 * product, so plans that differ in these alone count as differing in the layout; each is a trial of
 * the same session, and the intervals are of single starts */

enum { LAYOUT = -1, NONE = -2, ROWS_MOST = 24 };

struct neighbour {
    const struct dt_result *result;
    int axis; /* in which it differs; LAYOUT: in several of the ranks and degrees */
    double value;
};

static int differing_axis(const struct dt_space *space, const struct dt_point *a,
                          const struct dt_point *b)
{
    int found = NONE;
    for (int i = 0; i < dt_space_axes(space); i++) {
        if (dt_point_value(space, a, i) == dt_point_value(space, b, i))
            continue;
        enum dt_role role = dt_space_axis(space, i)->role;
        bool shares = role == DT_ROLE_RANKS || role == DT_ROLE_LAYOUT || role == DT_ROLE_REPLICAS;
        int axis = shares ? LAYOUT : i;
        if (found != NONE && (found != axis || axis != LAYOUT))
            return NONE;
        found = axis;
    }
    return found;
}

/* By parameter, the fastest first; those that failed last. */
static int by_axis(const void *a, const void *b)
{
    const struct neighbour *one = a, *other = b;
    if (one->axis != other->axis)
        return (one->axis > other->axis) - (one->axis < other->axis);
    return isnan(one->value) - isnan(other->value)
               ? isnan(one->value) - isnan(other->value)
               : (one->value > other->value) - (one->value < other->value);
}

static int find_neighbours(const struct dt_session *session, const struct dt_point *point,
                           struct neighbour **list)
{
    int n = 0;
    *list = calloc((size_t)session->count + 1, sizeof **list);
    for (int i = 0; i < session->count && *list != NULL; i++) {
        const struct dt_result *result = &session->trials[i];
        int axis = differing_axis(session->target->space, point, &result->point);
        if (axis != NONE && dt_session_counts(session, i) &&
            result->outcome != DT_TRIAL_INTERRUPTED)
            (*list)[n++] = (struct neighbour){result, axis, dt_session_value(session, result)};
    }
    if (n > 0)
        qsort(*list, (size_t)n, sizeof **list, by_axis);
    return n;
}

/* "ulysses=2 ring=1": its values where it differs. */
static void add_values(const struct dt_space *space, const struct dt_point *mine,
                       const struct dt_point *shown, struct dt_text *out)
{
    json_auto_t *plan = dt_point_json(space, shown);
    const char *before = "";
    for (int i = 0; i < dt_space_axes(space); i++) {
        if (dt_point_value(space, mine, i) == dt_point_value(space, shown, i) ||
            !dt_point_has(space, shown, i))
            continue;
        const char *name = dt_space_axis(space, i)->name;
        dt_text_add(out, "%s%s=", before, name);
        dt_json_plain(json_object_get(plan, name), out);
        before = " ";
    }
}

/* The worth of the plan's own value: "saves", "costs", "equal" (the intervals overlap),
 * "unsure" (one of them has too few samples for an interval, as when it was dropped early), or
 * how the other ended. */
static const char *judge_neighbour(const struct dt_session *session, const struct dt_result *mine,
                                   const struct neighbour *other)
{
    struct dt_trial a = dt_result_trial(mine, session->target),
                    b = dt_result_trial(other->result, session->target);
    if (isnan(other->value))
        return dt_outcome_text(other->result->outcome);
    if (!isfinite(a.low) || !isfinite(a.high) || !isfinite(b.low) || !isfinite(b.high))
        return "unsure";
    if (!(a.high < b.low) && !(b.high < a.low))
        return "equal";
    return a.high < b.low ? "saves" : "costs";
}

static json_t *add_neighbour(const struct dt_session *session, const struct dt_result *mine,
                             const struct neighbour *other, struct dt_text *out)
{
    const struct dt_space *space = session->target->space;
    double share = dt_session_value(session, mine) / other->value - 1;
    const char *effect = judge_neighbour(session, mine, other);
    dt_auto_text theirs = {0}, own = {0};
    add_values(space, &mine->point, &other->result->point, &theirs);
    add_values(space, &other->result->point, &mine->point, &own);
    dt_text_add(out, "  %s: ", dt_text_at(&theirs));
    if (isnan(other->value))
        dt_text_add(out, "%s\n", effect);
    else {
        dt_figure_value(session->target->objective->metric, other->result->summary.median, NAN, NAN,
                        out);
        if (strcmp(effect, "equal") == 0)
            dt_text_add(out, ", not told apart from %s\n", dt_text_at(&own));
        else if (strcmp(effect, "unsure") == 0)
            dt_text_add(out, ", %s %s %s by too few samples for an interval\n", dt_text_at(&own),
                        share < 0 ? "saves" : "costs", dt_figure_percent(fabs(share)).text);
        else
            dt_text_add(out, ", %s %s %s\n", dt_text_at(&own), effect,
                        dt_figure_percent(fabs(share)).text);
    }
    json_t *row = json_pack(
        "{s:s, s:o, s:s, s:o, s:o}", "parameter",
        other->axis == LAYOUT ? "layout" : dt_space_axis(space, other->axis)->name, "plan",
        dt_point_json(space, &other->result->point), "effect", effect, "median_seconds",
        dt_json_number(isnan(other->value) ? NAN : other->result->summary.median), "share",
        dt_json_number(share));
    return row;
}

static json_t *add_neighbours(const struct dt_session *session, const struct dt_result *mine,
                              struct dt_text *out)
{
    json_t *rows = json_array();
    struct neighbour *list;
    int n = find_neighbours(session, &mine->point, &list);
    dt_auto_text rest = {0};
    if (n > 0)
        dt_text_add(out, "what differs in one parameter, in a trial of the same session each "
                         "(unpaired):\n");
    else
        dt_text_add(out, "no plan that differs from it in one parameter was tried\n");
    for (int i = 0; i < n; i++)
        json_array_append_new(rows,
                              add_neighbour(session, mine, &list[i], i < ROWS_MOST ? out : &rest));
    if (n > ROWS_MOST)
        dt_text_add(out, "  and %d more: --json has them\n", n - ROWS_MOST);
    free(list);
    return rows;
}

/* The prior's ratio to the default plan, and with a measured default the time that follows. */
static json_t *add_predicted(const struct dt_replay *replay, const struct dt_target *target,
                             const struct dt_point *point, struct dt_text *out)
{
    struct dt_belief belief;
    if (dt_belief_init(&belief, target, NULL) < 0)
        return json_null();
    const struct dt_prior *prior = dt_belief_prior(&belief);
    const struct dt_result *known = dt_replay_target(replay) != NULL
                                        ? dt_session_role(replay->session, DT_ENTRANT_DEFAULT)
                                        : NULL;
    double ratio =
        prior != NULL && target->plans != 0
            ? prior->value(prior->context, point) / prior->value(prior->context, &target->fallback)
            : NAN;
    bool one = dt_target_batch(target, point) == dt_target_batch(target, &target->fallback);
    double seconds = known != NULL && one && known->samples.n > 0 &&
                             target->objective == dt_replay_target(replay)->objective &&
                             target->objective->one_batch
                         ? ratio * known->summary.median
                         : NAN;
    json_t *object = json_null();
    if (isfinite(ratio)) {
        dt_text_add(out, "predicted: %.3g times the default plan's time by %s", ratio, belief.name);
        if (isfinite(seconds)) {
            dt_text_add(out, ", or ");
            dt_figure_value(target->objective->metric, seconds, NAN, NAN, out);
        }
        dt_text_add(out, "\n");
        object = json_pack("{s:s, s:f, s:o}", "by", belief.name, "over_default", ratio, "seconds",
                           dt_json_number(seconds));
    }
    dt_belief_fini(&belief);
    return object;
}

static void add_against_default(const struct dt_session *session, const struct dt_result *mine,
                                struct dt_text *out)
{
    const struct dt_space *space = session->target->space;
    const struct dt_result *known = dt_session_role(session, DT_ENTRANT_DEFAULT);
    bool paired = false;
    if (dt_point_equal(space, &mine->point, &session->target->fallback)) {
        dt_text_add(out, "it is the default plan; ");
    } else {
        for (int i = 0; i < session->finals.entrant_count && !paired; i++) {
            const struct dt_ratio *ratio = &session->finals.entrants[i].ratio;
            paired = ratio->pairs > 0 && dt_session_against_default(session) &&
                     dt_point_equal(space, &mine->point, &session->finals.entrants[i].point);
            if (!paired)
                continue;
            dt_text_add(out, "against the default: ");
            dt_figure_ratio(1 / ratio->ratio, 1 / ratio->interval.high, 1 / ratio->interval.low,
                            out);
            dt_text_add(out, " times as fast in %d pairs of %d sets; ", ratio->pairs, ratio->sets);
        }
        if (!paired && known != NULL && isfinite(dt_session_value(session, known)) &&
            mine->samples.n > 0)
            dt_text_add(out,
                        "against the default: %.3f times its time in one trial each (unpaired: "
                        "not evidence; dittune --against compares); ",
                        dt_session_value(session, mine) / dt_session_value(session, known));
    }
    dt_text_add(out, "the session's verdict: %s. How sure: ", dt_verdict_text(session->verdict));
    dt_words_sure(session, out);
}

static json_t *add_measured(const struct dt_replay *replay, const struct dt_result *trial,
                            struct dt_text *out)
{
    const struct dt_session *session = replay->session;
    dt_auto_text versus = {0};
    dt_text_add(out, "measured: ");
    if (trial->samples.n > 0)
        dt_figure_value(session->target->objective->metric, trial->summary.median,
                        trial->summary.interval.low, trial->summary.interval.high, out);
    else
        dt_text_add(out, "%s: %s", dt_outcome_text(trial->outcome), trial->cause);
    dt_text_add(out, ", in a trial of session %s\n", session->id);
    json_t *object = json_pack("{s:s, s:s, s:o, s:o}", "session", session->id, "outcome",
                               dt_outcome_text(trial->outcome), "median_seconds",
                               dt_json_number(trial->samples.n > 0 ? trial->summary.median : NAN),
                               "interval_seconds",
                               json_pack("[o,o]", dt_json_number(trial->summary.interval.low),
                                         dt_json_number(trial->summary.interval.high)));
    json_object_set_new(object, "neighbours",
                        trial->samples.n > 0 ? add_neighbours(session, trial, out) : json_array());
    add_against_default(session, trial, &versus);
    json_object_set_new(object, "against_default", json_string(dt_text_at(&versus)));
    dt_text_add(out, "%s\n", dt_text_at(&versus));
    return object;
}

json_t *dt_evidence_plan(const struct dt_replay *replay, const struct dt_target *target,
                         const struct dt_point *point, struct dt_text *out)
{
    json_auto_t *plan = dt_point_json(target->space, point);
    const struct dt_result *trial = NULL;
    struct dt_point tried;
    if (dt_replay_target(replay) != NULL &&
        dt_point_read(dt_replay_target(replay)->space, plan, &tried) == DT_OK)
        trial = dt_session_trial(replay->session, &tried);
    json_t *object = json_pack("{s:o}", "predicted", add_predicted(replay, target, point, out));
    if (trial != NULL)
        json_object_set_new(object, "measured", add_measured(replay, trial, out));
    else {
        json_object_set_new(object, "measured", json_null());
        dt_text_add(out, "measured: not in %s; 'dittune run' measures it\n",
                    dt_replay_target(replay) != NULL
                        ? "any session of this work on this machine"
                        : "the store: it has no session of this work on this "
                          "machine");
    }
    return object;
}
