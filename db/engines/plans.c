/* SPDX-License-Identifier: MIT */
/* Every plan of an engine's version for a model: all values of its degrees whose product is at most the devices, kept
 * where the rules hold. */
#include "db/engines/engines_int.h"

#include <string.h>

struct walk {
    const struct dt_engine *engine;
    struct dt_export_request request;
    const json_t *barred; /* degrees that stay at 1 */
    json_t *plan, *plans;
};

static dt_status keep_legal(struct walk *walk)
{
    struct dt_values values;
    DT_TRY(dt_values_read(walk->engine, &walk->request, &values));
    if (!dt_values_legal(walk->engine, &values))
        return DT_OK;
    json_t *plan = json_deep_copy(walk->plan);
    dt_status status = dt_choices_add(walk->engine, &values, plan);
    if (status != DT_OK)
        json_decref(plan);
    else if (json_array_append_new(walk->plans, plan) != 0)
        return dt_fail(DT_ENOMEM, "out of memory");
    return status;
}

/* The degrees from index i on; room: the largest product that they may have. */
static dt_status walk_degree(struct walk *walk, int i, int64_t room)
{
    if (i == walk->engine->degree_count)
        return keep_legal(walk);
    const char *name = walk->engine->names[walk->engine->degrees[i]];
    int64_t most = json_object_get(walk->barred, name) != NULL ? 1 : room;
    for (int64_t value = 1; value <= most; value++) {
        if (json_object_set_new(walk->plan, name, json_integer(value)) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
        DT_TRY(walk_degree(walk, i + 1, room / value));
    }
    return DT_OK;
}

static dt_status read_named(const char *engine, struct dt_engine **read)
{
    const struct dt_engine_file *file = NULL;
    DT_TRY(dt_engine_find(engine, &file));
    return dt_engine_read((const char *)file->text, file->file, read);
}

dt_status dt_engine_plans(const char *engine, const json_t *key, struct dt_plans_wanted wanted,
                          json_t **plans)
{
    struct dt_engine *read = NULL;
    DT_TRY(read_named(engine, &read));
    struct walk walk = {.engine = read,
                        .barred = wanted.lossy ? NULL : json_object_get(read->root, "lossy"),
                        .plan = json_object(),
                        .plans = json_array()};
    walk.request = (struct dt_export_request){
        .engine = engine, .plan = walk.plan, .key = key, .card = wanted.card};
    dt_status status = walk.plan != NULL && walk.plans != NULL
                           ? walk_degree(&walk, 0, wanted.devices)
                           : dt_fail(DT_ENOMEM, "out of memory");
    json_decref(walk.plan);
    dt_engine_free(read);
    if (status == DT_OK)
        *plans = walk.plans;
    else
        json_decref(walk.plans);
    return status;
}

/* The rows in their order: each may use the ones before. */
static dt_status choose(const struct dt_engine *engine, const json_t *key,
                        const struct dt_card *card, json_t *plan)
{
    const struct dt_export_request request = {.plan = plan, .key = key, .card = card};
    struct dt_values values;
    const char *name;
    json_t *expression;
    DT_TRY(dt_values_read(engine, &request, &values));
    json_object_foreach(json_object_get(engine->root, "default"), name, expression)
    {
        int64_t value;
        DT_TRY(dt_values_eval(engine, json_string_value(expression), &values, &value));
        for (int i = 0; i < engine->count; i++)
            if (strcmp(engine->names[i], name) == 0)
                values.at[i] = value;
    }
    for (int i = 0; i < engine->degree_count; i++)
        if (json_object_set_new(plan, engine->names[engine->degrees[i]],
                                json_integer(values.at[engine->degrees[i]])) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
    return DT_OK;
}

dt_status dt_engine_default(const char *engine, const json_t *key, const struct dt_card *card,
                            json_t **plan)
{
    struct dt_engine *read = NULL;
    *plan = NULL;
    DT_TRY(read_named(engine, &read));
    dt_status status = DT_OK;
    if (dt_json_has(read->root, "default")) {
        json_t *chosen = json_object();
        status =
            chosen != NULL ? choose(read, key, card, chosen) : dt_fail(DT_ENOMEM, "out of memory");
        if (status == DT_OK)
            *plan = chosen;
        else
            json_decref(chosen);
    }
    dt_engine_free(read);
    return status;
}

dt_status dt_engine_choices(const char *engine, json_t **choices)
{
    struct dt_engine *read = NULL;
    DT_TRY(read_named(engine, &read));
    json_t *found = json_object_get(read->root, "choices");
    *choices = found != NULL ? json_incref(found) : json_object();
    dt_engine_free(read);
    return *choices != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}
