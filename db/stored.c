/* SPDX-License-Identifier: MIT */
#include "db/stored.h"

#include <string.h>

static bool is_plan(const json_t *object)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        if (json_is_object(value) || json_is_array(value) || json_is_null(value))
            return false;
    }
    return json_is_object(object);
}

static bool is_journal(const json_t *value)
{
    static const char allowed[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "._:+-";
    const char *name = json_string_value(value);
    return name != NULL && name[0] != '.' && strlen(name) < 200 &&
           name[strspn(name, allowed)] == '\0';
}

static void journal_read(const json_t *value, void *member)
{
    *(const char **)member = json_string_value(value);
}

static json_t *journal_write(const void *member)
{
    const char *name = *(const char *const *)member;
    return name != NULL ? json_string(name) : json_null();
}

DT_OBJECT_KIND(key);
DT_OBJECT_KIND(hard);
DT_OBJECT_KIND(soft);
DT_OBJECT_KIND(network);
DT_OBJECT_KIND(space);
const struct dt_kind dt_kind_plan = {"plan", "an object of numbers, words and true or false",
                                     is_plan, dt_kind_read_json, dt_kind_write_json};
const struct dt_kind dt_kind_journal = {"journal", "the name of a journal", is_journal,
                                        journal_read, journal_write};

#include "base/record_rows.h"

#include "db/entry.def"

static const struct {
    const char *text, *why;
} verdicts[] = {
#define DT_VERDICT(name, text, why) {text, why},
#include "db/verdict.def"
#undef DT_VERDICT
};

const char *dt_verdict_text(enum dt_verdict verdict)
{
    return verdicts[verdict].text;
}

const char *dt_verdict_why(enum dt_verdict verdict)
{
    return verdicts[verdict].why;
}

bool dt_verdict_provisional(enum dt_verdict verdict)
{
    return verdicts[verdict].why != NULL;
}

static int most_sets(const struct dt_stored_entry *entry)
{
    int gain = entry->gain.known ? entry->gain.sets : 0;
    int noise = entry->noise.known ? entry->noise.sets : 0;
    return gain > noise ? gain : noise;
}

int dt_stored_evidence(const struct dt_stored_entry *one, const struct dt_stored_entry *other)
{
    const struct dt_fingerprint *first = &one->fingerprint, *second = &other->fingerprint;
    if (one->provisional != other->provisional)
        return one->provisional ? -1 : 1;
    if (!one->provisional || one->plans != other->plans || !json_equal(first->soft, second->soft) ||
        first->info.lost_ns > 0 || second->info.lost_ns > 0)
        return 0;
    int tried = (one->tried > other->tried) - (one->tried < other->tried);
    int sets = most_sets(one) - most_sets(other);
    return tried != 0 ? tried : (sets > 0) - (sets < 0);
}

enum dt_verdict dt_verdict_of(const char *text)
{
    for (int i = 0; text != NULL && i < DT_VERDICTS; i++)
        if (strcmp(verdicts[i].text, text) == 0)
            return (enum dt_verdict)i;
    return DT_VERDICT_NONE;
}

bool dt_stored_has_hard(const json_t *hard, const json_t *part)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)part, name, value)
    {
        const json_t *its = json_object_get(hard, name);
        if (!json_equal(value, its) && (its != NULL || strcmp(name, DT_HARD_CPU) != 0))
            return false;
    }
    return json_is_object(hard) && json_is_object(part);
}

bool dt_stored_same_hard(const json_t *one, const json_t *other)
{
    return dt_stored_has_hard(one, other) && dt_stored_has_hard(other, one);
}

int64_t dt_image_ns(const struct dt_image_time *image, int64_t step_ns, int batch)
{
    if (image->unit != NULL && strcmp(image->unit, "image") == 0)
        return step_ns;
    return image->steps * step_ns +
           (image->text_and_vae_ns > 0 ? batch * image->text_and_vae_ns : 0);
}
