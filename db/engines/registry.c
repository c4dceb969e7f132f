/* SPDX-License-Identifier: MIT */
/* The engine files, compiled in byte for byte: a file may exceed the 4095 characters that C guarantees for a
 * literal. */
#include "db/engines/engines_int.h"

#include <stdio.h>
#include <string.h>

#define ENGINE(file, ...) {file, (const unsigned char[]){__VA_ARGS__, 0}},
const struct dt_engine_file dt_engine_files[] = {
#include "engines.inc"
};
#undef ENGINE
const int dt_engine_file_count = sizeof dt_engine_files / sizeof dt_engine_files[0];

/* Bytes of the engine's name in "vllm-omni-0.30.0". */
static size_t name_size(const char *file)
{
    return (size_t)(strrchr(file, '-') - file);
}

static dt_status unknown(const char *name)
{
    enum { NAMES = 64, ROOM = 48 };
    struct dt_text list = {0};
    char words[NAMES][ROOM];
    const char *names[NAMES + 1] = {NULL};
    for (int i = 0; i < dt_engine_file_count; i++) {
        const char *file = dt_engine_files[i].file;
        size_t size = name_size(file);
        dt_text_add(&list, "%s%.*s:%s", i > 0 ? ", " : "", (int)size, file, file + size + 1);
        if (i < NAMES) {
            snprintf(words[i], ROOM, "%.*s", (int)size, file);
            names[i] = words[i];
        }
    }
    const char *near = strchr(name, ':') == NULL ? dt_json_nearest(name, names) : NULL;
    dt_status status = dt_text_status(&list);
    if (status == DT_OK)
        status = dt_fail(DT_EUSAGE, "unknown engine '%s'%s%s%s; known are %s", name,
                         near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                         near != NULL ? "'?" : "", dt_text_at(&list));
    dt_text_fini(&list);
    return status;
}

/* The newest version of the engine that is not newer than the one asked for, else the oldest. */
static dt_status unknown_version(const char *name, size_t size)
{
    const char *near = NULL;
    for (int i = 0; i < dt_engine_file_count; i++) {
        const char *file = dt_engine_files[i].file;
        if (name_size(file) != size || strncmp(file, name, size) != 0)
            continue;
        const char *version = file + size + 1, *asked = name + size + 1;
        bool fits = strverscmp(version, asked) <= 0;
        bool near_fits = near != NULL && strverscmp(near, asked) <= 0;
        if (near == NULL || (fits ? !near_fits || strverscmp(version, near) > 0
                                  : !near_fits && strverscmp(version, near) < 0))
            near = version;
    }
    return dt_fail(DT_EUSAGE,
                   "unknown engine '%s': the nearest version with a file is %.*s:%s, whose words "
                   "and rules may differ from it (docs/exports.md says how to write a file)",
                   name, (int)size, name, near);
}

dt_status dt_engine_find(const char *name, const struct dt_engine_file **file)
{
    const char *colon = strchr(name, ':');
    size_t size = strcspn(name, ":");
    const struct dt_engine_file *found = NULL;
    for (int i = 0; i < dt_engine_file_count; i++) {
        const char *at = dt_engine_files[i].file;
        if (name_size(at) != size || strncmp(at, name, size) != 0)
            continue;
        const char *version = at + size + 1;
        if (colon != NULL ? strcmp(version, colon + 1) == 0
                          : found == NULL || strverscmp(version, found->file + size + 1) > 0)
            found = &dt_engine_files[i];
    }
    if (found == NULL)
        return colon != NULL && dt_engine_known(name) ? unknown_version(name, size) : unknown(name);
    *file = found;
    return DT_OK;
}

static dt_status add(json_t *list, const struct dt_engine_file *file)
{
    struct dt_engine *engine = NULL;
    DT_TRY(dt_engine_read((const char *)file->text, file->file, &engine));
    json_t *row = json_pack(
        "{s:O, s:O, s:O, s:O, s:O}", "engine", json_object_get(engine->root, "engine"), "version",
        json_object_get(engine->root, "version"), "doc", json_object_get(engine->root, "doc"),
        "sources", json_object_get(engine->root, "sources"), "cannot",
        json_object_get(engine->root, "cannot"));
    dt_engine_free(engine);
    if (json_array_append_new(list, row) != 0)
        return dt_fail(DT_ENOMEM, "out of memory");
    return DT_OK;
}

dt_status dt_engines(json_t **list)
{
    json_t *rows = json_array();
    dt_status status = rows != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
    for (int i = 0; status == DT_OK && i < dt_engine_file_count; i++)
        status = add(rows, &dt_engine_files[i]);
    if (status != DT_OK) {
        json_decref(rows);
        return status;
    }
    *list = rows;
    return DT_OK;
}

dt_status dt_engine_family(const char *engine, json_t **name)
{
    const struct dt_engine_file *file = NULL;
    struct dt_engine *read = NULL;
    DT_TRY(dt_engine_find(engine, &file));
    DT_TRY(dt_engine_read((const char *)file->text, file->file, &read));
    json_t *family = json_object_get(read->root, "family");
    *name = json_incref(family != NULL ? family : json_object_get(read->root, "engine"));
    dt_engine_free(read);
    return DT_OK;
}

bool dt_engine_known(const char *engine)
{
    size_t size = strcspn(engine, ":");
    for (int i = 0; i < dt_engine_file_count; i++)
        if (name_size(dt_engine_files[i].file) == size &&
            strncmp(dt_engine_files[i].file, engine, size) == 0)
            return true;
    return false;
}

dt_status dt_engine_named(const char *engine, json_t **name)
{
    if (dt_engine_known(engine))
        return dt_engine_family(engine, name);
    json_t *made = json_string(engine);
    if (made == NULL)
        return dt_text_whole(engine) ? dt_fail(DT_ENOMEM, "out of memory")
                                     : dt_fail(DT_EUSAGE, "the engine's name is not UTF-8");
    *name = made;
    return DT_OK;
}
