/* SPDX-License-Identifier: MIT */
#include "base/replace.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static dt_status cannot_write(const struct dt_replace *file)
{
    return dt_fail(DT_EIO, "cannot write %.300s: %s", file->path, strerror(errno));
}

/* The descriptor that a path names, whose place and whose end (>>) are its own; -1: none. */
static int descriptor_of(const char *path)
{
    static const char *const named[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (int i = 0; i < 3; i++)
        if (strcmp(path, named[i]) == 0)
            return i;
    for (int i = 0; i < 2; i++) {
        size_t size = strlen(folders[i]);
        if (strncmp(path, folders[i], size) != 0 || !isdigit((unsigned char)path[size]))
            continue;
        char *end;
        long number = strtol(path + size, &end, 10);
        return *end == '\0' && number <= INT_MAX ? (int)number : -1;
    }
    return -1;
}

/* Devices, pipes and folders cannot be replaced (a folder then cannot be opened). */
static bool is_written_to(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode);
}

/* O_NONBLOCK: a pipe that nobody reads. */
static dt_status open_in_place(struct dt_replace *file)
{
    int descriptor = descriptor_of(file->path);
    file->fd = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
                               : open(file->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file->fd < 0 || (descriptor < 0 && fcntl(file->fd, F_SETFL, 0) != 0))
        return cannot_write(file);
    return DT_OK;
}

dt_status dt_replace_open(const char *path, struct dt_replace *file)
{
    *file = (struct dt_replace){.fd = -1, .path = path};
    if (descriptor_of(path) >= 0 || is_written_to(path))
        return open_in_place(file);
    dt_text_add(&file->beside, "%s.tmp-%ld", path, (long)getpid());
    DT_TRY(dt_text_status(&file->beside));
    unlink(dt_text_at(&file->beside)); /* left by a killed process with this pid */
    file->fd =
        open(dt_text_at(&file->beside), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file->fd >= 0)
        return DT_OK;
    dt_text_fini(&file->beside);
    return cannot_write(file);
}

dt_status dt_replace_add(struct dt_replace *file, const void *bytes, size_t size)
{
    for (const char *at = bytes; size > 0;) {
        ssize_t n = write(file->fd, at, size);
        if (n < 0 &&
            errno == EAGAIN) { /* a descriptor of ours that another program made O_NONBLOCK */
            poll(&(struct pollfd){.fd = file->fd, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cannot_write(file);
        at += n;
        size -= (size_t)n;
    }
    return DT_OK;
}

dt_status dt_replace_close(struct dt_replace *file, dt_status status)
{
    const char *beside = dt_text_at(&file->beside);
    if (file->fd < 0)
        return status;
    bool is_beside = beside[0] != '\0';
    if (status == DT_OK && is_beside && fsync(file->fd) != 0)
        status = cannot_write(file);
    if (close(file->fd) != 0 && status == DT_OK)
        status = cannot_write(file);
    file->fd = -1;
    if (status == DT_OK && is_beside && rename(beside, file->path) != 0)
        status = cannot_write(file);
    if (status != DT_OK && is_beside)
        unlink(beside);
    dt_text_fini(&file->beside);
    return status;
}

void dt_replace_drop(struct dt_replace *file)
{
    dt_status status = dt_replace_close(file, DT_FAILED);
    (void)status;
}

dt_status dt_replace_text(const char *path, const struct dt_text *text)
{
    struct dt_replace file;
    DT_TRY(dt_text_status(text));
    DT_TRY(dt_replace_open(path, &file));
    return dt_replace_close(&file, dt_replace_add(&file, dt_text_at(text), text->size));
}
