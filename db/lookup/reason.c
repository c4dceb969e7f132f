/* SPDX-License-Identifier: MIT */
/* Builds an answer's sentence: what was measured, how it differs from the query, and which entries were refused. */
#include "db/lookup/answer_int.h"
#include "space/json/json.h"

#include <stdio.h>
#include <string.h>

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

static void add_device(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    (void)asked;
    const json_t *hard = json_object_get(json_object_get(entry, "fingerprint"), "hard");
    const json_t *gpus = json_object_get(hard, "gpus");
    dt_text_add(out, "on other hardware (%s, %lld %s)", hard_of(entry, "device"),
                (long long)json_integer_value(gpus != NULL ? gpus : json_object_get(hard, "cores")),
                gpus != NULL ? "GPUs" : "cores");
}

static void add_engine(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    const char *worker = json_string_value(key_of(entry, "worker"));
    const char *engine = json_string_value(json_object_get(asked->hard, "engine"));
    const char *mode = json_string_value(json_object_get(asked->hard, "mode"));
    dt_text_add(out, "by %s (%s%s%s), not by %s (%s)", hard_of(entry, "engine"),
                hard_of(entry, "mode"), worker != NULL ? ", worker " : "",
                worker != NULL ? worker : "", engine != NULL ? engine : "unknown",
                mode != NULL ? mode : "unknown");
}

static void add_unseen(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
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

static void add_devices(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    dt_text_add(out, "with %lld devices instead of %d",
                (long long)json_integer_value(key_of(entry, "devices")), asked->devices);
}

static void add_size(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    dt_text_add(out, "at %lld x %lld px instead of %d x %d",
                (long long)json_integer_value(key_of(entry, "width")) * DT_PIXELS_A_CELL,
                (long long)json_integer_value(key_of(entry, "height")) * DT_PIXELS_A_CELL,
                asked->workload.width * DT_PIXELS_A_CELL,
                asked->workload.height * DT_PIXELS_A_CELL);
}

static void add_list(const json_t *list, struct dt_text *out)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        dt_text_add(out, "%s%lld", i > 0 ? "," : "",
                    (long long)json_integer_value(json_array_get(list, i)));
}

static void add_batch(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    dt_text_add(out, "with batch ");
    add_list(key_of(entry, "batch"), out);
    dt_text_add(out, " instead of ");
    add_list(json_object_get(asked->key, "batch"), out);
}

static void add_limit(const char *name, const json_t *then, int64_t now, struct dt_text *out)
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

static void add_limits(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    const json_t *bytes = key_of(entry, "max_bytes"), *latency = key_of(entry, "max_latency_ns");
    dt_text_add(out, "under other limits:");
    if (json_integer_value(bytes) != asked->max_bytes)
        add_limit("max_bytes", bytes, asked->max_bytes, out);
    if (json_integer_value(latency) != asked->max_latency_ns)
        add_limit("max_latency_ns", latency, asked->max_latency_ns, out);
}

static void add_name(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    const char *name = json_string_value(key_of(entry, "model"));
    (void)asked;
    dt_text_add(out, "as '%s', the same network under another name",
                name != NULL ? name : "unknown");
}

static void add_space(const struct dt_asked *asked, const json_t *entry, struct dt_text *out)
{
    struct dt_space *was = NULL;
    size_t before = out->size;
    dt_text_add(out, "in a space ");
    size_t begin = out->size;
    if (asked->rules != NULL && dt_space_rules_from_json(json_object_get(entry, "space"),
                                                         "the entry's space", &was) == DT_OK)
        dt_space_changes(was, asked->rules, out);
    dt_space_free(was);
    if (out->size == begin && begin > before)
        dt_text_add(out, "of another spelling");
}

static const struct difference differences[] = {
    {DT_MISS_MACHINE, add_device},  {DT_MISS_UNSEEN, add_unseen}, {DT_MISS_ENGINE, add_engine},
    {DT_MISS_DEVICES, add_devices}, {DT_MISS_SIZE, add_size},     {DT_MISS_BATCH, add_batch},
    {DT_MISS_LIMITS, add_limits},   {DT_MISS_NAME, add_name},     {DT_MISS_SPACE, add_space},
};

const char *dt_reason_provisional(enum dt_verdict verdict)
{
    if (verdict == DT_VERDICT_INCONCLUSIVE)
        return "the final comparison of its session could not decide";
    return "its session was interrupted or ended before its final comparison";
}

void dt_reason_add(const struct dt_query *query, const struct dt_match *match, const json_t *entry,
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
        differences[i].add(&query->asked, entry, out);
        before = ", ";
    }
    if (fitted->changed[0] != '\0')
        dt_text_add(out, "; %s", fitted->changed);
    if (match->provisional)
        dt_text_add(out, "; provisional: %s", dt_reason_provisional(dt_verdict_of(verdict)));
}

/* Two refusals are enough for a message. */
void dt_refuse(struct dt_refusals *refusals, const struct dt_match *match, const char *why)
{
    if (refusals->count++ < 2)
        dt_text_add(&refusals->text, "%sthe %s match: %s", refusals->text.size > 0 ? "; " : "",
                    dt_tier_text(match->tier), why);
}
