/* SPDX-License-Identifier: MIT */
/* The worker that tuned an entry, from the record of its session: an entry may come from elsewhere (dittune db import), and must not
 * name a program that is started; a journal is only written by sessions on this machine. */
#include "tuner/check/tuned_by.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct search {
    const json_t *key; /* of the entry */
    json_t *worker;    /* new reference */
};

static void visit(const json_t *record, void *context)
{
    struct search *search = context;
    json_t *worker = json_object_get(record, "worker");
    if (search->worker == NULL && json_is_object(worker) &&
        strcmp(dt_json_text_at(record, "kind"), "session") == 0 &&
        json_equal(json_object_get(record, "key"), search->key))
        search->worker = json_incref(worker);
}

static json_t *worker_of(const char *directory, const struct dt_stored_entry *entry)
{
    struct search search = {.key = entry->key};
    struct dt_text path = {0};
    int bad = 0;
    if (entry->journal == NULL || strchr(entry->journal, '/') != NULL)
        return NULL;
    dt_text_add(&path, "%s/runs/%s.jsonl", directory, entry->journal);
    if (dt_text_status(&path) != DT_OK || access(dt_text_at(&path), R_OK) != 0 ||
        dt_journal_read(dt_text_at(&path), visit, &search, &bad) < 0) {
        json_decref(search.worker);
        search.worker = NULL;
    }
    dt_text_fini(&path);
    return search.worker;
}

/* The words stay those of the record. */
static bool take_arguments(const json_t *worker, struct dt_tuned_by *by)
{
    const json_t *list = json_object_get(worker, "arguments");
    size_t n = json_array_size(list);
    if (n > DT_TUNED_WORDS)
        return false;
    for (size_t i = 0; i < n; i++) {
        by->arguments[i] = json_string_value(json_array_get(list, i));
        if (by->arguments[i] == NULL)
            return false;
    }
    by->arguments[n] = NULL;
    return true;
}

bool dt_tuned_by(const char *directory, const struct dt_stored_entry *entry, struct dt_tuned_by *by)
{
    *by = (struct dt_tuned_by){.record = worker_of(directory, entry)};
    by->engine = json_string_value(json_object_get(by->record, "engine"));
    const char *program = json_string_value(json_object_get(by->record, "program"));
    bool found = by->record != NULL && take_arguments(by->record, by);
    bool command = program == NULL && strcmp(dt_json_text_at(entry->key, "worker"), "command") == 0;
    if (found && (by->engine != NULL || command))
        found =
            dt_machine_engine(by->engine != NULL ? by->engine : "command", by->program) == DT_OK;
    else if (found)
        found = program != NULL && program[0] == '/' && strlen(program) < sizeof by->program &&
                access(program, X_OK) == 0;
    if (found && by->engine == NULL && !command)
        snprintf(by->program, sizeof by->program, "%s", program);
    if (!found)
        dt_tuned_by_fini(by);
    return found;
}

void dt_tuned_by_fini(struct dt_tuned_by *by)
{
    json_decref(by->record);
    *by = (struct dt_tuned_by){.record = NULL};
}
