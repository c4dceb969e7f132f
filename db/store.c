/* SPDX-License-Identifier: MIT */
/* Readers need no lock: best.json is only ever replaced by rename, so an open file is one entire
 * version, the old or the new one. A damaged one gets a second name before it is replaced. */
#include "db/store.h"
#include "base/clock.h"
#include "base/figures.h"

#include "base/read.h"
#include "db/best_int.h"
#include "db/file_int.h"
#include "db/snapshot.h"
#include "db/store_int.h"
#include "db/stored.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WAIT_NS     INT64_C(10000000000)
#define SECRET_FILE "private.key"
#define SECRET_NEW  ".private.key.new"
#define DIGITS      (2 * DT_SIPHASH_KEY)

/* ---- best.json is replaced */

/* A second name for best.json costs no space; where links are not allowed, a copy does. A rename
 * between two names of one file (a writer died between the two renames) does nothing, so the
 * temporary name is always removed. */
static dt_status backup_make(int fd, const char *directory, const struct dt_text *old)
{
    char temp[DT_FILE_TEMP_SIZE];
    snprintf(temp, sizeof temp, ".dittune-%ld-backup.tmp", (long)getpid());
    unlinkat(fd, temp, 0);
    if (linkat(fd, DT_BEST_FILE, fd, temp, 0) != 0)
        DT_TRY(dt_file_write_temp(fd, directory, old, temp));
    dt_status status = DT_OK;
    if (renameat(fd, temp, fd, DT_BACKUP_FILE) != 0)
        status =
            dt_fail(DT_EIO, "cannot replace %s/%s: %s", directory, DT_BACKUP_FILE, strerror(errno));
    unlinkat(fd, temp, 0);
    return status;
}

static dt_status old_name(int fd, const char *directory, const char *stem)
{
    char name[DT_FILE_TEMP_SIZE + sizeof "-99"];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "%s%s%.0d", stem, i > 0 ? "-" : "", i);
        if (linkat(fd, DT_BEST_FILE, fd, name, 0) == 0)
            return DT_OK;
        if (errno == EEXIST)
            continue;
        if (renameat(fd, DT_BEST_FILE, fd, name) == 0)
            return DT_OK;
        break;
    }
    return dt_fail(DT_EIO, "cannot keep the old %s/%s as %s: %s", directory, DT_BEST_FILE, stem,
                   strerror(errno));
}

/* best.json.<why>-20260102T030405Z */
static dt_status old_name_dated(int fd, const char *directory, const char *why)
{
    char stem[DT_FILE_TEMP_SIZE];
    snprintf(stem, sizeof stem, DT_BEST_FILE ".%s-%s", why,
             dt_figure_stamp((int64_t)time(NULL) * DT_NS_PER_SECOND).text);
    return old_name(fd, directory, stem);
}

dt_status dt_commit(int fd, const char *directory, const struct dt_text *text,
                    enum dt_commit_old old, const struct dt_text *bytes)
{
    char temp[DT_FILE_TEMP_SIZE];
    if (old == DT_COMMIT_BACKUP) /* first, so that the previous version takes no space meanwhile */
        DT_TRY(backup_make(fd, directory, bytes));
    DT_TRY(dt_file_write_temp(fd, directory, text, temp));
    dt_status status = DT_OK;
    if (old == DT_COMMIT_BAD || old == DT_COMMIT_OLD)
        status = old_name_dated(fd, directory, old == DT_COMMIT_BAD ? "bad" : "old");
    if (status == DT_OK && renameat(fd, temp, fd, DT_BEST_FILE) != 0)
        status =
            dt_fail(DT_EIO, "cannot replace %s/%s: %s", directory, DT_BEST_FILE, strerror(errno));
    if (status != DT_OK)
        unlinkat(fd, temp, 0);
    else
        status = dt_file_sync_directory(fd, directory);
    return status;
}

/* ---- the folder, and changes under its lock */

static dt_status runs_make(const char *directory)
{
    dt_auto_text path = {0};
    dt_text_add(&path, "%s/runs", directory);
    DT_TRY(dt_text_status(&path));
    DT_TRY(dt_file_make_path(dt_text_at(&path)));
    if (access(dt_text_at(&path), W_OK | X_OK) != 0)
        return dt_fail(DT_EIO, "cannot write in %s: %s", dt_text_at(&path), strerror(errno));
    return DT_OK;
}

/* The sentence of a folder that cannot be made or written, with what would help. */
static dt_status folder_advise(dt_status status)
{
    return status != DT_EIO ? status
                            : dt_fail(status, "%s; --db DIR or DITTUNE_STORE names another folder",
                                      dt_message());
}

dt_status dt_store_open(const char *directory, int *fd)
{
    DT_CLEANUP(dt_close_at) int opened = -1;
    DT_TRY(folder_advise(dt_file_make_path(directory)));
    DT_TRY(dt_file_open_directory(directory, &opened));
    if (opened < 0)
        return dt_fail(DT_EIO, "cannot open the directory %s: it was removed meanwhile", directory);
    DT_TRY(dt_file_refuse_network(opened, directory));
    DT_TRY(folder_advise(runs_make(directory)));
    *fd = opened;
    opened = -1;
    return DT_OK;
}

/* A sticky folder is no better: the first best.json, or a journal, may be anyone's. */
static void folder_warn(const char *folder, struct dt_text *out)
{
    struct stat info;
    if (stat(folder, &info) == 0 && (info.st_mode & S_IWOTH) != 0)
        dt_text_add(out,
                    "%sanyone may write in %s: chmod o-w it, or plans may be replaced or forged",
                    out->size > 0 ? "; " : "", folder);
}

dt_status dt_store_warnings(const char *directory, struct dt_text *out)
{
    dt_auto_text runs = {0};
    dt_text_add(&runs, "%s/runs", directory);
    folder_warn(directory, out);
    folder_warn(dt_text_at(&runs), out);
    DT_TRY(dt_text_status(&runs));
    return dt_text_status(out);
}

static dt_status write_refuse(const struct dt_best *best)
{
    return best->state == DT_BEST_ABSENT || best->state == DT_BEST_GOOD ? DT_OK : DT_ECORRUPT;
}

/* The version to continue from. */
static dt_status edit_load(int fd, const char *directory, struct dt_edit *edit,
                           struct dt_text *because)
{
    DT_TRY(dt_best_load(fd, directory, DT_BEST_FILE, &edit->best));
    edit->old = edit->best.state == DT_BEST_ABSENT ? DT_COMMIT_FIRST : DT_COMMIT_BACKUP;
    if (edit->best.state != DT_BEST_BROKEN)
        return write_refuse(&edit->best);
    edit->old = DT_COMMIT_BAD;
    dt_text_add(because, "%s", dt_message());
    edit->because = dt_text_at(because);
    dt_best_fini(&edit->best);
    DT_TRY(dt_text_status(because));
    DT_TRY(dt_best_load(fd, directory, DT_BACKUP_FILE, &edit->best));
    if (edit->best.state == DT_BEST_BROKEN)
        dt_best_fini(&edit->best);
    return write_refuse(&edit->best);
}

dt_status dt_store_check(const char *directory)
{
    DT_CLEANUP(dt_close_at) int fd = -1;
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *snapshot = NULL;
    dt_auto_text text = {0}, because = {0};
    char temp[DT_FILE_TEMP_SIZE];
    int lock = -1;
    DT_TRY(dt_store_open(directory, &fd));
    dt_text_add(&text, "dittune may write here\n");
    DT_TRY(dt_file_write_temp(fd, directory, &text, temp));
    unlinkat(fd, temp, 0);
    /* that it can be locked at all; who holds it now will be done by the end of a session */
    dt_status status = dt_file_lock(fd, directory, 0, &lock);
    if (status == DT_OK)
        dt_file_unlock(lock);
    else if (status != DT_ELOCK)
        return status;
    DT_TRY(dt_snapshot_open(directory, &snapshot)); /* a session that no one could read */
    struct dt_edit edit = {.old = DT_COMMIT_FIRST};
    status = edit_load(fd, directory, &edit, &because);
    dt_best_fini(&edit.best);
    return status;
}

dt_status dt_store_lock(const char *directory, struct dt_store_held *held)
{
    DT_TRY(dt_store_open(directory, &held->fd));
    dt_status status = dt_file_lock(held->fd, directory, WAIT_NS, &held->lock);
    if (status != DT_OK)
        close(held->fd);
    return status;
}

void dt_store_unlock(const struct dt_store_held *held)
{
    dt_file_unlock(held->lock);
    close(held->fd);
}

static dt_status edit_locked(int fd, const char *directory,
                             dt_status (*decide)(struct dt_edit *edit, void *context),
                             void *context)
{
    struct dt_edit edit = {.entries = json_array()};
    dt_auto_text text = {0}, because = {0};
    dt_file_sweep(fd);
    dt_status status = edit_load(fd, directory, &edit, &because);
    if (status == DT_OK)
        status = decide(&edit, context);
    bool any = json_array_size(edit.entries) > 0 || edit.drop != NULL;
    if (status == DT_OK && edit.drop != NULL)
        status = dt_best_drop(&edit.best, edit.drop, &text);
    else if (status == DT_OK && any)
        status = dt_best_put(&edit.best, edit.entries, &text);
    if (status == DT_OK && any)
        status = dt_commit(fd, directory, &text, edit.old, &edit.best.text);
    dt_best_fini(&edit.best);
    json_decref(edit.entries);
    free(edit.drop);
    return status;
}

dt_status dt_store_edit(const char *directory,
                        dt_status (*decide)(struct dt_edit *edit, void *context), void *context)
{
    struct dt_store_held held;
    DT_TRY(dt_store_lock(directory, &held));
    dt_status status = edit_locked(held.fd, directory, decide, context);
    dt_store_unlock(&held);
    return status;
}

static dt_status entry_put(struct dt_edit *edit, void *context)
{
    return json_array_append(edit->entries, context) == 0 ? DT_OK
                                                          : dt_no_memory("while storing an entry");
}

dt_status dt_store_put(const char *directory, json_t *entry)
{
    DT_TRY(dt_entry_check(entry, "the entry"));
    return dt_store_edit(directory, entry_put, entry);
}

struct offer {
    json_t *entry, *kept;
};

/* A line that cannot be read has no evidence. */
static dt_status entry_offer(struct dt_edit *edit, void *context)
{
    struct offer *offer = context;
    struct dt_stored_entry mine, its;
    uint64_t id = 0;
    DT_TRY(dt_entry_id(offer->entry, &id));
    dt_record_read(&dt_record_stored_entry, offer->entry, &mine);
    for (long i = dt_best_find(&edit->best, id); i >= 0; i = dt_best_next(&edit->best, i)) {
        const struct dt_best_line *line = &edit->best.lines[i];
        json_auto_t *there = NULL;
        dt_status status =
            dt_entry_read(edit->best.text.bytes + line->at, line->size, "an entry", &there);
        if (status == DT_ENOMEM)
            return status;
        if (status < 0 || !dt_entry_match(there, mine.key, mine.fingerprint.hard))
            continue;
        dt_record_read(&dt_record_stored_entry, there, &its);
        if (dt_stored_evidence(&mine, &its) < 0) {
            offer->kept = json_incref(there);
            return DT_OK;
        }
    }
    return entry_put(edit, offer->entry);
}

dt_status dt_store_offer(const char *directory, json_t *entry, json_t **kept)
{
    struct offer offer = {.entry = entry};
    DT_TRY(dt_entry_check(entry, "the entry"));
    DT_TRY(dt_store_edit(directory, entry_offer, &offer));
    *kept = offer.kept;
    return DT_OK;
}

dt_status dt_store_get(const char *directory, const json_t *key, const json_t *hard, json_t **entry)
{
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *snapshot = NULL;
    uint64_t id = 0;
    *entry = NULL;
    DT_TRY(dt_snapshot_open(directory, &snapshot));
    DT_TRY(dt_store_id(key, hard, &id));
    for (long i = dt_snapshot_find(snapshot, id); i >= 0; i = dt_snapshot_next(snapshot, i)) {
        const json_t *found = NULL;
        DT_TRY(dt_snapshot_entry(snapshot, i, &found));
        if (dt_entry_match(found, key, hard)) {
            *entry = json_incref((json_t *)found);
            break;
        }
    }
    return DT_OK;
}

dt_status dt_store_each(const char *directory, void (*visit)(const json_t *entry, void *context),
                        void *context)
{
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *snapshot = NULL;
    DT_TRY(dt_snapshot_open(directory, &snapshot));
    for (size_t i = 0; i < dt_snapshot_count(snapshot); i++) {
        const json_t *entry = NULL;
        dt_status status = dt_snapshot_entry(snapshot, (long)i, &entry);
        if (status == DT_OK)
            visit(entry, context);
        else if (status != DT_ECORRUPT)
            return status;
    }
    return DT_OK;
}

/* ---- the secret of --private */

static dt_status secret_parse(const char *path, const struct dt_text *text,
                              unsigned char secret[DT_SIPHASH_KEY])
{
    const char *digits = dt_text_at(text);
    if (strspn(digits, "0123456789abcdef") != DIGITS || strcmp(digits + DIGITS, "\n") != 0)
        return dt_fail(DT_ECORRUPT,
                       "%s/" SECRET_FILE " is no secret of --private: put the right one back, or "
                       "remove it, after which the private entries are not found any more",
                       path);
    for (int i = 0; i < DT_SIPHASH_KEY; i++) {
        unsigned int byte = 0;
        (void)sscanf(digits + 2 * i, "%2x", &byte);
        secret[i] = (unsigned char)byte;
    }
    return DT_OK;
}

static dt_status secret_read(int directory, const char *path, unsigned char secret[DT_SIPHASH_KEY],
                             bool *there)
{
    dt_auto_text text = {0};
    *there = false;
    DT_TRY(dt_file_read(directory, path, SECRET_FILE, 2 * DIGITS, &text, there));
    return *there ? secret_parse(path, &text, secret) : DT_OK;
}

/* Under the store's lock. The file appears whole or not at all. */
static dt_status secret_write(int directory, const char *path, unsigned char secret[DT_SIPHASH_KEY])
{
    char text[DIGITS + 2];
    if (getrandom(secret, DT_SIPHASH_KEY, 0) != DT_SIPHASH_KEY)
        return dt_fail(DT_EIO, "cannot draw a secret: %s", strerror(errno));
    for (int i = 0; i < DT_SIPHASH_KEY; i++)
        snprintf(text + 2 * i, 3, "%02x", secret[i]);
    memcpy(text + DIGITS, "\n", 2);
    (void)unlinkat(directory, SECRET_NEW, 0);
    int fd = dt_file_open(directory, SECRET_NEW, O_WRONLY | O_CREAT | O_EXCL, 0600);
    bool made = fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, text, DIGITS + 1) == DIGITS + 1;
    dt_status status = made ? dt_file_sync(fd, path, SECRET_NEW) : DT_OK;
    if (fd >= 0)
        close(fd);
    DT_TRY(status);
    if (!made || renameat(directory, SECRET_NEW, directory, SECRET_FILE) != 0)
        return dt_fail(DT_EIO, "cannot make %s/" SECRET_FILE ": %s", path, strerror(errno));
    return dt_file_sync_directory(directory, path);
}

static dt_status secret_make(const char *path, unsigned char secret[DT_SIPHASH_KEY], bool *there)
{
    struct dt_store_held held;
    DT_TRY(dt_store_lock(path, &held));
    dt_status status = secret_read(held.fd, path, secret, there);
    if (status == DT_OK && !*there)
        status = secret_write(held.fd, path, secret);
    dt_store_unlock(&held);
    *there = status == DT_OK;
    return status;
}

dt_status dt_private_read(const char *directory, bool make_one,
                          unsigned char secret[DT_SIPHASH_KEY], bool *there)
{
    int folder = -1;
    *there = false;
    DT_TRY(dt_file_open_directory(directory, &folder));
    dt_status status = folder >= 0 ? secret_read(folder, directory, secret, there) : DT_OK;
    if (folder >= 0)
        close(folder);
    if (status == DT_OK && !*there && make_one)
        status = secret_make(directory, secret, there);
    return status;
}
