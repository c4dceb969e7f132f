/* SPDX-License-Identifier: MIT */
#include "db/outline.h"

#include "base/clock.h"
#include "db/file_int.h"
#include "db/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX    ".jsonl"
#define STEP_MOST (7 * 24 * 3600 * DT_NS_PER_SECOND) /* between two records */

/* ---- the journals of a store */

static bool is_named(const struct dt_journals *runs, const char *name)
{
    size_t size = strlen(name), end = strlen(SUFFIX);
    return runs->prefix != NULL ? strncmp(name, runs->prefix, strlen(runs->prefix)) == 0
                                : size > end && strcmp(name + size - end, SUFFIX) == 0;
}

/* Names are a second, a process and a random number: within a second process
 * 9998 is before 10002. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

static dt_status journals_open(struct dt_journals *runs)
{
    int folder = -1;
    runs->open = true;
    dt_text_add(&runs->text, "%s%s", runs->directory, runs->prefix != NULL ? "" : "/runs");
    DT_TRY(dt_text_status(&runs->text));
    DT_TRY(dt_file_open_directory(dt_text_at(&runs->text), &folder));
    if (folder < 0)
        return DT_OK;
    runs->count = scandirat(folder, ".", &runs->files, NULL, by_name);
    int error = errno;
    close(folder);
    return runs->count >= 0 ? DT_OK
                            : dt_fail(error == ENOMEM ? DT_ENOMEM : DT_EIO, "cannot list %s: %s",
                                      dt_text_at(&runs->text), strerror(error));
}

static void journals_set(struct dt_journals *runs, const char *name)
{
    size_t size = strlen(name), end = runs->prefix != NULL ? 0 : strlen(SUFFIX);
    snprintf(runs->id, sizeof runs->id, "%.*s", (int)(size - end), name);
    dt_text_clear(&runs->text);
    dt_text_add(&runs->text, "%s/%s%s", runs->directory, runs->prefix != NULL ? "" : "runs/", name);
    runs->status = dt_text_status(&runs->text);
    runs->path = dt_text_at(&runs->text);
    runs->name = runs->path + runs->text.size - size;
}

bool dt_journals_next(struct dt_journals *runs)
{
    if (!runs->open)
        runs->status = journals_open(runs);
    while (runs->status == DT_OK && runs->next < runs->count) {
        int last = runs->count - 1 - runs->next, i = runs->oldest_first ? runs->next : last;
        const char *name = runs->files[i]->d_name;
        runs->next++;
        if (!is_named(runs, name))
            continue;
        journals_set(runs, name);
        return runs->status == DT_OK &&
               (runs->since == NULL || strncmp(name, runs->since, DT_JOURNALS_TIME) >= 0);
    }
    return false;
}

bool dt_journals_ours(struct dt_journals *runs)
{
    struct stat info;
    for (const char *at = runs->name; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~')
            return false;
    if (fstatat(AT_FDCWD, runs->path, &info, AT_SYMLINK_NOFOLLOW) == 0)
        return runs->name[0] != '.' && S_ISREG(info.st_mode);
    if (errno != ENOENT)
        runs->status = dt_fail(DT_EIO, "cannot look at %s: %s", runs->path, strerror(errno));
    return false;
}

dt_status dt_journals_end(struct dt_journals *runs)
{
    for (int i = 0; i < runs->count; i++)
        free(runs->files[i]);
    free(runs->files);
    dt_text_fini(&runs->text);
    return runs->status;
}

void dt_journals_path(const char *directory, const char *id, struct dt_text *path)
{
    dt_text_add(path, "%s/runs/%s" SUFFIX, directory, id);
}

/* ---- a journal as a whole */

/* Clocks of the record before. */
struct clocks {
    int64_t mono_ns, wall_ns;
    bool known;
};

static bool is_step(int64_t ns)
{
    return ns >= 0 && ns <= STEP_MOST;
}

static int64_t clocks_step(struct clocks *clocks, const json_t *record)
{
    const struct clocks now = {dt_json_integer_at(record, "t_mono_ns"),
                               dt_json_integer_at(record, "t_wall_ns"), true};
    int64_t by_mono = (int64_t)((uint64_t)now.mono_ns - (uint64_t)clocks->mono_ns);
    int64_t by_wall = (int64_t)((uint64_t)now.wall_ns - (uint64_t)clocks->wall_ns);
    bool known = clocks->known;
    *clocks = now;
    return !known ? 0 : is_step(by_mono) ? by_mono : is_step(by_wall) ? by_wall : 0;
}

static void outline_begin(struct dt_outline *outline, const json_t *record)
{
    const json_t *list = json_object_get(record, "list");
    snprintf(outline->id, sizeof outline->id, "%s", dt_json_text_at(record, "run"));
    outline->key = json_incref(json_object_get(record, "key"));
    outline->fingerprint = json_incref(json_object_get(record, "fingerprint"));
    outline->worker = json_incref(json_object_get(record, "worker"));
    snprintf(outline->list, sizeof outline->list, "%s", dt_json_text_at(list, "id"));
    outline->work = dt_json_integer_at(list, "work");
    outline->works = dt_json_integer_at(list, "works");
    outline->began_ns = dt_json_integer_at(record, "t_wall_ns");
    outline->budget_ns = dt_json_integer_at(record, "budget_ns");
}

static dt_status result_add(struct dt_outline *outline, json_t *record)
{
    if (outline->results == NULL)
        outline->results = json_array();
    return json_array_append(outline->results, record) == 0 ? DT_OK
                                                            : dt_fail(DT_ENOMEM, "out of memory");
}

static dt_status outline_record(struct dt_outline *outline, json_t *record, const char *kind)
{
    int version = (int)dt_json_integer_at(record, "v");
    bool resumed = strcmp(kind, "resumed") == 0;
    bool compares = strcmp(kind, "sets") == 0 || strcmp(kind, "comparison") == 0;
    if (outline->kind[0] == '\0')
        snprintf(outline->kind, sizeof outline->kind, "%s", kind);
    if (version != DT_JOURNAL_VERSION)
        outline->version = version;
    if (strcmp(kind, "session") == 0 && outline->key == NULL)
        outline_begin(outline, record);
    if (resumed)
        outline->before_ns = dt_json_integer_at(record, "spent_ns");
    outline->copying = resumed || (outline->copying && strcmp(kind, "taken") != 0);
    outline->trials += strcmp(kind, "trial") == 0;
    outline->checks += strcmp(kind, "check") == 0;
    if (compares && strcmp(dt_json_text_at(record, "name"), "final comparison") == 0)
        outline->compared = true;
    if (strcmp(kind, "end") == 0) {
        outline->verdict = dt_verdict_of(dt_json_text_at(record, "verdict"));
        outline->ended = true;
    }
    return strcmp(kind, "best") == 0 ? result_add(outline, record) : DT_OK;
}

static dt_status records_read(const char *path, bool first, struct dt_outline *outline)
{
    struct clocks clocks = {.known = false};
    struct dt_journal_reader reader = {.path = path};
    *outline = (struct dt_outline){.verdict = DT_VERDICT_NONE, .version = DT_JOURNAL_VERSION};
    while (dt_journal_next(&reader)) {
        reader.status = outline_record(outline, reader.record, reader.kind);
        outline->spent_ns += clocks_step(&clocks, reader.record);
        if (first)
            break;
    }
    outline->damaged = reader.damaged;
    return dt_journal_end(&reader);
}

dt_status dt_outline_read(const char *path, struct dt_outline *outline)
{
    struct stat info;
    *outline = (struct dt_outline){.verdict = DT_VERDICT_NONE};
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
        return dt_fail(DT_EIO, "cannot read the journal %s: it is a symbolic link", path);
    return records_read(path, false, outline);
}

void dt_outline_first(const char *path, struct dt_outline *outline)
{
    if (records_read(path, true, outline) < 0)
        outline->kind[0] = '\0';
}

void dt_outline_fini(struct dt_outline *outline)
{
    json_decref(outline->key);
    json_decref(outline->fingerprint);
    json_decref(outline->worker);
    json_decref(outline->results);
    *outline = (struct dt_outline){.key = NULL};
}

bool dt_outline_decided(const struct dt_outline *outline)
{
    return outline->ended && outline->verdict != DT_VERDICT_NONE &&
           !dt_verdict_provisional(outline->verdict);
}
