/* SPDX-License-Identifier: MIT */
/* Makes one export: values, rules, words, and the list of unexpressed parameters with reasons. */
#include "db/engines/engines_int.h"
#include "model/plan.h"
#include "model/workload_json.h"

#include <string.h>

static dt_status add_note(json_t *notes, json_t *sentence)
{
    if (json_array_append_new(notes, sentence) != 0)
        return dt_fail(DT_ENOMEM, "out of memory");
    return DT_OK;
}

/* The row of a parameter of the built-in network that the engine's file does not name; NULL: it is none. New reference. */
static json_t *unnamed(const json_t *plan, const char *name)
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

/* Lists unexpressed parameters: those in the file's list, unless at the neutral value, and those the file does not
 * know. */
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
        row = row != NULL ? json_incref(row) : unnamed(plan, name);
        const json_t *neutral = json_object_get(row, "neutral");
        if (neutral != NULL && json_equal(neutral, value)) {
            json_decref(row);
            continue;
        }
        json_t *why = json_incref(json_object_get(row, "why"));
        if (why == NULL)
            why = json_sprintf("%s %s has no such parameter here", engine->name, engine->version);
        json_decref(row);
        if (json_array_append_new(unexpressed, json_pack("{s:s, s:O, s:o}", "name", name, "value",
                                                         value, "why", why)) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
    }
    return DT_OK;
}

/* Measured on this engine: the entry's engine is the file's, or of its family (xdit-runner is xdit). */
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
        return add_note(notes,
                        json_sprintf("not measured on %s %s", engine->name, engine->version));
    return add_note(notes, json_sprintf("not measured on %s %s: the plan was measured on %s%s%s",
                                        engine->name, engine->version, by,
                                        mode != NULL ? ", mode " : "", mode != NULL ? mode : ""));
}

static dt_status note_row(const struct dt_engine *engine, const json_t *row,
                          struct dt_values *values, json_t *notes)
{
    bool holds;
    const char *note;
    struct dt_text text = {0};
    DT_TRY(dt_json_string(row, "a note", "note", &note));
    DT_TRY(dt_values_when(engine, row, values, &holds));
    if (!holds)
        return DT_OK;
    dt_status status = dt_words_fill(engine, note, values, &text);
    if (status == DT_OK)
        status = add_note(notes, json_string(dt_text_at(&text)));
    dt_text_fini(&text);
    return status;
}

/* The line is of each host; where the file does not know how, of one alone. */
static dt_status note_hosts(const struct dt_engine *engine, const struct dt_values *values,
                            json_t *notes)
{
    const json_t *rows = json_object_get(engine->root, "words"), *row;
    int64_t hosts;
    bool known = false;
    size_t i;
    DT_TRY(dt_values_eval(engine, "hosts", values, &hosts));
    json_array_foreach(rows, i, row)
    {
        known |= strstr(dt_json_text_at(row, "when"), "hosts") != NULL;
    }
    if (hosts == 1)
        return DT_OK;
    if (!known)
        return add_note(notes, json_sprintf("its processes are on %lld hosts, and how %s %s starts "
                                            "there is not known here",
                                            (long long)hosts, engine->name, engine->version));
    return add_note(notes, json_sprintf("run the line on each of %lld hosts: NODE_RANK is 0 on "
                                        "FIRST_HOST, then 1, and so on",
                                        (long long)hosts));
}

static dt_status note_rest(const struct dt_engine *engine, struct dt_values *values, json_t *notes)
{
    const json_t *rows = json_object_get(engine->root, "notes"), *row = NULL;
    int64_t replicas = values->at[engine->count - 1];
    size_t i;
    if (replicas > 1)
        DT_TRY(add_note(notes, json_sprintf("start it %lld times, each on devices of its own and "
                                            "with its share of the batch",
                                            (long long)replicas)));
    json_array_foreach(rows, i, row) DT_TRY(note_row(engine, row, values, notes));
    DT_TRY(note_hosts(engine, values, notes));
    if (values->placeholder)
        DT_TRY(add_note(notes, json_string("words in capitals stand for your own program and "
                                           "model")));
    return DT_OK;
}

/* The parts of the JSON form; owned until moved into it. */
struct parts {
    json_t *argv, *environment, *kwargs, *unexpressed, *notes, *remarks;
};

static dt_status fill_parts(const struct dt_engine *engine, const struct dt_export_request *request,
                            struct dt_values *values, struct parts *parts)
{
    bool measured = is_measured(engine, request->hard);
    DT_TRY(dt_values_read(engine, request, values));
    DT_TRY(note_evidence(engine, request->hard, measured, parts->notes));
    DT_TRY(dt_values_check(engine, values, parts->remarks));
    DT_TRY(dt_words_argv(engine, values, parts->argv));
    DT_TRY(dt_words_environment(engine, values, parts->environment));
    DT_TRY(dt_words_kwargs(engine, values, parts->kwargs));
    DT_TRY(list_unexpressed(engine, request->plan, parts->unexpressed));
    DT_TRY(dt_choices_note(engine, values, parts->remarks));
    if (json_array_extend(parts->notes, parts->remarks) != 0)
        return dt_fail(DT_ENOMEM, "out of memory");
    return note_rest(engine, values, parts->notes);
}

static dt_status assemble(const struct dt_engine *engine, const struct dt_export_request *request,
                          const struct dt_values *values, const struct parts *parts,
                          struct dt_export *out)
{
    struct dt_export made = {.processes = values->at[engine->count - 2],
                             .replicas = values->at[engine->count - 1],
                             .measured = is_measured(engine, request->hard)};
    json_t *whole =
        json_pack("{s:s, s:s, s:b, s:I, s:I, s:O, s:O, s:O, s:O, s:O, s:O}", "engine", engine->name,
                  "version", engine->version, "measured", (int)made.measured, "processes",
                  (json_int_t)made.processes, "replicas", (json_int_t)made.replicas, "argv",
                  parts->argv, "environment", parts->environment, "kwargs", parts->kwargs,
                  "unexpressed", parts->unexpressed, "notes", parts->notes, "sources",
                  json_object_get(engine->root, "sources"));
    if (whole == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = dt_form_write(request->form, whole, &made.text);
    if (status != DT_OK) {
        dt_text_fini(&made.text);
        json_decref(whole);
        return status;
    }
    made.json = whole;
    made.unexpressed = parts->unexpressed;
    made.notes = parts->notes;
    made.remarks = json_incref(parts->remarks);
    *out = made;
    return DT_OK;
}

static dt_status export_by(const struct dt_engine *engine, const struct dt_export_request *request,
                           struct dt_export *out)
{
    struct dt_values values;
    struct parts parts = {json_array(), json_object(), json_object(),
                          json_array(), json_array(),  json_array()};
    dt_status status = DT_OK;
    if (parts.argv == NULL || parts.environment == NULL || parts.kwargs == NULL ||
        parts.unexpressed == NULL || parts.notes == NULL || parts.remarks == NULL)
        status = dt_fail(DT_ENOMEM, "out of memory");
    if (status == DT_OK)
        status = fill_parts(engine, request, &values, &parts);
    if (status == DT_OK)
        status = assemble(engine, request, &values, &parts, out);
    json_decref(parts.argv);
    json_decref(parts.environment);
    json_decref(parts.kwargs);
    json_decref(parts.unexpressed);
    json_decref(parts.notes);
    json_decref(parts.remarks);
    return status;
}

dt_status dt_export(const struct dt_export_request *request, struct dt_export *out)
{
    const struct dt_engine_file *file = NULL;
    struct dt_engine *engine = NULL;
    DT_TRY(dt_engine_find(request->engine, &file));
    DT_TRY(dt_engine_read((const char *)file->text, file->file, &engine));
    dt_status status = export_by(engine, request, out);
    dt_engine_free(engine);
    return status;
}

void dt_export_fini(struct dt_export *out)
{
    dt_text_fini(&out->text);
    json_decref(out->json);
    json_decref(out->remarks);
    out->json = out->unexpressed = out->notes = out->remarks = NULL;
}
