/* SPDX-License-Identifier: MIT */
#include "db/file_int.h"

#include "base/clock.h"
#include "base/figures.h"
#include "base/read.h"
#include "base/rng.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define TEMP_PREFIX ".dittune-"
#define TEMP_SUFFIX ".tmp"

static int fd_lift(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    close(fd);
    errno = error;
    return high;
}

int dt_file_open(int directory, const char *name, int flags, mode_t mode)
{
    return fd_lift(openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW, mode));
}

/* A new directory is only an entry of its parent: sync that. */
static dt_status parent_sync(const char *path)
{
    DT_CLEANUP(dt_close_at) int fd = -1;
    dt_auto_text parent = {0};
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        dt_text_add(&parent, ".");
    else
        dt_text_add_bytes(&parent, path, slash == path ? 1 : (size_t)(slash - path));
    DT_TRY(dt_text_status(&parent));
    DT_TRY(dt_file_open_directory(dt_text_at(&parent), &fd));
    return fd >= 0 ? dt_file_sync_directory(fd, dt_text_at(&parent)) : DT_OK;
}

static dt_status folder_make(const char *path)
{
    if (mkdir(path, DT_FOLDER_MODE) == 0)
        return parent_sync(path);
    struct stat info;
    int error = errno;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return DT_OK;
    if (error == EEXIST)
        error = ENOTDIR;
    return dt_fail(DT_EIO, "cannot make the directory %s: %s", path, strerror(error));
}

dt_status dt_file_make_path(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    for (size_t i = 0; i <= size; i++) {
        dt_auto_text folder = {0};
        if (i < size && (i == 0 || path[i] != '/' || path[i - 1] == '/'))
            continue;
        dt_text_add_bytes(&folder, path, i);
        DT_TRY(dt_text_status(&folder));
        DT_TRY(folder_make(dt_text_at(&folder)));
    }
    return DT_OK;
}

dt_status dt_file_open_directory(const char *path, int *fd)
{
    int opened = fd_lift(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened < 0 && errno != ENOENT)
        return dt_fail(DT_EIO, "cannot open the directory %s: %s", path, strerror(errno));
    *fd = opened;
    return DT_OK;
}

static dt_status blocks_read(int fd, size_t expected, size_t most, struct dt_text *text)
{
    dt_text_reserve(text, (expected < most ? expected : most) + 1);
    while (text->size <= most) {
        dt_text_reserve(text, 4096);
        DT_TRY(dt_text_status(text));
        ssize_t got = read(fd, text->bytes + text->size, text->room - text->size - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return DT_EIO;
        if (got == 0)
            break;
        text->size += (size_t)got;
        text->bytes[text->size] = '\0';
    }
    return DT_OK;
}

dt_status dt_file_read(int directory, const char *path, const char *name, size_t most,
                       struct dt_text *text, bool *there)
{
    struct stat info;
    DT_CLEANUP(dt_close_at)
    int fd = dt_file_open(directory, name, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0 && errno == ENOENT) {
        *there = false;
        return DT_OK;
    }
    if (fd < 0 && errno == ELOOP)
        return dt_fail(DT_EIO, "cannot read %s/%s: it is a symbolic link, expected a regular file",
                       path, name);
    dt_status status = fd < 0 || fstat(fd, &info) != 0 ? DT_EIO : DT_OK;
    if (status == DT_OK && !S_ISREG(info.st_mode))
        return dt_fail(DT_EIO, "cannot read %s/%s: it is not a regular file", path, name);
    if (status == DT_OK)
        status = blocks_read(fd, (size_t)info.st_size, most, text);
    if (status == DT_EIO)
        return dt_fail(DT_EIO, "cannot read %s/%s: %s", path, name, strerror(errno));
    if (status == DT_OK)
        *there = true;
    return status;
}

static dt_status text_write(int fd, const char *path, const struct dt_text *text)
{
    const char *bytes = dt_text_at(text);
    size_t done = 0;
    while (done < text->size) {
        ssize_t put = write(fd, bytes + done, text->size - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return dt_fail(DT_EIO, "cannot write in %s: %s", path,
                           strerror(put < 0 ? errno : ENOSPC));
        done += (size_t)put;
    }
    return DT_OK;
}

dt_status dt_file_write_temp(int directory, const char *path, const struct dt_text *text,
                             char temp[DT_FILE_TEMP_SIZE])
{
    static atomic_uint calls;
    int fd = -1;
    for (int tries = 0; fd < 0 && tries < 16; tries++) {
        uint64_t unique = dt_rng_hash((uint64_t)dt_clock_wall_ns(), (uint64_t)getpid(), calls++);
        snprintf(temp, DT_FILE_TEMP_SIZE, TEMP_PREFIX "%ld-%016llx" TEMP_SUFFIX, (long)getpid(),
                 (unsigned long long)unique);
        fd = dt_file_open(directory, temp, O_WRONLY | O_CREAT | O_EXCL, DT_FILE_MODE);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0)
        return dt_fail(DT_EIO, "cannot write in %s: %s", path, strerror(errno));
    dt_status status = text_write(fd, path, text);
    if (status == DT_OK)
        status = dt_file_sync(fd, path, temp);
    if (close(fd) != 0 && status == DT_OK)
        status = dt_fail(DT_EIO, "cannot write in %s: %s", path, strerror(errno));
    if (status != DT_OK)
        unlinkat(directory, temp, 0);
    return status;
}

/* A left-over of an ended process: its process is gone, or it is older than any write, or from the
 * future (the clock may have been set back). */
static bool is_left(const char *name, time_t modified, time_t now)
{
    size_t size = strlen(name), suffix = strlen(TEMP_SUFFIX);
    if (size <= suffix || strncmp(name, TEMP_PREFIX, strlen(TEMP_PREFIX)) != 0 ||
        strcmp(name + size - suffix, TEMP_SUFFIX) != 0)
        return false;
    long writer = strtol(name + strlen(TEMP_PREFIX), NULL, 10);
    bool gone = writer > 0 && kill((pid_t)writer, 0) != 0 && errno == ESRCH;
    return gone || modified < now - 60 || modified > now + 60;
}

void dt_file_sweep(int directory)
{
    int fd = dt_file_open(directory, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (entries == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    const struct dirent *entry;
    time_t now = time(NULL);
    while ((entry = readdir(entries)) != NULL) {
        struct stat info;
        if (fstatat(directory, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            is_left(entry->d_name, info.st_mtime, now))
            unlinkat(directory, entry->d_name, 0);
    }
    closedir(entries);
}

/* Not retried: after a failed fsync Linux marks the pages clean, and a second one would succeed
 * wrongly. */
dt_status dt_file_sync(int fd, const char *path, const char *name)
{
    if (fsync(fd) == 0)
        return DT_OK;
    return dt_fail(DT_EIO, "cannot sync %s/%s to disk: %s", path, name, strerror(errno));
}

/* EINVAL: a file system without sync of directories. */
dt_status dt_file_sync_directory(int fd, const char *path)
{
    if (fsync(fd) == 0 || errno == EINVAL)
        return DT_OK;
    return dt_fail(DT_EIO, "what was written in %s may not survive a loss of power: %s", path,
                   strerror(errno));
}

dt_status dt_file_lock(int directory, const char *path, int64_t wait_ns, int *fd)
{
    /* flock needs no right to write, which another user's umask may have kept back; O_NONBLOCK: a
     * pipe */
    DT_CLEANUP(dt_close_at)
    int lock = dt_file_open(directory, "lock", O_RDONLY | O_CREAT | O_NONBLOCK, DT_FILE_MODE);
    struct stat info;
    if (lock < 0)
        return dt_fail(DT_EIO, "cannot open %s/lock: %s", path, strerror(errno));
    if (fstat(lock, &info) != 0 || !S_ISREG(info.st_mode))
        return dt_fail(DT_EIO, "cannot lock %s/lock: it is not a regular file; remove it", path);
    int64_t end = dt_clock_ns() + wait_ns, pause = 500000;
    while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return dt_fail(DT_EIO, "cannot lock %s/lock: %s", path, strerror(errno));
        if (dt_clock_ns() >= end)
            return dt_fail(DT_ELOCK, "another program held %s/lock for %s, try again later", path,
                           dt_figure_of((double)wait_ns * 1e-9).text);
        dt_clock_sleep_ns(pause);
        pause = pause < 10000000 ? pause * 2 : pause;
    }
    *fd = lock;
    lock = -1;
    return DT_OK;
}

/* A child forked meanwhile shares the open description, so close alone would leave it the lock. */
void dt_file_unlock(int fd)
{
    flock(fd, LOCK_UN);
    close(fd);
}

/* ---- file systems behind a network, by the number that statfs gives
 *
 * There a rename may have happened although it failed (rename(2)), an append may overwrite
 * another's (open(2), O_APPEND), and a lock is the server's, if it is one. FUSE is among them
 * because its backing store is unknown. Sources: linux/magic.h, statfs(2), and, where it is named,
 * what GNU coreutils' stat knows (src/stat.c, rows marked "remote"). */

static const struct network {
    uint32_t magic;
    const char *name;
} networks[] = {
    {0x6969, "NFS"},
    {0x517b, "SMB"},
    {0xff534d42, "SMB (CIFS)"},
    {0xfe534d42, "SMB 2"},
    {0x01021997, "9p"},
    {0x65735546, "FUSE"},
    {0x00c36400, "Ceph"},
    {0x5346414f, "AFS"},
    {0x6b414653, "AFS (kAFS)"},
    {0x73757245, "Coda"},
    {0x564c, "NCP"},
    {0x7461636f, "OCFS2"},
    {0x01161970, "GFS2"},
    {0x0bd00bd0, "Lustre"},         /* coreutils */
    {0x47504653, "GPFS"},           /* coreutils */
    {0x19830326, "BeeGFS (FhGFS)"}, /* coreutils */
    {0x013111a8, "IBRIX"},          /* coreutils */
    {0x786f4256, "VirtualBox"},     /* coreutils: vboxsf */
};

const char *dt_file_network(uint32_t magic)
{
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        if (networks[i].magic == magic)
            return networks[i].name;
    return NULL;
}

dt_status dt_file_refuse_network(int directory, const char *path)
{
    struct statfs info;
    if (fstatfs(directory, &info) != 0) /* such as ENOSYS: continue if the kernel does not know */
        return errno == EIO
                   ? dt_fail(DT_EIO, "cannot tell the file system of %s: %s", path, strerror(errno))
                   : DT_OK;
    const char *name = dt_file_network((uint32_t)info.f_type);
    if (name == NULL)
        return DT_OK;
    return dt_fail(DT_EUSAGE,
                   "the store %s is on a network file system (%s), where locks and renames are not "
                   "reliable: write to one on a local disk (--db DIR), looking up works here too",
                   path, name);
}
