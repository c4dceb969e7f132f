/* SPDX-License-Identifier: MIT */
/* quote - words for a POSIX shell */
#ifndef DT_BASE_QUOTE_H
#define DT_BASE_QUOTE_H

#include "base/text.h"

/* Appends word quoted so that sh reproduces it byte for byte: bare where possible, else in '...'; control bytes except
 * the line feed are written as "$(printf '\033')". */
void dt_quote(const char *word, struct dt_text *out);

/* Appends " --" and the words of a NULL-ended list, quoted so; nothing for an empty list or NULL. */
void dt_quote_arguments(const char *const words[], struct dt_text *out);

#endif
