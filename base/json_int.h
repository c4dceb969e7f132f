/* SPDX-License-Identifier: MIT */
/* json_int - JSON text to Jansson's values (base/json is the door to it) */
#ifndef DT_BASE_JSON_INT_H
#define DT_BASE_JSON_INT_H

#include "base/json.h"

struct dt_json_parser {
    const char *what, *text;
    size_t size, at, start; /* start: of the token */
    struct dt_text tokens;  /* unescaped, each ended by a NUL: a key waits here for its value */
};

/* *root gets a new reference; DT_EUSAGE, DT_ENOMEM. Recursive: the caller has checked the depth. */
dt_status dt_json_build(const char *text, size_t size, const char *what,
                        json_t **root) DT_MUST_CHECK;

/* Appends the string that begins here to tokens. */
dt_status dt_json_parse_text(struct dt_json_parser *parser) DT_MUST_CHECK;

/* DT_EUSAGE with the line and column where the token ends, and the token if it is short; DT_ENOMEM. */
dt_status dt_json_wrong(const struct dt_json_parser *parser, const char *why);
dt_status dt_json_no_memory(const struct dt_json_parser *parser);

/* The next byte, which is not consumed; -1 at the end. */
static inline int dt_json_peek(const struct dt_json_parser *parser)
{
    return parser->at < parser->size ? (unsigned char)parser->text[parser->at] : -1;
}

static inline bool dt_json_digit(int c)
{
    return c >= '0' && c <= '9';
}

#endif
