/* SPDX-License-Identifier: MIT */
/* file - file operations for the store and the journal, relative to an open directory
 *
 * Sentences name path (for people); the calls use the descriptor, so renaming the directory
 * meanwhile does no harm. Every descriptor is close-on-exec and above 2: a program with a closed
 * stderr must not print into the store.
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

/* Modes of a store before the umask: several users may share one. */
#define DT_FILE_MODE   0666
#define DT_FOLDER_MODE 0777

/* Makes every missing folder of path and makes the new names durable. */
dt_status dt_file_make_path(const char *path) DT_MUST_CHECK;

/* *fd is the directory, or -1 with DT_OK when it does not exist. */
dt_status dt_file_open_directory(const char *path, int *fd) DT_MUST_CHECK;

/* The name of a network file system by its statfs magic; NULL: none, or unknown. */
const char *dt_file_network(uint32_t magic);

/* DT_EUSAGE when the open directory is on one of them. */
dt_status dt_file_refuse_network(int directory, const char *path) DT_MUST_CHECK;

/* Appends the whole file to text; *there is false with DT_OK for a missing file. DT_EIO also for
 * anything but a regular file. Of a file larger than `most` bytes only a part is read: text->size
 * shows that it is too large. */
dt_status dt_file_read(int directory, const char *path, const char *name, size_t most,
                       struct dt_text *text, bool *there) DT_MUST_CHECK;

/* Writes and syncs a new file with a unique name that starts with '.'; temp gets its name. Leaves
 * nothing behind on failure. */
#define DT_FILE_TEMP_SIZE 64
dt_status dt_file_write_temp(int directory, const char *path, const struct dt_text *text,
                             char temp[DT_FILE_TEMP_SIZE]) DT_MUST_CHECK;

/* Removes files of killed writers: names of dt_file_write_temp whose process has ended, or that are
 * older than a minute. The caller holds the lock. Never fails. */
void dt_file_sweep(int directory);

/* fsync; DT_EIO. A failure is final: the caller must discard the file. */
dt_status dt_file_sync(int fd, const char *path, const char *name) DT_MUST_CHECK;
dt_status dt_file_sync_directory(int fd, const char *path) DT_MUST_CHECK;

/* Takes the lock file of the directory for this open description: released by unlock, or by the
 * kernel when the process and all children it forked without exec have ended. Polls for
 * wait_ns; DT_ELOCK after. */
dt_status dt_file_lock(int directory, const char *path, int64_t wait_ns, int *fd) DT_MUST_CHECK;
void dt_file_unlock(int fd);

#endif
