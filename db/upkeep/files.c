/* SPDX-License-Identifier: MIT */
#include "db/upkeep/upkeep_int.h"

#include "db/file_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void dt_upkeep_say(struct dt_upkeep *upkeep, enum dt_tell kind, const char *format, ...)
{
    char sentence[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    upkeep->done += kind == DT_TELL_DONE;
    upkeep->notes += kind == DT_TELL_NOTE;
    upkeep->broken += kind == DT_TELL_BROKEN;
    upkeep->tell(kind, sentence, upkeep->context);
}

static bool fits(int folder, const char *name, const char *prefix, const char *suffix)
{
    struct stat info;
    size_t size = strlen(name), end = strlen(suffix);
    return strncmp(name, prefix, strlen(prefix)) == 0 && name[0] != '.' && size >= end &&
           strcmp(name + size - end, suffix) == 0 &&
           fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Steals the names. */
static json_t *sorted(char **names, size_t n)
{
    json_t *array = json_array();
    if (n > 0)
        qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(
            array, json_string(names[i])); /* names that are not UTF-8 are none of ours */
        free(names[i]);
    }
    return array;
}

static json_t *list(DIR *entries, int folder, const char *prefix, const char *suffix)
{
    char **names = NULL;
    size_t n = 0, room = 0;
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        if (!fits(folder, entry->d_name, prefix, suffix))
            continue;
        if (n == room) {
            char **more = realloc(names, (room = 2 * room + 16) * sizeof *names);
            if (more == NULL)
                break;
            names = more;
        }
        if ((names[n] = strdup(entry->d_name)) == NULL)
            break;
        n++;
    }
    json_t *array = sorted(names, n);
    free(names);
    if (entry == NULL) /* else memory ran out: a part of a list is none */
        return array;
    json_decref(array);
    return NULL;
}

dt_status dt_upkeep_files(const char *folder, const char *prefix, const char *suffix,
                          json_t **names)
{
    int fd = -1;
    DT_TRY(dt_file_open_directory(folder, &fd));
    if (fd < 0) {
        *names = json_array();
        return DT_OK;
    }
    DIR *entries = fdopendir(fd);
    if (entries == NULL) {
        dt_status status = dt_fail(DT_EIO, "cannot list %s: %s", folder, strerror(errno));
        close(fd);
        return status;
    }
    *names = list(entries, fd, prefix, suffix);
    closedir(entries);
    return *names != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory while listing %s", folder);
}
