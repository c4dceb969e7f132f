/* SPDX-License-Identifier: MIT */
/* Readers need no lock: best.json is only ever replaced by rename, so an open file is one whole version. */
#include "db/store.h"

#include "db/commit_int.h"
#include "db/entry_line_int.h"
#include "db/snapshot.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *dt_store_default(void)
{
    static char path
        [8192]; /* longer than the kernel accepts: a cut path fails and never names another file */
    const char *given = getenv("DITTUNE_DB"), *data = getenv("XDG_DATA_HOME");
    if (given != NULL && given[0] != '\0')
        return given;
    if (data != NULL && data[0] == '/') { /* the XDG rule: a relative one is ignored */
        snprintf(path, sizeof path, "%s/dittune", data);
        return path;
    }
    const char *home = getenv("HOME");
    const struct passwd *user = home == NULL || home[0] == '\0' ? getpwuid(geteuid()) : NULL;
    if (user != NULL)
        home = user->pw_dir;
    snprintf(path, sizeof path, "%s/.local/share/dittune", home != NULL ? home : ".");
    return path;
}

static dt_status make_runs(const char *directory)
{
    struct dt_text path = {0};
    dt_text_add(&path, "%s/runs", directory);
    dt_status status = dt_text_status(&path);
    if (status == DT_OK)
        status = dt_file_make_path(dt_text_at(&path));
    if (status == DT_OK && access(dt_text_at(&path), W_OK | X_OK) != 0)
        status = dt_fail(DT_EIO, "cannot write in %s: %s", dt_text_at(&path), strerror(errno));
    dt_text_fini(&path);
    return status;
}

/* The sentence of a folder that cannot be made or written, with what would help. */
static dt_status name_another(dt_status status)
{
    return status != DT_EIO
               ? status
               : dt_fail(status, "%s; --db DIR or DITTUNE_DB names another folder", dt_message());
}

dt_status dt_store_open(const char *directory, int *fd)
{
    int opened = -1;
    DT_TRY(name_another(dt_file_make_path(directory)));
    DT_TRY(dt_file_open_directory(directory, &opened));
    if (opened < 0)
        return dt_fail(DT_EIO, "cannot open the directory %s: it was removed meanwhile", directory);
    dt_status status = dt_file_refuse_network(opened, directory);
    if (status == DT_OK)
        status = name_another(make_runs(directory));
    if (status == DT_OK)
        *fd = opened;
    else
        close(opened);
    return status;
}

/* A sticky folder is no better: the first best.json, or a journal, may be anyone's. */
static void warn_of_folder(const char *folder, struct dt_text *out)
{
    struct stat info;
    if (stat(folder, &info) == 0 && (info.st_mode & S_IWOTH) != 0)
        dt_text_add(out,
                    "%sanyone may write in %s: chmod o-w it, or plans may be replaced or forged",
                    out->size > 0 ? "; " : "", folder);
}

dt_status dt_store_warnings(const char *directory, struct dt_text *out)
{
    struct dt_text runs = {0};
    dt_text_add(&runs, "%s/runs", directory);
    warn_of_folder(directory, out);
    warn_of_folder(dt_text_at(&runs), out);
    dt_status status = dt_text_status(&runs);
    dt_text_fini(&runs);
    return status == DT_OK ? dt_text_status(out) : status;
}

static dt_status refuse_to_write(const struct dt_best *best)
{
    return best->state == DT_BEST_ABSENT || best->state == DT_BEST_GOOD ? DT_OK : DT_ECORRUPT;
}

/* The version to continue from. */
static dt_status load_for_writing(int fd, const char *directory, struct dt_edit *edit,
                                  struct dt_text *because)
{
    DT_TRY(dt_best_load(fd, directory, DT_BEST_FILE, &edit->best));
    edit->old = edit->best.state == DT_BEST_ABSENT ? DT_COMMIT_FIRST : DT_COMMIT_BACKUP;
    if (edit->best.state != DT_BEST_BROKEN)
        return refuse_to_write(&edit->best);
    edit->old = DT_COMMIT_BAD;
    dt_text_add(because, "%s", dt_message());
    edit->because = dt_text_at(because);
    dt_best_fini(&edit->best);
    DT_TRY(dt_text_status(because));
    DT_TRY(dt_best_load(fd, directory, DT_BACKUP_FILE, &edit->best));
    if (edit->best.state == DT_BEST_BROKEN)
        dt_best_fini(&edit->best);
    return refuse_to_write(&edit->best);
}

static dt_status check_best(int fd, const char *directory)
{
    struct dt_snapshot *snapshot = NULL;
    struct dt_edit edit = {.old = DT_COMMIT_FIRST};
    struct dt_text because = {0};
    DT_TRY(dt_snapshot_open(directory, &snapshot)); /* a session that no one could read */
    dt_snapshot_close(snapshot);
    dt_status status = load_for_writing(fd, directory, &edit, &because);
    dt_text_fini(&because);
    dt_best_fini(&edit.best);
    return status;
}

/* That it can be locked at all; who holds it now will be done by the end of a session. */
static dt_status check_lock(int fd, const char *directory)
{
    int lock = -1;
    dt_status status = dt_file_lock(fd, directory, 0, &lock);
    if (lock >= 0)
        dt_file_unlock(lock);
    return status == DT_ELOCK ? DT_OK : status;
}

dt_status dt_store_check(const char *directory)
{
    struct dt_text text = {0};
    char temp[DT_FILE_TEMP_SIZE];
    int fd = -1;
    DT_TRY(dt_store_open(directory, &fd));
    dt_text_add(&text, "dittune may write here\n");
    dt_status status = dt_file_write_temp(fd, directory, &text, temp);
    if (status == DT_OK)
        unlinkat(fd, temp, 0);
    if (status == DT_OK)
        status = check_lock(fd, directory);
    if (status == DT_OK)
        status = check_best(fd, directory);
    close(fd);
    dt_text_fini(&text);
    return status;
}

static dt_status edit_locked(int fd, const char *directory,
                             dt_status (*decide)(struct dt_edit *edit, void *context),
                             void *context)
{
    struct dt_edit edit = {.entries = json_array()};
    struct dt_text text = {0}, because = {0};
    dt_file_sweep(fd);
    dt_status status = edit.entries != NULL ? load_for_writing(fd, directory, &edit, &because)
                                            : dt_fail(DT_ENOMEM, "out of memory while storing");
    if (status == DT_OK)
        status = decide(&edit, context);
    bool any = json_array_size(edit.entries) > 0 || edit.drop != NULL;
    if (status == DT_OK && edit.drop != NULL)
        status = dt_best_drop(&edit.best, edit.drop, &text);
    else if (status == DT_OK && any)
        status = dt_best_put(&edit.best, edit.entries, &text);
    if (status == DT_OK && any)
        status = dt_commit(fd, directory, &text, edit.old, &edit.best.text);
    dt_text_fini(&text);
    dt_text_fini(&because);
    dt_best_fini(&edit.best);
    json_decref(edit.entries);
    free(edit.drop);
    return status;
}

dt_status dt_store_edit(const char *directory,
                        dt_status (*decide)(struct dt_edit *edit, void *context), void *context)
{
    int fd = -1, lock = -1;
    DT_TRY(dt_store_open(directory, &fd));
    dt_status status = dt_file_lock(fd, directory, DT_STORE_WAIT_NS, &lock);
    if (status == DT_OK)
        status = edit_locked(fd, directory, decide, context);
    if (lock >= 0)
        dt_file_unlock(lock);
    close(fd);
    return status;
}

static dt_status put_one(struct dt_edit *edit, void *context)
{
    json_t *entry = context;
    return json_array_append(edit->entries, entry) == 0
               ? DT_OK
               : dt_fail(DT_ENOMEM, "out of memory while storing an entry");
}

dt_status dt_store_put(const char *directory, json_t *entry)
{
    DT_TRY(dt_entry_check(entry, "the entry"));
    return dt_store_edit(directory, put_one, entry);
}

static dt_status find(const struct dt_snapshot *snapshot, const json_t *key, const json_t *hard,
                      const json_t **found)
{
    uint64_t id = 0;
    DT_TRY(dt_store_id(key, hard, &id));
    for (long i = dt_snapshot_find(snapshot, id); i >= 0; i = dt_snapshot_next(snapshot, i)) {
        const json_t *entry = NULL;
        bool match = false;
        DT_TRY(dt_snapshot_entry(snapshot, i, &entry));
        DT_TRY(dt_entry_match(entry, key, hard, &match));
        if (match) {
            *found = entry;
            return DT_OK;
        }
    }
    return DT_OK;
}

dt_status dt_store_get(const char *directory, const json_t *key, const json_t *hard, json_t **entry)
{
    struct dt_snapshot *snapshot = NULL;
    const json_t *found = NULL;
    DT_TRY(dt_snapshot_open(directory, &snapshot));
    dt_status status = find(snapshot, key, hard, &found);
    if (status == DT_OK)
        *entry = json_incref((json_t *)found);
    dt_snapshot_close(snapshot);
    return status;
}

dt_status dt_store_each(const char *directory, void (*visit)(const json_t *entry, void *context),
                        void *context)
{
    struct dt_snapshot *snapshot = NULL;
    dt_status status = DT_OK;
    DT_TRY(dt_snapshot_open(directory, &snapshot));
    for (size_t i = 0; status == DT_OK && i < dt_snapshot_count(snapshot); i++) {
        const json_t *entry = NULL;
        status = dt_snapshot_entry(snapshot, (long)i, &entry);
        if (status == DT_OK)
            visit(entry, context);
        else if (status == DT_ECORRUPT)
            status = DT_OK;
    }
    dt_snapshot_close(snapshot);
    return status;
}
