/* SPDX-License-Identifier: MIT */
#include "tuner/check/check.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/host.h"
#include "base/quote.h"
#include "db/journal.h"
#include "db/lookup/key.h"
#include "db/outline.h"
#include "db/store.h"
#include "model/task.h"
#include "model/workload_json.h"
#include "space/json/json.h"
#include "tuner/machine/machine.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- which entries are checked */

struct selection {
    const struct dt_check_opts *opts;
    struct dt_check_list *list;
    json_t *hard,
        /* the machine's part of a hard fingerprint, for cores and for GPUs; gpus may be NULL */
        *gpus;
    bool failed; /* out of memory */
};

/* The job says more than the worker's workload. */
static void title_add_work(const json_t *key, struct dt_text *out)
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
        title_add_work(key, &text);
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
static bool is_this_machine(const struct selection *selection, const json_t *hard)
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
static bool is_of_engine(const struct dt_check_opts *opts, const struct dt_stored_entry *entry)
{
    const json_t *job = json_object_get(entry->key, "job");
    return opts->job.wanted.engine == NULL ||
           (json_object_get(entry->key, "worker") != NULL &&
            strcmp(dt_json_text_at(entry->fingerprint.hard, "engine"), opts->job.wanted.engine) ==
                0 &&
            (opts->model == NULL || strcmp(dt_json_text_at(job, "model"), opts->model) == 0));
}

static void select_entry(const json_t *stored, void *context)
{
    struct selection *selection = context;
    struct dt_check_list *list = selection->list;
    struct dt_check_item item = {.stored = NULL};
    dt_record_read(&dt_record_stored_entry, stored, &item.entry);
    dt_check_title(item.entry.key, item.title, sizeof item.title);
    if (!is_this_machine(selection, item.entry.fingerprint.hard) ||
        !is_of_engine(selection->opts, &item.entry) ||
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
static void note_check(struct dt_check_list *list, const json_t *record)
{
    struct dt_check_record check;
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

/* Unreadable journals are skipped, and of sessions only the beginning is read. */
static dt_status read_checks(const char *directory, struct dt_check_list *list)
{
    struct dt_journals runs = {.directory = directory};
    while (dt_journals_next(&runs)) {
        struct dt_journal_reader reader = {.path = runs.path};
        while (dt_journal_next(&reader) && strcmp(reader.kind, "session") != 0)
            if (strcmp(reader.kind, "check") == 0)
                note_check(list, reader.record);
        runs.status = dt_journal_end(&reader) == DT_ENOMEM ? DT_ENOMEM : DT_OK;
    }
    return dt_journals_end(&runs) == DT_ENOMEM ? DT_ENOMEM : DT_OK;
}

static int by_last_check(const void *a, const void *b)
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
    dt_status status = selection.hard != NULL
                           ? dt_store_each(opts->directory, select_entry, &selection)
                           : dt_fail(DT_ENOMEM, "out of memory");
    json_decref(selection.hard);
    json_decref(selection.gpus);
    DT_TRY(status);
    if (selection.failed)
        return dt_fail(DT_ENOMEM, "out of memory");
    if (list->count > 0)
        DT_TRY(read_checks(opts->directory, list));
    if (list->count > 1)
        qsort(list->items, (size_t)list->count, sizeof list->items[0], by_last_check);
    return DT_OK;
}

void dt_check_list_fini(struct dt_check_list *list)
{
    for (int i = 0; i < list->count; i++)
        json_decref(list->items[i].stored);
    free(list->items);
    *list = (struct dt_check_list){0};
}

/* ---- the worker that tuned an entry */

/* The worker that tuned an entry, from the record of its session: an entry may come from elsewhere (dittune db import), and must not
 * name a program that is started; a journal is only written by sessions on this machine. */

/* A new reference; NULL: it is not known. */
static json_t *tuned_worker(const char *directory, const struct dt_stored_entry *entry)
{
    struct dt_outline outline;
    struct dt_text path = {0};
    if (entry->journal == NULL)
        return NULL;
    dt_journals_path(directory, entry->journal, &path);
    dt_outline_first(dt_text_at(&path), &outline);
    bool same = json_is_object(outline.worker) && json_equal(outline.key, entry->key);
    json_t *worker = same ? json_incref(outline.worker) : NULL;
    dt_outline_fini(&outline);
    dt_text_fini(&path);
    return worker;
}

/* The words stay those of the record. */
static bool tuned_arguments(const json_t *worker, struct dt_tuned_by *by)
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

static void tuned_by_fini(struct dt_tuned_by *by)
{
    json_decref(by->record);
    *by = (struct dt_tuned_by){.record = NULL};
}

/* False: the session's journal is not in the store's folder, or the program is not on this machine any more. */
static bool tuned_by_find(const char *directory, const struct dt_stored_entry *entry,
                          struct dt_tuned_by *by)
{
    *by = (struct dt_tuned_by){.record = tuned_worker(directory, entry)};
    by->engine = json_string_value(json_object_get(by->record, "engine"));
    const char *program = json_string_value(json_object_get(by->record, "program"));
    bool found = by->record != NULL && tuned_arguments(by->record, by);
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
        tuned_by_fini(by);
    return found;
}

/* ---- an entry's target and plans */

/* Converts a stored key to its job, and the job to a target by the code of all commands. If the target's key differs,
 * the work is not the same, and the entry is not checked. */

#define RUNNERS_UP 2

static const json_t *key_of(const struct dt_check_entry *entry)
{
    return entry->item->entry.key;
}

/* Of --command, by this version or an older one. */
static bool is_command(const json_t *key)
{
    return strcmp(dt_json_text_at(key, "worker"), "command") == 0;
}

/* Sets the reason why the entry cannot be measured. */
static dt_status entry_leave(struct dt_check_entry *entry, enum dt_check_verdict verdict,
                             const char *why)
{
    char reason[sizeof entry->reason];
    snprintf(reason, sizeof reason, "%s", why); /* why may point to dt_message() */
    memcpy(entry->reason, reason, sizeof reason);
    dt_text_clean(entry->reason);
    entry->verdict = verdict;
    return DT_OK;
}

/* The error concerns only this entry: the others can still be checked. */
static bool is_of_entry(dt_status status)
{
    return status < 0 && status != DT_EINTR && status != DT_ENOMEM;
}

static bool is_preset(const char *name)
{
    const char *const *names = dt_network_presets();
    for (int i = 0; names[i] != NULL; i++)
        if (strcasecmp(names[i], name) == 0)
            return true;
    return false;
}

/* Converts a height to pixels; an impossible height gives a number that no --size has. */
static int pixels_of(json_int_t height)
{
    return height > 0 && height <= INT_MAX / DT_LATENT_PIXELS ? (int)height * DT_LATENT_PIXELS
                                                              : INT_MAX;
}

/* The entry's stored network, if it fits its key; false: an older entry, or a preset. */
static bool kept_network(const struct dt_check_entry *entry, struct dt_network *network)
{
    const json_t *kept = entry->item->entry.network;
    struct dt_network read;
    char id[DT_KEY_ID_SIZE];
    if (kept == NULL || dt_network_from_json(kept, "the entry's network", &read) != DT_OK ||
        dt_key_network(&read, id) != DT_OK ||
        strcmp(id, dt_json_text_at(key_of(entry), "network")) != 0)
        return false;
    *network = read;
    return true;
}

/* A network that is neither stored nor a preset must be that of the run's job. */
static dt_status set_network(const struct dt_check_entry *entry, struct dt_job *job)
{
    const json_t *key = key_of(entry);
    job->worker = (struct dt_program){NULL, NULL};
    job->has_dtype = true;
    job->size = pixels_of(dt_json_integer_at(key, "height"));
    DT_TRY(dt_dtype_find("the entry's dtype", dt_json_text_at(key, "dtype"), &job->dtype));
    if (!kept_network(entry, &job->network) && is_preset(dt_json_text_at(key, "model")))
        DT_TRY(dt_network_load(dt_json_text_at(key, "model"), &job->network));
    return DT_OK;
}

/* The worker is started with the entry's job. */
static void set_wanted(const json_t *job, struct dt_wanted *wanted)
{
    const struct dt_wanted given = *wanted;
    *wanted = (struct dt_wanted){.stored = true,
                                 .engine = given.engine,
                                 .max_error = given.max_error,
                                 .lossy = json_object_get(job, "lossy") != NULL};
    dt_task_read(job, &wanted->task);
}

static bool is_of_hosts(const struct dt_check_entry *entry)
{
    return json_object_get(entry->item->entry.fingerprint.hard, "hosts") != NULL;
}

/* The plan has more ranks than devices, so it was tuned with --oversubscribe. */
static bool oversubscribed(const struct dt_stored_entry *stored)
{
    const json_t *hard = stored->fingerprint.hard, *gpus = json_object_get(hard, "gpus");
    json_int_t slots = json_object_get(hard, "hosts") != NULL ? dt_json_integer_at(hard, "slots")
                       : gpus != NULL                         ? json_integer_value(gpus)
                                                              : dt_host_cores();
    return dt_json_integer_at(stored->plan, "ranks") > slots;
}

/* A private entry is compared by the store's secret, whether --private was given or not. */
static dt_status set_secret(const struct dt_check_entry *entry, struct dt_wanted *wanted)
{
    static unsigned char secret[DT_SIPHASH_KEY]; /* a check is of one store */
    bool there = false;
    if (json_object_get(json_object_get(key_of(entry), "job"), "private") != NULL)
        DT_TRY(dt_private_read(entry->opts->directory, false, secret, &there));
    wanted->secret = there ? secret : NULL;
    return DT_OK;
}

static dt_status make_job(struct dt_check_entry *entry)
{
    const json_t *key = key_of(entry), *batches = json_object_get(key, "batch");
    const struct dt_stored_entry *stored = &entry->item->entry;
    struct dt_job job = entry->opts->job;
    json_int_t devices = dt_json_integer_at(key, "devices");
    job.plan = job.weights = job.input = NULL;
    job.seed = 1;
    job.batches = (struct dt_ints){0};
    job.devices = devices > 0 && devices <= INT_MAX ? (int)devices : 0;
    job.backend = json_object_get(stored->fingerprint.hard, "gpus") != NULL ? DT_BACKEND_CUDA
                                                                            : DT_BACKEND_CPU;
    job.more.oversubscribe = job.more.oversubscribe || oversubscribed(stored);
    if (!is_of_hosts(entry))
        job.more.hosts = NULL;
    job.more.nccl = true; /* for plans that --tune-nccl found */
    job.more.lossy = dt_json_integer_at(key, "lossy") != 0;
    job.max_bytes = dt_json_integer_at(key, "max_bytes");
    job.max_latency_ns = dt_json_integer_at(key, "max_latency_ns");
    for (size_t i = 0; i < json_array_size(batches) && i < DT_LIST_MAX; i++)
        job.batches.values[job.batches.count++] =
            (int)json_integer_value(json_array_get(batches, i));
    DT_TRY(dt_objective_find(dt_json_text_at(key, "objective"), &job.objective));
    if (json_object_get(key, "worker") == NULL)
        DT_TRY(set_network(entry, &job));
    else
        set_wanted(json_object_get(key, "job"), &job.wanted);
    if (json_object_get(key, "worker") != NULL && !is_command(key))
        job.wanted.stored_space = stored->space;
    DT_TRY(set_secret(entry, &job.wanted));
    if (entry->tuned_by.record != NULL) {
        job.worker = (struct dt_program){entry->tuned_by.program, entry->tuned_by.arguments};
        job.wanted.engine = entry->tuned_by.engine;
    }
    entry->job = job;
    return DT_OK;
}

/* Another command, or another measurement of the same one. */
static dt_status other_command(struct dt_check_entry *entry)
{
    struct dt_text differences = {0};
    char why[400];
    dt_key_add_differences(json_object_get(key_of(entry), "job"),
                           json_object_get(entry->target->identity.key, "job"), &differences);
    snprintf(why, sizeof why, "it was measured with %s", dt_text_at(&differences));
    dt_text_fini(&differences);
    return entry_leave(entry, DT_CHECK_NOT_CHECKED, why);
}

/* Reports which field of the target's key differs. */
static dt_status other_key(struct dt_check_entry *entry)
{
    const json_t *mine = entry->target->identity.key, *key = key_of(entry);
    char why[400];
    const char *name, *field = "";
    json_t *value;
    json_object_foreach((json_t *)key, name, value)
    {
        if (field[0] == '\0' && !json_equal(value, json_object_get(mine, name)))
            field = name;
    }
    entry->other = entry->opts->job.worker.path != NULL &&
                   (!json_equal(json_object_get(key, "worker"), json_object_get(mine, "worker")) ||
                    (is_command(mine) &&
                     !json_equal(json_object_get(key, "job"), json_object_get(mine, "job"))));
    if (is_command(key) && is_command(mine) &&
        (strcmp(field, "workload") == 0 || strcmp(field, "job") == 0))
        return other_command(entry);
    if (entry->target->foreign &&
        (strcmp(field, "worker") == 0 || strcmp(field, "workload") == 0)) {
        snprintf(why, sizeof why, "it needs its own worker, and %.200s is '%.100s'",
                 entry->job.worker.path, entry->target->identity.title);
        return entry_leave(entry, DT_CHECK_NOT_CHECKED, why);
    }
    if (entry->target->foreign && strcmp(field, "job") == 0)
        return entry_leave(
            entry, DT_CHECK_UNSUPPORTED,
            "the worker, given the job that the plan is stored for, announces another one");
    if (entry->target->foreign)
        return entry_leave(
            entry, DT_CHECK_UNSUPPORTED,
            "the worker's parameters or rules are no longer those that the plan is stored "
            "for: it may have been tuned with other arguments of the worker, or by another "
            "version");
    if (is_preset(dt_json_text_at(key, "model")))
        snprintf(why, sizeof why, "this program computes another %s from its key: tune it again",
                 field[0] != '\0' ? field : "key");
    else
        snprintf(why, sizeof why, "'%.100s' came from a file: pass it again with --model FILE",
                 dt_json_text_at(key, "model"));
    return entry_leave(entry, DT_CHECK_NOT_CHECKED, why);
}

/* Neither the command line nor the session's journal names it. */
static dt_status no_worker(struct dt_check_entry *entry)
{
    char why[300];
    if (is_command(key_of(entry))) {
        bool served = json_object_get(json_object_get(key_of(entry), "job"), "request") != NULL;
        snprintf(why, sizeof why,
                 "it was tuned by the command %.160s: give %s, --space and --time as then",
                 dt_json_text_at(key_of(entry), "workload"),
                 served ? "--server, --request" : "--command");
        return entry_leave(entry, DT_CHECK_NOT_CHECKED, why);
    }
    snprintf(why, sizeof why,
             "it was tuned on the engine '%.100s', and the journal of its session, which says with "
             "which program, is not here or no longer true: --engine NAME, or --worker PROGRAM",
             dt_json_text_at(entry->item->entry.fingerprint.hard, "engine"));
    return entry_leave(entry, DT_CHECK_NOT_CHECKED, why);
}

/* The hosts must be as many as those of the entry, with as many slots. */
static dt_status other_hosts(struct dt_check_entry *entry)
{
    const json_t *hard = entry->item->entry.fingerprint.hard;
    const struct dt_hosts *hosts = entry->opts->job.more.hosts;
    char why[300], given[100] = "which must be named: --hosts HOST:N,..";
    if (hosts != NULL)
        snprintf(given, sizeof given, "and those named now are %d with %d", hosts->count,
                 dt_hosts_slots(hosts));
    snprintf(why, sizeof why, "it was measured on %lld hosts with %lld slots, %s",
             (long long)dt_json_integer_at(hard, "hosts"),
             (long long)dt_json_integer_at(hard, "slots"), given);
    return entry_leave(entry, DT_CHECK_NOT_CHECKED, why);
}

static bool same_hosts(const struct dt_check_entry *entry)
{
    const json_t *hard = entry->item->entry.fingerprint.hard;
    const struct dt_hosts *hosts = entry->opts->job.more.hosts;
    return !is_of_hosts(entry) ||
           (hosts != NULL && hosts->count == dt_json_integer_at(hard, "hosts") &&
            dt_hosts_slots(hosts) == dt_json_integer_at(hard, "slots"));
}

static dt_status make_target(struct dt_check_entry *entry)
{
    const json_t *key = key_of(entry);
    bool foreign = json_object_get(key, "worker") != NULL;
    if (foreign && entry->opts->job.worker.path == NULL &&
        !tuned_by_find(entry->opts->directory, &entry->item->entry, &entry->tuned_by))
        return no_worker(entry);
    if (!foreign && dt_json_integer_at(key, "height") != dt_json_integer_at(key, "width"))
        return entry_leave(entry, DT_CHECK_NOT_CHECKED, "it is not of a square image");
    if (!same_hosts(entry))
        return other_hosts(entry);
    dt_status status = make_job(entry);
    if (status == DT_OK)
        status = dt_target_new(&entry->job, &entry->target);
    if (is_of_entry(status))
        return entry_leave(entry, DT_CHECK_NOT_CHECKED, dt_message());
    DT_TRY(status);
    if (!json_equal(entry->target->identity.key, key))
        return other_key(entry);
    if (!json_equal(entry->target->identity.hard, entry->item->entry.fingerprint.hard))
        return entry_leave(entry, DT_CHECK_NOT_CHECKED,
                           "it was measured with another engine, mode or amount of memory");
    status = dt_target_devices_free(entry->target);
    return status == DT_EDIRTY ? entry_leave(entry, DT_CHECK_NOT_CHECKED, dt_message()) : status;
}

static void entry_enter(struct dt_check_entry *entry, enum dt_entrant_role role,
                        const struct dt_point *point)
{
    for (int i = 0; i < entry->count; i++)
        if (dt_point_equal(entry->target->space, &entry->entrants[i].point, point))
            return;
    if (entry->count <= DT_CHECK_RIVALS)
        entry->entrants[entry->count++] = (struct dt_entrant){.role = role, .point = *point};
}

static void leave_against(struct dt_check_entry *entry)
{
    snprintf(entry->against, sizeof entry->against, "%s", dt_message());
    dt_text_clean(entry->against);
}

/* Adds the next best plans that are still feasible. */
static void enter_runners_up(struct dt_check_entry *entry)
{
    const struct dt_stored_entry *stored = &entry->item->entry;
    struct dt_point point;
    int before = entry->count;
    for (int i = 0; i < stored->top_count; i++) {
        const json_t *plan = stored->top[i].plan;
        if (plan != NULL && entry->count < before + RUNNERS_UP &&
            dt_point_from_json(entry->target->space, plan, &point) == DT_OK)
            entry_enter(entry, DT_ENTRANT_RUNNER_UP, &point);
    }
}

/* A rival does not share the tuned plan's processes: then the twin gets its own, too, to show that effect. */
static bool are_scattered(const struct dt_check_entry *entry)
{
    for (int i = 1; i < entry->count; i++)
        if (!dt_rig_same_group(entry->target, &entry->entrants[0].point, &entry->entrants[i].point))
            return true;
    return false;
}

static dt_status enter_plans(struct dt_check_entry *entry)
{
    struct dt_target *target = entry->target;
    const json_t *plan = entry->item->entry.plan;
    struct dt_point point;
    if (plan == NULL)
        return entry_leave(entry, DT_CHECK_UNSUPPORTED, "there is no plan in the entry");
    dt_status status = dt_target_check(target);
    if (status == DT_OK)
        status = dt_target_stored(target, plan, &point);
    if (is_of_entry(status))
        return entry_leave(entry, DT_CHECK_UNSUPPORTED, dt_message());
    DT_TRY(status);
    entry_enter(entry, DT_ENTRANT_TUNED, &point);
    entry_enter(entry, DT_ENTRANT_DEFAULT, &target->fallback);
    entry_enter(entry, DT_ENTRANT_BASELINE, &target->baseline);
    if (entry->opts->against != NULL) {
        status = dt_target_plan(target, entry->opts->against, &point);
        if (is_of_entry(status))
            leave_against(entry);
        else
            entry_enter(entry, DT_ENTRANT_AGAINST, &point);
    }
    enter_runners_up(entry);
    bool apart = are_scattered(entry);
    entry->entrants[entry->count++] = (struct dt_entrant){
        .role = DT_ENTRANT_TWIN, .point = entry->entrants[0].point, .apart = apart};
    entry->twin = true;
    return DT_OK;
}

dt_status dt_check_open(struct dt_check_entry *entry)
{
    entry->verdict = DT_CHECK_UNJUDGED;
    DT_TRY(make_target(entry));
    if (entry->verdict == DT_CHECK_UNJUDGED)
        DT_TRY(enter_plans(entry));
    return DT_OK;
}

void dt_check_close(struct dt_check_entry *entry)
{
    for (int i = 0; i < entry->count; i++)
        dt_entrant_fini(&entry->entrants[i]);
    dt_target_free(entry->target);
    tuned_by_fini(&entry->tuned_by);
    json_decref(entry->today.soft);
    json_decref(entry->today.info);
    json_decref(entry->written.best);
    json_decref(entry->written.successors);
    json_decref(entry->today.changed);
    entry->target = NULL;
    entry->today = (struct dt_check_today){.soft = NULL};
    entry->written = (struct dt_check_written){.best = NULL};
    entry->count = 0;
}

static bool same_field(const json_t *a, const json_t *b, const char *name)
{
    return json_equal(json_object_get(a, name), json_object_get(b, name));
}

/* Value of --model for the entry's network; NULL: unknown. Beside --worker, --model may also be a name that only the
 * worker knows. */
static const char *model_of(const struct dt_check_entry *entry)
{
    const json_t *key = key_of(entry);
    struct dt_network network;
    char id[DT_KEY_ID_SIZE];
    const char *model = is_preset(dt_json_text_at(key, "model")) ? dt_json_text_at(key, "model")
                                                                 : entry->opts->model;
    bool same = model != NULL && dt_network_load(model, &network) == DT_OK &&
                dt_key_network(&network, id) == DT_OK &&
                strcmp(id, dt_json_text_at(key, "network")) == 0;
    return same ? model : NULL;
}

/* Value of --worker; NULL: unknown. */
static const char *worker_of(const struct dt_check_entry *entry)
{
    const json_t *key = key_of(entry);
    bool same = entry->target != NULL && same_field(entry->target->identity.key, key, "worker") &&
                same_field(entry->target->identity.key, key, "workload");
    return same ? entry->job.worker.path : NULL;
}

static void add_quoted(const char *option, const char *value, struct dt_text *out)
{
    dt_text_add(out, " --%s ", option);
    dt_quote(value, out);
}

static void add_hosts(const struct dt_hosts *hosts, struct dt_text *out)
{
    dt_text_add(out, " --hosts ");
    dt_hosts_text(hosts, hosts->count, DT_SLOTS_MOST, out);
    if (strcmp(hosts->launcher, "mpirun") != 0)
        add_quoted("launcher", hosts->launcher, out);
}

void dt_check_retune(struct dt_check_entry *entry, struct dt_text *out)
{
    const struct dt_job *job = &entry->job;
    const json_t *key = key_of(entry);
    bool foreign = json_object_get(key, "worker") != NULL;
    const char *name = foreign ? worker_of(entry) : model_of(entry);
    bool square = foreign || dt_json_integer_at(key, "height") == dt_json_integer_at(key, "width");
    if (name == NULL || !square || make_job(entry) < 0 || entry->job.wanted.secret != NULL)
        return;
    dt_text_add(out, "dittune");
    if (foreign && job->wanted.engine != NULL)
        dt_text_add(out, " --engine %s", job->wanted.engine);
    else
        add_quoted(foreign ? "worker" : "model", name, out);
    if (!foreign)
        dt_text_add(out, " --size %d", job->size);
    else
        dt_target_options(entry->target, out);
    if (job->more.hosts != NULL)
        add_hosts(job->more.hosts, out);
    dt_text_add(out, " --devices %d", job->devices);
    for (int i = 0; i < job->batches.count; i++)
        dt_text_add(out, "%s%d", i == 0 ? " --batch " : ",", job->batches.values[i]);
    if (!foreign)
        dt_text_add(out, " --dtype %s%s", dt_dtype_text(job->dtype),
                    job->more.lossy ? " --lossy" : "");
    dt_text_add(out, " --objective %s", job->objective->name);
    if (job->max_bytes > 0)
        dt_text_add(out, " --max-bytes %lldB", (long long)job->max_bytes);
    if (job->max_latency_ns > 0)
        dt_text_add(out, " --max-latency %s", dt_figure_exact(job->max_latency_ns).text);
    if (entry->opts->db != NULL)
        add_quoted("db", entry->opts->db, out);
    if (foreign)
        dt_quote_arguments(job->worker.arguments, out);
}

/* ---- the machine as it is today */

/* Names in `out` ("environment.NAME" for those inside): values that differ, or that only one side has. */
static void soft_differences(const json_t *then, const json_t *now, const char *inside, json_t *out)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)then, name, value)
    {
        const json_t *other = json_object_get(now, name);
        if (json_is_object(value) && json_is_object(other))
            soft_differences(value, other, name, out);
        else if (!json_equal(value, other))
            json_array_append_new(
                out, json_sprintf("%s%s%s", inside, inside[0] != '\0' ? "." : "", name));
    }
    json_object_foreach((json_t *)now, name, value)
    {
        if (json_object_get(then, name) == NULL)
            json_array_append_new(
                out, json_sprintf("%s%s%s", inside, inside[0] != '\0' ? "." : "", name));
    }
}

dt_status dt_check_soft(struct dt_check_entry *entry, int64_t deadline_ns)
{
    json_t *machine = dt_target_machine(entry->target, deadline_ns, false);
    entry->today.soft = json_incref(json_object_get(machine, "soft"));
    entry->today.info = json_incref(json_object_get(machine, "info"));
    entry->today.changed = json_array();
    json_decref(machine);
    if (entry->today.soft == NULL || entry->today.info == NULL || entry->today.changed == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    soft_differences(entry->item->entry.fingerprint.soft, entry->today.soft, "",
                     entry->today.changed);
    return DT_OK;
}
