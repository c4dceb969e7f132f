/* SPDX-License-Identifier: MIT */
#include "tuner/cli/database/verbs.h"

#include "base/replace.h"
#include "db/snapshot.h"
#include "db/upkeep/upkeep.h"
#include "tuner/check/check.h"
#include "tuner/cli/print.h"
#include "tuner/session/record/session_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ---- the entries that options name */

bool dt_choice_by_entry(const struct dt_choice *choice)
{
    return choice->filter != NULL || choice->engine != NULL || choice->model != NULL ||
           choice->pipeline != NULL;
}

bool dt_choice_of_id(const struct dt_choice *choice, uint64_t id)
{
    char hex[17];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)id);
    bool any = choice->count == 0;
    for (int i = 0; i < choice->count; i++)
        any = any || strncmp(hex, choice->words[i], strlen(choice->words[i])) == 0;
    return any;
}

/* wanted NULL: any. Case does not count, as in the names of presets. */
static bool is_text(const json_t *value, const char *wanted)
{
    const char *text = json_string_value(value);
    return wanted == NULL || (text != NULL && strcasecmp(text, wanted) == 0);
}

bool dt_choice_of_entry(const struct dt_choice *choice, const struct dt_stored_entry *entry)
{
    const json_t *key = entry->key, *hard = entry->fingerprint.hard;
    const json_t *of = json_object_get(key, "worker") != NULL ? json_object_get(key, "job") : key;
    char title[200];
    if (!is_text(json_object_get(hard, "engine"), choice->engine) ||
        !is_text(json_object_get(of, "model"), choice->model) ||
        !is_text(json_object_get(of, "pipeline"), choice->pipeline))
        return false;
    dt_check_title(key, title, sizeof title);
    return dt_check_passes(choice->filter, title, key);
}

dt_status dt_choice_none(const struct dt_choice *choice)
{
    const char *of_id = choice->count > 0 ? " of such an id" : "";
    const char *work = choice->model != NULL ? choice->model : choice->pipeline;
    if (choice->engine != NULL || work != NULL)
        return dt_fail(DT_EUSAGE, "no entry%s was tuned%s%s%s%s%s", of_id,
                       choice->engine != NULL ? " on " : "",
                       choice->engine != NULL ? choice->engine : "", work != NULL ? " for " : "",
                       work != NULL ? work : "",
                       choice->filter != NULL ? " and passes the filter" : "");
    if (choice->filter != NULL)
        return dt_fail(DT_EUSAGE, "no entry%s has '%s' in its title or key", of_id, choice->filter);
    return dt_fail(DT_EUSAGE, "no entry's id begins with '%s'", choice->words[0]);
}

static dt_status look_at_entry(const struct dt_choice *choice, const struct dt_snapshot *snapshot,
                               long i, bool *chosen)
{
    const json_t *json = NULL;
    struct dt_stored_entry entry;
    *chosen = dt_choice_of_id(choice, dt_snapshot_id(snapshot, i));
    if (!*chosen || !dt_choice_by_entry(choice))
        return DT_OK;
    dt_status status = dt_snapshot_entry(snapshot, i, &json);
    dt_record_read(&dt_record_stored_entry, json, &entry);
    *chosen = status == DT_OK && dt_choice_of_entry(choice, &entry);
    return status == DT_ECORRUPT ? DT_OK : status;
}

dt_status dt_choice_ids(const struct dt_choice *choice, const char *directory, uint64_t **ids,
                        size_t *count)
{
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *snapshot = NULL;
    size_t n = 0;
    DT_TRY(dt_snapshot_open(directory, &snapshot));
    uint64_t *list = calloc(dt_snapshot_count(snapshot) + 1, sizeof *list);
    dt_status status = list != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
    for (size_t i = 0; status == DT_OK && i < dt_snapshot_count(snapshot); i++) {
        bool chosen = false;
        status = look_at_entry(choice, snapshot, (long)i, &chosen);
        if (chosen)
            list[n++] = dt_snapshot_id(snapshot, (long)i);
    }
    if (status == DT_OK && n == 0)
        status = dt_choice_none(choice);
    if (status != DT_OK) {
        free(list);
        return status;
    }
    *ids = list;
    *count = n;
    return DT_OK;
}

/* ---- the verbs */

/* Output of upkeep: lines as they come, warnings on standard error, or a list for one JSON
 * object. */
struct report {
    json_t *list;
    struct dt_upkeep upkeep;
};

static void warn_of_store(enum dt_tell kind, const char *sentence, void *context)
{
    (void)kind;
    (void)context;
    dt_print_note("warning: %s", sentence);
}

static void tell_of_store(enum dt_tell kind, const char *sentence, void *context)
{
    static const char *const words[] = {[DT_TELL_DONE] = "ok",
                                        [DT_TELL_NOTE] = "note",
                                        [DT_TELL_BROKEN] = "broken",
                                        [DT_TELL_WARNING] = "warning"};
    struct report *report = context;
    dt_auto_text line = {0};
    if (kind == DT_TELL_WARNING)
        warn_of_store(kind, sentence, NULL);
    if (report->list != NULL) {
        json_array_append_new(report->list,
                              json_pack("{s:s, s:s}", "kind", words[kind], "text", sentence));
        return;
    }
    if (kind == DT_TELL_WARNING)
        return;
    dt_text_show(sentence, &line);
    printf("%-7s %s\n", words[kind], dt_text_at(&line));
}

dt_status dt_verb_run(const struct dt_verb *verb, struct dt_verb_call call)
{
    struct report report = {
        .list = verb->reports && call.options->print.json ? json_array() : NULL,
        .upkeep = {.tell = verb->reports ? tell_of_store : warn_of_store, .context = &report}};
    call.upkeep = &report.upkeep;
    dt_status status = verb->run(&call);
    if (report.list == NULL)
        return status;
    json_t *object = json_pack("{s:o, s:i, s:i, s:i, s:I}", "told", report.list, "done",
                               report.upkeep.done, "notes", report.upkeep.notes, "broken",
                               report.upkeep.broken, "bytes", (json_int_t)report.upkeep.bytes);
    if (status < 0 && json_object_set_new(object, "error", json_string(dt_message())) != 0)
        json_object_set_new(object, "error", json_null());
    dt_status printed = dt_print_json(object);
    return status < 0 ? status : printed;
}

static dt_status verb_verify(const struct dt_verb_call *call)
{
    return dt_upkeep_verify(call->directory, call->upkeep);
}

/* A store without best.json may be new, but a missing folder is probably mistyped. */
static dt_status merge_one(const char *directory, const char *other, struct dt_upkeep *upkeep)
{
    json_auto_t *entries = NULL;
    struct stat info;
    if (stat(other, &info) != 0)
        return dt_fail(DT_EIO, "cannot open the directory '%s': %s", other, strerror(errno));
    DT_TRY(dt_upkeep_entries(other, upkeep, &entries));
    if (json_array_size(entries) == 0)
        dt_upkeep_say(upkeep, DT_TELL_NOTE, "%s holds no entries", other);
    return dt_upkeep_take(directory, entries, other, upkeep);
}

/* The rest was processed: reports left-out lines, also by the exit code. */
static dt_status check_whole(const struct dt_upkeep *upkeep, dt_status status)
{
    if (status != DT_OK || upkeep->broken == 0)
        return status;
    return dt_fail(DT_ECORRUPT, "%d line%s no entr%s, all others were carried over", upkeep->broken,
                   upkeep->broken == 1 ? " is" : "s are", upkeep->broken == 1 ? "y" : "ies");
}

/* Each store is merged in its own edit, so reported entries stay merged if the next store fails. */
static dt_status verb_merge(const struct dt_verb_call *call)
{
    dt_status status = DT_OK;
    for (int i = 0; i < call->choice.count && status == DT_OK; i++)
        status = merge_one(call->directory, call->choice.words[i], call->upkeep);
    return check_whole(call->upkeep, status);
}

/* An export does not overwrite: it may be all that is left of a store. Standard output has the
 * export, so it is no verb that reports there. */
static dt_status export_all(const struct dt_verb_call *call)
{
    json_auto_t *entries = NULL;
    dt_auto_text text = {0};
    const char *path = call->choice.words[0];
    struct stat info;
    DT_TRY(dt_upkeep_entries(call->directory, call->upkeep, &entries));
    DT_TRY(dt_upkeep_export(entries, &text));
    if (call->choice.count > 0 && lstat(path, &info) == 0)
        return dt_fail(DT_EIO, "cannot make the file %s: %s", path, strerror(EEXIST));
    return check_whole(call->upkeep, call->choice.count == 0 ? dt_print_exact(&text)
                                                             : dt_replace_text(path, &text));
}

static dt_status verb_import(const struct dt_verb_call *call)
{
    json_auto_t *entries = NULL;
    const char *file = call->choice.words[0];
    DT_TRY(dt_upkeep_read(file, call->upkeep, &entries));
    return check_whole(call->upkeep, dt_upkeep_take(call->directory, entries, file, call->upkeep));
}

static dt_status verb_rebuild(const struct dt_verb_call *call)
{
    call->upkeep->revive = dt_revive;
    return dt_upkeep_rebuild(call->directory, call->options->upkeep.salvage, call->upkeep);
}

static dt_status verb_gc(const struct dt_verb_call *call)
{
    const struct dt_upkeep_options *given = &call->options->upkeep;
    if (given->keep_days > 36500)
        return dt_fail(DT_EUSAGE, "--keep %lld is more than 36500 days",
                       (long long)given->keep_days);
    dt_status status = dt_upkeep_gc(call->directory, given->keep_days, given->yes, call->upkeep);
    if (status == DT_OK && call->upkeep->done == 0)
        dt_upkeep_say(call->upkeep, DT_TELL_NOTE, "nothing to remove in %s", call->directory);
    else if (status == DT_OK && !given->yes)
        dt_upkeep_say(call->upkeep, DT_TELL_NOTE,
                      "%d files, %lld bytes: nothing was removed yet, --yes removes them",
                      call->upkeep->done, (long long)call->upkeep->bytes);
    return status;
}

static dt_status verb_rm(const struct dt_verb_call *call)
{
    bool yes = call->options->upkeep.yes;
    uint64_t *ids = NULL;
    size_t n = 0;
    if (call->choice.count == 0 && !dt_choice_by_entry(&call->choice))
        return dt_fail(DT_EUSAGE,
                       "'dittune db rm' needs the beginning of an entry's id, or "
                       "--filter TEXT, --engine NAME, --model NAME or --pipeline FILE.py:NAME: "
                       "'dittune db show' lists them");
    DT_TRY(dt_choice_ids(&call->choice, call->directory, &ids, &n));
    dt_status status = dt_upkeep_remove(call->directory, ids, n, yes, call->upkeep);
    free(ids);
    if (status == DT_OK && !yes)
        dt_upkeep_say(call->upkeep, DT_TELL_NOTE, "nothing was removed yet, --yes removes %s",
                      call->upkeep->done == 1 ? "it" : "them");
    return status;
}

const struct dt_verb dt_verbs[] = {
    {"show", "[ID..]", 0, 63, true, false, "the entries, or those whose id begins so",
     dt_verb_show},
    {"rm", "[ID..]", 0, 63, true, true, "remove entries; their journals stay", verb_rm},
    {"verify", "", 0, 0, false, true, "read everything, name what is broken", verb_verify},
    {"merge", "DIR..", 1, 63, false, true, "take the entries of other stores", verb_merge},
    {"export", "[FILE]", 0, 1, false, false, "all entries as portable JSON", export_all},
    {"import", "FILE", 1, 1, false, true, "take the entries of such a file", verb_import},
    {"rebuild", "", 0, 0, false, true, "make best.json anew from the journals", verb_rebuild},
    {"gc", "", 0, 0, false, true, "remove old journals that no entry came from", verb_gc},
};
const int dt_verb_count = sizeof dt_verbs / sizeof dt_verbs[0];
