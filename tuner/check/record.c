/* SPDX-License-Identifier: MIT */
#include "tuner/check/check.h"

#include "tuner/session/session.h"

#include <math.h>
#include <string.h>

static json_t *nanoseconds(double seconds)
{
    return isfinite(seconds) && seconds > 0 ? json_integer((json_int_t)llround(seconds * 1e9))
                                            : json_null();
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

static double median_of(const struct dt_entrant *entrant)
{
    return entrant->result.n > 0 ? entrant->result.summary.median : NAN;
}

/* The visits in whole nanoseconds, null where a visit failed or was not made: every figure follows from them. */
static json_t *visits(const struct dt_entrant *entrant, const struct dt_sets *sets)
{
    json_t *list = json_array();
    for (int k = 0; k < dt_sets_rounds(sets); k++)
        json_array_append_new(list, nanoseconds(entrant->visits[k]));
    return list;
}

static json_t *interval_json(const struct dt_ratio *ratio)
{
    return isfinite(ratio->interval.high)
               ? json_pack("[f,f]", ratio->interval.low, ratio->interval.high)
               : json_null();
}

static json_t *rival_json(const struct dt_check_entry *entry, int i)
{
    const struct dt_check_rival *rival = &entry->judge.rivals[i];
    const struct dt_entrant *entrant = &entry->entrants[i + 1];
    bool failed = entrant->result.outcome != DT_TRIAL_OK;
    const char *verdict = dt_check_verdict_text(rival->out ? DT_CHECK_NOT_CHECKED : rival->verdict);
    const char *reason = failed                   ? entrant->result.cause
                         : rival->out             ? "it takes longer than the entry allows"
                         : entry->entrants[0].out ? "it ran, the tuned plan did not"
                                                  : NULL;
    return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "role",
                     dt_entrant_role_text(entrant->role), "plan",
                     dt_point_json(entry->target->space, &entrant->point), "verdict", verdict,
                     "reason", text_or_null(reason), "ratio", number(rival->ratio.ratio),
                     "interval", interval_json(&rival->ratio), "pairs", rival->ratio.pairs,
                     "median_ns", nanoseconds(median_of(entrant)), "cv", number(rival->cv),
                     "visits_ns", visits(entrant, &entry->sets));
}

/* The reason why --against is not a rival of this entry. */
static json_t *against_json(const struct dt_check_entry *entry)
{
    return json_pack("{s:s, s:n, s:s, s:s, s:n, s:n, s:i, s:n}", "role",
                     dt_entrant_role_text(DT_ENTRANT_AGAINST), "plan", "verdict",
                     dt_check_verdict_text(DT_CHECK_UNSUPPORTED), "reason", entry->against, "ratio",
                     "interval", "pairs", 0, "median_ns");
}

static json_t *rivals_json(const struct dt_check_entry *entry)
{
    json_t *list = json_array();
    for (int i = 0; i < entry->judge.count; i++)
        json_array_append_new(list, rival_json(entry, i));
    if (entry->against[0] != '\0')
        json_array_append_new(list, against_json(entry));
    return list;
}

static int rival_of_role(const struct dt_check_entry *entry, enum dt_entrant_role role)
{
    for (int i = 0; i < entry->judge.count; i++)
        if (entry->entrants[i + 1].role == role)
            return i;
    return -1;
}

/* The default over the tuned plan: above 1 is a gain. */
static json_t *gain_now(const struct dt_check_entry *entry)
{
    int i = rival_of_role(entry, DT_ENTRANT_DEFAULT);
    struct dt_gain gain = dt_gain_of(i >= 0 ? &entry->judge.rivals[i].ratio : NULL);
    return dt_record_json(&dt_record_gain, &gain);
}

static double default_now(const struct dt_check_entry *entry)
{
    int i = rival_of_role(entry, DT_ENTRANT_DEFAULT);
    if (i >= 0)
        return median_of(&entry->entrants[i + 1]);
    bool same = entry->count > 0 && dt_point_equal(entry->target->space, &entry->entrants[0].point,
                                                   &entry->target->fallback);
    return same ? median_of(&entry->entrants[0]) : NAN;
}

/* Rounds of each set. */
static json_t *sets_json(const struct dt_sets *sets)
{
    json_t *list = json_array();
    for (int s = 0; s < sets->count; s++)
        json_array_append_new(list, json_integer(sets->rounds[s]));
    return list;
}

static void add_measured(const struct dt_check_entry *entry, json_t *record)
{
    const struct dt_check_judge *judge = &entry->judge;
    const struct dt_entrant *tuned = &entry->entrants[0];
    json_object_set_new(record, "tuned_ns", nanoseconds(median_of(tuned)));
    json_object_set_new(record, "default_ns", nanoseconds(default_now(entry)));
    json_object_set_new(record, "gain_now", gain_now(entry));
    json_object_set_new(record, "cv", number(judge->cv));
    json_object_set_new(record, "margin", number(judge->margin));
    json_object_set_new(record, "limit", number(judge->limit));
    json_object_set_new(record, "rounds", json_integer(dt_sets_rounds(&entry->sets)));
    json_object_set_new(record, "sets", sets_json(&entry->sets));
    json_object_set_new(record, "seed", json_integer((json_int_t)entry->seed));
    json_object_set_new(record, "visits_ns", visits(tuned, &entry->sets));
    if (entry->twin)
        json_object_set_new(record, "twin_visits_ns",
                            visits(&entry->entrants[entry->count - 1], &entry->sets));
}

static void add_nothing_measured(json_t *record)
{
    static const char *const names[] = {"tuned_ns", "default_ns", "gain_now",
                                        "cv",       "margin",     "limit"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        json_object_set_new(record, names[i], json_null());
    json_object_set_new(record, "rounds", json_integer(0));
}

json_t *dt_check_successors(const struct dt_check_entry *again)
{
    json_t *list = json_array();
    for (int i = 0; i < again->count; i++) {
        const struct dt_entrant *entrant = &again->entrants[i];
        const struct dt_ratio *ratio = &entrant->ratio;
        const char *cause = entrant->out ? entrant->result.cause : NULL;
        json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o, s:o, s:i, s:o, s:o}", "role",
                                              dt_entrant_role_text(entrant->role), "plan",
                                              dt_point_json(again->target->space, &entrant->point),
                                              "reason", text_or_null(cause), "ratio",
                                              number(ratio->ratio), "interval",
                                              interval_json(ratio), "pairs", ratio->pairs,
                                              "median_ns", nanoseconds(median_of(entrant)),
                                              "visits_ns", visits(entrant, &again->sets)));
    }
    return list;
}

static json_t *replaced_by(const struct dt_check_entry *entry)
{
    bool replaced = entry->updated != NULL && strcmp(entry->updated, "replaced") == 0;
    return replaced ? json_incref(json_object_get(entry->best, "plan")) : json_null();
}

json_t *dt_check_record(const struct dt_check_entry *entry)
{
    const json_t *stored = entry->item->stored;
    const struct dt_stored_entry *fields = &entry->item->entry;
    json_t *gain = json_object_get(stored, "gain");
    json_t *then = json_object_get(json_object_get(stored, "default"), "median_ns");
    json_t *record = json_pack(
        "{s:O?, s:O, s:O?, s:s, s:s, s:o, s:O?, s:o, s:O?, s:O?, s:f, s:f, s:o, s:b, s:s?, s:o, "
        "s:O?}",
        "id", json_object_get(stored, "id"), "key", fields->key, "hard", fields->fingerprint.hard,
        "title", entry->item->title, "verdict", dt_check_verdict_text(entry->verdict), "reason",
        text_or_null(entry->reason), "plan", json_object_get(stored, "plan"), "rivals",
        rivals_json(entry), "default_then_ns", then, "gain_then", gain, "threshold",
        entry->opts->threshold, "lose_alpha", entry->judge.lose_alpha, "soft_changed",
        entry->changed != NULL ? json_incref(entry->changed) : json_array(), "searched_again", 0,
        "updated", entry->updated, "note", text_or_null(entry->note), "soft", entry->soft);
    json_object_set_new(record, "replaced_by", replaced_by(entry));
    json_object_set(record, "successors",
                    entry->successors != NULL ? entry->successors : json_null());
    if (record != NULL && entry->sets.count > 0)
        add_measured(entry, record);
    else if (record != NULL)
        add_nothing_measured(record);
    return record;
}
