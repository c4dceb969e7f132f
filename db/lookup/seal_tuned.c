/* SPDX-License-Identifier: MIT */
/* A question about the entries that were tuned on an engine: its key has what was asked for, and nothing else. */
#include "db/lookup/query_int.h"
#include "model/cards/card.h"
#include "model/task.h"

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

dt_status dt_query_task(const struct dt_query *query, struct dt_task *task)
{
    struct dt_lengths lengths;
    int64_t height, width;
    *task = (struct dt_task){0};
    for (enum dt_task_field i = 0; i < DT_TASK_FIELDS; i++) {
        const char *value = query->values[i];
        enum dt_task_kind kind = dt_task_rows[i].kind;
        if (value == NULL)
            continue;
        if (kind >= DT_TASK_COUNT) {
            dt_task_set_count(task, i, strtoll(value, NULL, 10));
        } else if (kind == DT_TASK_SCALE) {
            dt_task_set_scale(task, i, strtod(value, NULL));
        } else if (kind == DT_TASK_LENGTHS) {
            DT_TRY(dt_lengths_parse(dt_ask_names[i], value, &lengths));
            dt_task_set_lengths(task, i, &lengths);
        } else {
            dt_task_set_text(task, i, i == DT_TASK_model ? dt_card_full_name(value) : value);
        }
    }
    DT_TRY(dt_query_size(query, &height, &width));
    dt_task_set_count(task, DT_TASK_width, width);
    dt_task_set_count(task, DT_TASK_height, height);
    return DT_OK;
}

dt_status dt_query_is_network(const struct dt_query *query, bool *is)
{
    const char *guidance = query->values[DT_ASK_guidance], *dtype = query->values[DT_ASK_dtype];
    const char *model = query->values[DT_ASK_model];
    struct dt_network network;
    struct dt_task task;
    enum dt_dtype known;
    DT_TRY(dt_query_task(query, &task));
    *is = dt_task_of_engine(&task) == NULL &&
          (guidance == NULL || strcmp(guidance, "0") == 0 || strcmp(guidance, "1") == 0) &&
          (dtype == NULL || dt_dtype_find("dtype", dtype, &known) == DT_OK);
    if (!*is || model == NULL)
        return DT_OK;
    dt_status status = dt_network_load(model, &network);
    *is = status == DT_OK;
    return status == DT_ENOMEM ? status : DT_OK;
}

/* The parts of a job that were asked for, new reference; not the data type, which is a part of the hard fingerprint. */
static dt_status make_job(const struct dt_query *query, json_t **job)
{
    struct dt_task task;
    DT_TRY(dt_query_task(query, &task));
    task.at[DT_TASK_dtype].given = false;
    DT_TRY(dt_task_json(&task, job));
    if (dt_query_number(query, DT_ASK_lossy, 0) == 0 ||
        json_object_set_new(*job, "lossy", json_integer(1)) == 0)
        return DT_OK;
    json_decref(*job);
    return dt_fail(DT_ENOMEM, "out of memory while making a query");
}

static dt_status name(const json_t *job, const char *engine, char title[], size_t room)
{
    struct dt_text text = {0};
    dt_text_add(&text, "%s", engine);
    if (json_object_size(job) > 0)
        dt_text_add(&text, ": ");
    dt_task_title(job, &text);
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
