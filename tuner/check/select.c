/* SPDX-License-Identifier: MIT */
/* When an entry was last checked is in the journals that check wrote, whose first record is of kind `check`: of all
 * other journals only the beginning is read. */
#include "tuner/check/check.h"

#include "base/array.h"
#include "base/figures.h"
#include "base/read.h"
#include "db/lookup/key.h"
#include "db/store.h"
#include "model/task.h"
#include "tuner/machine/machine.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct selection {
    const struct dt_check_opts *opts;
    struct dt_check_list *list;
    json_t *hard,
        /* the machine's part of a hard fingerprint, for cores and for GPUs; gpus may be NULL */
        *gpus;
    bool failed; /* out of memory */
};

/* The job says more than the worker's workload. */
static void add_work(const json_t *key, struct dt_text *out)
{
    const json_t *job = json_object_get(key, "job");
    dt_text_add(out, "%s: ", dt_json_text_at(key, "worker"));
    size_t before = out->size;
    if (json_object_get(job, "time") != NULL) {
        dt_text_add(out, "%s, time %s", dt_json_text_at(key, "workload"),
                    dt_json_text_at(job, "time"));
        if (json_object_get(job, "unit") != NULL)
            dt_text_add(out, " in %s", dt_json_text_at(job, "unit"));
        if (json_object_get(job, "limits") != NULL)
            dt_text_add(out, ", %s", dt_json_text_at(job, "limits"));
        return;
    }
    dt_task_title(job, out);
    if (out->size == before)
        dt_text_add(out, "%s", dt_json_text_at(key, "workload"));
}

void dt_check_title(const json_t *key, char title[], size_t room)
{
    struct dt_text text = {0};
    const json_t *batches = json_object_get(key, "batch");
    if (json_object_get(key, "worker") != NULL)
        add_work(key, &text);
    else
        dt_text_add(&text, "%s, %.0f x %.0f px, %s", dt_json_text_at(key, "model"),
                    (double)dt_json_integer_at(key, "width") * DT_LATENT_PIXELS,
                    (double)dt_json_integer_at(key, "height") * DT_LATENT_PIXELS,
                    dt_json_text_at(key, "dtype"));
    for (size_t i = 0; i < json_array_size(batches); i++)
        dt_text_add(&text, "%s%lld", i == 0 ? ", batch " : ",",
                    (long long)json_integer_value(json_array_get(batches, i)));
    dt_text_add(&text, ", %lld devices, %s", (long long)dt_json_integer_at(key, "devices"),
                dt_json_text_at(key, "objective"));
    if (dt_json_integer_at(key, "max_bytes") > 0)
        dt_text_add(&text, ", at most %lld bytes", (long long)dt_json_integer_at(key, "max_bytes"));
    if (dt_json_integer_at(key, "max_latency_ns") > 0)
        dt_text_add(&text, ", at most %s",
                    dt_figure_of((double)dt_json_integer_at(key, "max_latency_ns") * 1e-9).text);
    snprintf(title, room, "%.*s", (int)room - 1, dt_text_at(&text));
    dt_text_clean(title);
    dt_text_fini(&text);
}

/* The other fields of an entry's hard fingerprint are compared after making its target. */
static bool this_machine(const struct selection *selection, const json_t *hard)
{
    const char *name;
    json_t *value;
    json_t *mine = json_object_get(hard, "gpus") != NULL ? selection->gpus : selection->hard;
    bool equal = mine != NULL;
    json_object_foreach(mine, name, value)
    {
        equal = equal && json_equal(value, json_object_get(hard, name));
    }
    return equal;
}

bool dt_check_passes(const char *filter, const char *title, const json_t *key)
{
    struct dt_text text = {0};
    bool found = filter == NULL || strcasestr(title, filter) != NULL;
    if (!found && dt_json_text(key, &text) == DT_OK)
        found = strcasestr(dt_text_at(&text), filter) != NULL;
    dt_text_fini(&text);
    return found;
}

/* With --engine, entries that were tuned on it, and on that --model. */
static bool of_engine(const struct dt_check_opts *opts, const struct dt_stored_entry *entry)
{
    const json_t *job = json_object_get(entry->key, "job");
    return opts->job.wanted.engine == NULL ||
           (json_object_get(entry->key, "worker") != NULL &&
            strcmp(dt_json_text_at(entry->fingerprint.hard, "engine"), opts->job.wanted.engine) ==
                0 &&
            (opts->model == NULL || strcmp(dt_json_text_at(job, "model"), opts->model) == 0));
}

static void visit(const json_t *stored, void *context)
{
    struct selection *selection = context;
    struct dt_check_list *list = selection->list;
    struct dt_check_item item = {.stored = NULL};
    dt_record_read(&dt_record_stored_entry, stored, &item.entry);
    dt_check_title(item.entry.key, item.title, sizeof item.title);
    if (!this_machine(selection, item.entry.fingerprint.hard) ||
        !of_engine(selection->opts, &item.entry) ||
        !dt_check_passes(selection->opts->filter, item.title, item.entry.key)) {
        list->others++;
        return;
    }
    if (DT_GROW(list->items, list->count, 1) < 0) {
        selection->failed = true;
        return;
    }
    item.stored = json_deep_copy(stored);
    selection->failed = selection->failed || item.stored == NULL;
    dt_record_read(&dt_record_stored_entry, item.stored, &item.entry);
    list->items[list->count++] = item;
}

/* Notes a check that has a verdict. */
static void note_check(const json_t *record, void *context)
{
    struct dt_check_list *list = context;
    struct dt_check_record check;
    if (strcmp(dt_json_text_at(record, "kind"), "check") != 0)
        return;
    dt_record_read(&dt_record_check_record, record, &check);
    if (dt_check_verdict_of(check.verdict) == DT_CHECK_NOT_CHECKED)
        return;
    for (int i = 0; i < list->count; i++) {
        struct dt_check_item *item = &list->items[i];
        int64_t at = dt_json_integer_at(record, "t_wall_ns");
        if (at > item->checked_ns && json_equal(item->entry.key, check.subject.key) &&
            json_equal(item->entry.fingerprint.hard, check.subject.hard))
            item->checked_ns = at;
    }
}

static bool written_by_check(const char *path)
{
    char head[512] = "";
    return dt_read_head(path, head, sizeof head) > 0 && strstr(head, "\"kind\":\"check\"") != NULL;
}

/* Unreadable journals are skipped. */
static void read_checks(const char *directory, struct dt_check_list *list)
{
    struct dt_text path = {0};
    dt_text_add(&path, "%s/runs", directory);
    DIR *folder = opendir(dt_text_at(&path));
    for (const struct dirent *file; folder != NULL && (file = readdir(folder)) != NULL;) {
        size_t size = strlen(file->d_name);
        int bad = 0;
        if (size < 6 || strcmp(file->d_name + size - 6, ".jsonl") != 0)
            continue;
        dt_text_clear(&path);
        dt_text_add(&path, "%s/runs/%s", directory, file->d_name);
        if (!written_by_check(dt_text_at(&path)) ||
            dt_journal_read(dt_text_at(&path), note_check, list, &bad) < 0)
            continue;
    }
    if (folder != NULL)
        closedir(folder);
    dt_text_fini(&path);
}

static int by_check(const void *a, const void *b)
{
    const struct dt_check_item *one = a, *other = b;
    if (one->checked_ns != other->checked_ns)
        return one->checked_ns < other->checked_ns ? -1 : 1;
    return strcmp(one->title, other->title);
}

dt_status dt_check_select(const struct dt_check_opts *opts, struct dt_check_list *list)
{
    struct selection selection = {.opts = opts, .list = list, .hard = dt_machine_hard(NULL)};
    struct dt_backend backend;
    *list = (struct dt_check_list){0};
    DT_TRY(dt_backend_find_gpus(&backend));
    if (backend.cuda)
        selection.gpus = dt_machine_hard(&backend);
    dt_backend_fini(&backend);
    dt_status status = selection.hard != NULL ? dt_store_each(opts->directory, visit, &selection)
                                              : dt_fail(DT_ENOMEM, "out of memory");
    json_decref(selection.hard);
    json_decref(selection.gpus);
    DT_TRY(status);
    if (selection.failed)
        return dt_fail(DT_ENOMEM, "out of memory");
    if (list->count > 0)
        read_checks(opts->directory, list);
    if (list->count > 1)
        qsort(list->items, (size_t)list->count, sizeof list->items[0], by_check);
    return DT_OK;
}

void dt_check_list_fini(struct dt_check_list *list)
{
    for (int i = 0; i < list->count; i++)
        json_decref(list->items[i].stored);
    free(list->items);
    *list = (struct dt_check_list){0};
}
