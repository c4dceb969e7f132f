/* SPDX-License-Identifier: MIT */
/* One step: its ranks and its kinds of work, in figures and tables. */
#include "tuner/cli/page/figure.h"

#include "base/json.h"
#include "tuner/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANKS_MOST = 128 };

static bool has_ranks(const struct dt_result *result)
{
    return result != NULL && result->samples.rank_seconds != NULL && result->ranks > 1 &&
           result->ranks <= RANKS_MOST;
}

void dt_page_draw_ranks(const struct page_view *view, struct dt_text *out)
{
    const struct dt_result *best = dt_session_best(view->session);
    struct page_figure figure;
    struct dt_text axis = {0};
    if (!has_ranks(best))
        return;
    dt_text_add(&axis, "median step");
    if (best->batch > 1)
        dt_text_add(&axis, " of %d images", best->batch);
    dt_text_add(&axis, ", %s", view->time.name);
    dt_page_figure_begin(&figure, view, "ranks", "rank", dt_text_at(&axis));
    dt_text_fini(&axis);
    dt_text_add(&figure.script,
                "set nokey\nset xrange [-0.6:%d.6]\nset yrange [0:*]\nset xtics 0,%d\nset boxwidth "
                "0.7\n",
                best->ranks - 1, 1 + best->ranks / 16);
    dt_page_figure_series(&figure, "@ using 1:2 with boxes fs solid lc rgb c_main");
    for (int i = 0; i < best->ranks; i++) {
        double median = dt_page_shown(view, best->samples.rank_seconds[i]);
        DT_PAGE_POINT(&figure, i, median);
        if (median > 0) /* gnuplot draws no box of no height */
            dt_page_figure_say(&figure, "rank %d: median step %.4g %s", i, median, view->time.name);
    }
    dt_page_figure_finish(
        &figure, "Ranks of the plan to use: a rank that is higher makes the others wait.", out);
}

/* A new object; NULL: no phases. Ceilings that were measured with another trial count by the number of devices. */
static json_t *roofline_of(const struct page_view *view, const struct dt_result *result)
{
    struct dt_result with = *result;
    for (int i = 0; i < view->count && !(with.report.flop_peak > 0); i++) {
        const struct dt_result *other = view->rows[i].result;
        double scale = other->devices > 0 ? (double)result->devices / other->devices : 0;
        with.report.flop_peak = scale * other->report.flop_peak;
        with.report.copy_peak = scale * other->report.copy_peak;
    }
    return dt_roofline(&with, view->session->target);
}

static double number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* A plan's kinds of work: those of a step, or, where plans differ in their batch, of an image and step. */
struct work {
    json_t *roofline; /* owned; NULL: no phases */
    double images;
};

/* A bar for each kind of work, in the order of another plan's, and a line where it would end at the device's
 * ceiling, where that is known. */
static void add_bars(struct page_figure *figure, const struct work *work, const json_t *order,
                     double shift)
{
    const char *unit = figure->view->time.name;
    size_t i;
    json_t *kind;
    dt_page_figure_say(figure, "%s", ""); /* the sample in the key */
    json_array_foreach((json_t *)order, i, kind)
    {
        const char *name = dt_json_text_at(kind, "name");
        const json_t *mine = dt_json_named(json_object_get(work->roofline, "kinds"), name);
        if (mine == NULL)
            continue;
        double fraction = number_at(mine, "fraction"),
               height = number_at(mine, "seconds") / work->images / figure->view->time.size;
        DT_PAGE_POINT(figure, (double)i + shift, height, height * fraction);
        if (height > 0 && isfinite(fraction))
            dt_page_figure_say(figure, "%s: %.4g %s, at the ceiling %.4g %s", name, height, unit,
                               height * fraction, unit);
        else if (height > 0)
            dt_page_figure_say(figure, "%s: %.4g %s", name, height, unit);
    }
}

static bool has_ceiling(const json_t *kinds)
{
    const json_t *kind;
    size_t i;
    json_array_foreach((json_t *)kinds, i, kind)
    {
        if (json_is_number(json_object_get(kind, "fraction")))
            return true;
    }
    return false;
}

/* "of a step, ms", "per image and step, ms" */
static void add_unit(const struct page_view *view, char *out, size_t size)
{
    bool alone = view->session->target->objective->one_batch;
    snprintf(out, size, "%s, %s", alone ? "of a step" : "per image and step", view->time.name);
}

static void draw_bars(const struct page_view *view, const struct work works[2], struct dt_text *out)
{
    const json_t *kinds = json_object_get(works[0].roofline, "kinds"), *kind;
    struct page_figure figure;
    size_t i;
    char axis[64];
    bool ceiling = has_ceiling(kinds);
    add_unit(view, axis, sizeof axis);
    dt_page_figure_begin(&figure, view, "phases", "", axis);
    struct dt_text *script = &figure.script;
    dt_text_add(script, "set xrange [-0.6:%zu.4]\nset yrange [0:*]\nset boxwidth 0.35\nset xtics (",
                json_array_size(kinds) - 1);
    json_array_foreach((json_t *)kinds, i, kind)
    {
        dt_text_add(script, "%s'", i > 0 ? ", " : "");
        dt_page_figure_word(dt_json_text_at(kind, "name"), 12, script);
        dt_text_add(script, "' %zu", i);
    }
    dt_text_add(script, ")\n");
    for (int k = 0; k < 2; k++) {
        dt_page_figure_series(&figure, "@ using 1:2 with boxes fs solid lc rgb %s title '%s'%s%s",
                              k == 0 ? "c_main" : "c_dim", k == 0 ? "plan to use" : "default",
                              ceiling ? ", @ using ($1-0.175):3:(0.35):(0) with vectors nohead lw "
                                        "2.5 lc rgb c_second "
                                      : "",
                              !ceiling ? ""
                              : k == 0 ? "title 'at the ceiling'"
                                       : "notitle");
        if (works[k].roofline != NULL)
            add_bars(&figure, &works[k], kinds,
                     works[1].roofline == NULL ? 0
                     : k == 0                  ? -0.19
                                               : 0.19);
    }
    dt_page_figure_finish(
        &figure,
        ceiling ? "Where a step's time goes on its last rank. The line: the same work at the "
                  "device's ceiling (roofline). A line above its bar: the data stayed in a cache, "
                  "which is faster than the copy of the ceiling."
                : "Where a step's time goes on its last rank.",
        out);
}

/* Of the plan to use and of the default, where that is another plan. */
static void read_works(const struct page_view *view, struct work works[2])
{
    const struct dt_session *session = view->session;
    const struct dt_result *best = dt_session_best(session),
                           *known = dt_session_role(session, DT_ENTRANT_DEFAULT);
    bool alone = session->target->objective->one_batch;
    bool other = best != NULL && known != NULL &&
                 !dt_point_equal(session->target->space, &known->point, &best->point);
    works[0].roofline = best != NULL ? roofline_of(view, best) : NULL;
    works[0].images = alone || best == NULL ? 1 : best->batch;
    works[1].roofline = other && works[0].roofline != NULL ? roofline_of(view, known) : NULL;
    works[1].images = alone || known == NULL ? 1 : known->batch;
}

static void free_works(struct work works[2])
{
    json_decref(works[0].roofline);
    json_decref(works[1].roofline);
}

void dt_page_draw_phases(const struct page_view *view, struct dt_text *out)
{
    struct work works[2];
    read_works(view, works);
    if (json_array_size(json_object_get(works[0].roofline, "kinds")) > 0)
        draw_bars(view, works, out);
    free_works(works);
}

/* ---- their tables */

void dt_page_ranks(const struct page_view *view, struct page_pen *pen)
{
    const struct dt_result *best = dt_session_best(view->session);
    if (best == NULL || best->samples.rank_seconds == NULL || best->ranks < 2)
        return;
    char caption[192];
    snprintf(
        caption, sizeof caption,
        "Ranks of the plan to use. In a step the last one ends %.3g %s after the first (median "
        "of the steps, not difference of the medians)",
        best->samples.skew_seconds / view->time.size, view->time.name);
    dt_pen_table(pen, "", caption, ">rank|>median step, %s|>steps in which it was last",
                 view->time.name);
    for (int i = 0; i < best->ranks; i++) {
        dt_pen_cell(pen, "%d", i);
        dt_pen_figure(pen, dt_page_shown(view, best->samples.rank_seconds[i]));
        dt_pen_cell(pen, "%d", best->samples.last != NULL ? best->samples.last[i] : 0);
    }
    dt_pen_end(pen);
}

static void add_kinds(const struct page_view *view, struct page_pen *pen, const char *role,
                      const struct work *work)
{
    const json_t *kinds = json_object_get(work->roofline, "kinds"), *kind;
    size_t i;
    json_array_foreach((json_t *)kinds, i, kind)
    {
        const char *unit = json_string_value(json_object_get(kind, "unit"));
        dt_pen_cell(pen, "%s", role);
        dt_pen_cell(pen, "%s", dt_json_text_at(kind, "name"));
        dt_pen_figure(pen, number_at(kind, "seconds") / work->images / view->time.size);
        dt_pen_number(pen, 100 * number_at(kind, "share"), "%.1f");
        dt_pen_figure(pen, number_at(kind, "rate") * 1e-9);
        dt_pen_cell(pen, "%s", unit == NULL ? "" : strcmp(unit, "flops") == 0 ? "GFLOP/s" : "GB/s");
        dt_pen_number(pen, 100 * number_at(kind, "fraction"), "%.0f");
    }
}

void dt_page_phases(const struct page_view *view, struct page_pen *pen)
{
    char unit[64];
    struct work works[2];
    read_works(view, works);
    if (works[0].roofline != NULL) {
        add_unit(view, unit, sizeof unit);
        dt_pen_table(pen, "",
                     "Where a step's time goes on its last rank, and how near each kind of work is "
                     "to the device's ceiling (roofline)",
                     "plan|kind of work|>%s|>share, %%|>rate|unit|>of the ceiling, %%", unit);
        add_kinds(view, pen, "to use", &works[0]);
        add_kinds(view, pen, "default", &works[1]);
        dt_pen_end(pen);
    }
    free_works(works);
}
