/* SPDX-License-Identifier: MIT */
/* What is known before a session searches: recorded tables and journals of other machines, operations and bytes, and the best plans of the
 * store. */
#include "tuner/session/session.h"

#include "db/store.h"
#include "model/cost.h"
#include "model/workload_json.h"
#include "search/landscape/table.h"
#include "space/dit/dit.h"
#include "space/json/json.h"
#include "tuner/session/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- journals as tables */

#define SESSION_BYTES 1048576 /* more than a session's record ever has */

/* The first line that is not empty is a session's record. */
static bool journal_knows(const struct dt_source *source)
{
    if (source->root != NULL)
        return false;
    size_t skip = strspn(source->text, "\r\n \t");
    const char *begin = source->text + skip;
    size_t size = strcspn(begin, "\n");
    json_t *record = NULL;
    if (size > SESSION_BYTES)
        return false;
    if (dt_json_parse(begin, size, "the first line", &record) != DT_OK)
        return false;
    bool is = strcmp(dt_json_text_at(record, "kind"), "session") == 0;
    json_decref(record);
    return is;
}

/* A landscape needs only the trials, which come before comparisons. */
static dt_status journal_take(struct dt_replay *replay, const struct dt_journal_reader *reader)
{
    const char *kind;
    char what[4096 + 32];
    snprintf(what, sizeof what, "%s: line %d", reader->path, reader->line);
    DT_TRY(dt_json_string(reader->record, what, "kind", &kind));
    if (strcmp(kind, "session") != 0 && strcmp(kind, "trial") != 0)
        return DT_OK;
    return dt_replay_record(replay, reader->record, what);
}

static void replay_free(void *held)
{
    dt_replay_fini(held);
    free(held);
}

static dt_status add_trial(const struct dt_result *result, const struct dt_target *target,
                           struct dt_table *table)
{
    struct dt_cell cells[DT_AXES_MAX] = {{0}};
    const struct dt_trial trial = dt_result_trial(result, target);
    struct dt_entry entry = {.outcome = trial.outcome,
                             .value = trial.value,
                             .cost = trial.cost > 0 ? trial.cost : 0,
                             .peak_bytes = trial.peak_bytes,
                             .count = isnan(trial.value) ? 0 : result->samples.n};
    for (int i = 0; i < table->column_count; i++) {
        const struct dt_axis *axis = dt_space_axis(target->space, i);
        int at = result->point.index[i];
        if (axis->labels != NULL)
            cells[i].text = axis->labels[at];
        else
            cells[i].number = dt_axis_number(axis, axis->values[at]);
    }
    if (dt_point_equal(target->space, &result->point, &target->fallback) && table->start < 0)
        table->start = table->count;
    return dt_table_add_row(table, cells, &entry, result->samples.seconds);
}

static dt_status fill_table(const struct dt_replay *replay, struct dt_table *table)
{
    const struct dt_session *session = &replay->session;
    const struct dt_target *target = replay->target;
    for (int i = 0; i < dt_space_axes(target->space); i++) {
        const struct dt_axis *axis = dt_space_axis(target->space, i);
        DT_TRY(dt_table_add_column(table, axis->name, axis->role));
    }
    for (int i = 0; i < session->count; i++)
        if (session->trials[i].outcome != DT_TRIAL_INTERRUPTED && dt_session_counts(session, i))
            DT_TRY(add_trial(&session->trials[i], target, table));
    snprintf(table->title, sizeof table->title, "%s", target->identity.title);
    snprintf(table->device, sizeof table->device, "%d cores", target->hardware.cores);
    return DT_OK;
}

static dt_status read_table(const struct dt_source *source, struct dt_table *table)
{
    struct dt_journal_reader reader = {
        .path = source->what, .bytes = source->text, .bytes_size = source->size, .foreign = true};
    struct dt_replay *replay = calloc(1, sizeof *replay);
    if (replay == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading %s", source->what);
    table->held = replay;
    table->free_held = replay_free;
    while (dt_journal_next(&reader))
        reader.status = journal_take(replay, &reader);
    DT_TRY(dt_journal_end(&reader));
    return fill_table(replay, table);
}

static const struct dt_reader journal_reader = {
    .name = "a journal of a session",
    .knows = journal_knows,
    .read = read_table,
};

dt_status dt_session_landscape(const char *path, struct dt_landscape **landscape)
{
    static const struct dt_reader *const readers[] = {&journal_reader, NULL};
    return dt_landscape_open(path, readers, landscape);
}

/* ---- the prior of the search */

/* Rough values, which the first answers correct; only the order of plans matters. Cores of 50 Gflop/s that send 5 GB/s;
 * GPUs of 500 Tflop/s that send 370 GB/s (NVLink 4 after its own overhead, github.com/NVIDIA/nccl-tests/issues/212). */
#define FLOPS_PER_BYTE     10
#define GPU_FLOPS_PER_BYTE 1350

static double cost_value(const void *context, const struct dt_point *point)
{
    const struct dt_belief *belief = context;
    const struct dt_target *target = belief->target;
    struct dt_plan plan = dt_dit_plan(target->space, point);
    double step = dt_cost_step(&belief->workload, &plan, target->hardware.cores,
                               target->hardware.backend.cuda ? GPU_FLOPS_PER_BYTE : FLOPS_PER_BYTE);
    return target->objective->value(step, dt_target_batch(target, point),
                                    dt_target_devices(target, point));
}

static dt_status believe_cost(struct dt_belief *belief)
{
    DT_TRY(dt_workload_from_json(belief->target->workload, "the workload", &belief->workload));
    snprintf(belief->name, sizeof belief->name, "operations and bytes of each plan");
    belief->prior = (struct dt_prior){.name = belief->name, .value = cost_value, .context = belief};
    return DT_OK;
}

static double table_value(const void *context, const struct dt_point *point)
{
    return dt_transfer_value(&((const struct dt_belief *)context)->transfer, point);
}

/* Number of the table's plans that exist here; iterates over the table, which is small. */
static int64_t plans_shared(const struct dt_belief *belief)
{
    const struct dt_space *space = belief->target->space, *theirs = belief->source->space;
    int64_t n = 0;
    for (int64_t k = 0; k < belief->source->count; k++) {
        struct dt_point there, point = {{0}};
        bool here = true;
        dt_space_at(theirs, k, &there);
        for (int a = 0; a < dt_space_axes(space) && here; a++)
            here = dt_transfer_back(&belief->transfer, a, &there, &point.index[a]);
        n += here && dt_space_feasible(space, &point);
    }
    return n;
}

static dt_status believe_table(struct dt_belief *belief, const char *path)
{
    DT_TRY(dt_session_landscape(path, &belief->source));
    DT_TRY(dt_transfer_init(&belief->transfer, belief->target->space, NULL, belief->source));
    int64_t n = plans_shared(belief);
    if (n == 0)
        return dt_fail(DT_EUSAGE, "--prior %s: none of its %lld plans is a plan of %s", path,
                       (long long)belief->source->count, belief->target->identity.title);
    snprintf(belief->name, sizeof belief->name, "%.80s (%lld plans)", path, (long long)n);
    belief->prior =
        (struct dt_prior){.name = belief->name, .value = table_value, .context = belief};
    return DT_OK;
}

dt_status dt_belief_init(struct dt_belief *belief, const struct dt_target *target,
                         const char *option)
{
    *belief = (struct dt_belief){.target = target};
    if (option == NULL ? target->foreign : strcmp(option, "none") == 0)
        return DT_OK;
    if (option != NULL && strcmp(option, "cost") != 0)
        return believe_table(belief, option);
    if (target->foreign)
        return dt_fail(DT_EUSAGE, "--prior cost knows the built-in network only, not the worker %s",
                       target->worker.program);
    return believe_cost(belief);
}

void dt_belief_fini(struct dt_belief *belief)
{
    dt_transfer_fini(&belief->transfer);
    dt_landscape_free(belief->source);
    belief->source = NULL;
}

const struct dt_prior *dt_belief_prior(const struct dt_belief *belief)
{
    return belief->prior.value != NULL ? &belief->prior : NULL;
}

/* ---- plans of other sessions */

struct reader {
    struct dt_session *session;
    int distance[DT_KNOWN]; /* of each known plan, ascending */
};

/* Fields of a key that affect which plan is best, but not the meaning of a plan. */
static bool may_differ(const char *name)
{
    static const char *const names[] = {"batch", "devices",   "max_bytes", "max_latency_ns",
                                        "model", "objective", "space",     NULL};
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static int count_differing(const json_t *mine, const json_t *other, bool *same_work)
{
    const char *name;
    json_t *value;
    int n = 0;
    json_object_foreach((json_t *)mine, name, value)
    {
        bool equal = json_equal(value, json_object_get(other, name));
        n += !equal;
        *same_work = *same_work && (equal || may_differ(name));
    }
    return n;
}

/* The plan, at a batch of this session if its own is not feasible. */
static bool feasible(const struct dt_target *target, const json_t *plan, struct dt_point *point)
{
    int batch = dt_space_role(target->space, DT_ROLE_BATCH);
    if (plan == NULL)
        return false;
    if (dt_target_stored(target, plan, point) == DT_OK)
        return true;
    if (batch < 0)
        return false;
    const struct dt_axis *axis = dt_space_axis(target->space, batch);
    json_t *changed = dt_json_copy(plan);
    json_object_set_new(changed, axis->name,
                        json_integer(dt_target_batch(target, &target->fallback)));
    bool read = dt_point_from_json(target->space, changed, point) == DT_OK;
    json_decref(changed);
    return read;
}

/* Inserts by distance, without duplicates. */
static void known_insert(struct reader *reader, const struct dt_point *point, int distance)
{
    struct dt_session *session = reader->session;
    const struct dt_space *space = session->target->space;
    int at = 0, last;
    while (at < session->search.known_count && reader->distance[at] <= distance) {
        if (dt_point_equal(space, &session->search.known[at], point))
            return;
        at++;
    }
    for (last = at; last < session->search.known_count; last++)
        if (dt_point_equal(space, &session->search.known[last], point))
            break;
    if (at == DT_KNOWN)
        return;
    if (last == session->search.known_count) /* not further down either: one more */
        last =
            session->search.known_count < DT_KNOWN ? session->search.known_count++ : DT_KNOWN - 1;
    for (int i = last; i > at; i--) {
        session->search.known[i] = session->search.known[i - 1];
        reader->distance[i] = reader->distance[i - 1];
    }
    session->search.known[at] = *point;
    reader->distance[at] = distance;
}

static void visit_entry(const json_t *entry, void *context)
{
    struct reader *reader = context;
    const struct dt_target *target = reader->session->target;
    struct dt_stored_entry fields;
    struct dt_point point;
    bool same_work = true, any = true;
    dt_record_read(&dt_record_stored_entry, entry, &fields);
    int distance = count_differing(target->identity.key, fields.key, &same_work);
    if (!same_work || !feasible(target, fields.plan, &point))
        return;
    distance += count_differing(target->identity.hard, fields.fingerprint.hard, &any);
    known_insert(reader, &point, distance);
}

void dt_known_read(struct dt_session *session, const char *directory)
{
    struct reader reader = {.session = session};
    session->search.known_count = 0;
    if (dt_store_each(directory, visit_entry, &reader) < 0)
        session->search.known_count = 0;
}
