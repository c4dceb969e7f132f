/* SPDX-License-Identifier: MIT */
/* figure - one gnuplot script, and its place in the page
 *
 *     dt_page_figure_begin(&figure, view, "ranks", 560, 260);
 *     dt_page_figure_axis(&figure, 'x', "rank");
 *     dt_text_add(&figure.script, "plot ...\n");
 *     dt_page_figure_finish(&figure, "what it shows", out);
 */
#ifndef DT_TUNER_CLI_PAGE_FIGURE_H
#define DT_TUNER_CLI_PAGE_FIGURE_H

#include "tuner/cli/page/page_int.h"

struct page_figure {
    const struct page_view *view;
    int width;
    char name[40]; /* of its elements */
    struct dt_text script, titles;
};

/* width, height: of its coordinates; it is as wide as its place. */
void dt_page_figure_begin(struct page_figure *figure, const struct page_view *view,
                          const char *name, int width, int height);
void dt_page_figure_axis(struct page_figure *figure, char axis, const char *text);
/* The axis is logarithmic, from low to high and a little more, in the unit of the figure. */
void dt_page_figure_log(struct page_figure *figure, char axis, double low, double high);
void dt_page_figure_times(
    struct page_figure *figure); /* the y axis: all trials' times, logarithmic */
/* Draws it with its caption, which is also read where the figure is not seen, and frees the figure. Nothing without gnuplot. */
void dt_page_figure_finish(struct page_figure *figure, const char *caption, struct dt_text *out);

/* Tooltips, one for each point that is drawn: a trial's, or any words; the next plot's from then on. */
void dt_page_figure_title(struct page_figure *figure, const struct page_row *row);
void dt_page_figure_say(struct page_figure *figure, const char *format, ...) DT_FORMAT(2, 3);
void dt_page_figure_next(struct page_figure *figure);
void dt_page_figure_number(double value, struct dt_text *out); /* NAN: missing */
/* At most `most` characters of a label; those that gnuplot or SVG might read become "?". */
void dt_page_figure_word(const char *text, int most, struct dt_text *out);

#endif
