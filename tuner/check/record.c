/* SPDX-License-Identifier: MIT */
#include "tuner/check/check_int.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/figures.h"
#include "db/outline.h"
#include "db/snapshot.h"
#include "db/store.h"
#include "model/task.h"
#include "space/json/json.h"
#include "tuner/session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

DT_LIST_KIND(successors);

#include "base/record_rows.h"

#include "tuner/check/check.def"

/* ---- keys and plans in words */

void dt_check_key_read(const json_t *key, const json_t *hard, struct dt_check_key *read)
{
    const json_t *job = json_object_get(key, "job"), *batches = json_object_get(key, "batch");
    *read = (struct dt_check_key){.worker = dt_json_text_at(key, "worker"),
                                  .workload = dt_json_text_at(key, "workload"),
                                  .job = job,
                                  .served = dt_json_has(job, "request"),
                                  .hidden = dt_json_has(job, "private"),
                                  .work_lossy = dt_json_has(job, "lossy"),
                                  .model = dt_json_text_at(key, "model"),
                                  .network = dt_json_text_at(key, "network"),
                                  .dtype = dt_json_text_at(key, "dtype"),
                                  .height = dt_json_integer_at(key, "height"),
                                  .width = dt_json_integer_at(key, "width"),
                                  .lossy = dt_json_integer_at(key, "lossy") != 0,
                                  .devices = dt_json_integer_at(key, "devices"),
                                  .max_bytes = dt_json_integer_at(key, "max_bytes"),
                                  .reserve_bytes = dt_json_integer_at(key, "reserve_bytes"),
                                  .max_latency_ns = dt_json_integer_at(key, "max_latency_ns"),
                                  .objective = dt_json_text_at(key, "objective"),
                                  .engine = dt_json_text_at(hard, "engine"),
                                  .gpus = dt_json_integer_at(hard, "gpus"),
                                  .hosts = dt_json_integer_at(hard, "hosts"),
                                  .slots = dt_json_integer_at(hard, "slots")};
    for (size_t i = 0; i < json_array_size(batches) && i < DT_LIST_MAX; i++)
        read->batches.values[read->batches.count++] =
            (int)json_integer_value(json_array_get(batches, i));
}

/* The job says more than the worker's workload. */
static void title_add_work(const struct dt_check_key *key, struct dt_text *out)
{
    dt_text_add(out, "%s: ", key->worker);
    size_t before = out->size;
    if (dt_json_has(key->job, "time")) {
        dt_text_add(out, "%s, time %s", key->workload, dt_json_text_at(key->job, "time"));
        if (dt_json_has(key->job, "unit"))
            dt_text_add(out, " in %s", dt_json_text_at(key->job, "unit"));
        if (dt_json_has(key->job, "limits"))
            dt_text_add(out, ", %s", dt_json_text_at(key->job, "limits"));
        return;
    }
    dt_task_title(key->job, out);
    if (out->size == before)
        dt_text_add(out, "%s", key->workload);
}

void dt_check_title(const json_t *json, char title[], size_t room)
{
    dt_auto_text text = {0};
    struct dt_check_key key;
    dt_check_key_read(json, NULL, &key);
    if (key.worker[0] != '\0')
        title_add_work(&key, &text);
    else
        dt_text_add(&text, "%s, %.0f x %.0f px, %s", key.model,
                    (double)key.width * DT_LATENT_PIXELS, (double)key.height * DT_LATENT_PIXELS,
                    key.dtype);
    for (int i = 0; i < key.batches.count; i++)
        dt_text_add(&text, "%s%d", i == 0 ? ", batch " : ",", key.batches.values[i]);
    dt_text_add(&text, ", %lld devices, %s", (long long)key.devices, key.objective);
    if (key.max_bytes > 0)
        dt_text_add(&text, ", at most %lld bytes", (long long)key.max_bytes);
    if (key.reserve_bytes > 0)
        dt_text_add(&text, ", %lld bytes reserved", (long long)key.reserve_bytes);
    if (key.max_latency_ns > 0)
        dt_text_add(&text, ", at most %s", dt_figure_of((double)key.max_latency_ns * 1e-9).text);
    snprintf(title, room, "%.*s", (int)room - 1, dt_text_at(&text));
    dt_text_clean(title);
}

bool dt_check_passes(const char *filter, const char *title, const json_t *key)
{
    dt_auto_text text = {0};
    bool found = filter == NULL || strcasestr(title, filter) != NULL;
    if (!found && dt_json_text(key, &text) == DT_OK)
        found = strcasestr(dt_text_at(&text), filter) != NULL;
    return found;
}

static void value_add(const json_t *value, struct dt_text *out)
{
    dt_auto_text plain = {0};
    if (value != NULL)
        dt_json_plain(value, &plain);
    dt_text_show(value != NULL ? dt_text_at(&plain) : "none", out);
}

void dt_plan_words(const json_t *plan, struct dt_text *out)
{
    const char *name, *before = "";
    json_t *value;
    json_object_foreach((json_t *)plan, name, value)
    {
        dt_text_add(out, "%s", before);
        dt_text_show(name, out);
        dt_text_add(out, "=");
        value_add(value, out);
        before = " ";
    }
}

/* ---- differences */

const char *dt_check_differs(const json_t *document, const json_t *other)
{
    const char *name;
    json_t *value;
    if (json_equal(document, other))
        return NULL;
    json_object_foreach((json_t *)document, name, value)
    {
        if (!json_equal(value, json_object_get(other, name)))
            return name;
    }
    return "";
}

/* "environment.NAME" for a value inside. */
static void name_add(void *context, const char *inside, const char *name, const json_t *then,
                     const json_t *now)
{
    (void)then;
    (void)now;
    json_array_append_new(context,
                          json_sprintf("%s%s%s", inside, inside[0] != '\0' ? "." : "", name));
}

struct news {
    struct dt_text *out;
    const char *what;
};

static void news_add(void *context, const char *inside, const char *name, const json_t *then,
                     const json_t *now)
{
    const struct news *news = context;
    (void)inside;
    dt_text_add(news->out, "%s%s", news->out->size > 0 ? ", " : "", news->what);
    dt_text_show(name, news->out);
    dt_text_add(news->out, " ");
    value_add(then, news->out);
    dt_text_add(news->out, " -> ");
    value_add(now, news->out);
}

void dt_moment_add_news(const json_t *then, const json_t *now, const char *what,
                        struct dt_text *out)
{
    struct news news = {out, what};
    if (then != NULL && now != NULL)
        dt_json_differences(then, now, "", news_add, &news);
}

/* ---- which entries are checked */

struct selection {
    const struct dt_check_opts *opts;
    struct dt_check_list *list;
    /* the machine's part of a hard fingerprint, for cores and for GPUs; gpus may be NULL */
    json_t *hard, *gpus;
    bool failed; /* out of memory */
};

/* The other fields of an entry's hard fingerprint are compared after making its target. */
static bool is_this_machine(const struct selection *selection, const struct dt_check_item *item)
{
    const json_t *mine = item->key.gpus > 0 ? selection->gpus : selection->hard;
    return dt_stored_has_hard(item->entry.fingerprint.hard, mine);
}

static bool is_text(const json_t *job, const char *name, const char *wanted)
{
    return wanted == NULL || strcmp(dt_json_text_at(job, name), wanted) == 0;
}

/* With --engine, entries that were tuned on it, and on that --model; those of --pipeline. */
static bool is_of_engine(const struct dt_check_opts *opts, const struct dt_check_item *item)
{
    const char *engine = opts->job.wanted.engine;
    return is_text(item->key.job, "pipeline", opts->pipeline) &&
           (engine == NULL ||
            (item->key.worker[0] != '\0' && strcmp(item->key.engine, engine) == 0 &&
             is_text(item->key.job, "model", opts->model)));
}

static void item_read(const json_t *stored, void *context)
{
    struct selection *selection = context;
    struct dt_check_list *list = selection->list;
    struct dt_check_item item = {.stored = NULL};
    dt_record_read(&dt_record_stored_entry, stored, &item.entry);
    dt_check_key_read(item.entry.key, item.entry.fingerprint.hard, &item.key);
    item.ranks = dt_json_integer_at(item.entry.plan, "ranks");
    dt_check_title(item.entry.key, item.title, sizeof item.title);
    if (!is_this_machine(selection, &item) || !is_of_engine(selection->opts, &item) ||
        !dt_check_passes(selection->opts->filter, item.title, item.entry.key))
        return;
    selection->failed = selection->failed || DT_GROW(list->items, list->count, 1) < 0;
    if (selection->failed)
        return;
    item.stored = json_incref((json_t *)stored);
    list->items[list->count++] = item;
}

dt_status dt_check_items_read(const struct dt_check_opts *opts, struct dt_check_list *list)
{
    DT_CLEANUP(dt_backend_fini) struct dt_backend backend = {.cuda = false};
    DT_TRY(dt_backend_find_gpus(&backend));
    json_auto_t *hard = dt_machine_hard(NULL);
    json_auto_t *gpus = backend.cuda ? dt_machine_hard(&backend) : NULL;
    struct selection selection = {
        .opts = opts, .list = list, .hard = hard, .gpus = gpus, .failed = hard == NULL};
    if (!selection.failed)
        DT_TRY(dt_store_each(opts->directory, item_read, &selection));
    return selection.failed ? dt_fail(DT_ENOMEM, "out of memory") : DT_OK;
}

void dt_check_list_fini(struct dt_check_list *list)
{
    for (int i = 0; i < list->count; i++)
        json_decref(list->items[i].stored);
    free(list->items);
    *list = (struct dt_check_list){0};
}

/* ---- the worker that tuned an entry */

/* An entry may come from elsewhere (dittune db import), and must not name a program that is
 * started; a journal is only written by sessions on this machine. */
bool dt_tuned_by_read(const char *directory, const struct dt_stored_entry *entry,
                      struct dt_tuned_by *by)
{
    struct dt_outline outline;
    dt_auto_text path = {0};
    *by = (struct dt_tuned_by){.record = NULL};
    if (entry->journal == NULL)
        return false;
    dt_journals_path(directory, entry->journal, &path);
    dt_outline_first(dt_text_at(&path), &outline);
    if (json_is_object(outline.worker) && json_equal(outline.key, entry->key))
        by->record = json_incref(outline.worker);
    dt_outline_fini(&outline);
    const json_t *words = json_object_get(by->record, "arguments");
    by->engine = json_string_value(json_object_get(by->record, "engine"));
    by->given = json_string_value(json_object_get(by->record, "program"));
    bool known = by->record != NULL && json_array_size(words) <= DT_TUNED_WORDS;
    for (size_t i = 0; known && i < json_array_size(words); i++) {
        by->arguments[i] = json_string_value(json_array_get(words, i));
        known = by->arguments[i] != NULL;
    }
    return known;
}

void dt_tuned_by_fini(struct dt_tuned_by *by)
{
    json_decref(by->record);
    *by = (struct dt_tuned_by){.record = NULL};
}

/* ---- the entry in the store */

dt_status dt_check_today(struct dt_check_entry *entry, int64_t deadline_ns)
{
    entry->today = dt_target_machine(entry->target, deadline_ns, false);
    return dt_json_has(entry->today, "soft") && dt_json_has(entry->today, "info")
               ? DT_OK
               : dt_fail(DT_ENOMEM, "out of memory");
}

/* Replaces the fields of the entry that this comparison has. Others, and those that are
 * not known here, stay. */
static bool fields_replace(const struct dt_check_entry *entry, const struct dt_stored_entry *now,
                           json_t *copy)
{
    static const char *const stay[] = {"key", "fingerprint", "noise"};
    json_auto_t *fields = dt_record_json(&dt_record_stored_entry, now);
    json_t *fingerprint = json_object_get(copy, "fingerprint");
    for (size_t i = 0; i < sizeof stay / sizeof stay[0]; i++)
        json_object_del(fields, stay[i]);
    json_object_del(copy, "resolution"); /* the plan before's */
    json_object_del(copy, "load");
    for (int i = 0; i < dt_record_closing.field_count; i++)
        json_object_del(copy, dt_record_closing.fields[i].name);
    json_object_update(copy, fields);
    json_object_set(fingerprint, "soft", json_object_get(entry->today, "soft"));
    json_object_set(fingerprint, "info", json_object_get(entry->today, "info"));
    return fields != NULL;
}

/* info.t_wall_ns stays the session's: newer results take precedence in merges, and a
 * stamp is no result. A plan that only ties keeps its soft fingerprint, so that changed
 * versions remain visible. */
static void info_change(const struct dt_check_entry *entry, enum dt_check_change change,
                        json_t *copy)
{
    json_t *fingerprint = json_object_get(copy, "fingerprint");
    json_t *info = json_object_get(fingerprint, "info");
    json_int_t now = dt_clock_wall_ns();
    if (!json_is_object(info)) {
        info = json_object();
        json_object_set_new(fingerprint, "info", info);
    }
    json_object_del(info, "lost_ns");
    json_object_del(info, "lost_to");
    if (change == DT_CHECK_STAMPED && entry->verdict == DT_CHECK_WINS)
        json_object_set(fingerprint, "soft", json_object_get(entry->today, "soft"));
    if (change == DT_CHECK_STAMPED)
        json_object_set_new(info, "checked_ns", json_integer(now));
    if (change == DT_CHECK_MARKED) {
        json_object_set_new(info, "lost_ns", json_integer(now));
        json_object_set_new(info, "lost_to", json_string(entry->reason));
    }
}

/* Another program may have changed the entry during the check. */
static dt_status still_there(const struct dt_check_entry *entry, bool *same)
{
    json_auto_t *now = NULL;
    const json_t *stored = entry->item->stored;
    const struct dt_identity *identity = &entry->target->identity;
    DT_TRY(dt_store_get(entry->opts->directory, identity->key, identity->hard, &now));
    *same = now != NULL &&
            json_equal(json_object_get(now, "plan"), json_object_get(stored, "plan")) &&
            json_equal(json_object_get(now, "journal"), json_object_get(stored, "journal"));
    return DT_OK;
}

dt_status dt_check_put(struct dt_check_entry *entry, enum dt_check_change change,
                       const struct dt_stored_entry *now)
{
    bool same, done = true;
    json_auto_t *copy = json_deep_copy(entry->item->stored);
    if (change == DT_CHECK_REPLACED)
        done = fields_replace(entry, now, copy);
    else
        info_change(entry, change, copy);
    if (!done || copy == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    DT_TRY(still_there(entry, &same));
    if (!same) {
        snprintf(entry->written.note, sizeof entry->written.note,
                 "not updated: another program has stored a plan meanwhile");
        return DT_OK;
    }
    json_object_del(copy, "id"); /* with crc, the store's */
    json_object_del(copy, "crc");
    DT_TRY(dt_store_put(entry->opts->directory, copy));
    entry->written.change = change;
    json_decref(entry->written.best);
    entry->written.best = json_incref(copy);
    return DT_OK;
}

void dt_check_json_fini(struct dt_check_entry *entry)
{
    dt_tuned_by_fini(&entry->tuned_by);
    json_decref(entry->today);
    json_decref(entry->written.best);
}

/* ---- the record of a check */

static int64_t ns_of(double seconds)
{
    return seconds > 0 ? dt_ns_of(seconds) : DT_NO_NS;
}

static const char *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static int64_t median_of(const struct dt_entrant *entrant)
{
    return ns_of(entrant->result.samples.n > 0 ? entrant->result.summary.median : NAN);
}

/* The visits in whole nanoseconds, null where a visit failed or was not made: every
 * figure follows from them. */
static json_t *visits_json(const struct dt_entrant *entrant, const struct dt_sets *sets)
{
    json_t *list = json_array();
    for (int k = 0; k < dt_sets_rounds(sets); k++) {
        int64_t ns = ns_of(entrant->visits[k]);
        json_array_append_new(list, dt_kind_time.write(&ns));
    }
    return list;
}

static struct dt_span interval_of(const struct dt_ratio *ratio)
{
    bool any = isfinite(ratio->interval.high);
    return (struct dt_span){any ? ratio->interval.low : NAN, any ? ratio->interval.high : NAN};
}

static struct dt_check_row rival_row(const struct dt_check_entry *entry, int i)
{
    const struct dt_check_rival *rival = &entry->judge.rivals[i];
    const struct dt_entrant *entrant = &entry->entrants[i + 1];
    bool failed = entrant->result.outcome != DT_TRIAL_OK;
    const char *reason = failed                   ? entrant->result.cause
                         : rival->out             ? "it takes longer than the entry allows"
                         : entry->entrants[0].out ? "it ran, the tuned plan did not"
                                                  : NULL;
    return (struct dt_check_row){
        .known = true,
        .role = dt_entrant_role_text(entrant->role),
        .plan = dt_point_json(entry->target->space, &entrant->point),
        .verdict = dt_check_verdict_text(rival->out ? DT_CHECK_NOT_CHECKED : rival->verdict),
        .reason = text_or_null(reason),
        .ratio = rival->ratio.ratio,
        .interval = interval_of(&rival->ratio),
        .pairs = rival->ratio.pairs,
        .median_ns = median_of(entrant),
        .cv = rival->cv,
        .visits_ns = visits_json(entrant, &entry->sets)};
}

/* The reason why --against is not a rival of this entry. */
static struct dt_check_row against_row(const struct dt_check_entry *entry)
{
    return (struct dt_check_row){.known = true,
                                 .role = dt_entrant_role_text(DT_ENTRANT_AGAINST),
                                 .verdict = dt_check_verdict_text(DT_CHECK_UNSUPPORTED),
                                 .reason = entry->against,
                                 .ratio = NAN,
                                 .interval = {NAN, NAN},
                                 .median_ns = DT_NO_NS,
                                 .cv = NAN};
}

/* Index of the role's plan as a rival; -1: it is none. */
static int rival_of(const struct dt_check_entry *entry, enum dt_entrant_role role)
{
    int i = entry->judge.count - 1;
    while (i >= 0 && entry->entrants[i + 1].role != role)
        i--;
    return i;
}

enum dt_entrant_role dt_check_opponent(const struct dt_check_entry *entry)
{
    return entry->item->entry.gain.over != NULL ? DT_ENTRANT_DOCUMENTED : DT_ENTRANT_DEFAULT;
}

/* The gain is over the plan that the stored one is told over. */
static struct dt_gain gain_now(const struct dt_check_entry *entry)
{
    int i = rival_of(entry, dt_check_opponent(entry));
    struct dt_gain gain = dt_gain_of(i >= 0 ? &entry->judge.rivals[i].ratio : NULL);
    gain.over = entry->item->entry.gain.over;
    return gain;
}

static struct dt_check_now now_of(const struct dt_check_entry *entry)
{
    const struct dt_check_judge *judge = &entry->judge;
    const struct dt_entrant *tuned = &entry->entrants[0],
                            *twin = &entry->entrants[entry->count - 1];
    int i = rival_of(entry, DT_ENTRANT_DEFAULT); /* -1: the tuned plan may be it */
    bool any =
        i >= 0 || dt_point_equal(entry->target->space, &tuned->point, &entry->target->fallback);
    return (struct dt_check_now){.known = true,
                                 .tuned_ns = median_of(tuned),
                                 .default_ns = any ? median_of(&entry->entrants[i + 1]) : DT_NO_NS,
                                 .gain = gain_now(entry),
                                 .cv = judge->cv,
                                 .margin = judge->margin,
                                 .limit = judge->limit,
                                 .rounds = dt_sets_rounds(&entry->sets),
                                 .sets = dt_json_ints(entry->sets.rounds, entry->sets.count),
                                 .resident = dt_company_text(entry->sets.company),
                                 .seed = entry->seed,
                                 .visits_ns = visits_json(tuned, &entry->sets),
                                 .twin_visits_ns =
                                     entry->twin ? visits_json(twin, &entry->sets) : NULL};
}

static const struct dt_check_now nothing_measured = {.known = true,
                                                     .tuned_ns = DT_NO_NS,
                                                     .default_ns = DT_NO_NS,
                                                     .cv = NAN,
                                                     .margin = NAN,
                                                     .limit = NAN};

static json_t *successors_json(const struct dt_check_entry *left)
{
    json_t *list = json_array();
    for (int i = 0; i < left->count; i++) {
        const struct dt_entrant *entrant = &left->entrants[i];
        const struct dt_check_successor row = {
            .known = true,
            .role = dt_entrant_role_text(entrant->role),
            .plan = dt_point_json(left->target->space, &entrant->point),
            .reason = entrant->out ? text_or_null(entrant->result.cause) : NULL,
            .ratio = entrant->ratio.ratio,
            .interval = interval_of(&entrant->ratio),
            .pairs = entrant->ratio.pairs,
            .median_ns = median_of(entrant),
            .visits_ns = visits_json(entrant, &left->sets)};
        json_array_append_new(list, dt_record_json(&dt_record_check_successor, &row));
    }
    return list;
}

static struct dt_check_update update_of(const struct dt_check_entry *entry)
{
    static const char *const texts[] = {[DT_CHECK_KEPT] = NULL,
                                        [DT_CHECK_REPLACED] = "replaced",
                                        [DT_CHECK_STAMPED] = "stamped",
                                        [DT_CHECK_MARKED] = "marked",
                                        [DT_CHECK_CLEARED] = "cleared"};
    bool replaced = entry->written.change == DT_CHECK_REPLACED;
    return (struct dt_check_update){
        .known = true,
        .updated = texts[entry->written.change],
        .note = text_or_null(entry->written.note),
        .soft = json_incref(json_object_get(entry->today, "soft")),
        .replaced_by = replaced ? json_incref(json_object_get(entry->written.best, "plan")) : NULL,
        .successors = entry->left != NULL ? successors_json(entry->left) : NULL};
}

static json_t *soft_changed(const struct dt_check_entry *entry)
{
    json_t *names = json_array();
    if (entry->today != NULL)
        dt_json_differences(entry->item->entry.fingerprint.soft,
                            json_object_get(entry->today, "soft"), "", name_add, names);
    return names;
}

/* Today's gain with its whole interval is below the share of the stored gain that
 * --max-gain-loss allows. */
static bool has_lost_gain(const struct dt_check_entry *entry, const struct dt_check_record *record)
{
    double loss = entry->opts->max_gain_loss;
    return loss > 0 && record->then.gain.known && record->now.gain.known &&
           record->now.gain.interval.high < record->then.gain.ratio * (1 - loss);
}

/* It owns its JSON values, and borrows its texts from the entry. */
static struct dt_check_record record_of(const struct dt_check_entry *entry)
{
    const struct dt_stored_entry *stored = &entry->item->entry;
    struct dt_check_record record = {
        .known = true,
        .subject = {.known = true,
                    .id = stored->id,
                    .key = json_incref(stored->key),
                    .hard = json_incref(stored->fingerprint.hard),
                    .title = entry->item->title},
        .verdict = dt_check_verdict_text(entry->verdict),
        .reason = text_or_null(entry->reason),
        .plan = json_incref(stored->plan),
        .then = {.known = true, .default_ns = stored->fallback.median_ns, .gain = stored->gain},
        .threshold = entry->opts->threshold,
        .lose_alpha = entry->judge.lose_alpha,
        .soft_changed = soft_changed(entry),
        .update = update_of(entry),
        .now = entry->sets.count > 0 ? now_of(entry) : nothing_measured};
    for (int i = 0; i < entry->judge.count; i++)
        record.rivals[record.rivals_count++] = rival_row(entry, i);
    if (entry->against[0] != '\0')
        record.rivals[record.rivals_count++] = against_row(entry);
    record.gain_lost = has_lost_gain(entry, &record);
    return record;
}

dt_status dt_checked_make(const struct dt_check_entry *entry, const char *retune,
                          struct dt_checked *checked)
{
    struct dt_check_record record = record_of(entry);
    record.retune = text_or_null(retune);
    checked->other = entry->other;
    checked->json = dt_record_json(&dt_record_check_record, &record);
    dt_record_read(&dt_record_check_record, checked->json, &checked->record);
    return checked->json != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

void dt_checked_fini(struct dt_checked *checked)
{
    json_decref(checked->json);
}

/* ---- moments of the journals and of the store */

struct reading {
    struct dt_timelines *lines;
    dt_moment_taker *take;
    void *context;
    bool checks;
    char run[64];
};

static double above_zero(double number)
{
    return number > 0 ? number : NAN;
}

static void moment_set(struct dt_moment *moment, const char *verdict, const struct dt_gain *gain)
{
    snprintf(moment->verdict, sizeof moment->verdict, "%s", verdict != NULL ? verdict : "");
    dt_text_mend(moment->verdict); /* it may be cut within a character */
    moment->gain = above_zero(gain->ratio);
    moment->low = above_zero(gain->interval.low);
    moment->high = above_zero(gain->interval.high);
}

/* Gives the moment, unless the record names no entry. */
static void moment_give(const struct reading *reading, json_t *key, json_t *hard, json_t *stored,
                        struct dt_moment *moment)
{
    struct dt_entry_timeline of = {
        .key = json_incref(key), .hard = json_incref(hard), .stored = json_incref(stored)};
    json_incref(moment->plan);
    json_incref(moment->soft);
    if (key != NULL && hard != NULL && dt_store_id(key, hard, &of.id) == DT_OK) {
        reading->take(reading->context, &of, moment);
        return;
    }
    dt_timeline_fini(&of);
    dt_moment_fini(moment);
}

static void check_read(const struct reading *reading, const json_t *record)
{
    struct dt_check_record check;
    dt_record_read(&dt_record_check_record, record, &check);
    struct dt_moment moment = {.kind = DT_MOMENT_CHECK,
                               .t_wall_ns = dt_json_integer_at(record, "t_wall_ns"),
                               .tuned = dt_seconds_of(check.now.tuned_ns),
                               .fallback = dt_seconds_of(check.now.default_ns),
                               .plan = check.plan,
                               .soft = check.update.soft};
    snprintf(moment.run, sizeof moment.run, "%s", reading->run);
    moment_set(&moment, check.verdict, &check.now.gain);
    moment_give(reading, check.subject.key, check.subject.hard, NULL, &moment);
}

/* An entry belongs to the journal it names: after a merge or import another journal has a
 * copy. In the store it may name none, or one that is missing; an entry stored by a check
 * names the check's journal. */
static void entry_read(const json_t *record, void *context)
{
    const struct reading *reading = context;
    struct dt_stored_entry entry;
    bool stored = reading->run[0] == '\0';
    dt_record_read(&dt_record_stored_entry, record, &entry);
    const char *run = entry.journal != NULL ? entry.journal : reading->run;
    bool copy = stored || strcmp(run, reading->run) != 0;
    bool stamped = entry.fingerprint.info.checked_ns != 0;
    struct dt_moment moment = {.kind = DT_MOMENT_SESSION,
                               .t_wall_ns = copy ? entry.fingerprint.info.t_wall_ns
                                                 : dt_json_integer_at(record, "t_wall_ns"),
                               .provisional = entry.provisional,
                               .stamped = stamped,
                               .tuned = dt_seconds_of(entry.figures.median_ns),
                               .fallback = dt_seconds_of(entry.fallback.median_ns),
                               .plan = entry.plan,
                               .soft = stamped ? NULL : entry.fingerprint.soft};
    snprintf(moment.run, sizeof moment.run, "%s", run);
    moment_set(&moment, entry.verdict, &entry.gain);
    moment_give(reading, entry.key, entry.fingerprint.hard, stored ? entry.plan : NULL, &moment);
}

static dt_status journal_read(struct reading *reading, const struct dt_journals *runs)
{
    struct dt_timelines *lines = reading->lines;
    struct dt_journal_reader journal = {.path = runs->path};
    snprintf(reading->run, sizeof reading->run, "%.63s", runs->id);
    while (dt_journal_next(&journal) &&
           !(reading->checks && strcmp(journal.kind, "session") == 0)) {
        if (strcmp(journal.kind, "check") == 0)
            check_read(reading, journal.record);
        else if (strcmp(journal.kind, "best") == 0 && !reading->checks)
            entry_read(journal.record, reading);
    }
    dt_status status = dt_journal_end(&journal);
    lines->journals += status == DT_OK;
    lines->damaged += status == DT_OK ? journal.damaged : 0;
    lines->spoiled += status < 0 || journal.damaged > 0;
    if (status < 0)
        dt_text_add(&lines->unread, "%s\n", dt_message());
    return status == DT_ENOMEM ? status : DT_OK;
}

dt_status dt_moments_read(const char *directory, bool checks, struct dt_timelines *lines,
                          dt_moment_taker *take, void *context)
{
    struct reading reading = {.lines = lines, .take = take, .context = context, .checks = checks};
    struct dt_journals runs = {.directory = directory};
    while (dt_journals_next(&runs))
        runs.status = journal_read(&reading, &runs);
    DT_TRY(dt_journals_end(&runs));
    reading.run[0] = '\0';
    if (!checks)
        dt_error_keep(&lines->store, dt_store_each(directory, entry_read, &reading));
    return DT_OK;
}

void dt_moment_fini(struct dt_moment *moment)
{
    json_decref(moment->plan);
    json_decref(moment->soft);
}

void dt_timeline_fini(struct dt_entry_timeline *line)
{
    for (int k = 0; k < line->count; k++)
        dt_moment_fini(&line->moments[k]);
    for (int k = 0; k < DT_SERIES_COUNT; k++)
        free(line->courses[k].at);
    json_decref(line->key);
    json_decref(line->hard);
    json_decref(line->stored);
    free(line->moments);
}
