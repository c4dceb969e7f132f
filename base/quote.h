/* SPDX-License-Identifier: MIT */
/* quote - words for a POSIX shell, and fields of CSV */
#ifndef DT_BASE_QUOTE_H
#define DT_BASE_QUOTE_H

#include "base/text.h"

/* Appends word quoted so that sh reproduces it byte for byte: bare where possible, else in '...';
 * control bytes except the line feed are written as "$(printf '\033')". */
void dt_quote(const char *word, struct dt_text *out);

/* Appends " --" and the words of a NULL-ended list, quoted so; nothing for
 * an empty list or NULL. */
void dt_quote_arguments(const char *const words[], struct dt_text *out);

/* A field of CSV (RFC 4180) in quotes. What is not shown on a terminal is escaped
 * (base/text.h); text that a spreadsheet would take for a formula begins with an apostrophe
 * (OWASP, "CSV injection"). */
void dt_quote_csv(const char *text, struct dt_text *out);

#endif
