/* SPDX-License-Identifier: MIT */
#include "tuner/runner/runner.h"

#include <stdio.h>
#include <string.h>

#define REMARKS_MOST 16
#define RUNS_MOST    1000000000

static bool is_runs(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= RUNS_MOST;
}

/* The sum's warning of that text; NULL: none. */
static json_t *find_warning(const json_t *sum, const char *say)
{
    const json_t *list = json_object_get(sum, "warnings");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *one = json_array_get(list, i);
        if (strcmp(dt_json_text_at(one, "say"), say) == 0)
            return one;
    }
    return NULL;
}

static void add_runs(json_t *object, json_int_t more)
{
    json_int_t sum = json_integer_value(json_object_get(object, "runs")) + more;
    json_object_set_new(object, "runs", json_integer(sum < RUNS_MOST ? sum : RUNS_MOST));
}

static void keep_text(json_t *object, const char *name, const char *text)
{
    char kept[256];
    snprintf(kept, sizeof kept, "%s", text);
    dt_text_mend(kept);
    dt_text_clean(kept);
    json_object_set_new(object, name, json_string(kept));
}

bool dt_remarks_read(const json_t *answer, json_t **remarks)
{
    const json_t *runs = json_object_get(answer, "runs"),
                 *warnings = json_object_get(answer, "warnings");
    *remarks = NULL;
    const char *read = dt_json_text_at(answer, "read");
    if (runs == NULL && warnings == NULL)
        return true;
    if ((runs != NULL && !is_runs(runs)) || (warnings != NULL && !json_is_array(warnings)))
        return false;
    json_t *made = json_pack("{s:I, s:[]}", "runs", json_integer_value(runs), "warnings");
    bool well = made != NULL;
    if (read[0] != '\0')
        keep_text(made, "read", read);
    for (size_t i = 0; i < json_array_size(warnings) && well; i++) {
        const json_t *one = json_array_get(warnings, i), *of = json_object_get(one, "runs");
        well = dt_json_text_at(one, "say")[0] != '\0' && is_runs(of) && i < REMARKS_MOST;
        if (!well)
            break;
        json_t *kept = json_pack("{s:I}", "runs", json_integer_value(of));
        keep_text(kept, "say", dt_json_text_at(one, "say"));
        json_array_append_new(json_object_get(made, "warnings"), kept);
    }
    if (!well) {
        json_decref(made);
        return false;
    }
    *remarks = made;
    return true;
}

dt_status dt_remarks_add(json_t **sum, const json_t *more)
{
    const json_t *warnings = json_object_get(more, "warnings");
    if (more == NULL)
        return DT_OK;
    if (*sum == NULL)
        *sum = json_pack("{s:i, s:[]}", "runs", 0, "warnings");
    if (*sum == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    add_runs(*sum, json_integer_value(json_object_get(more, "runs")));
    if (json_object_get(*sum, "read") == NULL && json_object_get(more, "read") != NULL)
        json_object_set(*sum, "read", json_object_get(more, "read"));
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        json_t *one = json_array_get(warnings, i), *list = json_object_get(*sum, "warnings");
        json_t *known = find_warning(*sum, dt_json_text_at(one, "say"));
        if (known != NULL)
            add_runs(known, json_integer_value(json_object_get(one, "runs")));
        else if (json_array_size(list) < REMARKS_MOST)
            json_array_append_new(list, json_deep_copy(one));
    }
    return DT_OK;
}

int dt_remarks_count(const json_t *remarks)
{
    return (int)json_array_size(json_object_get(remarks, "warnings"));
}

void dt_remarks_text(const json_t *remarks, int i, struct dt_text *out)
{
    const json_t *one = json_array_get(json_object_get(remarks, "warnings"), (size_t)i);
    long long runs = json_integer_value(json_object_get(one, "runs"));
    long long all = json_integer_value(json_object_get(remarks, "runs"));
    if (all > 0)
        dt_text_add(out, "%lld of %lld runs %s", runs, all, dt_json_text_at(one, "say"));
    else
        dt_text_add(out, "%lld runs %s", runs, dt_json_text_at(one, "say"));
}

json_t *dt_remarks_sentences(const json_t *remarks)
{
    json_t *list = dt_remarks_count(remarks) > 0 ? json_array() : NULL;
    for (int i = 0; i < dt_remarks_count(remarks); i++) {
        struct dt_text text = {0};
        dt_remarks_text(remarks, i, &text);
        json_array_append_new(list, json_string(dt_text_at(&text)));
        dt_text_fini(&text);
    }
    return list;
}
