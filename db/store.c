/* SPDX-License-Identifier: MIT */
/* Readers need no lock: best.json is only ever replaced by rename, so an open file is one whole version. At each moment
 * of a commit the name best.json stands for the old version or the new one, never for nothing; a broken one is kept by
 * a second name before it is replaced. */
#include "db/store.h"

#include "base/clock.h"
#include "db/best_int.h"
#include "db/file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BEST    "best.json"
#define BACKUP  "best.json.1"
#define WAIT_NS (10 * DT_NS_PER_SECOND)

const char *dt_store_default(void)
{
    static char path
        [8192]; /* longer than the kernel takes: a cut path fails, it never names another place */
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

static dt_status open_directory(const char *directory, int *fd)
{
    DT_TRY(dt_file_open_directory(directory, fd));
    if (*fd < 0)
        return dt_fail(DT_EIO, "cannot open the directory %s: it was removed meanwhile", directory);
    return DT_OK;
}

static dt_status refuse_newer(const struct dt_best *best)
{
    return best->state == DT_BEST_NEWER || best->state == DT_BEST_READONLY ? DT_ECORRUPT : DT_OK;
}

static dt_status check_best(int fd, const char *directory)
{
    struct dt_best best = {.state = DT_BEST_ABSENT};
    DT_TRY(dt_best_load(fd, directory, BEST, &best));
    dt_status status = refuse_newer(&best);
    dt_best_fini(&best);
    return status;
}

dt_status dt_store_check(const char *directory)
{
    struct dt_text text = {0};
    char temp[DT_FILE_TEMP_SIZE];
    int fd = -1;
    DT_TRY(make_runs(directory));
    DT_TRY(open_directory(directory, &fd));
    dt_text_add(&text, "dittune may write here\n");
    dt_status status = dt_file_write_temp(fd, directory, &text, temp);
    if (status == DT_OK)
        unlinkat(fd, temp, 0);
    if (status == DT_OK)
        status = check_best(fd, directory);
    close(fd);
    dt_text_fini(&text);
    return status;
}

/* The version to continue from; *broken tells that best.json itself is not it. */
static dt_status load_for_writing(int fd, const char *directory, struct dt_best *best, bool *broken)
{
    DT_TRY(dt_best_load(fd, directory, BEST, best));
    *broken = best->state == DT_BEST_BROKEN;
    if (*broken) {
        dt_best_fini(best);
        DT_TRY(dt_best_load(fd, directory, BACKUP, best));
    }
    DT_TRY(refuse_newer(best));
    if (best->root == NULL)
        best->root = dt_best_new();
    return best->root != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory while making a store");
}

/* The entry takes the place of the first that matches; a second one is none of ours to keep. */
static dt_status merge(json_t *root, json_t *entry)
{
    json_t *entries = json_object_get(root, "entries");
    const json_t *key = json_object_get(entry, "key");
    const json_t *hard = json_object_get(json_object_get(entry, "fingerprint"), "hard");
    bool placed = false;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        bool match = false;
        DT_TRY(dt_best_match(json_array_get(entries, i), key, hard, &match));
        if (!match)
            continue;
        int rc = placed ? json_array_remove(entries, i) : json_array_set(entries, i, entry);
        if (rc != 0)
            return dt_fail(DT_ENOMEM, "out of memory while storing an entry");
        i -= placed;
        placed = true;
    }
    if (!placed && json_array_append(entries, entry) != 0)
        return dt_fail(DT_ENOMEM, "out of memory while storing an entry");
    return DT_OK;
}

/* A second name for best.json costs no space; where links are not allowed, a copy does. A rename between two names of
 * one file (a writer died between the two renames) does nothing, so the temporary name is removed in any case. */
static dt_status keep_backup(int fd, const char *directory, const struct dt_text *old)
{
    char temp[DT_FILE_TEMP_SIZE];
    snprintf(temp, sizeof temp, ".dittune-%ld-backup.tmp", (long)getpid());
    unlinkat(fd, temp, 0);
    if (linkat(fd, BEST, fd, temp, 0) != 0)
        DT_TRY(dt_file_write_temp(fd, directory, old, temp));
    dt_status status = DT_OK;
    if (renameat(fd, temp, fd, BACKUP) != 0)
        status = dt_fail(DT_EIO, "cannot replace %s/%s: %s", directory, BACKUP, strerror(errno));
    unlinkat(fd, temp, 0);
    return status;
}

static dt_status quarantine(int fd, const char *directory, char name[DT_FILE_TEMP_SIZE])
{
    char stamp[32] = "";
    struct tm utc;
    time_t now = time(NULL);
    if (gmtime_r(&now, &utc) != NULL)
        strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    for (int i = 0; i < 100; i++) {
        snprintf(name, DT_FILE_TEMP_SIZE, BEST ".bad-%s%s%.0d", stamp, i > 0 ? "-" : "", i);
        if (linkat(fd, BEST, fd, name, 0) == 0)
            return DT_OK;
        if (errno == EEXIST)
            continue;
        if (renameat(fd, BEST, fd, name) == 0)
            return DT_OK;
        break;
    }
    return dt_fail(DT_EIO, "cannot move the broken %s/%s aside: %s", directory, BEST,
                   strerror(errno));
}

static dt_status replace(int fd, const char *directory, const char *temp)
{
    if (renameat(fd, temp, fd, BEST) == 0)
        return DT_OK;
    return dt_fail(DT_EIO, "cannot replace %s/%s: %s", directory, BEST, strerror(errno));
}

/* old: the bytes of a good best.json; NULL when there was none; a broken one has its own way. */
static dt_status commit(int fd, const char *directory, const struct dt_text *text,
                        const struct dt_text *old, bool broken)
{
    char temp[DT_FILE_TEMP_SIZE], bad[DT_FILE_TEMP_SIZE] = "";
    if (!broken &&
        old != NULL) /* first: then the version before it takes no room while temp is written */
        DT_TRY(keep_backup(fd, directory, old));
    DT_TRY(dt_file_write_temp(fd, directory, text, temp));
    dt_status status = DT_OK;
    if (broken)
        status = quarantine(fd, directory, bad);
    if (status == DT_OK)
        status = replace(fd, directory, temp);
    if (status != DT_OK)
        unlinkat(fd, temp, 0);
    else
        status = dt_file_sync_directory(fd, directory);
    return status;
}

static dt_status put_locked(int fd, const char *directory, json_t *entry)
{
    struct dt_best best = {.state = DT_BEST_ABSENT};
    struct dt_text text = {0};
    bool broken = false;
    dt_file_sweep(fd);
    dt_status status = load_for_writing(fd, directory, &best, &broken);
    if (status == DT_OK)
        status = merge(best.root, entry);
    if (status == DT_OK)
        status = dt_best_text(best.root, &text);
    if (status == DT_OK)
        status =
            commit(fd, directory, &text, best.state == DT_BEST_GOOD ? &best.text : NULL, broken);
    dt_text_fini(&text);
    dt_best_fini(&best);
    return status;
}

dt_status dt_store_put(const char *directory, json_t *entry)
{
    int fd = -1, lock = -1;
    DT_TRY(dt_best_check_entry(entry));
    DT_TRY(make_runs(directory));
    DT_TRY(open_directory(directory, &fd));
    dt_status status = dt_file_lock(fd, directory, WAIT_NS, &lock);
    if (status == DT_OK)
        status = put_locked(fd, directory, entry);
    if (lock >= 0)
        dt_file_unlock(lock);
    close(fd);
    return status;
}

/* DT_ECORRUPT with the sentence of best.json when the version before cannot stand in for it. */
static dt_status fall_back(int fd, const char *directory, struct dt_best *best)
{
    char sentence[1024];
    snprintf(sentence, sizeof sentence, "%s", dt_message());
    dt_best_fini(best);
    DT_TRY(dt_best_load(fd, directory, BACKUP, best));
    if (best->root != NULL)
        return DT_OK;
    return dt_fail(DT_ECORRUPT, "%s, and there is no good %s beside it", sentence, BACKUP);
}

static dt_status load_for_reading(const char *directory, struct dt_best *best)
{
    int fd = -1;
    DT_TRY(dt_file_open_directory(directory, &fd));
    if (fd < 0)
        return DT_OK;
    dt_status status = dt_best_load(fd, directory, BEST, best);
    if (status == DT_OK && best->state == DT_BEST_NEWER)
        status = DT_ECORRUPT;
    if (status == DT_OK && best->state == DT_BEST_BROKEN)
        status = fall_back(fd, directory, best);
    close(fd);
    return status;
}

dt_status dt_store_get(const char *directory, const json_t *key, const json_t *hard, json_t **entry)
{
    struct dt_best best = {.state = DT_BEST_ABSENT};
    json_t *found = NULL;
    dt_status status = load_for_reading(directory, &best);
    const json_t *entries = json_object_get(best.root, "entries");
    for (size_t i = 0; status == DT_OK && found == NULL && i < json_array_size(entries); i++) {
        bool match = false;
        status = dt_best_match(json_array_get(entries, i), key, hard, &match);
        if (match)
            found = json_incref(json_array_get(entries, i));
    }
    dt_best_fini(&best);
    if (status == DT_OK)
        *entry = found;
    return status;
}

dt_status dt_store_each(const char *directory, void (*visit)(const json_t *entry, void *context),
                        void *context)
{
    struct dt_best best = {.state = DT_BEST_ABSENT};
    dt_status status = load_for_reading(directory, &best);
    size_t i;
    const json_t *entry;
    if (status == DT_OK)
        json_array_foreach(json_object_get(best.root, "entries"), i,
                           entry) if (dt_best_check_entry(entry) == DT_OK) visit(entry, context);
    dt_best_fini(&best);
    return status;
}
