/* SPDX-License-Identifier: MIT */
/* figure - one gnuplot script, and its place in the page
 *
 *     dt_page_figure_begin(&figure, view, "ranks", "rank", "median step, ms");
 *     dt_page_figure_series(&figure, "@ using 1:2 with boxes lc rgb c_main");
 *     DT_PAGE_POINT(&figure, rank, median);
 *     dt_page_figure_say(&figure, "rank %d", rank);    -- its tooltip
 *     dt_page_figure_finish(&figure, "what it shows", out);
 */
#ifndef DT_TUNER_CLI_PAGE_FIGURE_H
#define DT_TUNER_CLI_PAGE_FIGURE_H

#include "tuner/cli/page/page_int.h"

struct page_figure {
    const struct page_view *view;
    char name[40]; /* of its elements: no other figure of the page has it */
    bool small;
    /* Lines of titles are tooltips of the next point or bar of the first plot; an empty line: none; a
     * line "\f": the next ones are of the next plot. Escaped. */
    struct dt_text script, plot, titles;
    char clause[256];   /* of the series that is open, "": none */
    int series, points; /* before it; its own */
};

/* x, y: what the axes are called; it is as wide as its place, a name that begins with "effect" less. */
void dt_page_figure_begin(struct page_figure *figure, const struct page_view *view,
                          const char *name, const char *x, const char *y);
/* The axis is logarithmic, from low to high and a little more, in the unit of the figure. */
void dt_page_figure_log(struct page_figure *figure, char axis, double low, double high);
/* The y axis: all trials' times, logarithmic. */
void dt_page_figure_times(struct page_figure *figure);
/* Points that follow, and how gnuplot plots them, in its words, "@" for their data: colours are c_ink,
 * c_main, c_second, c_third, c_bad, c_dim and c_noise. Without points nothing is plotted. What else the
 * script says comes before the first series. */
void dt_page_figure_series(struct page_figure *figure, const char *format, ...) DT_FORMAT(2, 3);
/* NAN: missing. */
void dt_page_figure_point(struct page_figure *figure, const double values[], size_t n);
#define DT_PAGE_POINT(figure, ...)                                                                 \
    dt_page_figure_point(figure, (const double[]){__VA_ARGS__},                                    \
                         sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
/* Draws it with its caption, which is also read where the figure is not seen, and frees the figure.
 * Nothing without points, or without gnuplot. */
void dt_page_figure_finish(struct page_figure *figure, const char *caption, struct dt_text *out);

/* Tooltips, one for each point that is drawn: a trial's, or any words. */
void dt_page_figure_title(struct page_figure *figure, const struct page_row *row);
void dt_page_figure_say(struct page_figure *figure, const char *format, ...) DT_FORMAT(2, 3);
/* At most `most` characters of a label; those that gnuplot or SVG might read become "?". */
void dt_page_figure_word(const char *text, int most, struct dt_text *out);

#endif
