/* SPDX-License-Identifier: MIT */
/* Bounds of the ratio of two trials are those of their intervals: no pairs were measured, which is
 * for the final comparison. */
#include "base/clock.h"
#include "base/columns.h"
#include "base/figures.h"
#include "space/json/json.h"
#include "tuner/cli/live/progress.h"
#include "tuner/cli/live/screen.h"

#include <math.h>
#include <string.h>

#define SPARKS 24 /* most columns of the curve */

void dt_curve_add(struct dt_curve *curve, double value, int64_t now_ns)
{
    double before = curve->count > 0 ? curve->value[curve->count - 1] : INFINITY;
    if (value < before)
        curve->best_ns = now_ns;
    if (curve->every == 0)
        curve->every = 1;
    if (curve->count == DT_CURVE_MOST) { /* every second one stays */
        for (int i = 0; i < DT_CURVE_MOST / 2; i++)
            curve->value[i] = curve->value[2 * i];
        curve->count = DT_CURVE_MOST / 2;
        curve->every *= 2;
    }
    bool another = curve->count == 0 || curve->trials++ % curve->every == 0;
    curve->count += another;
    curve->value[curve->count - 1] = fmin(before, value);
}

/* "15/60 s, 45 s left" */
static void add_time(const struct dt_progress *progress, struct dt_text *out)
{
    double used = (double)(dt_clock_ns() - progress->began_ns) * 1e-9;
    double all = (double)(progress->deadline_ns - progress->began_ns) * 1e-9;
    if (progress->deadline_ns == 0) {
        dt_figure_span(used, out);
        return;
    }
    dt_text_add(out, "%s/%s s, %s left", dt_figure_number(rint(used)).text,
                dt_figure_number(rint(all)).text, dt_figure_span_of(fmax(all - used, 0)).text);
}

/* "best 81.2 ms [80.9, 81.6], 1.12x [1.1, 1.14] the default", and its plan: the
 * trials' own figures. */
static void add_best(const struct dt_progress *progress, struct dt_text *out)
{
    const struct dt_result *best = progress->best, *fallback = progress->fallback;
    if (best == NULL)
        return;
    dt_text_add(out, "\nbest ");
    dt_figure_value(progress->target->objective->metric, best->summary.median,
                    best->summary.interval.low, best->summary.interval.high, out);
    if (fallback == best) {
        dt_text_add(out, ", the default");
    } else if (fallback != NULL) {
        struct dt_trial a = dt_result_trial(fallback, progress->target);
        struct dt_trial b = dt_result_trial(best, progress->target);
        dt_text_add(out, ", %.2fx [%.2f, %.2f] the default", a.value / b.value, a.low / b.high,
                    a.high / b.low);
    }
    dt_text_add(out, "\n  ");
    dt_point_short(progress->target->space, &best->point, out);
}

static void add_sparks(const struct dt_curve *curve, struct dt_text *out)
{
    static const char *const utf8[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                       "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const ascii[] = {"_", ".", "-", ":", "=", "+", "*", "#"};
    const char *const *levels = dt_screen_utf8() ? utf8 : ascii;
    double most = curve->value[0], least = curve->value[curve->count - 1];
    int columns = curve->count < SPARKS ? curve->count : SPARKS;
    for (int i = 0; i < columns; i++) {
        double value = curve->value[i * (curve->count - 1) / (columns - 1)];
        dt_text_add(out, "%s", levels[(int)lround(7 * (value - least) / (most - least))]);
    }
}

/* The curve of the best value, the time of the last improvement, and the search's
 * chance of another one. */
static void add_search(const struct dt_progress *progress, struct dt_text *out)
{
    const struct dt_curve *curve = &progress->curve;
    const struct dt_chance *chance = progress->chance;
    if (curve->count > 1 && curve->value[0] > curve->value[curve->count - 1]) {
        dt_text_add(out, "\n");
        add_sparks(curve, out);
        dt_text_add(out, "  last gain %s ago",
                    dt_figure_span_of((double)(dt_clock_ns() - curve->best_ns) * 1e-9).text);
    }
    if (chance != NULL && chance->known)
        dt_text_add(out, "\nchance of a gain above %g %%: %s%s", 100 * DT_GAIN,
                    chance->least ? "at least " : "",
                    dt_figure_percent(fmax(chance->share, 1e-4)).text);
}

void dt_progress_text(const struct dt_progress *progress, int columns, struct dt_text *out)
{
    const struct dt_activity *now = &progress->now;
    const struct dt_counts *counts = &progress->counts;
    dt_auto_text text = {0};
    add_time(progress, &text);
    if (counts->done > 0)
        dt_text_add(&text, " | %d trial%s, %d failed", counts->done, counts->done == 1 ? "" : "s",
                    counts->failed);
    if (counts->cut > 0)
        dt_text_add(&text, ", %d cut short", counts->cut);
    if (progress->comparison == NULL) {
        add_best(progress, &text);
        add_search(progress, &text);
    }
    if (columns > 0)
        dt_columns_wrap(dt_text_at(&text), columns, 2, out);
    else
        dt_text_add(out, "%s", dt_text_at(&text));
    if (now->phase != NULL || now->what[0] != '\0')
        dt_text_add(out, "\n%s%s%s", now->phase != NULL ? now->phase : "",
                    now->phase != NULL && now->what[0] != '\0' ? ": " : "", now->what);
    if (now->said != NULL && now->said[0] != '\0')
        dt_text_add(out, "\n  %s", now->said);
    dt_text_clean_lines(out);
}

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *plan_json(const struct dt_progress *progress, const struct dt_result *result)
{
    if (result == NULL)
        return json_null();
    return json_pack("{s:o, s:o, s:[o, o]}", "plan",
                     dt_point_json(progress->target->space, &result->point), "median_seconds",
                     dt_json_number(result->summary.median), "interval_seconds",
                     dt_json_number(result->summary.interval.low),
                     dt_json_number(result->summary.interval.high));
}

json_t *dt_progress_json(const struct dt_progress *progress)
{
    const struct dt_counts *counts = &progress->counts;
    const struct dt_activity *now = &progress->now;
    double used = (double)(dt_clock_ns() - progress->began_ns) * 1e-9;
    double left = (double)(progress->deadline_ns - dt_clock_ns()) * 1e-9;
    bool chance = progress->chance != NULL && progress->chance->known;
    return json_pack(
        "{s:f, s:o, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "elapsed_seconds", used,
        "left_seconds", progress->deadline_ns > 0 ? json_real(fmax(left, 0)) : json_null(),
        "trials", counts->done, "failed", counts->failed, "cut", counts->cut, "doing",
        text_or_null(now->what), "phase", text_or_null(now->phase), "comparison",
        text_or_null(progress->comparison), "best", plan_json(progress, progress->best), "default",
        plan_json(progress, progress->fallback), "chance_of_gain",
        chance ? json_real(progress->chance->share) : json_null());
}
