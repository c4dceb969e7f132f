/* SPDX-License-Identifier: MIT */
/* Every plan that an engine takes of a published model, predicted for a machine that is not at hand, best first; or predictions held
 * against a table of measured times. Nothing is measured. */
#include "base/array.h"
#include "base/figures.h"
#include "db/engines/engines.h"
#include "model/predict.h"
#include "tuner/cli/export.h"
#include "tuner/cli/options.h"
#include "tuner/cli/planned/score.h"
#include "tuner/cli/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 12, CLOSE_MOST = 3, STEPS = 50, START_S = 180, REQUESTS = 30 };
#define CLOSE 1.05 /* predicted times that no one should choose between */
#define TIE   1.02 /* of which the field's rule of thumb takes one */

struct row {
    const json_t *plan; /* borrowed */
    struct dt_degrees degrees;
    struct dt_prediction prediction;
    double factor; /* of the 80 % interval */
    double value;  /* of the objective: less is better */
    enum dt_fit fit;
    int replicas;
};

struct planning {
    struct dt_card card;
    struct dt_machine_card machine;
    struct dt_predict_job job;
    const char *engine, *objective;
    double device_bytes;
    json_t *key, *plans;
    struct row *rows; /* best first, those that do not fit last */
    size_t count;
    double scale;                /* measured over predicted; 1: none was given */
    struct dt_prediction anchor; /* of the measured plan */
    struct dt_degrees measured;  /* its degrees */
    bool anchored;
};

static void planning_fini(struct planning *planning)
{
    json_decref(planning->key);
    json_decref(planning->plans);
    free(planning->rows);
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

static void fill_row(const struct planning *planning, const json_t *plan, struct row *row)
{
    struct dt_predict_job job = planning->job;
    *row = (struct row){.plan = plan, .degrees = degrees_of(plan), .replicas = 1};
    dt_engine_runs(planning->engine, is_compiled(plan), &job);
    dt_predict(&job, &row->degrees, &row->prediction);
    bool unsure = row->degrees.pipe > 1 || row->prediction.hosts > 1;
    double spread =
        dt_predict_spread(&row->prediction, planning->anchored ? &planning->anchor : NULL, unsure);
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

static dt_status predict_all(struct planning *planning)
{
    size_t i;
    const json_t *plan;
    planning->count = json_array_size(planning->plans);
    planning->rows = calloc(planning->count + 1, sizeof *planning->rows);
    if (planning->rows == NULL)
        return dt_fail(DT_ENOMEM, "no memory for %zu plans", planning->count);
    json_array_foreach(planning->plans, i, plan) fill_row(planning, plan, &planning->rows[i]);
    qsort(planning->rows, planning->count, sizeof planning->rows[0], better);
    if (planning->count > 0 && planning->rows[0].fit != DT_FITS_NOT)
        settle_tie(planning);
    return DT_OK;
}

/* A word of --given: a degree above 0, or the time in seconds. */
static dt_status read_word(char *word, json_t *plan, double *seconds)
{
    static const char *const names[] = {"cfg",       "tensor", "ulysses", "ring",
                                        "kv_gather", "pipe",   NULL};
    char *equals = strchr(word, '='), *end;
    if (equals == NULL) {
        double value = strtod(word, &end);
        double unit = strcmp(end, "ms") == 0 ? 1e-3 : strcmp(end, "s") == 0 ? 1 : 0;
        if (*seconds > 0 || !(value * unit > 0 && value * unit < 1e9))
            return dt_fail(DT_EUSAGE,
                           "--given: '%.60s' is no time, such as 6.71s or 830ms, or a second one",
                           word);
        *seconds = value * unit;
        return DT_OK;
    }
    *equals = '\0';
    long degree = strtol(equals + 1, &end, 10);
    if (dt_text_index(word, names) < 0)
        return dt_fail(
            DT_EUSAGE,
            "--given: '%.60s' is no degree: expected cfg, tensor, ulysses, ring, kv_gather or pipe",
            word);
    if (end == equals + 1 || *end != '\0' || degree < 1 || degree > DT_MACHINE_DEVICES_MOST)
        return dt_fail(DT_EUSAGE, "--given: %s is '%.60s', expected 1 to %d", word, equals + 1,
                       DT_MACHINE_DEVICES_MOST);
    json_object_set_new(plan, word, json_integer(degree));
    return DT_OK;
}

/* "ulysses=2 4.38s": degrees, then the time of a request. */
static dt_status read_given(const char *given, struct planning *planning)
{
    json_auto_t *plan = json_object();
    char words[256], *next = words, *word;
    double seconds = 0;
    if (strlen(given) >= sizeof words)
        return dt_fail(DT_EUSAGE, "--given has %zu bytes, at most %zu", strlen(given),
                       sizeof words - 1);
    snprintf(words, sizeof words, "%s", given);
    while ((word = strsep(&next, " ")) != NULL)
        if (word[0] != '\0')
            DT_TRY(read_word(word, plan, &seconds));
    if (!(seconds > 0))
        return dt_fail(DT_EUSAGE,
                       "--given '%.200s' has no time of a request: expected '6.71s' of one device, "
                       "or 'ulysses=2 4.38s'",
                       given);
    struct row row;
    fill_row(planning, plan, &row);
    if (row.prediction.devices > all_devices(&planning->machine))
        return dt_fail(DT_EUSAGE,
                       "--given '%.200s' is a plan of %d devices, and the machine has %d", given,
                       row.prediction.devices, all_devices(&planning->machine));
    planning->anchor = row.prediction;
    planning->measured = row.degrees;
    planning->scale = seconds / planning->anchor.request;
    planning->anchored = true;
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

static struct dt_plans_wanted plans_wanted(const struct planning *planning)
{
    return (struct dt_plans_wanted){.devices = all_devices(&planning->machine),
                                    .hosts = planning->machine.hosts,
                                    .slots = planning->machine.devices,
                                    .throughput = strcmp(planning->objective, "latency") != 0,
                                    .card = &planning->card};
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
        DT_TRY(read_given(options->plan.given, planning));
    const struct dt_plans_wanted wanted = plans_wanted(planning);
    DT_TRY(dt_engine_plans(planning->engine, planning->key, wanted, &planning->plans));
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

static void add_row(const struct planning *planning, const struct row *row, struct dt_text *out)
{
    static const char *const fits[] = {"", " narrow", " no"};
    const struct dt_prediction *p = &row->prediction;
    dt_auto_text name = {0};
    dt_export_add_degrees(row->plan, &name);
    if (row->replicas > 1)
        dt_text_add(&name, " x %d", row->replicas);
    dt_text_add(out, "%-40s %9.1f [%.1f, %.1f]  %8.2f %-8s  %6.1f%-7s %8.0f %9.1f  %s\n",
                dt_text_at(&name), p->step * 1e3, p->step / row->factor * 1e3,
                p->step * row->factor * 1e3, p->request, request_basis(planning, row),
                p->memory_bytes / 1073741824.0, fits[row->fit], 3600 / p->request * row->replicas,
                p->request * p->devices, dt_term_texts[dt_predict_limit(p)]);
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

static void add_head(const struct planning *planning, struct dt_text *out)
{
    const struct dt_predict_job *job = &planning->job;
    const struct dt_machine_card *machine = &planning->machine;
    dt_text_add(out, "%s, %lld x %lld px, %lld frame%s, %d steps, on ", planning->card.name,
                (long long)job->size.width, (long long)job->size.height,
                (long long)job->size.frames, job->size.frames == 1 ? "" : "s", job->steps);
    if (machine->hosts > 1)
        dt_text_add(out, "%d hosts of ", machine->hosts);
    dt_text_add(out, "%d x %s\n%zu plans of %s, predicted: nothing was measured here.%s\n",
                machine->devices, machine->device, planning->count, planning->engine,
                planning->anchored ? "" : " --given a measured time narrows the intervals.");
    add_rates(planning, out);
    if (is_foreign_to(&planning->card, planning->engine))
        dt_text_add(
            out, "The model's card does not list %s: whether it runs the model is not known.\n\n",
            planning->engine);
    dt_text_add(out, "%-40s %s\n", "plan",
                "  step, ms  80 % interval   request, s            GiB fits     an hour  device-s  "
                "limited by");
}

/* Those within CLOSE of the best, it included. */
static size_t close_to_best(const struct planning *planning)
{
    size_t n = 0;
    while (n < planning->count && planning->rows[n].fit != DT_FITS_NOT &&
           planning->rows[n].value <= CLOSE * planning->rows[0].value)
        n++;
    return n;
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
static void add_machine(const struct planning *planning, size_t some, struct dt_text *out)
{
    const struct dt_machine_card *machine = &planning->machine;
    int hosts = 1;
    for (size_t i = 0; i < some; i++)
        hosts = planning->rows[i].prediction.hosts > 1 ? machine->hosts : hosts;
    if (hosts == 1)
        dt_text_add(out, " --devices %d", machine->devices);
    for (int i = 0; i < hosts && hosts > 1; i++)
        dt_text_add(out, "%sHOST%d:%d", i > 0 ? "," : " --hosts ", i + 1, machine->devices);
}

static bool is_enough(const struct planning *planning, const struct row *documented)
{
    return documented != NULL && documented->fit != DT_FITS_NOT &&
           documented->value <= CLOSE * planning->rows[0].value;
}

/* The best, or that it cannot be told from others; and the documented plan beside it. */
static void add_answer(const struct planning *planning, const struct row *documented,
                       struct dt_text *out)
{
    const struct row *best = &planning->rows[0];
    size_t close = close_to_best(planning);
    if (is_enough(planning, documented)) {
        double share = documented->value / best->value;
        dt_text_add(out, "The documented plan is enough: ");
        dt_export_add_degrees(documented->plan, out);
        if (share < 1)
            dt_text_add(out, " is predicted %.2f times as fast as the first above%s.\n", 1 / share,
                        is_compiled(documented->plan) ? ", which is not compiled" : "");
        else
            dt_text_add(out, " is within %.1f %% of the best.\n", 100 * (share - 1));
    } else if (close > 1) {
        dt_text_add(out, "Cannot tell: measure these, which are within 5 %%: ");
        for (size_t i = 0; i < close && i < CLOSE_MOST; i++) {
            dt_text_add(out, "%s", i > 0 ? "; " : "");
            dt_export_add_degrees(planning->rows[i].plan, out);
        }
        size_t some = close < CLOSE_MOST ? close : CLOSE_MOST;
        double seconds = (double)some * (START_S + REQUESTS * best->prediction.request);
        dt_text_add(out,
                    ".\n  on such a machine, about %s for these, which a session tries first: "
                    "dittune --engine %s",
                    dt_figure_span_of(seconds).text, planning->engine);
        add_job(json_object_get(planning->key, "job"), out);
        add_machine(planning, some, out);
        dt_text_add(out, " --objective %s\n", planning->objective);
    } else {
        dt_text_add(out, "Predicted best: ");
        dt_export_add_degrees(best->plan, out);
        if (planning->count > 1 && planning->rows[1].fit != DT_FITS_NOT)
            dt_text_add(out, ", by %.0f %% over the next",
                        100 * (planning->rows[1].value / best->value - 1));
        dt_text_add(out, ".\n");
    }
    if (documented != NULL && documented->fit == DT_FITS_NOT) {
        double lacks = documented->prediction.memory_bytes - planning->device_bytes;
        dt_text_add(out, "The documented plan, ");
        dt_export_add_degrees(documented->plan, out);
        dt_text_add(out, ", does not fit: it lacks %s.\n", dt_figure_bytes_of((int64_t)lacks).text);
    } else if (documented != NULL && documented->value > best->value &&
               !dt_degrees_equal(&documented->degrees, &best->degrees)) {
        dt_text_add(out, "The first above is predicted %.2f times as fast as the documented plan, ",
                    documented->value / best->value);
        dt_export_add_degrees(documented->plan, out);
        dt_text_add(out, ".\n");
    }
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
    json_array_foreach(export.notes, i, note)
    {
        if (planning->machine.hosts > 1)
            dt_text_add(out, "  (%s)\n", json_string_value(note));
    }
    return DT_OK;
}

/* The best plan of the same plans under another job or machine; NULL: none fits. */
static dt_status flip(struct planning changed, const char *what, struct dt_text *out)
{
    const struct dt_degrees before = changed.rows[0].degrees;
    changed.rows = NULL;
    changed.job.card = &changed.card;
    changed.job.machine = &changed.machine;
    DT_TRY(predict_all(&changed));
    const struct row *best = &changed.rows[0];
    if (best->fit != DT_FITS_NOT && !dt_degrees_equal(&best->degrees, &before)) {
        dt_text_add(out, "%s%s: ", out->size > 0 ? "; " : "", what);
        dt_export_add_degrees(best->plan, out);
    }
    free(changed.rows);
    return DT_OK;
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

/* What would make it fit: the text encoder elsewhere, the weights split between the devices, or both. */
static const char *remedy(const struct planning *planning, const struct row *row)
{
    struct dt_prediction p;
    struct dt_degrees degrees = row->degrees;
    double encoder = 2.0 * (double)planning->card.parameters.text_encoder;
    encoder = encoder > 0 ? encoder : 0;
    if (row->prediction.memory_bytes - encoder <= planning->device_bytes)
        return "the text encoder elsewhere";
    degrees.shards = true;
    dt_predict(&planning->job, &degrees, &p);
    if (row->prediction.devices > 1 && p.memory_bytes <= planning->device_bytes)
        return "sharded weights";
    if (row->prediction.devices > 1 && p.memory_bytes - encoder <= planning->device_bytes)
        return "sharded weights and the text encoder elsewhere";
    return "offload of weights to the host";
}

static void add_lacking(const struct planning *planning, struct dt_text *out)
{
    size_t first = planning->count;
    while (first > 0 && planning->rows[first - 1].fit == DT_FITS_NOT)
        first--;
    if (first < planning->count)
        dt_text_add(out, "\nDo not fit into %s:\n",
                    dt_figure_bytes_of((int64_t)planning->device_bytes).text);
    for (size_t i = first; i < planning->count && i < first + SHOWN; i++) {
        const struct row *row = &planning->rows[i];
        dt_auto_text name = {0};
        dt_export_add_degrees(row->plan, &name);
        double lacks = row->prediction.memory_bytes - planning->device_bytes;
        dt_text_add(out, "%-40s lacks %s; would need %s\n", dt_text_at(&name),
                    dt_figure_bytes_of((int64_t)lacks).text, remedy(planning, row));
    }
    if (planning->count > first + SHOWN)
        dt_text_add(out, "and %zu more (--json has all)\n", planning->count - first - SHOWN);
}

static dt_status add_table(const struct planning *planning, const struct row *documented,
                           struct dt_text *out)
{
    add_head(planning, out);
    size_t fitting = 0;
    while (fitting < planning->count && planning->rows[fitting].fit != DT_FITS_NOT)
        fitting++;
    for (size_t i = 0; i < fitting && i < SHOWN; i++)
        add_row(planning, &planning->rows[i], out);
    if (fitting > SHOWN)
        dt_text_add(out, "and %zu more (--json has all)\n", fitting - SHOWN);
    add_lacking(planning, out);
    dt_text_add(out, "\n");
    add_answer(planning, documented, out);
    DT_TRY(add_command(planning, is_enough(planning, documented) ? documented : &planning->rows[0],
                       out));
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
    return json_pack("{s:O, s:i, s:i, s:s?, s:i, s:o, s:f, s:[f, f], s:f, s:[f, f], s:f, s:I, s:s, "
                     "s:s, s:o, s:f, s:f, s:o}",
                     "plan", row->plan, "devices", p->devices, "hosts", p->hosts, "link",
                     p->link < DT_LINKS ? dt_link_texts[p->link] : NULL, "replicas", row->replicas,
                     "basis", basis_json(planning, row), "step_seconds", p->step, "step_interval",
                     p->step / row->factor, p->step * row->factor, "request_seconds", p->request,
                     "request_interval", p->request / row->factor, p->request * row->factor,
                     "vae_seconds", p->vae, "memory_bytes", (json_int_t)p->memory_bytes, "fits",
                     fits[row->fit], "limit", dt_term_texts[dt_predict_limit(p)], "terms",
                     terms_json(p), "requests_an_hour", 3600 / p->request * row->replicas,
                     "device_seconds", p->request * p->devices, "of_documented", of);
}

static json_t *answer_json(const struct planning *planning, const struct row *documented)
{
    json_t *plans = json_array(), *asked = json_object_get(planning->key, "job");
    json_t *of = documented != NULL ? json_incref((json_t *)documented->plan) : NULL;
    for (size_t i = 0; i < planning->count; i++)
        json_array_append_new(plans, row_json(planning, &planning->rows[i], documented));
    return json_pack("{s:O, s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:f, s:o*, s:o}", "job", asked,
                     "engine", planning->engine, "machine", planning->machine.name, "device",
                     planning->machine.device, "hosts", planning->machine.hosts, "devices",
                     all_devices(&planning->machine), "denoising_steps", planning->job.steps,
                     "objective", planning->objective, "scale", planning->scale, "documented", of,
                     "plans", plans);
}

static dt_status no_plan_fits(const struct planning *planning)
{
    const struct row *least = &planning->rows[0];
    dt_auto_text name = {0};
    dt_export_add_degrees(least->plan, &name);
    return dt_fail(
        DT_EINFEASIBLE,
        "no plan of %s fits into %s: the least, %s, needs %s of a device; it would need %s",
        planning->card.name, dt_figure_bytes_of((int64_t)planning->device_bytes).text,
        dt_text_at(&name), dt_figure_bytes_of((int64_t)least->prediction.memory_bytes).text,
        remedy(planning, least));
}

static dt_status show(const struct dt_options *options, struct planning *planning)
{
    json_auto_t *known = NULL;
    struct row row = {.plan = NULL}, *documented = NULL;
    struct dt_text text = {0};
    const struct dt_plans_wanted wanted = plans_wanted(planning);
    if (planning->count == 0)
        return dt_fail(DT_EINFEASIBLE, "%s takes no plan of %s at this size", planning->engine,
                       planning->card.name);
    if (planning->rows[0].fit == DT_FITS_NOT)
        return no_plan_fits(planning);
    DT_TRY(dt_engine_documented(planning->engine, planning->key, wanted, &known));
    if (known != NULL) {
        fill_row(planning, json_object_get(known, "plan"), &row);
        documented = &row;
    }
    dt_status status = options->print.json ? DT_OK : add_table(planning, documented, &text);
    return dt_print_either(options, status, answer_json(planning, documented), &text);
}

dt_status dt_command_plan(const struct dt_options *options)
{
    DT_CLEANUP(planning_fini) struct planning planning = {.key = NULL};
    if (options->plan.against != NULL)
        return dt_score_table(options, options->plan.against);
    DT_TRY(read_planning(options, &planning));
    return show(options, &planning);
}
