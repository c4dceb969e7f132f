/* SPDX-License-Identifier: MIT */
/* The best plans that the store has of other sessions. */
#include "db/store.h"
#include "space/json/json.h"
#include "tuner/session/tuning.h"

struct reader {
    struct dt_tuning *tuning;
    int distance[DT_KNOWN]; /* distance of each known plan, ascending */
};

/* Fields of a key that affect which plan is best, but not the meaning of a plan. */
static bool may_differ(const char *name)
{
    static const char *const names[] = {"batch",          "devices",       "max_bytes",
                                        "max_latency_ns", "reserve_bytes", "model",
                                        "objective",      "space",         NULL};
    return dt_text_index(name, names) >= 0;
}

static int count_differing(const json_t *mine, const json_t *other, bool *same_work)
{
    const char *name;
    json_t *value;
    int n = 0;
    json_object_foreach((json_t *)mine, name, value)
    {
        bool equal = json_equal(value, json_object_get(other, name));
        n += !equal;
        *same_work = *same_work && (equal || may_differ(name));
    }
    return n;
}

/* The plan, at a batch of this session if its own is not feasible. */
static bool known_feasible(const struct dt_target *target, const json_t *plan,
                           struct dt_point *point)
{
    int batch = dt_space_role(target->space, DT_ROLE_BATCH);
    if (plan == NULL)
        return false;
    if (dt_target_stored(target, plan, point) == DT_OK)
        return true;
    if (batch < 0)
        return false;
    const struct dt_axis *axis = dt_space_axis(target->space, batch);
    json_auto_t *changed = dt_json_copy(plan);
    json_object_set_new(changed, axis->name,
                        json_integer(dt_target_batch(target, &target->fallback)));
    return dt_point_from_json(target->space, changed, point) == DT_OK;
}

/* Inserts by distance, without duplicates. */
static void known_insert(struct reader *reader, const struct dt_point *point, int distance)
{
    struct dt_tuning_search *search = &reader->tuning->search;
    const struct dt_space *space = reader->tuning->target->space;
    int at = 0, last;
    while (at < search->known_count && reader->distance[at] <= distance) {
        if (dt_point_equal(space, &search->known[at], point))
            return;
        at++;
    }
    for (last = at; last < search->known_count; last++)
        if (dt_point_equal(space, &search->known[last], point))
            break;
    if (at == DT_KNOWN)
        return;
    if (last == search->known_count) /* not further down either: one more */
        last = search->known_count < DT_KNOWN ? search->known_count++ : DT_KNOWN - 1;
    for (int i = last; i > at; i--) {
        search->known[i] = search->known[i - 1];
        reader->distance[i] = reader->distance[i - 1];
    }
    search->known[at] = *point;
    reader->distance[at] = distance;
}

static void visit_entry(const json_t *entry, void *context)
{
    struct reader *reader = context;
    const struct dt_target *target = reader->tuning->target;
    struct dt_stored_entry fields;
    struct dt_point point;
    bool same_work = true, any = true;
    dt_record_read(&dt_record_stored_entry, entry, &fields);
    int distance = count_differing(target->identity.key, fields.key, &same_work);
    if (!same_work || !known_feasible(target, fields.plan, &point))
        return;
    distance += count_differing(target->identity.hard, fields.fingerprint.hard, &any);
    known_insert(reader, &point, distance);
}

void dt_known_read(struct dt_tuning *tuning, const char *directory)
{
    struct reader reader = {.tuning = tuning};
    tuning->search.known_count = 0;
    if (dt_store_each(directory, visit_entry, &reader) < 0)
        tuning->search.known_count = 0;
}
