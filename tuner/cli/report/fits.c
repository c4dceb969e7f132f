/* SPDX-License-Identifier: MIT */
#include "tuner/cli/report/report.h"

#include "base/figures.h"
#include "stats/fit.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

/* Fields common to all fits; `name` is that of the points' x. fitted: false with too few points. */
static json_t *common(const char *name, const double x[], const double seconds[],
                      const struct dt_line *line)
{
    json_t *points = json_array();
    for (int i = 0; i < line->n; i++)
        json_array_append_new(
            points,
            json_pack("{s:I, s:f, s:o}", name, (json_int_t)x[i], "seconds", seconds[i], "residual",
                      dt_json_number(line->why == NULL ? line->residual[i] : NAN)));
    return json_pack("{s:o, s:o, s:s?}", "points", points, "degrees_of_freedom",
                     line->why == NULL ? json_integer(line->n - 2) : json_null(), "reason",
                     line->why);
}

static void set(json_t *fit, const struct dt_line *line, const char *name, double value)
{
    json_object_set_new(fit, name, line->why == NULL ? dt_json_number(value) : json_null());
}

json_t *dt_fits_ranks(const double ranks[], const double seconds[], int n)
{
    struct dt_amdahl fit = dt_stats_amdahl(ranks, seconds, n);
    json_t *object = common("ranks", ranks, seconds, &fit.line);
    set(object, &fit.line, "serial_fraction", fit.serial);
    set(object, &fit.line, "serial_error", fit.serial_error);
    set(object, &fit.line, "one_rank_seconds", fit.seconds);
    json_object_set_new(object, "bounded", json_boolean(fit.bounded != 0));
    return object;
}

json_t *dt_fits_batch(const double batches[], const double seconds[], int n)
{
    struct dt_line line = dt_stats_line(batches, seconds, n);
    json_t *object = common("batch", batches, seconds, &line);
    set(object, &line, "seconds", line.a);
    set(object, &line, "seconds_error", line.a_error);
    set(object, &line, "seconds_per_image", line.b);
    set(object, &line, "seconds_per_image_error", line.b_error);
    return object;
}

/* Sizes and medians of an exchange's times; 0 when there are none. */
static int read_times(const json_t *exchange, double bytes[], double seconds[])
{
    const json_t *row, *ns = json_object_get(exchange, "ns");
    size_t i, k;
    json_array_foreach((json_t *)ns, i, row)
    {
        double times[DT_FIT_MOST];
        const json_t *value;
        if (i >= DT_FIT_MOST)
            break;
        json_array_foreach((json_t *)row, k, value)
        {
            if (k < DT_FIT_MOST)
                times[k] = json_number_value(value) * 1e-9;
        }
        k = json_array_size(row);
        seconds[i] = dt_stats_median(times, k < DT_FIT_MOST ? (int)k : DT_FIT_MOST);
        bytes[i] = json_number_value(json_array_get(json_object_get(exchange, "bytes"), i));
    }
    return (int)(json_array_size(ns) < DT_FIT_MOST ? json_array_size(ns) : DT_FIT_MOST);
}

/* Bandwidths of a point: bytes over time, and what the links carried of it (nccl-tests, doc/PERFORMANCE.md): a rank keeps
 * one block of an all-to-all to itself. */
static void add_bandwidths(const json_t *exchange, json_t *points)
{
    double n = json_number_value(json_object_get(exchange, "ranks"));
    const char *kind = json_string_value(json_object_get(exchange, "kind"));
    double factor = strcmp(kind, "alltoall") == 0 ? (n - 1) / n : 1;
    json_t *point;
    size_t i;
    json_array_foreach(points, i, point)
    {
        double rate = json_number_value(json_object_get(point, "bytes")) /
                      json_number_value(json_object_get(point, "seconds"));
        json_object_set_new(point, "algbw", dt_json_number(rate));
        json_object_set_new(point, "busbw", dt_json_number(rate * factor));
    }
}

static json_t *fit_exchange(const json_t *exchange)
{
    double bytes[DT_FIT_MOST] = {0}, seconds[DT_FIT_MOST] = {0};
    int n = read_times(exchange, bytes, seconds);
    struct dt_alpha_beta fit = dt_stats_alpha_beta(bytes, seconds, n);
    json_t *object = common("bytes", bytes, seconds, &fit.line);
    json_t *why = json_object_get(exchange, "reason");
    add_bandwidths(exchange, json_object_get(object, "points"));
    json_object_set(object, "kind", json_object_get(exchange, "kind"));
    json_object_set(object, "ranks", json_object_get(exchange, "ranks"));
    json_object_set(object, "stride", json_object_get(exchange, "stride"));
    set(object, &fit.line, "alpha_seconds", fit.seconds);
    set(object, &fit.line, "alpha_error", fit.seconds_error);
    set(object, &fit.line, "bytes_per_second", fit.bytes_per_second);
    set(object, &fit.line, "bytes_per_second_error", fit.bytes_per_second_error);
    if (why != NULL)
        json_object_set(object, "reason", why);
    return object;
}

json_t *dt_fits_exchanges(const json_t *exchanges)
{
    json_t *list = json_array();
    const json_t *exchange;
    size_t i;
    json_array_foreach((json_t *)exchanges, i, exchange)
    {
        json_array_append_new(list, fit_exchange(exchange));
    }
    return list;
}

static double at(const json_t *fit, const char *name)
{
    return json_number_value(json_object_get(fit, name));
}

static double residual_at(const json_t *points, size_t i)
{
    return at(json_array_get(points, i), "residual");
}

/* Half of the points are nearer to the fit. */
static double typical_residual(const json_t *points)
{
    double sizes[DT_FIT_MOST];
    int n = 0;
    for (size_t i = 0; i < json_array_size(points) && n < DT_FIT_MOST; i++)
        sizes[n++] = fabs(residual_at(points, i));
    return dt_stats_median(sizes, n);
}

static void add_percent(double share, struct dt_text *out)
{
    if (share < 5e-4)
        dt_text_add(out, "less than 0.05 %%");
    else
        dt_text_add(out, share < 0.1 ? "%.2g %%" : "%.0f %%", 100 * share);
}

/* "; fit over 3 batches" at the end of the formula, then the line that says the same in words. */
static void begin_words(const json_t *fit, const char *points, struct dt_text *out)
{
    dt_text_add(out, "; fit over %zu %s\n            in words: ",
                json_array_size(json_object_get(fit, "points")), points);
}

/* "; the farthest, batch 4, took 12 % longer than it says, the typical point is 3 % off" */
static void add_residuals(const json_t *fit, const char *x, struct dt_text *out)
{
    const json_t *points = json_object_get(fit, "points");
    size_t worst = 0;
    for (size_t i = 0; i < json_array_size(points); i++)
        worst = fabs(residual_at(points, i)) > fabs(residual_at(points, worst)) ? i : worst;
    double off = residual_at(points, worst);
    if (fabs(off) < 5e-4) {
        dt_text_add(out, "; the points are all of them on it within 0.05 %%\n");
        return;
    }
    dt_text_add(out, "; the farthest, %.0f %s, took ", at(json_array_get(points, worst), x), x);
    add_percent(fabs(off), out);
    dt_text_add(out, " %s than it says, the typical point is ", off > 0 ? "longer" : "less");
    add_percent(typical_residual(points), out);
    dt_text_add(out, " off\n");
}

/* The reason why there is no fit; false: there is one. */
static bool add_reason(const json_t *fit, struct dt_text *out)
{
    const char *reason = json_string_value(json_object_get(fit, "reason"));
    if (reason != NULL)
        dt_text_add(out, "no fit: %s\n", reason);
    return reason != NULL;
}

/* A latency below zero is a residual of the fit, not a time. */
static void add_exchange(const json_t *fit, struct dt_text *out)
{
    bool shift = strcmp(json_string_value(json_object_get(fit, "kind")), "shift") == 0;
    const char *where = json_string_value(json_object_get(fit, "at"));
    double alpha = at(fit, "alpha_seconds");
    dt_text_add(out, "%-12sof %.0f ranks", shift ? "P2P" : "all-to-all", at(fit, "ranks"));
    if (at(fit, "stride") > 1)
        dt_text_add(out, " that are %.0f apart", at(fit, "stride"));
    dt_text_add(out, "%s%s: ", where != NULL ? ", with " : "", where != NULL ? where : "");
    if (add_reason(fit, out))
        return;
    dt_text_add(out, "latency %s (+- %s), bandwidth %.3g GB/s (+- %.2g)", dt_figure_of(alpha).text,
                dt_figure_of(at(fit, "alpha_error")).text, at(fit, "bytes_per_second") * 1e-9,
                at(fit, "bytes_per_second_error") * 1e-9);
    begin_words(fit, "sizes", out);
    dt_text_add(out, "an empty exchange takes %s, and each MB takes %s",
                alpha > 0 ? dt_figure_of(alpha).text : "no time that can be measured",
                dt_figure_of(1e6 / at(fit, "bytes_per_second")).text);
    dt_text_add(out, alpha > 0 ? " more" : "");
    add_residuals(fit, "bytes", out);
}

static void add_ranks(const json_t *fit, struct dt_text *out)
{
    double serial = at(fit, "serial_fraction");
    dt_text_add(out, "scaling     ");
    if (add_reason(fit, out))
        return;
    dt_text_add(out, "%s x (s + (1 - s) / ranks), serial part s = %.3g (+- %.2g)",
                dt_figure_of(at(fit, "one_rank_seconds")).text, serial, at(fit, "serial_error"));
    begin_words(fit, "rank counts", out);
    dt_text_add(out, "Amdahl: %.3g %% of the step does not get faster with more ranks",
                100 * serial);
    if (json_is_true(json_object_get(fit, "bounded")))
        dt_text_add(out, serial > 0 ? " (the limit: more ranks did not make it faster)"
                                    : " (the limit: it got faster by more than the ranks)");
    add_residuals(fit, "ranks", out);
}

static void add_batch(const json_t *fit, struct dt_text *out)
{
    double fixed = at(fit, "seconds");
    dt_text_add(out, "batch       ");
    if (add_reason(fit, out))
        return;
    dt_text_add(out, "%s (+- %s) + %s (+- %s) an image", dt_figure_of(fixed).text,
                dt_figure_of(at(fit, "seconds_error")).text,
                dt_figure_of(at(fit, "seconds_per_image")).text,
                dt_figure_of(at(fit, "seconds_per_image_error")).text);
    begin_words(fit, "batches", out);
    dt_text_add(out, "each image adds %s", dt_figure_of(at(fit, "seconds_per_image")).text);
    if (fixed > 0) {
        dt_text_add(out, " to %s that a step takes with any batch", dt_figure_of(fixed).text);
    } else {
        dt_text_add(out, ", and a step takes nothing beside its images");
    }
    add_residuals(fit, "batch", out);
}

void dt_fits_text(const json_t *fits, struct dt_text *out)
{
    const json_t *fit, *ranks = json_object_get(fits, "ranks"),
                       *batch = json_object_get(fits, "batch");
    size_t i;
    json_array_foreach(json_object_get(fits, "exchanges"), i, fit)
    {
        add_exchange(fit, out);
    }
    if (ranks != NULL)
        add_ranks(ranks, out);
    if (batch != NULL)
        add_batch(batch, out);
}
