/* SPDX-License-Identifier: MIT */
/* Compares an entry field by field and orders what fits (dt_match_order): fields in which a plan may be transferred are
 * compared separately; all others, including unknown ones, must be equal. */
#include "db/lookup/lookup_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DISTANCE_MAX (1 + 1e-9) /* a factor 2, with a tolerance for rounding */

struct carried {
    const char *field;
    unsigned miss;
};

static const struct carried
    key_carried[] = {{"model", DT_MISS_NAME},       {"height", DT_MISS_SIZE},
                     {"width", DT_MISS_SIZE},       {"batch", DT_MISS_BATCH},
                     {"max_bytes", DT_MISS_LIMITS}, {"max_latency_ns", DT_MISS_LIMITS},
                     {"devices", DT_MISS_DEVICES},  {"worker", DT_MISS_ENGINE},
                     {"space", DT_MISS_SPACE}},
    hard_carried[] = {{"engine", DT_MISS_ENGINE},      {"mode", DT_MISS_ENGINE},
                      {"device", DT_MISS_MACHINE},     {"cores", DT_MISS_MACHINE},
                      {"gpus", DT_MISS_MACHINE},       {"compute", DT_MISS_MACHINE},
                      {"memory_gib", DT_MISS_MACHINE}, {"topology", DT_MISS_MACHINE},
                      {"devices", DT_MISS_UNSEEN}};

/* Rules to compare the fields of a key or of hard; fields in skip are ignored. */
struct rules {
    const struct carried *table;
    size_t n;
    const char *skip[6]; /* ends with NULL */
};

static unsigned miss_of(const char *field, const struct rules *rules)
{
    for (size_t i = 0; i < rules->n; i++)
        if (strcmp(rules->table[i].field, field) == 0)
            return rules->table[i].miss;
    return 0;
}

static bool skips(const struct rules *rules, const char *field)
{
    for (int i = 0; rules->skip[i] != NULL; i++)
        if (strcmp(rules->skip[i], field) == 0)
            return true;
    return false;
}

/* A field missing on one side is a difference, too. An unknown field of hard counts as one of the machine. */
static bool compare(const json_t *stored, const json_t *asked, const struct rules *rules,
                    unsigned *misses)
{
    const json_t *sides[] = {stored, asked};
    for (int side = 0; side < 2; side++) {
        const char *field;
        json_t *value;
        json_object_foreach((json_t *)sides[side], field, value)
        {
            const json_t *other = json_object_get(sides[1 - side], field);
            if (skips(rules, field) || (other != NULL && json_equal(value, other)))
                continue;
            unsigned miss = miss_of(field, rules);
            if (miss == 0)
                return false;
            *misses |= miss;
        }
    }
    return true;
}

static bool compare_keys(const struct dt_asked *asked, const json_t *key, unsigned *misses)
{
    struct rules rules = {.table = key_carried, .n = sizeof key_carried / sizeof key_carried[0]};
    if (asked->any.worker)
        memcpy(rules.skip, (const char *[]){"worker", "workload", "space", "job", "engine", NULL},
               sizeof rules.skip);
    else if (asked->any.space)
        rules.skip[0] = "space";
    return compare(key, asked->key, &rules, misses);
}

bool dt_match_other_job(const struct dt_query *query, const struct dt_head *head,
                        struct dt_text *out)
{
    const struct dt_asked *asked = &query->asked;
    const struct rules rules = {
        .table = key_carried, .n = sizeof key_carried / sizeof key_carried[0], .skip = {"job"}};
    const json_t *job = json_object_get(asked->key, "job");
    unsigned misses = 0;
    if (job == NULL || asked->any.worker || !compare(head->key, asked->key, &rules, &misses) ||
        (misses & DT_MISS_ENGINE) != 0)
        return false;
    dt_key_add_differences(json_object_get(head->key, "job"), job, out);
    return true;
}

static bool compare_hards(const struct dt_asked *asked, const json_t *hard, unsigned *misses)
{
    struct rules rules = {.table = hard_carried, .n = sizeof hard_carried / sizeof hard_carried[0]};
    int skipped = 0;
    if (asked->any.engine)
        rules.skip[skipped++] = "engine";
    if (asked->any.mode)
        rules.skip[skipped++] = "mode";
    if (asked->any.dtype)
        rules.skip[skipped++] = "dtype";
    const char *devices = json_string_value(json_object_get(hard, "devices"));
    if (devices != NULL && strcmp(devices, DT_DEVICES_UNKNOWN) == 0)
        *misses |= DT_MISS_UNSEEN; /* they may be others today */
    return json_is_object(hard) && compare(hard, asked->hard, &rules, misses);
}

static enum dt_tier tier_of(unsigned misses)
{
    if (misses & DT_MISS_MACHINE)
        return DT_TIER_NONE;
    if (misses & (DT_MISS_ENGINE | DT_MISS_UNSEEN))
        return DT_TIER_PROXY;
    if (misses & DT_MISS_DEVICES)
        return DT_TIER_SCALED;
    return misses != 0 ? DT_TIER_NEAR : DT_TIER_EXACT;
}

/* log2 of the tokens' ratio; false when the entry has no valid size. */
static bool size_distance(const struct dt_asked *asked, const json_t *key, double *distance)
{
    double height = json_number_value(json_object_get(key, "height"));
    double width = json_number_value(json_object_get(key, "width"));
    if (!(height >= 1) || !(width >= 1))
        return false;
    *distance =
        dt_lookup_log2((double)asked->workload.height * asked->workload.width / (height * width));
    return true;
}

/* The asked batch nearest to the plan's own, the smaller of two. */
static bool batch_distance(const struct dt_asked *asked, const json_t *plan, struct dt_match *match,
                           double *distance)
{
    double own = json_number_value(json_object_get(plan, "batch"));
    if (!(own >= 1))
        return false;
    double least = HUGE_VAL;
    for (int i = 0; i < asked->batch_count; i++) {
        double apart = fabs(dt_lookup_log2(asked->batches[i] / own));
        if (apart < least) {
            least = apart;
            match->batch = asked->batches[i];
        }
    }
    *distance = least;
    return true;
}

static bool measure(const struct dt_asked *asked, const struct dt_head *head,
                    struct dt_match *match)
{
    double size = 0, batch = 0, devices = 0;
    if ((match->misses & DT_MISS_SIZE) && !size_distance(asked, head->key, &size))
        return false;
    if ((match->misses & DT_MISS_BATCH) && !batch_distance(asked, head->plan, match, &batch))
        return false;
    if (size * size + batch * batch > DISTANCE_MAX * DISTANCE_MAX)
        return false;
    json_int_t count = json_integer_value(json_object_get(head->key, "devices"));
    if (count < 1 || count > 1 << 20)
        return false;
    match->devices = (int)count;
    if (match->misses & DT_MISS_DEVICES)
        devices = dt_lookup_log2(asked->devices / (double)count);
    double whole = sqrt(size * size + batch * batch + devices * devices);
    match->distance = (double)(int64_t)(1e9 * whole + 0.5) / 1e9;
    return true;
}

bool dt_match_of(const struct dt_query *query, const struct dt_head *head, struct dt_match *match)
{
    const struct dt_asked *asked = &query->asked;
    struct dt_match found = {.provisional = head->provisional};
    const json_t *hard = json_object_get(head->fingerprint, "hard");
    if (!compare_keys(asked, head->key, &found.misses) ||
        !compare_hards(asked, hard, &found.misses) || !measure(asked, head, &found))
        return false;
    found.tier = tier_of(found.misses);
    found.stored_ns = dt_stored_ns(head->fingerprint);
    json_t *reasons = dt_stale_reasons(query, head->fingerprint);
    found.stale = json_array_size(reasons) > 0;
    json_decref(reasons);
    *match = found;
    return true;
}

/* Ties are broken by decided, nearest, not stale, newest, and finally by line, so that the order is total. */
int dt_match_order(const struct dt_match *a, const struct dt_match *b)
{
    if (a->tier != b->tier)
        return a->tier > b->tier ? -1 : 1;
    if (a->provisional != b->provisional)
        return a->provisional ? 1 : -1;
    if ((a->misses ^ b->misses) & DT_MISS_ENGINE) /* other machines: prefer the requested engine */
        return a->misses & DT_MISS_ENGINE ? 1 : -1;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    if (a->stale != b->stale)
        return a->stale ? 1 : -1;
    if (a->stored_ns != b->stored_ns)
        return a->stored_ns > b->stored_ns ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}
