/* SPDX-License-Identifier: MIT */
#include "db/api/api_int.h"

#include "db/engines/engines.h"

#include <stdio.h>
#include <string.h>

static dt_status open_machine(const char *path, struct dt_machine **machine)
{
    struct dt_text cache = {0};
    if (path != NULL)
        return dt_machine_load(path, machine);
    dt_status status = dt_api_path("XDG_CACHE_HOME", ".cache", "dittune/machine.json", &cache);
    if (status == DT_OK)
        status = dt_machine_load(dt_text_at(&cache), machine);
    dt_text_fini(&cache);
    return status;
}

int32_t dittune_machine_open(const char *path, struct dittune_machine **machine, char *message,
                             size_t room)
{
    const struct dt_api_message to = {message, room};
    struct dt_machine *made = NULL;
    if (machine == NULL)
        return dt_api_refuse(DITTUNE_USAGE, "machine is NULL", to);
    dt_api_begin();
    dt_status status = open_machine(path, &made);
    if (status == DT_OK)
        *machine = (struct dittune_machine *)made;
    return dt_api_done(status, to);
}

int32_t dittune_machine_parse(const char *text, size_t size, struct dittune_machine **machine,
                              char *message, size_t room)
{
    const struct dt_api_message to = {message, room};
    struct dt_machine *made = NULL;
    if (machine == NULL || text == NULL)
        return dt_api_refuse(DITTUNE_USAGE, "text or machine is NULL", to);
    dt_api_begin();
    dt_status status = dt_machine_parse(text, size, "the machine description", &made);
    if (status == DT_OK)
        *machine = (struct dittune_machine *)made;
    return dt_api_done(status, to);
}

void dittune_machine_free(struct dittune_machine *machine)
{
    dt_machine_free((struct dt_machine *)machine);
}

int32_t dittune_query_new(const struct dittune_machine *machine, struct dittune_query **query,
                          char *message, size_t room)
{
    const struct dt_api_message to = {message, room};
    struct dt_query *made = NULL;
    if (machine == NULL || query == NULL)
        return dt_api_refuse(DITTUNE_USAGE, "machine or query is NULL", to);
    dt_status status = dt_query_new((const struct dt_machine *)machine, &made);
    if (status == DT_OK)
        *query = (struct dittune_query *)made;
    return dt_api_done(status, to);
}

/* A known engine's name is converted to the name in its entries, as in `dittune lookup --engine`; any other is a
 * foreign worker's own name. */
static dt_status set_engine(struct dt_query *query, const char *value)
{
    json_t *name = NULL;
    DT_TRY(dt_engine_named(value, &name));
    dt_status status = dt_query_set(query, "engine", json_string_value(name));
    json_decref(name);
    return status;
}

int32_t dittune_query_set(struct dittune_query *query, const char *name, const char *value,
                          char *message, size_t room)
{
    const struct dt_api_message to = {message, room};
    if (query == NULL || name == NULL || value == NULL)
        return dt_api_refuse(DITTUNE_USAGE, "query, name or value is NULL", to);
    if (strcmp(name, "engine") == 0)
        return dt_api_done(set_engine((struct dt_query *)query, value), to);
    return dt_api_done(dt_query_set((struct dt_query *)query, name, value), to);
}

int32_t dittune_query_seal(struct dittune_query *query, char *message, size_t room)
{
    const struct dt_api_message to = {message, room};
    if (query == NULL)
        return dt_api_refuse(DITTUNE_USAGE, "query is NULL", to);
    return dt_api_done(dt_query_seal((struct dt_query *)query), to);
}

void dittune_query_free(struct dittune_query *query)
{
    dt_query_free((struct dt_query *)query);
}
