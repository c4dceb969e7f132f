/* SPDX-License-Identifier: MIT */
/* The figures: gnuplot scripts made of numbers and of words that mean nothing to it. */
#include "tuner/cli/page/figure.h"

#include "tuner/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MOST = 1200, EFFECTS_MOST = 8, FRONT_MOST = 256 };

/* Of many trials some are drawn, evenly over the session. */
static bool is_drawn(const struct page_view *view, int i)
{
    int step = 1 + view->measured / POINTS_MOST;
    return i % step == 0;
}

/* ---- the course of the session */

/* Drops early measured as slow are points of their own; failures lie on the upper edge. */
static double add_trials(struct page_figure *figure, bool slow)
{
    const struct page_view *view = figure->view;
    double best = INFINITY, top = 0;
    for (int i = 0; i < view->count; i++) {
        const struct page_row *row = &view->rows[i];
        bool leads = row->value < best && dt_session_eligible(view->session, row->result);
        if (!isfinite(row->value))
            continue;
        best = leads ? row->value : best;
        top = fmax(top, row->value);
        if ((row->result->outcome == DT_TRIAL_SLOW) != slow || (!leads && !is_drawn(view, i)))
            continue;
        struct dt_trial trial = dt_result_trial(row->result, view->session->target);
        dt_text_add(&figure->script, "%d", row->number);
        dt_page_figure_number(dt_page_shown(view, row->value), &figure->script);
        dt_page_figure_number(dt_page_shown(view, isfinite(trial.low) ? trial.low : row->value),
                              &figure->script);
        dt_page_figure_number(dt_page_shown(view, isfinite(trial.high) ? trial.high : row->value),
                              &figure->script);
        dt_text_add(&figure->script, "\n");
        dt_page_figure_title(figure, row);
    }
    return dt_page_shown(view, top);
}

static void add_best_so_far(struct page_figure *figure)
{
    const struct page_view *view = figure->view;
    double best = INFINITY;
    for (int i = 0; i < view->count; i++) {
        const struct page_row *row = &view->rows[i];
        if (isfinite(row->value) && row->value < best &&
            dt_session_eligible(view->session, row->result)) {
            best = row->value;
            dt_text_add(&figure->script, "%d", row->number);
            dt_page_figure_number(dt_page_shown(view, best), &figure->script);
            dt_text_add(&figure->script, "\n");
        }
    }
    if (isfinite(best)) {
        dt_text_add(&figure->script, "%d", view->rows[view->count - 1].number);
        dt_page_figure_number(dt_page_shown(view, best), &figure->script);
        dt_text_add(&figure->script, "\n");
    }
}

/* Trials without a time, at the height `top`; how many. */
static int add_failures(struct page_figure *figure, double top)
{
    const struct page_view *view = figure->view;
    int failed = 0;
    for (int i = 0; i < view->count && failed < POINTS_MOST; i++)
        if (!isfinite(view->rows[i].value) && dt_page_failed(view->rows[i].result)) {
            dt_text_add(&figure->script, "%d %.7g\n", view->rows[i].number, top);
            dt_page_figure_title(figure, &view->rows[i]);
            failed++;
        }
    return failed;
}

void dt_page_draw_course(const struct page_view *view, struct dt_text *out)
{
    struct page_figure figure;
    if (view->measured < 2)
        return;
    dt_page_figure_begin(&figure, view, "course", 560, 320);
    dt_page_figure_times(&figure);
    struct dt_text *script = &figure.script;
    dt_page_figure_axis(&figure, 'x', "trial");
    dt_page_figure_axis(&figure, 'y', view->axis);
    dt_text_add(script, "$m << EOD\n");
    double top = add_trials(&figure, false);
    dt_page_figure_next(&figure); /* intervals have no tooltips */
    dt_page_figure_next(&figure);
    dt_text_add(script, "EOD\n$s << EOD\n");
    add_trials(&figure, true);
    dt_text_add(script, "EOD\n$b << EOD\n");
    add_best_so_far(&figure);
    dt_text_add(script, "EOD\n$f << EOD\n");
    if (view->slow > 0)
        dt_page_figure_next(&figure);
    int failed = add_failures(&figure, top);
    dt_text_add(script,
                "EOD\nset offsets 1,1,0,0\n"
                "plot $m using 1:2 with points pt 7 ps 0.5 lc rgb '%s' title 'measured', $m using "
                "1:3:(0):($4-$3) with vectors nohead lc rgb '%s' notitle",
                dt_page_colour(PAGE_MAIN), dt_page_colour(PAGE_MAIN));
    if (view->slow > 0)
        dt_text_add(script,
                    ", $s using 1:2 with points pt 9 ps 0.5 lc rgb '%s' title 'dropped early'",
                    dt_page_colour(PAGE_DIM));
    if (failed > 0)
        dt_text_add(script,
                    ", $f using 1:2 with points pt 2 ps 0.7 lc rgb '%s' title 'failed (no time)'",
                    dt_page_colour(PAGE_BAD));
    dt_text_add(script, ", $b using 1:2 with steps lw 2 lc rgb '%s' title 'best so far'\n",
                dt_page_colour(PAGE_SECOND));
    dt_page_figure_finish(
        &figure,
        "The session: each trial's time with its interval, and the best so far. Below is better.",
        out);
}

/* ---- time against memory */

void dt_page_draw_memory(const struct page_view *view, struct dt_text *out)
{
    struct page_figure figure;
    char axis[64];
    int front[FRONT_MOST], n = dt_page_front_rows(view, front, FRONT_MOST);
    if (n == 0 || view->measured < 2)
        return;
    dt_page_figure_begin(&figure, view, "memory", 560, 320);
    dt_page_figure_times(&figure);
    struct dt_text *script = &figure.script;
    snprintf(axis, sizeof axis, "memory of the largest rank, %s", view->memory.name);
    dt_page_figure_axis(&figure, 'x', axis);
    dt_page_figure_axis(&figure, 'y', view->axis);
    dt_text_add(script, "$m << EOD\n");
    for (int i = 0; i < view->count; i++)
        if (isfinite(view->rows[i].value) && is_drawn(view, i)) {
            dt_page_figure_number((double)view->rows[i].result->peak_bytes / view->memory.size,
                                  script);
            dt_page_figure_number(dt_page_shown(view, view->rows[i].value), script);
            dt_text_add(script, "\n");
            dt_page_figure_title(&figure, &view->rows[i]);
        }
    dt_text_add(script, "EOD\n$f << EOD\n");
    for (int i = 0; i < n; i++) {
        dt_page_figure_number((double)view->rows[front[i]].result->peak_bytes / view->memory.size,
                              script);
        dt_page_figure_number(dt_page_shown(view, view->rows[front[i]].value), script);
        dt_text_add(script, "\n");
    }
    dt_text_add(script, "EOD\n$u << EOD\n");
    const struct dt_result *best = dt_session_best(view->session);
    for (int k = 0; k < view->count && best != NULL; k++)
        if (isfinite(view->rows[k].value) &&
            dt_point_equal(view->session->target->space, &view->rows[k].result->point,
                           &best->point)) {
            dt_page_figure_number((double)view->rows[k].result->peak_bytes / view->memory.size,
                                  script);
            dt_page_figure_number(dt_page_shown(view, view->rows[k].value), script);
            dt_text_add(script, "\n");
        }
    dt_text_add(
        script,
        "EOD\nset offsets graph 0.05, graph 0.05, 0, 0\n"
        "plot $m using 1:2 with points pt 7 ps 0.5 lc rgb '%s' title 'measured', $f using "
        "1:2 with fsteps lw 2 lc rgb '%s' notitle, "
        "$f using 1:2 with points pt 7 ps 0.9 lc rgb '%s' title 'no plan beats it in both', "
        "$u using 1:2 with points pt 6 ps 1.4 lw 2 lc rgb '%s' title 'plan to use'\n",
        dt_page_colour(PAGE_MAIN), dt_page_colour(PAGE_SECOND), dt_page_colour(PAGE_SECOND),
        dt_page_colour(PAGE_THIRD));
    bool more = view->session->target->objective->metric != NULL;
    dt_page_figure_finish(&figure,
                          more ? "Value against memory. Above and to the left is better."
                               : "Time against memory. Below and to the left is better.",
                          out);
}

/* ---- prediction */

static double predicted_of(const struct page_row *row, double known)
{
    return isfinite(row->value) && row->result->predicted > 0 ? row->result->predicted * known
                                                              : NAN;
}

void dt_page_draw_predicted(const struct page_view *view, struct dt_text *out)
{
    struct page_figure figure;
    double known = dt_page_default(view);
    int n = 0;
    for (int i = 0; i < view->count; i++)
        n += isfinite(predicted_of(&view->rows[i], known));
    if (n < 2)
        return;
    dt_page_figure_begin(&figure, view, "predicted", 560, 320);
    dt_page_figure_times(&figure);
    char axis[96];
    snprintf(axis, sizeof axis, "predicted, %s", view->time.name);
    dt_page_figure_axis(&figure, 'x', axis);
    snprintf(axis, sizeof axis, "measured, %s", view->time.name);
    dt_page_figure_axis(&figure, 'y', axis);
    double low = INFINITY, high = 0;
    for (int i = 0; i < view->count; i++) {
        double predicted = dt_page_shown(view, predicted_of(&view->rows[i], known));
        low = isfinite(predicted) ? fmin(low, predicted) : low;
        high = isfinite(predicted) ? fmax(high, predicted) : high;
    }
    dt_page_figure_log(&figure, 'x', low, high);
    dt_text_add(&figure.script, "set nokey\n$m << EOD\n");
    for (int i = 0; i < view->count; i++)
        if (isfinite(predicted_of(&view->rows[i], known)) && is_drawn(view, i)) {
            dt_page_figure_number(dt_page_shown(view, predicted_of(&view->rows[i], known)),
                                  &figure.script);
            dt_page_figure_number(dt_page_shown(view, view->rows[i].value), &figure.script);
            dt_text_add(&figure.script, "\n");
            dt_page_figure_title(&figure, &view->rows[i]);
        }
    dt_text_add(&figure.script,
                "EOD\nplot $m using 1:2 with points pt 7 ps 0.5 lc rgb '%s', x with lines lc rgb "
                "'%s'\n",
                dt_page_colour(PAGE_MAIN), dt_page_colour(PAGE_INK));
    dt_page_figure_finish(&figure,
                          "Prediction: on the line a plan took what the prior expected of it; "
                          "above, it was slower.",
                          out);
}

/* ---- effects */

static void draw_effect(const struct page_view *view, const struct page_effect *effect,
                        struct dt_text *out)
{
    struct page_figure figure;
    const char *name = dt_space_axis(view->session->target->space, effect->axis)->name;
    char id[32], caption[160];
    snprintf(id, sizeof id, "effect%d", effect->axis);
    dt_page_figure_begin(&figure, view, id, 360, 260);
    dt_page_figure_times(&figure);
    struct dt_text *script = &figure.script;
    dt_page_figure_axis(&figure, 'x', name);
    dt_page_figure_axis(&figure, 'y', view->axis);
    dt_text_add(script, "set nokey\nset xrange [-0.6:%d.4]\nset xtics (", effect->count - 1);
    for (int k = 0; k < effect->count; k++) {
        struct dt_text value = {0};
        dt_page_axis_value(view, effect->axis, effect->used[k], &value);
        dt_text_add(script, "%s'", k > 0 ? ", " : "");
        dt_page_figure_word(dt_text_at(&value), 12, script);
        dt_text_add(script, "' %d", k);
        dt_text_fini(&value);
    }
    dt_text_add(script, ")\n$m << EOD\n");
    for (int i = 0; i < view->count; i++) {
        int k = 0;
        while (k < effect->count &&
               effect->used[k] != view->rows[i].result->point.index[effect->axis])
            k++;
        if (!isfinite(view->rows[i].value) || k == effect->count ||
            i % (1 + view->measured / 300) != 0)
            continue;
        /* beside each other by the golden ratio, so that equal times do not lie on one place */
        dt_text_add(script, "%.3f", k + 0.3 * (fmod(i * 0.618034, 1) - 0.5));
        dt_page_figure_number(dt_page_shown(view, view->rows[i].value), script);
        dt_text_add(script, "\n");
        dt_page_figure_title(&figure, &view->rows[i]);
    }
    dt_text_add(script, "EOD\n$c << EOD\n");
    for (int k = 0; k < effect->count; k++) {
        dt_text_add(script, "%.2f", k - 0.3);
        dt_page_figure_number(dt_page_shown(view, effect->median[k]), script);
        dt_text_add(script, "\n");
    }
    dt_text_add(script,
                "EOD\nplot $m using 1:2 with points pt 7 ps 0.4 lc rgb '%s', $c using "
                "1:2:(0.6):(0) with vectors nohead lw 2.5 lc rgb '%s'\n",
                dt_page_colour(PAGE_MAIN), dt_page_colour(PAGE_SECOND));
    struct dt_text words = {0};
    dt_page_figure_word(name, 40, &words);
    if (view->session->search.weighed)
        snprintf(caption, sizeof caption, "%s: explains alone %.0f %% of the differences.",
                 dt_text_at(&words), 100 * effect->share);
    else
        snprintf(caption, sizeof caption, "%s", dt_text_at(&words));
    dt_text_fini(&words);
    dt_page_figure_finish(&figure, caption, out);
}

void dt_page_draw_effects(const struct page_view *view, struct dt_text *out)
{
    struct page_effect effects[DT_AXES_MAX];
    int n = dt_page_effects(view, effects);
    for (int i = 0; i < n && i < EFFECTS_MOST; i++)
        if (effects[i].count <= 16)
            draw_effect(view, &effects[i], out);
}

/* ---- the final comparison */

static const enum page_colour entrant_colours[] = {PAGE_INK,   PAGE_MAIN, PAGE_SECOND,
                                                   PAGE_THIRD, PAGE_BAD,  PAGE_DIM};

static int ascending(const void *a, const void *b)
{
    double one = *(const double *)a, two = *(const double *)b;
    return (one > two) - (one < two);
}

/* Speed of the entrant in a round, over that of the default. */
static double speed_of(const struct page_view *view, int entrant, int round)
{
    return dt_page_visit(view, 0, round) / dt_page_visit(view, entrant, round);
}

/* The range that holds all intervals, 1, the noise and nine in ten of the rounds. */
static struct dt_interval range_of(const struct page_view *view, int rounds, double margin)
{
    const struct dt_session_finals *finals = &view->session->finals;
    double speeds[DT_ENTRANTS * DT_ROUNDS_MOST], low = 1, high = 1;
    int n = 0;
    for (int i = 1; i < finals->entrant_count; i++) {
        const struct dt_interval *interval = &finals->entrants[i].ratio.interval;
        for (int k = 0; k < rounds; k++)
            if (isfinite(speed_of(view, i, k)))
                speeds[n++] = speed_of(view, i, k);
        if (isfinite(interval->high)) {
            low = fmin(low, 1 / interval->high);
            high = fmax(high, 1 / interval->low);
        }
    }
    qsort(speeds, (size_t)n, sizeof *speeds, ascending);
    if (n > 0) {
        low = fmin(low, speeds[n / 20]);
        high = fmax(high, speeds[n - 1 - n / 20]);
    }
    if (isfinite(margin) && margin < 1) {
        low = fmin(low, 1 / (1 + margin));
        high = fmax(high, 1 + margin);
    }
    double edge = 0.05 * (high - low);
    return (struct dt_interval){.low = low - edge, .high = high + edge};
}

/* The entrant's rounds, and its ratio with the interval to the right of them; how many rounds lie outside. */
static int add_entrant(struct page_figure *figure, int entrant, int rounds,
                       struct dt_interval range)
{
    const struct page_view *view = figure->view;
    const struct dt_ratio *ratio = &view->session->finals.entrants[entrant].ratio;
    struct dt_text *script = &figure->script;
    int outside = 0;
    dt_text_add(script, "$e%d << EOD\n", entrant);
    for (int k = 0; k < rounds; k++) {
        double speed = speed_of(view, entrant, k);
        if (!(speed >= range.low && speed <= range.high)) {
            outside += isfinite(speed);
            continue;
        }
        dt_text_add(script, "%d %.7g\n", k + 1, speed);
        if (ratio->pairs > 0)
            dt_page_figure_say(figure, "%s, round %d: %.3f times as fast as the default",
                               dt_page_role(view, entrant), k + 1, speed);
    }
    dt_text_add(script, "EOD\n$i%d << EOD\n%.6g", entrant,
                rounds + (0.5 + 0.6 * entrant) * (1 + rounds / 30.0));
    dt_page_figure_number(1 / ratio->ratio, script);
    dt_page_figure_number(1 / ratio->interval.high, script);
    dt_page_figure_number(1 / ratio->interval.low, script);
    dt_text_add(script, "\nEOD\n");
    if (ratio->pairs == 0)
        return 0;
    dt_page_figure_next(figure); /* the interval's point, drawn twice: a white edge and itself */
    for (int i = 0; i < 2; i++)
        dt_page_figure_say(figure,
                           "%s, all rounds: %.3f times as fast as the default, interval %.3f to "
                           "%.3f",
                           dt_page_role(view, entrant), 1 / ratio->ratio, 1 / ratio->interval.high,
                           1 / ratio->interval.low);
    dt_page_figure_next(figure);
    return outside;
}

static void add_frame(struct page_figure *figure, struct dt_interval range, double margin)
{
    struct dt_text *script = &figure->script;
    dt_page_figure_axis(figure, 'x', "round, at the right all, with intervals");
    dt_page_figure_axis(figure, 'y', "speed against the default");
    dt_text_add(script, "set yrange [%.6g:%.6g]\n", range.low, range.high);
    if (isfinite(margin) && margin < 1)
        dt_text_add(script,
                    "set object rectangle from graph 0, first %.6g to graph 1, first %.6g fc rgb "
                    "'%s' fs solid noborder behind\n",
                    1 / (1 + margin), 1 + margin, dt_page_colour(PAGE_NOISE));
    dt_text_add(script, "set arrow from graph 0, first 1 to graph 1, first 1 nohead lc rgb '%s'\n",
                dt_page_colour(PAGE_INK));
}

void dt_page_draw_pairs(const struct page_view *view, struct dt_text *out)
{
    const struct dt_session *session = view->session;
    const struct dt_session_finals *finals = &session->finals;
    int rounds = dt_sets_rounds(&finals->sets), drawn = 0;
    double margin = dt_session_noise(session).margin;
    struct page_figure figure;
    for (int i = 1; i < finals->entrant_count; i++)
        drawn += finals->entrants[i].ratio.pairs > 0;
    if (drawn == 0 || rounds < 2 || !dt_session_against_default(session))
        return;
    struct dt_interval range = range_of(view, rounds, margin);
    dt_page_figure_begin(&figure, view, "pairs", 560, 320);
    add_frame(&figure, range, margin);
    int outside = 0;
    for (int i = 1; i < finals->entrant_count; i++)
        outside += add_entrant(&figure, i, rounds, range);
    dt_text_add(&figure.script, "set xrange [0:%.6g]\nplot ",
                rounds + (0.5 + 0.6 * finals->entrant_count) * (1 + rounds / 30.0));
    drawn = 0;
    for (int i = 1; i < finals->entrant_count; i++) {
        if (finals->entrants[i].ratio.pairs == 0)
            continue;
        const char *colour = dt_page_colour(entrant_colours[i % 6]);
        dt_text_add(&figure.script,
                    "%s$e%d using 1:2 with points pt %d ps 0.5 lc rgb '%s' title '%s', $i%d using "
                    "1:2:3:4 with yerrorbars pt 7 ps 0.6 lw 2 lc rgb '%s' notitle",
                    drawn++ > 0 ? ", " : "", i, 5 + 2 * (i % 4), colour, dt_page_role(view, i), i,
                    colour);
    }
    dt_text_add(&figure.script, "\n");
    char caption[320], missing[80] = "";
    if (outside > 0)
        snprintf(missing, sizeof missing, " %d point%s outside of the figure: see its data.",
                 outside, outside == 1 ? " lies" : "s lie");
    snprintf(caption, sizeof caption,
             "Small points: each plan against the default in one round; above 1 is faster. At the "
             "right: all rounds together, with the interval.%s%s",
             isfinite(margin) && margin < 1 ? " A result whose middle is in the grey band is noise."
                                            : "",
             missing);
    dt_page_figure_finish(&figure, caption, out);
}
