/* SPDX-License-Identifier: MIT */
/* The figures of trials and of the final comparison. */
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

static double memory_of(const struct page_view *view, int i)
{
    return (double)view->rows[i].result->peak_bytes / view->memory.size;
}

/* ---- the course of the session */

/* The measured trials, or those that were dropped early as slow; returns the largest time of all. */
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
        DT_PAGE_POINT(figure, row->number, dt_page_shown(view, row->value),
                      dt_page_shown(view, isfinite(trial.low) ? trial.low : row->value),
                      dt_page_shown(view, isfinite(trial.high) ? trial.high : row->value));
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
        bool leads = row->value < best && dt_session_eligible(view->session, row->result);
        best = leads ? row->value : best;
        if (leads || (isfinite(best) && i == view->count - 1))
            DT_PAGE_POINT(figure, row->number, dt_page_shown(view, best));
    }
}

void dt_page_draw_course(const struct page_view *view, struct dt_text *out)
{
    struct page_figure figure;
    if (view->measured < 2)
        return;
    dt_page_figure_begin(&figure, view, "course", "trial", view->axis);
    dt_page_figure_times(&figure);
    dt_text_add(&figure.script, "set offsets 1,1,0,0\n");
    dt_page_figure_series(&figure,
                          "@ using 1:2 with points pt 7 ps 0.5 lc rgb c_main title 'measured', @ "
                          "using 1:3:(0):($4-$3) with vectors nohead lc rgb c_main notitle");
    double top = add_trials(&figure, false);
    dt_page_figure_series(&figure, "@ using 1:2 with points pt 9 ps 0.5 lc rgb c_dim title "
                                   "'dropped early'");
    add_trials(&figure, true);
    dt_page_figure_series(&figure, "@ using 1:2 with points pt 2 ps 0.7 lc rgb c_bad title "
                                   "'failed (no time)'");
    for (int i = 0; i < view->count && figure.points < POINTS_MOST; i++)
        if (!isfinite(view->rows[i].value) && dt_page_failed(view->rows[i].result)) {
            DT_PAGE_POINT(&figure, view->rows[i].number, top); /* on the upper edge */
            dt_page_figure_title(&figure, &view->rows[i]);
        }
    dt_page_figure_series(&figure,
                          "@ using 1:2 with steps lw 2 lc rgb c_second title 'best so far'");
    add_best_so_far(&figure);
    dt_page_figure_finish(
        &figure,
        "The session: each trial's time with its interval, and the best so far. Below is better.",
        out);
}

/* ---- time against memory */

void dt_page_draw_memory(const struct page_view *view, struct dt_text *out)
{
    const struct dt_result *best = dt_session_best(view->session);
    struct page_figure figure;
    char axis[64];
    int front[FRONT_MOST], n = dt_page_front_rows(view, front, FRONT_MOST);
    if (n == 0 || view->measured < 2)
        return;
    snprintf(axis, sizeof axis, "memory of the largest rank, %s", view->memory.name);
    dt_page_figure_begin(&figure, view, "memory", axis, view->axis);
    dt_page_figure_times(&figure);
    dt_text_add(&figure.script, "set offsets graph 0.05, graph 0.05, 0, 0\n");
    dt_page_figure_series(&figure,
                          "@ using 1:2 with points pt 7 ps 0.5 lc rgb c_main title 'measured'");
    for (int i = 0; i < view->count; i++)
        if (isfinite(view->rows[i].value) && is_drawn(view, i)) {
            DT_PAGE_POINT(&figure, memory_of(view, i), dt_page_shown(view, view->rows[i].value));
            dt_page_figure_title(&figure, &view->rows[i]);
        }
    dt_page_figure_series(&figure, "@ using 1:2 with fsteps lw 2 lc rgb c_second notitle, @ using "
                                   "1:2 with points pt 7 ps 0.9 lc rgb c_second title 'no plan "
                                   "beats it in both'");
    for (int i = 0; i < n; i++)
        DT_PAGE_POINT(&figure, memory_of(view, front[i]),
                      dt_page_shown(view, view->rows[front[i]].value));
    dt_page_figure_series(&figure, "@ using 1:2 with points pt 6 ps 1.4 lw 2 lc rgb c_third title "
                                   "'plan to use'");
    for (int k = 0; k < view->count && best != NULL; k++)
        if (isfinite(view->rows[k].value) &&
            dt_point_equal(view->session->target->space, &view->rows[k].result->point,
                           &best->point))
            DT_PAGE_POINT(&figure, memory_of(view, k), dt_page_shown(view, view->rows[k].value));
    bool more = view->session->target->objective->metric != NULL;
    dt_page_figure_finish(&figure,
                          more ? "Value against memory. Above and to the left is better."
                               : "Time against memory. Below and to the left is better.",
                          out);
}

/* ---- prediction */

void dt_page_draw_predicted(const struct page_view *view, struct dt_text *out)
{
    struct page_figure figure;
    double known = dt_page_default(view), low = INFINITY, high = 0;
    double *predicted = calloc((size_t)view->count + 1, sizeof *predicted);
    int n = 0;
    for (int i = 0; i < view->count && predicted != NULL; i++) {
        const struct page_row *row = &view->rows[i];
        bool has = isfinite(row->value) && row->result->predicted > 0;
        predicted[i] = has ? dt_page_shown(view, row->result->predicted * known) : NAN;
        n += isfinite(predicted[i]);
        low = isfinite(predicted[i]) ? fmin(low, predicted[i]) : low;
        high = isfinite(predicted[i]) ? fmax(high, predicted[i]) : high;
    }
    if (n >= 2) {
        char x[96], y[96];
        snprintf(x, sizeof x, "predicted, %s", view->time.name);
        snprintf(y, sizeof y, "measured, %s", view->time.name);
        dt_page_figure_begin(&figure, view, "predicted", x, y);
        dt_page_figure_times(&figure);
        dt_page_figure_log(&figure, 'x', low, high);
        dt_text_add(&figure.script, "set nokey\n");
        dt_page_figure_series(&figure, "@ using 1:2 with points pt 7 ps 0.5 lc rgb c_main, x with "
                                       "lines lc rgb c_ink");
        for (int i = 0; i < view->count; i++)
            if (isfinite(predicted[i]) && is_drawn(view, i)) {
                DT_PAGE_POINT(&figure, predicted[i], dt_page_shown(view, view->rows[i].value));
                dt_page_figure_title(&figure, &view->rows[i]);
            }
        dt_page_figure_finish(&figure,
                              "Prediction: on the line a plan took what the prior expected of it; "
                              "above, it was slower.",
                              out);
    }
    free(predicted);
}

/* ---- effects */

static void draw_effect(const struct page_view *view, const struct page_effect *effect,
                        struct dt_text *out)
{
    struct page_figure figure;
    const char *name = dt_space_axis(view->session->target->space, effect->axis)->name;
    char id[32], caption[160];
    snprintf(id, sizeof id, "effect%d", effect->axis);
    dt_page_figure_begin(&figure, view, id, name, view->axis);
    dt_page_figure_times(&figure);
    struct dt_text *script = &figure.script, words = {0};
    dt_text_add(script, "set nokey\nset xrange [-0.6:%d.4]\nset xtics (", effect->count - 1);
    for (int k = 0; k < effect->count; k++) {
        dt_text_clear(&words);
        dt_page_axis_value(view, effect->axis, effect->used[k], &words);
        dt_text_add(script, "%s'", k > 0 ? ", " : "");
        dt_page_figure_word(dt_text_at(&words), 12, script);
        dt_text_add(script, "' %d", k);
    }
    dt_text_add(script, ")\n");
    dt_page_figure_series(&figure, "@ using 1:2 with points pt 7 ps 0.4 lc rgb c_main");
    for (int i = 0; i < view->count; i++) {
        int k = 0, value = view->rows[i].result->point.index[effect->axis];
        while (k < effect->count && effect->used[k] != value)
            k++;
        if (!isfinite(view->rows[i].value) || k == effect->count ||
            i % (1 + view->measured / 300) != 0)
            continue;
        /* beside each other by the golden ratio, so that equal times do not lie on one place */
        DT_PAGE_POINT(&figure, k + 0.3 * (fmod(i * 0.618034, 1) - 0.5),
                      dt_page_shown(view, view->rows[i].value));
        dt_page_figure_title(&figure, &view->rows[i]);
    }
    dt_page_figure_series(&figure,
                          "@ using 1:2:(0.6):(0) with vectors nohead lw 2.5 lc rgb c_second");
    for (int k = 0; k < effect->count; k++)
        DT_PAGE_POINT(&figure, k - 0.3, dt_page_shown(view, effect->median[k]));
    dt_text_clear(&words);
    dt_page_figure_word(name, 40, &words);
    snprintf(caption, sizeof caption, "%s", dt_text_at(&words));
    if (view->session->search.weighed)
        snprintf(caption, sizeof caption, "%s: explains alone %.0f %% of the differences.",
                 dt_text_at(&words), 100 * effect->share);
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

/* Of an entrant's interval, to the right of all rounds. */
static double place_of(int entrant, int rounds)
{
    return rounds + (0.5 + 0.6 * entrant) * (1 + rounds / 30.0);
}

/* The entrant's rounds, and its ratio with the interval; how many rounds lie outside. */
static int add_entrant(struct page_figure *figure, int entrant, int rounds,
                       struct dt_interval range)
{
    static const char *const colours[] = {"c_ink",   "c_main", "c_second",
                                          "c_third", "c_bad",  "c_dim"};
    const struct page_view *view = figure->view;
    const struct dt_ratio *ratio = &view->session->finals.entrants[entrant].ratio;
    const char *role = dt_page_role(view, entrant), *colour = colours[entrant % 6];
    int outside = 0;
    dt_page_figure_series(figure, "@ using 1:2 with points pt %d ps 0.5 lc rgb %s title '%s'",
                          5 + 2 * (entrant % 4), colour, role);
    for (int k = 0; k < rounds; k++) {
        double speed = speed_of(view, entrant, k);
        if (!(speed >= range.low && speed <= range.high)) {
            outside += isfinite(speed);
            continue;
        }
        DT_PAGE_POINT(figure, k + 1, speed);
        dt_page_figure_say(figure, "%s, round %d: %.3f times as fast as the default", role, k + 1,
                           speed);
    }
    dt_page_figure_series(
        figure, "@ using 1:2:3:4 with yerrorbars pt 7 ps 0.6 lw 2 lc rgb %s notitle", colour);
    DT_PAGE_POINT(figure, place_of(entrant, rounds), 1 / ratio->ratio, 1 / ratio->interval.high,
                  1 / ratio->interval.low);
    for (int i = 0; i < 2; i++) /* it is drawn twice: a white edge and itself */
        dt_page_figure_say(figure,
                           "%s, all rounds: %.3f times as fast as the default, interval %.3f to "
                           "%.3f",
                           role, 1 / ratio->ratio, 1 / ratio->interval.high,
                           1 / ratio->interval.low);
    return outside;
}

void dt_page_draw_pairs(const struct page_view *view, struct dt_text *out)
{
    const struct dt_session *session = view->session;
    const struct dt_session_finals *finals = &session->finals;
    int rounds = dt_sets_rounds(&finals->sets), drawn = 0, outside = 0;
    double margin = dt_session_noise(session).margin;
    bool noise = isfinite(margin) && margin < 1;
    struct page_figure figure;
    for (int i = 1; i < finals->entrant_count; i++)
        drawn += finals->entrants[i].ratio.pairs > 0;
    if (drawn == 0 || rounds < 2 || !dt_session_against_default(session))
        return;
    struct dt_interval range = range_of(view, rounds, margin);
    dt_page_figure_begin(&figure, view, "pairs", "round, at the right all, with intervals",
                         "speed against the default");
    dt_text_add(&figure.script, "set yrange [%.6g:%.6g]\nset xrange [0:%.6g]\n", range.low,
                range.high, place_of(finals->entrant_count, rounds));
    if (noise)
        dt_text_add(&figure.script,
                    "set object rectangle from graph 0, first %.6g to graph 1, first %.6g fc rgb "
                    "c_noise fs solid noborder behind\n",
                    1 / (1 + margin), 1 + margin);
    dt_text_add(&figure.script,
                "set arrow from graph 0, first 1 to graph 1, first 1 nohead lc rgb c_ink\n");
    for (int i = 1; i < finals->entrant_count; i++)
        if (finals->entrants[i].ratio.pairs > 0)
            outside += add_entrant(&figure, i, rounds, range);
    char caption[320], missing[80] = "";
    if (outside > 0)
        snprintf(missing, sizeof missing, " %d point%s outside of the figure: see its data.",
                 outside, outside == 1 ? " lies" : "s lie");
    snprintf(caption, sizeof caption,
             "Small points: each plan against the default in one round; above 1 is faster. At the "
             "right: all rounds together, with the interval.%s%s",
             noise ? " A result whose middle is in the grey band is noise." : "", missing);
    dt_page_figure_finish(&figure, caption, out);
}
