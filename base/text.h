/* SPDX-License-Identifier: MIT */
/* text - a string that grows
 *
 *     dt_auto_text text = {0};
 *     dt_text_add(&text, "ranks=%d", 4);
 *     puts(dt_text_at(&text));
 *
 * A failed allocation is sticky: later adds do nothing, and dt_text_status
 * reports it once at the end.
 */
#ifndef DT_BASE_TEXT_H
#define DT_BASE_TEXT_H

#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct dt_text {
    char *bytes; /* owned; NUL after size bytes */
    size_t size, room;
    bool failed; /* an allocation failed */
};

void dt_text_add(struct dt_text *text, const char *format, ...) DT_FORMAT(2, 3);
void dt_text_add_list(struct dt_text *text, const char *format, va_list args) DT_FORMAT(2, 0);
void dt_text_add_bytes(struct dt_text *text, const void *bytes, size_t size);
void dt_text_reserve(struct dt_text *text, size_t more); /* makes room for `more` bytes and a NUL */
void dt_text_clear(struct dt_text *text);                /* size 0, memory kept */
const char *dt_text_at(const struct dt_text *text);      /* never NULL */
dt_status
dt_text_status(const struct dt_text *text) DT_MUST_CHECK; /* DT_ENOMEM when an add failed */
char *dt_text_take(
    struct dt_text *text); /* the caller frees; NULL when an add failed; text is empty after */
void dt_text_fini(struct dt_text *text);

/* A local that is freed where its scope ends: dt_auto_text line = {0}; */
#define dt_auto_text struct dt_text DT_CLEANUP(dt_text_fini)

/* Bytes of the UTF-8 character at bytes, of at most size; 0 when it is none (RFC 3629: no
 * surrogates, shortest form). */
size_t dt_text_character(const void *bytes, size_t size);

/* Code point of a character of `size` bytes. */
unsigned dt_text_code(const char *text, size_t size);

/* The shortest text that reads back as the number, with a point in every locale, and the digits
 * that it took; 18: it is no number. */
#define DT_TEXT_REAL 40
int dt_text_real(double number, char text[DT_TEXT_REAL]);

/* Index of the word among words, the last of which is followed by NULL; -1: it is none of them. */
int dt_text_index(const char *word, const char *const words[]);

/* The whole text is valid UTF-8. */
bool dt_text_whole(const char *text);

/* Makes text valid UTF-8, as JSON requires: removes a character cut off by "%.80s" or the end of a
 * buffer, and replaces any other invalid byte by '?'. */
void dt_text_mend(char *text);

/* For text of foreign origin (names, titles, sentences of workers, stores and files) on a terminal
 * or in a log. Not shown are bytes that are not UTF-8, control characters (C0, DEL, C1), separators
 * of lines, characters that change the direction of the text (Unicode's bidi controls), U+FFFE and
 * U+FFFF, which XML forbids, and the first character of "##[", which GitHub's runner reads as a
 * command anywhere in a line. */

/* Bytes of the character that the text begins with; 0: it is not shown. */
size_t dt_text_shown(const char *text);
/* Replaces each character that is not shown by '?'. */
void dt_text_clean(char *text);
void dt_text_clean_lines(struct dt_text *text); /* the same, but keeps line feeds and tabs */
/* Appends the text, with characters that are not shown written as \\xNN or \\uNNNN. */
void dt_text_show(const char *text, struct dt_text *out);
/* The same of JSON on one line, with the escapes of JSON: its value stays as it is. */
void dt_text_show_json(const char *text, struct dt_text *out);

#endif
