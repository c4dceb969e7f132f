/* SPDX-License-Identifier: MIT */
/* A query's texts, and what they mean together: the workload, the key and hard fingerprint as a session would store them, the rules
 * for plans, and one text of everything, the key of cached answers. An engine's name makes it a question about the entries that were
 * tuned on the engine, too, whose key has what was asked for, and nothing else. */
#include "base/clock.h"
#include "db/canonical_int.h"
#include "db/lookup/lookup_int.h"
#include "db/snapshot.h"
#include "model/cards/card.h"
#include "model/task.h"
#include "space/dit/dit.h"
#include "space/json/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE_MAX = 16384,
    DEVICES_MAX = 1024,
    BATCH_MAX = 65536,
    TOKENS_MAX = 1 << 20,
    COUNT_MAX = 1 << 20
};

enum {
#define DT_ASK(name, kind) DT_ASK_##name,
#include "db/lookup/asks.def"
#undef DT_ASK
    DT_ASKS
};

static const char *const ask_names[] = {
#define DT_ASK(name, kind) #name,
#include "db/lookup/asks.def"
#undef DT_ASK
    NULL};

/* ---- values */

static dt_status whole(const char *name, const char *text, int64_t low, int64_t high, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = text[0] >= '0' && text[0] <= '9' ? strtoll(text, &end, 10) : -1;
    if (value < low || value > high || errno != 0 || *end != '\0')
        return dt_fail(DT_EUSAGE, "%s is '%.40s', expected a whole number of %lld to %lld", name,
                       text, (long long)low, (long long)high);
    *out = value;
    return DT_OK;
}

/* "512" or "512x768": width x height, as --size. */
static dt_status read_size(const char *text, int64_t *width, int64_t *height)
{
    char first[16];
    const char *by = strchr(text, 'x');
    size_t n = by != NULL ? (size_t)(by - text) : strlen(text);
    if (n >= sizeof first)
        return dt_fail(DT_EUSAGE, "size is '%.40s', expected pixels such as 512 or 512x768", text);
    memcpy(first, text, n);
    first[n] = '\0';
    DT_TRY(whole("size", first, 1, SIDE_MAX, width));
    *height = *width;
    return by != NULL ? whole("size", by + 1, 1, SIDE_MAX, height) : DT_OK;
}

static int ascending(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static dt_status read_batches(const char *text, int batches[], int *count)
{
    int n = 0;
    char word[16];
    for (const char *at = text; at != NULL; n++) {
        const char *comma = strchr(at, ',');
        size_t size = comma != NULL ? (size_t)(comma - at) : strlen(at);
        int64_t value = 0;
        if (n == DT_BATCHES_MAX || size >= sizeof word)
            return dt_fail(DT_EUSAGE, "batch is '%.40s', expected up to %d numbers such as 1,2,4",
                           text, DT_BATCHES_MAX);
        memcpy(word, at, size);
        word[size] = '\0';
        DT_TRY(whole("batch", word, 1, BATCH_MAX, &value));
        batches[n] = (int)value;
        for (int i = 0; i < n; i++)
            if (batches[i] == (int)value)
                return dt_fail(DT_EUSAGE, "batch is '%.40s', which names %d twice", text,
                               (int)value);
        at = comma != NULL ? comma + 1 : NULL;
    }
    qsort(batches, (size_t)n, sizeof batches[0], ascending);
    *count = n;
    return DT_OK;
}

static dt_status check_any(const char *name, const char *value)
{
    (void)name;
    (void)value;
    return DT_OK;
}

static dt_status check_TEXT(const char *name, const char *value)
{
    if (strlen(value) < 1024)
        return DT_OK;
    return dt_fail(DT_EUSAGE, "%s has %zu bytes, the limit is 1023", name, strlen(value));
}

static dt_status check_size(const char *name, const char *value)
{
    int64_t height, width;
    (void)name;
    return read_size(value, &width, &height);
}

static dt_status check_SIDE(const char *name, const char *value)
{
    int64_t number;
    return whole(name, value, 1, SIDE_MAX, &number);
}

static dt_status check_switch(const char *name, const char *value)
{
    int64_t number;
    return whole(name, value, 0, 1, &number);
}

static dt_status check_COUNT(const char *name, const char *value)
{
    int64_t number;
    return whole(name, value, 1, COUNT_MAX, &number);
}

static dt_status check_LENGTHS(const char *name, const char *value)
{
    struct dt_lengths lengths;
    return dt_lengths_parse(name, value, &lengths);
}

/* Of the built-in network: 0 or 1 (seal_builtin). */
static dt_status check_SCALE(const char *name, const char *value)
{
    char *end = NULL;
    double number = value[0] >= '0' && value[0] <= '9' ? strtod(value, &end) : -1;
    if (number >= 0 && number < 1e9 && end != NULL && *end == '\0')
        return DT_OK;
    return dt_fail(DT_EUSAGE, "%s is '%.40s', expected 0 to 1, or an engine's scale such as 3.5",
                   name, value);
}

static dt_status check_devices(const char *name, const char *value)
{
    int64_t number;
    return whole(name, value, 1, DEVICES_MAX, &number);
}

static dt_status check_limit(const char *name, const char *value)
{
    int64_t number;
    return whole(name, value, 1, INT64_MAX / 2, &number);
}

static dt_status check_BATCH(const char *name, const char *value)
{
    int batches[DT_BATCHES_MAX], n;
    (void)name;
    return read_batches(value, batches, &n);
}

static dt_status check_DTYPE(const char *name, const char *value)
{
    enum dt_dtype dtype;
    if (strcmp(value, "float16") == 0) /* of foreign workers */
        return DT_OK;
    return dt_dtype_find(name, value, &dtype);
}

static dt_status check_objective(const char *name, const char *value)
{
    static const char *const known[] = {"latency", "throughput", "cost", NULL};
    for (int i = 0; known[i] != NULL; i++)
        if (strcmp(known[i], value) == 0)
            return DT_OK;
    if (strncmp(value, "max:", 4) == 0 && value[4] != '\0')
        return DT_OK;
    return dt_fail(DT_EUSAGE, "%s is '%.40s', expected latency, throughput, cost or max:METRIC",
                   name, value);
}

static dt_status check_value(int ask, const char *value)
{
    static dt_status (*const checks[])(const char *name, const char *value) = {
#define DT_ASK(name, kind) check_##kind,
#include "db/lookup/asks.def"
#undef DT_ASK
    };
    if (!dt_text_whole(value))
        return dt_fail(DT_EUSAGE, "%s is '%.80s', which is not UTF-8", ask_names[ask], value);
    return checks[ask](ask_names[ask], value);
}

static int64_t number_of(const struct dt_query *query, int ask, int64_t fallback)
{
    return query->values[ask] != NULL ? strtoll(query->values[ask], NULL, 10) : fallback;
}

static const char *text_of(const struct dt_query *query, int ask, const char *fallback)
{
    return query->values[ask] != NULL ? query->values[ask] : fallback;
}

static dt_status size_of(const struct dt_query *query, int64_t *height, int64_t *width)
{
    int64_t rows = 0, columns = 0;
    if (query->values[DT_ASK_size] != NULL)
        DT_TRY(read_size(query->values[DT_ASK_size], &columns, &rows));
    *height = number_of(query, DT_ASK_height, rows);
    *width = number_of(query, DT_ASK_width, columns);
    return DT_OK;
}

static void set_limits(const struct dt_query *query, struct dt_asked *asked)
{
    int usual = query->cores < DEVICES_MAX ? query->cores : DEVICES_MAX;
    asked->devices = (int)number_of(query, DT_ASK_devices, usual);
    asked->objective = text_of(query, DT_ASK_objective, "latency");
    asked->max_bytes = number_of(query, DT_ASK_max_bytes, 0);
    asked->max_latency_ns = number_of(query, DT_ASK_max_latency_ns, 0);
    asked->now_ns = number_of(query, DT_ASK_now_ns, 0);
}

static dt_status set_hardware(const struct dt_query *query, struct dt_asked *asked)
{
    const char *dtype = asked->foreign ? text_of(query, DT_ASK_dtype, dt_dtype_text(DT_FLOAT32))
                                       : dt_dtype_text(asked->workload.dtype);
    const char *own = asked->foreign ? "foreign" : "dittune";
    json_t *hard = dt_json_copy(query->machine_hard);
    asked->hard = hard;
    if (hard == NULL || json_object_set_new(hard, "dtype", json_string(dtype)) != 0 ||
        json_object_set_new(hard, "engine", json_string(text_of(query, DT_ASK_engine, own))) != 0 ||
        json_object_set_new(hard, "mode", json_string(text_of(query, DT_ASK_mode, "eager"))) != 0)
        return dt_fail(DT_ENOMEM, "out of memory while making a query");
    return DT_OK;
}

/* ---- about the built-in network, or a worker */

static dt_status set_side(const struct dt_network *network, const char *name, int64_t pixels,
                          int *side)
{
    int step = DT_PIXELS_A_CELL * network->patch;
    if (pixels % step != 0)
        return dt_fail(DT_EUSAGE,
                       "%s %lld is not a multiple of %d (8 x the patch of %s); near it: %lld", name,
                       (long long)pixels, step, network->name,
                       (long long)(pixels < step ? step : (pixels + step / 2) / step * step));
    *side = (int)(pixels / DT_PIXELS_A_CELL);
    return DT_OK;
}

static dt_status make_workload(const struct dt_query *query, struct dt_workload *workload)
{
    int64_t guidance = 0;
    DT_TRY(whole("guidance", text_of(query, DT_ASK_guidance, "1"), 0, 1, &guidance));
    *workload = (struct dt_workload){.guidance = guidance != 0, .seed = 1, .sampler_steps = 50};
    const struct dt_gpus *gpus = query->gpus.count > 0 ? &query->gpus : NULL;
    struct dt_dit_usual usual = dt_dit_usual(gpus);
    DT_TRY(dt_network_load(text_of(query, DT_ASK_model, usual.model), &workload->network));
    workload->dtype = dt_dit_usual_dtype(&workload->network, gpus);
    if (query->values[DT_ASK_dtype] != NULL)
        DT_TRY(dt_dtype_find("dtype", query->values[DT_ASK_dtype], &workload->dtype));
    int64_t height = (int64_t)workload->network.latent_size * DT_PIXELS_A_CELL, width = height;
    if (query->values[DT_ASK_model] == NULL && usual.size > 0)
        height = width = usual.size;
    int64_t rows, columns;
    DT_TRY(size_of(query, &rows, &columns));
    height = rows > 0 ? rows : height;
    width = columns > 0 ? columns : width;
    DT_TRY(set_side(&workload->network, "height", height, &workload->height));
    DT_TRY(set_side(&workload->network, "width", width, &workload->width));
    if (dt_workload_tokens(workload) > TOKENS_MAX)
        return dt_fail(DT_EUSAGE, "%lld x %lld pixels are %d tokens, at most %d are allowed",
                       (long long)width, (long long)height, dt_workload_tokens(workload),
                       TOKENS_MAX);
    return DT_OK;
}

static dt_status seal_builtin(const struct dt_query *query, struct dt_asked *asked)
{
    struct dt_workload *workload = &asked->workload;
    if (query->values[DT_ASK_workload] != NULL || query->values[DT_ASK_space] != NULL)
        return dt_fail(DT_EUSAGE, "a query names a workload or a space only with a worker");
    DT_TRY(make_workload(query, workload));
    DT_TRY(read_batches(text_of(query, DT_ASK_batch, "1"), asked->batches, &asked->batch_count));
    snprintf(asked->title, sizeof asked->title, "%s, %d x %d px (%d tokens), %s, %s",
             workload->network.name, workload->width * DT_PIXELS_A_CELL,
             workload->height * DT_PIXELS_A_CELL, dt_workload_tokens(workload),
             workload->guidance ? "guided" : "not guided", dt_dtype_text(workload->dtype));
    bool none = workload->dtype != DT_FLOAT32 && !query->bfloat16;
    const struct dt_limits limits = {
        .gpus = query->gpus.count > 0 ? &query->gpus : NULL,
        .cores = query->cores,
        .hosts = query->hosts,
        .slots = query->hosts > 0 ? query->cores / query->hosts : 0,
        .devices = asked->devices,
        .oversubscribe = number_of(query, DT_ASK_oversubscribe, 0) != 0,
        .tune_nccl = true,
        .lossy = number_of(query, DT_ASK_lossy, 0) != 0,
        .no_dtype = none,
        .memory_bytes = query->memory_bytes * (query->hosts > 1 ? query->hosts : 1),
        .max_bytes = asked->max_bytes,
        .batches = asked->batches,
        .batch_count = asked->batch_count};
    if (limits.lossy)
        DT_TRY(dt_dit_lossy(workload, limits.gpus));
    return dt_dit_rules(workload, &limits, &asked->rules);
}

static bool is_id(const char *text)
{
    return strlen(text) == DT_KEY_ID_SIZE - 1 &&
           strspn(text, "0123456789abcdef") == DT_KEY_ID_SIZE - 1;
}

static dt_status read_space(const char *text, struct dt_asked *asked, char id[DT_KEY_ID_SIZE])
{
    json_t *root = NULL;
    DT_TRY(dt_json_parse(text, strlen(text), "the query's space", &root));
    dt_status status = dt_space_rules_from_json(root, "the query's space", &asked->rules);
    if (status == DT_OK)
        status = dt_key_space_of(asked->rules, id);
    json_decref(root);
    return status;
}

static dt_status seal_foreign(const struct dt_query *query, struct dt_asked *asked,
                              char space[DT_KEY_ID_SIZE])
{
    const char *text = query->values[DT_ASK_space];
    if (query->values[DT_ASK_workload] == NULL)
        return dt_fail(DT_EUSAGE, "a query that names a worker names its workload, too");
    asked->any = (struct dt_any){.space = text == NULL,
                                 .engine = query->values[DT_ASK_engine] == NULL,
                                 .mode = query->values[DT_ASK_mode] == NULL};
    snprintf(asked->title, sizeof asked->title, "%.100s: %.140s", query->values[DT_ASK_worker],
             query->values[DT_ASK_workload]);
    if (text == NULL)
        return DT_OK;
    if (!is_id(text))
        return read_space(text, asked, space);
    memcpy(space, text, DT_KEY_ID_SIZE);
    return DT_OK;
}

/* *job: new reference, or NULL. */
static dt_status read_job(const struct dt_query *query, json_t **job)
{
    const char *text = query->values[DT_ASK_job];
    *job = NULL;
    if (text == NULL)
        return DT_OK;
    if (query->values[DT_ASK_worker] == NULL)
        return dt_fail(DT_EUSAGE, "a query names a job only with a worker");
    DT_TRY(dt_json_parse(text, strlen(text), "the query's job", job));
    if (json_is_object(*job))
        return DT_OK;
    json_decref(*job);
    *job = NULL;
    return dt_fail(DT_EUSAGE, "the query's job is not an object");
}

static dt_status seal_fixed(struct dt_asked *asked)
{
    const char *field;
    json_t *value;
    json_object_foreach(asked->key, field, value)
    {
        struct dt_text text = {0};
        if (asked->fixed.count == DT_FIXED_MAX)
            return dt_fail(DT_EUNSUP, "a key has more than %d fields", DT_FIXED_MAX);
        dt_status status = dt_json_text(value, &text);
        if (status == DT_OK)
            status = dt_text_status(&text);
        if (status != DT_OK) {
            dt_text_fini(&text);
            return status;
        }
        snprintf(asked->fixed.name[asked->fixed.count], sizeof asked->fixed.name[0], "\"%s\"",
                 field);
        asked->fixed.value[asked->fixed.count++] = dt_text_take(&text);
    }
    return DT_OK;
}

/* ---- about the entries that were tuned on an engine */

static bool has(const struct dt_query *query, int ask)
{
    return query->values[ask] != NULL;
}

static bool is_tuned(const struct dt_query *query)
{
    const char *engine = query->values[DT_ASK_engine], *batch = query->values[DT_ASK_batch];
    bool several = batch != NULL && strchr(batch, ',') != NULL;
    return engine != NULL && strcmp(engine, "dittune") != 0 && !has(query, DT_ASK_worker) &&
           !has(query, DT_ASK_oversubscribe) && !several;
}

static dt_status task_of(const struct dt_query *query, struct dt_task *task)
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
            DT_TRY(dt_lengths_parse(ask_names[i], value, &lengths));
            dt_task_set_lengths(task, i, &lengths);
        } else {
            dt_task_set_text(task, i, i == DT_TASK_model ? dt_card_full_name(value) : value);
        }
    }
    DT_TRY(size_of(query, &height, &width));
    dt_task_set_count(task, DT_TASK_width, width);
    dt_task_set_count(task, DT_TASK_height, height);
    return DT_OK;
}

static dt_status find_network(const struct dt_query *query, bool *is)
{
    const char *guidance = query->values[DT_ASK_guidance], *dtype = query->values[DT_ASK_dtype];
    const char *model = query->values[DT_ASK_model];
    struct dt_network network;
    struct dt_task task;
    enum dt_dtype known;
    DT_TRY(task_of(query, &task));
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
    DT_TRY(task_of(query, &task));
    task.at[DT_TASK_dtype].given = false;
    DT_TRY(dt_task_json(&task, job));
    if (number_of(query, DT_ASK_lossy, 0) == 0 ||
        json_object_set_new(*job, "lossy", json_integer(1)) == 0)
        return DT_OK;
    json_decref(*job);
    return dt_fail(DT_ENOMEM, "out of memory while making a query");
}

static dt_status put_title(const json_t *job, const char *engine, char title[], size_t room)
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

static dt_status seal_tuned(const struct dt_query *query, struct dt_asked *asked)
{
    const char *engine = query->values[DT_ASK_engine];
    json_t *job = NULL;
    asked->foreign = true;
    asked->any = (struct dt_any){.worker = true,
                                 .space = true,
                                 .mode = !has(query, DT_ASK_mode),
                                 .dtype = !has(query, DT_ASK_dtype)};
    set_limits(query, asked);
    DT_TRY(make_job(query, &job));
    const struct dt_key key = {.engine = engine,
                               .job = job,
                               .devices = asked->devices,
                               .objective = asked->objective,
                               .max_bytes = asked->max_bytes,
                               .max_latency_ns = asked->max_latency_ns};
    dt_status status = put_title(job, engine, asked->title, sizeof asked->title);
    if (status == DT_OK)
        status = dt_key_json(&key, &asked->key);
    json_decref(job);
    return status == DT_OK ? set_hardware(query, asked) : status;
}

/* ---- both */

/* The text contains the whole space, since its id is only a hash. */
static dt_status seal_text(const struct dt_query *query, struct dt_asked *asked)
{
    struct dt_text text = {0};
    int libraries = 0;
    for (int i = 0; i < DT_ATTENTIONS; i++)
        libraries |= (int)query->gpus.attention[i] << i;
    json_t *all = json_pack(
        "{s:O, s:O, s:O, s:[i,I,b,I,i,i,b], s:s?, s:s?}", "key", asked->key, "hard", asked->hard,
        "soft", query->soft, "limits", query->cores, (json_int_t)query->memory_bytes,
        (int)query->bfloat16, (json_int_t)query->gpus.shared_bytes, query->gpus.nccl, libraries,
        (int)query->gpus.capture, "oversubscribe", query->values[DT_ASK_oversubscribe], "space",
        query->values[DT_ASK_space]);
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while making a query");
    dt_status status = dt_canonical_add(all, &text);
    json_decref(all);
    asked->text_size = text.size;
    if (status == DT_OK)
        asked->text = dt_text_take(&text);
    dt_text_fini(&text);
    return status;
}

static dt_status seal(const struct dt_query *query, struct dt_asked *asked)
{
    char space[DT_KEY_ID_SIZE] = "";
    struct dt_task task;
    DT_TRY(task_of(query, &task));
    if (dt_task_of_engine(&task) != NULL) /* a worker says it by itself */
        return dt_fail(DT_EUSAGE, "a query names %s only with an engine", dt_task_of_engine(&task));
    asked->foreign = query->values[DT_ASK_worker] != NULL;
    set_limits(query, asked);
    DT_TRY(asked->foreign ? seal_foreign(query, asked, space) : seal_builtin(query, asked));
    json_t *job = NULL;
    DT_TRY(read_job(query, &job));
    const struct dt_key key = {.workload = asked->foreign ? NULL : &asked->workload,
                               .job = job,
                               .batches = asked->batches,
                               .batch_count = asked->batch_count,
                               .worker = query->values[DT_ASK_worker],
                               .program = query->values[DT_ASK_workload],
                               .space = space[0] != '\0' ? space : NULL,
                               .devices = asked->devices,
                               .objective = asked->objective,
                               .max_bytes = asked->max_bytes,
                               .max_latency_ns = asked->max_latency_ns,
                               .lossy = number_of(query, DT_ASK_lossy, 0) != 0};
    dt_status status = dt_key_json(&key, &asked->key);
    json_decref(job);
    DT_TRY(status);
    DT_TRY(seal_fixed(asked));
    DT_TRY(set_hardware(query, asked));
    DT_TRY(dt_store_id(asked->key, asked->hard, &asked->id));
    return seal_text(query, asked);
}

static void drop(struct dt_asked *asked)
{
    dt_space_free(asked->rules);
    json_decref(asked->key);
    json_decref(asked->hard);
    for (int i = 0; i < asked->fixed.count; i++)
        free(asked->fixed.value[i]);
    free(asked->text);
    *asked = (struct dt_asked){0};
}

static void unseal(struct dt_query *query)
{
    drop(&query->asked);
    drop(&query->tuned);
    query->sealed = false;
}

dt_status dt_query_seal(struct dt_query *query)
{
    if (query->sealed)
        return DT_OK;
    dt_status status = DT_OK;
    query->is_tuned = is_tuned(query);
    query->is_network = true;
    if (query->is_tuned)
        status = find_network(query, &query->is_network);
    if (status == DT_OK && query->is_tuned)
        status = seal_tuned(query, &query->tuned);
    if (status == DT_OK && query->is_network)
        status = seal(query, &query->asked);
    if (status != DT_OK) {
        unseal(query);
        return status;
    }
    query->sealed = true;
    return DT_OK;
}

/* ---- a query */

static dt_status no_memory(void)
{
    return dt_fail(DT_ENOMEM, "out of memory while making a query");
}

dt_status dt_query_new(const struct dt_machine *machine, struct dt_query **query)
{
    struct dt_query *made = calloc(1, sizeof *made);
    if (made != NULL)
        made->values = calloc(DT_ASKS, sizeof *made->values);
    if (made == NULL || made->values == NULL) {
        free(made);
        return no_memory();
    }
    made->machine_hard = json_incref(machine->hard);
    made->soft = json_incref(machine->soft);
    made->cores = machine->cores;
    made->hosts = machine->hosts;
    made->gpus = machine->gpus;
    made->memory_bytes = machine->memory_bytes;
    made->bfloat16 = machine->bfloat16;
    *query = made;
    return DT_OK;
}

void dt_query_free(struct dt_query *query)
{
    if (query == NULL)
        return;
    unseal(query);
    for (int i = 0; i < DT_ASKS; i++)
        free(query->values[i]);
    free(query->values);
    json_decref(query->machine_hard);
    json_decref(query->soft);
    free(query);
}

static int find(const char *name)
{
    for (int i = 0; i < DT_ASKS; i++)
        if (strcmp(ask_names[i], name) == 0)
            return i;
    return -1;
}

static dt_status unknown(const char *name)
{
    const char *near = dt_json_nearest(name, ask_names);
    if (near != NULL)
        return dt_fail(DT_EUSAGE, "a query has no '%.80s', did you mean '%s'?", name, near);
    return dt_fail(DT_EUSAGE, "a query has no '%.80s': see db/lookup/lookup.h", name);
}

dt_status dt_query_set(struct dt_query *query, const char *name, const char *value)
{
    char *copy = NULL;
    int at = find(name);
    if (at < 0)
        return unknown(name);
    if (strlen(value) >= DT_QUERY_VALUE)
        return dt_fail(DT_EUSAGE, "%s has %zu bytes, the limit is %d", name, strlen(value),
                       DT_QUERY_VALUE - 1);
    if (value[0] != '\0') {
        DT_TRY(check_value(at, value));
        copy = strdup(value);
        if (copy == NULL)
            return no_memory();
    }
    unseal(query);
    free(query->values[at]);
    query->values[at] = copy;
    return DT_OK;
}

/* The question about the built-in network or a worker; where there is none, that about the entries of an engine. */
static const struct dt_asked *asked_of(const struct dt_query *query)
{
    return query->is_network ? &query->asked : &query->tuned;
}

const json_t *dt_query_key(const struct dt_query *query)
{
    return asked_of(query)->key;
}

const json_t *dt_query_hard(const struct dt_query *query)
{
    return asked_of(query)->hard;
}

const char *dt_query_title(const struct dt_query *query)
{
    return asked_of(query)->title;
}

const char *dt_query_title_of(const struct dt_query *query, const struct dt_answer *answer)
{
    return answer->key == query->tuned.key ? query->tuned.title : dt_query_title(query);
}

int64_t dt_query_now(const struct dt_query *query)
{
    return query->asked.now_ns > 0 ? query->asked.now_ns : dt_clock_wall_ns();
}
