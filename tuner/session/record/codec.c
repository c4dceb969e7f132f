/* SPDX-License-Identifier: MIT */
/* The records of sessions and runs as JSON. */
#include "base/array.h"
#include "space/json/json.h"
#include "tuner/session/record/session_json.h"
#include "tuner/session/session_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The context in which a record is read. */
struct context {
    const char *what; /* in errors */
    const struct dt_target *target;
    const struct dt_clocks *clocks;
};

/* ---- the session */

/* The starter of the ranks, so that a check can start them again. */
static json_t *worker_json(const struct dt_job *job)
{
    json_t *words = json_array();
    const char *given = job->worker.path;
    dt_auto_free char *path = given[0] == '/' ? strdup(given) : realpath(given, NULL);
    for (int i = 0; job->worker.arguments != NULL && job->worker.arguments[i] != NULL; i++)
        json_array_append_new(words, json_string(job->worker.arguments[i]));
    return json_pack("{s:s*, s:s*, s:o}", "engine", job->wanted.engine, "program",
                     job->wanted.engine == NULL ? path : NULL, "arguments", words);
}

static json_t *begun_encode(const struct dt_log_record *record, const struct dt_target *target)
{
    const struct dt_begun *begun = &record->begun;
    const struct dt_job *job = begun->job;
    struct dt_fingerprint fingerprint = dt_fingerprint_copy(&begun->fingerprint);
    json_t *object = json_pack("{s:O, s:o}", "key", target->identity.key, "fingerprint",
                               dt_record_json(&dt_record_fingerprint, &fingerprint));
    dt_entry_add_work(target, object);
    json_auto_t *fields = dt_raw_target(target);
    json_object_update(object, fields);
    json_object_set_new(object, "against",
                        begun->has_against ? dt_point_json(target->space, &begun->against)
                                           : json_null());
    if (job->worker.path != NULL && job->wanted.secret == NULL)
        json_object_set_new(object, "worker", worker_json(job));
    json_object_set_new(object, "max_latency_ns", json_integer(begun->max_latency_ns));
    json_object_set_new(object, "budget_ns", json_integer(begun->budget_ns));
    json_object_set_new(object, "seed", json_integer(job->seed));
    if (begun->list.works > 1)
        json_object_set_new(object, "list",
                            json_pack("{s:s, s:i, s:i}", "id",
                                      begun->list.id[0] != '\0' ? begun->list.id : begun->id,
                                      "work", begun->list.work, "works", begun->list.works));
    return object;
}

static dt_status begun_decode(const json_t *json, const struct context *context,
                              struct dt_log_record *record)
{
    struct dt_begun *begun = &record->begun;
    const json_t *against = json_object_get(json, "against");
    if (context->target != NULL)
        return dt_fail(DT_EUSAGE, "%s: a second session in one file", context->what);
    DT_TRY(dt_json_string(json, context->what, "run", &begun->id));
    DT_TRY(
        dt_json_int(json, context->what, "max_latency_ns", 0, INT64_MAX, &begun->max_latency_ns));
    DT_TRY(dt_raw_read_target(json, context->what, &begun->read));
    begun->target = begun->read;
    begun->wall_ns = dt_json_integer_at(json, "t_wall_ns");
    begun->budget_ns = dt_json_integer_at(json, "budget_ns");
    dt_record_read(&dt_record_fingerprint, json_object_get(json, "fingerprint"),
                   &begun->fingerprint);
    struct dt_target *read = begun->read; /* fields that an entry of the session has, too */
    const json_t *network = json_object_get(json, "network");
    read->identity.hard = json_incref(begun->fingerprint.hard);
    read->workload = network != NULL ? json_pack("{s:O}", "network", network) : NULL;
    read->worker.announced = json_incref(json_object_get(json, "space"));
    read->worker.started = json_incref(json_object_get(json, "worker"));
    begun->has_against = against != NULL && !json_is_null(against);
    return begun->has_against ? dt_point_read(begun->target->space, against, &begun->against)
                              : DT_OK;
}

static json_t *taken_encode(const struct dt_log_record *record, const struct dt_target *target)
{
    const struct dt_taken *taken = &record->taken;
    (void)target;
    return record->kind == DT_LOG_RESUMED
               ? json_pack("{s:s, s:I}", "of", taken->of, "spent_ns", (json_int_t)taken->spent_ns)
               : json_pack("{s:s, s:i}", "of", taken->of, "trials", taken->trials);
}

static json_t *link_json(const struct dt_host_link *link)
{
    return link->known
               ? json_pack("{s:I, s:f}", "latency_ns", (json_int_t)llround(link->seconds * 1e9),
                           "bytes_per_second", link->bytes_per_second)
               : json_null();
}

static json_t *links_encode(const struct dt_log_record *record, const struct dt_target *target)
{
    json_t *names = json_array();
    const struct dt_hosts *hosts = &target->hardware.hosts;
    for (int i = 0; i < hosts->count; i++)
        json_array_append_new(
            names, json_pack("{s:s, s:i}", "host", hosts->at[i].name, "slots", hosts->at[i].slots));
    return json_pack("{s:o, s:o, s:o}", "hosts", names, "inside", link_json(&record->links.inside),
                     "across", link_json(&record->links.across));
}

/* ---- plans and their measurements */

static json_t *plan_encode(const struct dt_log_record *record, const struct dt_target *target)
{
    return json_pack("{s:o}", "plan", dt_point_json(target->space, &record->plan));
}

static dt_status plan_decode(const json_t *json, const struct context *context,
                             struct dt_log_record *record)
{
    return dt_point_read(context->target->space, json_object_get(json, "plan"), &record->plan);
}

static json_t *result_encode(const struct dt_log_record *record, const struct dt_target *target)
{
    json_t *json = dt_raw_result(&record->result, target);
    json_object_set_new(json, "looks", json_true());
    if (record->role != DT_ENTRANT_ROLES)
        json_object_set_new(json, "role", json_string(dt_entrant_role_text(record->role)));
    return json;
}

static dt_status result_decode(const json_t *json, const struct context *context,
                               struct dt_log_record *record)
{
    struct dt_clocks clocks = {.ranks = 0}; /* processes of one record learn from each other */
    const char *role;
    DT_TRY(dt_raw_read_result(json, context->what, context->target, &record->result));
    if (dt_json_has(json, "role")) {
        DT_TRY(dt_json_string(json, context->what, "role", &role));
        DT_TRY(dt_entrant_role_find(context->what, role, &record->role));
    }
    if (record->result.report.request_count == 0)
        return DT_OK;
    DT_TRY(dt_clocks_copy(context->clocks, &clocks));
    record->result.throttling.clocks = &clocks;
    dt_status status = dt_raw_finish_trial(json, context->what, &record->result);
    record->result.throttling.clocks = NULL;
    dt_clocks_fini(&clocks);
    return status;
}

static json_t *unverified_encode(const struct dt_log_record *record, const struct dt_target *target)
{
    (void)target;
    return json_pack("{s:i, s:s}", "batch", record->unverified.batch, "cause",
                     record->unverified.cause);
}

static dt_status unverified_read(const json_t *json, const char *what,
                                 struct dt_unverified *unverified)
{
    const char *cause;
    int64_t batch;
    DT_TRY(dt_json_int(json, what, "batch", 1, INT32_MAX, &batch));
    DT_TRY(dt_json_string(json, what, "cause", &cause));
    unverified->batch = (int)batch;
    snprintf(unverified->cause, sizeof unverified->cause, "%s", cause);
    return DT_OK;
}

static dt_status unverified_decode(const json_t *json, const struct context *context,
                                   struct dt_log_record *record)
{
    return unverified_read(json, context->what, &record->unverified);
}

/* ---- the search */

static json_t *search_encode(const struct dt_log_record *record, const struct dt_target *target)
{
    const struct dt_searching *search = &record->search;
    return json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:i}", "search", search->name,
                     "search_reason", search->why, "prior", search->prior, "known",
                     dt_raw_points(target->space, search->known, search->known_count),
                     "evaluations", (json_int_t)search->evaluations, "left_ns",
                     (json_int_t)search->left_ns, "capacity_bytes",
                     (json_int_t)search->capacity_bytes, "in_a_row", search->in_a_row);
}

static dt_status search_decode(const json_t *json, const struct context *context,
                               struct dt_log_record *record)
{
    struct dt_searching *search = &record->search;
    json_t *known;
    DT_TRY(dt_json_string(json, context->what, "search", &search->name));
    DT_TRY(dt_json_string(json, context->what, "search_reason", &search->why));
    DT_TRY(dt_json_string(json, context->what, "prior", &search->prior));
    DT_TRY(dt_json_array(json, context->what, "known", &known));
    search->evaluations = dt_json_integer_at(json, "evaluations");
    search->left_ns = dt_json_integer_at(json, "left_ns");
    search->capacity_bytes = dt_json_integer_at(json, "capacity_bytes");
    search->in_a_row = (int)dt_json_integer_at(json, "in_a_row");
    search->known_count =
        dt_raw_read_points(known, context->target->space, search->known, DT_KNOWN);
    return DT_OK;
}

static json_t *searched_encode(const struct dt_log_record *record, const struct dt_target *target)
{
    (void)target;
    return json_pack("{s:s, s:b}", "search_note", record->searched.note, "search_stopped",
                     record->searched.stopped);
}

static dt_status searched_decode(const json_t *json, const struct context *context,
                                 struct dt_log_record *record)
{
    (void)context;
    record->searched.note = dt_json_text_at(json, "search_note");
    record->searched.stopped = json_is_true(json_object_get(json, "search_stopped"));
    return DT_OK;
}

/* ---- comparisons */

static json_t *compared_encode(const struct dt_log_record *record, const struct dt_target *target)
{
    return dt_raw_comparison(&record->compared, target);
}

static dt_status compared_decode(const json_t *json, const struct context *context,
                                 struct dt_log_record *record)
{
    struct dt_compared *compared = &record->compared;
    struct dt_clocks clocks = {.ranks = 0};
    compared->entrants = calloc(DT_ENTRANTS, sizeof *compared->entrants);
    if (compared->entrants == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a comparison");
    DT_TRY(dt_clocks_copy(context->clocks, &clocks));
    compared->clocks = &clocks;
    dt_status status = dt_raw_read_comparison(json, context->what, context->target, compared);
    if (compared->name != NULL)
        compared->name = dt_compared_is_final(compared) ? DT_FINAL_COMPARISON : DT_SHOOTOUT;
    for (int i = 0; i < compared->count; i++)
        compared->entrants[i].result.throttling.clocks = NULL;
    compared->clocks = NULL;
    dt_clocks_fini(&clocks);
    return status;
}

/* ---- the end */

static json_t *importance_json(const struct dt_session_ended *ended, const struct dt_space *space)
{
    json_t *object = ended->weighed ? json_object() : json_null();
    for (int axis = 0; ended->weighed && axis < dt_space_axes(space); axis++)
        json_object_set_new(object, dt_space_axis(space, axis)->name,
                            dt_json_number(ended->importance[axis]));
    return object;
}

static json_t *ended_encode(const struct dt_log_record *record, const struct dt_target *target)
{
    const struct dt_session_ended *ended = &record->ended;
    json_t *json = dt_record_json(&dt_record_closing, &ended->closing);
    json_object_set_new(json, "search_note", json_string(ended->searched.note));
    json_object_set_new(json, "search_stopped", json_boolean(ended->searched.stopped));
    json_object_set_new(json, "verdict", json_string(dt_verdict_text(ended->verdict)));
    json_object_set_new(json, "importance", importance_json(ended, target->space));
    return json;
}

/* Sessions of few plans have none. */
static void read_importance(const json_t *shares, const struct dt_space *space,
                            struct dt_session_ended *ended)
{
    const int axes = dt_space_axes(space);
    int known = 0;
    for (int axis = 0; axis < axes; axis++) {
        const json_t *share = json_object_get(shares, dt_space_axis(space, axis)->name);
        double value = json_is_number(share) ? json_number_value(share) : NAN;
        ended->importance[axis] = value;
        known += value >= 0 && value <= 1;
    }
    ended->weighed = axes > 0 && known == axes;
}

static dt_status ended_decode(const json_t *json, const struct context *context,
                              struct dt_log_record *record)
{
    struct dt_session_ended *ended = &record->ended;
    const json_t *unverified = json_object_get(json, "unverified");
    dt_record_read(&dt_record_closing, json, &ended->closing);
    if (ended->closing.elapsed_ns == DT_NO_NS)
        return dt_fail(DT_EUSAGE, "%s: 'elapsed_ns' is no time", context->what);
    ended->searched.note = dt_json_text_at(json, "search_note");
    ended->searched.stopped = json_is_true(json_object_get(json, "search_stopped"));
    read_importance(json_object_get(json, "importance"), context->target->space, ended);
    for (size_t i = 0; i < json_array_size(unverified) && i < DT_RIG_REFERENCES; i++)
        DT_TRY(unverified_read(json_array_get(unverified, i), context->what,
                               &ended->unverified[ended->unverified_count++]));
    return DT_OK;
}

/* ---- runs */

static json_t *run_encode(const struct dt_log_record *record, const struct dt_target *target)
{
    const struct dt_run_step *step = &record->run;
    const char *sweep = step->ranks ? "ranks" : "batch";
    if (record->kind == DT_LOG_LEFT_OUT)
        return json_pack("{s:s, s:i, s:s}", "sweep", sweep, "value", step->value, "reason",
                         step->reason);
    json_t *json = dt_raw_target(target);
    json_object_set_new(json, "sweep", step->sweeps ? json_string(sweep) : json_null());
    json_object_set_new(json, "value", json_integer(step->value));
    return json;
}

static dt_status run_decode(const json_t *json, const struct context *context,
                            struct dt_log_record *record)
{
    struct dt_run_step *step = &record->run;
    const char *sweep = json_string_value(json_object_get(json, "sweep"));
    int64_t value;
    DT_TRY(dt_json_int(json, context->what, "value", 0, INT32_MAX, &value));
    step->value = (int)value;
    step->sweeps = sweep != NULL;
    step->ranks = sweep != NULL && strcmp(sweep, "ranks") == 0;
    if (record->kind == DT_LOG_LEFT_OUT)
        return dt_json_string(json, context->what, "reason", &step->reason);
    DT_TRY(dt_raw_read_target(json, context->what, &step->read));
    step->target = step->read;
    return DT_OK;
}

/* ---- all of them */

/* Records that only readers of the file need. */
static dt_status taken_decode(const json_t *json, const struct context *context,
                              struct dt_log_record *record)
{
    (void)json, (void)context, (void)record;
    return DT_OK;
}

static dt_status links_decode(const json_t *json, const struct context *context,
                              struct dt_log_record *record)
{
    return taken_decode(json, context, record);
}

static const struct {
    const char *text;
    json_t *(*encode)(const struct dt_log_record *record, const struct dt_target *target);
    dt_status (*decode)(const json_t *json, const struct context *context,
                        struct dt_log_record *record);
} kinds[] = {
#define DT_LOG_KIND(NAME, text, codec, apply, doc) {text, codec##_encode, codec##_decode},
#include "tuner/session/log.def"
#undef DT_LOG_KIND
};

enum dt_log_kind dt_log_kind_of(const char *text)
{
    enum dt_log_kind kind = 0;
    while (kind < DT_LOG_KINDS && strcmp(kinds[kind].text, text) != 0)
        kind++;
    return kind;
}

const char *dt_log_kind_text(enum dt_log_kind kind)
{
    return kinds[kind].text;
}

static json_t *record_encode(const struct dt_log_record *record, const struct dt_target *target)
{
    return kinds[record->kind].encode(record, target);
}

/* The first record of a session or a run has its target, the others need it. */
static bool brings_target(enum dt_log_kind kind)
{
    return kind == DT_LOG_SESSION || kind == DT_LOG_RUN || kind == DT_LOG_LEFT_OUT;
}

static dt_status record_decode(const json_t *json, const char *what, const struct dt_target *target,
                               const struct dt_clocks *clocks, struct dt_log_record *record)
{
    const struct context context = {what, target, clocks};
    const char *text;
    memset(record, 0, sizeof *record);
    record->kind = DT_LOG_KINDS;
    record->role = DT_ENTRANT_ROLES;
    DT_TRY(dt_json_string(json, what, "kind", &text));
    enum dt_log_kind kind = dt_log_kind_of(text);
    if (kind < DT_LOG_KINDS && target == NULL && !brings_target(kind))
        return dt_fail(DT_ECORRUPT, "%s: a '%s' record before the record of its session", what,
                       text);
    record->kind = kind;
    return kind < DT_LOG_KINDS ? kinds[kind].decode(json, &context, record) : DT_OK;
}

dt_status dt_log_decode(const struct dt_journal_reader *reader, const char *what,
                        const struct dt_target *target, const struct dt_clocks *clocks,
                        struct dt_log_record *record)
{
    return record_decode(reader->record, what, target, clocks, record);
}

dt_status dt_log_copy(const struct dt_log_record *record, const struct dt_target *target,
                      const struct dt_clocks *clocks, struct dt_log_record *copy)
{
    json_auto_t *json = record_encode(record, target);
    *copy = (struct dt_log_record){.kind = DT_LOG_KINDS};
    if (json == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a record");
    json_object_set_new(json, "kind", json_string(dt_log_kind_text(record->kind)));
    dt_status status = record_decode(json, "a record", target, clocks, copy);
    if (status < 0)
        dt_log_record_fini(copy);
    return status;
}

dt_status dt_log_record_write(struct dt_journal *journal, const struct dt_log_record *record,
                              const struct dt_target *target)
{
    if (journal == NULL)
        return DT_OK;
    json_auto_t *json = record_encode(record, target);
    return json == NULL ? dt_fail(DT_ENOMEM, "out of memory for a record")
                        : dt_journal_add(journal, dt_log_kind_text(record->kind), json);
}

void dt_log_record_fini(struct dt_log_record *record)
{
    if (record->kind == DT_LOG_SESSION)
        dt_target_free(record->begun.read);
    if (record->kind == DT_LOG_RUN)
        dt_target_free(record->run.read);
    if (record->kind == DT_LOG_TRIAL || record->kind == DT_LOG_VISIT)
        dt_result_fini(&record->result);
    if (record->kind == DT_LOG_SETS || record->kind == DT_LOG_COMPARISON) {
        for (int i = 0; record->compared.entrants != NULL && i < record->compared.count; i++)
            dt_entrant_fini(&record->compared.entrants[i]);
        free(record->compared.entrants);
    }
    record->kind = DT_LOG_KINDS;
}
