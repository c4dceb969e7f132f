/* SPDX-License-Identifier: MIT */
#include "base/quote.h"
#include "db/engines/engines_int.h"

#include <string.h>

static const char *const form_names[] = {"argv", "env", "json", "table", NULL};

dt_status dt_form_parse(const char *text, enum dt_form *form)
{
    for (int i = 0; form_names[i] != NULL; i++)
        if (strcmp(form_names[i], text) == 0) {
            *form = (enum dt_form)i;
            return DT_OK;
        }
    return dt_fail(DT_EUSAGE, "unknown form '%s'; known are argv, env, json, table", text);
}

static void add_command(const json_t *argv, struct dt_text *out)
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

static void add_variable(const char *name, const char *value, struct dt_text *out)
{
    dt_text_add(out, "%s=", name);
    dt_quote(value, out);
    dt_text_add(out, "\n");
}

static dt_status write_env(const json_t *whole, struct dt_text *out)
{
    struct dt_text text = {0};
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
        add_variable(fields[i][0], dt_text_at(&text), out);
    }
    dt_text_clear(&text);
    add_command(json_object_get(whole, "argv"), &text);
    add_variable("DITTUNE_COMMAND", dt_text_at(&text), out);
    json_object_foreach(json_object_get(whole, "environment"), name, value)
    {
        dt_text_clear(&text);
        dt_json_plain(value, &text);
        add_variable(name, dt_text_at(&text), out);
    }
    dt_status status = dt_text_status(&text);
    dt_text_fini(&text);
    return status;
}

static void add_row(const char *label, const char *text, struct dt_text *out)
{
    dt_text_add(out, "%-13s", label);
    dt_text_show(text, out);
    dt_text_add(out, "\n");
}

static void add_unexpressed(const json_t *list, struct dt_text *out)
{
    struct dt_text text = {0};
    json_t *row = NULL;
    size_t i;
    json_array_foreach(list, i, row)
    {
        dt_text_clear(&text);
        dt_text_add(&text, "%s=", json_string_value(json_object_get(row, "name")));
        dt_json_plain(json_object_get(row, "value"), &text);
        dt_text_add(&text, ": %s", json_string_value(json_object_get(row, "why")));
        add_row(i == 0 ? "left out" : "", dt_text_at(&text), out);
    }
    out->failed = out->failed || text.failed;
    dt_text_fini(&text);
}

static dt_status write_table(const json_t *whole, struct dt_text *out)
{
    struct dt_text text = {0};
    json_t *value;
    const char *name;
    size_t i;
    dt_text_add(&text, "%s %s", json_string_value(json_object_get(whole, "engine")),
                json_string_value(json_object_get(whole, "version")));
    add_row("engine", dt_text_at(&text), out);
    dt_text_clear(&text);
    add_command(json_object_get(whole, "argv"), &text);
    if (text.size > 0)
        add_row("command", dt_text_at(&text), out);
    json_object_foreach(json_object_get(whole, "environment"), name, value)
    {
        dt_text_clear(&text);
        dt_text_add(&text, "%s=", name);
        dt_json_plain(value, &text);
        add_row("environment", dt_text_at(&text), out);
    }
    dt_text_clear(&text);
    if (json_object_size(json_object_get(whole, "kwargs")) > 0) {
        dt_json_plain(json_object_get(whole, "kwargs"), &text);
        add_row("keywords", dt_text_at(&text), out);
    }
    add_unexpressed(json_object_get(whole, "unexpressed"), out);
    json_array_foreach(json_object_get(whole, "notes"), i, value)
        add_row(i == 0 ? "notes" : "", json_string_value(value), out);
    dt_status status = dt_text_status(&text);
    dt_text_fini(&text);
    return status;
}

dt_status dt_form_write(enum dt_form form, const json_t *whole, struct dt_text *out)
{
    if (form == DT_FORM_ENV)
        DT_TRY(write_env(whole, out));
    else if (form == DT_FORM_TABLE)
        DT_TRY(write_table(whole, out));
    else if (form == DT_FORM_JSON)
        DT_TRY(dt_json_text(whole, out));
    else
        add_command(json_object_get(whole, "argv"), out);
    if (form == DT_FORM_ARGV || form == DT_FORM_JSON)
        dt_text_add(out, "\n");
    return dt_text_status(out);
}
