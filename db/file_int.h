/* SPDX-License-Identifier: MIT */
/* file - the few file operations the store and the journal are made of, relative to an open directory
 *
 * Sentences name path (for people); the calls use the descriptor, so a directory that is renamed meanwhile stays ours.
 * Every descriptor is close-on-exec and above 2: a program with a closed stderr must not print into the store.
 */
#ifndef DT_DB_FILE_INT_H
#define DT_DB_FILE_INT_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* openat with O_CLOEXEC | O_NOFOLLOW and a descriptor above 2; -1 with errno. */
int dt_file_open(int directory, const char *name, int flags, mode_t mode);

/* Makes every missing folder of path (0755 and the umask) and makes the new names durable. */
dt_status dt_file_make_path(const char *path) DT_MUST_CHECK;

/* *fd is the directory, or -1 with DT_OK when it does not exist. */
dt_status dt_file_open_directory(const char *path, int *fd) DT_MUST_CHECK;

/* The name of a network file system by its statfs magic; NULL: it is none, or not known. */
const char *dt_file_network(uint32_t magic);

/* DT_EUSAGE when the open directory is on one of them. */
dt_status dt_file_refuse_network(int directory, const char *path) DT_MUST_CHECK;

/* Appends the whole file to text; *there is false with DT_OK when there is no such file. DT_EIO also for what is not a
 * regular file. Of a file that is larger than most bytes a part is read: the caller sees by text->size that it is too
 * large. */
dt_status dt_file_read(int directory, const char *path, const char *name, size_t most,
                       struct dt_text *text, bool *there) DT_MUST_CHECK;

/* A new file with a unique name that starts with '.', written and synced; its name to temp. Nothing stays behind on
 * failure. */
#define DT_FILE_TEMP_SIZE 64
dt_status dt_file_write_temp(int directory, const char *path, const struct dt_text *text,
                             char temp[DT_FILE_TEMP_SIZE]) DT_MUST_CHECK;

/* Removes what killed writers left: names of dt_file_write_temp whose process is gone, or that are older than a minute. Under
 * the lock. Never fails: it is only tidying. */
void dt_file_sweep(int directory);

/* fsync; DT_EIO. A failure is final: the caller gives the file up. */
dt_status dt_file_sync(int fd, const char *path, const char *name) DT_MUST_CHECK;
dt_status dt_file_sync_directory(int fd, const char *path) DT_MUST_CHECK;

/* Takes the lock file of the directory for this open description: freed by unlock, or by the kernel when the process
 * dies and no child that it forked without exec lives on. Polls for wait_ns; DT_ELOCK after. */
dt_status dt_file_lock(int directory, const char *path, int64_t wait_ns, int *fd) DT_MUST_CHECK;
void dt_file_unlock(int fd);

#endif
