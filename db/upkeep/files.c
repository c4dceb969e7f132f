/* SPDX-License-Identifier: MIT */
#include "db/upkeep/upkeep_int.h"

#include "base/array.h"
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
    dt_text_mend(sentence);
    upkeep->done += kind == DT_TELL_DONE;
    upkeep->notes += kind == DT_TELL_NOTE || kind == DT_TELL_WARNING;
    upkeep->broken += kind == DT_TELL_BROKEN;
    upkeep->tell(kind, sentence, upkeep->context);
}

void dt_upkeep_say_error(struct dt_upkeep *upkeep, enum dt_tell kind, const char *opening)
{
    dt_upkeep_say(upkeep, kind, "%s%s", opening, dt_message());
}

/* Tests a candidate file; our names have only plain letters. *fits is false also for a file removed meanwhile. */
static dt_status look(int folder, const char *path, const char *name, bool *fits)
{
    struct stat info;
    for (const char *at = name; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~')
            return DT_OK;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0)
        *fits = S_ISREG(info.st_mode);
    else if (errno != ENOENT)
        return dt_fail(DT_EIO, "cannot look at %s/%s: %s", path, name, strerror(errno));
    return DT_OK;
}

static bool named(const char *name, const char *prefix, const char *suffix)
{
    size_t size = strlen(name), end = strlen(suffix);
    return strncmp(name, prefix, strlen(prefix)) == 0 && name[0] != '.' && size >= end &&
           strcmp(name + size - end, suffix) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct list {
    const char *path;
    char **names;
    size_t n;
};

static dt_status add(struct list *list, const char *name)
{
    DT_TRY(DT_GROW(list->names, list->n, 1));
    list->names[list->n] = strdup(name);
    if (list->names[list->n] == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while listing %s", list->path);
    list->n++;
    return DT_OK;
}

static dt_status fill(struct list *list, DIR *entries, const char *prefix, const char *suffix)
{
    for (;;) {
        bool fits = false;
        errno = 0;
        const struct dirent *entry = readdir(entries);
        if (entry == NULL && errno != 0)
            return dt_fail(DT_EIO, "cannot list %s: %s", list->path, strerror(errno));
        if (entry == NULL)
            return DT_OK;
        if (named(entry->d_name, prefix, suffix))
            DT_TRY(look(dirfd(entries), list->path, entry->d_name, &fits));
        if (fits)
            DT_TRY(add(list, entry->d_name));
    }
}

static dt_status sorted(const struct list *list, json_t **names)
{
    json_t *array = json_array();
    if (list->n > 0)
        qsort(list->names, list->n, sizeof *list->names, by_name);
    for (size_t i = 0; array != NULL && i < list->n; i++)
        if (json_array_append_new(array, json_string(list->names[i])) != 0) {
            json_decref(array);
            array = NULL;
        }
    *names = array;
    return array != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory while listing %s", list->path);
}

dt_status dt_upkeep_files(const char *folder, const char *prefix, const char *suffix,
                          json_t **names)
{
    int fd = -1;
    DT_TRY(dt_file_open_directory(folder, &fd));
    struct list list = {.path = folder};
    if (fd < 0)
        return sorted(&list, names);
    DIR *entries = fdopendir(fd);
    if (entries == NULL) {
        dt_status status = dt_fail(DT_EIO, "cannot list %s: %s", folder, strerror(errno));
        close(fd);
        return status;
    }
    dt_status status = fill(&list, entries, prefix, suffix);
    if (status == DT_OK)
        status = sorted(&list, names);
    closedir(entries);
    for (size_t i = 0; i < list.n; i++)
        free(list.names[i]);
    free(list.names);
    return status;
}
