/* SPDX-License-Identifier: MIT */
/* Strings of JSON text: UTF-8 as RFC 3629 has it, escapes as RFC 8259 has them, and no NUL. */
#include "base/json_int.h"

#include <stdio.h>
#include <string.h>

/* Four hex digits; -1 when they are not. */
static int hex(const struct dt_json_parser *parser, size_t at)
{
    int code = 0;
    if (at + 4 > parser->size)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        int c = (unsigned char)parser->text[i], low = c | 0x20;
        if (!dt_json_digit(c) && (low < 'a' || low > 'f'))
            return -1;
        code = code << 4 | (dt_json_digit(c) ? c - '0' : low - 'a' + 10);
    }
    return code;
}

static void add_code(struct dt_text *text, unsigned code)
{
    char bytes[4];
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        bytes[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    bytes[0] = (char)(n == 1 ? code : (0xf00U >> n & 0xff) | code);
    dt_text_add_bytes(text, bytes, n);
}

/* After a backslash and u. */
static dt_status unescape_code(struct dt_json_parser *parser)
{
    int code = hex(parser, parser->at), low = -1;
    if (code < 0)
        return dt_json_wrong(parser, "invalid escape");
    parser->at += 4;
    if (code >= 0xd800 && code < 0xdc00 && parser->at + 2 <= parser->size &&
        memcmp(parser->text + parser->at, "\\u", 2) == 0)
        low = hex(parser, parser->at + 2);
    if (low >= 0xdc00 && low < 0xe000) {
        parser->at += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xd800 && code < 0xe000) {
        return dt_json_wrong(parser, "invalid Unicode, half of a surrogate pair");
    } else if (code == 0) {
        return dt_json_wrong(parser, "\\u0000 is not allowed");
    }
    add_code(&parser->tokens, (unsigned)code);
    return DT_OK;
}

static dt_status unescape(struct dt_json_parser *parser)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    int c = dt_json_peek(parser);
    const char *found = c > 0 ? strchr(names, c) : NULL;
    parser->at += c >= 0;
    if (c == 'u')
        return unescape_code(parser);
    if (found == NULL)
        return dt_json_wrong(parser, c < 0 ? "premature end of input" : "invalid escape");
    dt_text_add_bytes(&parser->tokens, values + (found - names), 1);
    return DT_OK;
}

/* The string that begins here, to the end of tokens, with a NUL. */
dt_status dt_json_parse_text(struct dt_json_parser *parser)
{
    char why[64];
    parser->at++;
    for (;;) {
        size_t plain = parser->at;
        while (plain < parser->size && (unsigned char)parser->text[plain] >= 0x20 &&
               (unsigned char)parser->text[plain] < 0x80 && parser->text[plain] != '"' &&
               parser->text[plain] != '\\')
            plain++;
        dt_text_add_bytes(&parser->tokens, parser->text + parser->at, plain - parser->at);
        parser->at = plain;
        int c = dt_json_peek(parser);
        if (c < 0)
            return dt_json_wrong(parser, "premature end of input");
        if (c < 0x20) {
            snprintf(why, sizeof why, c == '\n' ? "unexpected newline" : "control character 0x%x",
                     (unsigned)c);
            return dt_json_wrong(parser, why);
        }
        if (c >= 0x80) {
            const char *bytes = parser->text + parser->at;
            size_t n = dt_text_character(bytes, parser->size - parser->at);
            if (n == 0) {
                snprintf(why, sizeof why, "unable to decode byte 0x%x", (unsigned)c);
                return dt_json_wrong(parser, why);
            }
            dt_text_add_bytes(&parser->tokens, bytes, n);
            parser->at += n;
            continue;
        }
        parser->at++;
        if (c == '"')
            break;
        DT_TRY(unescape(parser));
    }
    dt_text_add_bytes(&parser->tokens, "", 1);
    return parser->tokens.failed ? dt_json_no_memory(parser) : DT_OK;
}
