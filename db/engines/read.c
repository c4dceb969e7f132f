/* SPDX-License-Identifier: MIT */
/* Reads an engine's file and compiles every expression in it, so that mistakes are reported. */
#include "db/engines/engines_int.h"

#include <stdlib.h>
#include <string.h>

/* Facts of the workload, which values.c takes from an entry's key and the model's card; the parameters follow. height
 * and width are pixels of the image; tokens are those of the image or video; joint_text_tokens are those of the text where
 * both are one sequence, else 0; guidance is the passes of a guided step, 2 to 4, or 0; bfloat16 is 1 or 0. To add one, add
 * it here and the line in values.c that sets it. */
static const char *const workload_names[] = {
    "heads",  "depth", "hidden",   "tokens",   "joint_text_tokens", "latent_height", "latent_width",
    "height", "width", "guidance", "bfloat16", "devices",           "hosts"};
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
    DT_TRY(dt_choices_read(engine, what));
    if (!dt_json_has(parameters, "ranks"))
        return dt_fail(DT_EUSAGE, "%s: 'parameters' lacks 'ranks'", what);
    engine->names[engine->count++] = "processes";
    engine->names[engine->count++] = "replicas";
    return DT_OK;
}

/* The degrees: the names of the expression that is the ranks' default, dp * cfg * ... */
static dt_status find_degrees(struct dt_engine *engine, const char *what)
{
    const json_t *parameters = json_object_get(engine->root, "parameters");
    struct dt_expr *expr = NULL;
    DT_TRY(
        dt_engine_compile(engine, json_string_value(json_object_get(parameters, "ranks")), &expr));
    struct dt_names names = dt_expr_names(expr);
    dt_expr_free(expr);
    for (int i = engine->first; i < engine->first + engine->parameters; i++) {
        if ((names.bits[i / 64] >> (i % 64) & 1) == 0)
            continue;
        if (engine->degree_count == DT_ENGINE_DEGREES)
            return dt_fail(DT_EUSAGE, "%s: more than %d degrees", what, DT_ENGINE_DEGREES);
        engine->degrees[engine->degree_count++] = i;
    }
    return DT_OK;
}

/* Optional: expressions of degrees that the engine chooses itself, and degrees that change the output. */
static dt_status check_choices(const struct dt_engine *engine, const char *what)
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
            struct dt_expr *expr = NULL;
            bool known = json_object_get(parameters, name) != NULL ||
                         (i == 0 && json_object_get(choices, name) != NULL);
            if (!known || !json_is_string(value))
                return dt_fail(DT_EUSAGE, "%s: '%s' of '%s' is not a text for a parameter", what,
                               name, fields[i]);
            if (i == 0)
                DT_TRY(dt_engine_compile(engine, json_string_value(value), &expr));
            dt_expr_free(expr);
        }
    }
    return DT_OK;
}

/* Parameters of the built-in network that engines have no word for: a row of "cannot" for each engine whose file does not
 * name the parameter. All other parameters that a file does not name are neutral at their default. */
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

static dt_status read_root(struct dt_engine *engine, const char *what)
{
    static const char *const known[] = {
        "engine",     "version",     "doc",       "family",   "sources", "parameters", "default",
        "lossy",      "cannot",      "processes", "replicas", "rules",   "words",      "program",
        "checkpoint", "environment", "kwargs",    "notes",    "choices", "worker",     NULL,
    };
    json_t *unused = NULL;
    const char *text;
    DT_TRY(dt_json_only(engine->root, what, known));
    DT_TRY(dt_json_string(engine->root, what, "engine", &engine->name));
    DT_TRY(dt_json_string(engine->root, what, "version", &engine->version));
    DT_TRY(dt_json_string(engine->root, what, "doc", &text));
    DT_TRY(dt_json_string(engine->root, what, "processes", &text));
    DT_TRY(dt_json_string(engine->root, what, "replicas", &text));
    DT_TRY(dt_json_object(engine->root, what, "sources", &unused));
    DT_TRY(dt_json_object(engine->root, what, "cannot", &unused));
    DT_TRY(dt_json_array(engine->root, what, "words", &unused));
    DT_TRY(dt_json_array(engine->root, what, "environment", &unused));
    DT_TRY(dt_json_array(engine->root, what, "kwargs", &unused));
    DT_TRY(read_names(engine, what));
    DT_TRY(find_degrees(engine, what));
    DT_TRY(check_choices(engine, what));
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

void dt_engine_free(struct dt_engine *engine)
{
    if (engine == NULL)
        return;
    for (int i = 0; i < engine->rule_count; i++)
        dt_expr_free(engine->rules[i].expr);
    json_decref(engine->root);
    free(engine);
}
