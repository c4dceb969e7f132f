/* SPDX-License-Identifier: MIT */
/* Every plan that an engine takes of a published model, predicted for a machine that is not at
 * hand, best first; or predictions held against a table of measured times. Nothing is measured. */
#include "base/array.h"
#include "base/figures.h"
#include "db/engines/engines.h"
#include "model/predict.h"
#include "tuner/cli/export.h"
#include "tuner/cli/options.h"
#include "tuner/cli/planned/ranking.h"
#include "tuner/cli/planned/score.h"
#include "tuner/cli/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 12, CLOSE_MOST = 3, START_S = 180 };
#define TRIALS_SHARE 0.6 /* share of a session's budget, before plans are compared */
/* ---- what a number is */

static const char *rate_basis(struct dt_rate rate)
{
    return rate.measured > 0 ? "measured" : "datasheet";
}

/* The basis of a request's time: one that was given was measured, and scales the others. Its steps
 * were not timed by themselves. */
static const char *request_basis(const struct dt_ranking *ranking, const struct dt_ranked *row)
{
    const struct dt_anchor *anchor = &ranking->anchor;
    if (!anchor->given)
        return "fitted";
    bool same = anchor->is_request && dt_degrees_equal(&row->degrees, &anchor->degrees) &&
                dt_ranked_compiles(row->plan) == anchor->compiles;
    return same ? "measured" : "scaled";
}

static const char *step_basis(const struct dt_ranking *ranking)
{
    return ranking->anchor.given ? "scaled" : "fitted";
}

/* ---- the table */

/* "ulysses=4", without the words that all plans have. */
static void add_plan(const struct dt_ranking *ranking, const json_t *plan, struct dt_text *out)
{
    json_auto_t *rest = dt_json_copy(plan);
    const char *name;
    json_t *word;
    json_object_foreach(ranking->words, name, word)
    {
        if (json_equal(json_object_get(rest, name), word))
            json_object_del(rest, name);
    }
    dt_export_add_degrees(rest, out);
    json_object_foreach(ranking->words, name, word)
    {
        if (!dt_json_has(plan, name))
            dt_text_add(out, " without %s=%s", name, json_string_value(word));
    }
}

/* "ulysses=4 x 2": with its replicas. */
static void add_name(const struct dt_ranking *ranking, const struct dt_ranked *row,
                     struct dt_text *out)
{
    add_plan(ranking, row->plan, out);
    if (row->replicas > 1)
        dt_text_add(out, " x %d", row->replicas);
}

/* The widest name of the rows from `first` that are shown. */
static int widest_name(const struct dt_ranking *ranking, size_t first)
{
    size_t widest = sizeof "plan";
    for (size_t i = first; i < ranking->count && i < first + SHOWN; i++) {
        dt_auto_text name = {0};
        add_name(ranking, &ranking->rows[i], &name);
        widest = name.size > widest ? name.size : widest;
    }
    return (int)widest;
}

static void add_row(const struct dt_ranking *ranking, const struct dt_ranked *row, int width,
                    struct dt_text *out)
{
    static const char *const fits[] = {"", " narrow", " no"};
    const struct dt_prediction *p = &row->prediction;
    dt_auto_text name = {0}, interval = {0};
    add_name(ranking, row, &name);
    int digits = p->step < 10 ? 1 : 0;
    double an_hour = 3600 / p->request * row->replicas;
    dt_text_add(&interval, "[%.*f, %.*f]", digits, p->step / row->factor * 1e3, digits,
                p->step * row->factor * 1e3);
    dt_text_add(out, "%-*s %9.*f %-18s %10.2f %-8s  %6.1f%-7s %8.*f %9.1f  %s%s\n", width,
                dt_text_at(&name), digits, p->step * 1e3, dt_text_at(&interval), p->request,
                request_basis(ranking, row), p->memory_bytes / 1073741824.0, fits[row->fit],
                an_hour < 100 ? 2 : 0, an_hour, p->request * p->devices, dt_predict_limit(p),
                dt_ranking_is_documented(ranking, row) ? ", documented" : "");
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

/* Adds the rates that the times come from, each with its basis. */
static void add_rates(const struct dt_ranking *ranking, struct dt_text *out)
{
    const struct dt_machine_card *machine = &ranking->machine;
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
    for (size_t i = 0; i < ranking->count; i++)
        used[ranking->rows[i].prediction.link] = true;
    for (int i = 0; i < DT_LINKS; i++)
        if (used[i])
            dt_text_add(out, ", %s %g GB/s (%s)", dt_link_texts[i],
                        dt_rate_value(machine->links[i].rate) / 1e9,
                        rate_basis(machine->links[i].rate));
    dt_text_add(out, "; %s (%s).\n", dt_figure_bytes_of((int64_t)ranking->device_bytes).text,
                ranking->device_bytes < dt_rate_value(machine->memory)
                    ? "--max-bytes"
                    : rate_basis(machine->memory));
    dt_text_add(out,
                "Steps are %s, requests as they say; memory and intervals are fitted "
                "(docs/cost.md).\n\n",
                step_basis(ranking));
}

/* Adds the words that all plans share with the documented one. */
static void add_words(const struct dt_ranking *ranking, struct dt_text *out)
{
    const char *compile = dt_json_text_at(ranking->words, "compile");
    if (json_object_size(ranking->words) == 0)
        return;
    dt_text_add(out, "All plans have ");
    dt_export_add_degrees(ranking->words, out);
    dt_text_add(out, ", as the documented one.\n");
    if (ranking->anchor.given && !ranking->anchor.compiles && dt_engine_compiles(compile))
        dt_text_add(out,
                    "The given time is taken for one without compile=%s: name it in --given if it "
                    "was with it.\n",
                    compile);
    dt_text_add(out, "\n");
}

static void add_head(const struct dt_ranking *ranking, int width, struct dt_text *out)
{
    const struct dt_predict_job *job = &ranking->job;
    const struct dt_machine_card *machine = &ranking->machine;
    dt_text_add(out, "%s, %lld x %lld px, %lld frame%s, %d step%s, on ", ranking->card.name,
                (long long)job->size.width, (long long)job->size.height,
                (long long)job->size.frames, job->size.frames == 1 ? "" : "s", job->steps,
                job->steps == 1 ? "" : "s");
    if (machine->hosts > 1)
        dt_text_add(out, "%d hosts of ", machine->hosts);
    dt_text_add(out, "%d x %s\n%zu plan%s of %s, predicted: nothing was measured here.%s%s\n",
                machine->devices, machine->device, ranking->count, ranking->count == 1 ? "" : "s",
                ranking->engine,
                ranking->anchor.entry[0] != '\0'
                    ? " The time that scales them is of the store's entry "
                : ranking->anchor.given ? ""
                                        : " --given a measured time narrows the intervals.",
                ranking->anchor.entry);
    if (ranking->anchor.given)
        dt_text_add(out, "All times are multiplied by %.3g, so that the given one is met.\n",
                    ranking->anchor.scale);
    add_rates(ranking, out);
    if (ranking->set)
        dt_text_add(out,
                    "No plan fits into %s without a setting that lowers its memory: each has the "
                    "one of %s that makes it fit and costs least.\n\n",
                    dt_figure_bytes_of((int64_t)ranking->device_bytes).text, ranking->engine);
    add_words(ranking, out);
    if (ranking->left_out > 0)
        dt_text_add(out, "Left out are %zu plan%s that %s cannot run: %s.\n\n", ranking->left_out,
                    ranking->left_out == 1 ? "" : "s", ranking->machine.device,
                    dt_text_at(&ranking->left_why));
    add_unknown(&ranking->card, out);
    if (is_foreign_to(&ranking->card, ranking->engine))
        dt_text_add(
            out, "The model's card does not list %s: whether it runs the model is not known.\n\n",
            ranking->engine);
    dt_text_add(out, "%-*s %9s %-18s %10s %-8s  %6s%-7s %8s %9s  %s\n", width, "plan", "step, ms",
                "80 % interval", "request, s", "", "GiB", " fits", "an hour", "device-s",
                "limited by");
}

/* The factor of the 80 % interval of the ratio of two plans' times: errors of
 * both predictions cancel. */
static double ratio_factor(const struct dt_ranked *a, const struct dt_ranked *b)
{
    return dt_predict_factor(dt_predict_ratio_spread(&a->prediction, &b->prediction,
                                                     dt_ranked_unsure(a) != dt_ranked_unsure(b)));
}

struct answer {
    const struct dt_ranked *documented; /* NULL: none */
    bool enough;                        /* it is within CLOSE of the best */
    double gain;                        /* how many times as fast as it another may be */
    /* the best, and those that may be faster, best first */
    const struct dt_ranked *close[CLOSE_MOST];
    size_t count; /* number of all of these */
};

static void take_close(const struct dt_ranked *row, struct answer *answer)
{
    if (answer->count < CLOSE_MOST)
        answer->close[answer->count] = row;
    answer->count++;
}

/* The documented plan is one of those to measure where it may be the fastest. */
static struct answer answer_of(const struct dt_ranking *ranking, const struct dt_ranked *documented)
{
    const struct dt_ranked *best = &ranking->rows[0];
    struct answer answer = {.documented = documented, .enough = dt_ranking_is_enough(ranking)};
    for (size_t i = 0; i < ranking->count && ranking->rows[i].fit != DT_FITS_NOT; i++) {
        const struct dt_ranked *row = &ranking->rows[i];
        bool own = dt_ranking_is_documented(ranking, row);
        if (i == 0 || row->value <= ratio_factor(row, best) * best->value) {
            take_close(row, &answer);
            if (own && answer.count > CLOSE_MOST)
                answer.close[CLOSE_MOST - 1] = row;
        }
        if (answer.enough && !own)
            answer.gain =
                fmax(answer.gain, documented->value / row->value * ratio_factor(row, documented));
    }
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

/* " --devices 8", or " --hosts HOST1:8,HOST2:8" where some of the first plans
 * are on several hosts. */
static void add_machine(const struct dt_ranking *ranking, const struct answer *answer, size_t some,
                        struct dt_text *out)
{
    const struct dt_machine_card *machine = &ranking->machine;
    int hosts = 1;
    for (size_t i = 0; i < some; i++)
        hosts = answer->close[i]->prediction.hosts > 1 ? machine->hosts : hosts;
    if (hosts == 1)
        dt_text_add(out, " --devices %d", machine->devices);
    for (int i = 0; i < hosts && hosts > 1; i++)
        dt_text_add(out, "%sHOST%d:%d", i > 0 ? "," : " --hosts ", i + 1, machine->devices);
}

/* "1.25 times as fast as", by what the objective counts. */
static const char *times_as(const struct dt_ranking *ranking)
{
    return strcmp(ranking->objective, "latency") == 0      ? "times as fast as"
           : strcmp(ranking->objective, "throughput") == 0 ? "times the throughput of"
                                                           : "times as cheap as";
}

static const char *the_best(const struct dt_ranking *ranking)
{
    return strcmp(ranking->objective, "latency") == 0      ? "is the fastest"
           : strcmp(ranking->objective, "throughput") == 0 ? "has the most throughput"
                                                           : "is the cheapest";
}

static void add_enough(const struct dt_ranking *ranking, const struct answer *answer,
                       struct dt_text *out)
{
    double share = answer->documented->value / ranking->rows[0].value;
    dt_text_add(out, "The documented plan is enough: ");
    add_plan(ranking, answer->documented->plan, out);
    if (share < 1.0005) /* among ties the rule of thumb may put another first */
        dt_text_add(out, " %s of all that are predicted", the_best(ranking));
    else
        dt_text_add(out, " is within %.1f %% of the best", 100 * (share - 1));
    if (answer->gain > 1)
        dt_text_add(out, ". That another is %.2f %s it is not likely", answer->gain,
                    times_as(ranking));
    dt_text_add(out, ".\n");
    if (answer->documented->degrees.pipe > 1)
        dt_text_add(out, "  (pipe is PipeFusion, which changes the output; its prediction is held "
                         "against no measured time)\n");
}

/* Requests of a plan: thirty, of long ones as many as ten minutes have room for, at least eight. */
static double requests_to_tell(double seconds)
{
    return fmax(8, fmin(30, 600 / seconds));
}

static dt_status add_measuring(const struct dt_ranking *ranking, const struct answer *answer,
                               struct dt_text *out)
{
    size_t some = answer->count < CLOSE_MOST ? answer->count : CLOSE_MOST;
    dt_text_add(out, "Cannot tell which of %zu plans %s: measure %s", answer->count,
                the_best(ranking), some < answer->count ? "first " : "");
    for (size_t i = 0; i < some; i++) {
        dt_text_add(out, "%s", i > 0 ? "; " : "");
        add_plan(ranking, answer->close[i]->plan, out);
    }
    double seconds = 0;
    for (size_t i = 0; i < some; i++) {
        double request = answer->close[i]->prediction.request;
        seconds += START_S + request * requests_to_tell(request);
    }
    dt_text_add(out, ".\n  on such a machine, about %s for these", dt_figure_span_of(seconds).text);
    if (!ranking->ways.worker) {
        dt_text_add(out,
                    ": there is no worker of %s; time a request of one by hand, and give it "
                    "with --given\n",
                    ranking->engine);
        return DT_OK;
    }
    dt_text_add(out, ", which a session tries first: dittune --engine %.*s --budget %.0fm",
                (int)strcspn(ranking->engine, ":"), ranking->engine,
                ceil(seconds / TRIALS_SHARE / 60));
    add_job(json_object_get(ranking->key, "job"), out);
    add_machine(ranking, answer, some, out);
    if (ranking->device_bytes < dt_rate_value(ranking->machine.memory))
        dt_text_add(out, " --max-bytes %.0fB", ranking->device_bytes);
    dt_text_add(out, " --objective %s", ranking->objective);
    dt_auto_text worker = {0};
    for (size_t i = 0; i < some; i++)
        DT_TRY(dt_engine_options(ranking->engine, answer->close[i]->plan, &worker));
    dt_text_add(out, "%s%s\n", worker.size > 0 ? " --" : "", dt_text_at(&worker));
    return DT_OK;
}

static void add_best(const struct dt_ranking *ranking, struct dt_text *out)
{
    const struct dt_ranked *best = &ranking->rows[0], *next = &ranking->rows[1];
    dt_text_add(out, "Predicted best: ");
    add_plan(ranking, best->plan, out);
    if (ranking->count > 1 && next->fit != DT_FITS_NOT) {
        double ratio = next->value / best->value, factor = ratio_factor(next, best);
        dt_text_add(out, ", %.2f %s the next (80 %% interval %.2f to %.2f)", ratio,
                    times_as(ranking), ratio / factor, ratio * factor);
    }
    dt_text_add(out, ".\n");
}

/* Beside the answer: how the documented plan compares. */
static void add_documented(const struct dt_ranking *ranking, const struct dt_ranked *documented,
                           struct dt_text *out)
{
    const struct dt_ranked *best = &ranking->rows[0];
    if (documented->fit == DT_FITS_NOT) {
        double lacks = documented->prediction.memory_bytes - ranking->device_bytes;
        dt_text_add(out, "The documented plan, ");
        add_plan(ranking, documented->plan, out);
        dt_text_add(out, ", does not fit as it is: it lacks %s.\n",
                    dt_figure_bytes_of((int64_t)lacks).text);
    } else if (documented->value > DT_RANKING_CLOSE * best->value &&
               !dt_degrees_equal(&documented->degrees, &best->degrees)) {
        dt_text_add(out, "The first above is predicted %.2f %s the documented plan, ",
                    documented->value / best->value, times_as(ranking));
        add_plan(ranking, documented->plan, out);
        dt_text_add(out, ".\n");
    }
}

static dt_status add_answer(const struct dt_ranking *ranking, const struct answer *answer,
                            struct dt_text *out)
{
    if (answer->enough)
        add_enough(ranking, answer, out);
    else if (answer->count > 1)
        DT_TRY(add_measuring(ranking, answer, out));
    else
        add_best(ranking, out);
    if (answer->documented != NULL)
        add_documented(ranking, answer->documented, out);
    return DT_OK;
}

/* The engine's lines and keywords for the plan, with its replicas. */
static dt_status add_command(const struct dt_ranking *ranking, const struct dt_ranked *row,
                             struct dt_text *out)
{
    DT_CLEANUP(dt_export_fini) struct dt_export export = {.json = NULL};
    json_auto_t *plan = dt_json_copy(row->plan);
    const json_t *note;
    size_t i;
    if (row->replicas > 1)
        json_object_set_new(plan, "replicas", json_integer(row->replicas));
    const struct dt_export_request request = {.engine = ranking->engine,
                                              .form = DT_FORM_ARGV,
                                              .plan = plan,
                                              .key = ranking->key,
                                              .card = &ranking->card,
                                              .checkpoint = ranking->card.name,
                                              .hosts = ranking->machine.hosts,
                                              .slots = ranking->machine.devices};
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
                    ranking->engine);
        add_job(json_object_get(ranking->key, "job"), out);
        dt_text_add(out, " --devices %d --plan '", row->prediction.devices);
        dt_export_add_degrees(row->plan, out);
        dt_text_add(out, "')\n");
    }
    json_array_foreach(export.notes, i, note) dt_text_add(out, "  (%s)\n", json_string_value(note));
    return DT_OK;
}

/* Adds the plan that takes the answer's place under another job, machine or
 * objective, if there is one. */
static dt_status add_flip(struct dt_ranking changed, const struct answer *answer, const char *what,
                          struct dt_text *out)
{
    const struct dt_degrees before = changed.rows[0].degrees;
    struct dt_ranked documented = {.fit = DT_FITS_NOT};
    dt_status status = dt_ranking_again(&changed);
    const struct dt_ranked *best = &changed.rows[0];
    if (status == DT_OK && answer->enough)
        dt_ranking_fill(&changed, answer->documented->plan, &documented);
    bool stays = answer->enough ? documented.fit != DT_FITS_NOT &&
                                      documented.value <= DT_RANKING_CLOSE * best->value
                                : dt_degrees_equal(&best->degrees, &before);
    if (status == DT_OK && best->fit != DT_FITS_NOT && !stays) {
        dt_text_add(out, "%s%s: ", out->size > 0 ? "; " : "", what);
        add_plan(&changed, best->plan, out);
    }
    dt_ranking_drop(&changed);
    return status;
}

static dt_status add_flips(const struct dt_ranking *ranking, const struct answer *answer,
                           struct dt_text *out)
{
    dt_auto_text flips = {0};
    struct dt_ranking changed = *ranking;
    for (int i = 0; i < DT_LINKS; i++) {
        changed.machine.links[i].rate.sheet /= 4;
        changed.machine.links[i].rate.measured /= 4;
    }
    DT_TRY(add_flip(changed, answer, "links at a quarter of their rate", &flips));
    changed = *ranking;
    changed.job.guided = false;
    if (ranking->job.guided)
        DT_TRY(add_flip(changed, answer, "guidance off", &flips));
    changed = *ranking;
    changed.objective = strcmp(ranking->objective, "latency") == 0 ? "throughput" : "latency";
    DT_TRY(add_flip(changed, answer,
                    strcmp(changed.objective, "latency") == 0 ? "one request at a time"
                                                              : "requests waiting (throughput)",
                    &flips));
    if (flips.size == 0)
        dt_text_add(&flips, "none of links at a quarter of their rate, %sload",
                    ranking->job.guided ? "guidance off, " : "");
    dt_text_add(out, "What would change the answer: %s.\n", dt_text_at(&flips));
    out->failed = out->failed || flips.failed;
    return DT_OK;
}

/* The engine's words that a plan with a setting has more than one without: options, else keywords,
 * else the plan's own. */
static dt_status add_setting(const struct dt_ranking *ranking, const struct dt_ranked *row,
                             struct dt_text *out)
{
    DT_CLEANUP(dt_export_fini) struct dt_export with = {.json = NULL}, without = {.json = NULL};
    const char *engine = ranking->engine, *name;
    const json_t *plain = json_array_get(ranking->plans, row->index), *word;
    json_t *value;
    size_t i, at = 0, before = out->size;
    DT_TRY(dt_export_card_plan(engine, &ranking->card, ranking->key, row->plan, &with));
    DT_TRY(dt_export_card_plan(engine, &ranking->card, ranking->key, plain, &without));
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

static dt_status add_lacking(const struct dt_ranking *ranking, struct dt_text *out)
{
    size_t first = ranking->count;
    while (first > 0 && ranking->rows[first - 1].fit == DT_FITS_NOT)
        first--;
    int width = widest_name(ranking, first);
    if (first < ranking->count)
        dt_text_add(out, "\nDo not fit into %s:\n",
                    dt_figure_bytes_of((int64_t)ranking->device_bytes).text);
    for (size_t i = first; i < ranking->count && i < first + SHOWN; i++) {
        const struct dt_ranked *row = &ranking->rows[i];
        dt_auto_text name = {0};
        add_plan(ranking, row->plan, &name);
        double lacks = row->prediction.memory_bytes - ranking->device_bytes;
        dt_text_add(out, "%-*s lacks %s; ", width, dt_text_at(&name),
                    dt_figure_bytes_of((int64_t)lacks).text);
        if (row->mended != NULL) {
            DT_TRY(add_setting(ranking, row->mended, out));
            dt_text_add(out, " makes it fit: %s a request\n",
                        dt_figure_of(row->mended->prediction.request).text);
        } else {
            dt_text_add(out, "no known setting of %s makes it fit\n", ranking->engine);
        }
    }
    if (ranking->count > first + SHOWN)
        dt_text_add(out, "and %zu more (--json has all)\n", ranking->count - first - SHOWN);
    return DT_OK;
}

static dt_status add_table(const struct dt_ranking *ranking, const struct answer *answer,
                           struct dt_text *out)
{
    int width = widest_name(ranking, 0);
    add_head(ranking, width, out);
    size_t fitting = 0;
    while (fitting < ranking->count && ranking->rows[fitting].fit != DT_FITS_NOT)
        fitting++;
    for (size_t i = 0; i < fitting && i < SHOWN; i++)
        add_row(ranking, &ranking->rows[i], width, out);
    if (fitting > SHOWN)
        dt_text_add(out, "and %zu more (--json has all)\n", fitting - SHOWN);
    for (size_t i = SHOWN; i < fitting; i++)
        if (dt_ranking_is_documented(ranking, &ranking->rows[i]))
            add_row(ranking, &ranking->rows[i], width, out);
    if (fitting > 1 && ranking->rows[0].value > ranking->rows[1].value)
        dt_text_add(out,
                    "Of plans within 2 %% of the best the one of fewest devices, then the rule "
                    "of thumb's, stands first.\n");
    DT_TRY(add_lacking(ranking, out));
    dt_text_add(out, "\n");
    DT_TRY(add_answer(ranking, answer, out));
    DT_TRY(add_command(ranking, answer->enough ? answer->documented : &ranking->rows[0], out));
    return add_flips(ranking, answer, out);
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
static json_t *setting_json(const struct dt_ranked *mended)
{
    return mended == NULL ? json_null()
                          : json_pack("{s:O, s:f, s:I}", "plan", mended->plan, "request_seconds",
                                      mended->prediction.request, "memory_bytes",
                                      (json_int_t)mended->prediction.memory_bytes);
}

/* How many times the best one's value it has, and the 80 % interval of that. */
static json_t *ratio_json(const struct dt_ranked *row, const struct dt_ranked *best)
{
    double ratio = row->value / best->value, factor = row == best ? 1 : ratio_factor(row, best);
    return json_pack("[f, f, f]", ratio, ratio / factor, ratio * factor);
}

/* The kinds of its numbers, and the rates that they come from. */
static json_t *basis_json(const struct dt_ranking *ranking, const struct dt_ranked *row)
{
    const struct dt_machine_card *machine = &ranking->machine;
    enum dt_link link = row->prediction.link;
    const char *over = link < DT_LINKS ? rate_basis(machine->links[link].rate) : NULL;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?}", "step", step_basis(ranking), "request",
                     request_basis(ranking, row), "memory", "fitted", "bfloat16", "datasheet",
                     "copy", rate_basis(machine->copy), "link", over);
}

static json_t *row_json(const struct dt_ranking *ranking, const struct dt_ranked *row,
                        const struct dt_ranked *documented)
{
    static const char *const fits[] = {"yes", "narrowly", "no"};
    const struct dt_prediction *p = &row->prediction;
    bool compared = documented != NULL && documented->fit != DT_FITS_NOT;
    json_t *of = compared ? json_real(documented->value / row->value) : json_null();
    return json_pack("{s:O, s:i, s:i, s:s?, s:i, s:o, s:f, s:[f, f], s:f, s:[f, f], s:f, s:f, s:I, "
                     "s:s, s:o, s:s, s:o, s:f, s:f, s:o, s:o}",
                     "plan", row->plan, "devices", p->devices, "hosts", p->hosts, "link",
                     p->link < DT_LINKS ? dt_link_texts[p->link] : NULL, "replicas", row->replicas,
                     "basis", basis_json(ranking, row), "step_seconds", p->step, "step_interval",
                     p->step / row->factor, p->step * row->factor, "request_seconds", p->request,
                     "request_interval", p->request / row->factor, p->request * row->factor,
                     "vae_seconds", p->vae, "text_seconds", p->text, "memory_bytes",
                     (json_int_t)p->memory_bytes, "fits", fits[row->fit], "setting",
                     setting_json(row->mended), "limit", dt_predict_limit(p), "terms",
                     terms_json(p), "requests_an_hour", 3600 / p->request * row->replicas,
                     "device_seconds", p->request * p->devices, "over_best",
                     ratio_json(row, &ranking->rows[0]), "of_documented", of);
}

static json_t *answer_json(const struct dt_ranking *ranking, const struct answer *answer)
{
    json_t *plans = json_array(), *close = json_array();
    json_t *asked = json_object_get(ranking->key, "job");
    const struct dt_ranked *documented = answer->documented;
    json_t *of = documented != NULL ? json_incref((json_t *)documented->plan) : NULL;
    for (size_t i = 0; i < ranking->count; i++)
        json_array_append_new(plans, row_json(ranking, &ranking->rows[i], documented));
    for (size_t i = 0; i < answer->count && i < CLOSE_MOST; i++)
        json_array_append(close, (json_t *)answer->close[i]->plan);
    return json_pack("{s:O, s:s, s:s, s:s, s:i, s:i, s:I, s:i, s:s, s:f, s:s*, s:b, s:s, s:o, "
                     "s:o*, s:i, s:s*, s:o}",
                     "job", asked, "engine", ranking->engine, "machine", ranking->machine.name,
                     "device", ranking->machine.device, "hosts", ranking->machine.hosts, "devices",
                     dt_ranking_devices(&ranking->machine), "device_bytes",
                     (json_int_t)ranking->device_bytes, "denoising_steps", ranking->job.steps,
                     "objective", ranking->objective, "scale", ranking->anchor.scale, "entry",
                     ranking->anchor.entry[0] != '\0' ? ranking->anchor.entry : NULL,
                     "needs_setting", ranking->set, "answer",
                     answer->enough      ? "documented"
                     : answer->count > 1 ? "cannot tell"
                                         : "best",
                     "fastest", close, "documented", of, "left_out", (int)ranking->left_out,
                     "left_out_why", ranking->left_out > 0 ? dt_text_at(&ranking->left_why) : NULL,
                     "plans", plans);
}

/* The sentence is that of the plan on one device. */
static dt_status no_plan(const struct dt_ranking *ranking)
{
    DT_CLEANUP(dt_export_fini) struct dt_export one = {.json = NULL};
    json_auto_t *plan = json_object();
    if (ranking->left_out > 0)
        return dt_fail(DT_EINFEASIBLE, "%s runs no plan of %s on %s: %s", ranking->engine,
                       ranking->card.name, ranking->machine.device, dt_text_at(&ranking->left_why));
    DT_TRY(dt_export_card_plan(ranking->engine, &ranking->card, ranking->key, plan, &one));
    return dt_fail(DT_EINFEASIBLE, "%s takes no plan of %s at this size", ranking->engine,
                   ranking->card.name);
}

static dt_status no_plan_fits(const struct dt_ranking *ranking)
{
    const struct dt_ranked *least = &ranking->least;
    dt_auto_text name = {0};
    add_plan(ranking, least->plan, &name);
    return dt_fail(DT_EINFEASIBLE,
                   "no plan of %s fits into %s, with no known setting of %s: the least, %s, needs "
                   "%s of a device",
                   ranking->card.name, dt_figure_bytes_of((int64_t)ranking->device_bytes).text,
                   ranking->engine, dt_text_at(&name),
                   dt_figure_bytes_of((int64_t)least->prediction.memory_bytes).text);
}

static dt_status show_ranking(const struct dt_options *options, struct dt_ranking *ranking)
{
    struct dt_text text = {0};
    if (ranking->count == 0)
        return no_plan(ranking);
    if (ranking->rows[0].fit == DT_FITS_NOT)
        return no_plan_fits(ranking);
    const struct answer answer =
        answer_of(ranking, ranking->known != NULL ? &ranking->documented : NULL);
    dt_status status = options->print.json ? DT_OK : add_table(ranking, &answer, &text);
    return dt_print_either(options, status, answer_json(ranking, &answer), &text);
}

dt_status dt_command_plan(const struct dt_options *options)
{
    DT_CLEANUP(dt_ranking_fini) struct dt_ranking ranking = {.key = NULL};
    if (options->plan.against != NULL)
        return dt_score_table(options, options->plan.against);
    DT_TRY(dt_ranking_read(options, &ranking));
    if ((double)options->job.max_bytes > dt_rate_value(ranking.machine.memory))
        dt_print_note("--max-bytes %s changes nothing: a device has %s",
                      dt_figure_bytes_of(options->job.max_bytes).text,
                      dt_figure_bytes_of((int64_t)ranking.device_bytes).text);
    return show_ranking(options, &ranking);
}
