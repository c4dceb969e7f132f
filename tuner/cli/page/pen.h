/* SPDX-License-Identifier: MIT */
/* pen - sentences and tables, written as HTML or as Markdown
 *
 *     dt_pen_table(pen, "", "Ranks", "rank|>median, ms");
 *     dt_pen_cell(pen, "%d", 0);      -- a row is full after as many cells as there are columns
 *     dt_pen_cell(pen, "%.3f", 1.5);
 *     dt_pen_end(pen);
 *
 * Text may be of foreign origin: it is shown as it is, never obeyed.
 */
#ifndef DT_TUNER_CLI_PAGE_PEN_H
#define DT_TUNER_CLI_PAGE_PEN_H

#include "base/text.h"

#define DT_PEN_COLUMNS 40

struct page_pen {
    struct dt_text *out;
    bool html;
    int columns, cell;          /* columns of the open table; the number of the next cell */
    char kinds[DT_PEN_COLUMNS]; /* '>': a number, to the right; '~': a plan; ' ': words */
};

void dt_pen_text(struct page_pen *pen, const char *text);
void dt_pen_say(struct page_pen *pen, const char *text); /* a paragraph; nothing when it is "" */

/* id: of the element, "" for none. columns: a format of names with '|' between them, each after '>'
 * for numbers or '~' for plans. */
void dt_pen_table(struct page_pen *pen, const char *id, const char *caption, const char *columns,
                  ...) DT_FORMAT(4, 5);
/* Cells that follow are of a table that is open already. */
void dt_pen_columns(struct page_pen *pen, const char *columns);
void dt_pen_cell(struct page_pen *pen, const char *format, ...) DT_FORMAT(2, 3);
void dt_pen_number(struct page_pen *pen, double value, const char *format); /* NAN: "-" */
void dt_pen_figure(struct page_pen *pen, double value); /* four digits, no exponent; NAN: "-" */
void dt_pen_range(struct page_pen *pen, double low,
                  double high); /* "1.2 to 3"; "-" unless both are known */
void dt_pen_end(struct page_pen *pen);

/* Text with & < > " ' as entities; control characters and bytes that are not
 * UTF-8 are made visible. */
void dt_pen_escape(const char *text, struct dt_text *out);

#endif
