/* SPDX-License-Identifier: MIT */
#include "tuner/cli/evidence/evidence.h"

#include "base/figures.h"
#include "db/outline.h"
#include "model/cards/card.h"
#include "space/json/json.h"
#include "tuner/cli/report/report.h"
#include "tuner/cli/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the session */

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

/* Reads into *evidence, which must not move then. A journal that is missing, or not of a whole
 * session, is no evidence. */
static dt_status open_run(const char *directory, const char *run, struct dt_evidence *evidence)
{
    struct dt_text path = {0};
    evidence->run[0] = '\0';
    dt_journals_path(directory, run, &path);
    dt_status status = dt_replay_open(dt_text_at(&path), false, &evidence->replay);
    dt_text_fini(&path);
    if (status == DT_OK && evidence->replay.target != NULL)
        snprintf(evidence->run, sizeof evidence->run, "%s", run);
    else
        dt_evidence_fini(evidence);
    return status == DT_ENOMEM ? status : DT_OK;
}

void dt_evidence_fini(struct dt_evidence *evidence)
{
    dt_replay_fini(&evidence->replay);
    *evidence = (struct dt_evidence){.run = ""};
}

const struct dt_result *dt_evidence_trial(const struct dt_evidence *evidence, const json_t *plan)
{
    struct dt_point point;
    if (evidence->run[0] == '\0' || dt_point_read(evidence->replay.target->space, plan, &point) < 0)
        return NULL;
    return dt_session_trial(&evidence->replay.session, &point);
}

/* Sessions and the plan that is looked for in them: those of a target's work on its machine, or of
 * an engine with a model, whose worker is not asked. */
struct wanted {
    bool (*matches)(const struct wanted *wanted, const struct dt_outline *outline);
    bool (*tried)(const struct wanted *wanted, const struct dt_evidence *evidence);
    bool any; /* without a session that tried the plan: the newest one */
    const struct dt_target *target;
    const json_t *plan;
    const char *engine, *model, *words; /* the plan as text */
    struct dt_point *point;             /* set to that plan of the session */
};

static bool is_of_target(const struct wanted *wanted, const struct dt_outline *outline)
{
    return is_same_work(wanted->target->identity.key, outline->key) &&
           json_equal(wanted->target->identity.hard, json_object_get(outline->fingerprint, "hard"));
}

static bool tried_plan(const struct wanted *wanted, const struct dt_evidence *evidence)
{
    return dt_evidence_trial(evidence, wanted->plan) != NULL;
}

/* A version behind the name does not count: workers store the name alone. */
static bool is_of_engine(const struct wanted *wanted, const struct dt_outline *outline)
{
    const char *stored = dt_json_text_at(json_object_get(outline->fingerprint, "hard"), "engine");
    size_t size = strcspn(wanted->engine, ":");
    const char *model = dt_json_text_at(json_object_get(outline->key, "job"), "model");
    return strlen(stored) == size && strncmp(stored, wanted->engine, size) == 0 &&
           strcmp(dt_card_full_name(model), dt_card_full_name(wanted->model)) == 0;
}

static bool tried_words(const struct wanted *wanted, const struct dt_evidence *evidence)
{
    return evidence->run[0] != '\0' &&
           dt_target_plan(evidence->replay.target, wanted->words, wanted->point) == DT_OK &&
           dt_session_trial(&evidence->replay.session, wanted->point) != NULL;
}

/* From the newest session to the oldest. */
static dt_status find_evidence(const char *directory, const struct wanted *wanted,
                               struct dt_evidence *evidence)
{
    struct dt_journals runs = {.directory = directory};
    char newest[sizeof evidence->run] = "";
    bool found = false;
    *evidence = (struct dt_evidence){.run = ""};
    while (!found && dt_journals_next(&runs)) {
        struct dt_outline outline;
        dt_outline_first(runs.path, &outline);
        bool fits = strcmp(outline.kind, "session") == 0 && wanted->matches(wanted, &outline);
        dt_outline_fini(&outline);
        if (!fits)
            continue;
        runs.status = open_run(directory, runs.id, evidence);
        found = wanted->tried(wanted, evidence);
        if (newest[0] == '\0' && evidence->replay.session.count > 0)
            snprintf(newest, sizeof newest, "%s", evidence->run);
        if (!found)
            dt_evidence_fini(evidence);
    }
    DT_TRY(dt_journals_end(&runs));
    return !found && wanted->any && newest[0] != '\0' ? open_run(directory, newest, evidence)
                                                      : DT_OK;
}

dt_status dt_evidence_find(const char *directory, const struct dt_target *target,
                           const json_t *plan, struct dt_evidence *evidence)
{
    const struct wanted wanted = {
        .matches = is_of_target, .tried = tried_plan, .any = true, .target = target, .plan = plan};
    return find_evidence(directory, &wanted, evidence);
}

dt_status dt_evidence_of_engine(const char *directory, const char *engine, const char *model,
                                const char *plan, struct dt_evidence *evidence,
                                struct dt_point *point)
{
    const struct wanted wanted = {.matches = is_of_engine,
                                  .tried = tried_words,
                                  .engine = engine,
                                  .model = model,
                                  .words = plan,
                                  .point = point};
    return find_evidence(directory, &wanted, evidence);
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

static bool is_layout(const struct dt_space *space, int axis)
{
    enum dt_role role = dt_space_axis(space, axis)->role;
    return role == DT_ROLE_RANKS || role == DT_ROLE_LAYOUT;
}

static int differing_axis(const struct dt_space *space, const struct dt_point *a,
                          const struct dt_point *b)
{
    int found = NONE;
    for (int i = 0; i < dt_space_axes(space); i++) {
        if (dt_point_value(space, a, i) == dt_point_value(space, b, i))
            continue;
        int axis = is_layout(space, i) ? LAYOUT : i;
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
    json_t *plan = dt_point_json(space, shown);
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
    json_decref(plan);
}

/* What the plan's own value is worth: "saves", "costs", "equal" (the intervals overlap),
 * "unsure" (one of them has too few samples for an interval, as when it was dropped early), or
 * how the other ended. */
static const char *judge(const struct dt_session *session, const struct dt_result *mine,
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
    const char *effect = judge(session, mine, other);
    struct dt_text theirs = {0}, own = {0};
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
    dt_text_fini(&theirs);
    dt_text_fini(&own);
    return row;
}

static json_t *add_neighbours(const struct dt_session *session, const struct dt_result *mine,
                              struct dt_text *out)
{
    json_t *rows = json_array();
    struct neighbour *list;
    int n = find_neighbours(session, &mine->point, &list);
    struct dt_text rest = {0};
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
    dt_text_fini(&rest);
    free(list);
    return rows;
}

/* The prior's ratio to the default plan, and with a measured default the time that follows. */
static json_t *add_predicted(const struct dt_evidence *evidence, const struct dt_target *target,
                             const struct dt_point *point, struct dt_text *out)
{
    struct dt_belief belief;
    if (dt_belief_init(&belief, target, NULL) < 0)
        return json_null();
    const struct dt_prior *prior = dt_belief_prior(&belief);
    const struct dt_result *known =
        evidence->run[0] != '\0' ? dt_session_role(&evidence->replay.session, DT_ENTRANT_DEFAULT)
                                 : NULL;
    double ratio =
        prior != NULL && target->plans != 0
            ? prior->value(prior->context, point) / prior->value(prior->context, &target->fallback)
            : NAN;
    bool one = dt_target_batch(target, point) == dt_target_batch(target, &target->fallback);
    double seconds = known != NULL && one && known->samples.n > 0 &&
                             target->objective == evidence->replay.target->objective &&
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
            if (paired)
                dt_text_add(out,
                            "against the default: %.3f [%.3f, %.3f] times as fast in %d pairs of "
                            "%d sets; ",
                            1 / ratio->ratio, 1 / ratio->interval.high, 1 / ratio->interval.low,
                            ratio->pairs, ratio->sets);
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

static json_t *add_measured(const struct dt_evidence *evidence, const struct dt_result *trial,
                            struct dt_text *out)
{
    const struct dt_session *session = &evidence->replay.session;
    struct dt_text versus = {0};
    dt_text_add(out, "measured: ");
    if (trial->samples.n > 0)
        dt_figure_value(session->target->objective->metric, trial->summary.median,
                        trial->summary.interval.low, trial->summary.interval.high, out);
    else
        dt_text_add(out, "%s: %s", dt_outcome_text(trial->outcome), trial->cause);
    dt_text_add(out, ", in a trial of session %s\n", evidence->run);
    json_t *object = json_pack("{s:s, s:s, s:o, s:o}", "session", evidence->run, "outcome",
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
    dt_text_fini(&versus);
    return object;
}

json_t *dt_evidence_plan(const struct dt_evidence *evidence, const struct dt_target *target,
                         const struct dt_point *point, struct dt_text *out)
{
    json_t *plan = dt_point_json(target->space, point);
    const struct dt_result *trial = dt_evidence_trial(evidence, plan);
    json_t *object = json_pack("{s:o}", "predicted", add_predicted(evidence, target, point, out));
    json_decref(plan);
    if (trial != NULL)
        json_object_set_new(object, "measured", add_measured(evidence, trial, out));
    else {
        json_object_set_new(object, "measured", json_null());
        dt_text_add(out, "measured: not in %s; 'dittune run' measures it\n",
                    evidence->run[0] != '\0' ? "any session of this work on this machine"
                                             : "the store: it has no session of this work on this "
                                               "machine");
    }
    return object;
}
