/* SPDX-License-Identifier: MIT */
/* Figures: a gnuplot script of numbers and of words that mean nothing to it goes to the program's
 * standard input; one SVG comes from its standard output, and gets the page's names and tooltips.
 *
 *     figure_begin(&figure, view, "ranks", "rank", "median step, ms");
 *     figure_series(&figure, "@ using 1:2 with boxes lc rgb c_main");
 *     POINT(&figure, rank, median);
 *     figure_say(&figure, "rank %d", rank);    -- its tooltip
 *     figure_finish(&figure, "what it shows", out);
 */
#include "tuner/cli/page/page_int.h"

#include "base/clock.h"
#include "base/figures.h"
#include "base/host.h"
#include "base/json.h"
#include "tuner/measure/measure.h"
#include "tuner/runner/runner.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATIENCE_NS (60 * DT_NS_PER_SECOND)
enum { TICKS_MOST = 40, POINTS_MOST = 1200, EFFECTS_MOST = 8, FRONT_MOST = 256, RANKS_MOST = 128 };

struct page_figure {
    const struct page_view *view;
    char name[40]; /* prefix of its elements: no other figure of the page has it */
    bool small;
    /* Lines of titles are tooltips of the next point or bar of the first plot; an empty line: none;
     * a line "\f": the next ones are of the next plot. Escaped. */
    struct dt_text script, plot, titles;
    char clause[256];   /* the open series's, "": none */
    int series, points; /* before it; its own */
};

/* ---- the program */

/* The program reads the script from memory, as a file of this process. */
static dt_status gnuplot_run(const struct dt_text *script, struct dt_text *svg)
{
    char program[4096], path[64];
    char *const argv[] = {program, path, NULL};
    struct dt_output output = {.how = ""};
    int fd = memfd_create("script", MFD_CLOEXEC);
    dt_status status = dt_fail(DT_EIO, "cannot start gnuplot");
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    if (fd >= 0 && write(fd, script->bytes, script->size) == (ssize_t)script->size &&
        dt_host_program("gnuplot", program, sizeof program))
        status = dt_output_read(program, argv, dt_clock_machine_ns() + PATIENCE_NS, &output);
    if (fd >= 0)
        close(fd);
    DT_TRY(status);
    dt_text_add_bytes(svg, dt_text_at(&output.out), output.out.size);
    if (output.how[0] != '\0')
        status = dt_fail(DT_EIO, "gnuplot %s", output.how);
    dt_output_fini(&output);
    return status == DT_OK ? dt_text_status(svg) : status;
}

/* ---- its SVG: names and tooltips */

/* The first title of the plot's points, from 1. */
static const char *titles_of(const struct page_figure *figure, int plot)
{
    const char *titles = dt_text_at(&figure->titles);
    while (--plot > 0 && (titles = strchr(titles, '\f')) != NULL)
        titles += 2;
    return titles != NULL ? titles : "";
}

/* gnuplot's symbols have the same names in each figure, and a page needs names of their own. Its
 * titles are names of its plots: the next point or bar of a plot gets the next title instead, none
 * where the line is empty. */
static void add_named(const struct page_figure *figure, const char *at, struct dt_text *out)
{
    static const char *const parts[] = {"id='",   "href='#",   "url(#", "<title>",
                                        "_plot_", "<polygon ", "<use ", "/>"};
    enum { NAMES = 3, TITLE = NAMES, PLOT, POLYGON, USE, END, PARTS };
    const char *titles = "", *tag = NULL;
    for (size_t size; *at != '\0'; at += size) {
        int part = 0;
        while (part < PARTS && strncmp(at, parts[part], strlen(parts[part])) != 0)
            part++;
        size = part < PARTS ? strlen(parts[part]) : 1;
        size_t line = strcspn(titles, "\f\n");
        const char *close = part == TITLE ? strstr(at, "</title>") : NULL;
        if (close != NULL) {
            size = (size_t)(close - at) + strlen("</title>");
        } else if (part == END && tag != NULL && line > 0) {
            dt_text_add(out, "><title>%.*s</title></%s>", (int)line, titles, tag);
        } else {
            dt_text_add_bytes(out, at, size);
            dt_text_add(out, "%s%s", part < NAMES ? figure->name : "", part < NAMES ? "-" : "");
        }
        if (part == PLOT && at[size + strspn(at + size, "0123456789")] == '"')
            titles = titles_of(figure, atoi(at + size));
        else if (part == END && tag != NULL)
            titles += line + (titles[line] == '\n');
        tag = part == USE ? "use" : part == POLYGON ? "polygon" : part == END ? NULL : tag;
    }
}

/* The root element is written anew: names of gnuplot's would be there once for each figure. */
static dt_status figure_draw(const struct page_figure *figure, const char *caption,
                             struct dt_text *out)
{
    static const char canvas[] = "<g id=\"gnuplot_canvas\">";
    dt_auto_text svg = {0};
    dt_status status = gnuplot_run(&figure->script, &svg);
    const char *box = status == DT_OK ? strstr(dt_text_at(&svg), "viewBox=\"") : NULL;
    const char *body = box != NULL ? strstr(box, canvas) : NULL;
    if (status == DT_OK && (body == NULL || strstr(body, "</svg>") == NULL)) /* not whole */
        status = dt_fail(DT_EIO, "gnuplot did not draw a figure");
    if (status == DT_OK) {
        dt_text_add(out, "<svg %.*s\" role=\"img\" aria-label=\"",
                    (int)(9 + strcspn(box + 9, "\"")), box);
        dt_pen_escape(caption, out);
        dt_text_add(out, "\"><g>");
        add_named(figure, body + sizeof canvas - 1, out);
    }
    return status;
}

/* ---- the script */

/* Colours that gnuplot writes, and the script's names of them; page.css gives them their look. */
static const struct {
    const char *number, *name;
} colours[] = {{"010203", "ink"},   {"020304", "grid"}, {"030405", "main"}, {"040506", "second"},
               {"050607", "third"}, {"060708", "bad"},  {"070809", "dim"},  {"08090a", "noise"}};
enum { COLOURS = sizeof colours / sizeof colours[0] };

/* At most `most` characters of a label; those that gnuplot or SVG might read become "?". */
static void figure_word(const char *text, int most, struct dt_text *out)
{
    for (int i = 0; i < most && text[i] != '\0'; i++) {
        char c = text[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     strchr("._-+/=:, ()%", c) != NULL;
        dt_text_add(out, "%c", plain ? c : '?');
    }
}

static void figure_axis(struct page_figure *figure, char axis, const char *text)
{
    dt_text_add(&figure->script, "set %clabel '", axis);
    figure_word(text, 60, &figure->script);
    dt_text_add(&figure->script, "' tc rgb c_ink\n");
}

/* x, y: what the axes are called; it is as wide as its place, a name that
 * begins with "effect" less. */
static void figure_begin(struct page_figure *figure, const struct page_view *view, const char *name,
                         const char *x, const char *y)
{
    bool small = strncmp(name, "effect", 6) == 0;
    *figure = (struct page_figure){.view = view, .small = small};
    snprintf(figure->name, sizeof figure->name, "%s%s", view->prefix, name);
    struct dt_text *script = &figure->script;
    for (int i = 0; i < COLOURS; i++)
        dt_text_add(script, "c_%s = '#%s'\n", colours[i].name, colours[i].number);
    dt_text_add(script,
                "set term svg size %s dynamic noenhanced font 'sans-serif,13' name '%s'\n"
                "set datafile missing '?'\nset border 3 lc rgb c_grid\n"
                "set tics nomirror tc rgb c_ink\nset grid lc rgb c_grid lw 0.6 lt 1\n"
                "set key outside top left Left reverse horizontal tc rgb c_ink samplen 1\n",
                small ? "360,260" : "560,300", figure->name);
    figure_axis(figure, 'x', x);
    figure_axis(figure, 'y', y);
}

/* The series before, if it has points, becomes a part of the plot. */
static void series_end(struct page_figure *figure)
{
    if (figure->clause[0] == '\0')
        return;
    dt_text_add(&figure->script, "EOD\n");
    if (figure->points > 0)
        dt_text_add(&figure->plot, "%s", figure->plot.size > 0 ? ", " : "plot ");
    for (const char *at = figure->clause; *at != '\0' && figure->points > 0; at++) {
        if (*at != '@') {
            dt_text_add(&figure->plot, "%c", *at);
            continue;
        }
        dt_text_add(&figure->plot, "$d%d", figure->series);
        dt_text_add(&figure->titles, "\f\n");
    }
    figure->clause[0] = '\0';
    figure->points = 0;
    figure->series++;
}

/* Points that follow, and how gnuplot plots them, in its words, "@" for their data; colours
 * are c_ink, c_main .. Without points nothing is plotted. What else the script says comes
 * before the first series. */
static void figure_series(struct page_figure *figure, const char *format, ...)
{
    va_list arguments;
    series_end(figure);
    va_start(arguments, format);
    vsnprintf(figure->clause, sizeof figure->clause, format, arguments);
    va_end(arguments);
    dt_text_add(&figure->script, "$d%d << EOD\n", figure->series);
}

/* NAN: missing. */
static void figure_point(struct page_figure *figure, const double values[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        dt_text_add(&figure->script, isfinite(values[i]) ? " %.7g" : " ?", values[i]);
    dt_text_add(&figure->script, "\n");
    figure->points++;
}

#define POINT(figure, ...)                                                                         \
    figure_point(figure, (const double[]){__VA_ARGS__},                                            \
                 sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

/* Draws it with its caption, which is also read where the figure is not seen, and frees the figure.
 * Nothing without points, or without gnuplot. */
static void figure_finish(struct page_figure *figure, const char *caption, struct dt_text *out)
{
    dt_auto_text svg = {0};
    series_end(figure);
    dt_text_add(&figure->script, "%s\n", dt_text_at(&figure->plot));
    bool sound = dt_text_status(&figure->script) == DT_OK &&
                 dt_text_status(&figure->titles) == DT_OK && figure->plot.size > 0 &&
                 figure_draw(figure, caption, &svg) == DT_OK;
    if (sound) {
        dt_text_add(out, figure->small ? "<figure class=\"small\">" : "<figure>");
        dt_text_add_bytes(out, dt_text_at(&svg), svg.size);
        dt_text_add(out, "<figcaption>");
        dt_pen_escape(caption, out);
        dt_text_add(out, "</figcaption></figure>\n");
    }
    dt_text_fini(&figure->script);
    dt_text_fini(&figure->plot);
    dt_text_fini(&figure->titles);
}

/* The tooltip of the point; a trial's. */
static void figure_say(struct page_figure *figure, const char *format, ...)
{
    va_list arguments;
    dt_auto_text text = {0};
    va_start(arguments, format);
    dt_text_add_list(&text, format, arguments);
    va_end(arguments);
    figure->titles.failed = figure->titles.failed || text.failed;
    dt_pen_escape(dt_text_at(&text), &figure->titles);
    dt_text_add(&figure->titles, "\n");
}

static void figure_title(struct page_figure *figure, const struct page_row *row)
{
    const struct page_view *view = figure->view;
    dt_auto_text words = {0};
    dt_text_add(&words, "trial %d: ", row->number);
    dt_page_plan(view, &row->result->point, &words);
    if (isfinite(row->value))
        dt_text_add(&words, ", %s %s", dt_figure_number(row->value / view->time.size).text,
                    view->time.name);
    if (row->result->outcome != DT_TRIAL_OK)
        dt_text_add(&words, ", %s", dt_outcome_text(row->result->outcome));
    if (row->result->cause[0] != '\0')
        dt_text_add(&words, ": %s", row->result->cause);
    if (row->result->facts.peak_bytes > 0)
        dt_text_add(&words, ", %s", dt_figure_bytes_of(row->result->facts.peak_bytes).text);
    figure_say(figure, "%s", dt_text_at(&words));
}

static void add_tick(double tick, int *n, struct dt_text *out)
{
    dt_text_add(out, "%s%g", (*n)++ > 0 ? ", " : "", tick);
}

/* Over more than a decade 1, 2 and 5 times the powers of ten, else three to eight even steps:
 * gnuplot's own ticks are the powers alone. */
static void add_ticks(double low, double high, struct dt_text *out)
{
    static const double parts[] = {1, 2, 5};
    int n = 0, decade = (int)floor(log10(low));
    for (int i = 0; high > 10 * low && i < 3 * TICKS_MOST && n < TICKS_MOST; i++) {
        double tick = parts[i % 3] * pow(10, decade + i / 3);
        if (tick >= low && tick <= high)
            add_tick(tick, &n, out);
    }
    if (n > 0)
        return;
    double third = (high - low) / 3, power = pow(10, floor(log10(third)));
    double step = power * (third >= 5 * power ? 5 : third >= 2 * power ? 2 : 1);
    for (int i = 0; i < TICKS_MOST; i++) {
        double tick = step * (ceil(low / step) + i);
        if (tick <= high)
            add_tick(tick, &n, out);
    }
}

/* The axis is logarithmic, from low to high and a little more, in the unit of the figure. */
static void figure_log(struct page_figure *figure, char axis, double low, double high)
{
    struct dt_text *script = &figure->script;
    dt_text_add(script, "set logscale %c\n", axis);
    low *= 0.93;
    high *= 1.07;
    if (!(low > 1e-12) || !(high < 1e12) || !(low < high))
        return; /* gnuplot finds a range and ticks by itself */
    dt_text_add(script, "set %crange [%.6g:%.6g]\nset %ctics (", axis, low, high, axis);
    add_ticks(low, high, script);
    dt_text_add(script, ")\n");
}

/* An end of the trial's interval; its value where that is not known. */
static double edge_of(const struct page_row *row, double end)
{
    return isfinite(end) ? end : row->value;
}

/* The y axis: all trials' times, logarithmic. */
static void figure_times(struct page_figure *figure)
{
    const struct page_view *view = figure->view;
    double low = INFINITY, high = 0, size = view->time.size;
    for (const struct page_row *row = view->rows; row < view->rows + view->count; row++)
        if (isfinite(row->value)) {
            low = fmin(low, fmin(row->value, edge_of(row, row->low)));
            high = fmax(high, fmax(row->value, edge_of(row, row->high)));
        }
    figure_log(figure, 'y', low / size, high / size);
}

/* ---- the figures of trials and of the final comparison */

/* Whether a trial is drawn: of many only some are, evenly over the session. */
static bool is_drawn(const struct page_view *view, int i)
{
    int step = 1 + view->measured / POINTS_MOST;
    return i % step == 0;
}

static double memory_of(const struct page_view *view, int i)
{
    return (double)view->rows[i].result->facts.peak_bytes / view->memory.size;
}

/* ---- the course of the session */

void dt_page_draw_course(const struct page_view *view, struct dt_text *out)
{
    static const char *const series[] = {
        ("@ using 1:2 with points pt 7 ps 0.5 lc rgb c_main title 'measured', @ "
         "using 1:3:(0):($4-$3) with vectors nohead lc rgb c_main notitle"),
        "@ using 1:2 with points pt 9 ps 0.5 lc rgb c_dim title 'dropped early'",
        "@ using 1:2 with points pt 2 ps 0.7 lc rgb c_bad title 'failed (no time)'",
        "@ using 1:2 with steps lw 2 lc rgb c_second title 'best so far'"};
    struct page_figure figure;
    double best = INFINITY, top = 0;
    if (view->measured < 2)
        return;
    figure_begin(&figure, view, "course", "trial", view->axis);
    figure_times(&figure);
    dt_text_add(&figure.script, "set offsets 1,1,0,0\n");
    for (int k = 0; k < 4; k++) {
        figure_series(&figure, "%s", series[k]);
        for (int i = 0; i < view->count; i++) {
            const struct page_row *row = &view->rows[i];
            bool known = isfinite(row->value), slow = row->result->outcome == DT_TRIAL_SLOW;
            if (k < 2 && known && slow == (k == 1) && (row->best || is_drawn(view, i))) {
                POINT(&figure, row->number, dt_page_shown(view, row->value),
                      dt_page_shown(view, edge_of(row, row->low)),
                      dt_page_shown(view, edge_of(row, row->high)));
                figure_title(&figure, row);
            } else if (k == 2 && !known && dt_page_failed(row->result) &&
                       figure.points < POINTS_MOST) {
                POINT(&figure, row->number, dt_page_shown(view, top)); /* on the upper edge */
                figure_title(&figure, row);
            }
            top = known ? fmax(top, row->value) : top;
            best = k == 3 && row->best ? row->value : best;
            if (k == 3 && (row->best || (isfinite(best) && i == view->count - 1)))
                POINT(&figure, row->number, dt_page_shown(view, best));
        }
    }
    figure_finish(
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
    figure_begin(&figure, view, "memory", axis, view->axis);
    figure_times(&figure);
    dt_text_add(&figure.script, "set offsets graph 0.05, graph 0.05, 0, 0\n");
    figure_series(&figure, "@ using 1:2 with points pt 7 ps 0.5 lc rgb c_main title 'measured'");
    for (int i = 0; i < view->count; i++)
        if (isfinite(view->rows[i].value) && is_drawn(view, i)) {
            POINT(&figure, memory_of(view, i), dt_page_shown(view, view->rows[i].value));
            figure_title(&figure, &view->rows[i]);
        }
    figure_series(&figure, "@ using 1:2 with fsteps lw 2 lc rgb c_second notitle, @ using "
                           "1:2 with points pt 7 ps 0.9 lc rgb c_second title 'no plan "
                           "beats it in both'");
    for (int i = 0; i < n; i++)
        POINT(&figure, memory_of(view, front[i]), dt_page_shown(view, view->rows[front[i]].value));
    figure_series(&figure, "@ using 1:2 with points pt 6 ps 1.4 lw 2 lc rgb c_third title "
                           "'plan to use'");
    for (int k = 0; k < view->count && best != NULL; k++)
        if (isfinite(view->rows[k].value) &&
            dt_point_equal(view->session->target->space, &view->rows[k].result->point,
                           &best->point))
            POINT(&figure, memory_of(view, k), dt_page_shown(view, view->rows[k].value));
    bool more = view->session->target->objective->metric != NULL;
    figure_finish(&figure,
                  more ? "Value against memory. Above and to the left is better."
                       : "Time against memory. Below and to the left is better.",
                  out);
}

/* ---- prediction */

void dt_page_draw_predicted(const struct page_view *view, struct dt_text *out)
{
    struct page_figure figure;
    double low = INFINITY, high = 0;
    char x[96], y[96];
    int n = 0;
    for (int i = 0; i < view->count; i++)
        if (isfinite(view->rows[i].predicted)) {
            double predicted = dt_page_shown(view, view->rows[i].predicted);
            low = fmin(low, predicted);
            high = fmax(high, predicted);
            n++;
        }
    if (n < 2)
        return;
    snprintf(x, sizeof x, "predicted, %s", view->time.name);
    snprintf(y, sizeof y, "measured, %s", view->time.name);
    figure_begin(&figure, view, "predicted", x, y);
    figure_times(&figure);
    figure_log(&figure, 'x', low, high);
    dt_text_add(&figure.script, "set nokey\n");
    figure_series(&figure, "@ using 1:2 with points pt 7 ps 0.5 lc rgb c_main, x with lines lc rgb "
                           "c_ink");
    for (int i = 0; i < view->count; i++)
        if (isfinite(view->rows[i].predicted) && is_drawn(view, i)) {
            POINT(&figure, dt_page_shown(view, view->rows[i].predicted),
                  dt_page_shown(view, view->rows[i].value));
            figure_title(&figure, &view->rows[i]);
        }
    figure_finish(&figure,
                  "Prediction: on the line a plan took what the prior expected of it; above, it "
                  "was slower.",
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
    figure_begin(&figure, view, id, name, view->axis);
    figure_times(&figure);
    struct dt_text *script = &figure.script, words = {0};
    dt_text_add(script, "set nokey\nset xrange [-0.6:%d.4]\nset xtics (", effect->count - 1);
    for (int k = 0; k < effect->count; k++) {
        dt_text_clear(&words);
        dt_page_axis_value(view, effect->axis, effect->used[k], &words);
        dt_text_add(script, "%s'", k > 0 ? ", " : "");
        figure_word(dt_text_at(&words), 12, script);
        dt_text_add(script, "' %d", k);
    }
    dt_text_add(script, ")\n");
    figure_series(&figure, "@ using 1:2 with points pt 7 ps 0.4 lc rgb c_main");
    for (int i = 0; i < view->count; i++) {
        int k = 0, value = view->rows[i].result->point.index[effect->axis];
        while (k < effect->count && effect->used[k] != value)
            k++;
        if (!isfinite(view->rows[i].value) || k == effect->count ||
            i % (1 + view->measured / 300) != 0)
            continue;
        /* beside each other by the golden ratio, so that equal times do not lie on one place */
        POINT(&figure, k + 0.3 * (fmod(i * 0.618034, 1) - 0.5),
              dt_page_shown(view, view->rows[i].value));
        figure_title(&figure, &view->rows[i]);
    }
    figure_series(&figure, "@ using 1:2:(0.6):(0) with vectors nohead lw 2.5 lc rgb c_second");
    for (int k = 0; k < effect->count; k++)
        POINT(&figure, k - 0.3, dt_page_shown(view, effect->median[k]));
    dt_text_clear(&words);
    figure_word(name, 40, &words);
    snprintf(caption, sizeof caption, "%s", dt_text_at(&words));
    if (view->session->search.weighed)
        snprintf(caption, sizeof caption, "%s: explains alone %.0f %% of the differences.",
                 dt_text_at(&words), 100 * effect->share);
    dt_text_fini(&words);
    figure_finish(&figure, caption, out);
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

static int ascending_times(const void *a, const void *b)
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
    qsort(speeds, (size_t)n, sizeof *speeds, ascending_times);
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

/* The place of an entrant's interval, to the right of all rounds. */
static double place_of(int entrant, int rounds)
{
    return rounds + (0.5 + 0.6 * entrant) * (1 + rounds / 30.0);
}

/* The entrant's rounds, and its ratio with the interval; how many rounds lie outside. */
static int add_entrant(struct page_figure *figure, int entrant, int rounds,
                       struct dt_interval range)
{
    static const char *const of_entrants[] = {"c_ink",   "c_main", "c_second",
                                              "c_third", "c_bad",  "c_dim"};
    const struct page_view *view = figure->view;
    const struct dt_ratio *ratio = &view->session->finals.entrants[entrant].ratio;
    const char *role = dt_page_role(view, entrant), *colour = of_entrants[entrant % 6];
    int outside = 0;
    figure_series(figure, "@ using 1:2 with points pt %d ps 0.5 lc rgb %s title '%s'",
                  5 + 2 * (entrant % 4), colour, role);
    for (int k = 0; k < rounds; k++) {
        double speed = speed_of(view, entrant, k);
        if (!(speed >= range.low && speed <= range.high)) {
            outside += isfinite(speed);
            continue;
        }
        POINT(figure, k + 1, speed);
        figure_say(figure, "%s, round %d: %.3f times as fast as the default", role, k + 1, speed);
    }
    figure_series(figure, "@ using 1:2:3:4 with yerrorbars pt 7 ps 0.6 lw 2 lc rgb %s notitle",
                  colour);
    POINT(figure, place_of(entrant, rounds), 1 / ratio->ratio, 1 / ratio->interval.high,
          1 / ratio->interval.low);
    for (int i = 0; i < 2; i++) /* it is drawn twice: a white edge and itself */
        figure_say(figure,
                   "%s, all rounds: %.3f times as fast as the default, interval %.3f to "
                   "%.3f",
                   role, 1 / ratio->ratio, 1 / ratio->interval.high, 1 / ratio->interval.low);
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
    figure_begin(&figure, view, "pairs", "round, at the right all, with intervals",
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
    figure_finish(&figure, caption, out);
}

/* ---- one step: its ranks and its kinds of work, in figures and tables */

void dt_page_draw_ranks(const struct page_view *view, struct dt_text *out)
{
    const struct dt_result *best = dt_session_best(view->session);
    struct page_figure figure;
    dt_auto_text axis = {0};
    if (best == NULL || best->samples.rank_seconds == NULL || best->ranks < 2 ||
        best->ranks > RANKS_MOST)
        return;
    dt_text_add(&axis, "median step");
    if (best->batch > 1)
        dt_text_add(&axis, " of %d images", best->batch);
    dt_text_add(&axis, ", %s", view->time.name);
    figure_begin(&figure, view, "ranks", "rank", dt_text_at(&axis));
    dt_text_add(&figure.script,
                "set nokey\nset xrange [-0.6:%d.6]\nset yrange [0:*]\nset xtics 0,%d\nset boxwidth "
                "0.7\n",
                best->ranks - 1, 1 + best->ranks / 16);
    figure_series(&figure, "@ using 1:2 with boxes fs solid lc rgb c_main");
    for (int i = 0; i < best->ranks; i++) {
        double median = dt_page_shown(view, best->samples.rank_seconds[i]);
        POINT(&figure, i, median);
        if (median > 0) /* gnuplot draws no box of no height */
            figure_say(&figure, "rank %d: median step %.4g %s", i, median, view->time.name);
    }
    figure_finish(
        &figure,
        dt_result_parts(best) > 1
            ? "Ranks of the plan to use, replica by replica: within a replica a rank that is "
              "higher makes the others wait."
            : "Ranks of the plan to use: a rank that is higher makes the others wait.",
        out);
}

/* A plan's kinds of work: those of a step, or, where plans differ in their batch,
 * of an image and step. */
struct work {
    bool known;              /* it has phases */
    struct dt_result result; /* borrowed, with ceilings that may be of another trial */
    const struct dt_target *target;
    double images;
    int count; /* kinds of work */
};

static struct dt_roofline_kind kind_of(const struct work *work, int i)
{
    return dt_roofline_kind(&work->result, work->target, i);
}

/* Ceilings that were measured with another trial count by the number of devices. */
static struct work work_of(const struct page_view *view, const struct dt_result *result,
                           double images)
{
    bool known = dt_roofline(result).known;
    struct work work = {known, *result, view->session->target, images,
                        known ? result->report.phases->kinds.count : 0};
    struct dt_ceilings *ceilings = &work.result.ceilings;
    for (int i = 0; i < view->count && !(ceilings->flop_rate > 0); i++) {
        const struct dt_result *other = view->rows[i].result;
        double scale = other->devices > 0 ? (double)result->devices / other->devices : 0;
        ceilings->flop_rate = scale * other->ceilings.flop_rate;
        ceilings->copy_rate = scale * other->ceilings.copy_rate;
    }
    return work;
}

/* A bar for each kind of work, in the order of another plan's, and a line where it would end at the
 * device's ceiling, where that is known. */
static void add_bars(struct page_figure *figure, const struct work *work, const struct work *order,
                     double shift)
{
    const char *unit = figure->view->time.name;
    figure_say(figure, "%s", ""); /* the sample in the key */
    for (int i = 0; i < order->count; i++) {
        const char *name = kind_of(order, i).name;
        int k = 0;
        while (k < work->count && strcmp(kind_of(work, k).name, name) != 0)
            k++;
        if (k == work->count)
            continue;
        struct dt_roofline_kind mine = kind_of(work, k);
        double height = mine.seconds / work->images / figure->view->time.size;
        POINT(figure, (double)i + shift, height, height * mine.fraction);
        if (height > 0 && isfinite(mine.fraction))
            figure_say(figure, "%s: %.4g %s, at the ceiling %.4g %s", name, height, unit,
                       height * mine.fraction, unit);
        else if (height > 0)
            figure_say(figure, "%s: %.4g %s", name, height, unit);
    }
}

/* "of a step, ms", "per image and step, ms" */
static void add_unit(const struct page_view *view, char *out, size_t size)
{
    bool alone = view->session->target->objective->one_batch;
    snprintf(out, size, "%s, %s", alone ? "of a step" : "per image and step", view->time.name);
}

/* Reads the works of the plan to use and of the default, where that is another plan. */
static void read_works(const struct page_view *view, struct work works[2])
{
    const struct dt_session *session = view->session;
    const struct dt_result *best = dt_session_best(session),
                           *known = dt_session_role(session, DT_ENTRANT_DEFAULT);
    bool alone = session->target->objective->one_batch;
    bool other = best != NULL && known != NULL &&
                 !dt_point_equal(session->target->space, &known->point, &best->point);
    works[0] = works[1] = (struct work){.known = false};
    if (best != NULL)
        works[0] = work_of(view, best, alone ? 1 : dt_result_images(best));
    if (other && works[0].known)
        works[1] = work_of(view, known, alone ? 1 : dt_result_images(known));
}

void dt_page_draw_phases(const struct page_view *view, struct dt_text *out)
{
    struct page_figure figure;
    struct work works[2];
    char axis[64];
    bool ceiling = false;
    read_works(view, works);
    if (works[0].count == 0)
        return;
    add_unit(view, axis, sizeof axis);
    figure_begin(&figure, view, "phases", "", axis);
    struct dt_text *script = &figure.script;
    dt_text_add(script, "set xrange [-0.6:%d.4]\nset yrange [0:*]\nset boxwidth 0.35\nset xtics (",
                works[0].count - 1);
    for (int i = 0; i < works[0].count; i++) {
        dt_text_add(script, "%s'", i > 0 ? ", " : "");
        figure_word(kind_of(&works[0], i).name, 12, script);
        dt_text_add(script, "' %d", i);
        ceiling = ceiling || isfinite(kind_of(&works[0], i).fraction);
    }
    dt_text_add(script, ")\n");
    for (int k = 0; k < 2; k++) {
        figure_series(&figure, "@ using 1:2 with boxes fs solid lc rgb %s title '%s'%s%s",
                      k == 0 ? "c_main" : "c_dim", k == 0 ? "plan to use" : "default",
                      ceiling ? ", @ using ($1-0.175):3:(0.35):(0) with vectors nohead lw "
                                "2.5 lc rgb c_second "
                              : "",
                      !ceiling ? ""
                      : k == 0 ? "title 'at the ceiling'"
                               : "notitle");
        if (works[k].known)
            add_bars(&figure, &works[k], &works[0], !works[1].known ? 0 : k == 0 ? -0.19 : 0.19);
    }
    figure_finish(
        &figure,
        ceiling ? "Where a step's time goes on its last rank. The line: the same work at the "
                  "device's ceiling (roofline). A line above its bar: the data stayed in a cache, "
                  "which is faster than the copy of the ceiling."
                : "Where a step's time goes on its last rank.",
        out);
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
    for (int i = 0; i < work->count; i++) {
        const struct dt_roofline_kind kind = kind_of(work, i);
        dt_pen_cell(pen, "%s", role);
        dt_pen_cell(pen, "%s", kind.name);
        dt_pen_figure(pen, kind.seconds / work->images / view->time.size);
        dt_pen_number(pen, 100 * kind.share, "%.1f");
        dt_pen_figure(pen, kind.rate * 1e-9);
        dt_pen_cell(pen, "%s",
                    kind.unit == NULL                 ? ""
                    : strcmp(kind.unit, "flops") == 0 ? "GFLOP/s"
                                                      : "GB/s");
        dt_pen_number(pen, 100 * kind.fraction, "%.0f");
    }
}

void dt_page_phases(const struct page_view *view, struct page_pen *pen)
{
    char unit[64];
    struct work works[2];
    read_works(view, works);
    if (works[0].known) {
        add_unit(view, unit, sizeof unit);
        dt_pen_table(pen, "",
                     "Where a step's time goes on its last rank, and how near each kind of work is "
                     "to the device's ceiling (roofline)",
                     "plan|kind of work|>%s|>share, %%|>rate|unit|>of the ceiling, %%", unit);
        add_kinds(view, pen, "to use", &works[0]);
        add_kinds(view, pen, "default", &works[1]);
        dt_pen_end(pen);
    }
}
