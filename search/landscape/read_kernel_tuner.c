/* SPDX-License-Identifier: MIT */
/* Kernel Tuner's cache: {"device_name", "kernel_name", "tune_params_keys": [names], "cache": {key:
 * {name: value, .., "time": mean or a word for a failure, "times": [..], "compile_time": ..}}}, in
 * milliseconds. Old files have 1e20 for a failure. */
#include "search/landscape/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAILED_TIME 1e20

static bool kernel_tuner_knows(const struct dt_source *source)
{
    return json_is_object(json_object_get(source->root, "cache"));
}

/* The names in order, from their list or, in a file without one, from the table of their values. */
static dt_status read_columns(const json_t *root, struct dt_table *table)
{
    json_t *names, *name, *values;
    const char *key;
    size_t i;
    if (dt_json_has(root, "tune_params_keys")) {
        DT_TRY(dt_json_array(root, table->what, "tune_params_keys", &names));
        json_array_foreach(names, i, name)
        {
            if (!json_is_string(name))
                return dt_fail(DT_EUSAGE, "%s: 'tune_params_keys' has a name that is not a string",
                               table->what);
            DT_TRY(dt_table_add_column(table, json_string_value(name), DT_ROLE_PLAIN));
        }
        return DT_OK;
    }
    DT_TRY(dt_json_object(root, table->what, "tune_params", &names));
    json_object_foreach(names, key, values) DT_TRY(dt_table_add_column(table, key, DT_ROLE_PLAIN));
    return DT_OK;
}

static double row_milliseconds(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    double time = json_is_number(value) ? json_number_value(value) : 0;
    return time > 0 ? time : 0;
}

/* All recorded times except that of the recording strategy. */
static double row_cost(const json_t *row)
{
    return 1e-3 *
           (row_milliseconds(row, "compile_time") + row_milliseconds(row, "verification_time") +
            row_milliseconds(row, "benchmark_time") + row_milliseconds(row, "framework_time"));
}

static enum dt_outcome failure_outcome(const char *word)
{
    if (strstr(word, "Invalid") != NULL || strstr(word, "Compilation") != NULL)
        return DT_TRIAL_INFEASIBLE;
    return DT_TRIAL_FAILED;
}

static dt_status read_row(const char *key, const json_t *row, struct dt_table *table,
                          double **samples)
{
    char what[256];
    struct dt_cell cells[DT_AXES_MAX];
    const json_t *time = json_object_get(row, "time"), *times = json_object_get(row, "times");
    struct dt_entry entry = {.outcome = DT_TRIAL_FAILED, .value = NAN, .key = key};
    snprintf(what, sizeof what, "%.160s: '%.64s'", table->what, key);
    if (!json_is_object(row) || (!json_is_number(time) && !json_is_string(time)))
        return dt_fail(DT_EUSAGE, "%s has no 'time'", what);
    for (int i = 0; i < table->column_count; i++) {
        const char *name = table->columns[i].name;
        DT_TRY(dt_cell_read(json_object_get(row, name), what, name, &cells[i]));
    }
    entry.cost = row_cost(row);
    if (json_is_string(time))
        entry.outcome = failure_outcome(json_string_value(time));
    double value = json_number_value(time);
    if (value > 0 && value < FAILED_TIME) {
        entry.outcome = DT_TRIAL_OK;
        entry.value = value;
        DT_TRY(dt_table_numbers(times, what, samples, &entry.count));
    }
    return dt_table_add_row(table, cells, &entry, *samples);
}

static dt_status read_table(const struct dt_source *source, struct dt_table *table)
{
    const char *key;
    json_t *row, *cache = json_object_get(source->root, "cache");
    dt_auto_free double *samples = NULL;
    snprintf(table->title, sizeof table->title, "%s", dt_json_text_at(source->root, "kernel_name"));
    snprintf(table->device, sizeof table->device, "%s",
             dt_json_text_at(source->root, "device_name"));
    snprintf(table->unit, sizeof table->unit, "ms");
    table->seconds = 1e-3;
    DT_TRY(read_columns(source->root, table));
    json_object_foreach(cache, key, row) DT_TRY(read_row(key, row, table, &samples));
    return DT_OK;
}

const struct dt_reader dt_reader_kernel_tuner = {
    .name = "a Kernel Tuner cache",
    .knows = kernel_tuner_knows,
    .read = read_table,
};
