/* SPDX-License-Identifier: MIT */
#include "db/lookup/answer_int.h"

#include "db/engines/engines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *evidence;
} tiers[] = {
    [DT_TIER_NONE] = {"none", NULL},       [DT_TIER_HEURISTIC] = {"heuristic", "predicted"},
    [DT_TIER_PROXY] = {"proxy", "proxy"},  [DT_TIER_SCALED] = {"scaled", "measured"},
    [DT_TIER_NEAR] = {"near", "measured"}, [DT_TIER_EXACT] = {"exact", "measured"},
};

const char *dt_tier_text(enum dt_tier tier)
{
    return tiers[tier].name;
}

dt_status dt_tier_find(const char *what, const char *name, enum dt_tier *tier)
{
    for (int i = DT_TIER_NONE; i <= DT_TIER_EXACT; i++) {
        if (strcmp(tiers[i].name, name) == 0) {
            *tier = (enum dt_tier)i;
            return DT_OK;
        }
    }
    return dt_fail(DT_EUSAGE,
                   "%s is '%.40s', expected decided, exact, near, scaled, proxy, heuristic or none",
                   what, name);
}

void dt_found_free(struct dt_found *found)
{
    if (found == NULL)
        return;
    if (!found->lent) {
        free(found->reason);
        free(found->refused);
        json_decref(found->plan);
        json_decref(found->stale_reasons);
        json_decref(found->hint);
    }
    free(found);
}

void dt_answer_free(struct dt_answer *answer)
{
    dt_found_free((struct dt_found *)answer);
}

/* Sets the answer's pointers to the objects of found. */
static void show(struct dt_found *found, const struct dt_query *query)
{
    struct dt_answer *answer = &found->answer;
    answer->reason = found->reason;
    answer->refused = found->refused;
    answer->plan = found->plan;
    answer->hint = found->hint;
    answer->stale_reasons = found->stale_reasons;
    answer->stale = json_array_size(found->stale_reasons) > 0;
    answer->key = query->asked.key;
    int64_t age = found->stored_ns > 0 ? dt_query_now(query) - found->stored_ns : -1;
    answer->age_ns = found->stored_ns > 0 && age < 0 ? 0 : age; /* the clock was set back */
}

struct dt_found *dt_answer_lend(const struct dt_found *found, const struct dt_query *query)
{
    struct dt_found *lent = malloc(sizeof *lent);
    if (lent == NULL)
        return NULL;
    *lent = *found;
    lent->lent = true;
    show(lent, query);
    return lent;
}

/* Empties reason. */
static bool take_reason(struct dt_text *reason, const struct dt_refusals *refusals,
                        struct dt_found *found)
{
    bool refused = refusals->text.size > 0;
    if (refused) {
        dt_text_add(reason, "; refused before it: %s", dt_text_at(&refusals->text));
        found->refused = strdup(dt_text_at(&refusals->text));
    }
    found->reason = dt_text_take(reason);
    return found->reason != NULL && !refusals->text.failed && (!refused || found->refused != NULL);
}

/* Reads the figures of exactly this plan. */
static void read_figures(const struct dt_stored_entry *entry, struct dt_answer *answer)
{
    const json_t *fallback = entry->fallback.plan;
    if (entry->gain.ratio > 0)
        answer->measured.gain = entry->gain;
    answer->is_default = fallback != NULL && json_equal(fallback, entry->plan);
    answer->measured.known = true;
    answer->measured.median_ns = entry->figures.known ? entry->figures.median_ns : 0;
    answer->measured.batch = entry->figures.known ? entry->figures.batch : 0;
    answer->measured.image = entry->image;
    answer->measured.noise_margin = entry->noise.known ? entry->noise.margin : 0;
    answer->measured.resolution = entry->resolution;
    answer->measured.tried = entry->tried;
    answer->measured.plans = entry->plans;
    answer->measured.skipped = entry->skipped;
    answer->measured.warnings = entry->figures.warnings;
    answer->measured.load = entry->load;
    answer->measured.fallback = entry->fallback;
}

/* A plan fitted to another count of devices has no measurements. */
static void describe(const struct dt_match *match, const json_t *entry, bool refit,
                     struct dt_answer *answer)
{
    struct dt_stored_entry fields;
    dt_record_read(&dt_record_stored_entry, entry, &fields);
    answer->tier = match->tier;
    answer->distance = match->distance;
    answer->engine = json_string_value(json_object_get(fields.fingerprint.hard, "engine"));
    answer->mode = json_string_value(json_object_get(fields.fingerprint.hard, "mode"));
    answer->evidence = refit && match->tier == DT_TIER_SCALED ? tiers[DT_TIER_HEURISTIC].evidence
                                                              : tiers[match->tier].evidence;
    answer->entry = entry;
    answer->verdict = fields.verdict;
    answer->lost = dt_stale_by_loss(json_object_get(entry, "fingerprint"));
    if (match->provisional)
        answer->why_provisional = dt_reason_provisional(dt_verdict_of(fields.verdict));
    if (match->tier != DT_TIER_PROXY && !refit)
        read_figures(&fields, answer);
}

dt_status dt_answer_of_entry(const struct dt_query *query, const struct dt_match *match,
                             const json_t *entry, struct dt_fitted *fitted,
                             const struct dt_refusals *refusals, struct dt_found **found)
{
    struct dt_text reason = {0};
    struct dt_found *made = calloc(1, sizeof *made);
    dt_reason_add(query, match, entry, fitted, &reason);
    if (made == NULL) {
        json_decref(fitted->plan);
        dt_text_fini(&reason);
        return dt_lookup_no_memory();
    }
    made->plan = fitted->plan;
    made->stale_reasons = dt_stale_reasons(query, json_object_get(entry, "fingerprint"));
    if (!take_reason(&reason, refusals, made) || made->stale_reasons == NULL) {
        dt_found_free(made);
        return dt_lookup_no_memory();
    }
    made->stored_ns = match->stored_ns;
    describe(match, entry, fitted->refit, &made->answer);
    show(made, query);
    *found = made;
    return DT_OK;
}

dt_status dt_answer_without(const struct dt_query *query, json_t *plan, json_t *hint,
                            const struct dt_refusals *refusals, struct dt_found **found)
{
    struct dt_text reason = {0};
    struct dt_found *made = calloc(1, sizeof *made);
    enum dt_tier tier = plan != NULL ? DT_TIER_HEURISTIC : DT_TIER_NONE;
    if (made == NULL) {
        json_decref(plan);
        json_decref(hint);
        return dt_lookup_no_memory();
    }
    dt_text_add(&reason, "nothing that fits was measured on this hardware");
    for (int i = 0; plan != NULL && i < DT_DEGREES; i++)
        dt_text_add(&reason, "%s%s", i == 0 ? "; by the default rule: " : ", then ",
                    dt_params[dt_degrees[dt_degrees_grown[i]].param].name);
    if (plan != NULL && query->asked.max_latency_ns > 0)
        dt_text_add(&reason, "; max_latency was not checked");
    made->plan = plan;
    made->hint = hint;
    made->stale_reasons = json_array();
    if (!take_reason(&reason, refusals, made) || made->stale_reasons == NULL) {
        dt_found_free(made);
        return dt_lookup_no_memory();
    }
    made->answer.tier = tier;
    made->answer.evidence = tiers[tier].evidence;
    made->answer.distance = NAN;
    show(made, query);
    *found = made;
    return DT_OK;
}

void dt_answer_export(const struct dt_answer *answer, struct dt_export_request *request)
{
    const json_t *fingerprint = json_object_get(answer->entry, "fingerprint");
    const json_t *key = json_object_get(answer->entry, "key");
    request->plan = answer->plan;
    request->key = answer->key;
    request->hard = json_object_get(fingerprint, "hard");
    if (json_object_get(key, "worker") == NULL)
        return;
    request->key = key; /* the question may have a part of the job only */
    request->constants = json_object_get(json_object_get(answer->entry, "space"), "constants");
    request->checkpoint = json_string_value(json_object_get(json_object_get(key, "job"), "model"));
}

static json_t *borrowed(const json_t *value)
{
    return value != NULL ? json_incref((json_t *)value) : json_null();
}

static json_t *gain_json(const struct dt_answer *answer)
{
    const struct dt_gain *gain = &answer->measured.gain;
    if (!gain->known)
        return json_null();
    return json_pack("{s:f, s:o, s:i}", "ratio", gain->ratio, "interval",
                     dt_kind_interval.write(&gain->interval), "pairs", gain->pairs);
}

static json_t *image_json(const struct dt_answer *answer)
{
    int64_t step_ns = answer->measured.median_ns;
    int batch = answer->measured.batch > 0 ? answer->measured.batch : 1;
    if (!answer->measured.known || !answer->measured.image.known || step_ns <= 0)
        return json_null();
    return json_integer(dt_image_ns(&answer->measured.image, step_ns, batch));
}

json_t *dt_answer_json(const struct dt_answer *answer)
{
    const json_t *entry = answer->measured.known ? answer->entry : NULL;
    const json_t *figures = json_object_get(entry, "figures");
    json_t *age = answer->age_ns < 0 ? json_null() : json_integer(answer->age_ns / 1000000000);
    json_t *distance = dt_json_number(answer->distance);
    return json_pack(
        "{s:s, s:b, s:o, s:o, s:s, s:o, s:s?, s:s?, s:s?, s:o, s:b, s:s?, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "tier", dt_tier_text(answer->tier), "stale", (int)answer->stale, "stale_reasons",
        borrowed(answer->stale_reasons), "distance", distance, "reason", answer->reason,
        "age_seconds", age, "evidence", answer->evidence, "engine", answer->engine, "mode",
        answer->mode, "gain", gain_json(answer), "provisional", answer->why_provisional != NULL,
        "verdict", answer->verdict, "median_ns", borrowed(json_object_get(figures, "median_ns")),
        "interval_ns", borrowed(json_object_get(figures, "interval_ns")), "image_ns",
        image_json(answer), "noise", borrowed(json_object_get(entry, "noise")), "tried",
        borrowed(json_object_get(entry, "tried")), "plans",
        borrowed(json_object_get(entry, "plans")), "skipped",
        borrowed(json_object_get(entry, "skipped")), "load",
        borrowed(json_object_get(entry, "load")), "plan", borrowed(answer->plan), "hint",
        borrowed(answer->hint), "key", borrowed(answer->key), "entry", borrowed(answer->entry));
}
