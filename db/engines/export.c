/* SPDX-License-Identifier: MIT */
/* Makes one export: values, rules, the list of unexpressed parameters with reasons, and the
 * words, with their {expressions} replaced. {program} and {checkpoint} are the user's own words;
 * {{ and }} are braces. */
#include "base/quote.h"
#include "db/engines/engines_int.h"
#include "model/plan.h"
#include "model/workload_json.h"

#include <string.h>

static bool text_is(const char *text, size_t size, const char *word)
{
    return size == strlen(word) && memcmp(text, word, size) == 0;
}

/* The user's value, or the placeholder: the file's "program" or "checkpoint". */
static const char *own_word(const struct dt_engine *engine, const char *which, const char *given,
                            struct dt_values *values)
{
    if (given != NULL)
        return given;
    values->placeholder = true;
    const char *stand_in = json_string_value(json_object_get(engine->root, which));
    return stand_in != NULL ? stand_in : "?";
}

/* "0,1,2" */
static dt_status device_list_add(int64_t count, int64_t first, struct dt_text *out)
{
    for (int64_t i = 0; i < count; i++)
        dt_text_add(out, "%s%lld", i > 0 ? "," : "", (long long)(first + i));
    return dt_text_status(out);
}

static dt_status fill_one(const struct dt_engine *engine, const char *inside, size_t size,
                          struct dt_values *values, struct dt_text *out)
{
    char expression[512];
    int64_t value;
    const char *word = NULL;
    if (text_is(inside, size, "program"))
        word = own_word(engine, "program", values->program, values);
    else if (text_is(inside, size, "checkpoint"))
        word = own_word(engine, "checkpoint", values->checkpoint, values);
    else if (text_is(inside, size, "device_list"))
        return device_list_add(values->at[engine->count - 2], 0, out);
    else
        word = dt_choice_word(engine, inside, size, values);
    if (word != NULL) {
        dt_text_add_bytes(out, word, strlen(word));
        return DT_OK;
    }
    if (size >= sizeof expression)
        return dt_fail(DT_EUSAGE, "%s %s: an expression of %zu bytes", engine->name,
                       engine->version, size);
    memcpy(expression, inside, size);
    expression[size] = '\0';
    DT_TRY(dt_values_eval(engine, expression, values, &value));
    dt_text_add(out, "%lld", (long long)value);
    return DT_OK;
}

dt_status dt_words_fill(const struct dt_engine *engine, const char *text, struct dt_values *values,
                        struct dt_text *out)
{
    for (const char *at = text; *at != '\0'; at++) {
        if ((at[0] == '{' && at[1] == '{') || (at[0] == '}' && at[1] == '}')) {
            dt_text_add_bytes(out, at++, 1);
        } else if (*at == '{') {
            const char *end = strchr(at, '}');
            if (end == NULL)
                return dt_fail(DT_EUSAGE, "%s %s: '%s' lacks a }", engine->name, engine->version,
                               text);
            DT_TRY(fill_one(engine, at + 1, (size_t)(end - at - 1), values, out));
            at = end;
        } else {
            dt_text_add_bytes(out, at, 1);
        }
    }
    return dt_text_status(out);
}

static dt_status fill_string(const struct dt_engine *engine, const char *text,
                             struct dt_values *values, json_t **filled)
{
    dt_auto_text out = {0};
    DT_TRY(dt_words_fill(engine, text, values, &out));
    return dt_engine_string(dt_text_at(&out), "a word of the command", filled);
}

static dt_status append_words(const struct dt_engine *engine, const json_t *row,
                              struct dt_values *values, json_t *argv)
{
    json_t *words = NULL, *word = NULL;
    size_t i;
    DT_TRY(dt_json_array(row, "a row of words", "words", &words));
    json_array_foreach(words, i, word)
    {
        json_t *filled = NULL;
        if (!json_is_string(word))
            return dt_fail(DT_EUSAGE, "%s %s: a word is not a string", engine->name,
                           engine->version);
        DT_TRY(fill_string(engine, json_string_value(word), values, &filled));
        DT_TRY(dt_engine_note(argv, filled));
    }
    return DT_OK;
}

dt_status dt_words_argv(const struct dt_engine *engine, struct dt_values *values, json_t *argv)
{
    const json_t *rows = json_object_get(engine->root, "words"), *row = NULL;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        bool holds;
        DT_TRY(dt_values_when(engine, row, values, &holds));
        if (holds)
            DT_TRY(append_words(engine, row, values, argv));
    }
    return DT_OK;
}

/* "{ring}" as a number, "{?cfg == 2}" as true or false, other strings filled;
 * anything else as it stands. */
static dt_status fill_value(const struct dt_engine *engine, json_t *value, struct dt_values *values,
                            json_t **filled)
{
    const char *text = json_string_value(value);
    size_t size = text != NULL ? strlen(text) : 0;
    char expression[512];
    int64_t number;
    if (text == NULL) {
        *filled = json_incref(value);
        return DT_OK;
    }
    if (size < 3 || size >= sizeof expression || text[0] != '{' ||
        strchr(text, '}') != text + size - 1 || strcmp(text, "{program}") == 0 ||
        strcmp(text, "{checkpoint}") == 0 || strcmp(text, "{device_list}") == 0 ||
        dt_choice_word(engine, text + 1, size - 2, values) != NULL)
        return fill_string(engine, text, values, filled);
    bool truth = text[1] == '?';
    memcpy(expression, text + 1 + truth, size - 2 - truth);
    expression[size - 2 - truth] = '\0';
    DT_TRY(dt_values_eval(engine, expression, values, &number));
    *filled = truth ? json_boolean(number != 0) : json_integer(number);
    return DT_OK;
}

/* field "a.b": creates object a if missing; "a[].b": a list of one. Owns value. */
static dt_status set_field(json_t *object, const char *field, json_t *value)
{
    char part[128];
    const char *dot;
    while ((dot = strchr(field, '.')) != NULL && (size_t)(dot - field) < sizeof part) {
        memcpy(part, field, (size_t)(dot - field));
        part[dot - field] = '\0';
        size_t size = (size_t)(dot - field);
        bool list = size > 2 && strcmp(part + size - 2, "[]") == 0;
        if (list)
            part[size - 2] = '\0';
        json_t *inner = json_object_get(object, part);
        if (inner == NULL) {
            inner = list ? json_pack("[{}]") : json_object();
            json_object_set_new(object, part, inner);
        }
        object = list ? json_array_get(inner, 0) : inner;
        field = dot + 1;
    }
    if (json_object_set_new(object, field, value) != 0)
        return dt_fail(DT_ENOMEM, "out of memory");
    return DT_OK;
}

static dt_status fill_rows(const struct dt_engine *engine, const char *list,
                           struct dt_values *values, json_t *object)
{
    const json_t *rows = json_object_get(engine->root, list), *row = NULL;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        bool holds;
        const char *name;
        json_t *filled = NULL, *value = json_object_get(row, "value");
        DT_TRY(dt_json_string(row, list, "name", &name));
        if (json_is_true(json_object_get(row, "kwargs")))
            continue;
        if (value == NULL)
            return dt_fail(DT_EUSAGE, "%s %s: '%s' has no value", engine->name, engine->version,
                           name);
        DT_TRY(dt_values_when(engine, row, values, &holds));
        if (!holds)
            continue;
        DT_TRY(fill_value(engine, value, values, &filled));
        DT_TRY(set_field(object, name, filled));
    }
    return DT_OK;
}

/* Fills the deploy file, where the keywords are a part of it, or (name "") all. */
static dt_status yaml_fill(const struct dt_engine *engine, struct dt_values *values, json_t *object)
{
    const json_t *rows = json_object_get(engine->root, "yaml"), *row = NULL;
    size_t i;
    DT_TRY(fill_rows(engine, "yaml", values, object));
    json_array_foreach(rows, i, row)
    {
        const char *name = dt_json_text_at(row, "name");
        if (!json_is_true(json_object_get(row, "kwargs")))
            continue;
        json_t *kwargs = json_object();
        DT_TRY(fill_rows(engine, "kwargs", values, name[0] == '\0' ? object : kwargs));
        if (name[0] == '\0')
            json_decref(kwargs);
        else
            DT_TRY(set_field(object, name, kwargs));
    }
    return DT_OK;
}

dt_status dt_words_environment(const struct dt_engine *engine, struct dt_values *values,
                               json_t *environment)
{
    return fill_rows(engine, "environment", values, environment);
}

dt_status dt_words_kwargs(const struct dt_engine *engine, struct dt_values *values, json_t *kwargs)
{
    return fill_rows(engine, "kwargs", values, kwargs);
}

/* Lines of Python for the user's program. */
static dt_status python_fill(const struct dt_engine *engine, struct dt_values *values, json_t *json)
{
    const json_t *rows = json_object_get(engine->root, "python"), *row = NULL;
    dt_auto_text text = {0};
    json_t *lines, *line;
    size_t i, k;
    json_array_foreach(rows, i, row)
    {
        bool holds;
        DT_TRY(dt_values_when(engine, row, values, &holds));
        if (!holds)
            continue;
        DT_TRY(dt_json_array(row, "python", "lines", &lines));
        json_array_foreach(lines, k, line)
        {
            DT_TRY(dt_words_fill(engine, json_string_value(line), values, &text));
            dt_text_add(&text, "\n");
        }
    }
    DT_TRY(dt_text_status(&text));
    return text.size == 0 || json_object_set_new(json, "python", json_string(text.bytes)) == 0
               ? DT_OK
               : dt_no_memory("for an engine");
}

static const char *const form_names[] = {"argv", "env", "json", "table", "flags", "yaml", NULL};

dt_status dt_form_parse(const char *text, enum dt_form *form)
{
    int found = dt_text_index(text, form_names);
    if (found < 0)
        return dt_fail(DT_EUSAGE,
                       "unknown form '%s'; known are argv, env, json, table, flags, yaml", text);
    *form = (enum dt_form)found;
    return DT_OK;
}

static void command_add(const json_t *argv, struct dt_text *out)
{
    json_t *word = NULL;
    size_t i;
    json_array_foreach(argv, i, word)
    {
        if (i > 0)
            dt_text_add(out, " ");
        dt_quote(json_string_value(word), out);
    }
}

static void variable_add(const char *name, const char *value, struct dt_text *out)
{
    dt_text_add(out, "%s=", name);
    dt_quote(value, out);
    dt_text_add(out, "\n");
}

/* With the variables that are its own. */
static void line_add(const json_t *line, struct dt_text *out)
{
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(line, "environment"), name, value)
        dt_text_add(out, "%s=%s ", name, json_string_value(value));
    command_add(json_object_get(line, "argv"), out);
}

/* Adds the line of each start. */
static void lines_add(const json_t *whole, struct dt_text *out)
{
    json_t *line;
    size_t i;
    json_array_foreach(json_object_get(whole, "lines"), i, line)
    {
        dt_text_add(out, "%s", i > 0 ? "\n" : "");
        line_add(line, out);
    }
}

static dt_status env_write(const json_t *whole, struct dt_text *out)
{
    dt_auto_text text = {0};
    const char *name;
    json_t *value;
    static const char *const fields[][2] = {{"DITTUNE_ENGINE", "engine"},
                                            {"DITTUNE_ENGINE_VERSION", "version"},
                                            {"DITTUNE_PROCESSES", "processes"},
                                            {"DITTUNE_REPLICAS", "replicas"},
                                            {"DITTUNE_KWARGS", "kwargs"}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        dt_text_clear(&text);
        dt_json_plain(json_object_get(whole, fields[i][1]), &text);
        variable_add(fields[i][0], dt_text_at(&text), out);
    }
    dt_text_clear(&text);
    lines_add(whole, &text);
    variable_add("DITTUNE_COMMAND", dt_text_at(&text), out);
    if (json_object_get(whole, "python") != NULL)
        variable_add("DITTUNE_PYTHON", dt_json_text_at(whole, "python"), out);
    json_object_foreach(json_object_get(whole, "environment"), name, value)
    {
        dt_text_clear(&text);
        dt_json_plain(value, &text);
        variable_add(name, dt_text_at(&text), out);
    }
    return dt_text_status(&text);
}

static void row_add(const char *label, const char *text, struct dt_text *out)
{
    dt_text_add(out, "%-13s", label);
    dt_text_show(text, out);
    dt_text_add(out, "\n");
}

/* Indented as they are. */
static void python_add(const char *lines, struct dt_text *out)
{
    for (const char *at = lines; *at != '\0'; at = strchr(at, '\n') + 1)
        dt_text_add(out, "%-13s%.*s\n", at == lines ? "python" : "", (int)strcspn(at, "\n"), at);
}

static void unexpressed_add(const json_t *list, struct dt_text *out)
{
    dt_auto_text text = {0};
    json_t *row = NULL;
    size_t i;
    json_array_foreach(list, i, row)
    {
        dt_text_clear(&text);
        dt_text_add(&text, "%s=", json_string_value(json_object_get(row, "name")));
        dt_json_plain(json_object_get(row, "value"), &text);
        dt_text_add(&text, ": %s", json_string_value(json_object_get(row, "why")));
        row_add(i == 0 ? "left out" : "", dt_text_at(&text), out);
    }
    out->failed = out->failed || text.failed;
}

static dt_status table_write(const json_t *whole, struct dt_text *out)
{
    dt_auto_text text = {0};
    json_t *value;
    const char *name;
    size_t i;
    dt_text_add(&text, "%s %s", json_string_value(json_object_get(whole, "engine")),
                json_string_value(json_object_get(whole, "version")));
    row_add("engine", dt_text_at(&text), out);
    json_array_foreach(json_object_get(whole, "lines"), i, value)
    {
        dt_text_clear(&text);
        line_add(value, &text);
        if (text.size > 0)
            row_add(i == 0 ? "command" : "", dt_text_at(&text), out);
    }
    json_object_foreach(json_object_get(whole, "environment"), name, value)
    {
        dt_text_clear(&text);
        dt_text_add(&text, "%s=", name);
        dt_json_plain(value, &text);
        row_add("environment", dt_text_at(&text), out);
    }
    python_add(dt_json_text_at(whole, "python"), out);
    dt_text_clear(&text);
    if (json_object_size(json_object_get(whole, "kwargs")) > 0) {
        dt_json_plain(json_object_get(whole, "kwargs"), &text);
        row_add("keywords", dt_text_at(&text), out);
    }
    unexpressed_add(json_object_get(whole, "unexpressed"), out);
    json_array_foreach(json_object_get(whole, "notes"), i, value)
        row_add(i == 0 ? "notes" : "", json_string_value(value), out);
    return dt_text_status(&text);
}

/* ---- the plan's flags alone, and deploy files */

/* sh splits what a command printed at blanks and then takes *, ? and [ for patterns of
 * files; quotes do not help. */
static dt_status flag_check(const char *word)
{
    if (word[0] != '\0' && strpbrk(word, " \t\n*?[\\") == NULL)
        return DT_OK;
    return dt_fail(DT_EUSAGE,
                   "the flag '%.80s' cannot be printed for sh to split: it is empty or has a blank "
                   "or a sign of a pattern; --format argv prints the command, quoted",
                   word);
}

static dt_status flags_refuse(const struct dt_engine *engine)
{
    bool yaml = json_object_get(engine->root, "yaml") != NULL;
    if (json_array_size(json_object_get(engine->root, "kwargs")) > 0)
        return dt_fail(
            DT_EUSAGE,
            "%s %s is configured by %s, not by flags: use --format %s, or --format json, "
            "whose kwargs have the plan",
            engine->name, engine->version, yaml ? "a file" : "keywords",
            yaml ? "yaml" : "env (DITTUNE_KWARGS)");
    return dt_fail(DT_EUSAGE,
                   "%s %s is started by a launcher, whose flags stand before the program: use "
                   "--format argv, which prints the whole command",
                   engine->name, engine->version);
}

dt_status dt_flags_write(const struct dt_engine *engine, struct dt_values *values,
                         struct dt_text *out)
{
    const json_t *rows = json_object_get(engine->root, "words"), *row = NULL;
    json_auto_t *flags = json_array();
    int64_t hosts, starts = values->at[engine->count - 1];
    bool own = false;
    json_t *word;
    size_t i;
    DT_TRY(dt_values_eval(engine, "hosts", values, &hosts));
    json_array_foreach(rows, i, row)
    {
        bool holds, users = json_is_true(json_object_get(row, "own"));
        own |= users;
        DT_TRY(dt_values_when(engine, row, values, &holds));
        if (holds && !users)
            DT_TRY(append_words(engine, row, values, flags));
    }
    if (!own)
        return flags_refuse(engine);
    if (starts > 1 || hosts > 1)
        return dt_fail(DT_EUSAGE,
                       "the plan is of %lld %s, each with a line of its own: use --format argv, "
                       "which prints the whole command",
                       (long long)(starts > 1 ? starts : hosts), starts > 1 ? "replicas" : "hosts");
    json_array_foreach(flags, i, word)
    {
        DT_TRY(flag_check(json_string_value(word)));
        dt_text_add(out, "%s%s", i > 0 ? " " : "", json_string_value(word));
    }
    dt_text_add(out, "\n");
    return dt_text_status(out);
}

/* Names are plain words of the engine's file; every value but an object or a list of objects is
 * JSON, which is YAML, too.
 * begun: the line has its indent already. */
static void yaml_add(const json_t *object, int indent, bool begun, struct dt_text *out)
{
    const char *name;
    json_t *value, *item;
    size_t i;
    json_object_foreach((json_t *)object, name, value)
    {
        dt_text_add(out, "%*s%s:", begun ? 0 : indent, "", name);
        begun = false;
        if (json_object_size(value) > 0) {
            dt_text_add(out, "\n");
            yaml_add(value, indent + 2, false, out);
        } else if (json_is_object(json_array_get(value, 0))) {
            dt_text_add(out, "\n");
            json_array_foreach(value, i, item)
            {
                dt_text_add(out, "%*s- ", indent + 2, "");
                yaml_add(item, indent + 4, true, out);
            }
        } else {
            dt_text_add(out, " ");
            out->failed = dt_json_text(value, out) != DT_OK || out->failed;
            dt_text_add(out, "\n");
        }
    }
}

/* "trtllm-visualgen, vllm-omni" */
static dt_status yaml_refuse(const struct dt_engine *engine)
{
    dt_auto_text names = {0};
    for (int i = 0; i < dt_engine_file_count; i++) {
        DT_CLEANUP(dt_engine_free_at) struct dt_engine *other = NULL;
        DT_TRY(
            dt_engine_read((const char *)dt_engine_files[i].text, dt_engine_files[i].file, &other));
        if (json_object_get(other->root, "yaml") != NULL)
            dt_text_add(&names, "%s%s", names.size > 0 ? ", " : "", other->name);
    }
    DT_TRY(dt_text_status(&names));
    return dt_fail(DT_EUSAGE, "%s %s reads no YAML: engines with such a file are %s", engine->name,
                   engine->version, dt_text_at(&names));
}

dt_status dt_yaml_write(const struct dt_engine *engine, struct dt_values *values,
                        struct dt_text *out)
{
    json_auto_t *object = json_object();
    if (json_object_get(engine->root, "yaml") == NULL)
        return yaml_refuse(engine);
    DT_TRY(yaml_fill(engine, values, object));
    dt_text_add(out, "# %s\n", dt_json_text_at(engine->root, "yaml_for"));
    yaml_add(object, 0, false, out);
    return dt_text_status(out);
}

static dt_status form_write(enum dt_form form, const json_t *whole, struct dt_text *out)
{
    if (form == DT_FORM_ENV)
        DT_TRY(env_write(whole, out));
    else if (form == DT_FORM_TABLE)
        DT_TRY(table_write(whole, out));
    else if (form == DT_FORM_JSON)
        DT_TRY(dt_json_text(whole, out));
    else
        lines_add(whole, out);
    if (form == DT_FORM_ARGV || form == DT_FORM_JSON)
        dt_text_add(out, "\n");
    return dt_text_status(out);
}

/* The row of a parameter of the built-in network that the engine's file does not name; NULL: it is
 * none. New reference. */
static json_t *parameter_unnamed(const json_t *plan, const char *name)
{
    struct dt_plan read;
    if (dt_plan_from_json(plan, &read) != DT_OK)
        return NULL;
    for (int i = 0; i < dt_param_count; i++) {
        const struct dt_param *param = &dt_params[i];
        if (strcmp(param->name, name) != 0)
            continue;
        return json_pack("{s:o, s:s*}", "neutral",
                         param->labels != NULL ? json_string(param->labels[param->fallback])
                                               : json_integer(param->fallback),
                         "why",
                         param->on == DT_ON_GPU ? "a setting of dittune's own kernels and exchanges"
                                                : NULL);
    }
    return NULL;
}

/* Lists unexpressed parameters: those in the file's list, unless at the neutral value, and those
 * the file does not know. */
static dt_status list_unexpressed(const struct dt_engine *engine, const json_t *plan,
                                  json_t *unexpressed)
{
    const json_t *cannot = json_object_get(engine->root, "cannot");
    const json_t *parameters = json_object_get(engine->root, "parameters");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)plan, name, value)
    {
        json_t *row = json_object_get(cannot, name);
        if (row == NULL &&
            (json_object_get(parameters, name) != NULL || dt_choices_take(engine, name, value)))
            continue;
        json_auto_t *known = row != NULL ? json_incref(row) : parameter_unnamed(plan, name);
        const json_t *neutral = json_object_get(known, "neutral");
        if (neutral != NULL && json_equal(neutral, value))
            continue;
        json_t *why = json_incref(json_object_get(known, "why"));
        if (why == NULL)
            why = json_sprintf("%s %s has no such parameter here", engine->name, engine->version);
        DT_TRY(dt_engine_note(
            unexpressed, json_pack("{s:s, s:O, s:o}", "name", name, "value", value, "why", why)));
    }
    return DT_OK;
}

/* Notes the words that were added, and what changes the output. */
dt_status dt_choices_note(const struct dt_engine *engine, const struct dt_values *values,
                          json_t *notes)
{
    const json_t *lossy = json_object_get(engine->root, "lossy");
    for (int i = 0; i < engine->degree_count; i++) {
        const char *degree = engine->names[engine->degrees[i]];
        int64_t value = values->at[engine->degrees[i]];
        if (value > 1 && json_object_get(lossy, degree) != NULL)
            DT_TRY(dt_engine_note(notes,
                                  json_sprintf("%s=%lld changes the output: %s", degree,
                                               (long long)value, dt_json_text_at(lossy, degree))));
    }
    for (int i = 0; i < engine->choice_count; i++) {
        const struct dt_engine_choice *choice = &engine->choices[i];
        const char *name = engine->names[choice->name],
                   *word = choice->labels[values->at[choice->name]];
        const char *why = json_string_value(json_object_get(choice->lossy, word));
        const char *does = json_string_value(json_object_get(choice->does, word));
        if (values->open[i] && values->at[choice->name] > 0)
            DT_TRY(dt_engine_note(notes, json_sprintf("%s=%s is added, as %s=%s would break a rule",
                                                      name, word, name, choice->labels[0])));
        if (does != NULL)
            DT_TRY(dt_engine_note(notes, json_sprintf("%s=%s: %s", name, word, does)));
        if (why != NULL)
            DT_TRY(dt_engine_note(notes,
                                  json_sprintf("%s=%s changes the output: %s", name, word, why)));
    }
    return DT_OK;
}

/* Measured on this engine: the entry's engine is the file's, or of its family
 * (xdit-runner is xdit). */
static bool is_measured(const struct dt_engine *engine, const json_t *hard)
{
    const char *measured = json_string_value(json_object_get(hard, "engine"));
    const char *family = json_string_value(json_object_get(engine->root, "family"));
    return measured != NULL && (strcmp(measured, engine->name) == 0 ||
                                (family != NULL && strcmp(measured, family) == 0));
}

static dt_status note_evidence(const struct dt_engine *engine, const json_t *hard, bool measured,
                               json_t *notes)
{
    const char *by = json_string_value(json_object_get(hard, "engine"));
    const char *mode = json_string_value(json_object_get(hard, "mode"));
    if (measured)
        return DT_OK;
    if (by == NULL)
        return dt_engine_note(notes,
                              json_sprintf("not measured on %s %s", engine->name, engine->version));
    return dt_engine_note(notes,
                          json_sprintf("not measured on %s %s: the plan was measured on %s%s%s",
                                       engine->name, engine->version, by,
                                       mode != NULL ? ", mode " : "", mode != NULL ? mode : ""));
}

static dt_status note_row(const struct dt_engine *engine, const json_t *row,
                          struct dt_values *values, json_t *notes)
{
    bool holds;
    const char *note;
    dt_auto_text text = {0};
    DT_TRY(dt_json_string(row, "a note", "note", &note));
    DT_TRY(dt_values_when(engine, row, values, &holds));
    if (!holds)
        return DT_OK;
    DT_TRY(dt_words_fill(engine, note, values, &text));
    return dt_engine_note(notes, json_string(dt_text_at(&text)));
}

/* The line is of each host; where the file does not know how, of one alone. */
static dt_status note_hosts(const struct dt_engine *engine, const struct dt_values *values,
                            json_t *notes)
{
    int64_t hosts;
    DT_TRY(dt_values_eval(engine, "hosts", values, &hosts));
    if (hosts == 1)
        return DT_OK;
    if (!dt_engine_spans(engine))
        return dt_engine_note(notes,
                              json_sprintf("its processes are on %lld hosts, and how %s %s starts "
                                           "there is not known here",
                                           (long long)hosts, engine->name, engine->version));
    return dt_engine_note(notes,
                          json_sprintf("run the line on each of %lld hosts: NODE_RANK is 0 on "
                                       "FIRST_HOST, then 1, and so on",
                                       (long long)hosts));
}

/* Lines of one host: those whose processes it has slots for. */
static dt_status lines_fit(const struct dt_engine *engine, const struct dt_values *values,
                           int64_t *mine, int64_t *fit)
{
    int64_t hosts;
    DT_TRY(dt_values_eval(engine, "hosts", values, &hosts));
    *mine = values->at[engine->count - 2] / hosts;
    *fit = values->slots >= *mine ? values->slots / *mine : values->at[engine->count - 1];
    return DT_OK;
}

static dt_status note_replicas(const struct dt_engine *engine, const struct dt_values *values,
                               json_t *notes)
{
    int64_t starts = values->at[engine->count - 1], mine, fit;
    DT_TRY(lines_fit(engine, values, &mine, &fit));
    DT_TRY(dt_engine_note(notes, json_sprintf("run the %lld lines at the same time: each is a "
                                              "replica, on devices of its own",
                                              (long long)starts)));
    return fit >= starts
               ? DT_OK
               : dt_engine_note(notes, json_sprintf("the devices are those of a host: %lld "
                                                    "line%s on each host",
                                                    (long long)fit, fit == 1 ? "" : "s"));
}

static dt_status notes_rest(const struct dt_engine *engine, struct dt_values *values, json_t *notes)
{
    const json_t *rows = json_object_get(engine->root, "notes"), *row = NULL;
    size_t i;
    if (values->at[engine->count - 1] > 1)
        DT_TRY(note_replicas(engine, values, notes));
    json_array_foreach(rows, i, row) DT_TRY(note_row(engine, row, values, notes));
    DT_TRY(note_hosts(engine, values, notes));
    if (values->placeholder)
        DT_TRY(dt_engine_note(notes, json_string("words in capitals stand for your own program and "
                                                 "model")));
    return DT_OK;
}

/* Devices of line i of those that are on one host, "2,3"; a replica on several hosts
 * has as many on each. */
static dt_status devices_put(const struct dt_engine *engine, const struct dt_values *values, int i,
                             json_t *environment)
{
    dt_auto_text list = {0};
    int64_t mine, fit;
    DT_TRY(lines_fit(engine, values, &mine, &fit));
    DT_TRY(device_list_add(mine, i % fit * mine, &list));
    return json_object_set_new(environment, "CUDA_VISIBLE_DEVICES",
                               json_string(dt_text_at(&list))) == 0
               ? DT_OK
               : dt_no_memory("for an engine");
}

/* A line for each start, the first of them also by itself. */
static dt_status lines_fill(const struct dt_engine *engine, struct dt_values *values, json_t *json)
{
    const int64_t starts = values->at[engine->count - 1];
    json_t *lines = json_object_get(json, "lines");
    for (int i = 0; i < starts; i++) {
        json_t *argv = json_array(), *environment = json_object();
        json_t *line = json_pack("{s:o, s:o}", "argv", argv, "environment", environment);
        DT_TRY(dt_engine_note(lines, line));
        dt_values_replica(engine, values, i);
        DT_TRY(dt_words_argv(engine, values, argv));
        if (starts > 1)
            DT_TRY(devices_put(engine, values, i, environment));
    }
    dt_values_replica(engine, values, 0);
    return json_object_set(json, "argv", json_object_get(json_array_get(lines, 0), "argv")) == 0
               ? DT_OK
               : dt_no_memory("for an engine");
}

static dt_status export_fill(const struct dt_engine *engine,
                             const struct dt_export_request *request, struct dt_export *out)
{
    struct dt_values values;
    DT_TRY(dt_values_read(engine, request, &values));
    DT_TRY(note_evidence(engine, request->hard, out->measured, out->notes));
    DT_TRY(dt_values_check(engine, &values, out->measured ? NULL : out->remarks));
    DT_TRY(lines_fill(engine, &values, out->json));
    DT_TRY(python_fill(engine, &values, out->json));
    DT_TRY(dt_words_environment(engine, &values, json_object_get(out->json, "environment")));
    DT_TRY(dt_words_kwargs(engine, &values, json_object_get(out->json, "kwargs")));
    DT_TRY(list_unexpressed(engine, request->plan, out->unexpressed));
    DT_TRY(dt_choices_note(engine, &values, out->remarks));
    out->processes = values.at[engine->count - 2];
    out->replicas = values.at[engine->count - 1];
    if (json_array_extend(out->notes, out->remarks) != 0 ||
        json_object_set_new(out->json, "processes", json_integer(out->processes)) != 0 ||
        json_object_set_new(out->json, "replicas", json_integer(out->replicas)) != 0)
        return dt_no_memory("for an engine");
    values.placeholder = values.placeholder && request->form != DT_FORM_FLAGS;
    DT_TRY(notes_rest(engine, &values, out->notes));
    if (request->form == DT_FORM_FLAGS)
        return dt_flags_write(engine, &values, &out->text);
    return request->form == DT_FORM_YAML ? dt_yaml_write(engine, &values, &out->text)
                                         : form_write(request->form, out->json, &out->text);
}

dt_status dt_export(const struct dt_export_request *request, struct dt_export *out)
{
    struct dt_engine *engine = NULL;
    DT_TRY(dt_engine_open(request->engine, &engine));
    struct dt_export made = {.measured = is_measured(engine, request->hard),
                             .remarks = json_array()};
    made.json =
        json_pack("{s:s, s:s, s:b, s:n, s:n, s:[], s:[], s:{}, s:{}, s:[], s:[], s:O}", "engine",
                  engine->name, "version", engine->version, "measured", (int)made.measured,
                  "processes", "replicas", "argv", "lines", "environment", "kwargs", "unexpressed",
                  "notes", "sources", json_object_get(engine->root, "sources"));
    made.unexpressed = json_object_get(made.json, "unexpressed");
    made.notes = json_object_get(made.json, "notes");
    dt_status status =
        made.json != NULL ? export_fill(engine, request, &made) : dt_no_memory("for an engine");
    dt_engine_free(engine);
    if (status == DT_OK)
        *out = made;
    else
        dt_export_fini(&made);
    return status;
}

void dt_export_fini(struct dt_export *out)
{
    dt_text_fini(&out->text);
    json_decref(out->json);
    json_decref(out->remarks);
    out->json = out->unexpressed = out->notes = out->remarks = NULL;
}
