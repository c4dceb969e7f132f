/* SPDX-License-Identifier: MIT */
/* The report of `run` on one plan, or on a sweep. */
#include "tuner/cli/report/run.h"
#include "base/columns.h"
#include "base/figures.h"
#include "tuner/cli/print.h"
#include "tuner/cli/report/fits.h"
#include "tuner/cli/report/report.h"
#include "tuner/measure/measure.h"

#include <math.h>
#include <stdio.h>

#define LABEL 12 /* columns of a line's name, in front of what it says */

json_t *dt_record_run(const struct dt_result *result, const struct dt_result *one,
                      const struct dt_target *target)
{
    json_t *object = dt_result_json(result, target);
    struct dt_text cold = {0};
    json_object_set_new(object, "title", json_string(target->identity.title));
    json_object_set_new(object, "baseline",
                        one->samples.n > 0 ? dt_result_json(one, target) : json_null());
    json_object_set_new(object, "speedup",
                        one->samples.n > 0 ? json_real(one->summary.median / result->summary.median)
                                           : json_null());
    bool said = dt_report_cold(result, one->samples.n > 0 ? one : NULL, target, &cold);
    json_object_set_new(object, "cold_note", said ? json_string(dt_text_at(&cold)) : json_null());
    json_object_set_new(
        object, "fits",
        json_pack("{s:o}", "exchanges", dt_fits_exchanges(result->report.exchanges)));
    dt_text_fini(&cold);
    return object;
}

json_t *dt_record_left_out(const struct dt_sweep *sweep, int value, const char *reason)
{
    return json_pack("{s:i, s:s}", sweep->ranks ? "ranks" : "batch", value, "left_out", reason);
}

static bool is_left_out(const json_t *row)
{
    return json_object_get(row, "left_out") != NULL;
}

/* {"batch": fit} or {"ranks": fit} of what the sweep measured. */
static json_t *fit_sweep(const struct dt_sweep *sweep, const json_t *rows)
{
    double x[DT_LIST_MAX], seconds[DT_LIST_MAX];
    int n = (int)json_array_size(rows);
    bool oversubscribed = false;
    for (int i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, (size_t)i);
        x[i] = json_number_value(json_object_get(row, sweep->ranks ? "ranks" : "batch"));
        seconds[i] = json_number_value(json_object_get(row, "median_seconds"));
        oversubscribed = oversubscribed || json_is_true(json_object_get(row, "oversubscribed"));
    }
    json_t *fit = sweep->ranks ? dt_fits_ranks(x, seconds, n) : dt_fits_batch(x, seconds, n);
    json_object_set_new(fit, "oversubscribed", json_boolean(oversubscribed));
    return json_pack("{s:o}", sweep->ranks ? "ranks" : "batch", fit);
}

/* Speed-up and efficiency over the row of the fewest ranks. */
static void add_scaling(json_t *rows)
{
    const json_t *least = NULL;
    json_t *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        if (least == NULL || json_integer_value(json_object_get(row, "ranks")) <
                                 json_integer_value(json_object_get(least, "ranks")))
            least = row;
    }
    double ranks = json_number_value(json_object_get(least, "ranks"));
    double seconds = json_number_value(json_object_get(least, "median_seconds"));
    json_array_foreach(rows, i, row)
    {
        double speed = seconds / json_number_value(json_object_get(row, "median_seconds"));
        double more = json_number_value(json_object_get(row, "ranks")) / ranks;
        json_object_set_new(row, "scaling_speedup", json_real(speed));
        json_object_set_new(row, "scaling_efficiency", json_real(speed / more));
    }
}

static json_t *report_list(const struct dt_sweep *sweep, json_t *list)
{
    json_t *rows = json_array(), *left_out = json_array(), *row;
    size_t i;
    if (sweep->values.count == 0) {
        json_decref(rows);
        json_decref(left_out);
        return json_incref(json_array_get(list, 0));
    }
    json_array_foreach(list, i, row)
    {
        json_array_append(is_left_out(row) ? left_out : rows, row);
    }
    if (sweep->ranks)
        add_scaling(rows);
    json_t *fits = fit_sweep(sweep, rows);
    return json_pack("{s:o, s:o, s:o}", "sweep", rows, "left_out", left_out, "fits", fits);
}

/* The two were measured one after the other: what happened meanwhile is in the ratio. */
static void add_one(const struct dt_result *result, const struct dt_result *one,
                    struct dt_text *out)
{
    dt_text_add(out, "1 rank      ");
    dt_figure_time(one->summary.median, out);
    dt_text_add(out, " warm, ");
    dt_figure_time(one->cold_seconds, out);
    dt_text_add(out,
                " cold; %.3f times this plan's step (unpaired: not evidence; dittune --against "
                "compares)\n",
                one->summary.median / result->summary.median);
}

void dt_report_run(const struct dt_result *result, const struct dt_result *one,
                   const struct dt_target *target, struct dt_text *out)
{
    struct dt_text text = {0};
    json_t *fits = json_pack("{s:o}", "exchanges", dt_fits_exchanges(result->report.exchanges));
    dt_text_add(&text, "%s%s\n", target->foreign ? "worker      " : "network     ",
                target->identity.title);
    if (!target->foreign) {
        dt_text_add(&text, "back end    ");
        dt_target_units(target, target->hardware.cores, &text);
        dt_text_add(&text, "\n");
    }
    dt_report_result(result, target, &text);
    dt_fits_text(fits, &text);
    json_decref(fits);
    if (one->samples.n > 0) {
        add_one(result, one, &text);
        dt_report_cold(result, one, target, &text);
    }
    dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, LABEL, out);
    dt_text_fini(&text);
}

static double number_at(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

static void add_sweep_row(const struct dt_sweep *sweep, const json_t *row, struct dt_unit unit,
                          struct dt_text *out)
{
    const double figures[] = {number_at(row, "median_seconds") / unit.size,
                              number_at(row, "samples_per_second"),
                              number_at(row, "flop_rate") * 1e-9};
    dt_text_add(out, "%8.0f", number_at(row, sweep->ranks ? "ranks" : "batch"));
    for (int i = 0; i < 3; i++) {
        struct dt_text cell = {0};
        if (i < 2 || figures[i] > 0)
            dt_figure_add(figures[i], &cell);
        dt_text_add(out, "%14s", cell.size > 0 ? dt_text_at(&cell) : "-");
        dt_text_fini(&cell);
    }
    if (sweep->ranks)
        dt_text_add(out, "%10.2fx%10.0f %%", number_at(row, "scaling_speedup"),
                    100 * number_at(row, "scaling_efficiency"));
    dt_text_add(out, "\n");
}

static void add_left_out(const struct dt_sweep *sweep, const json_t *record, struct dt_text *out)
{
    const json_t *row, *list = json_object_get(record, "left_out");
    size_t i;
    json_array_foreach((json_t *)list, i, row)
    {
        dt_text_add(out, "left out: %s=%.0f: %s\n", sweep->ranks ? "ranks" : "batch",
                    number_at(row, sweep->ranks ? "ranks" : "batch"),
                    json_string_value(json_object_get(row, "left_out")));
    }
}

static void add_sweep(const struct dt_sweep *sweep, const json_t *record, struct dt_text *out)
{
    const json_t *rows = json_object_get(record, "sweep"), *row;
    struct dt_text text = {0};
    double least = INFINITY;
    char step[24];
    size_t i;
    json_array_foreach((json_t *)rows, i, row)
    {
        least = fmin(least, number_at(row, "median_seconds"));
    }
    struct dt_unit unit = dt_figure_time_unit(least);
    snprintf(step, sizeof step, "step, %s", unit.name);
    row = json_array_get(rows, 0);
    dt_text_add(&text, "%s\n%8s%14s%14s%14s%s\n", json_string_value(json_object_get(row, "title")),
                sweep->ranks ? "ranks" : "batch", step, "image-steps/s", "GFLOP/s",
                sweep->ranks ? "   speed-up  efficiency" : "");
    json_array_foreach((json_t *)rows, i, row)
    {
        add_sweep_row(sweep, row, unit, &text);
    }
    add_left_out(sweep, record, &text);
    if (sweep->ranks && json_array_size(rows) > 1)
        dt_text_add(&text, "speed-up and efficiency: over the fewest ranks, unpaired (not "
                           "evidence)\n");
    dt_fits_text(json_object_get(record, "fits"), &text);
    dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, LABEL, out);
    dt_text_fini(&text);
}

dt_status dt_print_run(const struct dt_sweep *sweep, json_t *list, struct dt_text *text, bool json)
{
    json_t *record = report_list(sweep, list);
    if (json)
        return dt_print_json(record);
    if (sweep->values.count > 0) {
        dt_text_clear(text);
        add_sweep(sweep, record, text);
    }
    json_decref(record);
    return dt_print_text(text);
}
