/* SPDX-License-Identifier: MIT */
#include "tuner/cli/database/verbs.h"

#include "db/snapshot.h"
#include "tuner/check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct dt_choice dt_choice_of(const struct dt_options *options, const char *const *words, int count)
{
    return (struct dt_choice){.words = words,
                              .count = count,
                              .filter = options->filter,
                              .engine = options->upkeep.engine,
                              .model = options->upkeep.model};
}

bool dt_choice_by_entry(const struct dt_choice *choice)
{
    return choice->filter != NULL || choice->engine != NULL || choice->model != NULL;
}

bool dt_choice_of_id(const struct dt_choice *choice, uint64_t id)
{
    char hex[17];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)id);
    bool any = choice->count == 0;
    for (int i = 0; i < choice->count; i++)
        any = any || strncmp(hex, choice->words[i], strlen(choice->words[i])) == 0;
    return any;
}

/* wanted NULL: any. Case does not count, as in the names of presets. */
static bool is_text(const json_t *value, const char *wanted)
{
    const char *text = json_string_value(value);
    return wanted == NULL || (text != NULL && strcasecmp(text, wanted) == 0);
}

bool dt_choice_of_entry(const struct dt_choice *choice, const struct dt_stored_entry *entry)
{
    const json_t *key = entry->key, *hard = entry->fingerprint.hard;
    const json_t *of = json_object_get(key, "worker") != NULL ? json_object_get(key, "job") : key;
    char title[200];
    if (!is_text(json_object_get(hard, "engine"), choice->engine) ||
        !is_text(json_object_get(of, "model"), choice->model))
        return false;
    dt_check_title(key, title, sizeof title);
    return dt_check_passes(choice->filter, title, key);
}

dt_status dt_choice_none(const struct dt_choice *choice)
{
    const char *of_id = choice->count > 0 ? " of such an id" : "";
    if (choice->engine != NULL || choice->model != NULL)
        return dt_fail(
            DT_EUSAGE, "no entry%s was tuned %s%s%s%s%s", of_id,
            choice->engine != NULL ? "on " : "", choice->engine != NULL ? choice->engine : "",
            choice->model != NULL ? " for " : "", choice->model != NULL ? choice->model : "",
            choice->filter != NULL ? " and passes the filter" : "");
    if (choice->filter != NULL)
        return dt_fail(DT_EUSAGE, "no entry%s has '%s' in its title or key", of_id, choice->filter);
    return dt_fail(DT_EUSAGE, "no entry's id begins with '%s'", choice->words[0]);
}

static dt_status look(const struct dt_choice *choice, const struct dt_snapshot *snapshot, long i,
                      bool *chosen)
{
    const json_t *json = NULL;
    struct dt_stored_entry entry;
    *chosen = dt_choice_of_id(choice, dt_snapshot_id(snapshot, i));
    if (!*chosen || !dt_choice_by_entry(choice))
        return DT_OK;
    dt_status status = dt_snapshot_entry(snapshot, i, &json);
    dt_record_read(&dt_record_stored_entry, json, &entry);
    *chosen = status == DT_OK && dt_choice_of_entry(choice, &entry);
    return status == DT_ECORRUPT ? DT_OK : status;
}

dt_status dt_choice_ids(const struct dt_choice *choice, const char *directory, uint64_t **ids,
                        size_t *count)
{
    struct dt_snapshot *snapshot = NULL;
    size_t n = 0;
    DT_TRY(dt_snapshot_open(directory, &snapshot));
    uint64_t *list = calloc(dt_snapshot_count(snapshot) + 1, sizeof *list);
    dt_status status = list != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
    for (size_t i = 0; status == DT_OK && i < dt_snapshot_count(snapshot); i++) {
        bool chosen = false;
        status = look(choice, snapshot, (long)i, &chosen);
        if (chosen)
            list[n++] = dt_snapshot_id(snapshot, (long)i);
    }
    dt_snapshot_close(snapshot);
    if (status == DT_OK && n == 0)
        status = dt_choice_none(choice);
    if (status != DT_OK) {
        free(list);
        return status;
    }
    *ids = list;
    *count = n;
    return DT_OK;
}
