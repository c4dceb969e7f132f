/* SPDX-License-Identifier: MIT */
/* Jansson's values, but not its parser: that one forgets a byte when memory runs out in the middle of a token, and then
 * fails an assertion, reads beyond its buffer or calls good text bad (2.14, load.c, lex_save). A store that is called bad
 * is replaced by the version before, so the difference matters. Accepts what json_loadb(JSON_REJECT_DUPLICATES) accepts
 * and says what it says; a test compares them. Depth was checked by the caller. */
#include "base/json_int.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define NEAR_MOST 20 /* bytes of a token that are shown */

static dt_status parse_value(struct dt_json_parser *parser, json_t **value);

/* Line and column of the end of the token, in characters, as editors count. */
dt_status dt_json_wrong(const struct dt_json_parser *parser, const char *why)
{
    int line = 1, column = 0;
    size_t long_ = parser->at - parser->start;
    for (size_t i = 0; i < parser->at; i++) {
        bool feed = parser->text[i] == '\n';
        line += feed;
        column = feed ? 0 : column + ((parser->text[i] & 0xc0) != 0x80);
    }
    if (long_ == 0 && parser->at == parser->size)
        return dt_fail(DT_EUSAGE, "%s is not valid JSON: line %d, column %d: %s near end of file",
                       parser->what, line, column, why);
    if (long_ == 0 || long_ > NEAR_MOST)
        return dt_fail(DT_EUSAGE, "%s is not valid JSON: line %d, column %d: %s", parser->what,
                       line, column, why);
    return dt_fail(DT_EUSAGE, "%s is not valid JSON: line %d, column %d: %s near '%.*s'",
                   parser->what, line, column, why, (int)long_, parser->text + parser->start);
}

dt_status dt_json_no_memory(const struct dt_json_parser *parser)
{
    return dt_fail(DT_ENOMEM, "out of memory while reading %s", parser->what);
}

/* To the first byte of the next token. */
static void skip_space(struct dt_json_parser *parser)
{
    while (dt_json_peek(parser) == ' ' || dt_json_peek(parser) == '\t' ||
           dt_json_peek(parser) == '\n' || dt_json_peek(parser) == '\r')
        parser->at++;
    parser->start = parser->at;
}

static bool letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- strings, numbers and words ---- */

static dt_status parse_string(struct dt_json_parser *parser, json_t **value)
{
    size_t keep = parser->tokens.size;
    DT_TRY(dt_json_parse_text(parser));
    *value = json_stringn_nocheck(parser->tokens.bytes + keep, parser->tokens.size - keep - 1);
    parser->tokens.size = keep;
    return *value != NULL ? DT_OK : dt_json_no_memory(parser);
}

static bool digits(struct dt_json_parser *parser)
{
    size_t from = parser->at;
    while (dt_json_digit(dt_json_peek(parser)))
        parser->at++;
    return parser->at > from;
}

/* Moves over it: 0 when it is none, else 'i' or 'r'. */
static int scan_number(struct dt_json_parser *parser)
{
    int kind = 'i';
    parser->at += dt_json_peek(parser) == '-';
    bool zero = dt_json_peek(parser) == '0';
    if (zero)
        parser->at++;
    if (zero ? dt_json_digit(dt_json_peek(parser)) : !digits(parser))
        return 0;
    if (dt_json_peek(parser) == '.') {
        kind = 'r';
        parser->at++;
        if (!digits(parser))
            return 0;
    }
    if (dt_json_peek(parser) == 'e' || dt_json_peek(parser) == 'E') {
        kind = 'r';
        parser->at++;
        parser->at += dt_json_peek(parser) == '+' || dt_json_peek(parser) == '-';
        if (!digits(parser))
            return 0;
    }
    return kind;
}

static dt_status convert(struct dt_json_parser *parser, int kind, char *token, json_t **value)
{
    errno = 0;
    if (kind == 'i') {
        long long number = strtoll(token, NULL, 10);
        if (errno == ERANGE)
            return dt_json_wrong(parser,
                                 number < 0 ? "too big negative integer" : "too big integer");
        *value = json_integer(number);
    } else {
        char *point = strchr(token, '.');
        if (point != NULL)
            *point = localeconv()->decimal_point[0]; /* strtod expects the one of the locale */
        double number = strtod(token, NULL);
        if (errno == ERANGE && (number > 1 || number < -1))
            return dt_json_wrong(parser, "real number overflow");
        *value = json_real(number);
    }
    return *value != NULL ? DT_OK : dt_json_no_memory(parser);
}

static dt_status parse_number(struct dt_json_parser *parser, json_t **value)
{
    size_t keep = parser->tokens.size;
    int kind = scan_number(parser);
    if (kind == 0)
        return dt_json_wrong(parser, "invalid token");
    dt_text_add_bytes(&parser->tokens, parser->text + parser->start, parser->at - parser->start);
    dt_text_add_bytes(&parser->tokens, "", 1);
    if (parser->tokens.failed)
        return dt_json_no_memory(parser);
    dt_status status = convert(parser, kind, parser->tokens.bytes + keep, value);
    parser->tokens.size = keep;
    return status;
}

static dt_status parse_word(struct dt_json_parser *parser, json_t **value)
{
    while (letter(dt_json_peek(parser)))
        parser->at++;
    const char *word = parser->text + parser->start;
    size_t size = parser->at - parser->start;
    if (size == 4 && memcmp(word, "true", 4) == 0)
        *value = json_true();
    else if (size == 5 && memcmp(word, "false", 5) == 0)
        *value = json_false();
    else if (size == 4 && memcmp(word, "null", 4) == 0)
        *value = json_null();
    else
        return dt_json_wrong(parser, "invalid token");
    return DT_OK;
}

/* The token at this place, for an error message: a whole string, number, word or character. */
static dt_status unexpected(struct dt_json_parser *parser, const char *why)
{
    int c = dt_json_peek(parser);
    if (c == '"')
        DT_TRY(dt_json_parse_text(parser));
    else if (c == '-' || dt_json_digit(c))
        scan_number(parser);
    else if (c >= 0 && c < 0x80)
        parser->at++;
    while (letter(c) && letter(dt_json_peek(parser)))
        parser->at++;
    return dt_json_wrong(parser, why);
}

/* ---- arrays and objects: the value is the caller's to free also on failure ---- */

static dt_status parse_array(struct dt_json_parser *parser, json_t *array)
{
    parser->at++;
    skip_space(parser);
    if (dt_json_peek(parser) == ']') {
        parser->at++;
        return DT_OK;
    }
    for (;;) {
        json_t *value = NULL;
        dt_status status = parse_value(parser, &value);
        if (status == DT_OK && json_array_append(array, value) != 0)
            status = dt_json_no_memory(parser);
        json_decref(value);
        DT_TRY(status);
        skip_space(parser);
        int c = dt_json_peek(parser);
        if (c != ',' && c != ']')
            return unexpected(parser, "']' expected");
        parser->at++;
        if (c == ']')
            return DT_OK;
        skip_space(parser);
    }
}

static dt_status parse_field(struct dt_json_parser *parser, json_t *object)
{
    json_t *value = NULL;
    size_t key = parser->tokens.size;
    if (dt_json_peek(parser) != '"')
        return unexpected(parser, "string or '}' expected");
    DT_TRY(dt_json_parse_text(parser));
    if (json_object_get(object, parser->tokens.bytes + key) != NULL)
        return dt_json_wrong(parser, "duplicate object key");
    skip_space(parser);
    if (dt_json_peek(parser) != ':')
        return unexpected(parser, "':' expected");
    parser->at++;
    skip_space(parser);
    dt_status status = parse_value(parser, &value);
    if (status == DT_OK && json_object_set_nocheck(object, parser->tokens.bytes + key, value) != 0)
        status = dt_json_no_memory(parser);
    json_decref(value);
    parser->tokens.size = key;
    return status;
}

static dt_status parse_object(struct dt_json_parser *parser, json_t *object)
{
    parser->at++;
    skip_space(parser);
    if (dt_json_peek(parser) == '}') {
        parser->at++;
        return DT_OK;
    }
    for (;;) {
        DT_TRY(parse_field(parser, object));
        skip_space(parser);
        int c = dt_json_peek(parser);
        if (c != ',' && c != '}')
            return unexpected(parser, "'}' expected");
        parser->at++;
        if (c == '}')
            return DT_OK;
        skip_space(parser);
    }
}

static dt_status parse_value(struct dt_json_parser *parser, json_t **value)
{
    int c = dt_json_peek(parser);
    if (c == '"')
        return parse_string(parser, value);
    if (c == '-' || dt_json_digit(c))
        return parse_number(parser, value);
    if (letter(c))
        return parse_word(parser, value);
    if (c != '[' && c != '{')
        return unexpected(parser, c < 0 || strchr("}]:,", c) != NULL ? "unexpected token"
                                                                     : "invalid token");
    *value = c == '[' ? json_array() : json_object();
    if (*value == NULL)
        return dt_json_no_memory(parser);
    return c == '[' ? parse_array(parser, *value) : parse_object(parser, *value);
}

dt_status dt_json_build(const char *text, size_t size, const char *what, json_t **root)
{
    struct dt_json_parser parser = {.what = what, .text = text, .size = size};
    json_t *value = NULL;
    dt_status status = DT_OK;
    skip_space(&parser);
    if (dt_json_peek(&parser) != '[' && dt_json_peek(&parser) != '{')
        status = unexpected(&parser, "'[' or '{' expected");
    else
        status = parse_value(&parser, &value);
    if (status == DT_OK) {
        skip_space(&parser);
        if (parser.at < size)
            status = unexpected(&parser, "end of file expected");
    }
    dt_text_fini(&parser.tokens);
    if (status == DT_OK)
        *root = value;
    else
        json_decref(value);
    return status;
}
