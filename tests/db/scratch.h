/* SPDX-License-Identifier: MIT */
/* scratch - an empty directory for one test, entries to store in it, and files
 * read and written whole
 *
 * Include after cmocka.h: everything here asserts.
 */
#ifndef DT_TESTS_DB_SCRATCH_H
#define DT_TESTS_DB_SCRATCH_H

#include "base/json.h"
#include "db/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[256]; /* the directory */

/* A path in the scratch directory; four may be in use at a time. */
static inline const char *at(const char *name)
{
    static char paths[4][512];
    static int next;
    next = (next + 1) % 4;
    snprintf(paths[next], sizeof paths[next], "%s/%s", scratch, name);
    return paths[next];
}

static inline int scratch_make(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/dittune-test-XXXXXX", base != NULL ? base : "/tmp");
    return mkdtemp(scratch) != NULL ? 0 : -1;
}

static inline int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline int scratch_remove(void **state)
{
    (void)state;
    nftw(scratch, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return 0;
}

/* How many names in the directory start with prefix. */
static inline int count_names(const char *path, const char *prefix)
{
    int n = 0;
    DIR *entries = opendir(path);
    const struct dirent *entry;
    assert_non_null(entries);
    while ((entry = readdir(entries)) != NULL)
        n += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(entries);
    return n;
}

/* A new file: ext4 flushes one that is emptied and written again to disk, which takes
 * longer than all the rest. */
static inline void write_file(const char *path, const void *bytes, size_t size)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

/* The caller frees. */
static inline char *read_file(const char *path, size_t *size)
{
    struct stat info;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    char *bytes = calloc(1, (size_t)info.st_size + 1);
    assert_non_null(bytes);
    assert_int_equal(read(fd, bytes, (size_t)info.st_size), info.st_size);
    close(fd);
    *size = (size_t)info.st_size;
    return bytes;
}

static inline json_t *make_key(const char *model)
{
    return json_pack("{s:s, s:s, s:i}", "model", model, "objective", "latency", "devices", 2);
}

static inline json_t *make_hard(void)
{
    return json_pack("{s:s, s:b, s:i}", "cpu", "x", "bf16", 1, "cores", 2);
}

/* An entry whose plan is ranks=value. */
static inline json_t *make_entry(const char *model, int64_t value)
{
    return json_pack("{s:o, s:{s:o, s:{s:s}, s:{}}, s:{s:I}, s:{s:f}}", "key", make_key(model),
                     "fingerprint", "hard", make_hard(), "soft", "mpi", "4.1", "info", "plan",
                     "ranks", (json_int_t)value, "gain", "ratio", 0.1);
}

static inline dt_status put(const char *model, int64_t value)
{
    json_t *entry = make_entry(model, value);
    assert_non_null(entry);
    dt_status status = dt_store_put(scratch, entry);
    json_decref(entry);
    return status;
}

/* The entry of the model, or NULL; the caller drops the reference. */
static inline dt_status get(const char *model, json_t **entry)
{
    json_t *key = make_key(model), *hard = make_hard();
    *entry = NULL;
    dt_status status = dt_store_get(scratch, key, hard, entry);
    json_decref(key);
    json_decref(hard);
    return status;
}

/* The stored entry is the one that was put, apart from the "id" and the "crc"
 * that the store adds. */
static inline bool same_entry(const json_t *stored, const json_t *entry)
{
    json_t *bare = json_copy((json_t *)stored);
    bool sealed = json_object_del(bare, "id") == 0 && json_object_del(bare, "crc") == 0;
    bool same = sealed && json_equal(bare, entry);
    json_decref(bare);
    return same;
}

/* plan.ranks of the model's entry; -1 when there is none; below -1 the error. */
static inline int64_t value_of(const char *model)
{
    json_t *entry = NULL;
    dt_status status = get(model, &entry);
    if (status != DT_OK)
        return status - 1;
    if (entry == NULL)
        return -1;
    int64_t value = json_integer_value(json_object_get(json_object_get(entry, "plan"), "ranks"));
    json_decref(entry);
    return value;
}

static inline void count_entry(const json_t *entry, void *count)
{
    assert_true(json_is_object(entry));
    ++*(int *)count;
}

#endif
