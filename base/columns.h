/* SPDX-License-Identifier: MIT */
/* columns - text as a terminal shows it: how wide it is, cut to a width, wrapped
 *
 * Text is UTF-8 without control characters. East Asian and pictographic characters take two
 * columns, all others one.
 */
#ifndef DT_BASE_COLUMNS_H
#define DT_BASE_COLUMNS_H

#include "base/text.h"

#define DT_COLUMNS_USUAL 80 /* default width of reports */

int dt_columns_of(const char *text, size_t size);

/* Bytes of the longest start of text that takes at most so many columns; never a
 * part of a character. */
size_t dt_columns_cut(const char *text, size_t size, int columns);

/* Width of the terminal: $COLUMNS, the kernel's value, or 80. */
int dt_columns_terminal(int fd);

/* Appends the text with lines wider than `columns` broken at blanks; continuation lines are
 * indented. A word that is wider than the line stays whole. */
void dt_columns_wrap(const char *text, int columns, int indent, struct dt_text *out);

#endif
