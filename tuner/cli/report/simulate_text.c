/* SPDX-License-Identifier: MIT */
#include "tuner/cli/report/report.h"

#include "base/figures.h"

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* " [low, high]" times scale, or nothing where there is none. */
static void add_interval(const json_t *object, const char *key, double scale, struct dt_text *out)
{
    const json_t *interval = json_object_get(object, key);
    const json_t *low = json_array_get(interval, 0), *high = json_array_get(interval, 1);
    if (json_is_number(low) && json_is_number(high))
        dt_text_add(out, " [%.4g, %.4g]", scale * json_number_value(low),
                    scale * json_number_value(high));
}

static void add_head(const json_t *object, struct dt_text *out)
{
    dt_text_add(out, "%s%s%s: %lld plan%s, %lld of them failed, best %.6g %s\n",
                dt_json_text_at(object, "title"),
                dt_json_text_at(object, "device")[0] != '\0' ? " on " : "",
                dt_json_text_at(object, "device"), (long long)real(object, "feasible"),
                real(object, "feasible") == 1 ? "" : "s", (long long)real(object, "failed"),
                real(object, "optimum"), dt_json_text_at(object, "unit"));
    dt_text_add(out, "%s, %d evaluations, %d repeats", dt_json_text_at(object, "search"),
                (int)real(object, "evals"), (int)real(object, "repeats"));
    if (dt_json_text_at(object, "prior")[0] != '\0')
        dt_text_add(out, ", with %s as prior", dt_json_text_at(object, "prior"));
    const json_t *seconds = json_object_get(object, "seconds");
    dt_text_add(out, "; they took %s where they were recorded\n\n",
                dt_figure_of(real(seconds, "mean")).text);
}

void dt_report_simulation_text(const json_t *object, struct dt_text *out)
{
    const json_t *score = json_object_get(object, "score_p");
    const json_t *times = json_object_get(object, "ask_tell_ms"), *row;
    const char *key;
    add_head(object, out);
    dt_text_add(out, "score P            %.3f", real(score, "mean"));
    add_interval(score, "interval", 1, out);
    dt_text_add(out, "   (0: random search, 1: the optimum at once)\n");
    json_object_foreach((json_t *)json_object_get(object, "gap"), key, row)
    {
        dt_text_add(out, "best / optimum     %.4f", real(row, "mean"));
        add_interval(row, "interval", 1, out);
        dt_text_add(out, " after %s\n", key);
    }
    json_object_foreach((json_t *)json_object_get(object, "within"), key, row)
    {
        dt_text_add(out, "within %2s %%        %.0f %% of the repeats", key,
                    100 * real(row, "share"));
        if (json_is_number(json_object_get(row, "median_evals")))
            dt_text_add(out, ", half of them by evaluation %.4g", real(row, "median_evals"));
        dt_text_add(out, "\n");
    }
    dt_text_add(out, "ask + tell         %s median, %s at most, of processor time\n",
                dt_figure_of(1e-3 * real(times, "median")).text,
                dt_figure_of(1e-3 * real(times, "max")).text);
    if (real(times, "refits") > 0)
        dt_text_add(out, "refits             %.0f, %s median, %s at most\n", real(times, "refits"),
                    dt_figure_of(1e-3 * real(times, "refit_median")).text,
                    dt_figure_of(1e-3 * real(times, "refit_max")).text);
}
