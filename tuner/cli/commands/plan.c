/* SPDX-License-Identifier: MIT */
/* Every plan that an engine takes of a published model, predicted for a machine that is not at hand, best first; or predictions held
 * against a table of measured times. Nothing is measured. */
#include "base/array.h"
#include "base/figures.h"
#include "db/engines/engines.h"
#include "model/predict.h"
#include "tuner/cli/export.h"
#include "tuner/cli/options.h"
#include "tuner/cli/planned/given.h"
#include "tuner/cli/planned/score.h"
#include "tuner/cli/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 12, CLOSE_MOST = 3, STEPS = 50, START_S = 180, REQUESTS = 30 };
#define CLOSE 1.05 /* a documented plan within it is enough */
#define TIE   1.02 /* of which the field's rule of thumb takes one */

struct row {
    const json_t *plan; /* borrowed */
    struct dt_degrees degrees;
    struct dt_prediction prediction;
    double factor; /* of the 80 % interval */
    double value;  /* of the objective: less is better */
    enum dt_fit fit;
    int replicas;
    size_t index;             /* of the plan among the engine's, without settings */
    const struct row *mended; /* of what does not fit: with the setting that does; NULL: none */
};

struct planning {
    struct dt_card card;
    struct dt_machine_card machine;
    struct dt_predict_job job;
    const char *engine, *objective;
    double device_bytes;
    struct dt_engine_ways ways;
    json_t *key, *plans, *variants; /* with settings, of those that do not fit; NULL: all do */
    struct row *rows;               /* best first, those that do not fit last */
    struct row *mended;             /* by index */
    size_t count;
    bool set; /* nothing fits without a setting: rows have theirs */
    bool lacks;
    struct row least;            /* if so, of what does not fit: that of the least memory */
    double scale;                /* measured over predicted; 1: none was given */
    struct dt_prediction anchor; /* of the measured plan */
    struct dt_degrees measured;  /* its degrees */
    bool anchored, elsewhere;    /* elsewhere: at another size */
    char entry[17];              /* of the store, that has the time; "": none */
};

static void planning_fini(struct planning *planning)
{
    json_decref(planning->key);
    json_decref(planning->plans);
    json_decref(planning->variants);
    free(planning->rows);
    free(planning->mended);
}

static int degree(const json_t *plan, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(plan, name));
    return value > 1 && value < 1 << 16 ? (int)value : 1;
}

static struct dt_degrees degrees_of(const json_t *plan)
{
    struct dt_degrees degrees = {.cfg = degree(plan, "cfg"),
                                 .tensor = degree(plan, "tensor"),
                                 .ulysses = degree(plan, "ulysses"),
                                 .ring = degree(plan, "ring"),
                                 .kv_gather = degree(plan, "kv_gather"),
                                 .pipe = degree(plan, "pipe")};
    return degrees;
}

/* Its word for compiling is not that it does not. */
static bool is_compiled(const json_t *plan)
{
    const char *word = dt_json_text_at(plan, "compile");
    return word[0] != '\0' && strcmp(word, "off") != 0 && strcmp(word, "none") != 0;
}

static double value_of(const struct planning *planning, const struct row *row)
{
    double seconds = row->prediction.request;
    if (strcmp(planning->objective, "throughput") == 0)
        return seconds / row->replicas;
    return strcmp(planning->objective, "cost") == 0 ? seconds * row->prediction.devices : seconds;
}

/* As many as fit on the hosts; of plans on several hosts one on as many. */
static int replicas_of(const struct dt_machine_card *machine, const struct dt_prediction *p)
{
    int each = machine->devices / p->devices;
    return p->hosts > 1 ? machine->hosts / p->hosts : machine->hosts * each;
}

static int all_devices(const struct dt_machine_card *machine)
{
    return machine->hosts * machine->devices;
}

static struct dt_plans_wanted plans_wanted(const struct planning *planning)
{
    return (struct dt_plans_wanted){.devices = all_devices(&planning->machine),
                                    .hosts = planning->machine.hosts,
                                    .slots = planning->machine.devices,
                                    .throughput = strcmp(planning->objective, "latency") != 0,
                                    .card = &planning->card};
}

/* What is held against no row: PipeFusion, several hosts, and weights that come from a host's memory. */
static bool is_unsure(const struct row *row)
{
    return row->degrees.pipe > 1 || row->prediction.hosts > 1 ||
           (row->degrees.settings & DT_SETTING_OF_HOST) != 0;
}

static void fill_row(const struct planning *planning, const json_t *plan, struct row *row)
{
    struct dt_predict_job job = planning->job;
    *row = (struct row){.plan = plan, .degrees = degrees_of(plan), .replicas = 1};
    row->degrees.settings = dt_engine_settings(&planning->ways, plan);
    dt_engine_way(&planning->ways, is_compiled(plan), &job);
    dt_predict(&job, &row->degrees, &row->prediction);
    double spread =
        dt_predict_spread(&row->prediction, planning->anchored ? &planning->anchor : NULL,
                          is_unsure(row) || planning->elsewhere);
    dt_predict_scaled(&row->prediction, planning->scale);
    row->factor = dt_predict_factor(spread);
    row->fit = dt_predict_fit(&row->prediction, planning->device_bytes);
    if (strcmp(planning->objective, "latency") != 0)
        row->replicas = replicas_of(&planning->machine, &row->prediction);
    row->value = value_of(planning, row);
}

/* What does not fit is last, by the bytes that it lacks. */
static int better(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    bool lacks = x->fit == DT_FITS_NOT, other = y->fit == DT_FITS_NOT;
    if (lacks != other)
        return lacks ? 1 : -1;
    double p = lacks ? x->prediction.memory_bytes : x->value;
    double q = lacks ? y->prediction.memory_bytes : y->value;
    return p < q ? -1 : p > q ? 1 : dt_predict_rule(&x->degrees, &y->degrees);
}

/* Of the best and those within TIE of it the one of fewest devices, or that the rule of thumb prefers, comes first. */
static void settle_tie(struct planning *planning)
{
    size_t best = 0;
    for (size_t i = 1; i < planning->count && planning->rows[i].fit != DT_FITS_NOT &&
                       planning->rows[i].value <= TIE * planning->rows[0].value;
         i++) {
        const struct row *row = &planning->rows[i], *first = &planning->rows[best];
        int fewer = row->prediction.devices - first->prediction.devices;
        if (fewer < 0 || (fewer == 0 && dt_predict_rule(&row->degrees, &first->degrees) < 0))
            best = i;
    }
    struct row first = planning->rows[best];
    memmove(&planning->rows[1], &planning->rows[0], best * sizeof first);
    planning->rows[0] = first;
}

/* ---- settings that make a plan fit */

static dt_status find_variants(struct planning *planning)
{
    json_auto_t *unfit = json_array();
    bool any = false;
    for (size_t i = 0; i < planning->count; i++) {
        bool lacks = planning->rows[i].fit == DT_FITS_NOT;
        any = any || lacks;
        json_array_append_new(unfit,
                              lacks ? json_incref((json_t *)planning->rows[i].plan) : json_null());
    }
    return any && planning->variants == NULL
               ? dt_engine_variants(planning->engine, planning->key, plans_wanted(planning), unfit,
                                    &planning->variants)
               : DT_OK;
}

/* The host has the room, and a known rate, for what the plan keeps there: a copy for each device. */
static bool host_holds(const struct planning *planning, const struct row *row)
{
    const struct dt_card_parameters *parameters = &planning->card.parameters;
    const struct dt_machine_card *machine = &planning->machine;
    unsigned settings = row->degrees.settings & DT_SETTING_OF_HOST;
    double transformer = fmax(0, 2.0 * (double)parameters->transformer);
    double bytes =
        fmax(0, 2.0 * (double)parameters->text_encoder) +
        (settings == DT_SETTING_encoder_streams ? 0 : transformer / degree(row->plan, "tensor"));
    return settings == 0 ||
           (dt_rate_value(machine->host) > 0 &&
            (machine->host_memory_bytes <= 0 || bytes * row->prediction.devices * row->replicas <=
                                                    machine->host_memory_bytes * machine->hosts));
}

static void note_least(struct planning *planning, const struct row *row)
{
    if (!planning->lacks || row->prediction.memory_bytes < planning->least.prediction.memory_bytes)
        planning->least = *row;
    planning->lacks = true;
}

/* Of the plan's variants the best that fits. */
static void mend(struct planning *planning, struct row *row)
{
    struct row *best = &planning->mended[row->index];
    const json_t *variant;
    size_t i;
    note_least(planning, row);
    json_array_foreach(json_array_get(planning->variants, row->index), i, variant)
    {
        struct row other;
        fill_row(planning, variant, &other);
        other.index = row->index;
        if (!host_holds(planning, &other))
            continue;
        note_least(planning, &other);
        if (other.fit == DT_FITS_NOT || (row->mended != NULL && other.value >= best->value))
            continue;
        *best = other;
        row->mended = best;
    }
}

/* Where no plan fits, those that a setting mends take their places. */
static void mend_all(struct planning *planning)
{
    bool fits = false;
    for (size_t i = 0; i < planning->count; i++) {
        if (planning->rows[i].fit == DT_FITS_NOT)
            mend(planning, &planning->rows[i]);
        else
            fits = true;
    }
    planning->set = false;
    for (size_t i = 0; i < planning->count && !fits; i++)
        if (planning->rows[i].mended != NULL) {
            planning->rows[i] = *planning->rows[i].mended;
            planning->set = true;
        }
}

static dt_status predict_all(struct planning *planning)
{
    size_t i;
    const json_t *plan;
    planning->lacks = false;
    planning->count = json_array_size(planning->plans);
    planning->rows = calloc(planning->count + 1, sizeof *planning->rows);
    planning->mended = calloc(planning->count + 1, sizeof *planning->mended);
    if (planning->rows == NULL || planning->mended == NULL)
        return dt_fail(DT_ENOMEM, "no memory for %zu plans", planning->count);
    json_array_foreach(planning->plans, i, plan)
    {
        fill_row(planning, plan, &planning->rows[i]);
        planning->rows[i].index = i;
    }
    DT_TRY(find_variants(planning));
    mend_all(planning);
    qsort(planning->rows, planning->count, sizeof planning->rows[0], better);
    if (planning->count > 0 && planning->rows[0].fit != DT_FITS_NOT)
        settle_tie(planning);
    return DT_OK;
}

/* ---- what is asked */

static dt_status read_given(const struct dt_options *options, struct planning *planning)
{
    DT_CLEANUP(dt_given_fini) struct dt_given given = {.plan = NULL};
    const struct dt_given_asked asked = {options->stores, &planning->job, planning->engine};
    struct planning there = *planning;
    struct row row;
    DT_TRY(dt_given_read(options->plan.given, &asked, &given));
    there.job = given.job;
    fill_row(&there, given.plan, &row);
    const int devices = all_devices(&planning->machine);
    if (given.entry[0] == '\0' && row.prediction.devices > devices)
        return dt_fail(DT_EUSAGE,
                       "--given '%.200s' is a plan of %d devices, and the machine has %d",
                       options->plan.given, row.prediction.devices, devices);
    planning->anchor = row.prediction;
    planning->measured = row.degrees;
    planning->scale =
        given.seconds / (given.of_step ? row.prediction.step : row.prediction.request);
    planning->anchored = true;
    planning->elsewhere = dt_card_tokens(&planning->card, given.job.size) !=
                          dt_card_tokens(&planning->card, planning->job.size);
    memcpy(planning->entry, given.entry, sizeof planning->entry);
    if (given.of_step || planning->elsewhere)
        planning->measured.settings = ~0U; /* no plan's request was measured */
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

static dt_status read_planning(const struct dt_options *options, struct planning *planning)
{
    struct dt_lengths lengths;
    const struct dt_task_value *steps = &options->task.at[DT_TASK_steps];
    const struct dt_objective *objective;
    DT_TRY(check_given(options));
    DT_TRY(dt_objective_find(options->job.objective, &objective));
    DT_TRY(dt_card_load(options->plan.model, &planning->card));
    DT_TRY(dt_machine_card_load(options->plan.machine, &planning->machine));
    DT_TRY(
        dt_card_lengths(&planning->card, &options->task.at[DT_TASK_text_tokens].lengths, &lengths));
    planning->engine = options->lookup.engine;
    planning->objective = options->job.objective;
    planning->scale = 1;
    DT_TRY(dt_engine_check_model(planning->engine, &planning->card));
    dt_engine_ways(planning->engine, &planning->ways);
    planning->job = (struct dt_predict_job){.card = &planning->card,
                                            .machine = &planning->machine,
                                            .text_tokens = lengths.at[0],
                                            .steps = steps->given ? (int)steps->count : STEPS,
                                            .guided = planning->card.guidance == DT_GUIDANCE_CFG};
    planning->device_bytes = dt_rate_value(planning->machine.memory);
    if (options->job.max_bytes > 0)
        planning->device_bytes = fmin(planning->device_bytes, (double)options->job.max_bytes);
    DT_TRY(dt_export_card_key(options, &planning->card, all_devices(&planning->machine),
                              &planning->job.size, &planning->key));
    if (options->plan.given != NULL)
        DT_TRY(read_given(options, planning));
    DT_TRY(
        dt_engine_plans(planning->engine, planning->key, plans_wanted(planning), &planning->plans));
    return predict_all(planning);
}

/* ---- what a number is */

static const char *rate_basis(struct dt_rate rate)
{
    return rate.measured > 0 ? "measured" : "datasheet";
}

/* Of a request: one that was given was measured, and scales the others. Its steps were not timed by themselves. */
static const char *request_basis(const struct planning *planning, const struct row *row)
{
    if (!planning->anchored)
        return "fitted";
    bool same = dt_degrees_equal(&row->degrees, &planning->measured) && !is_compiled(row->plan);
    return same ? "measured" : "scaled";
}

static const char *step_basis(const struct planning *planning)
{
    return planning->anchored ? "scaled" : "fitted";
}

/* ---- the table */

/* "ulysses=4 x 2": with its replicas. */
static void add_name(const struct row *row, struct dt_text *out)
{
    dt_export_add_degrees(row->plan, out);
    if (row->replicas > 1)
        dt_text_add(out, " x %d", row->replicas);
}

/* Of the rows from `first` that are shown. */
static int widest_name(const struct planning *planning, size_t first)
{
    size_t widest = sizeof "plan";
    for (size_t i = first; i < planning->count && i < first + SHOWN; i++) {
        dt_auto_text name = {0};
        add_name(&planning->rows[i], &name);
        widest = name.size > widest ? name.size : widest;
    }
    return (int)widest;
}

static void add_row(const struct planning *planning, const struct row *row, int width,
                    struct dt_text *out)
{
    static const char *const fits[] = {"", " narrow", " no"};
    const struct dt_prediction *p = &row->prediction;
    dt_auto_text name = {0}, interval = {0};
    add_name(row, &name);
    int digits = p->step < 10 ? 1 : 0;
    dt_text_add(&interval, "[%.*f, %.*f]", digits, p->step / row->factor * 1e3, digits,
                p->step * row->factor * 1e3);
    dt_text_add(out, "%-*s %9.*f %-18s %10.2f %-8s  %6.1f%-7s %8.0f %9.1f  %s\n", width,
                dt_text_at(&name), digits, p->step * 1e3, dt_text_at(&interval), p->request,
                request_basis(planning, row), p->memory_bytes / 1073741824.0, fits[row->fit],
                3600 / p->request * row->replicas, p->request * p->devices, dt_predict_limit(p));
}

/* The card says nothing of this engine, in any version. */
static bool is_foreign_to(const struct dt_card *card, const char *engine)
{
    char name[DT_CARD_WORD];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(engine, ":"), engine);
    for (int i = 0; i < card->engine_count; i++)
        if (strncmp(card->engines[i].engine, name, strlen(name)) == 0)
            return false;
    return true;
}

/* Parts whose memory is not counted, as the card does not have their parameters. */
static void add_unknown(const struct dt_card *card, struct dt_text *out)
{
    const struct {
        const char *name;
        int64_t parameters;
    } parts[] = {{"transformer", card->parameters.transformer},
                 {"VAE", card->parameters.vae},
                 {"text encoder", card->parameters.text_encoder}};
    dt_auto_text names = {0};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].parameters < 0)
            dt_text_add(&names, "%s%s", names.size > 0 ? " and " : "", parts[i].name);
    if (names.size > 0)
        dt_text_add(out,
                    "The model's card does not have the parameters of its %s: the memory is "
                    "without them.\n\n",
                    dt_text_at(&names));
}

/* What the times come from, each with what it is. */
static void add_rates(const struct planning *planning, struct dt_text *out)
{
    const struct dt_machine_card *machine = &planning->machine;
    const struct {
        const char *name, *unit;
        double per;
        struct dt_rate rate;
    } rows[] = {{"bfloat16", "TFLOP/s", 1e12, {machine->flop_rate, 0}},
                {"memory", "GB/s", 1e9, machine->copy}};
    bool used[DT_LINKS + 1] = {false};
    dt_text_add(out, "Rates: ");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        dt_text_add(out, "%s%s %g %s (%s)", i > 0 ? ", " : "", rows[i].name,
                    dt_rate_value(rows[i].rate) / rows[i].per, rows[i].unit,
                    rate_basis(rows[i].rate));
    for (size_t i = 0; i < planning->count; i++)
        used[planning->rows[i].prediction.link] = true;
    for (int i = 0; i < DT_LINKS; i++)
        if (used[i])
            dt_text_add(out, ", %s %g GB/s (%s)", dt_link_texts[i],
                        dt_rate_value(machine->links[i].rate) / 1e9,
                        rate_basis(machine->links[i].rate));
    dt_text_add(out, "; %s (%s).\n", dt_figure_bytes_of((int64_t)planning->device_bytes).text,
                planning->device_bytes < dt_rate_value(machine->memory)
                    ? "--max-bytes"
                    : rate_basis(machine->memory));
    dt_text_add(out,
                "Steps are %s, requests as they say; memory and intervals are fitted "
                "(docs/cost.md).\n\n",
                step_basis(planning));
}

static void add_head(const struct planning *planning, int width, struct dt_text *out)
{
    const struct dt_predict_job *job = &planning->job;
    const struct dt_machine_card *machine = &planning->machine;
    dt_text_add(out, "%s, %lld x %lld px, %lld frame%s, %d steps, on ", planning->card.name,
                (long long)job->size.width, (long long)job->size.height,
                (long long)job->size.frames, job->size.frames == 1 ? "" : "s", job->steps);
    if (machine->hosts > 1)
        dt_text_add(out, "%d hosts of ", machine->hosts);
    dt_text_add(out, "%d x %s\n%zu plans of %s, predicted: nothing was measured here.%s%s\n",
                machine->devices, machine->device, planning->count, planning->engine,
                planning->entry[0] != '\0' ? " The time that scales them is of the store's entry "
                : planning->anchored       ? ""
                                           : " --given a measured time narrows the intervals.",
                planning->entry);
    add_rates(planning, out);
    if (planning->set)
        dt_text_add(out,
                    "No plan fits into %s without a setting that lowers its memory: each has the "
                    "one of %s that makes it fit and costs least.\n\n",
                    dt_figure_bytes_of((int64_t)planning->device_bytes).text, planning->engine);
    add_unknown(&planning->card, out);
    if (is_foreign_to(&planning->card, planning->engine))
        dt_text_add(
            out, "The model's card does not list %s: whether it runs the model is not known.\n\n",
            planning->engine);
    dt_text_add(out, "%-*s %9s %-18s %10s %-8s  %6s%-7s %8s %9s  %s\n", width, "plan", "step, ms",
                "80 % interval", "request, s", "", "GiB", " fits", "an hour", "device-s",
                "limited by");
}

/* Of the 80 % interval of the ratio of two plans' times: what both predictions have wrong cancels. */
static double ratio_factor(const struct row *a, const struct row *b)
{
    return dt_predict_factor(
        dt_predict_ratio_spread(&a->prediction, &b->prediction, is_unsure(a) != is_unsure(b)));
}

struct answer {
    const struct row *documented;        /* NULL: none */
    bool enough;                         /* it is within CLOSE of the best */
    double gain;                         /* how many times as fast as it another may be */
    const struct row *close[CLOSE_MOST]; /* the best, and those that may be faster, best first */
    size_t count;                        /* of all of these */
};

static void take_close(const struct row *row, struct answer *answer)
{
    if (answer->count < CLOSE_MOST)
        answer->close[answer->count] = row;
    answer->count++;
}

/* documented, which may be none of the rows, is one of those to measure where it may be the fastest. */
static struct answer answer_of(const struct planning *planning, const struct row *documented)
{
    const struct row *best = &planning->rows[0];
    struct answer answer = {.documented = documented};
    bool fits = documented != NULL && documented->fit != DT_FITS_NOT;
    answer.enough = fits && documented->value <= CLOSE * best->value;
    bool in = !fits || documented->value > ratio_factor(documented, best) * best->value;
    for (size_t i = 0; i < planning->count && planning->rows[i].fit != DT_FITS_NOT; i++) {
        const struct row *row = &planning->rows[i];
        if (i == 0 || row->value <= ratio_factor(row, best) * best->value) {
            in = in || (fits && dt_degrees_equal(&row->degrees, &documented->degrees) &&
                        answer.count < CLOSE_MOST);
            take_close(row, &answer);
        }
        if (fits && !dt_degrees_equal(&row->degrees, &documented->degrees))
            answer.gain =
                fmax(answer.gain, documented->value / row->value * ratio_factor(row, documented));
    }
    if (!in && answer.count < CLOSE_MOST)
        take_close(documented, &answer);
    else if (!in)
        answer.close[CLOSE_MOST - 1] = documented;
    return answer;
}

/* " --model .. --size ..": all that was asked. */
static void add_job(json_t *job, struct dt_text *out)
{
    json_auto_t *names = json_array();
    const char *name;
    json_t *value;
    json_object_foreach(job, name, value) json_array_append_new(names, json_string(name));
    dt_task_options(job, names, false, out);
}

/* " --devices 8", or " --hosts HOST1:8,HOST2:8" where some of the first plans are on several hosts. */
static void add_machine(const struct planning *planning, const struct answer *answer, size_t some,
                        struct dt_text *out)
{
    const struct dt_machine_card *machine = &planning->machine;
    int hosts = 1;
    for (size_t i = 0; i < some; i++)
        hosts = answer->close[i]->prediction.hosts > 1 ? machine->hosts : hosts;
    if (hosts == 1)
        dt_text_add(out, " --devices %d", machine->devices);
    for (int i = 0; i < hosts && hosts > 1; i++)
        dt_text_add(out, "%sHOST%d:%d", i > 0 ? "," : " --hosts ", i + 1, machine->devices);
}

static void add_enough(const struct planning *planning, const struct answer *answer,
                       struct dt_text *out)
{
    double share = answer->documented->value / planning->rows[0].value;
    dt_text_add(out, "The documented plan is enough: ");
    dt_export_add_degrees(answer->documented->plan, out);
    if (share < 0.9995)
        dt_text_add(out, " is predicted %.2f times as fast as the first above%s", 1 / share,
                    is_compiled(answer->documented->plan) ? ", which is not compiled" : "");
    else if (share < 1.0005)
        dt_text_add(out, " is the fastest that is predicted");
    else
        dt_text_add(out, " is within %.1f %% of the best", 100 * (share - 1));
    if (answer->gain > 1)
        dt_text_add(out, "; no other is likely to be more than %.0f %% faster",
                    ceil(100 * (answer->gain - 1)));
    dt_text_add(out, ".\n");
}

/* The command that measures the plans, and about how long that takes. */
static void add_measuring(const struct planning *planning, const struct answer *answer,
                          struct dt_text *out)
{
    size_t some = answer->count < CLOSE_MOST ? answer->count : CLOSE_MOST;
    dt_text_add(out, "Cannot tell which of %zu plans is the fastest: measure %s", answer->count,
                some < answer->count ? "first " : "");
    for (size_t i = 0; i < some; i++) {
        dt_text_add(out, "%s", i > 0 ? "; " : "");
        dt_export_add_degrees(answer->close[i]->plan, out);
    }
    double seconds = (double)some * (START_S + REQUESTS * answer->close[0]->prediction.request);
    dt_text_add(out,
                ".\n  on such a machine, about %s for these, which a session tries first: "
                "dittune --engine %s",
                dt_figure_span_of(seconds).text, planning->engine);
    add_job(json_object_get(planning->key, "job"), out);
    add_machine(planning, answer, some, out);
    dt_text_add(out, " --objective %s\n", planning->objective);
}

static void add_best(const struct planning *planning, struct dt_text *out)
{
    const struct row *best = &planning->rows[0], *next = &planning->rows[1];
    dt_text_add(out, "Predicted best: ");
    dt_export_add_degrees(best->plan, out);
    if (planning->count > 1 && next->fit != DT_FITS_NOT) {
        double ratio = next->value / best->value, factor = ratio_factor(next, best);
        dt_text_add(out, ", %.2f times as fast as the next (80 %% interval %.2f to %.2f)", ratio,
                    ratio / factor, ratio * factor);
    }
    dt_text_add(out, ".\n");
}

/* Beside the answer: how the documented plan compares. */
static void add_documented(const struct planning *planning, const struct row *documented,
                           struct dt_text *out)
{
    const struct row *best = &planning->rows[0];
    if (documented->fit == DT_FITS_NOT) {
        double lacks = documented->prediction.memory_bytes - planning->device_bytes;
        dt_text_add(out, "The documented plan, ");
        dt_export_add_degrees(documented->plan, out);
        dt_text_add(out, ", does not fit as it is: it lacks %s.\n",
                    dt_figure_bytes_of((int64_t)lacks).text);
    } else if (documented->value > best->value &&
               !dt_degrees_equal(&documented->degrees, &best->degrees)) {
        dt_text_add(out, "The first above is predicted %.2f times as fast as the documented plan, ",
                    documented->value / best->value);
        dt_export_add_degrees(documented->plan, out);
        dt_text_add(out, ".\n");
    }
}

static void add_answer(const struct planning *planning, const struct answer *answer,
                       struct dt_text *out)
{
    if (answer->enough)
        add_enough(planning, answer, out);
    else if (answer->count > 1)
        add_measuring(planning, answer, out);
    else
        add_best(planning, out);
    if (answer->documented != NULL)
        add_documented(planning, answer->documented, out);
}

/* What the settings of a plan ask of the user besides the command. */
static dt_status add_notes(const struct planning *planning, const struct row *row,
                           struct dt_text *out)
{
    DT_CLEANUP(dt_export_fini) struct dt_export with = {.json = NULL}, without = {.json = NULL};
    const json_t *plain = json_array_get(planning->plans, row->index), *note;
    size_t i;
    if (row->degrees.settings == 0)
        return DT_OK;
    DT_TRY(dt_export_card_plan(planning->engine, &planning->card, planning->key, row->plan, &with));
    DT_TRY(dt_export_card_plan(planning->engine, &planning->card, planning->key, plain, &without));
    json_array_foreach(with.notes, i, note)
    {
        if (!dt_json_contains(without.notes, note))
            dt_text_add(out, "  (%s)\n", json_string_value(note));
    }
    return DT_OK;
}

/* The engine's lines and keywords for the plan, with its replicas. */
static dt_status add_command(const struct planning *planning, const struct row *row,
                             struct dt_text *out)
{
    DT_CLEANUP(dt_export_fini) struct dt_export export = {.json = NULL};
    json_auto_t *plan = dt_json_copy(row->plan);
    const json_t *note;
    size_t i;
    if (row->replicas > 1)
        json_object_set_new(plan, "replicas", json_integer(row->replicas));
    const struct dt_export_request request = {.engine = planning->engine,
                                              .form = DT_FORM_ARGV,
                                              .plan = plan,
                                              .key = planning->key,
                                              .card = &planning->card,
                                              .checkpoint = planning->card.name,
                                              .hosts = planning->machine.hosts,
                                              .slots = planning->machine.devices};
    DT_TRY(dt_export(&request, &export));
    dt_text_add(out, "%s", dt_text_at(&export.text));
    const json_t *keywords = dt_export_keywords(&export);
    if (keywords != NULL) {
        dt_text_add(out, "keywords ");
        DT_TRY(dt_json_text(keywords, out));
        dt_text_add(out, "\n");
    }
    if (json_object_get(export.json, "python") != NULL) {
        dt_text_add(out, "  (and lines of Python, which this prints: dittune lookup --engine %s",
                    planning->engine);
        add_job(json_object_get(planning->key, "job"), out);
        dt_text_add(out, " --devices %d --plan '", row->prediction.devices);
        dt_export_add_degrees(row->plan, out);
        dt_text_add(out, "')\n");
    }
    json_array_foreach(export.notes, i, note)
    {
        if (planning->machine.hosts > 1)
            dt_text_add(out, "  (%s)\n", json_string_value(note));
    }
    return planning->machine.hosts > 1 ? DT_OK : add_notes(planning, row, out);
}

/* The best plan of the same plans under another job or machine; NULL: none fits. */
static dt_status flip(struct planning changed, const char *what, struct dt_text *out)
{
    const struct dt_degrees before = changed.rows[0].degrees;
    changed.rows = changed.mended = NULL;
    changed.job.card = &changed.card;
    changed.job.machine = &changed.machine;
    dt_status status = predict_all(&changed);
    const struct row *best = &changed.rows[0];
    if (status == DT_OK && best->fit != DT_FITS_NOT && !dt_degrees_equal(&best->degrees, &before)) {
        dt_text_add(out, "%s%s: ", out->size > 0 ? "; " : "", what);
        dt_export_add_degrees(best->plan, out);
    }
    free(changed.rows);
    free(changed.mended);
    return status;
}

static dt_status add_flips(const struct planning *planning, struct dt_text *out)
{
    dt_auto_text flips = {0};
    struct planning changed = *planning;
    for (int i = 0; i < DT_LINKS; i++) {
        changed.machine.links[i].rate.sheet /= 4;
        changed.machine.links[i].rate.measured /= 4;
    }
    DT_TRY(flip(changed, "links at a quarter of their rate", &flips));
    changed = *planning;
    changed.job.guided = false;
    if (planning->job.guided)
        DT_TRY(flip(changed, "guidance off", &flips));
    changed = *planning;
    changed.objective = strcmp(planning->objective, "latency") == 0 ? "throughput" : "latency";
    DT_TRY(flip(changed,
                strcmp(changed.objective, "latency") == 0 ? "one request at a time"
                                                          : "requests waiting (throughput)",
                &flips));
    if (flips.size == 0)
        dt_text_add(&flips, "none of links at a quarter of their rate, %sload",
                    planning->job.guided ? "guidance off, " : "");
    dt_text_add(out, "What would change the answer: %s.\n", dt_text_at(&flips));
    out->failed = out->failed || flips.failed;
    return DT_OK;
}

/* The engine's words that a plan with a setting has more than one without: options, else keywords, else the plan's own. */
static dt_status add_setting(const struct planning *planning, const struct row *row,
                             struct dt_text *out)
{
    DT_CLEANUP(dt_export_fini) struct dt_export with = {.json = NULL}, without = {.json = NULL};
    const char *engine = planning->engine, *name;
    const json_t *plain = json_array_get(planning->plans, row->index), *word;
    json_t *value;
    size_t i, at = 0, before = out->size;
    DT_TRY(dt_export_card_plan(engine, &planning->card, planning->key, row->plan, &with));
    DT_TRY(dt_export_card_plan(engine, &planning->card, planning->key, plain, &without));
    const json_t *old = json_object_get(without.json, "argv");
    json_array_foreach(json_object_get(with.json, "argv"), i, word)
    {
        if (json_equal(word, json_array_get(old, at)))
            at++;
        else
            dt_text_add(out, "%s%s", out->size > before ? " " : "", json_string_value(word));
    }
    old = json_object_get(without.json, "kwargs");
    json_object_foreach(json_object_get(with.json, "kwargs"), name, value)
    {
        if (out->size == before && !dt_json_has(old, name))
            dt_text_add(out, "%s", name);
    }
    json_object_foreach((json_t *)row->plan, name, value)
    {
        if (out->size == before && !dt_json_has(plain, name))
            dt_text_add(out, "%s=%s", name, json_string_value(value));
    }
    return DT_OK;
}

static dt_status add_lacking(const struct planning *planning, struct dt_text *out)
{
    size_t first = planning->count;
    while (first > 0 && planning->rows[first - 1].fit == DT_FITS_NOT)
        first--;
    int width = widest_name(planning, first);
    if (first < planning->count)
        dt_text_add(out, "\nDo not fit into %s:\n",
                    dt_figure_bytes_of((int64_t)planning->device_bytes).text);
    for (size_t i = first; i < planning->count && i < first + SHOWN; i++) {
        const struct row *row = &planning->rows[i];
        dt_auto_text name = {0};
        dt_export_add_degrees(row->plan, &name);
        double lacks = row->prediction.memory_bytes - planning->device_bytes;
        dt_text_add(out, "%-*s lacks %s; ", width, dt_text_at(&name),
                    dt_figure_bytes_of((int64_t)lacks).text);
        if (row->mended != NULL) {
            DT_TRY(add_setting(planning, row->mended, out));
            dt_text_add(out, " makes it fit: %s a request\n",
                        dt_figure_of(row->mended->prediction.request).text);
        } else {
            dt_text_add(out, "no known setting of %s makes it fit\n", planning->engine);
        }
    }
    if (planning->count > first + SHOWN)
        dt_text_add(out, "and %zu more (--json has all)\n", planning->count - first - SHOWN);
    return DT_OK;
}

/* A plan that does not fit as it is, and is faster than all that do once it has a setting. */
static dt_status add_faster(const struct planning *planning, struct dt_text *out)
{
    const struct row *fastest = NULL;
    for (size_t i = 0; i < planning->count; i++) {
        const struct row *row = planning->rows[i].mended;
        if (row != NULL && (fastest == NULL || row->value < fastest->value))
            fastest = row;
    }
    if (fastest == NULL || CLOSE * fastest->value >= planning->rows[0].value)
        return DT_OK;
    dt_text_add(out, "With ");
    DT_TRY(add_setting(planning, fastest, out));
    dt_text_add(out, ", ");
    dt_export_add_degrees(json_array_get(planning->plans, fastest->index), out);
    dt_text_add(out, " is predicted %.2f times as fast as the first above: %s a request.\n",
                planning->rows[0].value / fastest->value,
                dt_figure_of(fastest->prediction.request).text);
    return add_notes(planning, fastest, out);
}

static dt_status add_table(const struct planning *planning, const struct answer *answer,
                           struct dt_text *out)
{
    int width = widest_name(planning, 0);
    add_head(planning, width, out);
    size_t fitting = 0;
    while (fitting < planning->count && planning->rows[fitting].fit != DT_FITS_NOT)
        fitting++;
    for (size_t i = 0; i < fitting && i < SHOWN; i++)
        add_row(planning, &planning->rows[i], width, out);
    if (fitting > SHOWN)
        dt_text_add(out, "and %zu more (--json has all)\n", fitting - SHOWN);
    DT_TRY(add_lacking(planning, out));
    dt_text_add(out, "\n");
    add_answer(planning, answer, out);
    DT_TRY(add_faster(planning, out));
    DT_TRY(add_command(planning, answer->enough ? answer->documented : &planning->rows[0], out));
    return add_flips(planning, out);
}

/* ---- JSON */

static json_t *terms_json(const struct dt_prediction *p)
{
    static const char *const names[] = {
#define DT_TERM(name, text) #name,
        DT_TERM_ROWS
#undef DT_TERM
    };
    json_t *terms = json_object();
    for (int i = 0; i < DT_TERMS; i++)
        json_object_set_new(terms, names[i], json_real(p->term[i]));
    return terms;
}

/* The setting that makes a plan fit; null: none does, or it fits as it is. */
static json_t *setting_json(const struct row *mended)
{
    return mended == NULL ? json_null()
                          : json_pack("{s:O, s:f, s:I}", "plan", mended->plan, "request_seconds",
                                      mended->prediction.request, "memory_bytes",
                                      (json_int_t)mended->prediction.memory_bytes);
}

/* How many times the best one's value it has, and the 80 % interval of that. */
static json_t *ratio_json(const struct row *row, const struct row *best)
{
    double ratio = row->value / best->value, factor = row == best ? 1 : ratio_factor(row, best);
    return json_pack("[f, f, f]", ratio, ratio / factor, ratio * factor);
}

/* What its numbers are, and the rates that they come from. */
static json_t *basis_json(const struct planning *planning, const struct row *row)
{
    const struct dt_machine_card *machine = &planning->machine;
    enum dt_link link = row->prediction.link;
    const char *over = link < DT_LINKS ? rate_basis(machine->links[link].rate) : NULL;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?}", "step", step_basis(planning), "request",
                     request_basis(planning, row), "memory", "fitted", "bfloat16", "datasheet",
                     "copy", rate_basis(machine->copy), "link", over);
}

static json_t *row_json(const struct planning *planning, const struct row *row,
                        const struct row *documented)
{
    static const char *const fits[] = {"yes", "narrowly", "no"};
    const struct dt_prediction *p = &row->prediction;
    bool compared = documented != NULL && documented->fit != DT_FITS_NOT;
    json_t *of = compared ? json_real(documented->value / row->value) : json_null();
    return json_pack("{s:O, s:i, s:i, s:s?, s:i, s:o, s:f, s:[f, f], s:f, s:[f, f], s:f, s:f, s:I, "
                     "s:s, s:o, s:s, s:o, s:f, s:f, s:o, s:o}",
                     "plan", row->plan, "devices", p->devices, "hosts", p->hosts, "link",
                     p->link < DT_LINKS ? dt_link_texts[p->link] : NULL, "replicas", row->replicas,
                     "basis", basis_json(planning, row), "step_seconds", p->step, "step_interval",
                     p->step / row->factor, p->step * row->factor, "request_seconds", p->request,
                     "request_interval", p->request / row->factor, p->request * row->factor,
                     "vae_seconds", p->vae, "text_seconds", p->text, "memory_bytes",
                     (json_int_t)p->memory_bytes, "fits", fits[row->fit], "setting",
                     setting_json(row->mended), "limit", dt_predict_limit(p), "terms",
                     terms_json(p), "requests_an_hour", 3600 / p->request * row->replicas,
                     "device_seconds", p->request * p->devices, "over_best",
                     ratio_json(row, &planning->rows[0]), "of_documented", of);
}

static json_t *answer_json(const struct planning *planning, const struct answer *answer)
{
    json_t *plans = json_array(), *close = json_array();
    json_t *asked = json_object_get(planning->key, "job");
    const struct row *documented = answer->documented;
    json_t *of = documented != NULL ? json_incref((json_t *)documented->plan) : NULL;
    for (size_t i = 0; i < planning->count; i++)
        json_array_append_new(plans, row_json(planning, &planning->rows[i], documented));
    for (size_t i = 0; i < answer->count && i < CLOSE_MOST; i++)
        json_array_append(close, (json_t *)answer->close[i]->plan);
    return json_pack("{s:O, s:s, s:s, s:s, s:i, s:i, s:I, s:i, s:s, s:f, s:s*, s:b, s:s, s:o, "
                     "s:o*, s:o}",
                     "job", asked, "engine", planning->engine, "machine", planning->machine.name,
                     "device", planning->machine.device, "hosts", planning->machine.hosts,
                     "devices", all_devices(&planning->machine), "device_bytes",
                     (json_int_t)planning->device_bytes, "denoising_steps", planning->job.steps,
                     "objective", planning->objective, "scale", planning->scale, "entry",
                     planning->entry[0] != '\0' ? planning->entry : NULL, "needs_setting",
                     planning->set, "answer",
                     answer->enough      ? "documented"
                     : answer->count > 1 ? "cannot tell"
                                         : "best",
                     "fastest", close, "documented", of, "plans", plans);
}

static dt_status no_plan_fits(const struct planning *planning)
{
    const struct row *least = &planning->least;
    dt_auto_text name = {0};
    dt_export_add_degrees(least->plan, &name);
    return dt_fail(DT_EINFEASIBLE,
                   "no plan of %s fits into %s, with no known setting of %s: the least, %s, needs "
                   "%s of a device",
                   planning->card.name, dt_figure_bytes_of((int64_t)planning->device_bytes).text,
                   planning->engine, dt_text_at(&name),
                   dt_figure_bytes_of((int64_t)least->prediction.memory_bytes).text);
}

static dt_status show(const struct dt_options *options, struct planning *planning)
{
    json_auto_t *known = NULL;
    struct row row = {.plan = NULL};
    struct dt_text text = {0};
    struct dt_plans_wanted wanted = plans_wanted(planning);
    if (planning->count == 0)
        return dt_fail(DT_EINFEASIBLE, "%s takes no plan of %s at this size", planning->engine,
                       planning->card.name);
    if (planning->rows[0].fit == DT_FITS_NOT)
        return no_plan_fits(planning);
    wanted.device_bytes = (int64_t)planning->device_bytes;
    DT_TRY(dt_engine_documented(planning->engine, planning->key, wanted, &known));
    if (known != NULL)
        fill_row(planning, json_object_get(known, "plan"), &row);
    const struct answer answer = answer_of(planning, known != NULL ? &row : NULL);
    dt_status status = options->print.json ? DT_OK : add_table(planning, &answer, &text);
    return dt_print_either(options, status, answer_json(planning, &answer), &text);
}

dt_status dt_command_plan(const struct dt_options *options)
{
    DT_CLEANUP(planning_fini) struct planning planning = {.key = NULL};
    if (options->plan.against != NULL)
        return dt_score_table(options, options->plan.against);
    DT_TRY(read_planning(options, &planning));
    return show(options, &planning);
}
