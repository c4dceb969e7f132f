/* SPDX-License-Identifier: MIT */
/* The cards of published models; of one model, how many plans each known engine takes, or the plans
 * of one engine. A card of a model's own configurations. */
#include "base/figures.h"
#include "db/engines/engines.h"
#include "model/cards/from.h"
#include "tuner/cli/export.h"
#include "tuner/cli/options.h"
#include "tuner/cli/print.h"
#include "tuner/measure/measure.h"

#include <stdio.h>
#include <string.h>

/* The question that the options ask. */
struct question {
    struct dt_card card;
    struct dt_frames size;
    struct dt_plans_wanted wanted;
    int64_t max_bytes; /* limit of a device's memory; 0: none */
    json_t *key;       /* the key for the engines' rules */
};

static json_t *count_or_null(int64_t count)
{
    return count >= 0 ? json_integer(count) : json_null();
}

static json_t *card_json(const struct dt_card *card, struct dt_frames size)
{
    const struct dt_card_parameters *parts = &card->parameters;
    return json_pack(
        "{s:s, s:s, s:s*, s:i, s:i, s:i, s:i, s:i, s:s, s:b, s:s, s:I, s:I, s:I, s:I, s:i, s:o, "
        "s:{s:o, s:o, s:o}}",
        "model", card->name, "doc", card->doc, "pipeline",
        card->pipeline[0] != '\0' ? card->pipeline : NULL, "transformers", card->transformers,
        "heads", card->heads, "head_size", card->head_size, "depth", card->depth, "text_tokens",
        card->text_tokens, "text", card->prompt ? "prompt" : "padded", "joint", (int)card->joint,
        "guidance", dt_guidance_text(card->guidance), "width", (json_int_t)size.width, "height",
        (json_int_t)size.height, "frames", (json_int_t)size.frames, "tokens",
        (json_int_t)dt_card_tokens(card, size), "references", card->references, "weight_bytes",
        count_or_null(dt_card_weight_bytes(card, 1)), "parameters", "transformer",
        count_or_null(parts->transformer), "vae", count_or_null(parts->vae), "text_encoder",
        count_or_null(parts->text_encoder));
}

static dt_status read_question(const struct dt_options *options, const char *name,
                               struct question *question)
{
    const struct dt_objective *objective;
    DT_TRY(dt_card_load(name, &question->card));
    DT_TRY(dt_objective_find(options->job.objective, &objective));
    question->wanted = dt_export_wanted(options, &question->card);
    question->wanted.device_bytes = options->job.max_bytes;
    question->wanted.throughput = !objective->one_batch;
    question->max_bytes = options->job.max_bytes;
    if (question->max_bytes > 0 && dt_card_weight_bytes(&question->card, 1) < 0)
        return dt_fail(DT_EUSAGE,
                       "the card of %s does not know the parameters of every part, so --max-bytes "
                       "cannot be checked; leave it out",
                       question->card.name);
    return dt_export_card_key(options, &question->card, question->wanted.devices, &question->size,
                              &question->key);
}

static void add_parameters(int64_t count, struct dt_text *out)
{
    if (count < 0)
        dt_text_add(out, "not known");
    else
        dt_text_add(out, "%.2f G", (double)count * 1e-9);
}

/* "padded to 512 tokens"; "17,37 tokens of the prompt" */
static void add_texts(const struct question *question, struct dt_text *out)
{
    const struct dt_card *card = &question->card;
    const char *asked = dt_json_text_at(json_object_get(question->key, "job"), "text_tokens");
    if (asked[0] != '\0')
        dt_text_add(out, "%s%s tokens%s", card->prompt ? "" : "padded to ", asked,
                    card->prompt ? " of the prompt" : "");
    else if (card->prompt)
        dt_text_add(out, "the tokens of the prompt, up to %d; plans take any number of them",
                    card->text_tokens);
    else
        dt_text_add(out, "padded to %d tokens", card->text_tokens);
}

static void add_facts(const struct question *question, struct dt_text *out)
{
    const struct dt_card *card = &question->card;
    const struct dt_frames *size = &question->size;
    dt_text_add(out, "%s: %s\n%d blocks, %d heads of %d; guidance: %s\ntext: ", card->name,
                card->doc, card->depth, card->heads, card->head_size,
                card->guidance != DT_GUIDANCE_CFG ? dt_guidance_text(card->guidance)
                : card->passes == 2               ? "two halves"
                : card->passes == 3               ? "three passes"
                                                  : "four passes");
    add_texts(question, out);
    dt_text_add(out, ", %s\n", card->joint ? "one sequence with the image" : "by cross attention");
    dt_text_add(out, "%lld x %lld px, %lld frame%s: %lld tokens", (long long)size->width,
                (long long)size->height, (long long)size->frames, size->frames == 1 ? "" : "s",
                (long long)dt_card_tokens(card, *size));
    if (card->references > 0)
        dt_text_add(out, " with those of %d reference image%s", card->references,
                    card->references == 1 ? "" : "s");
    dt_text_add(out, "\nparameters: %s ",
                card->transformers == 1 ? "transformer" : "two transformers");
    add_parameters(card->parameters.transformer, out);
    dt_text_add(out, ", VAE ");
    add_parameters(card->parameters.vae, out);
    dt_text_add(out, ", text encoder ");
    add_parameters(card->parameters.text_encoder, out);
    if (dt_card_weight_bytes(card, 1) >= 0)
        dt_text_add(out, "; in bfloat16 %s",
                    dt_figure_bytes_of(dt_card_weight_bytes(card, 1)).text);
    dt_text_add(out, "\n");
}

static int64_t plan_degree(const json_t *plan, const char *name)
{
    const json_t *value = json_object_get(plan, name);
    return value != NULL ? json_integer_value(value) : 1;
}

/* The engine's plans whose weights a device holds. Tensor parallelism and PipeFusion split the
 * transformer's weights. */
static dt_status list_plans(const struct question *question, const char *engine, json_t **plans)
{
    DT_TRY(dt_engine_plans(engine, question->key, question->wanted, plans));
    for (size_t i = json_array_size(*plans); question->max_bytes > 0 && i-- > 0;) {
        const json_t *plan = json_array_get(*plans, i);
        int64_t parts = plan_degree(plan, "tensor") * plan_degree(plan, "pipe");
        if (dt_card_weight_bytes(&question->card, parts) > question->max_bytes)
            json_array_remove(*plans, i);
    }
    return DT_OK;
}

/* The engine's version, and what the card says of it. */
static dt_status add_engine(const struct question *question, const json_t *engine, json_t *rows,
                            struct dt_text *out)
{
    const char *family = json_string_value(json_object_get(engine, "engine"));
    const char *version = json_string_value(json_object_get(engine, "version"));
    const struct dt_card_engine *takes = dt_card_engine(&question->card, family, version);
    dt_auto_text name = {0};
    json_auto_t *plans = NULL, *degrees = json_array();
    if (takes == NULL)
        return DT_OK;
    dt_text_add(&name, "%s:%s", family, version);
    DT_TRY(list_plans(question, dt_text_at(&name), &plans));
    dt_text_add(out, "%-24s %6zu  ", dt_text_at(&name), json_array_size(plans));
    for (int i = 0; i < takes->count; i++) {
        dt_text_add(out, "%s%s", i > 0 ? ", " : "", takes->degrees[i]);
        json_array_append_new(degrees, json_string(takes->degrees[i]));
    }
    dt_text_add(out, "%s\n", takes->count == 0 ? "none: one device" : "");
    json_array_append_new(rows, json_pack("{s:s, s:I, s:O}", "engine", dt_text_at(&name), "plans",
                                          (json_int_t)json_array_size(plans), "degrees", degrees));
    return DT_OK;
}

static dt_status each_engine(const struct question *question, json_t *answer, struct dt_text *out)
{
    json_auto_t *engines = NULL, *rows = json_array();
    json_t *engine;
    size_t i;
    DT_TRY(dt_engines(&engines));
    dt_text_add(out, "\nengine                    plans  degrees (on up to %lld devices)\n",
                (long long)question->wanted.devices);
    json_array_foreach(engines, i, engine) DT_TRY(add_engine(question, engine, rows, out));
    if (question->max_bytes > 0) {
        dt_text_add(out, "\nplans whose weights fit into ");
        dt_figure_bytes(question->max_bytes, out);
        dt_text_add(out, " a device, with VAE and text encoder whole on each (");
        dt_figure_bytes(dt_card_weight_bytes(&question->card, INT32_MAX), out);
        dt_text_add(out, ");\n`dittune plan` counts the memory of a step, too, and names settings "
                         "that make a plan fit\n");
    }
    json_object_set(answer, "engines", rows);
    return DT_OK;
}

/* The lines that run a plan, and the keywords where they are the plan. */
static dt_status add_lines(const struct dt_export *export, struct dt_text *out)
{
    const char *at = dt_text_at(&export->text);
    for (size_t size; *at != '\0'; at += size) {
        size = strcspn(at, "\n") + 1;
        dt_text_add(out, "  ");
        dt_text_add_bytes(out, at, size);
    }
    const json_t *keywords = dt_export_keywords(export);
    if (keywords != NULL) {
        dt_text_add(out, "  keywords ");
        DT_TRY(dt_json_text(keywords, out));
        dt_text_add(out, "\n");
    }
    return DT_OK;
}

static dt_status add_plan(const struct question *question, const char *engine, const json_t *plan,
                          struct dt_text *out)
{
    DT_CLEANUP(dt_export_fini) struct dt_export export = {.json = NULL};
    DT_TRY(dt_export_card_plan(engine, &question->card, question->key, plan, &export));
    dt_export_add_degrees(plan, out);
    dt_text_add(out, "\n");
    return add_lines(&export, out);
}

/* A known plan, with its lines, or why a rule refuses it, and what it changes. */
static dt_status add_known(const struct question *question, const char *engine, json_t *known,
                           struct dt_text *out)
{
    DT_CLEANUP(dt_export_fini) struct dt_export export = {.json = NULL};
    const json_t *plan = json_object_get(known, "plan"), *remark;
    struct dt_error refused = {DT_OK, ""};
    size_t i;
    dt_export_add_degrees(plan, out);
    dt_text_add(out, "\n");
    dt_status status = dt_error_keep(
        &refused, dt_export_card_plan(engine, &question->card, question->key, plan, &export));
    if (status == DT_EINFEASIBLE) {
        dt_text_add(out, "  %s\n", refused.sentence);
        json_object_set_new(known, "refused", json_string(refused.sentence));
        return DT_OK;
    }
    DT_TRY(status);
    DT_TRY(add_lines(&export, out));
    json_array_foreach(export.remarks, i, remark)
        dt_text_add(out, "  %s\n", json_string_value(remark));
    json_object_set(known, "lines", json_object_get(export.json, "lines"));
    json_object_set(known, "kwargs", json_object_get(export.json, "kwargs"));
    json_object_set(known, "remarks", export.remarks);
    return DT_OK;
}

/* Adds the engine's own choice, and the plan that its documentation tells a user to set. */
static dt_status known_plans(const struct question *question, const char *engine,
                             const json_t *chosen, json_t *answer, struct dt_text *out)
{
    json_auto_t *documented = NULL;
    json_t *own =
        json_pack("{s:o}", "plan", chosen != NULL ? json_incref((json_t *)chosen) : json_object());
    json_object_set_new(answer, "default", own);
    dt_text_add(out, "\ndefault: ");
    DT_TRY(add_known(question, engine, own, out));
    DT_TRY(dt_engine_documented(engine, question->key, question->wanted, &documented));
    json_object_set(answer, "documented", documented != NULL ? documented : json_null());
    dt_text_add(out, "documented: ");
    if (documented == NULL) {
        dt_text_add(out, "no plan for this\n");
        return DT_OK;
    }
    DT_TRY(add_known(question, engine, documented, out));
    dt_text_add(out, "  %s\n  source: %s (read %s)\n", dt_json_text_at(documented, "says"),
                dt_json_text_at(documented, "source"), dt_json_text_at(documented, "date"));
    return DT_OK;
}

/* All degrees of a are those of b; a missing one is 1. */
static bool has_degrees(const json_t *a, const json_t *b)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)a, name, value)
    {
        json_int_t degree = json_integer_value(value);
        if (degree > 1 && dt_json_integer_at(b, name) != degree)
            return false;
    }
    return true;
}

/* Adds the engine's choice, before its plans. */
static void add_choice(const json_t *chosen, const json_t *plans, struct dt_text *out)
{
    const json_t *plan;
    bool listed = chosen == NULL;
    size_t i;
    dt_text_add(out, "left to itself it %s", chosen != NULL ? "chooses " : "runs on one device");
    if (chosen != NULL)
        dt_export_add_degrees(chosen, out);
    json_array_foreach(plans, i, plan)
    {
        listed = listed || (has_degrees(chosen, plan) && has_degrees(plan, chosen));
    }
    if (!listed)
        dt_text_add(out, ", which breaks a rule of its plans here and may change the output");
    dt_text_add(out, "\n");
}

/* "attention: native (its own), _native_flash; lossy: sage" */
static void add_setting(const char *name, const json_t *setting, struct dt_text *out)
{
    const json_t *lossy = json_object_get(setting, "lossy");
    const char *word;
    json_t *value;
    size_t i;
    for (int pass = 0; pass < 2; pass++) {
        const char *before = pass == 0 ? "" : "; lossy: ";
        if (pass == 0)
            dt_text_add(out, "%s: ", name);
        json_array_foreach(json_object_get(setting, "values"), i, value)
        {
            word = json_string_value(value);
            if ((json_object_get(lossy, word) != NULL) != (pass == 1))
                continue;
            dt_text_add(out, "%s%s%s", before, word, i == 0 ? " (its own)" : "");
            before = ", ";
        }
    }
    dt_text_add(out, "\n");
    json_object_foreach(json_object_get(setting, "does"), word, value)
        dt_text_add(out, "  %s: %s\n", word, json_string_value(value));
}

/* The words that the engine's settings take, besides the degrees. */
static dt_status add_settings(const char *engine, json_t *answer, struct dt_text *out)
{
    const char *name;
    json_t *settings = NULL, *setting;
    DT_TRY(dt_engine_choices(engine, &settings));
    json_object_foreach(settings, name, setting) add_setting(name, setting, out);
    json_object_set_new(answer, "settings", settings);
    return DT_OK;
}

static dt_status one_engine(const struct question *question, const char *engine, json_t *answer,
                            struct dt_text *out)
{
    json_t *plan = NULL, *plans = NULL, *chosen = NULL;
    size_t i;
    DT_TRY(dt_engine_default(engine, question->key, &question->card, &chosen));
    json_object_set_new(answer, "chosen", chosen != NULL ? chosen : json_null());
    DT_TRY(list_plans(question, engine, &plans));
    json_object_set_new(answer, "plans", plans);
    dt_text_add(out, "\n%zu plan%s on up to %lld device%s by %s; ", json_array_size(plans),
                json_array_size(plans) == 1 ? "" : "s", (long long)question->wanted.devices,
                question->wanted.devices == 1 ? "" : "s", engine);
    add_choice(chosen, plans, out);
    DT_TRY(known_plans(question, engine, chosen, answer, out));
    dt_text_add(out, "\n");
    DT_TRY(add_settings(engine, answer, out));
    json_array_foreach(plans, i, plan) DT_TRY(add_plan(question, engine, plan, out));
    return DT_OK;
}

static dt_status show_model(const struct dt_options *options, const char *name)
{
    struct question question = {.key = NULL};
    struct dt_text text = {0};
    const char *engine = options->lookup.engine;
    DT_TRY(read_question(options, name, &question));
    json_t *answer = card_json(&question.card, question.size);
    json_object_set_new(answer, "devices", json_integer(question.wanted.devices));
    add_facts(&question, &text);
    dt_status status = engine != NULL ? one_engine(&question, engine, answer, &text)
                                      : each_engine(&question, answer, &text);
    json_decref(question.key);
    return dt_print_either(options, status, answer, &text);
}

static dt_status list_models(const struct dt_options *options)
{
    static const char *const of_one[] = {"engine",    "size",        "devices",
                                         "frames",    "text-tokens", "lossy",
                                         "max-bytes", "objective",   NULL};
    for (int i = 0; of_one[i] != NULL; i++)
        if (dt_option_given(options, of_one[i]))
            return dt_fail(DT_EUSAGE, "--%s has no effect without the NAME of a model", of_one[i]);
    json_auto_t *rows = json_array();
    dt_auto_text text = {0};
    for (const char *const *name = dt_cards(); *name != NULL; name++) {
        struct dt_card card;
        DT_TRY(dt_card_load(*name, &card));
        json_array_append_new(rows, card_json(&card, card.usual));
        dt_text_add(&text, "%2d blocks, %2d heads, %6lld tokens  %s\n", card.depth, card.heads,
                    (long long)dt_card_tokens(&card, card.usual), card.name);
    }
    return dt_print_either(options, DT_OK, json_pack("{s:O}", "models", rows), &text);
}

static dt_status read_asked(const struct dt_options *options, struct dt_card_asked *asked)
{
    const struct dt_task_value *task = options->task.at;
    const struct dt_lengths *lengths = &task[DT_TASK_text_tokens].lengths;
    if (options->words.rest_count > 0)
        return dt_fail(DT_EUSAGE,
                       "--from names the model whose card is written: '%s' is no part "
                       "of that",
                       options->words.rest[0]);
    if (lengths->count > 1)
        return dt_fail(DT_EUSAGE, "a card has one length of texts, not %d", lengths->count);
    asked->text_tokens = lengths->count > 0 ? lengths->at[0] : 0;
    if (options->job.sizes.count > 0) {
        asked->size.width = options->job.sizes.widths[0];
        asked->size.height = options->job.sizes.heights[0];
    }
    if (task[DT_TASK_frames].given)
        asked->size.frames = task[DT_TASK_frames].count;
    return DT_OK;
}

/* The card on standard output, and on standard error what it is open about. */
static dt_status write_card(const struct dt_options *options)
{
    struct dt_card_asked asked = {.text_tokens = 0};
    dt_auto_text card = {0}, remarks = {0};
    json_t *root = NULL;
    int missing = 0;
    DT_TRY(read_asked(options, &asked));
    DT_TRY(dt_card_from(options->lookup.from, &asked, &card, &remarks, &missing));
    for (char *at = remarks.bytes, *end; at != NULL && *at != '\0'; at = end + 1) {
        end = strchr(at, '\n');
        dt_print_note("%.*s", (int)(end - at), at);
    }
    if (options->print.json) {
        DT_TRY(dt_json_parse(dt_text_at(&card), card.size, "the card", &root));
        DT_TRY(dt_print_json(root));
    } else
        DT_TRY(dt_print_exact(&card));
    return missing == 0
               ? DT_OK
               : dt_fail(DT_EUSAGE, "%d field%s of this card %s null: fill %s in before its use",
                         missing, missing == 1 ? "" : "s", missing == 1 ? "is" : "are",
                         missing == 1 ? "it" : "them");
}

dt_status dt_command_models(const struct dt_options *options)
{
    if (options->lookup.from != NULL)
        return write_card(options);
    return options->words.rest_count > 0 ? show_model(options, options->words.rest[0])
                                         : list_models(options);
}
