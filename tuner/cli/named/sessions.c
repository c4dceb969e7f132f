/* SPDX-License-Identifier: MIT */
#include "tuner/cli/named/named.h"

#include "base/array.h"
#include "db/journal.h"
#include "db/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the reading with an error: the first record is enough. */
static dt_status visit_first(const json_t *record, int line, void *context)
{
    (void)line;
    *(json_t **)context = json_incref((json_t *)record);
    return DT_FAILED;
}

/* The first record of a journal, a new reference; NULL: it has none, or cannot be read. */
static json_t *first_record(const char *path)
{
    json_t *first = NULL;
    return dt_journal_scan(path, visit_first, &first) < 0 ? first : NULL;
}

void dt_named_journal_kind(const char *path, char kind[32])
{
    json_t *first = first_record(path);
    snprintf(kind, 32, "%s", dt_json_text_at(first, "kind"));
    json_decref(first);
}

static dt_status add_session(const char *path, const char *name, struct dt_named_sessions *sessions)
{
    struct dt_named_session session = {.entry = 0};
    json_t *first = first_record(path);
    const json_t *key = json_object_get(first, "key"),
                 *hard = json_object_get(json_object_get(first, "fingerprint"), "hard");
    bool is_session = strcmp(dt_json_text_at(first, "kind"), "session") == 0 &&
                      json_is_object(key) && json_is_object(hard) &&
                      dt_store_id(key, hard, &session.entry) == DT_OK;
    session.began_wall_ns = json_integer_value(json_object_get(first, "t_wall_ns"));
    snprintf(session.journal, sizeof session.journal, "%.*s", (int)(strlen(name) - 6), name);
    json_decref(first);
    if (!is_session)
        return DT_OK;
    DT_TRY(DT_GROW(sessions->at, sessions->count, 1));
    sessions->at[sessions->count++] = session;
    return DT_OK;
}

dt_status dt_named_sessions_read(const char *directory, struct dt_named_sessions *sessions)
{
    struct dt_text path = {0};
    dt_status status = DT_OK;
    *sessions = (struct dt_named_sessions){.count = 0};
    dt_text_add(&path, "%s/runs", directory);
    DIR *folder = opendir(dt_text_at(&path));
    if (folder == NULL && errno != ENOENT)
        status = dt_fail(DT_EIO, "cannot read %s: %s", dt_text_at(&path), strerror(errno));
    for (const struct dirent *file;
         status == DT_OK && folder != NULL && (file = readdir(folder)) != NULL;) {
        size_t size = strlen(file->d_name);
        if (size < 7 || strcmp(file->d_name + size - 6, ".jsonl") != 0)
            continue;
        dt_text_clear(&path);
        dt_text_add(&path, "%s/runs/%s", directory, file->d_name);
        status = add_session(dt_text_at(&path), file->d_name, sessions);
    }
    if (folder != NULL)
        closedir(folder);
    dt_text_fini(&path);
    if (status < 0)
        dt_named_sessions_fini(sessions);
    return status;
}

void dt_named_sessions_fini(struct dt_named_sessions *sessions)
{
    free(sessions->at);
    *sessions = (struct dt_named_sessions){.count = 0};
}

/* Time at which the entry's result was stored; INT64_MAX: not known. */
static int64_t stored_at(const struct dt_named_entry *entry,
                         const struct dt_named_sessions *sessions)
{
    const char *journal = entry->fields.journal;
    if (entry->fields.fingerprint.info.t_wall_ns != 0)
        return entry->fields.fingerprint.info.t_wall_ns;
    for (int i = 0; i < sessions->count && journal != NULL; i++)
        if (strcmp(sessions->at[i].journal, journal) == 0)
            return sessions->at[i].began_wall_ns;
    return INT64_MAX;
}

static const struct dt_named_session *newest(const struct dt_named_entry *entry,
                                             const struct dt_named_sessions *sessions, bool after)
{
    const char *own = entry->fields.journal != NULL ? entry->fields.journal : "";
    const struct dt_named_session *found = NULL;
    int64_t stored_ns = stored_at(entry, sessions);
    for (int i = 0; i < sessions->count; i++) {
        const struct dt_named_session *session = &sessions->at[i];
        if (session->entry == entry->id && strcmp(session->journal, own) != 0 &&
            (session->began_wall_ns > stored_ns) == after &&
            (found == NULL || session->began_wall_ns > found->began_wall_ns))
            found = session;
    }
    return found;
}

const struct dt_named_session *dt_named_session_after(const struct dt_named_entry *entry,
                                                      const struct dt_named_sessions *sessions)
{
    return newest(entry, sessions, true);
}

const struct dt_named_session *dt_named_session_before(const struct dt_named_entry *entry,
                                                       const struct dt_named_sessions *sessions)
{
    return newest(entry, sessions, false);
}
