/* SPDX-License-Identifier: MIT */
/* What all figures share: the script's beginning, its axes, colours and words, and the caption. */
#include "tuner/cli/page/figure.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *number, *variable;
} colours[PAGE_COLOURS] = {{"010203", "ink"},    {"020304", "grid"},  {"030405", "main"},
                           {"040506", "second"}, {"050607", "third"}, {"060708", "bad"},
                           {"070809", "dim"},    {"08090a", "noise"}};

const char *dt_page_colour(enum page_colour colour)
{
    static char text[PAGE_COLOURS][8];
    snprintf(text[colour], sizeof text[colour], "#%s", colours[colour].number);
    return text[colour];
}

void dt_page_colour_rules(struct dt_text *out)
{
    static const char *const attributes[] = {"stroke", "fill", "color"};
    for (int i = 0; i < PAGE_COLOURS; i++)
        for (int k = 0; k < 3; k++) {
            const char *attribute = attributes[k];
            unsigned red, green, blue;
            (void)sscanf(colours[i].number, "%2x%2x%2x", &red, &green, &blue);
            dt_text_add(out, "svg [%s=\"rgb(%3u, %3u, %3u)\"],", attribute, red, green, blue);
            dt_text_add(out, "svg [%s=\"rgb(%u,%u,%u)\"]{%s:var(--%s)}\n", attribute, red, green,
                        blue, attribute, colours[i].variable);
        }
}

void dt_page_figure_word(const char *text, int most, struct dt_text *out)
{
    for (int i = 0; i < most && text[i] != '\0'; i++) {
        char c = text[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     strchr("._-+/=:, ()%", c) != NULL;
        dt_text_add(out, "%c", plain ? c : '?');
    }
}

void dt_page_figure_begin(struct page_figure *figure, const struct page_view *view,
                          const char *name, int width, int height)
{
    *figure = (struct page_figure){.view = view, .width = width};
    snprintf(figure->name, sizeof figure->name, "%s%s", view->prefix, name);
    struct dt_text *script = &figure->script;
    dt_text_add(script,
                "set term svg size %d,%d dynamic noenhanced font 'sans-serif,13' name '%s'\n",
                width, height, figure->name);
    dt_text_add(
        script,
        "set datafile missing '?'\nset border 3 lc rgb '%s'\nset tics nomirror tc rgb '%s'\n",
        dt_page_colour(PAGE_GRID), dt_page_colour(PAGE_INK));
    dt_text_add(script,
                "set grid lc rgb '%s' lw 0.6 lt 1\nset key outside top left Left reverse "
                "horizontal tc rgb '%s' "
                "samplen 1\n",
                dt_page_colour(PAGE_GRID), dt_page_colour(PAGE_INK));
}

void dt_page_figure_axis(struct page_figure *figure, char axis, const char *text)
{
    dt_text_add(&figure->script, "set %clabel '", axis);
    dt_page_figure_word(text, 60, &figure->script);
    dt_text_add(&figure->script, "' tc rgb '%s'\n", dt_page_colour(PAGE_INK));
}

void dt_page_figure_number(double value, struct dt_text *out)
{
    if (isfinite(value))
        dt_text_add(out, " %.7g", value);
    else
        dt_text_add(out, " ?");
}

void dt_page_figure_finish(struct page_figure *figure, const char *caption, struct dt_text *out)
{
    struct dt_text svg = {0};
    dt_status status = dt_text_status(&figure->script);
    if (status == DT_OK)
        status = dt_text_status(&figure->titles);
    if (status == DT_OK)
        status = dt_page_gnuplot(
            &figure->script,
            &(struct page_label){figure->name, caption, dt_text_at(&figure->titles)}, &svg);
    if (status == DT_OK) {
        dt_text_add(out, figure->width < 400 ? "<figure class=\"small\">" : "<figure>");
        dt_text_add_bytes(out, dt_text_at(&svg), svg.size);
        dt_text_add(out, "<figcaption>");
        dt_pen_escape(caption, out);
        dt_text_add(out, "</figcaption></figure>\n");
    }
    dt_text_fini(&svg);
    dt_text_fini(&figure->script);
    dt_text_fini(&figure->titles);
}

void dt_page_figure_say(struct page_figure *figure, const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    figure->titles.failed = figure->titles.failed || text == NULL;
    dt_pen_escape(text != NULL ? text : "", &figure->titles);
    dt_text_add(&figure->titles, "\n");
    free(text);
}

void dt_page_figure_next(struct page_figure *figure)
{
    dt_text_add(&figure->titles, "\f\n");
}

void dt_page_figure_title(struct page_figure *figure, const struct page_row *row)
{
    const struct page_view *view = figure->view;
    struct dt_text words = {0};
    dt_text_add(&words, "trial %d: ", row->number);
    dt_page_plan(view, &row->result->point, &words);
    if (isfinite(row->value)) {
        dt_text_add(&words, ", ");
        dt_figure_add(row->value / view->time.size, &words);
        dt_text_add(&words, " %s", view->time.name);
    }
    if (row->result->outcome != DT_TRIAL_OK)
        dt_text_add(&words, ", %s", dt_outcome_text(row->result->outcome));
    if (row->result->cause[0] != '\0')
        dt_text_add(&words, ": %s", row->result->cause);
    if (row->result->peak_bytes > 0) {
        dt_text_add(&words, ", ");
        dt_figure_bytes(row->result->peak_bytes, &words);
    }
    dt_page_figure_say(figure, "%s", dt_text_at(&words));
    dt_text_fini(&words);
}

enum { TICKS_MOST = 40 };

static void add_tick(double tick, int *n, struct dt_text *out)
{
    dt_text_add(out, "%s%g", (*n)++ > 0 ? ", " : "", tick);
}

/* Over more than a decade 1, 2 and 5 times the powers of ten, else three to eight even steps: gnuplot's own ticks are the
 * powers alone. */
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

void dt_page_figure_log(struct page_figure *figure, char axis, double low, double high)
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

void dt_page_figure_times(struct page_figure *figure)
{
    const struct page_view *view = figure->view;
    double low = INFINITY, high = 0, size = view->time.size;
    for (int i = 0; i < view->count; i++)
        if (isfinite(view->rows[i].value)) {
            struct dt_trial trial = dt_result_trial(view->rows[i].result, view->session->target);
            low = fmin(low, fmin(view->rows[i].value, isfinite(trial.low) ? trial.low : INFINITY));
            high = fmax(high, fmax(view->rows[i].value, isfinite(trial.high) ? trial.high : 0));
        }
    dt_page_figure_log(figure, 'y', low / size, high / size);
}
