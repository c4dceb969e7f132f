/* SPDX-License-Identifier: MIT */
#include "base/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void dt_close_at(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

void dt_fclose_at(FILE **file)
{
    if (*file != NULL)
        fclose(*file);
}

void dt_closedir_at(DIR **folder)
{
    if (*folder != NULL)
        closedir(*folder);
}

dt_status dt_read_open(const char *path, const char *name, int *fd, size_t *bytes)
{
    struct stat info;
    DT_CLEANUP(dt_close_at) int opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0 || fstat(opened, &info) != 0)
        return dt_fail(DT_EIO, "cannot read %s: %s", name, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return dt_fail(DT_EIO, "cannot read %s: it is not a regular file", name);
    *fd = opened;
    *bytes = (size_t)info.st_size;
    opened = -1;
    return DT_OK;
}

dt_status dt_read_block(int fd, const char *name, char block[], size_t room, size_t *size)
{
    ssize_t got;
    do
        got = read(fd, block, room);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return dt_fail(DT_EIO, "cannot read %s: %s", name, strerror(errno));
    *size = (size_t)got;
    return DT_OK;
}

dt_status dt_read_text(const char *path, const char *name, size_t most, struct dt_text *text)
{
    char block[65536];
    DT_CLEANUP(dt_close_at) int fd = -1;
    size_t size = 1, bytes;
    DT_TRY(dt_read_open(path, name, &fd, &bytes));
    while (size > 0) {
        DT_TRY(dt_read_block(fd, name, block, sizeof block, &size));
        dt_text_add_bytes(text, block, size);
        if (text->size > most)
            return dt_fail(DT_EUSAGE, "%s is larger than the %zu bytes allowed", name, most);
    }
    return dt_text_status(text);
}

size_t dt_read_head(const char *path, char text[], size_t room)
{
    DT_CLEANUP(dt_fclose_at) FILE *file = fopen(path, "re");
    size_t size = file != NULL ? fread(text, 1, room - 1, file) : 0;
    text[size] = '\0';
    return size;
}

bool dt_read_line(const char *path, const char *key, char text[], size_t room)
{
    char line[1024];
    DT_CLEANUP(dt_fclose_at) FILE *file = fopen(path, "re");
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        const char *value = line + strlen(key);
        found = strncmp(line, key, strlen(key)) == 0;
        if (found)
            snprintf(text, room, "%.*s", (int)strcspn(value + strspn(value, " \t"), "\n"),
                     value + strspn(value, " \t"));
    }
    return found;
}

int64_t dt_read_number(const char *path, const char *key)
{
    char text[64], *end;
    long long number = dt_read_line(path, key, text, sizeof text) ? strtoll(text, &end, 10) : -1;
    return number != -1 && end != text ? number : -1;
}
