/* SPDX-License-Identifier: MIT */
/* text - a string that grows
 *
 *     struct dt_text text = {0};
 *     dt_text_add(&text, "ranks=%d", 4);
 *     puts(dt_text_at(&text));
 *     dt_text_fini(&text);
 *
 * Running out of memory is sticky: later adds do nothing, and dt_text_status says so once at the end.
 */
#ifndef DT_BASE_TEXT_H
#define DT_BASE_TEXT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct dt_text {
    char *bytes; /* owned; NUL after size bytes */
    size_t size, room;
    bool failed; /* an allocation failed */
};

void dt_text_add(struct dt_text *text, const char *format, ...) DT_FORMAT(2, 3);
void dt_text_add_bytes(struct dt_text *text, const void *bytes, size_t size);
void dt_text_reserve(struct dt_text *text,
                     size_t more);                  /* makes room for so many bytes, and a NUL */
void dt_text_clear(struct dt_text *text);           /* size 0, memory kept */
const char *dt_text_at(const struct dt_text *text); /* never NULL */
dt_status
dt_text_status(const struct dt_text *text) DT_MUST_CHECK; /* DT_ENOMEM when an add failed */
char *dt_text_take(
    struct dt_text *text); /* the caller frees; NULL when an add failed; text is empty after */
void dt_text_fini(struct dt_text *text);

/* Bytes of the UTF-8 character at bytes, of at most size; 0 when it is none (RFC 3629: no surrogates, shortest form). */
size_t dt_text_character(const void *bytes, size_t size);

/* All of the text is UTF-8. */
bool dt_text_whole(const char *text);

/* Makes text UTF-8, as JSON must be: the start of a character that "%.80s" or the end of a buffer cut off goes, any other
 * byte of no character becomes '?'. */
void dt_text_mend(char *text);

/* What others wrote (names, titles, sentences of workers, stores and files) and a terminal or a log is to show. Not shown are
 * bytes that are no UTF-8, control characters (C0, DEL, C1), separators of lines, characters that change the direction of what
 * follows (Unicode's bidi controls), U+FFFE and U+FFFF, for which XML has no place,
 * and the first of "##[", which GitHub's runner takes for a command anywhere in a line. */

/* Bytes of the character that the text begins with; 0: it is not shown. */
size_t dt_text_shown(const char *text);
/* '?' in the place of each that is not shown. */
void dt_text_clean(char *text);
void dt_text_clean_lines(struct dt_text *text); /* but for line feeds and tabs */
/* Appends it; what is not shown as \\xNN or \\uNNNN. */
void dt_text_show(const char *text, struct dt_text *out);

#endif
