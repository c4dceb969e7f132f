/* SPDX-License-Identifier: MIT */
/* A query's values, read once as they are set, and what they mean together: the workload, the key
 * and hard fingerprint as a session would store them, the rules for plans, and the
 * basis by which cached answers are found. An engine's name makes it a question about the entries
 * that were tuned on the engine, too, whose key has what was asked for, and nothing else. */
#include "db/engines/engines.h"
#include "db/lookup/lookup_int.h"
#include "db/snapshot.h"
#include "model/cards/card.h"
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
    COUNT_MAX = 1 << 20,
    VALUE_MAX = DT_JSON_MAX_BYTES /* bytes of a value, a worker's space too */
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

enum ask_kind {
    ASK_TEXT,
    ASK_DTYPE,
    ASK_LENGTHS,
    ASK_SCALE,
    ASK_COUNT,
    ASK_SIDE,
    ASK_BATCH,
    ASK_SIZE,
    ASK_SWITCH,
    ASK_DEVICES,
    ASK_LIMIT,
    ASK_OBJECTIVE,
    ASK_DOCUMENT,
    ASK_KINDS
};

static const enum ask_kind ask_kinds[] = {
#define DT_ASK(name, kind) ASK_##kind,
#include "db/lookup/asks.def"
#undef DT_ASK
};

/* Kinds that are whole numbers, and their range. */
static const struct {
    int64_t low, high;
} ranges[ASK_KINDS] = {
    [ASK_COUNT] = {1, COUNT_MAX},     [ASK_SIDE] = {1, SIDE_MAX},       [ASK_SWITCH] = {0, 1},
    [ASK_DEVICES] = {1, DEVICES_MAX}, [ASK_LIMIT] = {1, INT64_MAX / 2},
};

/* ---- values */

static dt_status number_read(const char *name, const char *text, int64_t low, int64_t high,
                             int64_t *out)
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
static dt_status size_read(const char *text, struct dt_query *query)
{
    char first[16];
    const char *by = strchr(text, 'x');
    size_t n = by != NULL ? (size_t)(by - text) : strlen(text);
    int64_t width, height;
    if (n >= sizeof first)
        return dt_fail(DT_EUSAGE, "size is '%.40s', expected pixels such as 512 or 512x768", text);
    memcpy(first, text, n);
    first[n] = '\0';
    DT_TRY(number_read("size", first, 1, SIDE_MAX, &width));
    height = width;
    if (by != NULL)
        DT_TRY(number_read("size", by + 1, 1, SIDE_MAX, &height));
    query->width = width;
    query->height = height;
    return DT_OK;
}

static int compare_ascending(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static dt_status batches_read(const char *text, struct dt_query *query)
{
    int batches[DT_BATCHES_MAX], n = 0;
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
        DT_TRY(number_read("batch", word, 1, BATCH_MAX, &value));
        batches[n] = (int)value;
        for (int i = 0; i < n; i++)
            if (batches[i] == (int)value)
                return dt_fail(DT_EUSAGE, "batch is '%.40s', which names %d twice", text,
                               (int)value);
        at = comma != NULL ? comma + 1 : NULL;
    }
    qsort(batches, (size_t)n, sizeof batches[0], compare_ascending);
    memcpy(query->batches, batches, (size_t)n * sizeof batches[0]);
    query->batch_count = n;
    return DT_OK;
}

/* Reads the scale of the built-in network: 0 or 1 (workload_make). */
static dt_status scale_read(const char *name, const char *text, double *scale)
{
    char *end = NULL;
    double number = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : -1;
    if (!(number >= 0 && number < 1e9 && end != NULL && *end == '\0'))
        return dt_fail(DT_EUSAGE,
                       "%s is '%.40s', expected 0 to 1, or an engine's scale such as 3.5", name,
                       text);
    *scale = number;
    return DT_OK;
}

static dt_status objective_check(const char *name, const char *text)
{
    static const char *const known[] = {"latency", "throughput", "cost", NULL};
    if (dt_text_index(text, known) >= 0 || (strncmp(text, "max:", 4) == 0 && text[4] != '\0'))
        return DT_OK;
    return dt_fail(DT_EUSAGE, "%s is '%.40s', expected latency, throughput, cost or max:METRIC",
                   name, text);
}

/* Refuses what is never valid. Sizes and batches are set in the query. */
static dt_status value_read(int ask, const char *text, struct dt_task_value *value,
                            struct dt_query *query)
{
    const char *name = ask_names[ask];
    enum ask_kind kind = ask_kinds[ask];
    enum dt_dtype dtype;
    if (!dt_text_whole(text))
        return dt_fail(DT_EUSAGE, "%s is '%.80s', which is not UTF-8", name, text);
    if (ranges[kind].high > 0)
        return number_read(name, text, ranges[kind].low, ranges[kind].high, &value->count);
    switch (kind) {
    case ASK_SIZE:
        return size_read(text, query);
    case ASK_BATCH:
        DT_TRY(batches_read(text, query));
        value->count = query->batches[0];
        return DT_OK;
    case ASK_LENGTHS:
        return dt_lengths_parse(name, text, &value->lengths);
    case ASK_SCALE:
        return scale_read(name, text, &value->scale);
    case ASK_DTYPE: /* float16 is of foreign workers */
        return strcmp(text, "float16") == 0 ? DT_OK : dt_dtype_find(name, text, &dtype);
    case ASK_OBJECTIVE:
        return objective_check(name, text);
    case ASK_TEXT:
        if (strlen(text) >= 1024)
            return dt_fail(DT_EUSAGE, "%s has %zu bytes, the limit is 1023", name, strlen(text));
        return DT_OK;
    default:
        return DT_OK;
    }
}

static bool is_given(const struct dt_query *query, int ask)
{
    return query->values[ask].given;
}

static int64_t number_of(const struct dt_query *query, int ask, int64_t fallback)
{
    return is_given(query, ask) ? query->values[ask].count : fallback;
}

static const char *text_of(const struct dt_query *query, int ask, const char *fallback)
{
    return is_given(query, ask) ? query->values[ask].text : fallback;
}

/* Makes the task of an engine's query; texts are the query's. */
static void task_of(const struct dt_query *query, struct dt_task *task)
{
    memcpy(task->at, query->values, sizeof task->at);
    if (is_given(query, DT_ASK_model))
        dt_task_set_text(task, DT_TASK_model, dt_card_full_name(text_of(query, DT_ASK_model, "")));
    if (is_given(query, DT_ASK_size) && !is_given(query, DT_ASK_width))
        dt_task_set_count(task, DT_TASK_width, query->width);
    if (is_given(query, DT_ASK_size) && !is_given(query, DT_ASK_height))
        dt_task_set_count(task, DT_TASK_height, query->height);
}

static void limits_set(const struct dt_query *query, struct dt_asked *asked)
{
    int usual = query->cores < DEVICES_MAX ? query->cores : DEVICES_MAX;
    asked->devices = (int)number_of(query, DT_ASK_devices, usual);
    asked->objective = text_of(query, DT_ASK_objective, "latency");
    asked->max_bytes = number_of(query, DT_ASK_max_bytes, 0);
    asked->max_latency_ns = number_of(query, DT_ASK_max_latency_ns, 0);
    asked->reserve_bytes = number_of(query, DT_ASK_reserve_bytes, 0);
    asked->memory_bytes = query->memory_bytes;
    asked->hosts = query->hosts;
    asked->on_gpus = query->gpus.count > 0;
    asked->now_ns = number_of(query, DT_ASK_now_ns, 0);
    asked->lossy = number_of(query, DT_ASK_lossy, 0) != 0;
    asked->soft = query->soft;
}

static dt_status hardware_set(const struct dt_query *query, struct dt_asked *asked)
{
    const char *dtype = asked->foreign ? text_of(query, DT_ASK_dtype, dt_dtype_text(DT_FLOAT32))
                                       : dt_dtype_text(asked->workload.dtype);
    const char *own = asked->foreign ? "foreign" : "dittune";
    json_t *hard = dt_json_copy(query->machine_hard);
    asked->hard = hard;
    if (hard == NULL || json_object_set_new(hard, "dtype", json_string(dtype)) != 0 ||
        json_object_set_new(hard, "engine", json_string(text_of(query, DT_ASK_engine, own))) != 0 ||
        json_object_set_new(hard, "mode", json_string(text_of(query, DT_ASK_mode, "eager"))) != 0)
        return dt_no_memory("while making a query");
    return DT_OK;
}

/* ---- about the built-in network, or a worker */

static dt_status side_set(const struct dt_network *network, const char *name, int64_t pixels,
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

/* The built-in network's guidance is yes or no. */
static bool is_switch(const struct dt_query *query)
{
    double scale = query->values[DT_ASK_guidance].scale;
    return !is_given(query, DT_ASK_guidance) || scale == 0 || scale == 1;
}

static dt_status workload_make(const struct dt_query *query, const struct dt_task *task,
                               struct dt_workload *workload)
{
    if (!is_switch(query))
        return dt_fail(DT_EUSAGE, "guidance is '%.40s', expected a whole number of 0 to 1",
                       text_of(query, DT_ASK_guidance, ""));
    bool guided = !is_given(query, DT_ASK_guidance) || task->at[DT_TASK_guidance].scale > 0;
    *workload = (struct dt_workload){.guidance = guided, .seed = 1, .sampler_steps = 50};
    const struct dt_gpus *gpus = query->gpus.count > 0 ? &query->gpus : NULL;
    struct dt_dit_usual usual = dt_dit_usual(gpus);
    DT_TRY(dt_network_load(text_of(query, DT_ASK_model, usual.model), &workload->network));
    workload->dtype = dt_dit_usual_dtype(&workload->network, gpus);
    if (is_given(query, DT_ASK_dtype))
        DT_TRY(dt_dtype_find("dtype", text_of(query, DT_ASK_dtype, ""), &workload->dtype));
    int64_t side = (int64_t)workload->network.latent_size * DT_PIXELS_A_CELL;
    if (!is_given(query, DT_ASK_model) && usual.size > 0)
        side = usual.size;
    const struct dt_task_value *width = &task->at[DT_TASK_width];
    const struct dt_task_value *height = &task->at[DT_TASK_height];
    int64_t columns = width->given ? width->count : side;
    int64_t rows = height->given ? height->count : side;
    DT_TRY(side_set(&workload->network, "height", rows, &workload->height));
    DT_TRY(side_set(&workload->network, "width", columns, &workload->width));
    if (dt_workload_tokens(workload) > TOKENS_MAX)
        return dt_fail(DT_EUSAGE, "%lld x %lld pixels are %d tokens, at most %d are allowed",
                       (long long)columns, (long long)rows, dt_workload_tokens(workload),
                       TOKENS_MAX);
    return DT_OK;
}

static dt_status builtin_seal(const struct dt_query *query, const struct dt_task *task,
                              struct dt_asked *asked)
{
    struct dt_workload *workload = &asked->workload;
    if (is_given(query, DT_ASK_workload) || is_given(query, DT_ASK_space))
        return dt_fail(DT_EUSAGE, "a query names a workload or a space only with a worker");
    DT_TRY(workload_make(query, task, workload));
    asked->batch_count = is_given(query, DT_ASK_batch) ? query->batch_count : 1;
    asked->batches[0] = 1;
    if (is_given(query, DT_ASK_batch))
        memcpy(asked->batches, query->batches, sizeof asked->batches);
    snprintf(asked->title, sizeof asked->title, "%s, %d x %d px (%d tokens), %s, %s",
             workload->network.name, workload->width * DT_PIXELS_A_CELL,
             workload->height * DT_PIXELS_A_CELL, dt_workload_tokens(workload),
             workload->guidance ? "guided" : "not guided", dt_dtype_text(workload->dtype));
    const struct dt_limits limits = {
        .gpus = query->gpus.count > 0 ? &query->gpus : NULL,
        .cores = query->cores,
        .hosts = query->hosts,
        .slots = query->hosts > 0 ? query->cores / query->hosts : 0,
        .devices = asked->devices,
        .replicas =
            strcmp(asked->objective, "latency") != 0 && asked->devices > 1 && query->hosts == 0,
        .oversubscribe = number_of(query, DT_ASK_oversubscribe, 0) != 0,
        .tune_nccl = true,
        .lossy = asked->lossy,
        .no_dtype = workload->dtype != DT_FLOAT32 && !query->bfloat16,
        .memory_bytes = query->memory_bytes * (query->hosts > 1 ? query->hosts : 1),
        .max_bytes = asked->max_bytes,
        .batches = asked->batches,
        .batch_count = asked->batch_count};
    if (limits.lossy)
        DT_TRY(dt_dit_lossy(workload, limits.gpus));
    return dt_dit_rules(workload, &limits, &asked->rules);
}

static dt_status space_read(const char *text, struct dt_asked *asked, char id[DT_KEY_ID_SIZE])
{
    json_auto_t *root = NULL;
    DT_TRY(dt_json_parse(text, strlen(text), "the query's space", &root));
    DT_TRY(dt_space_rules_from_json(root, "the query's space", &asked->rules));
    return dt_key_space_of(asked->rules, id);
}

static dt_status foreign_seal(const struct dt_query *query, struct dt_asked *asked,
                              char space[DT_KEY_ID_SIZE])
{
    const char *text = text_of(query, DT_ASK_space, NULL);
    if (!is_given(query, DT_ASK_workload))
        return dt_fail(DT_EUSAGE, "a query that names a worker names its workload, too");
    asked->any = (struct dt_any){.space = text == NULL,
                                 .engine = !is_given(query, DT_ASK_engine),
                                 .mode = !is_given(query, DT_ASK_mode)};
    snprintf(asked->title, sizeof asked->title, "%.100s: %.140s", text_of(query, DT_ASK_worker, ""),
             text_of(query, DT_ASK_workload, ""));
    if (text == NULL)
        return DT_OK;
    if (strlen(text) != DT_KEY_ID_SIZE - 1 ||
        strspn(text, "0123456789abcdef") != DT_KEY_ID_SIZE - 1)
        return space_read(text, asked, space);
    memcpy(space, text, DT_KEY_ID_SIZE);
    return DT_OK;
}

/* *job: new reference; NULL stays without one. */
static dt_status job_read(const struct dt_query *query, json_t **job)
{
    const char *text = text_of(query, DT_ASK_job, NULL);
    if (text == NULL)
        return DT_OK;
    if (!is_given(query, DT_ASK_worker))
        return dt_fail(DT_EUSAGE, "a query names a job only with a worker");
    DT_TRY(dt_json_parse(text, strlen(text), "the query's job", job));
    return json_is_object(*job) ? DT_OK : dt_fail(DT_EUSAGE, "the query's job is not an object");
}

/* With the text of the space, since its id is only a hash. */
static dt_status basis_seal(const struct dt_query *query, struct dt_asked *asked)
{
    int libraries = 0;
    for (int i = 0; i < DT_ATTENTIONS; i++)
        libraries |= (int)query->gpus.attention[i] << i;
    json_t *limits = json_pack("[i,I,b,I,i,i,b,b]", query->cores, (json_int_t)query->memory_bytes,
                               (int)query->bfloat16, (json_int_t)query->gpus.shared_bytes,
                               query->gpus.nccl, libraries, (int)query->gpus.capture,
                               (int)(number_of(query, DT_ASK_oversubscribe, 0) != 0));
    asked->basis = json_pack("{s:o, s:s?, s:O, s:O, s:O}", "limits", limits, "space",
                             text_of(query, DT_ASK_space, NULL), "soft", query->soft, "key",
                             asked->key, "hard", asked->hard);
    return asked->basis != NULL ? DT_OK : dt_no_memory("while making a query");
}

static dt_status network_seal(const struct dt_query *query, const struct dt_task *task,
                              struct dt_asked *asked)
{
    char space[DT_KEY_ID_SIZE] = "";
    if (dt_task_of_engine(task) != NULL) /* a worker says it by itself */
        return dt_fail(DT_EUSAGE, "a query names %s only with an engine", dt_task_of_engine(task));
    asked->foreign = is_given(query, DT_ASK_worker);
    limits_set(query, asked);
    DT_TRY(asked->foreign ? foreign_seal(query, asked, space) : builtin_seal(query, task, asked));
    json_auto_t *job = NULL;
    DT_TRY(job_read(query, &job));
    const struct dt_key key = {.workload = asked->foreign ? NULL : &asked->workload,
                               .job = job,
                               .batches = asked->batches,
                               .batch_count = asked->batch_count,
                               .worker = text_of(query, DT_ASK_worker, NULL),
                               .program = text_of(query, DT_ASK_workload, NULL),
                               .space = space[0] != '\0' ? space : NULL,
                               .devices = asked->devices,
                               .objective = asked->objective,
                               .max_bytes = asked->max_bytes,
                               .reserve_bytes = asked->reserve_bytes,
                               .max_latency_ns = asked->max_latency_ns,
                               .lossy = asked->lossy};
    DT_TRY(dt_key_json(&key, &asked->key));
    DT_TRY(hardware_set(query, asked));
    DT_TRY(dt_store_id(asked->key, asked->hard, &asked->id));
    return basis_seal(query, asked);
}

/* ---- about the entries that were tuned on an engine */

static bool is_tuned(const struct dt_query *query)
{
    const char *engine = text_of(query, DT_ASK_engine, "dittune");
    bool several = is_given(query, DT_ASK_batch) && query->batch_count > 1;
    return strcmp(engine, "dittune") != 0 && !is_given(query, DT_ASK_worker) &&
           !is_given(query, DT_ASK_oversubscribe) && !several;
}

/* The question can be one about the built-in network, too. */
static dt_status network_check(const struct dt_query *query, const struct dt_task *task, bool *is)
{
    struct dt_network network;
    enum dt_dtype known;
    *is = dt_task_of_engine(task) == NULL && is_switch(query) &&
          (!is_given(query, DT_ASK_dtype) ||
           dt_dtype_find("dtype", text_of(query, DT_ASK_dtype, ""), &known) == DT_OK);
    if (!*is || !is_given(query, DT_ASK_model))
        return DT_OK;
    dt_status status = dt_network_load(text_of(query, DT_ASK_model, ""), &network);
    *is = status == DT_OK;
    return status == DT_ENOMEM ? status : DT_OK;
}

static dt_status title_set(const json_t *job, const char *engine, char title[], size_t room)
{
    dt_auto_text text = {0};
    dt_text_add(&text, "%s%s", engine, json_object_size(job) > 0 ? ": " : "");
    dt_task_title(job, &text);
    snprintf(title, room, "%s", dt_text_at(&text));
    dt_text_clean(title);
    return dt_text_status(&text);
}

/* The data type is not of the job: it is a part of the hard fingerprint. */
static dt_status tuned_seal(const struct dt_query *query, const struct dt_task *task,
                            struct dt_asked *asked)
{
    const char *engine = text_of(query, DT_ASK_engine, "");
    json_auto_t *job = NULL;
    asked->foreign = true;
    asked->any = (struct dt_any){.worker = true,
                                 .space = true,
                                 .mode = !is_given(query, DT_ASK_mode),
                                 .dtype = !is_given(query, DT_ASK_dtype)};
    limits_set(query, asked);
    asked->task = *task;
    asked->task.at[DT_TASK_dtype].given = false;
    DT_TRY(dt_task_json(&asked->task, &job));
    const struct dt_key key = {.engine = engine,
                               .job = job,
                               .devices = asked->devices,
                               .objective = asked->objective,
                               .max_bytes = asked->max_bytes,
                               .reserve_bytes = asked->reserve_bytes,
                               .max_latency_ns = asked->max_latency_ns};
    if (asked->lossy && json_object_set_new(job, "lossy", json_integer(1)) != 0)
        return dt_no_memory("while making a query");
    DT_TRY(title_set(job, engine, asked->title, sizeof asked->title));
    DT_TRY(dt_key_json(&key, &asked->key));
    return hardware_set(query, asked);
}

/* ---- a query */

static void asked_fini(struct dt_asked *asked)
{
    dt_space_free(asked->rules);
    json_decref(asked->basis);
    json_decref(asked->shared);
    json_decref(asked->key);
    json_decref(asked->hard);
    *asked = (struct dt_asked){0};
}

static void query_unseal(struct dt_query *query)
{
    asked_fini(&query->asked);
    if (query->tuned != NULL)
        asked_fini(query->tuned);
    free(query->tuned);
    query->tuned = NULL;
    query->sealed = false;
}

dt_status dt_query_seal(struct dt_query *query)
{
    struct dt_task task;
    dt_status status = DT_OK;
    if (query->sealed)
        return DT_OK;
    task_of(query, &task);
    query->is_network = true;
    if (is_tuned(query)) {
        query->tuned = calloc(1, sizeof *query->tuned);
        status = query->tuned != NULL ? network_check(query, &task, &query->is_network)
                                      : dt_no_memory("while making a query");
        if (status == DT_OK)
            status = tuned_seal(query, &task, query->tuned);
    }
    if (status == DT_OK && query->is_network)
        status = network_seal(query, &task, &query->asked);
    if (status != DT_OK)
        query_unseal(query);
    query->sealed = status == DT_OK;
    return status;
}

dt_status dt_query_new(const struct dt_machine *machine, struct dt_query **query)
{
    struct dt_query *fresh = calloc(1, sizeof *fresh);
    if (fresh != NULL)
        fresh->values = calloc(DT_ASKS, sizeof *fresh->values);
    if (fresh == NULL || fresh->values == NULL) {
        free(fresh);
        return dt_no_memory("while making a query");
    }
    fresh->machine_hard = json_incref(machine->hard);
    fresh->soft = json_incref(machine->soft);
    fresh->cores = machine->cores;
    fresh->hosts = machine->hosts;
    fresh->gpus = machine->gpus;
    fresh->memory_bytes = machine->memory_bytes;
    fresh->bfloat16 = machine->bfloat16;
    *query = fresh;
    return DT_OK;
}

void dt_query_free(struct dt_query *query)
{
    if (query == NULL)
        return;
    query_unseal(query);
    for (int i = 0; i < DT_ASKS; i++)
        free((char *)query->values[i].text);
    free(query->values);
    json_decref(query->machine_hard);
    json_decref(query->soft);
    free(query);
}

static dt_status ask_find(const char *name, int *ask)
{
    for (*ask = 0; *ask < DT_ASKS; ++*ask)
        if (strcmp(ask_names[*ask], name) == 0)
            return DT_OK;
    const char *near = dt_json_nearest(name, ask_names);
    if (near != NULL)
        return dt_fail(DT_EUSAGE, "a query has no '%.80s', did you mean '%s'?", name, near);
    return dt_fail(DT_EUSAGE, "a query has no '%.80s': see docs/lookup.md", name);
}

dt_status dt_query_set(struct dt_query *query, const char *name, const char *text)
{
    struct dt_task_value value = {0};
    int ask;
    DT_TRY(ask_find(name, &ask));
    if (strlen(text) >= VALUE_MAX)
        return dt_fail(DT_EUSAGE, "%s has %zu bytes, the limit is %d", name, strlen(text),
                       VALUE_MAX - 1);
    if (text[0] != '\0') {
        char *copy = strdup(text);
        if (copy == NULL)
            return dt_no_memory("while making a query");
        dt_status status = value_read(ask, text, &value, query);
        if (status != DT_OK) {
            free(copy);
            return status;
        }
        value.given = true;
        value.text = copy;
    }
    query_unseal(query);
    free((char *)query->values[ask].text);
    query->values[ask] = value;
    return DT_OK;
}

dt_status dt_query_set_engine(struct dt_query *query, const char *name)
{
    json_auto_t *family = NULL;
    DT_TRY(dt_engine_named(name, &family));
    return dt_query_set(query, "engine", json_string_value(family));
}

/* The question about the built-in network or a worker; where there is none, that about the entries
 * of an engine. */
static const struct dt_asked *asked_of(const struct dt_query *query)
{
    return query->is_network ? &query->asked : query->tuned;
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
    bool tuned = query->tuned != NULL && answer->key == query->tuned->key;
    return tuned ? query->tuned->title : dt_query_title(query);
}
