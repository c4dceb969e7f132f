/* SPDX-License-Identifier: MIT */
/* What `run` says of one plan, or of a sweep. */
#include "base/figures.h"
#include "tuner/session/record.h"
#include "tuner/session/report.h"
#include "tuner/trial/fits.h"

json_t *dt_record_run(const struct dt_result *result, const struct dt_result *one,
                      const struct dt_target *target)
{
    json_t *object = dt_result_json(result, target);
    struct dt_text cold = {0};
    json_object_set_new(object, "title", json_string(target->title));
    json_object_set_new(object, "baseline", one->n > 0 ? dt_result_json(one, target) : json_null());
    json_object_set_new(object, "speedup",
                        one->n > 0 ? json_real(one->summary.median / result->summary.median)
                                   : json_null());
    bool said = dt_report_cold(result, one->n > 0 ? one : NULL, target, &cold);
    json_object_set_new(object, "cold_note", said ? json_string(dt_text_at(&cold)) : json_null());
    json_object_set_new(object, "fits",
                        json_pack("{s:o}", "exchanges", dt_fits_exchanges(result->exchanges)));
    dt_text_fini(&cold);
    return object;
}

/* {"batch": fit} or {"ranks": fit} of what the sweep measured. */
static json_t *fit_sweep(const struct dt_sweep *sweep, const json_t *list)
{
    double x[DT_LIST_MAX], seconds[DT_LIST_MAX];
    int n = (int)json_array_size(list);
    bool oversubscribed = false;
    for (int i = 0; i < n; i++) {
        const json_t *row = json_array_get(list, (size_t)i);
        x[i] = sweep->values.values[i];
        seconds[i] = json_number_value(json_object_get(row, "median_seconds"));
        oversubscribed = oversubscribed || json_is_true(json_object_get(row, "oversubscribed"));
    }
    json_t *fit = sweep->ranks ? dt_fits_ranks(x, seconds, n) : dt_fits_batch(x, seconds, n);
    json_object_set_new(fit, "oversubscribed", json_boolean(oversubscribed));
    return json_pack("{s:o}", sweep->ranks ? "ranks" : "batch", fit);
}

json_t *dt_record_runs(const struct dt_sweep *sweep, json_t *list)
{
    if (sweep->values.count == 0)
        return json_incref(json_array_get(list, 0));
    return json_pack("{s:O, s:o}", "sweep", list, "fits", fit_sweep(sweep, list));
}

void dt_report_run(const struct dt_result *result, const struct dt_result *one,
                   const struct dt_target *target, struct dt_text *out)
{
    json_t *fits = json_pack("{s:o}", "exchanges", dt_fits_exchanges(result->exchanges));
    dt_report_result(result, target, out);
    dt_fits_text(fits, out);
    json_decref(fits);
    if (one->n == 0)
        return;
    dt_text_add(out, "1 rank      ");
    dt_figure_time(one->summary.median, out);
    dt_text_add(out, " warm, ");
    dt_figure_time(one->cold_seconds, out);
    dt_text_add(out, " cold: this plan is %.3f times as fast\n",
                one->summary.median / result->summary.median);
    dt_report_cold(result, one, target, out);
}

void dt_report_sweep(const struct dt_sweep *sweep, const json_t *record, struct dt_text *text)
{
    const json_t *list = json_object_get(record, "sweep");
    const char *name = sweep->ranks ? "ranks" : "batch";
    dt_text_add(text, "%8s %12s %14s %14s\n", name, "step, ms", "samples/s", "GFLOP/s");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *row = json_array_get(list, i);
        dt_text_add(text, "%8lld %12.4g %14.4g %14.4g\n",
                    (long long)json_integer_value(json_object_get(row, name)),
                    json_number_value(json_object_get(row, "median_seconds")) * 1e3,
                    json_number_value(json_object_get(row, "samples_per_second")),
                    json_number_value(json_object_get(row, "flop_rate")) * 1e-9);
    }
    dt_fits_text(json_object_get(record, "fits"), text);
}
