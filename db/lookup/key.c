/* SPDX-License-Identifier: MIT */
#include "db/lookup/key.h"

#include "base/rng.h"
#include "db/canonical_int.h"
#include "model/workload_json.h"
#include "space/json/json.h"

#include <stdio.h>
#include <string.h>

static void id_of(const struct dt_text *text, char id[DT_KEY_ID_SIZE])
{
    snprintf(id, DT_KEY_ID_SIZE, "%016llx", (unsigned long long)dt_rng_stream(dt_text_at(text)));
}

/* In the order of the fields, not the canonical one. */
dt_status dt_key_network(const struct dt_network *network, char id[DT_KEY_ID_SIZE])
{
    dt_auto_text text = {0};
    json_auto_t *shape = dt_network_to_json(network);
    if (shape == NULL)
        return dt_no_memory("while making a key");
    json_object_del(shape, "name");
    DT_TRY(dt_json_text(shape, &text));
    id_of(&text, id);
    return DT_OK;
}

dt_status dt_key_space_of(const struct dt_space *space, char id[DT_KEY_ID_SIZE])
{
    dt_auto_text text = {0};
    dt_space_identity(space, &text);
    DT_TRY(dt_text_status(&text));
    id_of(&text, id);
    return DT_OK;
}

dt_status dt_key_space(const json_t *root, char id[DT_KEY_ID_SIZE])
{
    DT_CLEANUP(dt_space_free_at) struct dt_space *space = NULL;
    DT_TRY(dt_space_rules_from_json(root, "the space of a key", &space));
    return dt_key_space_of(space, id);
}

dt_status dt_key_json(const struct dt_key *key, json_t **json)
{
    char network[DT_KEY_ID_SIZE];
    json_auto_t *object = NULL;
    int failed = 0;
    const struct dt_workload *workload = key->workload;
    if (workload != NULL) {
        DT_TRY(dt_key_network(&workload->network, network));
        object = json_pack("{s:s, s:s, s:i, s:i, s:b, s:s, s:i, s:o}", "model",
                           workload->network.name, "network", network, "height", workload->height,
                           "width", workload->width, "guidance", workload->guidance ? 1 : 0,
                           "dtype", dt_dtype_text(workload->dtype), "devices", key->devices,
                           "batch", dt_json_ints(key->batches, key->batch_count));
    } else {
        object = json_pack("{s:s*, s:s*, s:s*, s:i}", "engine", key->engine, "worker", key->worker,
                           "workload", key->program, "devices", key->devices);
    }
    if (key->workload == NULL && key->space != NULL)
        failed |= json_object_set_new(object, "space", json_string(key->space));
    if (key->workload == NULL && key->job != NULL)
        failed |= json_object_set(object, "job", (json_t *)key->job);
    if (key->objective != NULL)
        failed |= json_object_set_new(object, "objective", json_string(key->objective));
    if (key->max_bytes > 0)
        failed |= json_object_set_new(object, "max_bytes", json_integer(key->max_bytes));
    if (key->reserve_bytes > 0)
        failed |= json_object_set_new(object, "reserve_bytes", json_integer(key->reserve_bytes));
    if (key->workload != NULL && key->lossy)
        failed |= json_object_set_new(object, "lossy", json_integer(1));
    if (key->max_latency_ns > 0)
        failed |= json_object_set_new(object, "max_latency_ns", json_integer(key->max_latency_ns));
    if (object == NULL || failed != 0)
        return dt_no_memory("while making a key");
    *json = json_incref(object);
    return DT_OK;
}

static void quoted_add(const json_t *value, struct dt_text *out)
{
    dt_text_add(out, json_is_string(value) ? "'" : "");
    if (value == NULL)
        dt_text_add(out, "none");
    else
        dt_json_plain(value, out);
    dt_text_add(out, json_is_string(value) ? "'" : "");
}

static void difference_add(void *context, const char *inside, const char *name,
                           const json_t *stored, const json_t *asked)
{
    struct dt_text *out = context;
    (void)inside;
    if ((stored == NULL && json_is_object(asked)) || (asked == NULL && json_is_object(stored))) {
        dt_key_add_differences(stored, asked, out);
        return;
    }
    dt_text_add(out, "%s%s ", out->size > 0 ? ", " : "", name);
    quoted_add(stored, out);
    dt_text_add(out, " instead of ");
    quoted_add(asked, out);
}

void dt_key_add_differences(const json_t *stored, const json_t *asked, struct dt_text *out)
{
    dt_json_differences(stored, asked, "", difference_add, out);
}
