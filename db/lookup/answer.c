/* SPDX-License-Identifier: MIT */
/* An answer and its sentence: what was measured, how it differs from the question, and which
 * entries were refused. */
#include "db/lookup/lookup_int.h"

#include "db/engines/engines.h"
#include "space/dit/dit.h"
#include "space/json/json.h"

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

/* ---- the sentence */

struct difference {
    unsigned miss;
    void (*add)(const struct dt_asked *asked, const json_t *entry, struct dt_text *out);
};

static const json_t *key_of(const json_t *entry, const char *field)
{
    return json_object_get(json_object_get(entry, "key"), field);
}

static const char *hard_of(const json_t *entry, const char *field)
{
    const json_t *hard = json_object_get(json_object_get(entry, "fingerprint"), "hard");
    const char *text = json_string_value(json_object_get(hard, field));
    return text != NULL ? text : "unknown";
}

static void device_add(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    (void)asked;
    const json_t *hard = json_object_get(json_object_get(entry, "fingerprint"), "hard");
    const json_t *gpus = json_object_get(hard, "gpus");
    dt_text_add(out, "on other hardware (%s, %lld %s)", hard_of(entry, "device"),
                (long long)json_integer_value(gpus != NULL ? gpus : json_object_get(hard, "cores")),
                gpus != NULL ? "GPUs" : "cores");
}

static void engine_add(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    const char *worker = json_string_value(key_of(entry, "worker"));
    const char *engine = json_string_value(json_object_get(asked->hard, "engine"));
    const char *mode = json_string_value(json_object_get(asked->hard, "mode"));
    dt_text_add(out, "by %s (%s%s%s), not by %s (%s)", hard_of(entry, "engine"),
                hard_of(entry, "mode"), worker != NULL ? ", worker " : "",
                worker != NULL ? worker : "", engine != NULL ? engine : "unknown",
                mode != NULL ? mode : "unknown");
}

static void unseen_add(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    const json_t *hard = json_object_get(json_object_get(entry, "fingerprint"), "hard");
    const char *devices = json_string_value(json_object_get(hard, "devices"));
    (void)asked;
    if (devices == NULL)
        dt_text_add(out, "on cores");
    else if (strcmp(devices, DT_DEVICES_UNKNOWN) == 0)
        dt_text_add(out, "on devices that its worker did not name");
    else
        dt_text_add(out, "on devices that only its worker can tell (%s)", devices);
}

static void devices_add(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    dt_text_add(out, "with %lld devices instead of %d",
                (long long)json_integer_value(key_of(entry, "devices")), asked->devices);
}

static void size_add(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    dt_text_add(out, "at %lld x %lld px instead of %d x %d",
                (long long)json_integer_value(key_of(entry, "width")) * DT_PIXELS_A_CELL,
                (long long)json_integer_value(key_of(entry, "height")) * DT_PIXELS_A_CELL,
                asked->workload.width * DT_PIXELS_A_CELL,
                asked->workload.height * DT_PIXELS_A_CELL);
}

static void list_add(const json_t *list, struct dt_text *out)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        dt_text_add(out, "%s%lld", i > 0 ? "," : "",
                    (long long)json_integer_value(json_array_get(list, i)));
}

static void batch_add(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    dt_text_add(out, "with batch ");
    list_add(key_of(entry, "batch"), out);
    dt_text_add(out, " instead of ");
    list_add(json_object_get(asked->key, "batch"), out);
}

static void limit_add(const char *name, const json_t *then, int64_t now, struct dt_text *out)
{
    dt_text_add(out, " %s ", name);
    if (then == NULL)
        dt_text_add(out, "none");
    else
        dt_text_add(out, "%lld", (long long)json_integer_value(then));
    if (now == 0)
        dt_text_add(out, " instead of none");
    else
        dt_text_add(out, " instead of %lld, which it keeps", (long long)now);
}

static void limits_add(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    const json_t *bytes = key_of(entry, "max_bytes"), *latency = key_of(entry, "max_latency_ns");
    const json_t *reserve = key_of(entry, "reserve_bytes");
    dt_text_add(out, "under other limits:");
    if (json_integer_value(bytes) != asked->max_bytes)
        limit_add("max_bytes", bytes, asked->max_bytes, out);
    if (json_integer_value(latency) != asked->max_latency_ns)
        limit_add("max_latency_ns", latency, asked->max_latency_ns, out);
    if (json_integer_value(reserve) != asked->reserve_bytes)
        limit_add("reserve_bytes", reserve, asked->reserve_bytes, out);
}

static void name_add(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    const char *name = json_string_value(key_of(entry, "model"));
    (void)asked;
    dt_text_add(out, "as '%s', the same network under another name",
                name != NULL ? name : "unknown");
}

static void space_add(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    DT_CLEANUP(dt_space_free_at) struct dt_space *was = NULL;
    size_t before = out->size;
    dt_text_add(out, "in a space ");
    size_t begin = out->size;
    if (asked->rules != NULL && dt_space_rules_from_json(json_object_get(entry, "space"),
                                                         "the entry's space", &was) == DT_OK)
        dt_space_changes(was, asked->rules, out);
    if (out->size == begin && begin > before)
        dt_text_add(out, "of another spelling");
}

static const struct difference differences[] = {
    {DT_MISS_MACHINE, device_add},  {DT_MISS_UNSEEN, unseen_add}, {DT_MISS_ENGINE, engine_add},
    {DT_MISS_DEVICES, devices_add}, {DT_MISS_SIZE, size_add},     {DT_MISS_BATCH, batch_add},
    {DT_MISS_LIMITS, limits_add},   {DT_MISS_NAME, name_add},     {DT_MISS_SPACE, space_add},
};

/* Why an entry that is marked as provisional decides nothing. */
static const char *provisional_text(const char *verdict)
{
    const char *why = dt_verdict_why(dt_verdict_of(verdict));
    return why != NULL ? why : dt_verdict_why(DT_VERDICT_PROVISIONAL);
}

void dt_reason_add(const struct dt_asked *asked, const struct dt_match *match, const json_t *entry,
                   const struct dt_fitted *fitted, struct dt_text *out)
{
    const char *verdict = json_string_value(json_object_get(entry, "verdict"));
    dt_text_add(out, "measured");
    if (match->misses == 0)
        dt_text_add(out, " for this very question on hardware of this make");
    const char *before = " ";
    for (size_t i = 0; i < sizeof differences / sizeof differences[0]; i++) {
        if ((match->misses & differences[i].miss) == 0)
            continue;
        dt_text_add(out, "%s", before);
        differences[i].add(asked, entry, out);
        before = ", ";
    }
    if (fitted->changed[0] != '\0')
        dt_text_add(out, "; %s", fitted->changed);
    if (match->provisional)
        dt_text_add(out, "; provisional: %s", provisional_text(verdict));
}

/* ---- the answer */

void dt_found_free(struct dt_found *found)
{
    if (found == NULL)
        return;
    if (!found->lent) {
        free(found->reason);
        free(found->refused);
        free(found->stored);
        json_decref(found->plan);
        json_decref(found->stale_reasons);
        json_decref(found->hint);
        json_decref(found->basis);
    }
    free(found);
}

void dt_answer_free(struct dt_answer *answer)
{
    dt_found_free((struct dt_found *)answer);
}

/* Sets the answer's pointers to the objects of found. */
static void found_show(struct dt_found *found, const struct dt_asked *asked, int64_t now_ns)
{
    struct dt_answer *answer = &found->answer;
    answer->reason = found->reason;
    answer->refused = found->refused;
    answer->plan = found->plan;
    answer->hint = found->hint;
    answer->stale_reasons = found->stale_reasons;
    answer->stale = json_array_size(found->stale_reasons) > 0;
    answer->key = asked->key;
    int64_t age = found->stored_ns > 0 ? now_ns - found->stored_ns : -1;
    answer->age_ns = found->stored_ns > 0 && age < 0 ? 0 : age; /* the clock was set back */
}

struct dt_found *dt_answer_lend(const struct dt_found *found, const struct dt_asked *asked,
                                int64_t now_ns)
{
    struct dt_found *lent = malloc(sizeof *lent);
    if (lent == NULL)
        return NULL;
    *lent = *found;
    lent->lent = true;
    found_show(lent, asked, now_ns);
    return lent;
}

/* Empties reason. */
static bool reason_take(struct dt_text *reason, const struct dt_refusals *refusals,
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

/* A plan fitted to another count of devices has no measurements. */
static void answer_describe(const struct dt_match *match, const json_t *entry, bool refit,
                            struct dt_found *found)
{
    struct dt_answer *answer = &found->answer;
    const struct dt_stored_entry *fields = found->stored;
    const json_t *fallback = fields->fallback.plan;
    answer->tier = match->tier;
    answer->distance = match->distance;
    answer->engine = json_string_value(json_object_get(fields->fingerprint.hard, "engine"));
    answer->mode = json_string_value(json_object_get(fields->fingerprint.hard, "mode"));
    answer->evidence = refit && match->tier == DT_TIER_SCALED ? tiers[DT_TIER_HEURISTIC].evidence
                                                              : tiers[match->tier].evidence;
    answer->entry = entry;
    answer->verdict = fields->verdict;
    answer->lost = fields->fingerprint.info.lost_ns > 0;
    if (match->provisional)
        answer->why_provisional = provisional_text(fields->verdict);
    if (match->tier == DT_TIER_PROXY || refit)
        return;
    answer->measured = fields;
    answer->is_default = fallback != NULL && json_equal(fallback, fields->plan);
}

dt_status dt_answer_of_entry(const struct dt_asked *asked, const struct dt_match *match,
                             const json_t *entry, struct dt_fitted *fitted,
                             const struct dt_refusals *refusals, struct dt_found **found)
{
    dt_auto_text reason = {0};
    struct dt_found *fresh = calloc(1, sizeof *fresh);
    dt_reason_add(asked, match, entry, fitted, &reason);
    if (fresh == NULL) {
        json_decref(fitted->plan);
        return dt_no_memory(DT_LOOKING_UP);
    }
    fresh->plan = fitted->plan;
    fresh->stored = malloc(sizeof *fresh->stored);
    fresh->stale_reasons = dt_stale_reasons(asked, json_object_get(entry, "fingerprint"));
    if (!reason_take(&reason, refusals, fresh) || fresh->stale_reasons == NULL ||
        fresh->stored == NULL) {
        dt_found_free(fresh);
        return dt_no_memory(DT_LOOKING_UP);
    }
    dt_record_read(&dt_record_stored_entry, entry, fresh->stored);
    fresh->stored_ns = match->stored_ns;
    answer_describe(match, entry, fitted->refit, fresh);
    found_show(fresh, asked, dt_asked_now(asked));
    *found = fresh;
    return DT_OK;
}

dt_status dt_answer_without(const struct dt_asked *asked, json_t *plan, json_t *hint,
                            const struct dt_refusals *refusals, struct dt_found **found)
{
    struct dt_text reason = {0};
    struct dt_found *fresh = calloc(1, sizeof *fresh);
    enum dt_tier tier = plan != NULL ? DT_TIER_HEURISTIC : DT_TIER_NONE;
    if (fresh == NULL) {
        json_decref(plan);
        json_decref(hint);
        return dt_no_memory(DT_LOOKING_UP);
    }
    dt_text_add(&reason, "nothing that fits was measured on this hardware");
    for (int i = 0; plan != NULL && i < DT_DEGREES; i++)
        dt_text_add(&reason, "%s%s", i == 0 ? "; by the default rule: " : ", then ",
                    dt_params[dt_degrees[dt_degrees_grown[i]].param].name);
    if (plan != NULL && asked->max_latency_ns > 0)
        dt_text_add(&reason, "; max_latency was not checked");
    fresh->plan = plan;
    fresh->hint = hint;
    fresh->stale_reasons = json_array();
    if (!reason_take(&reason, refusals, fresh) || fresh->stale_reasons == NULL) {
        dt_found_free(fresh);
        return dt_no_memory(DT_LOOKING_UP);
    }
    fresh->answer.tier = tier;
    fresh->answer.evidence = tiers[tier].evidence;
    fresh->answer.distance = NAN;
    found_show(fresh, asked, dt_asked_now(asked));
    *found = fresh;
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

static json_t *json_or_null(const json_t *value)
{
    return value != NULL ? json_incref((json_t *)value) : json_null();
}

static json_t *gain_json(const struct dt_answer *answer)
{
    const struct dt_gain *gain = answer->measured != NULL ? &answer->measured->gain : NULL;
    if (gain == NULL || !(gain->ratio > 0))
        return json_null();
    return json_pack("{s:f, s:o, s:i, s:s*}", "ratio", gain->ratio, "interval",
                     dt_kind_interval.write(&gain->interval), "pairs", gain->pairs, "over",
                     gain->over);
}

static json_t *image_json(const struct dt_answer *answer)
{
    const struct dt_stored_entry *entry = answer->measured;
    if (entry == NULL || !entry->image.known || entry->figures.median_ns <= 0)
        return json_null();
    return json_integer(dt_image_ns(&entry->image, entry->figures.median_ns,
                                    entry->figures.batch > 0 ? entry->figures.batch : 1));
}

void dt_answer_warning(const struct dt_answer *answer, struct dt_text *out)
{
    size_t before = out->size;
    if (answer->tier != DT_TIER_EXACT)
        dt_text_add(out, "this plan is of tier %s: %s", dt_tier_text(answer->tier), answer->reason);
    else if (answer->why_provisional != NULL)
        dt_text_add(out, "this plan is provisional: %s", answer->why_provisional);
    if (answer->stale)
        dt_text_add(out, "%sstale", out->size > before ? "; " : "this plan is ");
    for (size_t i = 0; i < json_array_size(answer->stale_reasons); i++)
        dt_text_add(out, "%s%s", i == 0 ? ": " : ", ",
                    json_string_value(json_array_get(answer->stale_reasons, i)));
}

/* null: nothing is to be said. */
static json_t *warning_json(const struct dt_answer *answer)
{
    dt_auto_text text = {0};
    dt_answer_warning(answer, &text);
    return text.size > 0 ? json_string(dt_text_at(&text)) : json_null();
}

bool dt_answer_meets(const struct dt_answer *answer, enum dt_tier tier, bool decided)
{
    return answer->tier >= tier && !(decided && (answer->why_provisional != NULL || answer->lost));
}

/* The same of each value of --require, the strictest first. */
static json_t *meets_json(const struct dt_answer *answer)
{
    json_t *meets = json_pack("{s:b}", "decided", dt_answer_meets(answer, DT_TIER_EXACT, true));
    for (int tier = DT_TIER_EXACT; tier >= DT_TIER_NONE; tier--)
        json_object_set_new(meets, dt_tier_text((enum dt_tier)tier),
                            json_boolean(dt_answer_meets(answer, (enum dt_tier)tier, false)));
    return meets;
}

json_t *dt_answer_json(const struct dt_answer *answer)
{
    const json_t *entry = answer->measured != NULL ? answer->entry : NULL;
    const json_t *figures = json_object_get(entry, "figures");
    json_t *age = answer->age_ns < 0 ? json_null() : json_integer(answer->age_ns / 1000000000);
    json_t *distance = dt_json_number(answer->distance);
    return json_pack(
        "{s:s, s:o, s:b, s:o, s:o, s:s, s:o, s:s?, s:b, s:o, s:s?, s:s?, s:s?, s:o, s:b, s:s?, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s?}",
        "tier", dt_tier_text(answer->tier), "meets", meets_json(answer), "stale",
        (int)answer->stale, "stale_reasons", json_or_null(answer->stale_reasons), "distance",
        distance, "reason", answer->reason, "warning", warning_json(answer), "refused",
        answer->refused, "lost", (int)answer->lost, "age_seconds", age, "evidence",
        answer->evidence, "engine", answer->engine, "mode", answer->mode, "gain", gain_json(answer),
        "provisional", answer->why_provisional != NULL, "verdict", answer->verdict, "median_ns",
        json_or_null(json_object_get(figures, "median_ns")), "interval_ns",
        json_or_null(json_object_get(figures, "interval_ns")), "image_ns", image_json(answer),
        "noise", json_or_null(json_object_get(entry, "noise")), "tried",
        json_or_null(json_object_get(entry, "tried")), "plans",
        json_or_null(json_object_get(entry, "plans")), "skipped",
        json_or_null(json_object_get(entry, "skipped")), "load",
        json_or_null(json_object_get(entry, "load")), "plan", json_or_null(answer->plan), "hint",
        json_or_null(answer->hint), "key", json_or_null(answer->key), "entry",
        json_or_null(answer->entry), "store", answer->store);
}
