/* SPDX-License-Identifier: MIT */
#include "base/figures.h"
#include "base/host.h"
#include "base/quote.h"
#include "db/lookup/key.h"
#include "db/store.h"
#include "model/workload_json.h"
#include "space/json/json.h"
#include "tuner/check/check_int.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- which entries are checked */

/* Sets the time of each entry's last check that has a verdict. Unreadable journals are skipped. */
static dt_status checks_find(const char *directory, struct dt_check_list *list)
{
    DT_CLEANUP(dt_timelines_fini) struct dt_timelines lines = {.count = 0};
    const struct dt_moment_filter checks = {.since_ns = INT64_MIN, .checks = true};
    dt_status status = dt_timelines_read(directory, &checks, &lines);
    if (status < 0)
        return status == DT_ENOMEM ? status : DT_OK;
    for (int i = 0; i < list->count; i++) {
        struct dt_check_item *item = &list->items[i];
        for (int k = 0; k < lines.count; k++) {
            const struct dt_entry_timeline *line = &lines.lines[k];
            bool same = dt_timeline_is_of(line, item->entry.key, item->entry.fingerprint.hard);
            for (int at = 0; same && at < line->count; at++)
                if (dt_check_verdict_of(line->moments[at].verdict) != DT_CHECK_NOT_CHECKED &&
                    line->moments[at].t_wall_ns > item->checked_ns)
                    item->checked_ns = line->moments[at].t_wall_ns;
        }
    }
    return DT_OK;
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
    *list = (struct dt_check_list){0};
    DT_TRY(dt_check_items_read(opts, list));
    if (list->count > 0)
        DT_TRY(checks_find(opts->directory, list));
    if (list->count > 1)
        qsort(list->items, (size_t)list->count, sizeof list->items[0], by_last_check);
    return DT_OK;
}

/* ---- an entry's target and plans */

/* Converts a stored key to its job, and the job to a target by the code of all commands. If the
 * target's key differs, the work is not the same, and the entry is not checked. */

#define RUNNERS_UP 2

static const struct dt_check_key *key_of(const struct dt_check_entry *entry)
{
    return &entry->item->key;
}

static bool is_foreign(const struct dt_check_key *key)
{
    return key->worker[0] != '\0';
}

static bool is_command(const struct dt_check_key *key)
{
    return strcmp(key->worker, "command") == 0;
}

/* The error concerns only this entry: the others can still be checked. */
static bool is_of_entry(dt_status status)
{
    return status < 0 && status != DT_EINTR && status != DT_ENOMEM;
}

/* Converts a height to pixels; an impossible height gives a number that no --size has. */
static int pixels_of(int64_t height)
{
    return height > 0 && height <= INT_MAX / DT_LATENT_PIXELS ? (int)height * DT_LATENT_PIXELS
                                                              : INT_MAX;
}

static bool is_network_of(const struct dt_check_key *key, const struct dt_network *network)
{
    char id[DT_KEY_ID_SIZE];
    return dt_key_network(network, id) == DT_OK && strcmp(id, key->network) == 0;
}

/* A network that is neither stored, and fits its key, nor a preset must be
 * that of the run's job. */
static dt_status set_network(const struct dt_check_entry *entry, struct dt_job *job)
{
    const struct dt_check_key *key = key_of(entry);
    const json_t *stored = entry->item->entry.network;
    struct dt_network network;
    job->worker = (struct dt_program){NULL, NULL};
    job->has_dtype = true;
    job->size = pixels_of(key->height);
    DT_TRY(dt_dtype_find("the entry's dtype", key->dtype, &job->dtype));
    if (stored != NULL && dt_network_from_json(stored, "the entry's network", &network) == DT_OK &&
        is_network_of(key, &network))
        job->network = network;
    else if (dt_network_is_preset(key->model))
        DT_TRY(dt_network_load(key->model, &job->network));
    return DT_OK;
}

/* The worker is started with the entry's job. */
static void set_wanted(const struct dt_check_entry *entry, struct dt_wanted *wanted)
{
    const struct dt_check_key *key = key_of(entry);
    *wanted = (struct dt_wanted){.stored = true,
                                 .engine = wanted->engine,
                                 .max_error = wanted->max_error,
                                 .lossy = key->work_lossy,
                                 .stored_space = is_command(key) ? NULL : entry->item->entry.space};
    dt_task_read(key->job, &wanted->task);
}

/* The plan has more ranks than devices, so it was tuned with --oversubscribe. */
static bool is_oversubscribed(const struct dt_check_item *item)
{
    int64_t slots = item->key.hosts > 0  ? item->key.slots
                    : item->key.gpus > 0 ? item->key.gpus
                                         : dt_host_cores();
    return item->ranks > slots;
}

/* A private entry is compared by the store's secret, whether --private was given or not. */
static dt_status set_secret(const struct dt_check_entry *entry, struct dt_wanted *wanted)
{
    static unsigned char secret[DT_SIPHASH_KEY]; /* a check is of one store */
    bool there = false;
    if (key_of(entry)->hidden)
        DT_TRY(dt_private_read(entry->opts->directory, false, secret, &there));
    wanted->secret = there ? secret : NULL;
    return DT_OK;
}

static dt_status make_job(struct dt_check_entry *entry)
{
    const struct dt_check_key *key = key_of(entry);
    struct dt_job job = entry->opts->job;
    job.plan = job.weights = job.input = NULL;
    job.seed = 1;
    job.batches = key->batches;
    job.devices = key->devices > 0 && key->devices <= INT_MAX ? (int)key->devices : 0;
    job.backend = entry->item->key.gpus > 0 ? DT_BACKEND_CUDA : DT_BACKEND_CPU;
    job.more.oversubscribe = job.more.oversubscribe || is_oversubscribed(entry->item);
    if (!(entry->item->key.hosts > 0))
        job.more.hosts = NULL;
    job.more.nccl = true; /* for plans that --tune-nccl found */
    job.more.lossy = key->lossy;
    job.max_bytes = key->max_bytes;
    job.reserve_bytes = key->reserve_bytes;
    job.max_latency_ns = key->max_latency_ns;
    DT_TRY(dt_objective_find(key->objective, &job.objective));
    if (is_foreign(key))
        set_wanted(entry, &job.wanted);
    else
        DT_TRY(set_network(entry, &job));
    DT_TRY(set_secret(entry, &job.wanted));
    if (entry->tuned_by.record != NULL) {
        job.worker = (struct dt_program){entry->tuned_by.program, entry->tuned_by.arguments};
        job.wanted.engine = entry->tuned_by.engine;
    }
    entry->job = job;
    return DT_OK;
}

/* Another command, or another measurement of the same one. */
static dt_status other_command(struct dt_check_entry *entry, const struct dt_check_key *mine)
{
    dt_auto_text differences = {0};
    dt_key_add_differences(key_of(entry)->job, mine->job, &differences);
    return dt_check_settle(entry, DT_CHECK_NOT_CHECKED, "it was measured with %.378s",
                           dt_text_at(&differences));
}

/* Reports the field of the entry's key that the target's has not, or otherwise. */
static dt_status other_key(struct dt_check_entry *entry, const char *field)
{
    const struct dt_check_key *key = key_of(entry);
    struct dt_check_key mine;
    dt_check_key_read(entry->target->identity.key, NULL, &mine);
    entry->other = entry->opts->job.worker.path != NULL &&
                   (strcmp(key->worker, mine.worker) != 0 ||
                    (is_command(&mine) && dt_check_differs(key->job, mine.job) != NULL));
    if (is_command(key) && is_command(&mine) &&
        (strcmp(field, "workload") == 0 || strcmp(field, "job") == 0))
        return other_command(entry, &mine);
    if (entry->target->foreign && (strcmp(field, "worker") == 0 || strcmp(field, "workload") == 0))
        return dt_check_settle(entry, DT_CHECK_NOT_CHECKED,
                               "it needs its own worker, and %.200s is '%.100s'",
                               entry->job.worker.path, entry->target->identity.title);
    if (entry->target->foreign && strcmp(field, "job") == 0) {
        dt_auto_text differences = {0};
        dt_key_add_differences(key->job, mine.job, &differences);
        return dt_check_settle(
            entry, DT_CHECK_UNSUPPORTED,
            "the worker, given the job that the plan is stored for, announces another one: the "
            "plan has %.300s",
            dt_text_at(&differences));
    }
    if (entry->target->foreign)
        return dt_check_settle(
            entry, DT_CHECK_UNSUPPORTED,
            "the worker's parameters or rules are no longer those that the plan is stored "
            "for: it may have been tuned with other arguments of the worker, or by another "
            "version");
    if (dt_network_is_preset(key->model))
        return dt_check_settle(entry, DT_CHECK_NOT_CHECKED,
                               "this program computes another %s from its key: tune it again",
                               field[0] != '\0' ? field : "key");
    return dt_check_settle(entry, DT_CHECK_NOT_CHECKED,
                           "'%.100s' came from a file: pass it again with --model FILE",
                           key->model);
}

/* Finds it in the journal of the session. False: it is not known, or not on
 * this machine any more. */
static bool tuned_by_find(struct dt_check_entry *entry)
{
    struct dt_tuned_by *by = &entry->tuned_by;
    bool found = dt_tuned_by_read(entry->opts->directory, &entry->item->entry, by);
    bool command = by->given == NULL && is_command(key_of(entry));
    if (found && (by->engine != NULL || command))
        found =
            dt_machine_engine(by->engine != NULL ? by->engine : "command", by->program) == DT_OK;
    else if (found)
        found = by->given != NULL && by->given[0] == '/' &&
                strlen(by->given) < sizeof by->program && access(by->given, X_OK) == 0;
    if (found && by->engine == NULL && !command)
        snprintf(by->program, sizeof by->program, "%s", by->given);
    if (!found)
        dt_tuned_by_fini(by);
    return found;
}

/* Neither the command line nor the session's journal names it. */
static dt_status no_worker(struct dt_check_entry *entry)
{
    const struct dt_check_key *key = key_of(entry);
    if (is_command(key))
        return dt_check_settle(
            entry, DT_CHECK_NOT_CHECKED,
            "it was tuned by the command %.160s: give %s, --space and --time as then",
            key->workload, key->served ? "--server, --request" : "--command");
    return dt_check_settle(
        entry, DT_CHECK_NOT_CHECKED,
        "it was tuned on the engine '%.100s', and the journal of its session, which says with "
        "which program, is not here or no longer true: --engine NAME, or --worker PROGRAM",
        key->engine);
}

/* The hosts must be as many as those of the entry, with as many slots. */
static bool same_hosts(const struct dt_check_entry *entry)
{
    const struct dt_check_key *key = key_of(entry);
    const struct dt_hosts *hosts = entry->opts->job.more.hosts;
    return !(key->hosts > 0) ||
           (hosts != NULL && hosts->count == key->hosts && dt_hosts_slots(hosts) == key->slots);
}

static dt_status other_hosts(struct dt_check_entry *entry)
{
    const struct dt_hosts *hosts = entry->opts->job.more.hosts;
    char given[100] = "which must be named: --hosts HOST:N,..";
    if (hosts != NULL)
        snprintf(given, sizeof given, "and those named now are %d with %d", hosts->count,
                 dt_hosts_slots(hosts));
    return dt_check_settle(entry, DT_CHECK_NOT_CHECKED,
                           "it was measured on %lld hosts with %lld slots, %s",
                           (long long)key_of(entry)->hosts, (long long)key_of(entry)->slots, given);
}

/* A command's files are looked for in this folder, not in the one in which it was tuned. */
static dt_status settle_unopened(struct dt_check_entry *entry)
{
    const char *folder = dt_json_text_at(key_of(entry)->job, "folder");
    char here[PATH_MAX];
    bool elsewhere =
        folder[0] == '/' && getcwd(here, sizeof here) != NULL && strcmp(here, folder) != 0;
    return dt_check_settle(entry, DT_CHECK_NOT_CHECKED, "%.250s%s%s", dt_message(),
                           elsewhere ? "; it was tuned in the folder " : "",
                           elsewhere ? folder : "");
}

static dt_status make_target(struct dt_check_entry *entry)
{
    const struct dt_check_key *key = key_of(entry);
    const struct dt_stored_entry *stored = &entry->item->entry;
    if (is_foreign(key) && entry->opts->job.worker.path == NULL && !tuned_by_find(entry))
        return no_worker(entry);
    if (!is_foreign(key) && key->height != key->width)
        return dt_check_settle(entry, DT_CHECK_NOT_CHECKED, "it is not of a square image");
    if (!same_hosts(entry))
        return other_hosts(entry);
    dt_status status = make_job(entry);
    if (status == DT_OK)
        status = dt_target_new(&entry->job, &entry->target);
    if (status == DT_OK && entry->opts->job.reserve_bytes > 0) /* today's; the key is the entry's */
        status = dt_target_hold_back(entry->target, entry->opts->job.reserve_bytes);
    if (is_of_entry(status))
        return settle_unopened(entry);
    DT_TRY(status);
    const char *field = dt_check_differs(stored->key, entry->target->identity.key);
    if (field != NULL)
        return other_key(entry, field);
    if (!dt_stored_same_hard(stored->fingerprint.hard, entry->target->identity.hard))
        return dt_check_settle(entry, DT_CHECK_NOT_CHECKED,
                               "it was measured with another engine, mode or amount of memory");
    status = dt_target_devices_free(entry->target);
    return status == DT_EDIRTY ? dt_check_settle(entry, DT_CHECK_NOT_CHECKED, "%s", dt_message())
                               : status;
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

/* Adds the next best plans that are still feasible. */
static void enter_runners_up(struct dt_check_entry *entry)
{
    const struct dt_stored_entry *stored = &entry->item->entry;
    struct dt_point point;
    int before = entry->count;
    for (int i = 0; i < stored->top_count; i++) {
        if (stored->top[i].plan != NULL && entry->count < before + RUNNERS_UP &&
            dt_point_from_json(entry->target->space, stored->top[i].plan, &point) == DT_OK)
            entry_enter(entry, DT_ENTRANT_RUNNER_UP, &point);
    }
}

/* A rival does not share the tuned plan's processes: then the twin gets its own, too,
 * to show that effect. */
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
    const struct dt_stored_entry *stored = &entry->item->entry;
    struct dt_point point;
    if (stored->plan == NULL)
        return dt_check_settle(entry, DT_CHECK_UNSUPPORTED, "there is no plan in the entry");
    dt_status status = dt_target_check(target);
    if (status == DT_OK)
        status = dt_target_stored(target, stored->plan, &point);
    if (is_of_entry(status))
        return dt_check_settle(entry, DT_CHECK_UNSUPPORTED, "%s", dt_message());
    DT_TRY(status);
    entry_enter(entry, DT_ENTRANT_TUNED, &point);
    entry_enter(entry, DT_ENTRANT_DEFAULT, &target->fallback);
    if (target->documented.known)
        entry_enter(entry, DT_ENTRANT_DOCUMENTED, &target->documented.point);
    entry_enter(entry, DT_ENTRANT_BASELINE, &target->baseline);
    if (entry->opts->against != NULL) {
        status = dt_target_plan(target, entry->opts->against, &point);
        if (is_of_entry(status)) {
            snprintf(entry->against, sizeof entry->against, "%s", dt_message());
            dt_text_clean(entry->against);
        } else
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
    return entry->verdict == DT_CHECK_UNJUDGED ? enter_plans(entry) : DT_OK;
}

static void entrants_fini(struct dt_check_entry *entry)
{
    for (int i = 0; entry != NULL && i < entry->count; i++)
        dt_entrant_fini(&entry->entrants[i]);
}

void dt_check_close(struct dt_check_entry *entry)
{
    entrants_fini(entry);
    entrants_fini(entry->left);
    free(entry->left);
    dt_target_free(entry->target);
    dt_check_json_fini(entry);
}

/* Value of --model for the entry's network; NULL: unknown. Beside --worker, --model may also be a
 * name that only the worker knows. */
static const char *model_of(const struct dt_check_entry *entry)
{
    const struct dt_check_key *key = key_of(entry);
    struct dt_network network;
    const char *model = dt_network_is_preset(key->model) ? key->model : entry->opts->model;
    bool same =
        model != NULL && dt_network_load(model, &network) == DT_OK && is_network_of(key, &network);
    return same ? model : NULL;
}

/* Value of --worker; NULL: unknown. */
static const char *worker_of(const struct dt_check_entry *entry)
{
    const struct dt_check_key *key = key_of(entry);
    struct dt_check_key mine;
    if (entry->target == NULL)
        return NULL;
    dt_check_key_read(entry->target->identity.key, NULL, &mine);
    bool same = strcmp(key->worker, mine.worker) == 0 && strcmp(key->workload, mine.workload) == 0;
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
    const struct dt_check_key *key = key_of(entry);
    bool foreign = is_foreign(key), square = foreign || key->height == key->width;
    const char *name = foreign ? worker_of(entry) : model_of(entry);
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
        dt_target_options(entry->target, false, out);
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
    if (job->reserve_bytes > 0)
        dt_text_add(out, " --reserve %lldB", (long long)job->reserve_bytes);
    if (job->max_latency_ns > 0)
        dt_text_add(out, " --max-latency %s", dt_figure_exact(job->max_latency_ns).text);
    if (entry->opts->db != NULL)
        add_quoted("db", entry->opts->db, out);
    if (foreign)
        dt_quote_arguments(job->worker.arguments, out);
}
