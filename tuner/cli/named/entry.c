/* SPDX-License-Identifier: MIT */
#include "tuner/cli/named/named.h"

#include "base/array.h"
#include "db/snapshot.h"
#include "tuner/check/check.h"
#include "tuner/cli/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LISTED_MOST 8 /* entries that a sentence lists */

struct list {
    struct dt_named_entry *at; /* owned */
    int count;
};

static void list_fini(struct list *list)
{
    for (int i = 0; i < list->count; i++)
        dt_named_entry_fini(&list->at[i]);
    free(list->at);
    *list = (struct list){.count = 0};
}

void dt_named_entry_fini(struct dt_named_entry *entry)
{
    json_decref(entry->json);
    *entry = (struct dt_named_entry){.json = NULL};
}

static struct dt_named_entry entry_of(const json_t *json, uint64_t id)
{
    struct dt_named_entry entry = {.json = json_incref((json_t *)json), .id = id};
    dt_record_read(&dt_record_stored_entry, json, &entry.fields);
    dt_check_title(entry.fields.key, entry.title, sizeof entry.title);
    snprintf(entry.hex, sizeof entry.hex, "%016llx", (unsigned long long)id);
    return entry;
}

/* The whole id or title. */
static bool is_named(const struct dt_named_entry *entry, const char *word)
{
    return strcasecmp(entry->hex, word) == 0 || strcasecmp(entry->title, word) == 0;
}

static bool matches(const struct dt_named_entry *entry, const char *word)
{
    return word == NULL || strncasecmp(entry->hex, word, strlen(word)) == 0 ||
           dt_check_passes(word, entry->title, entry->fields.key);
}

/* Lines that are no entries are left out: `dittune db verify` reports them. */
static dt_status list_matches(const struct dt_snapshot *snapshot, const char *word,
                              struct list *list)
{
    for (size_t i = 0; i < dt_snapshot_count(snapshot); i++) {
        const json_t *json = NULL;
        dt_status status = dt_snapshot_entry(snapshot, (long)i, &json);
        if (status == DT_ECORRUPT)
            continue;
        DT_TRY(status);
        struct dt_named_entry entry = entry_of(json, dt_snapshot_id(snapshot, (long)i));
        status = matches(&entry, word) ? DT_GROW(list->at, list->count, 1) : DT_DONE;
        if (status == DT_OK)
            list->at[list->count++] = entry;
        else
            dt_named_entry_fini(&entry);
        DT_TRY(status);
    }
    return DT_OK;
}

/* When entries are named by their whole id or title, the others go. */
static void keep_named(struct list *list, const char *word)
{
    int named = 0;
    for (int i = 0; i < list->count; i++) {
        struct dt_named_entry entry = list->at[i];
        if (!is_named(&entry, word))
            continue;
        list->at[i] = list->at[named];
        list->at[named++] = entry;
    }
    while (named > 0 && list->count > named)
        dt_named_entry_fini(&list->at[--list->count]);
}

static dt_status refuse_several(const struct list *list, const char *word)
{
    struct dt_text text = {0};
    int listed = list->count <= LISTED_MOST ? list->count : LISTED_MOST;
    for (int i = 0; i < listed; i++)
        dt_text_add(&text, "%s%s (%.80s)", i == 0 ? "" : ", ", list->at[i].hex, list->at[i].title);
    if (listed < list->count)
        dt_text_add(&text, ", and %d more, which `dittune db show` lists", list->count - listed);
    dt_status status = dt_fail(DT_EUSAGE, "'%.80s' matches %d entries, so name one by its id: %s",
                               word, list->count, dt_text_at(&text));
    dt_text_fini(&text);
    return status;
}

/* When something was last measured to decide the entry's plan, whether it was stored or not. */
static int64_t measured_at(const struct dt_named_entry *entry,
                           const struct dt_named_sessions *sessions)
{
    int64_t last_ns = entry->fields.fingerprint.info.t_wall_ns;
    for (int i = 0; i < sessions->count; i++)
        if (sessions->at[i].entry == entry->id && sessions->at[i].began_wall_ns > last_ns)
            last_ns = sessions->at[i].began_wall_ns;
    return last_ns;
}

static int newest_of(const struct list *list, const struct dt_named_sessions *sessions)
{
    int newest = 0;
    for (int i = 1; i < list->count; i++)
        if (measured_at(&list->at[i], sessions) > measured_at(&list->at[newest], sessions))
            newest = i;
    return newest;
}

static dt_status choose(struct list *list, const char *word,
                        const struct dt_named_sessions *sessions, struct dt_named_entry *entry)
{
    int chosen = 0;
    if (word != NULL)
        keep_named(list, word);
    if (list->count > 1 && word != NULL)
        return refuse_several(list, word);
    if (list->count == 0)
        return DT_OK;
    if (word == NULL)
        chosen = newest_of(list, sessions);
    *entry = list->at[chosen];
    list->at[chosen] = (struct dt_named_entry){.json = NULL};
    return DT_OK;
}

dt_status dt_named_entry_find(const char *directory, const char *word,
                              const struct dt_named_sessions *sessions,
                              struct dt_named_entry *entry)
{
    struct dt_snapshot *snapshot = NULL;
    struct list list = {.count = 0};
    *entry = (struct dt_named_entry){.json = NULL};
    DT_TRY(dt_snapshot_open(directory, &snapshot));
    if (dt_snapshot_fallback(snapshot) != NULL)
        dt_print_note("warning: %s: best.json.1 is read", dt_snapshot_fallback(snapshot));
    dt_status status = list_matches(snapshot, word, &list);
    dt_snapshot_close(snapshot);
    if (status == DT_OK)
        status = choose(&list, word, sessions, entry);
    list_fini(&list);
    return status;
}
