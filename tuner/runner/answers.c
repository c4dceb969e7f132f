/* SPDX-License-Identifier: MIT */
/* Parts of a worker's answers, which records keep as they came. */
#include "tuner/runner/runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REASON_MOST 40 /* characters of a reason's name */
#define MOST_VALUE                                                                                 \
    (INT64_C(1) << 53) /* largest time and magnitude of telemetry: exact in a double */
#define MOST_LOOKS   (INT64_C(1) << 40)
#define REMARKS_MOST 16
#define RUNS_MOST    1000000000

/* ---- samples */

bool dt_times_read(const json_t *rows, size_t steps, size_t ranks, int64_t least, long long **ns,
                   size_t *wrong)
{
    long long *times = calloc(steps * ranks + 1, sizeof *times);
    for (*wrong = 0; times != NULL && *wrong < steps; ++*wrong) {
        const json_t *row = json_array_get(rows, *wrong);
        bool right = ranks > 0 && json_array_size(row) == ranks;
        for (size_t r = 0; r < ranks && right; r++) {
            const json_t *value = json_array_get(row, r);
            int64_t time = json_integer_value(value);
            right = json_is_integer(value) && time >= least && time <= MOST_VALUE;
            times[*wrong * ranks + r] = time;
        }
        if (!right) {
            free(times);
            return false;
        }
    }
    *ns = times;
    return true;
}

bool dt_clock_read(const json_t *rows, size_t steps, size_t ranks, bool gaps, double **clock,
                   size_t *wrong)
{
    double *rates = calloc(steps * ranks + 1, sizeof *rates);
    for (*wrong = 0; rates != NULL && *wrong < steps; ++*wrong) {
        const json_t *row = json_array_get(rows, *wrong);
        bool gap = gaps && json_is_null(row), right = gap || json_array_size(row) == ranks;
        for (size_t r = 0; r < ranks && right; r++) {
            double rate = gap ? NAN : json_number_value(json_array_get(row, r));
            right = gap || rate > 0;
            rates[*wrong * ranks + r] = rate;
        }
        if (!right) {
            free(rates);
            return false;
        }
    }
    *clock = rates;
    return true;
}

bool dt_counts_read(const json_t *list, int total, int **counts, int *n)
{
    size_t size = json_array_size(list);
    int *steps = calloc(size + 1, sizeof *steps), left = total;
    for (size_t i = 0; steps != NULL && i < size; i++) {
        json_int_t count = json_integer_value(json_array_get(list, i));
        if (count < 1 || count > left) {
            free(steps);
            return false;
        }
        steps[i] = (int)count;
        left -= (int)count;
    }
    if (steps != NULL && left > 0) {
        free(steps);
        return false;
    }
    *counts = steps;
    *n = (int)size;
    return true;
}

/* ---- devices */

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

/* ---- remarks */

static bool is_run_count(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= RUNS_MOST;
}

/* The sum's warning of that text; NULL: none. */
static json_t *remark_find(const json_t *sum, const char *say)
{
    const json_t *list = json_object_get(sum, "warnings");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *one = json_array_get(list, i);
        if (strcmp(dt_json_text_at(one, "say"), say) == 0)
            return one;
    }
    return NULL;
}

static void remark_add_runs(json_t *object, json_int_t more)
{
    json_int_t sum = json_integer_value(json_object_get(object, "runs")) + more;
    json_object_set_new(object, "runs", json_integer(sum < RUNS_MOST ? sum : RUNS_MOST));
}

static void remark_set_text(json_t *object, const char *name, const char *text)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", text);
    dt_text_mend(copy);
    dt_text_clean(copy);
    json_object_set_new(object, name, json_string(copy));
}

bool dt_remarks_read(const json_t *answer, json_t **remarks)
{
    const json_t *runs = json_object_get(answer, "runs"),
                 *warnings = json_object_get(answer, "warnings");
    *remarks = NULL;
    const char *read = dt_json_text_at(answer, "read");
    if (runs == NULL && warnings == NULL)
        return true;
    if ((runs != NULL && !is_run_count(runs)) || (warnings != NULL && !json_is_array(warnings)))
        return false;
    json_t *made = json_pack("{s:I, s:[]}", "runs", json_integer_value(runs), "warnings");
    bool well = made != NULL;
    if (read[0] != '\0')
        remark_set_text(made, "read", read);
    for (size_t i = 0; i < json_array_size(warnings) && well; i++) {
        const json_t *one = json_array_get(warnings, i), *of = json_object_get(one, "runs");
        well = dt_json_text_at(one, "say")[0] != '\0' && is_run_count(of) && i < REMARKS_MOST;
        if (!well)
            break;
        json_t *warning = json_pack("{s:I}", "runs", json_integer_value(of));
        remark_set_text(warning, "say", dt_json_text_at(one, "say"));
        json_array_append_new(json_object_get(made, "warnings"), warning);
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
    remark_add_runs(*sum, json_integer_value(json_object_get(more, "runs")));
    if (json_object_get(*sum, "read") == NULL && json_object_get(more, "read") != NULL)
        json_object_set(*sum, "read", json_object_get(more, "read"));
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        json_t *one = json_array_get(warnings, i), *list = json_object_get(*sum, "warnings");
        json_t *known = remark_find(*sum, dt_json_text_at(one, "say"));
        if (known != NULL)
            remark_add_runs(known, json_integer_value(json_object_get(one, "runs")));
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
