/* SPDX-License-Identifier: MIT */
/* At each moment best.json is the old version or the new one; a damaged one gets a second name before it is
 * replaced. */
#include "db/commit_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A second name for best.json costs no space; where links are not allowed, a copy does. A rename between two names of
 * one file (a writer died between the two renames) does nothing, so the temporary name is always removed. */
static dt_status keep_backup(int fd, const char *directory, const struct dt_text *old)
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

static dt_status keep_as(int fd, const char *directory, const char *stem)
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
static dt_status keep_dated(int fd, const char *directory, const char *why)
{
    char stem[DT_FILE_TEMP_SIZE];
    snprintf(stem, sizeof stem, DT_BEST_FILE ".%s-", why);
    size_t size = strlen(stem);
    struct tm utc;
    time_t now = time(NULL);
    if (gmtime_r(&now, &utc) != NULL)
        strftime(stem + size, sizeof stem - size, "%Y%m%dT%H%M%SZ", &utc);
    return keep_as(fd, directory, stem);
}

static dt_status replace(int fd, const char *directory, const char *temp)
{
    if (renameat(fd, temp, fd, DT_BEST_FILE) == 0)
        return DT_OK;
    return dt_fail(DT_EIO, "cannot replace %s/%s: %s", directory, DT_BEST_FILE, strerror(errno));
}

static dt_status set_aside(int fd, const char *directory, enum dt_commit_old old)
{
    switch (old) {
    case DT_COMMIT_FIRST:
    case DT_COMMIT_BACKUP:
        return DT_OK;
    case DT_COMMIT_BAD:
        return keep_dated(fd, directory, "bad");
    case DT_COMMIT_OLD:
        return keep_dated(fd, directory, "old");
    }
    return DT_OK;
}

dt_status dt_commit(int fd, const char *directory, const struct dt_text *text,
                    enum dt_commit_old old, const struct dt_text *bytes)
{
    char temp[DT_FILE_TEMP_SIZE];
    if (old == DT_COMMIT_BACKUP) /* first, so that the previous version takes no space meanwhile */
        DT_TRY(keep_backup(fd, directory, bytes));
    DT_TRY(dt_file_write_temp(fd, directory, text, temp));
    dt_status status = set_aside(fd, directory, old);
    if (status == DT_OK)
        status = replace(fd, directory, temp);
    if (status != DT_OK)
        unlinkat(fd, temp, 0);
    else
        status = dt_file_sync_directory(fd, directory);
    return status;
}
