/* SPDX-License-Identifier: MIT */
/* A query stores its texts; seal.c interprets them together. */
#include "db/lookup/query_int.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

const char *const dt_ask_names[] = {
#define DT_ASK(name, kind) #name,
#include "db/lookup/asks.def"
#undef DT_ASK
    NULL};

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

void dt_query_unseal(struct dt_query *query)
{
    drop(&query->asked);
    drop(&query->tuned);
    query->sealed = false;
}

void dt_query_free(struct dt_query *query)
{
    if (query == NULL)
        return;
    dt_query_unseal(query);
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
        if (strcmp(dt_ask_names[i], name) == 0)
            return i;
    return -1;
}

static dt_status unknown(const char *name)
{
    const char *near = dt_json_nearest(name, dt_ask_names);
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
        DT_TRY(dt_query_check(at, value));
        copy = strdup(value);
        if (copy == NULL)
            return no_memory();
    }
    dt_query_unseal(query);
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
