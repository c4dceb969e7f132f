/* SPDX-License-Identifier: MIT */
/* A cache holds a description and the stamp of its conditions: it is fresh when the current stamp is equal. Starting a
 * worker takes a tenth of a second, reading the cache a hundredth of that. It is not synced: a lost or torn cache is
 * written again. */
#include "base/host.h"
#include "base/rng.h"
#include "tuner/machine/machine_int.h"
#include "tuner/runner/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_ROOM 4096

static json_int_t mtime_ns(const struct stat *info)
{
    return (json_int_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

/* Conditions of a cached description; NULL when the program is not found. The linker's cache changes whenever libraries
 * are installed. */
static json_t *stamp(const char *program)
{
    char path[DT_PROGRAM_ROOM];
    struct stat info, libraries;
    char *full = dt_host_program(program, path, sizeof path) ? realpath(path, NULL) : NULL;
    json_t *object = NULL;
    if (full != NULL && stat(full, &info) == 0)
        object = json_pack("{s:s, s:s, s:{s:s, s:I, s:I, s:I}, s:I, s:s, s:i, s:I}", "boot_id",
                           dt_host_boot(), "dittune", DT_VERSION, "worker", "path", full, "size",
                           (json_int_t)info.st_size, "mtime_ns", mtime_ns(&info), "inode",
                           (json_int_t)info.st_ino, "libraries_mtime_ns",
                           stat("/etc/ld.so.cache", &libraries) == 0 ? mtime_ns(&libraries) : 0,
                           "processors", dt_host_processors(), "cores", dt_host_cores(),
                           "memory_bytes", (json_int_t)dt_host_memory_limit());
    free(full);
    return object;
}

static bool cache_folder(char folder[PATH_ROOM])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int size = -1;
    if (cache != NULL && cache[0] == '/')
        size = snprintf(folder, PATH_ROOM, "%s/dittune", cache);
    else if (home != NULL && home[0] == '/')
        size = snprintf(folder, PATH_ROOM, "%s/.cache/dittune", home);
    return size > 0 && size < PATH_ROOM - 64;
}

static uint64_t stream_of(const struct dt_program *program)
{
    uint64_t stream = dt_rng_stream(program->path);
    for (int i = 0; program->arguments != NULL && program->arguments[i] != NULL; i++)
        stream = stream * 31 + dt_rng_stream(program->arguments[i]);
    return stream;
}

/* Each foreign worker has a file of its own, one for each list of arguments. */
static bool cache_path(const struct dt_machine_worker *worker, char path[PATH_ROOM])
{
    if (!cache_folder(path))
        return false;
    size_t size = strlen(path);
    if (worker->foreign)
        snprintf(path + size, PATH_ROOM - size, "/machine-%016llx.json",
                 (unsigned long long)stream_of(&worker->program));
    else
        snprintf(path + size, PATH_ROOM - size, "/machine%s.json",
                 worker->backend != NULL && worker->backend->cuda ? "-cuda" : "");
    return true;
}

static bool is_description(const json_t *root)
{
    json_int_t major =
        json_integer_value(json_object_get(json_object_get(root, "version"), "major"));
    return strcmp(dt_json_text_at(root, "format"), "dittune-machine") == 0 && major == 1 &&
           json_is_object(json_object_get(root, "hard")) &&
           json_is_object(json_object_get(root, "soft")) &&
           json_is_object(json_object_get(root, "info")) &&
           json_is_object(json_object_get(root, "limits"));
}

/* The variables are the current ones of this process, not the cached ones. */
json_t *dt_machine_cached(const struct dt_machine_worker *worker)
{
    char path[PATH_ROOM];
    json_t *root = NULL;
    if (!cache_path(worker, path) || access(path, R_OK) != 0 ||
        dt_json_read(path, "the cache", &root) < 0)
        return NULL;
    json_t *now = stamp(worker->program.path);
    bool fresh =
        now != NULL && is_description(root) && json_equal(now, json_object_get(root, "cache"));
    json_decref(now);
    if (!fresh) {
        json_decref(root);
        return NULL;
    }
    json_object_del(root, "cache");
    json_object_set_new(json_object_get(root, "soft"), "environment",
                        dt_machine_environment(worker->foreign));
    return root;
}

/* Makes the folders of path, without the file itself. */
static void make_folders(char path[])
{
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            errno = 0; /* opening the file reports the error */
        *at = '/';
    }
}

static void write_whole(const char *path, const struct dt_text *text)
{
    char temp[PATH_ROOM + 8];
    snprintf(temp, sizeof temp, "%s.XXXXXX", path);
    int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return;
    bool whole = write(fd, text->bytes, text->size) == (ssize_t)text->size;
    if (close(fd) != 0 || !whole || rename(temp, path) != 0)
        unlink(temp);
}

void dt_machine_keep(const struct dt_machine_worker *worker, const json_t *description)
{
    char path[PATH_ROOM];
    struct dt_text text = {0};
    json_t *now = stamp(worker->program.path), *whole = json_copy((json_t *)description);
    if (now == NULL || whole == NULL || !cache_path(worker, path)) {
        json_decref(now);
        json_decref(whole);
        return;
    }
    json_object_set_new(whole, "cache", now);
    if (dt_json_text(whole, &text) == DT_OK) {
        dt_text_add(&text, "\n");
        make_folders(path);
        write_whole(path, &text);
    }
    dt_text_fini(&text);
    json_decref(whole);
}
