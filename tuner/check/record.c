/* SPDX-License-Identifier: MIT */
#include "tuner/check/check.h"

#include "space/json/json.h"
#include "tuner/session/session.h"

#include <math.h>

DT_LIST_KIND(successors);

#include "base/record_rows.h"

#include "tuner/check/check.def"

static int64_t ns_of(double seconds)
{
    return seconds > 0 ? dt_ns_of(seconds) : DT_NO_NS;
}

static const char *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static int64_t median_of(const struct dt_entrant *entrant)
{
    return ns_of(entrant->result.samples.n > 0 ? entrant->result.summary.median : NAN);
}

/* The visits in whole nanoseconds, null where a visit failed or was not made: every figure follows from them. */
static json_t *visits(const struct dt_entrant *entrant, const struct dt_sets *sets)
{
    json_t *list = json_array();
    for (int k = 0; k < dt_sets_rounds(sets); k++) {
        int64_t ns = ns_of(entrant->visits[k]);
        json_array_append_new(list, dt_kind_time.write(&ns));
    }
    return list;
}

static struct dt_span interval_of(const struct dt_ratio *ratio)
{
    bool any = isfinite(ratio->interval.high);
    return (struct dt_span){any ? ratio->interval.low : NAN, any ? ratio->interval.high : NAN};
}

static struct dt_check_row rival_row(const struct dt_check_entry *entry, int i)
{
    const struct dt_check_rival *rival = &entry->judge.rivals[i];
    const struct dt_entrant *entrant = &entry->entrants[i + 1];
    bool failed = entrant->result.outcome != DT_TRIAL_OK;
    const char *reason = failed                   ? entrant->result.cause
                         : rival->out             ? "it takes longer than the entry allows"
                         : entry->entrants[0].out ? "it ran, the tuned plan did not"
                                                  : NULL;
    return (struct dt_check_row){
        .known = true,
        .role = dt_entrant_role_text(entrant->role),
        .plan = dt_point_json(entry->target->space, &entrant->point),
        .verdict = dt_check_verdict_text(rival->out ? DT_CHECK_NOT_CHECKED : rival->verdict),
        .reason = text_or_null(reason),
        .ratio = rival->ratio.ratio,
        .interval = interval_of(&rival->ratio),
        .pairs = rival->ratio.pairs,
        .median_ns = median_of(entrant),
        .cv = rival->cv,
        .visits_ns = visits(entrant, &entry->sets)};
}

/* The reason why --against is not a rival of this entry. */
static struct dt_check_row against_row(const struct dt_check_entry *entry)
{
    return (struct dt_check_row){.known = true,
                                 .role = dt_entrant_role_text(DT_ENTRANT_AGAINST),
                                 .verdict = dt_check_verdict_text(DT_CHECK_UNSUPPORTED),
                                 .reason = entry->against,
                                 .ratio = NAN,
                                 .interval = {NAN, NAN},
                                 .median_ns = DT_NO_NS,
                                 .cv = NAN};
}

static int rival_of_role(const struct dt_check_entry *entry, enum dt_entrant_role role)
{
    for (int i = 0; i < entry->judge.count; i++)
        if (entry->entrants[i + 1].role == role)
            return i;
    return -1;
}

static int64_t default_now(const struct dt_check_entry *entry)
{
    int i = rival_of_role(entry, DT_ENTRANT_DEFAULT);
    if (i >= 0)
        return median_of(&entry->entrants[i + 1]);
    bool same = entry->count > 0 && dt_point_equal(entry->target->space, &entry->entrants[0].point,
                                                   &entry->target->fallback);
    return same ? median_of(&entry->entrants[0]) : DT_NO_NS;
}

/* Rounds of each set. */
static struct dt_check_now now_of(const struct dt_check_entry *entry)
{
    const struct dt_check_judge *judge = &entry->judge;
    const struct dt_entrant *tuned = &entry->entrants[0],
                            *twin = &entry->entrants[entry->count - 1];
    int i = rival_of_role(entry, DT_ENTRANT_DEFAULT);
    return (struct dt_check_now){.known = true,
                                 .tuned_ns = median_of(tuned),
                                 .default_ns = default_now(entry),
                                 .gain = dt_gain_of(i >= 0 ? &judge->rivals[i].ratio : NULL),
                                 .cv = judge->cv,
                                 .margin = judge->margin,
                                 .limit = judge->limit,
                                 .rounds = dt_sets_rounds(&entry->sets),
                                 .sets = dt_json_ints(entry->sets.rounds, entry->sets.count),
                                 .resident = dt_company_text(entry->sets.company),
                                 .seed = entry->seed,
                                 .visits_ns = visits(tuned, &entry->sets),
                                 .twin_visits_ns = entry->twin ? visits(twin, &entry->sets) : NULL};
}

static const struct dt_check_now nothing_measured = {.known = true,
                                                     .tuned_ns = DT_NO_NS,
                                                     .default_ns = DT_NO_NS,
                                                     .cv = NAN,
                                                     .margin = NAN,
                                                     .limit = NAN};

json_t *dt_check_successors(const struct dt_check_entry *again)
{
    json_t *list = json_array();
    for (int i = 0; i < again->count; i++) {
        const struct dt_entrant *entrant = &again->entrants[i];
        const struct dt_check_successor row = {
            .known = true,
            .role = dt_entrant_role_text(entrant->role),
            .plan = dt_point_json(again->target->space, &entrant->point),
            .reason = entrant->out ? text_or_null(entrant->result.cause) : NULL,
            .ratio = entrant->ratio.ratio,
            .interval = interval_of(&entrant->ratio),
            .pairs = entrant->ratio.pairs,
            .median_ns = median_of(entrant),
            .visits_ns = visits(entrant, &again->sets)};
        json_array_append_new(list, dt_record_json(&dt_record_check_successor, &row));
    }
    return list;
}

static struct dt_check_update update_of(const struct dt_check_entry *entry)
{
    json_t *plan = entry->written.replaced ? json_object_get(entry->written.best, "plan") : NULL;
    return (struct dt_check_update){.known = true,
                                    .updated = entry->written.replaced  ? "replaced"
                                               : entry->written.stamped ? "stamped"
                                               : entry->written.marked  ? "marked"
                                               : entry->written.cleared ? "cleared"
                                                                        : NULL,
                                    .note = text_or_null(entry->written.note),
                                    .soft = json_incref(entry->today.soft),
                                    .replaced_by = json_incref(plan),
                                    .successors = json_incref(entry->written.successors)};
}

struct dt_check_record dt_check_record(const struct dt_check_entry *entry)
{
    const struct dt_stored_entry *stored = &entry->item->entry;
    struct dt_check_record record = {
        .known = true,
        .subject = {.known = true,
                    .id = stored->id,
                    .key = json_incref(stored->key),
                    .hard = json_incref(stored->fingerprint.hard),
                    .title = entry->item->title},
        .verdict = dt_check_verdict_text(entry->verdict),
        .reason = text_or_null(entry->reason),
        .plan = json_incref(stored->plan),
        .then = {.known = true, .default_ns = stored->fallback.median_ns, .gain = stored->gain},
        .threshold = entry->opts->threshold,
        .lose_alpha = entry->judge.lose_alpha,
        .soft_changed =
            entry->today.changed != NULL ? json_incref(entry->today.changed) : json_array(),
        .update = update_of(entry),
        .now = entry->sets.count > 0 ? now_of(entry) : nothing_measured};
    for (int i = 0; i < entry->judge.count; i++)
        record.rivals[record.rivals_count++] = rival_row(entry, i);
    if (entry->against[0] != '\0')
        record.rivals[record.rivals_count++] = against_row(entry);
    return record;
}
