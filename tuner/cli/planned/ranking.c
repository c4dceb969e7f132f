/* SPDX-License-Identifier: MIT */
#include "tuner/cli/planned/ranking.h"

#include "tuner/cli/export.h"
#include "tuner/cli/planned/given.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 50 };

void dt_ranking_drop(struct dt_ranking *ranking)
{
    free(ranking->rows);
    free(ranking->mended);
    ranking->rows = ranking->mended = NULL;
    ranking->count = 0;
}

void dt_ranking_fini(struct dt_ranking *ranking)
{
    json_decref(ranking->key);
    json_decref(ranking->plans);
    json_decref(ranking->variants);
    json_decref(ranking->known);
    json_decref(ranking->words);
    dt_text_fini(&ranking->left_why);
    dt_ranking_drop(ranking);
}

static int degree_of(const json_t *plan, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(plan, name));
    return value > 1 && value < 1 << 16 ? (int)value : 1;
}

static struct dt_degrees degrees_of(const json_t *plan)
{
#define DT_PREDICT_DEGREE(name) .name = degree_of(plan, #name),
    return (struct dt_degrees){DT_PREDICT_DEGREE_ROWS};
#undef DT_PREDICT_DEGREE
}

bool dt_ranked_compiles(const json_t *plan)
{
    return dt_engine_compiles(dt_json_text_at(plan, "compile"));
}

static double value_of(const struct dt_ranking *ranking, const struct dt_ranked *row)
{
    double seconds = row->prediction.request;
    if (strcmp(ranking->objective, "throughput") == 0)
        return seconds / row->replicas;
    return strcmp(ranking->objective, "cost") == 0 ? seconds * row->prediction.devices : seconds;
}

/* The number of replicas that fit on the hosts; for plans on several hosts one on as many. */
static int replicas_of(const struct dt_machine_card *machine, const struct dt_prediction *p)
{
    int each = machine->devices / p->devices;
    return p->hosts > 1 ? machine->hosts / p->hosts : machine->hosts * each;
}

int dt_ranking_devices(const struct dt_machine_card *machine)
{
    return machine->hosts * machine->devices;
}

struct dt_plans_wanted dt_ranking_wanted(const struct dt_ranking *ranking)
{
    return (struct dt_plans_wanted){.devices = dt_ranking_devices(&ranking->machine),
                                    .hosts = ranking->machine.hosts,
                                    .slots = ranking->machine.devices,
                                    .throughput = strcmp(ranking->objective, "latency") != 0,
                                    .compute = ranking->machine.capability,
                                    .words = ranking->words,
                                    .card = &ranking->card};
}

/* PipeFusion, several hosts, and weights that are gathered or come from a host's memory are held
 * against few rows or none. */
bool dt_ranked_unsure(const struct dt_ranked *row)
{
    return row->degrees.pipe > 1 || row->prediction.hosts > 1 ||
           (row->degrees.settings & (DT_SETTING_OF_HOST | DT_SETTING_shards)) != 0;
}

void dt_ranking_fill(const struct dt_ranking *ranking, const json_t *plan, struct dt_ranked *row)
{
    struct dt_predict_job job = ranking->job;
    *row = (struct dt_ranked){.plan = plan, .degrees = degrees_of(plan), .replicas = 1};
    row->degrees.settings = dt_engine_settings(&ranking->ways, plan);
    dt_engine_way(&ranking->ways, dt_ranked_compiles(plan), &job);
    dt_predict(&job, &row->degrees, &row->prediction);
    double spread = dt_predict_spread(&row->prediction,
                                      ranking->anchor.given ? &ranking->anchor.prediction : NULL,
                                      dt_ranked_unsure(row) || ranking->anchor.elsewhere);
    dt_predict_scaled(&row->prediction, ranking->anchor.scale);
    row->factor = dt_predict_factor(spread);
    row->fit = dt_predict_fit(&row->prediction, ranking->device_bytes);
    if (strcmp(ranking->objective, "latency") != 0)
        row->replicas = replicas_of(&ranking->machine, &row->prediction);
    row->value = value_of(ranking, row);
}

/* Plans that do not fit are last, by the bytes that they lack. */
static int compare_ranked(const void *a, const void *b)
{
    const struct dt_ranked *x = a, *y = b;
    bool lacks = x->fit == DT_FITS_NOT, other = y->fit == DT_FITS_NOT;
    if (lacks != other)
        return lacks ? 1 : -1;
    double p = lacks ? x->prediction.memory_bytes : x->value;
    double q = lacks ? y->prediction.memory_bytes : y->value;
    return p < q ? -1 : p > q ? 1 : dt_predict_rule(&x->degrees, &y->degrees);
}

/* Puts first, among the best and those within DT_PREDICT_TIE of it, the one with fewest devices, or
 * that the rule of thumb prefers. */
static void settle_tie(struct dt_ranking *ranking)
{
    size_t best = 0;
    for (size_t i = 1; i < ranking->count && ranking->rows[i].fit != DT_FITS_NOT &&
                       ranking->rows[i].value <= DT_PREDICT_TIE * ranking->rows[0].value;
         i++) {
        const struct dt_ranked *row = &ranking->rows[i], *first = &ranking->rows[best];
        int fewer = row->prediction.devices - first->prediction.devices;
        if (fewer < 0 || (fewer == 0 && dt_predict_rule(&row->degrees, &first->degrees) < 0))
            best = i;
    }
    struct dt_ranked first = ranking->rows[best];
    memmove(&ranking->rows[1], &ranking->rows[0], best * sizeof first);
    ranking->rows[0] = first;
}

/* ---- settings that make a plan fit */

static dt_status find_variants(struct dt_ranking *ranking)
{
    json_auto_t *unfit = json_array();
    bool any = false;
    for (size_t i = 0; i < ranking->count; i++) {
        bool lacks = ranking->rows[i].fit == DT_FITS_NOT;
        any = any || lacks;
        json_array_append_new(unfit,
                              lacks ? json_incref((json_t *)ranking->rows[i].plan) : json_null());
    }
    return any && ranking->variants == NULL
               ? dt_engine_variants(ranking->engine, ranking->key, dt_ranking_wanted(ranking),
                                    unfit, &ranking->variants)
               : DT_OK;
}

/* Bytes of a device's weights that lie in its host's memory. */
static double hosted_bytes(const struct dt_ranking *ranking, const struct dt_degrees *degrees)
{
    enum {
        BLOCKS = DT_SETTING_streams | DT_SETTING_pages | DT_SETTING_swaps | DT_SETTING_stages,
        ENCODER =
            DT_SETTING_encoder_streams | DT_SETTING_pages | DT_SETTING_swaps | DT_SETTING_stages
    };
    const struct dt_card_parameters *parameters = &ranking->card.parameters;
    double transformer = fmax(0, 2.0 * (double)parameters->transformer) / degrees->tensor;
    double encoder = fmax(0, 2.0 * (double)parameters->text_encoder);
    return ((degrees->settings & BLOCKS) != 0 ? transformer : 0) +
           ((degrees->settings & ENCODER) != 0 ? encoder : 0);
}

/* Each host has the room, and a link of a known rate, for what its devices keep there. */
static bool host_holds(const struct dt_ranking *ranking, const struct dt_ranked *row)
{
    const struct dt_machine_card *machine = &ranking->machine;
    const struct dt_prediction *p = &row->prediction;
    int here = row->replicas > 1 && p->hosts == 1 ? machine->devices / p->devices * p->devices
                                                  : (p->devices + p->hosts - 1) / p->hosts;
    return (row->degrees.settings & DT_SETTING_OF_HOST) == 0 ||
           (dt_rate_value(machine->host) > 0 &&
            (machine->host_memory_bytes <= 0 ||
             hosted_bytes(ranking, &row->degrees) * here <= machine->host_memory_bytes));
}

static void note_least(struct dt_ranking *ranking, const struct dt_ranked *row)
{
    if (!ranking->lacks || row->prediction.memory_bytes < ranking->least.prediction.memory_bytes)
        ranking->least = *row;
    ranking->lacks = true;
}

/* Takes the best of the plan's variants that fits. */
static void mend_row(struct dt_ranking *ranking, struct dt_ranked *row)
{
    struct dt_ranked *best = &ranking->mended[row->index];
    const json_t *variant;
    size_t i;
    note_least(ranking, row);
    json_array_foreach(json_array_get(ranking->variants, row->index), i, variant)
    {
        struct dt_ranked other;
        dt_ranking_fill(ranking, variant, &other);
        other.index = row->index;
        if (!host_holds(ranking, &other))
            continue;
        note_least(ranking, &other);
        if (other.fit == DT_FITS_NOT || (row->mended != NULL && other.value >= best->value))
            continue;
        *best = other;
        row->mended = best;
    }
}

/* A plan that a setting makes fit takes its own place where no plan fits without one, or where it
 * is better than all that do. */
static void mend_all(struct dt_ranking *ranking)
{
    double least = INFINITY;
    for (size_t i = 0; i < ranking->count; i++) {
        if (ranking->rows[i].fit == DT_FITS_NOT)
            mend_row(ranking, &ranking->rows[i]);
        else
            least = fmin(least, ranking->rows[i].value);
    }
    for (size_t i = 0; i < ranking->count; i++)
        if (ranking->rows[i].mended != NULL &&
            DT_RANKING_CLOSE * ranking->rows[i].mended->value < least)
            ranking->rows[i] = *ranking->rows[i].mended;
    ranking->set = isinf(least);
}

static dt_status predict_all(struct dt_ranking *ranking)
{
    size_t i;
    const json_t *plan;
    dt_ranking_drop(ranking);
    ranking->lacks = false;
    ranking->count = json_array_size(ranking->plans);
    ranking->rows = calloc(ranking->count + 1, sizeof *ranking->rows);
    ranking->mended = calloc(ranking->count + 1, sizeof *ranking->mended);
    if (ranking->rows == NULL || ranking->mended == NULL)
        return dt_fail(DT_ENOMEM, "no memory for %zu plans", ranking->count);
    json_array_foreach(ranking->plans, i, plan)
    {
        dt_ranking_fill(ranking, plan, &ranking->rows[i]);
        ranking->rows[i].index = i;
    }
    DT_TRY(find_variants(ranking));
    mend_all(ranking);
    qsort(ranking->rows, ranking->count, sizeof ranking->rows[0], compare_ranked);
    if (ranking->count > 0 && ranking->rows[0].fit != DT_FITS_NOT)
        settle_tie(ranking);
    return DT_OK;
}

dt_status dt_ranking_again(struct dt_ranking *copy)
{
    copy->rows = copy->mended = NULL;
    copy->job.card = &copy->card;
    copy->job.machine = &copy->machine;
    return predict_all(copy);
}

/* The documented plan, and its words; "uneven" is for degrees of its own. */
static dt_status find_documented(struct dt_ranking *ranking)
{
    struct dt_plans_wanted wanted = dt_ranking_wanted(ranking);
    const char *name;
    json_t *value;
    wanted.device_bytes = (int64_t)ranking->device_bytes;
    DT_TRY(dt_engine_documented(ranking->engine, ranking->key, wanted, &ranking->known));
    ranking->words = json_object();
    json_object_foreach(json_object_get(ranking->known, "plan"), name, value)
    {
        if (json_is_string(value) && strcmp(name, "uneven") != 0)
            json_object_set(ranking->words, name, value);
    }
    return DT_OK;
}

/* The same degrees and words, however many replicas. */
static bool is_same_plan(const json_t *a, const json_t *b)
{
    json_auto_t *x = dt_json_copy(a), *y = dt_json_copy(b);
    json_object_del(x, "replicas");
    json_object_del(y, "replicas");
    return json_equal(x, y);
}

bool dt_ranking_is_documented(const struct dt_ranking *ranking, const struct dt_ranked *row)
{
    return ranking->known != NULL && is_same_plan(row->plan, ranking->documented.plan);
}

/* The documented plan is one of the plans also where it is lossy, which they are not. */
static void add_documented(struct dt_ranking *ranking)
{
    json_t *plan = json_object_get(ranking->known, "plan");
    const json_t *other;
    size_t i;
    json_array_foreach(ranking->plans, i, other)
    {
        if (plan == NULL || is_same_plan(plan, other))
            return;
    }
    if (plan != NULL)
        json_array_append(ranking->plans, plan);
}

bool dt_ranking_is_enough(const struct dt_ranking *ranking)
{
    const struct dt_ranked *row = &ranking->documented;
    return row->plan != NULL && row->fit != DT_FITS_NOT &&
           row->value <= DT_RANKING_CLOSE * ranking->rows[0].value;
}

/* ---- what is asked */

/* A plan in the user's words is one that the engine takes of the model. */
static dt_status check_given_plan(const struct dt_ranking *ranking, const char *text,
                                  const json_t *plan)
{
    DT_CLEANUP(dt_export_fini) struct dt_export export = {.json = NULL};
    const struct dt_export_request request = {.engine = ranking->engine,
                                              .form = DT_FORM_ARGV,
                                              .plan = plan,
                                              .key = ranking->key,
                                              .card = &ranking->card,
                                              .hosts = ranking->machine.hosts,
                                              .slots = ranking->machine.devices,
                                              .compute = ranking->machine.capability};
    const json_t *row;
    size_t i;
    if (dt_export(&request, &export) != DT_OK)
        return dt_fail(DT_EUSAGE, "--given '%.200s': %s", text, dt_message());
    json_array_foreach(export.unexpressed, i, row)
    {
        const char *name = dt_json_text_at(row, "name");
        if (degree_of(plan, name) > 1)
            return dt_fail(DT_EUSAGE, "--given '%.200s': %s has no degree '%s'", text,
                           ranking->engine, name);
    }
    return DT_OK;
}

static dt_status read_given(const struct dt_options *options, struct dt_ranking *ranking)
{
    DT_CLEANUP(dt_given_fini) struct dt_given given = {.plan = NULL};
    const struct dt_given_asked asked = {options->stores, &ranking->job, ranking->engine};
    struct dt_ranking there = *ranking;
    struct dt_ranked row;
    DT_TRY(dt_given_read(options->plan.given, &asked, &given));
    there.job = given.job;
    dt_ranking_fill(&there, given.plan, &row);
    const int devices = dt_ranking_devices(&ranking->machine);
    if (given.entry[0] == '\0' && row.prediction.devices > devices)
        return dt_fail(DT_EUSAGE,
                       "--given '%.200s' is a plan of %d devices, and the machine has %d",
                       options->plan.given, row.prediction.devices, devices);
    if (given.entry[0] == '\0')
        DT_TRY(check_given_plan(ranking, options->plan.given, given.plan));
    const struct dt_predict_job *asked_job = &ranking->job;
    struct dt_anchor *anchor = &ranking->anchor;
    *anchor = (struct dt_anchor){
        .given = true,
        .scale = given.seconds / (given.of_step ? row.prediction.step : row.prediction.request),
        .prediction = row.prediction,
        .degrees = row.degrees,
        .compiles = dt_ranked_compiles(given.plan),
        .elsewhere = dt_card_tokens(&ranking->card, given.job.size) !=
                     dt_card_tokens(&ranking->card, asked_job->size)};
    anchor->is_request =
        !given.of_step && !anchor->elsewhere && given.job.steps == asked_job->steps &&
        given.job.text_tokens == asked_job->text_tokens && given.job.guided == asked_job->guided;
    memcpy(anchor->entry, given.entry, sizeof anchor->entry);
    return DT_OK;
}

static dt_status check_given(const struct dt_options *options)
{
    static const char *const needed[] = {"model", "engine", "machine", NULL};
    for (int i = 0; needed[i] != NULL; i++)
        if (!dt_option_given(options, needed[i]))
            return dt_fail(DT_EUSAGE,
                           "plan needs --%s: dittune plan --model flux.1-dev --engine sglang "
                           "--machine 8xh100",
                           needed[i]);
    return DT_OK;
}

dt_status dt_ranking_read(const struct dt_options *options, struct dt_ranking *ranking)
{
    DT_TRY(check_given(options));
    DT_TRY(dt_card_load(options->plan.model, &ranking->card));
    DT_TRY(dt_machine_card_load(options->plan.machine, &ranking->machine));
    return dt_ranking_open(options, ranking);
}

dt_status dt_ranking_open(const struct dt_options *options, struct dt_ranking *ranking)
{
    struct dt_lengths lengths;
    const struct dt_task_value *steps = &options->task.at[DT_TASK_steps];
    const struct dt_objective *objective;
    DT_TRY(dt_objective_find(options->job.objective, &objective));
    DT_TRY(
        dt_card_lengths(&ranking->card, &options->task.at[DT_TASK_text_tokens].lengths, &lengths));
    ranking->engine = options->lookup.engine;
    ranking->objective = options->job.objective;
    ranking->anchor.scale = 1;
    DT_TRY(dt_engine_check_model(ranking->engine, &ranking->card));
    dt_engine_ways(ranking->engine, &ranking->ways);
    ranking->job = (struct dt_predict_job){.card = &ranking->card,
                                           .machine = &ranking->machine,
                                           .text_tokens = lengths.at[0],
                                           .steps = steps->given              ? (int)steps->count
                                                    : ranking->card.steps > 0 ? ranking->card.steps
                                                                              : STEPS,
                                           .guided = ranking->card.guidance == DT_GUIDANCE_CFG};
    ranking->device_bytes = dt_rate_value(ranking->machine.memory);
    if (options->job.max_bytes > 0)
        ranking->device_bytes = fmin(ranking->device_bytes, (double)options->job.max_bytes);
    DT_TRY(dt_export_card_key(options, &ranking->card, dt_ranking_devices(&ranking->machine),
                              &ranking->job.size, &ranking->key));
    if (options->plan.given != NULL)
        DT_TRY(read_given(options, ranking));
    DT_TRY(find_documented(ranking));
    DT_TRY(dt_engine_plans(ranking->engine, ranking->key, dt_ranking_wanted(ranking),
                           &ranking->plans));
    DT_TRY(dt_engine_left_out(ranking->engine, ranking->key, dt_ranking_wanted(ranking),
                              &ranking->left_out, &ranking->left_why));
    add_documented(ranking);
    if (ranking->known != NULL)
        dt_ranking_fill(ranking, json_object_get(ranking->known, "plan"), &ranking->documented);
    return predict_all(ranking);
}
