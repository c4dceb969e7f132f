/* SPDX-License-Identifier: MIT */
/* The engines' files, compiled in byte for byte (a file may exceed the 4095 characters that C
 * guarantees for a literal): found by name, and read, with every expression in them compiled, so
 * that mistakes are reported. */
#include "db/engines/engines_int.h"

#include "base/array.h"
#include "model/predict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENGINE(file, ...) {file, (const unsigned char[]){__VA_ARGS__, 0}},
const struct dt_engine_file dt_engine_files[] = {
#include "engines.inc"
};
#undef ENGINE
const int dt_engine_file_count = sizeof dt_engine_files / sizeof dt_engine_files[0];

/* Bytes of the engine's name in "vllm-omni-0.30.0". */
static size_t file_name_size(const char *file)
{
    return (size_t)(strrchr(file, '-') - file);
}

/* The version in the file's name, where it is of the engine "xdit" or "xdit:0.7.0";
 * NULL: it is of another. */
static const char *file_version(const char *file, const char *engine)
{
    size_t size = strcspn(engine, ":");
    bool same = file_name_size(file) == size && strncmp(file, engine, size) == 0;
    return same ? file + size + 1 : NULL;
}

static dt_status engine_unknown(const char *name)
{
    enum { NAMES = 64, ROOM = 48 };
    dt_auto_text list = {0};
    char words[NAMES][ROOM];
    const char *names[NAMES + 1] = {NULL};
    for (int i = 0; i < dt_engine_file_count; i++) {
        const char *file = dt_engine_files[i].file;
        size_t size = file_name_size(file);
        dt_text_add(&list, "%s%.*s:%s", i > 0 ? ", " : "", (int)size, file, file + size + 1);
        if (i < NAMES) {
            snprintf(words[i], ROOM, "%.*s", (int)size, file);
            names[i] = words[i];
        }
    }
    const char *near = strchr(name, ':') == NULL ? dt_json_nearest(name, names) : NULL;
    DT_TRY(dt_text_status(&list));
    return dt_fail(DT_EUSAGE, "unknown engine '%s'%s%s%s; known are %s", name,
                   near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "", dt_text_at(&list));
}

/* The newest version of the engine that is not newer than the one asked for, else the oldest. */
static dt_status version_unknown(const char *name, size_t size)
{
    const char *near = NULL;
    for (int i = 0; i < dt_engine_file_count; i++) {
        const char *version = file_version(dt_engine_files[i].file, name), *asked = name + size + 1;
        if (version == NULL)
            continue;
        bool fits = strverscmp(version, asked) <= 0;
        bool near_fits = near != NULL && strverscmp(near, asked) <= 0;
        if (near == NULL || (fits ? !near_fits || strverscmp(version, near) > 0
                                  : !near_fits && strverscmp(version, near) < 0))
            near = version;
    }
    return dt_fail(DT_EUSAGE,
                   "unknown engine '%s': the nearest version with a file is %.*s:%s, whose words "
                   "and rules may differ from it (docs/exports.md says how to write a file)",
                   name, (int)size, name, near);
}

dt_status dt_engine_find(const char *name, const struct dt_engine_file **file)
{
    const char *colon = strchr(name, ':');
    const struct dt_engine_file *found = NULL;
    for (int i = 0; i < dt_engine_file_count; i++) {
        const char *version = file_version(dt_engine_files[i].file, name);
        if (version != NULL &&
            (colon != NULL
                 ? strcmp(version, colon + 1) == 0
                 : found == NULL || strverscmp(version, file_version(found->file, name)) > 0))
            found = &dt_engine_files[i];
    }
    if (found == NULL)
        return colon != NULL && dt_engine_known(name) ? version_unknown(name, strcspn(name, ":"))
                                                      : engine_unknown(name);
    *file = found;
    return DT_OK;
}

static dt_status list_add(json_t *list, const struct dt_engine_file *file)
{
    DT_CLEANUP(dt_engine_free_at) struct dt_engine *engine = NULL;
    DT_TRY(dt_engine_read((const char *)file->text, file->file, &engine));
    json_t *row = json_pack(
        "{s:O, s:O, s:O, s:O, s:O}", "engine", json_object_get(engine->root, "engine"), "version",
        json_object_get(engine->root, "version"), "doc", json_object_get(engine->root, "doc"),
        "sources", json_object_get(engine->root, "sources"), "cannot",
        json_object_get(engine->root, "cannot"));
    return dt_engine_note(list, row);
}

dt_status dt_engines(json_t **list)
{
    json_auto_t *rows = json_array();
    for (int i = 0; i < dt_engine_file_count; i++)
        DT_TRY(list_add(rows, &dt_engine_files[i]));
    *list = json_incref(rows);
    return DT_OK;
}

/* Reads what a word does to memory: names of model/predict.h. */
static dt_status settings_read(const char *what, const char *name, const json_t *names,
                               unsigned *settings)
{
    const json_t *each;
    size_t i;
    json_array_foreach(names, i, each)
    {
        const char *text = json_string_value(each);
        int at = text != NULL ? dt_text_index(text, dt_setting_texts) : -1;
        if (at < 0)
            return dt_fail(DT_EUSAGE,
                           "%s: 'memory' of the choice '%s' has a word that is none of "
                           "shards, streams, pages, swaps, stages, encoder_shards, "
                           "encoder_streams",
                           what, name);
        *settings |= 1U << at;
    }
    return DT_OK;
}

static dt_status memory_read(const char *what, const char *name, const json_t *row,
                             struct dt_engine_choice *choice)
{
    const char *word;
    json_t *names;
    json_object_foreach(json_object_get(row, "memory"), word, names)
    {
        int at = dt_choice_find(choice, word);
        if (at < 1 || !json_is_array(names))
            return dt_fail(DT_EUSAGE,
                           "%s: '%s' of 'memory' is no value of the choice '%s' but the first, "
                           "with a list of what it does",
                           what, word, name);
        DT_TRY(settings_read(what, name, names, &choice->settings[at]));
    }
    names = NULL;
    if (dt_json_has(row, "alone"))
        DT_TRY(dt_json_array(row, what, "alone", &names));
    return settings_read(what, name, names, &choice->alone);
}

/* Refuses more than struct dt_engine_ways has room for. */
static dt_status ways_check(const struct dt_engine *engine, const char *what)
{
    int words = 0, alone = 0;
    for (int i = 0; i < engine->choice_count; i++) {
        const struct dt_engine_choice *choice = &engine->choices[i];
        const char *name = engine->names[choice->name];
        alone += choice->alone != 0;
        for (int k = 0; k < choice->count; k++) {
            unsigned settings = k > 0 ? choice->settings[k] : choice->alone;
            words += k > 0 && settings != 0;
            if (settings != 0 &&
                (strlen(name) >= DT_ENGINE_WORD || strlen(choice->labels[k]) >= DT_ENGINE_WORD))
                return dt_fail(
                    DT_EUSAGE,
                    "%s: the choice '%s' and its word '%s', which lowers the memory, may "
                    "each have %d bytes",
                    what, name, choice->labels[k], DT_ENGINE_WORD - 1);
        }
    }
    if (words > DT_ENGINE_WAYS)
        return dt_fail(DT_EUSAGE, "%s: %d words lower the memory, at most %d", what, words,
                       DT_ENGINE_WAYS);
    return alone > 1 ? dt_fail(DT_EUSAGE, "%s: %d choices have 'alone', at most one", what, alone)
                     : DT_OK;
}

static dt_status choice_read(const char *what, const char *name, const json_t *row,
                             struct dt_engine_choice *choice)
{
    static const char *const known[] = {"values", "lossy",  "does", "memory",
                                        "alone",  "source", NULL};
    json_t *values = NULL, *value, *why;
    const char *source, *word;
    size_t i;
    DT_TRY(dt_json_only(row, what, known));
    DT_TRY(dt_json_string(row, what, "source", &source));
    DT_TRY(dt_json_array(row, what, "values", &values));
    if (json_array_size(values) < 2 || json_array_size(values) > DT_ENGINE_LABELS)
        return dt_fail(DT_EUSAGE, "%s: the choice '%s' has not 2 to %d values", what, name,
                       DT_ENGINE_LABELS);
    json_array_foreach(values, i, value)
    {
        if (!json_is_string(value))
            return dt_fail(DT_EUSAGE, "%s: a value of the choice '%s' is not a word", what, name);
        choice->labels[choice->count++] = json_string_value(value);
    }
    choice->lossy = json_object_get(row, "lossy");
    choice->does = json_object_get(row, "does");
    for (int k = 0; k < 2; k++)
        json_object_foreach(k == 0 ? choice->does : choice->lossy, word, why)
        {
            if (dt_choice_find(choice, word) < 1 || !json_is_string(why))
                return dt_fail(DT_EUSAGE,
                               "%s: '%s' of '%s' is no value of the choice '%s' but the first, "
                               "with %s",
                               what, word, k == 0 ? "does" : "lossy", name,
                               k == 0 ? "what it does" : "its reason");
        }
    return memory_read(what, name, row, choice);
}

static dt_status choices_read(struct dt_engine *engine, const char *what)
{
    const char *name;
    json_t *row;
    json_object_foreach(json_object_get(engine->root, "choices"), name, row)
    {
        if (engine->choice_count == DT_ENGINE_CHOICES || engine->count > DT_ENGINE_NAMES - 3)
            return dt_fail(DT_EUSAGE, "%s: more than %d choices", what, DT_ENGINE_CHOICES);
        struct dt_engine_choice *choice = &engine->choices[engine->choice_count++];
        DT_TRY(choice_read(what, name, row, choice));
        choice->name = engine->count;
        engine->labels[engine->count] = choice->labels;
        engine->label_counts[engine->count] = choice->count;
        engine->names[engine->count++] = name;
    }
    return ways_check(engine, what);
}

const struct dt_engine_choice *dt_choice_named(const struct dt_engine *engine, const char *name)
{
    for (int i = 0; i < engine->choice_count; i++)
        if (strcmp(engine->names[engine->choices[i].name], name) == 0)
            return &engine->choices[i];
    return NULL;
}

int dt_choice_find(const struct dt_engine_choice *choice, const char *word)
{
    for (int i = 0; i < choice->count; i++)
        if (strcmp(choice->labels[i], word) == 0)
            return i;
    return -1;
}

dt_status dt_engine_compile(const struct dt_engine *engine, const char *text, struct dt_expr **expr)
{
    const struct dt_vocabulary words = {.names = engine->names,
                                        .labels = engine->labels,
                                        .counts = engine->label_counts,
                                        .count = engine->count};
    return dt_expr_new_of(text, &words, expr);
}

/* Facts of the workload, which values.c takes from an entry's key and the model's card; the
 * parameters follow. height and width are pixels of the image; tokens are those of the image or
 * video; joint_text_tokens are those of the text where both are one sequence, else 0; guidance is
 * the passes of a guided step, 2 to 4, or 0; bfloat16 and half (16 bits) are 1 or 0. weights_mib is
 * the transformer's memory in the job's data type, 0 where the card does not tell, device_mib that
 * of a device; compute is the device's capability, 90 for 9.0, -1 where it is none of CUDA's;
 * video_frames are those of the video, job_steps those that the job names;
 * throughput is 1 where images a second of the whole machine count; replica is the number of the
 * line that is made, from 0 on. To add one, add it here and the line in values.c that sets it. */
static const char *const workload_names[] = {
    "heads",         "kv_heads",     "depth",      "hidden",       "tokens",   "joint_text_tokens",
    "latent_height", "latent_width", "height",     "width",        "half",     "guidance",
    "bfloat16",      "throughput",   "device_mib", "weights_mib",  "gpus",     "devices",
    "hosts",         "replica",      "compute",    "video_frames", "job_steps"};
enum { FACTS = sizeof workload_names / sizeof workload_names[0] };

static dt_status read_names(struct dt_engine *engine, const char *what)
{
    json_t *parameters = NULL, *value = NULL;
    const char *name;
    DT_TRY(dt_json_object(engine->root, what, "parameters", &parameters));
    engine->first = FACTS;
    engine->parameters = (int)json_object_size(parameters);
    if (engine->parameters > DT_ENGINE_NAMES - FACTS - 2)
        return dt_fail(DT_EUSAGE, "%s: more than %d parameters", what, DT_ENGINE_NAMES - FACTS - 2);
    for (int i = 0; i < FACTS; i++)
        engine->names[engine->count++] = workload_names[i];
    json_object_foreach(parameters, name, value)
    {
        if (!json_is_string(value))
            return dt_fail(DT_EUSAGE, "%s: the default of '%s' is not an expression in quotes",
                           what, name);
        engine->names[engine->count++] = name;
    }
    DT_TRY(choices_read(engine, what));
    if (!dt_json_has(parameters, "ranks"))
        return dt_fail(DT_EUSAGE, "%s: 'parameters' lacks 'ranks'", what);
    engine->names[engine->count++] = "processes";
    engine->names[engine->count++] = "starts";
    return DT_OK;
}

/* The degrees: the names of the expression that is the ranks' default, cfg * ulysses * ... */
static dt_status find_degrees(struct dt_engine *engine, const char *what)
{
    const json_t *parameters = json_object_get(engine->root, "parameters");
    DT_CLEANUP(dt_expr_free_at) struct dt_expr *expr = NULL;
    DT_TRY(
        dt_engine_compile(engine, json_string_value(json_object_get(parameters, "ranks")), &expr));
    struct dt_names names = dt_expr_names(expr);
    for (int i = engine->first; i < engine->first + engine->parameters; i++) {
        if ((names.bits[i / 64] >> (i % 64) & 1) == 0)
            continue;
        if (engine->degree_count == DT_ENGINE_DEGREES)
            return dt_fail(DT_EUSAGE, "%s: more than %d degrees", what, DT_ENGINE_DEGREES);
        engine->degrees[engine->degree_count++] = i;
    }
    return DT_OK;
}

/* Optional: expressions of degrees that the engine chooses itself, and degrees
 * that change the output. */
static dt_status defaults_check(const struct dt_engine *engine, const char *what)
{
    static const char *const fields[] = {"default", "lossy"};
    const json_t *parameters = json_object_get(engine->root, "parameters");
    const json_t *choices = json_object_get(engine->root, "choices");
    for (int i = 0; i < 2; i++) {
        const json_t *rows = json_object_get(engine->root, fields[i]);
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)rows, name, value)
        {
            DT_CLEANUP(dt_expr_free_at) struct dt_expr *expr = NULL;
            bool known = json_object_get(parameters, name) != NULL ||
                         (i == 0 && json_object_get(choices, name) != NULL);
            if (!known || !json_is_string(value))
                return dt_fail(DT_EUSAGE, "%s: '%s' of '%s' is not a text for a parameter", what,
                               name, fields[i]);
            if (i == 0)
                DT_TRY(dt_engine_compile(engine, json_string_value(value), &expr));
        }
    }
    return DT_OK;
}

/* Values of a plan: a word of the choice, else an expression, which for a choice gives
 * the index of the word. */
static dt_status plan_check(const struct dt_engine *engine, const char *what, const json_t *plan)
{
    const json_t *parameters = json_object_get(engine->root, "parameters");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)plan, name, value)
    {
        DT_CLEANUP(dt_expr_free_at) struct dt_expr *expr = NULL;
        const struct dt_engine_choice *choice = dt_choice_named(engine, name);
        if ((choice == NULL && json_object_get(parameters, name) == NULL) || !json_is_string(value))
            return dt_fail(DT_EUSAGE, "%s: '%s' of 'documented' is not a text for a parameter",
                           what, name);
        if (choice == NULL || dt_choice_find(choice, json_string_value(value)) < 0)
            DT_TRY(dt_engine_compile(engine, json_string_value(value), &expr));
    }
    return DT_OK;
}

/* Optional: what the documentation tells a user to set, each row with its source, the day it was
 * read, and a sentence. */
static dt_status documented_check(const struct dt_engine *engine, const char *what)
{
    static const char *const known[] = {"plan", "when", "classes", "source", "date", "says", NULL};
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(engine->root, "documented"), i, row)
    {
        DT_CLEANUP(dt_expr_free_at) struct dt_expr *expr = NULL;
        json_t *plan = NULL;
        const char *text, *source;
        DT_TRY(dt_json_only(row, what, known));
        DT_TRY(dt_json_object(row, what, "plan", &plan));
        DT_TRY(dt_json_string(row, what, "source", &source));
        DT_TRY(dt_json_string(row, what, "date", &text));
        DT_TRY(dt_json_string(row, what, "says", &text));
        DT_TRY(plan_check(engine, what, plan));
        if (dt_json_has(row, "when"))
            DT_TRY(dt_engine_compile(engine, dt_json_text_at(row, "when"), &expr));
        if (json_object_get(json_object_get(engine->root, "sources"), source) == NULL)
            return dt_fail(DT_EUSAGE, "%s: '%s' of 'documented' is no source", what, source);
    }
    return DT_OK;
}

/* Parameters of the built-in network that engines have no word for: a row of "cannot" for each
 * engine whose file does not name the parameter. All other parameters that a file does not name are
 * neutral at their default. */
static const struct {
    const char *name;
    int neutral; /* the value without effect; -1: none */
    const char *why;
} unnamed[] = {
    {"threads", -1, "threads of a processor; the engine computes on a device"},
    {"tile_q", -1, "the attention kernel chooses its own blocks"},
    {"tile_kv", -1, "the attention kernel chooses its own blocks"},
    {"overlap", 0, "no flag: what overlaps is the engine's own choice"},
    {"chunks", 1, "the all-to-all goes in one piece"},
};

/* Puts the rows of unnamed that the file does not name before what else it lists. */
static dt_status complete_cannot(struct dt_engine *engine)
{
    const char *name;
    json_t *listed = json_object_get(engine->root, "cannot"), *all = json_object(), *row;
    int failed = all == NULL;
    for (size_t i = 0; i < sizeof unnamed / sizeof unnamed[0]; i++) {
        if (json_object_get(json_object_get(engine->root, "parameters"), unnamed[i].name) != NULL)
            continue;
        row = json_incref(json_object_get(listed, unnamed[i].name));
        if (row == NULL)
            row = unnamed[i].neutral < 0 ? json_pack("{s:s}", "why", unnamed[i].why)
                                         : json_pack("{s:i, s:s}", "neutral", unnamed[i].neutral,
                                                     "why", unnamed[i].why);
        failed |= json_object_set_new(all, unnamed[i].name, row);
    }
    json_object_foreach(listed, name, row)
    {
        if (json_object_get(all, name) == NULL)
            failed |= json_object_set(all, name, row);
    }
    failed |= json_object_set_new(engine->root, "cannot", all);
    return failed == 0 ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

static dt_status read_rules(struct dt_engine *engine, const char *what)
{
    json_t *rules = NULL, *row = NULL;
    size_t i;
    DT_TRY(dt_json_array(engine->root, what, "rules", &rules));
    if (json_array_size(rules) > DT_ENGINE_RULES)
        return dt_fail(DT_EUSAGE, "%s: more than %d rules", what, DT_ENGINE_RULES);
    json_array_foreach(rules, i, row)
    {
        static const char *const known[] = {"rule", "sentence", "source", "classes", "for", NULL};
        struct dt_engine_rule *rule = &engine->rules[i];
        const char *text;
        DT_TRY(dt_json_only(row, what, known));
        DT_TRY(dt_json_string(row, what, "rule", &text));
        DT_TRY(dt_json_string(row, what, "sentence", &rule->sentence));
        DT_TRY(dt_engine_compile(engine, text, &rule->expr));
        rule->classes = json_object_get(row, "classes");
        engine->rule_count++;
    }
    return DT_OK;
}

/* Optional. */
static dt_status read_runs(const struct dt_engine *engine, const char *what)
{
    static const char *const known[] = {"eager", "wrapped", "shares_encoder", NULL};
    json_t *runs = NULL, *word;
    size_t i;
    if (!dt_json_has(engine->root, "runs"))
        return DT_OK;
    DT_TRY(dt_json_array(engine->root, what, "runs", &runs));
    json_array_foreach(
        runs, i,
        word) if (!json_is_string(word) ||
                  dt_text_index(json_string_value(word), known) <
                      0) return dt_fail(DT_EUSAGE,
                                        "%s: 'runs' has a word that is none of eager, wrapped, "
                                        "shares_encoder",
                                        what);
    return DT_OK;
}

/* Optional: the transformers of the only models that it runs. */
static dt_status read_models(const struct dt_engine *engine, const char *what)
{
    static const char *const known[] = {"classes", "source", NULL};
    const json_t *models = json_object_get(engine->root, "models");
    json_t *classes = NULL;
    const char *source;
    if (models == NULL)
        return DT_OK;
    DT_TRY(dt_json_only(models, what, known));
    DT_TRY(dt_json_array(models, what, "classes", &classes));
    DT_TRY(dt_json_string(models, what, "source", &source));
    if (json_object_get(json_object_get(engine->root, "sources"), source) == NULL)
        return dt_fail(DT_EUSAGE, "%s: '%s' of 'models' is no source", what, source);
    return DT_OK;
}

static dt_status read_root(struct dt_engine *engine, const char *what)
{
    static const char *const known[] = {
        "engine",     "version",    "doc",         "family",    "sources", "parameters", "default",
        "documented", "lossy",      "cannot",      "processes", "starts",  "rules",      "words",
        "program",    "checkpoint", "environment", "kwargs",    "notes",   "choices",    "worker",
        "python",     "yaml",       "yaml_for",    "runs",      "models",  NULL,
    };
    json_t *unused = NULL;
    const char *text;
    DT_TRY(dt_json_only(engine->root, what, known));
    DT_TRY(dt_json_string(engine->root, what, "engine", &engine->name));
    DT_TRY(dt_json_string(engine->root, what, "version", &engine->version));
    DT_TRY(dt_json_string(engine->root, what, "doc", &text));
    DT_TRY(dt_json_string(engine->root, what, "processes", &text));
    DT_TRY(dt_json_string(engine->root, what, "starts", &text));
    DT_TRY(dt_json_object(engine->root, what, "sources", &unused));
    DT_TRY(dt_json_object(engine->root, what, "cannot", &unused));
    DT_TRY(dt_json_array(engine->root, what, "words", &unused));
    DT_TRY(dt_json_array(engine->root, what, "environment", &unused));
    DT_TRY(dt_json_array(engine->root, what, "kwargs", &unused));
    DT_TRY(read_runs(engine, what));
    DT_TRY(read_models(engine, what));
    DT_TRY(read_names(engine, what));
    DT_TRY(find_degrees(engine, what));
    DT_TRY(defaults_check(engine, what));
    DT_TRY(documented_check(engine, what));
    DT_TRY(complete_cannot(engine));
    return read_rules(engine, what);
}

dt_status dt_engine_read(const char *text, const char *what, struct dt_engine **engine)
{
    struct dt_engine *read = calloc(1, sizeof *read);
    if (read == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = dt_json_parse(text, strlen(text), what, &read->root);
    if (status == DT_OK)
        status = read_root(read, what);
    if (status != DT_OK) {
        dt_engine_free(read);
        return status;
    }
    *engine = read;
    return DT_OK;
}

dt_status dt_engine_open(const char *name, struct dt_engine **engine)
{
    const struct dt_engine_file *file = NULL;
    DT_TRY(dt_engine_find(name, &file));
    return dt_engine_read((const char *)file->text, file->file, engine);
}

dt_status dt_engine_note(json_t *notes, json_t *sentence)
{
    return json_array_append_new(notes, sentence) == 0 ? DT_OK
                                                       : dt_fail(DT_ENOMEM, "out of memory");
}

dt_status dt_engine_string(const char *text, const char *what, json_t **string)
{
    *string = json_string(text);
    return *string != NULL       ? DT_OK
           : dt_text_whole(text) ? dt_no_memory("for an engine")
                                 : dt_fail(DT_EUSAGE, "%s is not UTF-8", what);
}

bool dt_engine_spans(const struct dt_engine *engine)
{
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(engine->root, "words"), i, row)
    {
        if (strstr(dt_json_text_at(row, "when"), "hosts") != NULL)
            return true;
    }
    return false;
}

void dt_engine_free(struct dt_engine *engine)
{
    if (engine == NULL)
        return;
    for (int i = 0; i < engine->rule_count; i++)
        dt_expr_free(engine->rules[i].expr);
    json_decref(engine->root);
    free(engine);
}

dt_status dt_engine_family(const char *engine, json_t **name)
{
    DT_CLEANUP(dt_engine_free_at) struct dt_engine *read = NULL;
    DT_TRY(dt_engine_open(engine, &read));
    json_t *family = json_object_get(read->root, "family");
    *name = json_incref(family != NULL ? family : json_object_get(read->root, "engine"));
    return DT_OK;
}

bool dt_engine_known(const char *engine)
{
    for (int i = 0; i < dt_engine_file_count; i++)
        if (file_version(dt_engine_files[i].file, engine) != NULL)
            return true;
    return false;
}

dt_status dt_engine_named(const char *engine, json_t **name)
{
    return dt_engine_known(engine) ? dt_engine_family(engine, name)
                                   : dt_engine_string(engine, "the engine's name", name);
}
