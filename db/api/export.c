/* SPDX-License-Identifier: MIT */
#include "db/api/api_int.h"
#include "db/engines/engines.h"

#include <stdlib.h>

struct dittune_export {
    struct dt_export made;
    json_t *unexpressed; /* sentences */
};

int32_t dittune_engines(char **text, char *message, size_t room)
{
    const struct dt_api_message to = {message, room};
    json_t *list = NULL;
    if (text == NULL)
        return dt_api_refuse(DITTUNE_USAGE, "text is NULL", to);
    dt_api_begin();
    dt_status status = dt_engines(&list);
    if (status != DT_OK)
        return dt_api_done(status, to);
    int32_t code = dt_api_text(list, text, to);
    json_decref(list);
    return code;
}

static dt_status add_sentence(const json_t *row, json_t *sentences)
{
    struct dt_text text = {0};
    const char *why = json_string_value(json_object_get(row, "why"));
    dt_text_add(&text, "%s=", json_string_value(json_object_get(row, "name")));
    dt_status status = dt_json_text(json_object_get(row, "value"), &text);
    dt_text_add(&text, ": %s", why != NULL ? why : "");
    if (status == DT_OK)
        status = dt_text_status(&text);
    if (status == DT_OK && json_array_append_new(sentences, json_string(dt_text_at(&text))) != 0)
        status = dt_fail(DT_ENOMEM, "out of memory while writing what cannot be expressed");
    dt_text_fini(&text);
    return status;
}

static dt_status add_sentences(const json_t *rows, json_t **sentences)
{
    size_t i;
    json_t *row;
    *sentences = json_array();
    if (*sentences == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while writing what cannot be expressed");
    json_array_foreach(rows, i, row) DT_TRY(add_sentence(row, *sentences));
    return DT_OK;
}

/* The export alone is deployed, so it says what the answer says of itself. */
static dt_status add_stale(const struct dt_answer *answer, json_t *notes)
{
    size_t i;
    json_t *reason;
    json_array_foreach((json_t *)answer->stale_reasons, i, reason)
    {
        json_t *note = json_sprintf("the plan is stale: %s", json_string_value(reason));
        if (json_array_append_new(notes, note) != 0)
            return dt_fail(DT_ENOMEM, "out of memory while exporting");
    }
    return DT_OK;
}

static dt_status make(const struct dt_answer *answer, const char *engine, const char *form,
                      struct dittune_export *into)
{
    struct dt_export_request request = {.engine = engine};
    dt_answer_export(answer, &request);
    if (answer->plan == NULL)
        return dt_fail(DT_EUSAGE, "the answer has no plan to export");
    DT_TRY(dt_form_parse(form, &request.form));
    DT_TRY(dt_export(&request, &into->made));
    DT_TRY(add_stale(answer, into->made.notes));
    return add_sentences(into->made.unexpressed, &into->unexpressed);
}

int32_t dittune_export_new(const struct dittune_answer *answer, const char *engine,
                           const char *form, struct dittune_export **made, char *message,
                           size_t room)
{
    const struct dt_api_message to = {message, room};
    if (answer == NULL || engine == NULL || form == NULL || made == NULL)
        return dt_api_refuse(DITTUNE_USAGE, "answer, engine, form or made is NULL", to);
    struct dittune_export *new = calloc(1, sizeof *new);
    if (new == NULL)
        return dt_api_refuse(DITTUNE_NOMEM, "out of memory while exporting", to);
    dt_status status = make(dt_api_answer(answer), engine, form, new);
    if (status == DT_OK)
        *made = new;
    else
        dittune_export_free(new);
    return dt_api_done(status, to);
}

const char *dittune_export_text(const struct dittune_export *made)
{
    return made != NULL ? dt_text_at(&made->made.text) : NULL;
}

const char *dittune_export_unexpressed(const struct dittune_export *made, size_t i)
{
    return made != NULL ? json_string_value(json_array_get(made->unexpressed, i)) : NULL;
}

const char *dittune_export_note(const struct dittune_export *made, size_t i)
{
    return made != NULL ? json_string_value(json_array_get(made->made.notes, i)) : NULL;
}

void dittune_export_free(struct dittune_export *made)
{
    if (made == NULL)
        return;
    dt_export_fini(&made->made);
    json_decref(made->unexpressed);
    free(made);
}
