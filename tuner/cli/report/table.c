/* SPDX-License-Identifier: MIT */
#include "tuner/cli/report/report.h"

#include "base/columns.h"
#include "base/figures.h"

#include <math.h>
#include <stdio.h>

#define INDENT 10 /* of plans */

struct table {
    const struct dt_target *target;
    struct dt_unit time, memory; /* of all rows */
    struct dt_text *out;
};

static bool measured(const struct dt_table_row *row)
{
    return row->result != NULL &&
           (row->result->outcome == DT_TRIAL_OK || row->result->outcome == DT_TRIAL_SLOW);
}

static bool any_measured(const struct dt_table_row rows[], int n)
{
    for (int i = 0; i < n; i++)
        if (measured(&rows[i]))
            return true;
    return false;
}

/* The units in which the smallest figures have at least one digit before the point. */
static void choose_units(struct table *table, const struct dt_table_row rows[], int n)
{
    double seconds = INFINITY, bytes = INFINITY;
    for (int i = 0; i < n; i++)
        if (measured(&rows[i])) {
            seconds = fmin(seconds, table->target->objective->metric != NULL
                                        ? rows[i].result->cold_seconds
                                        : rows[i].result->summary.median);
            bytes = fmin(bytes, (double)rows[i].result->peak_bytes);
        }
    table->time = dt_figure_time_unit(seconds);
    table->memory = dt_figure_bytes_unit(fmax(bytes, 1024));
}

/* A figure to the right of a column. */
static void add_right(double value, int width, struct dt_text *out)
{
    struct dt_text cell = {0};
    dt_figure_add(value, &cell);
    dt_text_add(out, "%*s", width, dt_text_at(&cell));
    dt_text_fini(&cell);
}

static void add_interval(const struct dt_interval *interval, double unit, int width,
                         struct dt_text *out)
{
    struct dt_text cell = {0};
    dt_text_add(&cell, "[");
    dt_figure_add(interval->low / unit, &cell);
    dt_text_add(&cell, ", ");
    dt_figure_add(interval->high / unit, &cell);
    dt_text_add(&cell, "]");
    dt_text_add(out, "%-*s", width, dt_text_at(&cell));
    dt_text_fini(&cell);
}

static void add_speed(const struct dt_entrant *entrant, struct dt_text *out)
{
    char cell[64] = "";
    if (entrant != NULL && entrant->ratio.pairs > 0 && !isfinite(entrant->ratio.interval.high))
        snprintf(cell, sizeof cell, "%.3fx [-, -]", 1 / entrant->ratio.ratio);
    else if (entrant != NULL && entrant->ratio.pairs > 0)
        snprintf(cell, sizeof cell, "%.3fx [%.3f, %.3f]", 1 / entrant->ratio.ratio,
                 1 / entrant->ratio.interval.high, 1 / entrant->ratio.interval.low);
    dt_text_add(out, "%-22s", cell);
}

/* Where batches differ the objective is what compares, and takes the place of the step's interval. */
static bool shows_objective(const struct table *table)
{
    return table->target->objective->one_batch == 0;
}

static void add_header(const struct table *table)
{
    char step[40], cold[24], memory[24];
    const char *metric = table->target->objective->metric;
    if (metric != NULL)
        snprintf(step, sizeof step, "%s", metric);
    else
        snprintf(step, sizeof step, "step, %s", table->time.name);
    snprintf(cold, sizeof cold, "cold, %s", table->time.name);
    snprintf(memory, sizeof memory, "memory, %s", table->memory.name);
    if (shows_objective(table))
        dt_text_add(table->out, "%*s%15s  %-22s%9s%9s%13s\n", INDENT, "",
                    table->target->objective->unit, "speed against default", step, cold, memory);
    else
        dt_text_add(table->out, "%*s%8s  %-16s %-22s%8s%13s\n", INDENT, "", step, "interval",
                    "speed against default", cold, memory);
}

static void add_figures(const struct table *table, const struct dt_table_row *row)
{
    const struct dt_result *result = row->result;
    const struct dt_objective *objective = table->target->objective;
    double step = result->summary.median, unit = table->time.size;
    struct dt_text *out = table->out;
    dt_text_add(out, "%-*s", INDENT, row->role);
    if (shows_objective(table)) {
        add_right(objective->shown(step, result->batch, result->devices,
                                   table->target->image.sampler_steps),
                  15, out);
        dt_text_add(out, "  ");
        add_speed(row->entrant, out);
        add_right(step / unit, 9, out);
        add_right(result->cold_seconds / unit, 9, out);
    } else {
        struct dt_interval interval = result->summary.interval;
        if (objective->metric != NULL)
            interval = (struct dt_interval){1 / interval.high, 1 / interval.low};
        add_right(objective->metric != NULL ? 1 / step : step / unit, 8, out);
        dt_text_add(out, "  ");
        add_interval(&interval, objective->metric != NULL ? 1 : unit, 16, out);
        dt_text_add(out, " ");
        add_speed(row->entrant, out);
        add_right(result->cold_seconds / unit, 8, out);
    }
    add_right(rint((double)result->peak_bytes / table->memory.size * 10) / 10, 13, out);
    dt_text_add(out, "\n");
}

static void add_row(const struct table *table, const struct dt_table_row *row)
{
    struct dt_text line = {0};
    if (row->result == NULL)
        return;
    if (measured(row)) {
        add_figures(table, row);
        dt_text_add(&line, "%*s", INDENT, "");
        if (table->target->foreign) /* whose defaults nobody knows by heart */
            dt_point_text(table->target->space, &row->result->point, &line);
        else
            dt_point_short(table->target->space, &row->result->point, &line);
    } else {
        dt_text_add(&line, "%-*s%s: %s", INDENT, row->role, dt_outcome_text(row->result->outcome),
                    row->result->cause);
    }
    dt_text_add(&line, "\n");
    dt_columns_wrap(dt_text_at(&line), DT_COLUMNS_USUAL, INDENT, table->out);
    dt_text_fini(&line);
}

void dt_table_text(const struct dt_table_row rows[], int n, const struct dt_target *target,
                   struct dt_text *out)
{
    struct table table = {.target = target, .out = out};
    if (any_measured(rows, n)) {
        choose_units(&table, rows, n);
        add_header(&table);
    }
    for (int i = 0; i < n; i++)
        add_row(&table, &rows[i]);
}
