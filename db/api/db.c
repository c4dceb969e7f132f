/* SPDX-License-Identifier: MIT */
#include "db/api/api_int.h"
#include "db/snapshot.h"

#include <stdlib.h>
#include <sys/stat.h>

/* Identity of the opened file: a writer replaces best.json by another inode. */
struct identity {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

struct dittune_db {
    struct dt_snapshot *snapshot;
    struct dt_text path; /* of best.json; empty for a text */
    struct identity opened;
};

static struct identity identify(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return (struct identity){0};
    return (struct identity){info.st_dev, info.st_ino, info.st_size, info.st_mtim};
}

static dt_status default_directory(struct dt_text *path)
{
    const char *given = getenv("DITTUNE_DB");
    if (given == NULL || given[0] == '\0')
        return dt_api_path("XDG_DATA_HOME", ".local/share", "dittune", path);
    dt_text_add(path, "%s", given);
    return dt_text_status(path);
}

static dt_status open_in(const char *directory, struct dittune_db *db)
{
    dt_text_add(&db->path, "%s/best.json", directory);
    DT_TRY(dt_text_status(&db->path));
    /* before reading, so that a change in between is detected */
    db->opened = identify(dt_text_at(&db->path));
    return dt_snapshot_open(directory, &db->snapshot);
}

static dt_status open_default(struct dittune_db *db)
{
    struct dt_text directory = {0};
    dt_status status = default_directory(&directory);
    if (status == DT_OK)
        status = open_in(dt_text_at(&directory), db);
    dt_text_fini(&directory);
    return status;
}

int32_t dittune_db_open(const char *directory, struct dittune_db **db, char *message, size_t room)
{
    const struct dt_api_message to = {message, room};
    if (db == NULL)
        return dt_api_refuse(DITTUNE_USAGE, "there is nowhere to put the store: db is NULL", to);
    dt_api_begin();
    struct dittune_db *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_api_refuse(DITTUNE_NOMEM, "out of memory while opening the store", to);
    dt_status status = directory != NULL ? open_in(directory, made) : open_default(made);
    if (status == DT_OK)
        *db = made;
    else
        dittune_db_close(made);
    return dt_api_done(status, to);
}

int32_t dittune_db_parse(const char *text, size_t size, struct dittune_db **db, char *message,
                         size_t room)
{
    const struct dt_api_message to = {message, room};
    if (db == NULL || (text == NULL && size > 0))
        return dt_api_refuse(DITTUNE_USAGE, "text or db is NULL", to);
    dt_api_begin();
    struct dittune_db *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_api_refuse(DITTUNE_NOMEM, "out of memory while reading the store", to);
    dt_status status = dt_snapshot_parse(text, size, "the store", &made->snapshot);
    if (status == DT_OK)
        *db = made;
    else
        dittune_db_close(made);
    return dt_api_done(status, to);
}

void dittune_db_close(struct dittune_db *db)
{
    if (db == NULL)
        return;
    dt_snapshot_close(db->snapshot);
    dt_text_fini(&db->path);
    free(db);
}

size_t dittune_db_count(const struct dittune_db *db)
{
    return db != NULL ? dt_snapshot_count(db->snapshot) : 0;
}

int32_t dittune_db_is_fallback(const struct dittune_db *db)
{
    return db != NULL && dt_snapshot_fallback(db->snapshot) != NULL;
}

int32_t dittune_db_is_outdated(const struct dittune_db *db)
{
    if (db == NULL || db->path.size == 0)
        return 0;
    const struct identity now = identify(dt_text_at(&db->path)), *then = &db->opened;
    return now.device != then->device || now.inode != then->inode || now.size != then->size ||
           now.changed.tv_sec != then->changed.tv_sec ||
           now.changed.tv_nsec != then->changed.tv_nsec;
}

int32_t dittune_lookup(const struct dittune_db *db, const struct dittune_query *query,
                       struct dittune_answer **answer, char *message, size_t room)
{
    const struct dt_api_message to = {message, room};
    struct dt_answer *made = NULL;
    if (db == NULL || query == NULL || answer == NULL)
        return dt_api_refuse(DITTUNE_USAGE, "db, query or answer is NULL", to);
    dt_status status = dt_lookup(db->snapshot, (const struct dt_query *)query, &made);
    if (status == DT_OK)
        *answer = (struct dittune_answer *)made;
    return dt_api_done(status, to);
}
