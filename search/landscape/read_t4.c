/* SPDX-License-Identifier: MIT */
/* T4, the auto-tuning community's file of results: {"schema_version", "results": [{"configuration":
 * {name: value}, "times": {"compilation", "runtimes": [..], ..}, "invalidity", "measurements":
 * [{"name", "value"}], "objectives": [name]}]}, in the unit of the objective, else of "metadata":
 * {"timeunit"}, else in milliseconds. */
#include "search/landscape/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool t4_knows(const struct dt_source *source)
{
    return json_is_array(json_object_get(source->root, "results"));
}

static enum dt_outcome outcome_of(const char *invalidity)
{
    static const struct {
        const char *word;
        enum dt_outcome outcome;
    } words[] = {
        {"correct", DT_TRIAL_OK},
        {"compile", DT_TRIAL_INFEASIBLE},
        {"constraints", DT_TRIAL_INFEASIBLE},
        {"correctness", DT_TRIAL_WRONG},
        {"timeout", DT_TRIAL_HUNG},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i].word, invalidity) == 0)
            return words[i].outcome;
    return DT_TRIAL_FAILED;
}

/* The measurement that is the first objective, or "time"; NULL when there is none. */
static const json_t *row_objective(const json_t *row)
{
    const char *name = json_string_value(json_array_get(json_object_get(row, "objectives"), 0));
    json_t *list = json_object_get(row, "measurements"), *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        const char *its = json_string_value(json_object_get(item, "name"));
        if (its != NULL && strcmp(its, name != NULL ? name : "time") == 0)
            return item;
    }
    return NULL;
}

/* Seconds of a unit of time, as Kernel Tuner ("ms", and its "miliseconds") and KTT ("Microseconds")
 * name them; 0: no such. */
static double seconds_of(const char *unit)
{
    static const struct {
        const char *begin;
        double seconds;
    } units[] = {{"ns", 1e-9}, {"nano", 1e-9}, {"us", 1e-6}, {"micro", 1e-6},
                 {"ms", 1e-3}, {"mil", 1e-3},  {"s", 1},     {"sec", 1}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t size = strlen(units[i].begin);
        bool whole = size < 3 && strcasecmp(unit, units[i].begin) == 0;
        bool longer = size >= 3 && strncasecmp(unit, units[i].begin, size) == 0 &&
                      (units[i].seconds == 1 || strcasestr(unit, "sec") != NULL);
        if (whole || longer)
            return units[i].seconds;
    }
    return 0;
}

/* The table's unit: that of the objective, else the file's, else milliseconds. An objective that is
 * no time, such as GFLOP/s, has another direction. */
static dt_status read_unit(const json_t *root, const json_t *row, struct dt_table *table)
{
    const json_t *item = row_objective(row);
    const char *name = json_string_value(json_object_get(item, "name"));
    const char *unit = json_string_value(json_object_get(item, "unit"));
    const char *file =
        json_string_value(json_object_get(json_object_get(root, "metadata"), "timeunit"));
    if (item == NULL)
        return DT_OK;
    if (strchr(name, '/') != NULL || strcasestr(name, "flop") != NULL)
        unit = name;
    if (unit == NULL || unit[0] == 0)
        unit = file != NULL && file[0] != 0 ? file : "ms";
    double seconds = seconds_of(unit);
    if (seconds == 0)
        return dt_fail(
            DT_EUSAGE,
            "%s: its objective '%.60s' is in '%.60s', which is no unit of time (s, ms, us, "
            "ns): only times, of which the least is best, can be replayed",
            table->what, name, unit);
    table->seconds = seconds;
    snprintf(table->unit, sizeof table->unit, "%s",
             seconds == 1     ? "s"
             : seconds > 1e-4 ? "ms"
             : seconds > 1e-7 ? "us"
                              : "ns");
    return DT_OK;
}

/* All recorded times except that of the recording search. */
static double row_cost(const json_t *times, double seconds)
{
    static const char *const parts[] = {"compilation", "validation", "framework"};
    double sum = 0;
    json_t *runtime;
    size_t i;
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
        sum += fmax(0, json_number_value(json_object_get(times, parts[k])));
    json_array_foreach(json_object_get(times, "runtimes"), i, runtime) sum +=
        fmax(0, json_number_value(runtime));
    return seconds * sum;
}

/* A result in another unit than the table's. */
static dt_status check_unit(const json_t *row, const char *what, const struct dt_table *table)
{
    const char *unit = json_string_value(json_object_get(row_objective(row), "unit"));
    if (unit == NULL || unit[0] == 0 || seconds_of(unit) == table->seconds)
        return DT_OK;
    return dt_fail(DT_EUSAGE, "%s is in '%.60s', the ones before it are in %s", what, unit,
                   table->unit);
}

static dt_status read_row(const json_t *row, const char *what, struct dt_table *table,
                          double **samples)
{
    struct dt_cell cells[DT_AXES_MAX];
    const json_t *measured = json_object_get(row_objective(row), "value");
    struct dt_entry entry = {.value = json_is_number(measured) ? json_number_value(measured) : NAN};
    json_t *configuration, *times;
    const char *invalidity;
    DT_TRY(check_unit(row, what, table));
    DT_TRY(dt_json_object(row, what, "configuration", &configuration));
    DT_TRY(dt_json_object(row, what, "times", &times));
    DT_TRY(dt_json_string(row, what, "invalidity", &invalidity));
    if (table->column_count == 0) {
        const char *name;
        json_t *value;
        json_object_foreach(configuration, name, value)
            DT_TRY(dt_table_add_column(table, name, DT_ROLE_PLAIN));
    }
    for (int i = 0; i < table->column_count; i++) {
        const char *name = table->columns[i].name;
        DT_TRY(dt_cell_read(json_object_get(configuration, name), what, name, &cells[i]));
    }
    entry.outcome = outcome_of(invalidity);
    entry.cost = row_cost(times, table->seconds);
    if (entry.outcome == DT_TRIAL_OK && isnan(entry.value))
        return dt_fail(DT_EUSAGE, "%s is correct, and the value of its objective is %s", what,
                       measured == NULL ? "missing" : "no number");
    if (entry.outcome == DT_TRIAL_OK && entry.value <= 0)
        return dt_fail(DT_EUSAGE,
                       "%s: its objective is %g, but only times above zero can be replayed", what,
                       entry.value);
    if (entry.outcome == DT_TRIAL_OK)
        DT_TRY(dt_table_numbers(json_object_get(times, "runtimes"), what, samples, &entry.count));
    else
        entry.value = NAN;
    return dt_table_add_row(table, cells, &entry, *samples);
}

static dt_status read_table(const struct dt_source *source, struct dt_table *table)
{
    json_t *row, *results = json_object_get(source->root, "results");
    dt_auto_free double *samples = NULL;
    size_t i = 0;
    snprintf(table->unit, sizeof table->unit, "ms");
    table->seconds = 1e-3;
    while (i < json_array_size(results) && row_objective(json_array_get(results, i)) == NULL)
        i++;
    DT_TRY(read_unit(source->root, json_array_get(results, i), table));
    json_array_foreach(results, i, row)
    {
        char what[256];
        snprintf(what, sizeof what, "%.200s: result %zu", table->what, i + 1);
        DT_TRY(read_row(row, what, table, &samples));
    }
    return DT_OK;
}

const struct dt_reader dt_reader_t4 = {
    .name = "a T4 file",
    .knows = t4_knows,
    .read = read_table,
};
