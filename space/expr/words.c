/* SPDX-License-Identifier: MIT */
/* The words of a rule: numbers, names, texts in quotes. A name may have '-' and '.' in it: the longest known name wins. */
#include "space/expr/decimal.h"
#include "space/expr/parse_int.h"

#include "base/json.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct dt_operand other = {.name = -1, .label = -1};

dt_status dt_expr_fail(const char *text, int column, const char *format, ...)
{
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    bool cut = strlen(text) > 120;
    return dt_fail(DT_EUSAGE, "rule '%.*s%s', column %d: %s", cut ? 117 : 120, text,
                   cut ? "..." : "", column, sentence);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

const char *dt_parse_here(struct dt_parser *parser)
{
    while (strchr(" \t\r\n", parser->expr->text[parser->at]) != NULL &&
           parser->expr->text[parser->at] != '\0')
        parser->at++;
    return parser->expr->text + parser->at;
}

size_t dt_parse_word(const char *text)
{
    size_t n = 0;
    while (is_letter(text[n]) || is_digit(text[n]))
        n++;
    return n;
}

bool dt_parse_is(struct dt_parser *parser, const char *word)
{
    const char *text = dt_parse_here(parser);
    size_t n = strlen(word);
    return strncmp(text, word, n) == 0 && (!is_letter(word[0]) || dt_parse_word(text) == n);
}

dt_status dt_parse_unexpected(struct dt_parser *parser, const char *wanted)
{
    const char *text = dt_parse_here(parser);
    if (*text == '\0')
        return DT_PARSE_FAIL(parser, parser->at, "the rule ends where %s is expected", wanted);
    int n = (int)dt_parse_word(text);
    return DT_PARSE_FAIL(parser, parser->at, "found '%.*s' where %s is expected", n > 0 ? n : 1,
                         text, wanted);
}

dt_status dt_parse_emit(struct dt_parser *parser, enum dt_expr_code code, size_t offset,
                        int64_t argument)
{
    struct dt_expr *expr = parser->expr;
    if (expr->count == DT_EXPR_OPS)
        return DT_PARSE_FAIL(parser, offset, "the rule has more than %d operations", DT_EXPR_OPS);
    expr->ops[expr->count++] =
        (struct dt_expr_op){.code = code, .column = (int)offset + 1, .argument = argument};
    return DT_OK;
}

/* The number at the beginning of text, with a point in every locale. */
static double read_double(const char *text, size_t *size)
{
    char copy[64], *end = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    char *point = strchr(copy, '.');
    if (point != NULL)
        *point = localeconv()->decimal_point[0];
    double value = strtod(copy, &end);
    *size = (size_t)(end - copy);
    return value;
}

/* 0.5, 1e3: a double; its exponent may have a sign. */
static dt_status read_real(struct dt_parser *parser, const char *text)
{
    int64_t bits = 0;
    size_t start = parser->at, n = 0;
    double value = read_double(text, &n);
    const char *end = text + n;
    if (dt_parse_word(end) > 0 || *end == '.')
        return DT_PARSE_FAIL(parser, start, "'%.*s' is not a number", (int)(n + dt_parse_word(end)),
                             text);
    if (!(value < 1e300))
        return DT_PARSE_FAIL(parser, start, "%.*s is too large a number", (int)n, text);
    memcpy(&bits, &value, sizeof bits);
    parser->at += n;
    parser->expr->real = true;
    parser->last.kind = DT_KIND_REAL;
    return dt_parse_emit(parser, DT_OP_REAL, start, bits);
}

static dt_status read_number(struct dt_parser *parser)
{
    const char *text = dt_parse_here(parser);
    size_t start = parser->at, n = dt_parse_word(text), digits = strspn(text, "0123456789");
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    int64_t value = 0;
    if (!hexadecimal && (text[digits] == '.' || text[digits] == 'e' || text[digits] == 'E'))
        return read_real(parser, text);
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(text[i]))
            return DT_PARSE_FAIL(parser, start, "'%.*s' is not an integer", (int)n, text);
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text[i] - '0', &value))
            return DT_PARSE_FAIL(parser, start, "%.*s is larger than the largest integer, %lld",
                                 (int)n, text, (long long)INT64_MAX);
    }
    if (n > 1 && text[0] == '0')
        return DT_PARSE_FAIL(parser, start, "%.*s begins with a zero, numbers are decimal here",
                             (int)n, text);
    parser->at += n;
    return dt_parse_emit(parser, DT_OP_NUMBER, start, value);
}

static const char *near_name(const struct dt_parser *parser, const char *name)
{
    const char **known = calloc((size_t)parser->name_count + 1, sizeof *known);
    for (int i = 0; known != NULL && i < parser->name_count; i++)
        known[i] = parser->names[i];
    const char *near = known != NULL ? dt_json_nearest(name, known) : NULL;
    free(known);
    return near;
}

/* Functions of Python and C that people write in rules. */
static dt_status unknown_function(struct dt_parser *parser, const char *name)
{
    static const struct {
        const char *name, *instead;
    } functions[] = {
        {"pow", "a ** b"},
        {"sqrt", "a ** 0.5"},
        {"int", "a // b"},
        {"floor", "a // b"},
        {"ceil", "-(-a // b)"},
        {"divmod", "a // b and a % b"},
        {"sum", "a + b"},
        {"all", "a and b"},
        {"any", "a or b"},
        {"fabs", "abs(a)"},
        {"range", "a in range(1, 9)"},
        {"float", "a / b"},
        {"len", "a comparison of the text with each value"},
    };
    const char *last = strrchr(name, '.') != NULL ? strrchr(name, '.') + 1 : name;
    const char *instead = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, last) == 0)
            instead = functions[i].instead;
    return DT_PARSE_FAIL(
        parser, parser->at,
        "'%s' is no function of rules, which have min, max, abs and 'in range'%s%s", name,
        instead != NULL ? "; write " : "", instead != NULL ? instead : "");
}

/* The character is of a word or joins words: '-', '.', and blanks beside them if they may be there. */
static bool is_joint(const char *text, size_t at, bool blanks)
{
    static const char joints[] = "-.";
    size_t before = at, after = at + strspn(text + at, " ");
    if (text[at] != ' ' || !blanks)
        return dt_parse_word(text + at) > 0 || (text[at] != '\0' && strchr(joints, text[at]));
    while (before > 0 && text[before] == ' ')
        before--;
    return strchr(joints, text[before]) != NULL ||
           (text[after] != '\0' && strchr(joints, text[after]) != NULL);
}

/* The words around *begin that '-' or '.' joins, without blanks, and where they begin. */
static void joined_words(const char *text, bool blanks, size_t *begin, char name[64])
{
    size_t n = 0, at = *begin;
    while (at > 0 && is_joint(text, at - 1, blanks))
        at--;
    *begin = at;
    for (; n < 63 && is_joint(text, at, blanks); at++)
        if (text[at] != ' ')
            name[n++] = text[at];
    name[n] = '\0';
}

/* A known name with a '-' or '.' that the word is a part of. */
static const char *longer_name(const struct dt_parser *parser, const char *name)
{
    size_t n = strlen(name);
    for (int i = 0; i < parser->name_count; i++) {
        const char *known = parser->names[i], *at = strstr(known, name);
        if (at != NULL && strlen(known) > n && (at == known || dt_parse_word(at - 1) == 0) &&
            dt_parse_word(at) == n)
            return known;
    }
    return NULL;
}

static bool is_joined(const char *name)
{
    return strpbrk(name, "-.") != NULL;
}

static dt_status unknown_name(struct dt_parser *parser, const char *text)
{
    char name[64], longer[64], apart[64];
    size_t start = parser->at, first = start, n = dt_parse_word(text);
    if (n >= sizeof name)
        return DT_PARSE_FAIL(parser, start, "a name of %zu bytes is too long", n);
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    joined_words(parser->expr->text, true, &first, apart);
    first = start;
    joined_words(parser->expr->text, false, &first, longer);
    for (int i = 0; i < parser->name_count; i++)
        for (int k = 0; k < parser->expr->categories[i].count; k++)
            if (parser->expr->categories[i].labels != NULL &&
                strcmp(parser->expr->categories[i].labels[k], name) == 0)
                return DT_PARSE_FAIL(parser, start,
                                     "unknown name '%s': a value of '%s' is written \"%s\"", name,
                                     parser->names[i], name);
    const char *end = text + n;
    while (*end == '.' && dt_parse_word(end + 1) > 0)
        end += 1 + dt_parse_word(end + 1);
    if (*end == '(') {
        snprintf(name, sizeof name, "%.*s", (int)(end - text < 63 ? end - text : 63), text);
        return unknown_function(parser, name);
    }
    const char *near = near_name(parser, longer);
    if (near == NULL || !is_joined(longer)) {
        near = near_name(parser, apart);
        near = near != NULL && is_joined(near) ? near : near_name(parser, name);
        near = near != NULL ? near : longer_name(parser, name);
        near = near != NULL && strcmp(near, name) != 0
                   ? near
                   : NULL; /* that is known, what follows is not */
    } else {
        snprintf(name, sizeof name, "%s", longer);
        start = first;
    }
    if (strstr(text, " for ") != NULL)
        return DT_PARSE_FAIL(parser, start,
                             "unknown name '%s': lists with 'for' are not read in rules; list the "
                             "values, or write range(1, 9)",
                             name);
    if (near == NULL && is_joined(longer)) {
        bool known = false; /* what follows it is not */
        for (int i = 0; i < parser->name_count; i++)
            known = known || strcmp(parser->names[i], name) == 0;
        return known ? DT_PARSE_FAIL(parser, start, "unknown name '%s'", longer)
                     : DT_PARSE_FAIL(parser, start, "unknown name '%s' in '%s'", name, longer);
    }
    if (near != NULL && is_joined(near))
        return DT_PARSE_FAIL(parser, start,
                             "unknown name '%s', did you mean '%s'? It is written so, without "
                             "quotes; a '-' between blanks is a minus",
                             name, near);
    if (near != NULL)
        return DT_PARSE_FAIL(parser, start, "unknown name '%s', did you mean '%s'?", name, near);
    return DT_PARSE_FAIL(parser, start, "unknown name '%s'", name);
}

/* The longest known name that the text begins with, and the second longest; -1: none. */
static void find_names(const struct dt_parser *parser, const char *text, int *longest, int *second)
{
    *longest = *second = -1;
    for (int i = 0; i < parser->name_count; i++) {
        size_t n = strlen(parser->names[i]);
        if (strncmp(text, parser->names[i], n) != 0 || is_letter(text[n]) || is_digit(text[n]))
            continue;
        if (*longest < 0 || n > strlen(parser->names[*longest])) {
            *second = *longest;
            *longest = i;
        } else {
            *second = i;
        }
    }
}

static dt_status read_name(struct dt_parser *parser)
{
    const char *text = dt_parse_here(parser);
    struct dt_expr *expr = parser->expr;
    size_t start = parser->at;
    int name, second;
    find_names(parser, text, &name, &second);
    if (name < 0)
        return unknown_name(parser, text);
    const char *rest = second >= 0 ? text + strlen(parser->names[second]) : "";
    int subtracted = -1, other_name;
    if (*rest == '-')
        find_names(parser, rest + 1, &subtracted, &other_name);
    if (subtracted >= 0 || (*rest == '-' && is_digit(rest[1])))
        return DT_PARSE_FAIL(parser, start,
                             "'%s' is a name and also '%s' less something: for the difference, put "
                             "blanks beside the '-'; the other meaning needs another name",
                             parser->names[name], parser->names[second]);
    const char *after = text + strlen(parser->names[name]);
    if (*after == '.' && is_letter(after[1]))
        return unknown_name(parser, text);
    parser->at += strlen(parser->names[name]);
    expr->names.bits[name / 64] |= UINT64_C(1) << (name % 64);
    parser->last.name = name;
    parser->last.start = start;
    if (expr->categories[name].digits > 0)
        parser->last.kind = DT_KIND_REAL;
    expr->real = expr->real || expr->categories[name].digits > 0;
    return dt_parse_emit(parser, DT_OP_NAME, start, name);
}

static dt_status read_label(struct dt_parser *parser)
{
    const char *text = dt_parse_here(parser);
    size_t start = parser->at;
    const char quote[] = {text[0], '\0'};
    size_t n = strcspn(text + 1, quote);
    if (text[1 + n] == '\0')
        return DT_PARSE_FAIL(parser, start, "the text that begins here has no end");
    parser->at += n + 2;
    parser->last = (struct dt_operand){
        .kind = DT_KIND_LABEL, .name = -1, .label = parser->expr->count, .start = start, .size = n};
    return dt_parse_emit(parser, DT_OP_NUMBER, start, 0);
}

dt_status dt_parse_leaf(struct dt_parser *parser)
{
    static const char *const truths[] = {"False", "True", "false", "true"};
    const char *text = dt_parse_here(parser);
    parser->last = other;
    if (*text == '\'' || *text == '"')
        return read_label(parser);
    if (is_digit(*text) || (*text == '.' && is_digit(text[1])))
        return *text == '.' ? read_real(parser, text) : read_number(parser);
    for (int i = 0; i < (parser->expr->python ? 2 : 4); i++) {
        if (dt_parse_is(parser, truths[i])) {
            size_t start = parser->at;
            parser->at += strlen(truths[i]);
            parser->last.kind = DT_KIND_BOOL;
            return dt_parse_emit(parser, DT_OP_NUMBER, start, i % 2);
        }
    }
    if (!is_letter(*text) || dt_parse_is(parser, "in") || dt_parse_is(parser, "and") ||
        dt_parse_is(parser, "or") || dt_parse_is(parser, "not"))
        return dt_parse_unexpected(parser, "a value");
    return read_name(parser);
}

dt_status dt_parse_no_label(struct dt_parser *parser, const struct dt_operand *operand)
{
    if (operand->label < 0)
        return DT_OK;
    return DT_PARSE_FAIL(
        parser, operand->start,
        "a text is only compared with the parameter whose value it is, by ==, != or in");
}

dt_status dt_parse_no_text(struct dt_parser *parser, const struct dt_operand *operand)
{
    DT_TRY(dt_parse_no_label(parser, operand));
    if (operand->name < 0 || parser->expr->categories[operand->name].labels == NULL)
        return DT_OK;
    return DT_PARSE_FAIL(parser, operand->start,
                         "'%s' is a text: it is only compared with its values, such as \"%s\", by "
                         "==, != or in",
                         parser->names[operand->name],
                         parser->expr->categories[operand->name].labels[0]);
}

/* Two names with words for values: an index means the same word in both. */
static dt_status check_words(struct dt_parser *parser, const struct dt_operand *a,
                             const struct dt_operand *b)
{
    bool differ = false;
    if (a->name < 0 || b->name < 0)
        return dt_parse_no_text(parser, a->name < 0 ? b : a);
    const char *const *x = parser->expr->categories[a->name].labels;
    const char *const *y = parser->expr->categories[b->name].labels;
    int n = parser->expr->categories[a->name].count;
    differ =
        (x == NULL) != (y == NULL) || (x != NULL && n != parser->expr->categories[b->name].count);
    for (int i = 0; !differ && x != NULL && i < n; i++)
        differ = strcmp(x[i], y[i]) != 0;
    if (!differ)
        return DT_OK;
    return DT_PARSE_FAIL(parser, parser->at,
                         "'%s' and '%s' have not the same values, of which one is a text, so they "
                         "cannot be compared",
                         parser->names[a->name], parser->names[b->name]);
}

dt_status dt_parse_resolve(struct dt_parser *parser, const struct dt_operand *a,
                           const struct dt_operand *b)
{
    const struct dt_operand *label = a->label >= 0 ? a : b, *name = a->label >= 0 ? b : a;
    struct dt_expr *expr = parser->expr;
    if (label->label < 0)
        return check_words(parser, a, b);
    if (name->name < 0)
        return dt_parse_no_label(parser, label);
    const char *const *labels = expr->categories[name->name].labels;
    const char *text = expr->text + label->start + 1, *of = parser->names[name->name];
    if (labels == NULL)
        return DT_PARSE_FAIL(parser, label->start,
                             "'%.*s' is a text, but the values of '%s' are numbers",
                             (int)label->size, text, of);
    for (int i = 0; i < expr->categories[name->name].count; i++) {
        if (strlen(labels[i]) == label->size && memcmp(labels[i], text, label->size) == 0) {
            expr->ops[label->label].argument = i;
            return DT_OK;
        }
    }
    return DT_PARSE_FAIL(parser, label->start, "'%.*s' is none of the values of '%s'",
                         (int)label->size, text, of);
}
