/* SPDX-License-Identifier: MIT */
/* A question about the entries that were tuned on an engine: its key has what was asked for, and nothing else. */
#include "db/lookup/query_int.h"
#include "model/cards/card.h"

#include <stdlib.h>
#include <string.h>

static bool has(const struct dt_query *query, int ask)
{
    return query->values[ask] != NULL;
}

bool dt_query_is_tuned(const struct dt_query *query)
{
    const char *engine = query->values[DT_ASK_engine], *batch = query->values[DT_ASK_batch];
    bool several = batch != NULL && strchr(batch, ',') != NULL;
    return engine != NULL && strcmp(engine, "dittune") != 0 && !has(query, DT_ASK_worker) &&
           !has(query, DT_ASK_oversubscribe) && !several;
}

dt_status dt_query_is_network(const struct dt_query *query, bool *is)
{
    const char *guidance = query->values[DT_ASK_guidance], *dtype = query->values[DT_ASK_dtype];
    const char *model = query->values[DT_ASK_model];
    struct dt_network network;
    enum dt_dtype known;
    *is = !has(query, DT_ASK_revision) && !has(query, DT_ASK_frames) && !has(query, DT_ASK_steps) &&
          !has(query, DT_ASK_text_tokens) &&
          (guidance == NULL || strcmp(guidance, "0") == 0 || strcmp(guidance, "1") == 0) &&
          (dtype == NULL || dt_dtype_find("dtype", dtype, &known) == DT_OK);
    if (!*is || model == NULL)
        return DT_OK;
    dt_status status = dt_network_load(model, &network);
    *is = status == DT_OK;
    return status == DT_ENOMEM ? status : DT_OK;
}

static bool set_text(json_t *job, const char *name, const char *value)
{
    return value == NULL || json_object_set_new(job, name, json_string(value)) == 0;
}

static bool set_number(json_t *job, const char *name, int64_t value)
{
    return value <= 0 || json_object_set_new(job, name, json_integer(value)) == 0;
}

static bool set_scale(json_t *job, const char *name, const char *value)
{
    return value == NULL || json_object_set_new(job, name, json_real(strtod(value, NULL))) == 0;
}

/* In the one order that all jobs have. */
static bool set_lengths(json_t *job, const char *name, const char *value)
{
    struct dt_lengths lengths;
    char text[DT_LENGTHS_TEXT];
    if (value == NULL || dt_lengths_parse(name, value, &lengths) != DT_OK)
        return value == NULL;
    dt_lengths_text(&lengths, text);
    return set_text(job, name, text);
}

/* The parts of a job that were asked for, new reference. */
static dt_status make_job(const struct dt_query *query, json_t **job)
{
    int64_t height, width;
    DT_TRY(dt_query_size(query, &height, &width));
    const char *model = query->values[DT_ASK_model];
    json_t *made = json_object();
    if (set_text(made, "model", model != NULL ? dt_card_full_name(model) : NULL) &&
        set_text(made, "revision", query->values[DT_ASK_revision]) &&
        set_number(made, "width", width) && set_number(made, "height", height) &&
        set_number(made, "frames", dt_query_number(query, DT_ASK_frames, 0)) &&
        set_number(made, "steps", dt_query_number(query, DT_ASK_steps, 0)) &&
        set_lengths(made, "text_tokens", query->values[DT_ASK_text_tokens]) &&
        set_number(made, "batch", dt_query_number(query, DT_ASK_batch, 0)) &&
        set_number(made, "lossy", dt_query_number(query, DT_ASK_lossy, 0)) &&
        set_scale(made, "guidance", query->values[DT_ASK_guidance]) && made != NULL) {
        *job = made;
        return DT_OK;
    }
    json_decref(made);
    return dt_fail(DT_ENOMEM, "out of memory while making a query");
}

static dt_status name(const json_t *job, const char *engine, char title[], size_t room)
{
    struct dt_text text = {0};
    dt_text_add(&text, "%s", engine);
    if (json_object_size(job) > 0)
        dt_text_add(&text, ": ");
    dt_key_add_job(job, &text);
    size_t size = text.size < room ? text.size : room - 1;
    memcpy(title, dt_text_at(&text), size);
    title[size] = '\0';
    dt_text_clean(title);
    dt_status status = dt_text_status(&text);
    dt_text_fini(&text);
    return status;
}

dt_status dt_query_seal_tuned(const struct dt_query *query, struct dt_asked *asked)
{
    const char *engine = query->values[DT_ASK_engine];
    json_t *job = NULL;
    asked->foreign = true;
    asked->any = (struct dt_any){.worker = true,
                                 .space = true,
                                 .mode = !has(query, DT_ASK_mode),
                                 .dtype = !has(query, DT_ASK_dtype)};
    dt_query_limits(query, asked);
    DT_TRY(make_job(query, &job));
    const struct dt_key key = {.engine = engine,
                               .job = job,
                               .devices = asked->devices,
                               .objective = asked->objective,
                               .max_bytes = asked->max_bytes,
                               .max_latency_ns = asked->max_latency_ns};
    dt_status status = name(job, engine, asked->title, sizeof asked->title);
    if (status == DT_OK)
        status = dt_key_json(&key, &asked->key);
    json_decref(job);
    return status == DT_OK ? dt_query_hardware(query, asked) : status;
}
