/* SPDX-License-Identifier: MIT */
#include "tuner/cli/export.h"

#include "base/quote.h"
#include "db/engines/engines.h"
#include "model/cards/card.h"
#include "model/network.h"
#include "tuner/cli/options_job.h"
#include "tuner/cli/print.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_DEVICES = 8 };

struct dt_plans_wanted dt_export_wanted(const struct dt_options *options,
                                        const struct dt_card *card)
{
    return (struct dt_plans_wanted){.devices = options->job.devices > 0 ? options->job.devices
                                                                        : USUAL_DEVICES,
                                    .lossy = options->lossy,
                                    .card = card};
}

bool dt_export_asked(const struct dt_options *options)
{
    return options->lookup.engine != NULL ||
           (options->print.format != NULL && (strcmp(options->print.format, "argv") == 0 ||
                                              strcmp(options->print.format, "env") == 0));
}

dt_status dt_export_check(const struct dt_options *options)
{
    enum dt_form form = DT_FORM_TABLE;
    if (options->print.format != NULL)
        DT_TRY(dt_form_parse(options->print.format, &form));
    bool words = form == DT_FORM_FLAGS || form == DT_FORM_YAML;
    if (words && options->lookup.engine == NULL)
        return dt_fail(DT_EUSAGE,
                       "--format %s is in an engine's own words: --engine must name one that has a "
                       "file (dittune lookup --engines)",
                       options->print.format);
    return DT_OK;
}

/* Without an engine: the plan itself, as "name=value" words, or as variables, "tile q" as
 * DITTUNE_PLAN_TILE_Q. */
static dt_status print_plain(enum dt_form form, const json_t *plan)
{
    dt_auto_text out = {0}, word = {0};
    const char *name;
    json_t *value;
    int words = 0;
    json_object_foreach((json_t *)plan, name, value)
    {
        dt_text_clear(&word);
        if (form == DT_FORM_ARGV) {
            dt_text_add(&word, "%s=", name);
            dt_text_add(&out, "%s", words++ > 0 ? " " : "");
        } else {
            dt_text_add(&out, "DITTUNE_PLAN_");
            for (const unsigned char *at = (const unsigned char *)name; *at != '\0'; at++)
                dt_text_add(&out, "%c", *at < 0x80 && isalnum(*at) ? toupper(*at) : '_');
            dt_text_add(&out, "=");
        }
        dt_json_plain(value, &word);
        dt_quote(dt_text_at(&word), &out);
        dt_text_add(&out, "%s", form == DT_FORM_ENV ? "\n" : "");
    }
    dt_text_add(&out, "%s", form == DT_FORM_ARGV ? "\n" : "");
    dt_status status = dt_text_status(&word);
    if (status == DT_OK)
        return dt_print_exact(&out);
    return status;
}

/* "--ulysses-degree" is the keyword ulysses_degree. */
static bool is_option(const char *word, const char *keyword)
{
    if (strncmp(word, "--", 2) != 0 || strlen(word + 2) != strlen(keyword))
        return false;
    for (word += 2; *word != '\0'; word++, keyword++)
        if (*word != *keyword && (*word != '-' || *keyword != '_'))
            return false;
    return true;
}

/* For an engine that also accepts its keywords as options, the command contains the plan. */
static bool any_option(const json_t *keywords, const json_t *argv)
{
    const char *name;
    json_t *value, *word;
    size_t i;
    json_object_foreach((json_t *)keywords, name, value)
    {
        json_array_foreach(argv, i, word)
        {
            if (is_option(json_string_value(word), name))
                return true;
        }
    }
    return false;
}

const json_t *dt_export_keywords(const struct dt_export *export)
{
    const json_t *keywords = json_object_get(export->json, "kwargs");
    bool held = any_option(keywords, json_object_get(export->json, "argv"));
    return json_object_size(keywords) > 0 && !held ? keywords : NULL;
}

/* Warns that a command of an engine configured by keywords, or by lines of Python, does
 * not contain the plan. */
static void tell_keywords(const struct dt_export *export)
{
    const json_t *keywords = dt_export_keywords(export);
    dt_auto_text text = {0};
    if (json_object_get(export->json, "python") != NULL)
        dt_print_note(
            "warning: not in the command: the lines of Python that your program must have "
            "(--format table, json and env have them)");
    dt_text_add(&text, "warning: not in the command: the keywords ");
    if (keywords != NULL && dt_json_text(keywords, &text) == DT_OK) {
        dt_text_add(&text, ", which your program must set (--format json has them, too)");
        dt_print_note("%s", dt_text_at(&text));
    }
}

/* Warns of variables that the plan needs beside the command. */
static void tell_variables(const struct dt_export *export)
{
    const char *name;
    json_t *value;
    dt_auto_text text = {0};
    json_object_foreach(json_object_get(export->json, "environment"), name, value)
    {
        dt_text_add(&text, " %s=", name);
        dt_json_plain(value, &text);
    }
    if (text.size > 0)
        dt_print_note("warning: not in the command: the variables%s, which must be set",
                      dt_text_at(&text));
}

/* Prints to standard error, which a shell does not capture. */
static void tell_form(const struct dt_export *export, enum dt_form form)
{
    json_t *row = NULL;
    size_t i;
    dt_auto_text text = {0};
    if (form == DT_FORM_ARGV || form == DT_FORM_FLAGS) {
        tell_keywords(export);
        tell_variables(export);
    }
    json_array_foreach(export->unexpressed, i, row)
    {
        dt_text_add(&text, "%s%s=", i > 0 ? ", " : "not expressible for the engine: ",
                    json_string_value(json_object_get(row, "name")));
        dt_json_plain(json_object_get(row, "value"), &text);
    }
    if (text.size > 0)
        dt_print_note("%s", dt_text_at(&text));
    json_array_foreach(export->notes, i, row) dt_print_note("%s", json_string_value(row));
}

dt_status dt_export_print(const struct dt_options *options, struct dt_export_request request,
                          json_t *answer)
{
    DT_CLEANUP(dt_export_fini) struct dt_export export = {.json = NULL};
    struct dt_more more = {.hosts = NULL};
    request.form = options->print.json ? DT_FORM_JSON : DT_FORM_TABLE;
    if (options->print.format != NULL)
        DT_TRY(dt_form_parse(options->print.format, &request.form));
    DT_TRY(dt_export_check(options));
    if (options->lookup.engine == NULL)
        return print_plain(request.form, request.plan);
    DT_TRY(dt_options_hosts(options, &more));
    request.engine = options->lookup.engine;
    request.program = options->lookup.program;
    if (options->lookup.checkpoint != NULL)
        request.checkpoint = options->lookup.checkpoint;
    if (more.hosts != NULL) {
        request.hosts = more.hosts->count;
        request.slots = dt_hosts_least_slots(more.hosts);
    }
    DT_TRY(dt_export(&request, &export));
    if (request.form == DT_FORM_JSON && answer != NULL)
        json_object_set(export.json, "answer", answer);
    dt_status status = request.form == DT_FORM_JSON ? dt_print_json(json_incref(export.json))
                                                    : dt_print_exact(&export.text);
    if (request.form != DT_FORM_JSON && request.form != DT_FORM_TABLE)
        tell_form(&export, request.form);
    return status;
}

/* "ranks=2 overlap=on": integers become numbers, anything else text. */
static dt_status read_own(const char *text, json_t **plan)
{
    json_auto_t *read = json_object();
    char *copy = strdup(text), *rest = copy;
    dt_status status = read != NULL && copy != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
    for (char *word; status == DT_OK && (word = strtok_r(rest, " \t\n", &rest)) != NULL;) {
        char *equals = strchr(word, '=');
        if (equals == NULL || equals == word || equals[1] == '\0') {
            status = dt_fail(DT_EUSAGE, "--plan: '%s' is not of the form name=value", word);
            break;
        }
        *equals = '\0';
        char *end;
        errno = 0;
        long long number = strtoll(equals + 1, &end, 10);
        json_t *value = *end == '\0' && errno == 0 ? json_integer(number) : json_string(equals + 1);
        if (json_object_get(read, word) != NULL)
            status = dt_fail(DT_EUSAGE, "--plan names '%s' twice", word);
        if (json_object_set_new(read, word, value) != 0 && status == DT_OK)
            status = dt_fail(DT_EUSAGE, "--plan: '%s' is not UTF-8", word);
    }
    free(copy);
    if (status == DT_OK)
        *plan = json_incref(read);
    return status;
}

dt_status dt_export_constants(const struct dt_options *options, json_t **constants)
{
    struct dt_network network;
    DT_TRY(dt_network_load(options->job.model, &network));
    int pixels =
        options->job.sizes.count > 0 ? options->job.sizes.widths[0] : 8 * network.latent_size;
    if (pixels % (8 * network.patch) != 0 || pixels > 16384)
        return dt_fail(DT_EUSAGE, "--size %d is not a multiple of %d up to 16384", pixels,
                       8 * network.patch);
    int latent = pixels / 8, side = latent / network.patch;
    *constants =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "heads", network.heads,
                  "depth", network.depth, "hidden", network.hidden, "tokens", side * side,
                  "latent_height", latent, "latent_width", latent, "height", pixels, "width",
                  pixels, "guidance", 1, "bfloat16", strcmp(options->job.dtype, "bfloat16") == 0);
    return *constants != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

dt_status dt_export_card_key(const struct dt_options *options, const struct dt_card *card,
                             int64_t devices, struct dt_frames *size, json_t **key)
{
    struct dt_task task = options->task;
    struct dt_lengths lengths;
    *size = card->usual;
    if (options->job.sizes.count > 0) {
        size->width = options->job.sizes.widths[0];
        size->height = options->job.sizes.heights[0];
    }
    if (task.at[DT_TASK_frames].given)
        size->frames = task.at[DT_TASK_frames].count;
    DT_TRY(dt_card_check_size(card, *size));
    DT_TRY(dt_card_lengths(card, &task.at[DT_TASK_text_tokens].lengths, &lengths));
    dt_task_set_text(&task, DT_TASK_model, card->name);
    dt_task_set_count(&task, DT_TASK_width, size->width);
    dt_task_set_count(&task, DT_TASK_height, size->height);
    dt_task_set_count(&task, DT_TASK_frames, size->frames);
    json_t *job = NULL;
    DT_TRY(dt_task_json(&task, &job));
    *key = json_pack("{s:o}", "job", job);
    if (devices > 0)
        json_object_set_new(*key, "devices", json_integer(devices));
    return *key != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

void dt_export_add_degrees(const json_t *plan, struct dt_text *out)
{
    const char *name;
    json_t *value;
    int words = 0;
    json_object_foreach((json_t *)plan, name, value)
    {
        if (json_integer_value(value) > 1)
            dt_text_add(out, "%s%s=%lld", words++ > 0 ? " " : "", name,
                        (long long)json_integer_value(value));
        else if (json_is_string(value))
            dt_text_add(out, "%s%s=%s", words++ > 0 ? " " : "", name, json_string_value(value));
    }
    if (words == 0)
        dt_text_add(out, "one device");
}

dt_status dt_export_card_plan(const char *engine, const struct dt_card *card, const json_t *key,
                              const json_t *plan, struct dt_export *export)
{
    const struct dt_export_request request = {.engine = engine,
                                              .form = DT_FORM_ARGV,
                                              .plan = plan,
                                              .key = key,
                                              .card = card,
                                              .checkpoint = card->name};
    return dt_export(&request, export);
}

void dt_export_own_fini(struct dt_export_own *own)
{
    json_decref(own->plan);
    json_decref(own->key);
    json_decref(own->constants);
    *own = (struct dt_export_own){.plan = NULL};
}

dt_status dt_export_own_read(const struct dt_options *options, const char *plan,
                             struct dt_export_own *own)
{
    struct dt_frames size;
    *own = (struct dt_export_own){.has_card = dt_card_named(options->job.model)};
    DT_TRY(read_own(plan, &own->plan));
    if (!own->has_card)
        return dt_export_constants(options, &own->constants);
    DT_TRY(dt_card_load(options->job.model, &own->card));
    return dt_export_card_key(options, &own->card, options->job.devices, &size, &own->key);
}

dt_status dt_export_own(const struct dt_options *options)
{
    DT_CLEANUP(dt_export_own_fini) struct dt_export_own own = {.plan = NULL};
    if (options->lookup.engine == NULL && options->print.format == NULL)
        return dt_fail(DT_EUSAGE, "--plan with lookup is a plan to export: say --engine or "
                                  "--format argv or env");
    DT_TRY(dt_export_own_read(options, options->job.plan, &own));
    const struct dt_export_request request = {.plan = own.plan,
                                              .key = own.key,
                                              .constants = own.constants,
                                              .card = own.has_card ? &own.card : NULL};
    return dt_export_print(options, request, NULL);
}

static void add_engine(const json_t *engine, struct dt_text *out)
{
    const char *name;
    json_t *row;
    dt_auto_text full = {0};
    int listed = 0;
    dt_text_add(&full, "%s:%s", json_string_value(json_object_get(engine, "engine")),
                json_string_value(json_object_get(engine, "version")));
    dt_text_add(out, "%-26s %s\n%-26s cannot express ", dt_text_at(&full),
                json_string_value(json_object_get(engine, "doc")), "");
    json_object_foreach(json_object_get(engine, "cannot"), name, row)
        dt_text_add(out, "%s%s", listed++ > 0 ? ", " : "", name);
    dt_text_add(out, "\n");
    out->failed = out->failed || full.failed;
}

dt_status dt_export_engines(const struct dt_options *options)
{
    json_auto_t *list = NULL;
    json_t *engine;
    struct dt_text text = {0};
    size_t i;
    DT_TRY(dt_engines(&list));
    if (options->print.json)
        return dt_print_json(json_pack("{s:O}", "engines", list));
    json_array_foreach(list, i, engine) add_engine(engine, &text);
    return dt_print_text(&text);
}
