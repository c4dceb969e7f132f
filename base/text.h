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

/* Makes text UTF-8, as JSON must be: the start of a character that "%.80s" or the end of a buffer cut off goes, any other
 * byte of no character becomes '?'. */
void dt_text_mend(char *text);

#endif
