/* SPDX-License-Identifier: MIT */
/* Depth and NUL are checked by a scan of the bytes before they are parsed: a deep tree would hurt
 * whoever walks it later. */
#include "base/json.h"
#include "base/read.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct dt_json_parser {
    const char *what, *text;
    size_t size, at, start; /* start: of the token */
    struct dt_text tokens;  /* unescaped, each ended by a NUL: a key waits here for its value */
};

/* The next byte, which is not consumed; -1 at the end. */
static inline int dt_json_peek(const struct dt_json_parser *parser)
{
    return parser->at < parser->size ? (unsigned char)parser->text[parser->at] : -1;
}

static inline bool dt_json_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* Strings of JSON text: UTF-8 as RFC 3629 has it, escapes as RFC 8259 has them, and no NUL. */

/* Four hex digits; -1 when they are not. */
static int parse_hex(const struct dt_json_parser *parser, size_t at)
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

#define NEAR_MOST 20 /* bytes of a token that are shown */

/* DT_EUSAGE with the line and column where the token ends, and the token if it is short; DT_ENOMEM.
 * In characters, as editors count. */
static dt_status json_wrong(const struct dt_json_parser *parser, const char *why)
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

/* After a backslash and u. */
static dt_status unescape_code(struct dt_json_parser *parser)
{
    int code = parse_hex(parser, parser->at), low = -1;
    if (code < 0)
        return json_wrong(parser, "invalid escape");
    parser->at += 4;
    if (code >= 0xd800 && code < 0xdc00 && parser->at + 2 <= parser->size &&
        memcmp(parser->text + parser->at, "\\u", 2) == 0)
        low = parse_hex(parser, parser->at + 2);
    if (low >= 0xdc00 && low < 0xe000) {
        parser->at += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xd800 && code < 0xe000) {
        return json_wrong(parser, "invalid Unicode, half of a surrogate pair");
    } else if (code == 0) {
        return json_wrong(parser, "\\u0000 is not allowed");
    }
    add_code(&parser->tokens, (unsigned)code);
    return DT_OK;
}

static dt_status unescape_text(struct dt_json_parser *parser)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    int c = dt_json_peek(parser);
    const char *found = c > 0 ? strchr(names, c) : NULL;
    parser->at += c >= 0;
    if (c == 'u')
        return unescape_code(parser);
    if (found == NULL)
        return json_wrong(parser, c < 0 ? "premature end of input" : "invalid escape");
    dt_text_add_bytes(&parser->tokens, values + (found - names), 1);
    return DT_OK;
}

static dt_status json_no_memory(const struct dt_json_parser *parser)
{
    return dt_fail(DT_ENOMEM, "out of memory while reading %s", parser->what);
}

/* The string that begins here, to the end of tokens, with a NUL. */
static dt_status json_parse_text(struct dt_json_parser *parser)
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
            return json_wrong(parser, "premature end of input");
        if (c < 0x20) {
            snprintf(why, sizeof why, c == '\n' ? "unexpected newline" : "control character 0x%x",
                     (unsigned)c);
            return json_wrong(parser, why);
        }
        if (c >= 0x80) {
            const char *bytes = parser->text + parser->at;
            size_t n = dt_text_character(bytes, parser->size - parser->at);
            if (n == 0) {
                snprintf(why, sizeof why, "unable to decode byte 0x%x", (unsigned)c);
                return json_wrong(parser, why);
            }
            dt_text_add_bytes(&parser->tokens, bytes, n);
            parser->at += n;
            continue;
        }
        parser->at++;
        if (c == '"')
            break;
        DT_TRY(unescape_text(parser));
    }
    dt_text_add_bytes(&parser->tokens, "", 1);
    return parser->tokens.failed ? json_no_memory(parser) : DT_OK;
}

/* Jansson's values, but not its parser: that one forgets a byte when memory runs out in the middle
 * of a token, and then fails an assertion, reads beyond its buffer or calls good text bad (2.14,
 * load.c, lex_save). A store that is called bad is replaced by the version before, so the
 * difference matters. Accepts what json_loadb(JSON_REJECT_DUPLICATES) accepts and says what it
 * says; a test compares them. Depth was checked by the caller. */

static dt_status parse_value(struct dt_json_parser *parser, json_t **value);

/* To the first byte of the next token. */
static void skip_space(struct dt_json_parser *parser)
{
    while (dt_json_peek(parser) == ' ' || dt_json_peek(parser) == '\t' ||
           dt_json_peek(parser) == '\n' || dt_json_peek(parser) == '\r')
        parser->at++;
    parser->start = parser->at;
}

static bool is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- strings, numbers and words ---- */

static dt_status parse_string(struct dt_json_parser *parser, json_t **value)
{
    size_t keep = parser->tokens.size;
    DT_TRY(json_parse_text(parser));
    *value = json_stringn_nocheck(parser->tokens.bytes + keep, parser->tokens.size - keep - 1);
    parser->tokens.size = keep;
    return *value != NULL ? DT_OK : json_no_memory(parser);
}

static bool skip_digits(struct dt_json_parser *parser)
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
    if (zero ? dt_json_digit(dt_json_peek(parser)) : !skip_digits(parser))
        return 0;
    if (dt_json_peek(parser) == '.') {
        kind = 'r';
        parser->at++;
        if (!skip_digits(parser))
            return 0;
    }
    if (dt_json_peek(parser) == 'e' || dt_json_peek(parser) == 'E') {
        kind = 'r';
        parser->at++;
        parser->at += dt_json_peek(parser) == '+' || dt_json_peek(parser) == '-';
        if (!skip_digits(parser))
            return 0;
    }
    return kind;
}

static dt_status convert_token(struct dt_json_parser *parser, int kind, char *token, json_t **value)
{
    errno = 0;
    if (kind == 'i') {
        long long number = strtoll(token, NULL, 10);
        if (errno == ERANGE)
            return json_wrong(parser, number < 0 ? "too big negative integer" : "too big integer");
        *value = json_integer(number);
    } else {
        char *point = strchr(token, '.');
        if (point != NULL)
            *point = localeconv()->decimal_point[0]; /* strtod expects the one of the locale */
        double number = strtod(token, NULL);
        if (errno == ERANGE && (number > 1 || number < -1))
            return json_wrong(parser, "real number overflow");
        *value = json_real(number);
    }
    return *value != NULL ? DT_OK : json_no_memory(parser);
}

static dt_status parse_number(struct dt_json_parser *parser, json_t **value)
{
    size_t keep = parser->tokens.size;
    int kind = scan_number(parser);
    if (kind == 0)
        return json_wrong(parser, "invalid token");
    dt_text_add_bytes(&parser->tokens, parser->text + parser->start, parser->at - parser->start);
    dt_text_add_bytes(&parser->tokens, "", 1);
    if (parser->tokens.failed)
        return json_no_memory(parser);
    dt_status status = convert_token(parser, kind, parser->tokens.bytes + keep, value);
    parser->tokens.size = keep;
    return status;
}

static dt_status parse_word(struct dt_json_parser *parser, json_t **value)
{
    while (is_letter(dt_json_peek(parser)))
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
        return json_wrong(parser, "invalid token");
    return DT_OK;
}

/* The token at this place, for an error message: a whole string, number, word or character. */
static dt_status fail_unexpected(struct dt_json_parser *parser, const char *why)
{
    int c = dt_json_peek(parser);
    if (c == '"')
        DT_TRY(json_parse_text(parser));
    else if (c == '-' || dt_json_digit(c))
        scan_number(parser);
    else if (c >= 0 && c < 0x80)
        parser->at++;
    while (is_letter(c) && is_letter(dt_json_peek(parser)))
        parser->at++;
    return json_wrong(parser, why);
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
        json_auto_t *value = NULL;
        DT_TRY(parse_value(parser, &value));
        if (json_array_append(array, value) != 0)
            return json_no_memory(parser);
        skip_space(parser);
        int c = dt_json_peek(parser);
        if (c != ',' && c != ']')
            return fail_unexpected(parser, "']' expected");
        parser->at++;
        if (c == ']')
            return DT_OK;
        skip_space(parser);
    }
}

static dt_status parse_field(struct dt_json_parser *parser, json_t *object)
{
    json_auto_t *value = NULL;
    size_t key = parser->tokens.size;
    if (dt_json_peek(parser) != '"')
        return fail_unexpected(parser, "string or '}' expected");
    DT_TRY(json_parse_text(parser));
    if (json_object_get(object, parser->tokens.bytes + key) != NULL)
        return json_wrong(parser, "duplicate object key");
    skip_space(parser);
    if (dt_json_peek(parser) != ':')
        return fail_unexpected(parser, "':' expected");
    parser->at++;
    skip_space(parser);
    dt_status status = parse_value(parser, &value);
    if (status == DT_OK && json_object_set_nocheck(object, parser->tokens.bytes + key, value) != 0)
        status = json_no_memory(parser);
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
            return fail_unexpected(parser, "'}' expected");
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
    if (is_letter(c))
        return parse_word(parser, value);
    if (c != '[' && c != '{')
        return fail_unexpected(parser, c < 0 || strchr("}]:,", c) != NULL ? "unexpected token"
                                                                          : "invalid token");
    *value = c == '[' ? json_array() : json_object();
    if (*value == NULL)
        return json_no_memory(parser);
    return c == '[' ? parse_array(parser, *value) : parse_object(parser, *value);
}

/* *root gets a new reference; DT_EUSAGE, DT_ENOMEM. Recursive: the caller has checked the depth. */
static dt_status json_build(const char *text, size_t size, const char *what, json_t **root)
{
    struct dt_json_parser parser = {.what = what, .text = text, .size = size};
    json_t *value = NULL;
    dt_status status = DT_OK;
    skip_space(&parser);
    if (dt_json_peek(&parser) != '[' && dt_json_peek(&parser) != '{')
        status = fail_unexpected(&parser, "'[' or '{' expected");
    else
        status = parse_value(&parser, &value);
    if (status == DT_OK) {
        skip_space(&parser);
        if (parser.at < size)
            status = fail_unexpected(&parser, "end of file expected");
    }
    dt_text_fini(&parser.tokens);
    if (status == DT_OK)
        *root = value;
    else
        json_decref(value);
    return status;
}

static dt_status check_shape(const char *text, size_t size, size_t values, const char *what)
{
    int depth = 0;
    size_t count = 1;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '\0')
            return dt_fail(DT_EUSAGE,
                           "%s has a NUL byte at offset %zu, which JSON text cannot hold", what, i);
        if (quoted) {
            if (c == '\\')
                i++;
            else if (c == '"')
                quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '[' || c == '{') {
            count++;
            if (++depth > DT_JSON_MAX_DEPTH)
                return dt_fail(DT_EUSAGE, "%s is nested deeper than %d levels", what,
                               DT_JSON_MAX_DEPTH);
        } else if (c == ']' || c == '}') {
            depth--;
        } else if (c == ',') {
            count++;
        }
        if (count > values)
            return dt_fail(DT_EUSAGE, "%s has more than the %zu values allowed", what, values);
    }
    return DT_OK;
}

dt_status dt_json_parse_within(const char *text, size_t size, struct dt_json_limits limits,
                               const char *what, json_t **root)
{
    if (size > limits.bytes)
        return dt_fail(DT_EUSAGE, "%s is %zu bytes long, more than the %zu allowed", what, size,
                       limits.bytes);
    DT_TRY(check_shape(text, size, limits.values, what));
    return json_build(text, size, what, root);
}

dt_status dt_json_parse(const char *text, size_t size, const char *what, json_t **root)
{
    const struct dt_json_limits limits = {.bytes = DT_JSON_MAX_BYTES, .values = DT_JSON_MAX_BYTES};
    return dt_json_parse_within(text, size, limits, what, root);
}

dt_status dt_json_read_within(const char *path, struct dt_json_limits limits, const char *what,
                              json_t **root)
{
    dt_auto_text name = {0}, text = {0};
    dt_text_add(&name, "%s %s", what, path);
    DT_TRY(dt_read_text(path, dt_text_at(&name), limits.bytes, &text));
    return dt_json_parse_within(dt_text_at(&text), text.size, limits, dt_text_at(&name), root);
}

dt_status dt_json_read(const char *path, const char *what, json_t **root)
{
    const struct dt_json_limits limits = {.bytes = DT_JSON_MAX_BYTES, .values = DT_JSON_MAX_BYTES};
    return dt_json_read_within(path, limits, what, root);
}

static dt_status require_field(const json_t *object, const char *what, const char *key,
                               json_t **value)
{
    if (!json_is_object(object))
        return dt_fail(DT_EUSAGE, "%s is not a JSON object", what);
    *value = json_object_get(object, key);
    return *value != NULL ? DT_OK : dt_fail(DT_EUSAGE, "%s: '%s' is missing", what, key);
}

dt_status dt_json_int(const json_t *object, const char *what, const char *key, int64_t low,
                      int64_t high, int64_t *out)
{
    json_t *value;
    DT_TRY(require_field(object, what, key, &value));
    if (!json_is_integer(value))
        return dt_fail(DT_EUSAGE, "%s: '%s' is not an integer", what, key);
    int64_t number = json_integer_value(value);
    if (number < low || number > high)
        return dt_fail(DT_EUSAGE, "%s: '%s' is %lld, expected %lld to %lld", what, key,
                       (long long)number, (long long)low, (long long)high);
    *out = number;
    return DT_OK;
}

dt_status dt_json_real(const json_t *object, const char *what, const char *key, double *out)
{
    json_t *value;
    DT_TRY(require_field(object, what, key, &value));
    if (!json_is_number(value))
        return dt_fail(DT_EUSAGE, "%s: '%s' is not a number", what, key);
    *out = json_number_value(value);
    return DT_OK;
}

dt_status dt_json_bool(const json_t *object, const char *what, const char *key, bool *out)
{
    json_t *value;
    DT_TRY(require_field(object, what, key, &value));
    if (!json_is_boolean(value))
        return dt_fail(DT_EUSAGE, "%s: '%s' is neither true nor false", what, key);
    *out = json_is_true(value);
    return DT_OK;
}

/* A field of a type of Jansson's. */
static dt_status require_typed(const json_t *object, const char *what, const char *key,
                               json_type type, const char *a_type, json_t **out)
{
    json_t *value;
    DT_TRY(require_field(object, what, key, &value));
    if (json_typeof(value) != type)
        return dt_fail(DT_EUSAGE, "%s: '%s' is not %s", what, key, a_type);
    *out = value;
    return DT_OK;
}

dt_status dt_json_string(const json_t *object, const char *what, const char *key, const char **out)
{
    json_t *value = NULL;
    DT_TRY(require_typed(object, what, key, JSON_STRING, "a string", &value));
    *out = json_string_value(value);
    return DT_OK;
}

dt_status dt_json_array(const json_t *object, const char *what, const char *key, json_t **out)
{
    return require_typed(object, what, key, JSON_ARRAY, "an array", out);
}

dt_status dt_json_object(const json_t *object, const char *what, const char *key, json_t **out)
{
    return require_typed(object, what, key, JSON_OBJECT, "an object", out);
}

bool dt_json_lists(const json_t *list, const char *name)
{
    const json_t *value;
    size_t i;
    json_array_foreach(list, i, value)
    {
        if (json_is_string(value) && strcmp(json_string_value(value), name) == 0)
            return true;
    }
    return false;
}

bool dt_json_contains(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return false;
}

json_t *dt_json_named(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(dt_json_text_at(json_array_get(list, i), "name"), name) == 0)
            return json_array_get(list, i);
    return NULL;
}

bool dt_json_has(const json_t *object, const char *key)
{
    return json_object_get(object, key) != NULL;
}

json_int_t dt_json_integer_at(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

double dt_json_number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *dt_json_text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

json_t *dt_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *dt_json_ints(const int values[], int n)
{
    json_t *array = json_array();
    for (int i = 0; values != NULL && i < n; i++)
        if (json_array_append_new(array, json_integer(values[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

dt_status dt_json_only(const json_t *object, const char *what, const char *const known[])
{
    if (!json_is_object(object))
        return dt_fail(DT_EUSAGE, "%s is not a JSON object", what);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        if (dt_text_index(key, known) >= 0)
            continue;
        const char *near = dt_json_nearest(key, known);
        if (near != NULL)
            return dt_fail(DT_EUSAGE, "%s: unknown field '%s', did you mean '%s'?", what, key,
                           near);
        return dt_fail(DT_EUSAGE, "%s: unknown field '%s'", what, key);
    }
    return DT_OK;
}

json_t *dt_json_copy(const json_t *object)
{
    const char *key;
    json_t *value, *copy = json_object();
    json_object_foreach((json_t *)object, key, value)
    {
        if (json_object_set(copy, key, value) != 0) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy;
}

struct writing {
    struct dt_text *text;
    bool string; /* between quotes, which Jansson writes one by one */
};

/* Jansson writes 0.85 with 17 digits, as 0.84999999999999998: the shortest text of the same
 * number takes its place. */
static bool add_shorter(const char *bytes, size_t size, struct dt_text *text)
{
    char number[40], shorter[DT_TEXT_REAL];
    if (size < 18 || size >= sizeof number || memchr(bytes, '.', size) == NULL)
        return false;
    memcpy(number, bytes, size);
    number[size] = 0;
    *strchr(number, '.') = localeconv()->decimal_point[0]; /* strtod wants the locale's point */
    if (dt_text_real(strtod(number, NULL), shorter) >= 17)
        return false;
    dt_text_add(text, "%s%s", shorter, strpbrk(shorter, ".e") == NULL ? ".0" : "");
    return true;
}

static int append_dump(const char *bytes, size_t size, void *context)
{
    struct writing *writing = context;
    if (size == 1 && *bytes == '"')
        writing->string = !writing->string;
    if (writing->string || !add_shorter(bytes, size, writing->text))
        dt_text_add_bytes(writing->text, bytes, size);
    return 0;
}

dt_status dt_json_text(const json_t *root, struct dt_text *text)
{
    struct writing writing = {.text = text};
    if (root == NULL ||
        json_dump_callback(root, append_dump, &writing, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
        return dt_fail(DT_ENOMEM, "out of memory while writing JSON");
    return dt_text_status(text);
}

dt_status dt_json_shown(const json_t *root, struct dt_text *text)
{
    dt_auto_text exact = {0};
    DT_TRY(dt_json_text(root, &exact));
    dt_text_show_json(dt_text_at(&exact), text);
    return dt_text_status(text);
}

void dt_json_plain(const json_t *value, struct dt_text *text)
{
    if (json_is_string(value))
        dt_text_add(text, "%s", json_string_value(value));
    else if (dt_json_text(value, text) != DT_OK)
        text->failed = true;
}

void dt_json_differences(const json_t *then, const json_t *now, const char *inside,
                         dt_json_difference *take, void *context)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)then, name, value)
    {
        const json_t *other = json_object_get(now, name);
        if (json_is_object(value) && json_is_object(other))
            dt_json_differences(value, other, name, take, context);
        else if (!json_equal(value, other))
            take(context, inside, name, value, other);
    }
    json_object_foreach((json_t *)now, name, value)
    {
        if (json_object_get(then, name) == NULL)
            take(context, inside, name, NULL, value);
    }
}

/* Edit distance (Levenshtein 1966); INT_MAX for strings of 64 bytes and more,
 * which are near nothing. */
static int name_distance(const char *a, const char *b)
{
    int row[64];
    int na = (int)strlen(a), nb = (int)strlen(b);
    if (na >= 64 || nb >= 64)
        return INT_MAX;
    for (int j = 0; j <= nb; j++)
        row[j] = j;
    for (int i = 1; i <= na; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[nb];
}

/* A word of the text begins with the name. */
static bool has_beginning(const char *text, const char *name, size_t size)
{
    for (const char *at = text; *at != '\0'; at++)
        if ((at == text || !isalnum((unsigned char)at[-1])) && strncasecmp(at, name, size) == 0)
            return true;
    return false;
}

const char *dt_json_nearest(const char *name, const char *const names[])
{
    const char *best = NULL;
    int size = (int)strlen(name),
        least = size > 2 ? size / 3 + 2 : 1; /* a name of two letters is near to none */
    for (int i = 0; names[i] != NULL; i++) {
        int d = name_distance(name, names[i]);
        if (d < least) {
            least = d;
            best = names[i];
        }
    }
    for (int i = 0; best == NULL && size > 2 && names[i] != NULL; i++)
        if (has_beginning(names[i], name, (size_t)size))
            best = names[i];
    return best;
}
