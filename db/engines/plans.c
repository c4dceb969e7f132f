/* SPDX-License-Identifier: MIT */
/* Every plan of an engine's version for a model: all values of its degrees whose product is at most the devices, kept
 * where the rules hold. */
#include "db/engines/engines_int.h"

struct walk {
    const struct dt_engine *engine;
    struct dt_export_request request;
    json_t *plan, *plans, *notes;
};

/* The rules' verdict; what they refuse is no error. */
static dt_status keep_legal(struct walk *walk)
{
    struct dt_values values;
    DT_TRY(dt_values_read(walk->engine, &walk->request, &values));
    dt_status status = dt_values_check(walk->engine, &values, walk->notes);
    json_array_clear(walk->notes);
    if (status == DT_EINFEASIBLE)
        return DT_OK;
    if (status == DT_OK && json_array_append_new(walk->plans, json_deep_copy(walk->plan)) != 0)
        return dt_fail(DT_ENOMEM, "out of memory");
    return status;
}

/* The degrees from index i on; room: the largest product that they may have. */
static dt_status walk_degree(struct walk *walk, int i, int64_t room)
{
    if (i == walk->engine->degree_count)
        return keep_legal(walk);
    const char *name = walk->engine->names[walk->engine->degrees[i]];
    for (int64_t value = 1; value <= room; value++) {
        if (json_object_set_new(walk->plan, name, json_integer(value)) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
        DT_TRY(walk_degree(walk, i + 1, room / value));
    }
    return DT_OK;
}

dt_status dt_engine_plans(const char *engine, const json_t *key, int64_t devices, json_t **plans)
{
    const struct dt_engine_file *file = NULL;
    struct dt_engine *read = NULL;
    DT_TRY(dt_engine_find(engine, &file));
    DT_TRY(dt_engine_read((const char *)file->text, file->file, &read));
    struct walk walk = {
        .engine = read, .plan = json_object(), .plans = json_array(), .notes = json_array()};
    walk.request = (struct dt_export_request){.engine = engine, .plan = walk.plan, .key = key};
    dt_status status = walk.plan != NULL && walk.plans != NULL && walk.notes != NULL
                           ? walk_degree(&walk, 0, devices)
                           : dt_fail(DT_ENOMEM, "out of memory");
    json_decref(walk.plan);
    json_decref(walk.notes);
    dt_engine_free(read);
    if (status == DT_OK)
        *plans = walk.plans;
    else
        json_decref(walk.plans);
    return status;
}
