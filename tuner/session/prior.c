/* SPDX-License-Identifier: MIT */
/* Expectations of plans before a session searches: recorded tables and journals of other
 * machines, or predictions. */
#include "tuner/session/tuning.h"

#include "db/engines/engines.h"
#include "model/predict.h"
#include "model/workload_json.h"
#include "search/landscape/table.h"
#include "space/dit/dit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- journals as tables */

/* The first record is a session's. */
static bool journal_knows(const struct dt_source *source)
{
    struct dt_journal_reader reader = {
        .path = source->what, .bytes = source->text, .bytes_size = source->size, .foreign = true};
    bool is = source->root == NULL && dt_journal_next(&reader) &&
              strcmp(reader.kind, dt_log_kind_text(DT_LOG_SESSION)) == 0;
    return dt_journal_end(&reader) == DT_OK && is;
}

static void log_free(void *held)
{
    dt_log_free(held);
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

static dt_status fill_table(const struct dt_session *session, struct dt_table *table)
{
    const struct dt_target *target = session->target;
    for (int i = 0; i < dt_space_axes(target->space); i++) {
        const struct dt_axis *axis = dt_space_axis(target->space, i);
        DT_TRY(dt_table_add_column(table, axis->name, axis->role));
    }
    for (int i = 0; i < session->count; i++)
        if (session->trials[i].outcome != DT_TRIAL_INTERRUPTED && !session->trials[i].undone &&
            dt_session_counts(session, i))
            DT_TRY(add_trial(&session->trials[i], target, table));
    snprintf(table->title, sizeof table->title, "%s", target->identity.title);
    snprintf(table->device, sizeof table->device, "%d cores", target->hardware.cores);
    return DT_OK;
}

/* A landscape needs only the trials that count. */
static dt_status read_table(const struct dt_source *source, struct dt_table *table)
{
    struct dt_journal_reader reader = {
        .path = source->what, .bytes = source->text, .bytes_size = source->size, .foreign = true};
    struct dt_log *log = NULL;
    DT_TRY(dt_log_new(&log));
    table->held = log;
    table->free_held = log_free;
    while (dt_journal_next(&reader)) {
        char what[4096 + 32];
        snprintf(what, sizeof what, "%s: line %d", reader.path, reader.line);
        if (strcmp(reader.kind, dt_log_kind_text(DT_LOG_SESSION)) == 0 ||
            strcmp(reader.kind, dt_log_kind_text(DT_LOG_TRIAL)) == 0 ||
            strcmp(reader.kind, dt_log_kind_text(DT_LOG_UNDONE)) == 0)
            reader.status = dt_log_read(log, &reader, what);
    }
    DT_TRY(dt_journal_end(&reader));
    return fill_table(dt_log_session(log), table);
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

/* A plan's step, and whether it has the memory that it needs. */
struct expected {
    double seconds;
    bool lacks;
};

static struct expected expect_network(const struct dt_belief *belief, const struct dt_point *point)
{
    const struct dt_target *target = belief->target;
    struct dt_plan plan = dt_dit_plan(target->space, point);
    struct dt_prediction prediction;
    int replicas = dt_target_replicas(target, point);
    dt_predict_network(&belief->workload, &plan, belief->on_gpus ? &belief->machine : NULL,
                       (target->hardware.cores + replicas - 1) / replicas, &prediction);
    return (struct expected){.seconds = prediction.step};
}

/* "": the space has no such words. */
static const char *label_at(const struct dt_space *space, const struct dt_point *point,
                            const char *name)
{
    for (int i = 0; i < dt_space_axes(space); i++) {
        const struct dt_axis *axis = dt_space_axis(space, i);
        if (strcmp(axis->name, name) == 0 && axis->labels != NULL)
            return axis->labels[point->index[i]];
    }
    return "";
}

static int value_at(const struct dt_space *space, const struct dt_point *point, const char *name)
{
    for (int i = 0; i < dt_space_axes(space); i++) {
        const struct dt_axis *axis = dt_space_axis(space, i);
        if (strcmp(axis->name, name) == 0 && axis->labels == NULL)
            return (int)axis->values[point->index[i]];
    }
    return 1;
}

/* The settings of memory that the point's words stand for. */
static unsigned settings_at(const struct dt_belief *belief, const struct dt_point *point)
{
    const struct dt_engine_ways *ways = &belief->engine.ways;
    unsigned settings = 0;
    for (int i = 0; i < ways->count; i++)
        if (strcmp(label_at(belief->target->space, point, ways->at[i].choice), ways->at[i].word) ==
            0)
            settings |= ways->at[i].settings;
    return settings;
}

static struct expected expect_engine(const struct dt_belief *belief, const struct dt_point *point)
{
    const struct dt_target *target = belief->target;
    const struct dt_space *space = target->space;
#define DT_PREDICT_DEGREE(name) .name = value_at(space, point, #name),
    const struct dt_degrees degrees = {DT_PREDICT_DEGREE_ROWS.settings =
                                           settings_at(belief, point)};
#undef DT_PREDICT_DEGREE
    struct dt_predict_job job = belief->engine.job;
    struct dt_prediction p;
    dt_engine_way(&belief->engine.ways, dt_engine_compiles(label_at(space, point, "compile")),
                  &job);
    dt_predict(&job, &degrees, &p);
    bool fits = dt_predict_fit(&p, dt_rate_value(belief->machine.memory)) != DT_FITS_NOT &&
                !dt_target_exceeds(target, p.devices, (int64_t)p.memory_bytes, NULL);
    return (struct expected){.seconds = p.step * dt_target_batch(target, point), .lacks = !fits};
}

static struct expected expect_point(const struct dt_belief *belief, const struct dt_point *point)
{
    return belief->engine.job.card != NULL ? expect_engine(belief, point)
                                           : expect_network(belief, point);
}

static double objective_value(const struct dt_belief *belief, const struct dt_point *point,
                              double seconds)
{
    const struct dt_target *target = belief->target;
    return target->objective->value(
        seconds, dt_target_batch(target, point) * dt_target_replicas(target, point),
        dt_target_devices(target, point));
}

static double predicted_value(const void *context, const struct dt_point *point)
{
    const struct dt_belief *belief = context;
    return objective_value(belief, point, expect_point(belief, point).seconds);
}

/* A plan that is predicted to lack memory is tried after those that fit: as if it took so many
 * times as long, as the prediction may be wrong. */
#define LACKING 4

static double tried_value(const void *context, const struct dt_point *point)
{
    const struct dt_belief *belief = context;
    const struct expected expected = expect_point(belief, point);
    return objective_value(belief, point, expected.seconds * (expected.lacks ? LACKING : 1));
}

static void believe_values(struct dt_belief *belief,
                           double (*value)(const void *context, const struct dt_point *point),
                           double (*tried)(const void *context, const struct dt_point *point))
{
    belief->prior = (struct dt_prior){.name = belief->name, .value = value, .context = belief};
    belief->order = (struct dt_prior){.name = belief->name, .value = tried, .context = belief};
}

/* The device's card, or that of an H100 where it has none: then only the order
 * of plans may be right. */
static dt_status believe_network(struct dt_belief *belief)
{
    const struct dt_target *target = belief->target;
    struct dt_machine_card *machine = &belief->machine;
    DT_TRY(dt_workload_from_json(target->workload, "the workload", &belief->workload));
    belief->on_gpus = target->hardware.backend.cuda;
    if (belief->on_gpus &&
        !dt_machine_card_of(dt_json_text_at(target->identity.hard, "device"), machine))
        DT_TRY(dt_machine_card_load("h100", machine));
    snprintf(belief->name, sizeof belief->name, "predicted times on %.60s",
             belief->on_gpus ? machine->device : "cores");
    believe_values(belief, predicted_value, predicted_value);
    return DT_OK;
}

static int64_t count_or(const struct dt_task *task, enum dt_task_field field, int64_t usual)
{
    return task->at[field].given ? task->at[field].count : usual;
}

/* An engine's published model on GPUs that have a card. False: one of them is not known;
 * nothing is believed then. */
static bool believe_prediction(struct dt_belief *belief)
{
    const struct dt_identity *identity = &belief->target->identity;
    struct dt_task task;
    struct dt_card *card = &belief->engine.card;
    struct dt_machine_card *machine = &belief->machine;
    dt_target_task(belief->target, &task);
    if (!task.at[DT_TASK_model].given || !dt_card_known(task.at[DT_TASK_model].text, card) ||
        (!dt_machine_card_of(dt_json_text_at(identity->hard, "devices"), machine) &&
         !dt_machine_card_of(dt_json_text_at(identity->hard, "device"), machine)))
        return false;
    const struct dt_hosts *hosts = &belief->target->hardware.hosts;
    if (hosts->count > 0)
        dt_machine_card_place(machine, hosts->count, dt_hosts_least_slots(hosts));
    belief->engine.job =
        (struct dt_predict_job){.card = card,
                                .machine = machine,
                                .size = {count_or(&task, DT_TASK_width, card->usual.width),
                                         count_or(&task, DT_TASK_height, card->usual.height),
                                         count_or(&task, DT_TASK_frames, card->usual.frames)},
                                .text_tokens = card->text_tokens,
                                .steps = 1,
                                .guided = card->guidance == DT_GUIDANCE_CFG};
    dt_engine_ways(identity->engine, &belief->engine.ways);
    snprintf(belief->name, sizeof belief->name, "predicted times of %.40s on %.40s", card->name,
             machine->device);
    believe_values(belief, predicted_value, tried_value);
    return true;
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
    believe_values(belief, table_value, table_value);
    return DT_OK;
}

dt_status dt_belief_init(struct dt_belief *belief, const struct dt_target *target,
                         const char *option)
{
    *belief = (struct dt_belief){.target = target};
    if (option != NULL && strcmp(option, "none") == 0)
        return DT_OK;
    if (option != NULL && strcmp(option, "cost") != 0)
        return believe_table(belief, option);
    if (!target->foreign)
        return believe_network(belief);
    if (believe_prediction(belief) || option == NULL)
        return DT_OK;
    return dt_fail(DT_EUSAGE,
                   "--prior cost knows the built-in network, and published models (dittune models) "
                   "on GPUs of model/machines, but not what the worker %s runs",
                   target->worker.program);
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

const struct dt_prior *dt_belief_order(const struct dt_belief *belief)
{
    return belief->order.value != NULL ? &belief->order : NULL;
}

double dt_belief_seconds(const struct dt_belief *belief, const struct dt_point *point)
{
    return belief->prior.value == predicted_value ? expect_point(belief, point).seconds : NAN;
}

double dt_belief_slower(const struct dt_belief *belief, const struct dt_session *session,
                        const struct dt_point *point)
{
    enum { MOST = 8 }; /* predictions may be wrong */
    double slowest = 0, seconds = dt_belief_seconds(belief, point);
    for (int i = 0; i < session->count && isfinite(seconds); i++)
        if (session->trials[i].outcome == DT_TRIAL_OK)
            slowest = fmax(slowest, dt_belief_seconds(belief, &session->trials[i].point));
    return slowest > 0 && seconds > slowest ? fmin(seconds / slowest, MOST) : 1;
}
