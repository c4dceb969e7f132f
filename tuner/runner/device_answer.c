/* SPDX-License-Identifier: MIT */
#include "tuner/runner/runner.h"

#include <stdlib.h>
#include <string.h>

#define REASON_MOST 40 /* characters of a reason's name */
#define MOST_NS     (INT64_C(1) << 53)
#define MOST_VALUE  (INT64_C(1) << 53) /* largest magnitude of telemetry: exact in a double */
#define MOST_LOOKS  (INT64_C(1) << 40)

bool dt_device_answer_ns(const json_t *rows, size_t steps, size_t ranks, long long **ns)
{
    if (json_array_size(rows) != steps)
        return false;
    long long *made = calloc(steps * ranks + 1, sizeof *made);
    for (size_t i = 0; made != NULL && i < steps * ranks; i++) {
        const json_t *row = json_array_get(rows, i / ranks);
        const json_t *value = json_array_get(row, i % ranks);
        made[i] = json_integer_value(value);
        if (json_array_size(row) != ranks || !json_is_integer(value) || made[i] < 0 ||
            made[i] > MOST_NS) {
            free(made);
            return false;
        }
    }
    *ns = made;
    return true;
}

/* {"least", "mean", "most"}, in ascending order. */
static bool is_range(const json_t *range)
{
    const json_t *least = json_object_get(range, "least"), *mean = json_object_get(range, "mean"),
                 *most = json_object_get(range, "most");
    return json_is_integer(least) && json_is_integer(mean) && json_is_integer(most) &&
           json_integer_value(least) >= -MOST_VALUE && json_integer_value(most) <= MOST_VALUE &&
           json_integer_value(least) <= json_integer_value(mean) &&
           json_integer_value(mean) <= json_integer_value(most);
}

/* Names are printed and stored unescaped, so they are restricted. */
static bool is_reason(const json_t *reason)
{
    const char *name = json_string_value(reason);
    size_t length = json_string_length(reason);
    return name != NULL && length > 0 && length <= REASON_MOST &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

static bool are_reasons(const json_t *reasons)
{
    for (size_t i = 0; i < json_array_size(reasons); i++)
        if (!is_reason(json_array_get(reasons, i)))
            return false;
    return json_is_array(reasons);
}

static bool take_rank(const json_t *answer, json_t *rank)
{
    static const char *const ranges[] = {"sm_mhz", "memory_mhz", "power_mw", "temperature_c",
                                         "utilization"};
    json_t *looks = json_object_get(answer, "looks"), *reasons = json_object_get(answer, "reasons");
    if (!json_is_integer(looks) || json_integer_value(looks) < 0 ||
        json_integer_value(looks) > MOST_LOOKS || (reasons != NULL && !are_reasons(reasons)))
        return false;
    json_object_set(rank, "looks", looks);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        json_t *range = json_object_get(answer, ranges[i]);
        if (range != NULL && !is_range(range))
            return false;
        if (range != NULL)
            json_object_set_new(
                rank, ranges[i],
                json_pack("{s:O, s:O, s:O}", "least", json_object_get(range, "least"), "mean",
                          json_object_get(range, "mean"), "most", json_object_get(range, "most")));
    }
    json_object_set_new(rank, "reasons", reasons != NULL ? json_deep_copy(reasons) : json_array());
    return true;
}

bool dt_device_answer_telemetry(const json_t *list, size_t ranks, json_t **telemetry)
{
    json_t *made = json_array();
    bool right = json_array_size(list) == ranks;
    for (size_t i = 0; right && i < ranks; i++) {
        json_t *rank = json_object();
        right = take_rank(json_array_get(list, i), rank);
        json_array_append_new(made, rank);
    }
    if (right)
        *telemetry = made;
    else
        json_decref(made);
    return right;
}

static bool are_integers(const json_t *list, size_t ranks)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_integer(json_array_get(list, i)))
            return false;
    return json_array_size(list) == ranks;
}

bool dt_device_answer_memory(const json_t *answer, size_t ranks, json_t **memory)
{
    static const char *const lists[] = {"before_bytes", "taken_bytes", "free_bytes", "total_bytes"};
    json_t *resident = json_object_get(answer, "resident_bytes"), *made = NULL;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        json_t *list = json_object_get(answer, lists[i]);
        if (list == NULL)
            continue;
        if (!are_integers(list, ranks)) {
            json_decref(made);
            return false;
        }
        made = made != NULL ? made : json_object();
        json_object_set_new(made, lists[i], json_deep_copy(list));
    }
    if (made != NULL && json_is_integer(resident))
        json_object_set(made, "resident_bytes", resident);
    *memory = made;
    return true;
}
