/* SPDX-License-Identifier: MIT */
/* Precedence climbing (Richards 1979): one table of operators instead of one function per level. The recursion is
 * bounded by DT_EXPR_LEVELS, so hostile text cannot reach the end of the stack. */
#include "space/expr/expr_int.h"

#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A side of a comparison, for comparisons with labels. */
struct operand {
    int name;  /* the name it consists of, or -1 */
    int label; /* the operation that will hold the label's index, or -1 */
    size_t start, size;
};
static const struct operand other = {.name = -1, .label = -1};

struct parser {
    struct dt_expr *expr;
    const char *const *names;
    int name_count;
    size_t at;
    int level;
    struct operand last; /* the operand read last */
};

static const struct infix {
    const char *text;
    int rank; /* higher ones bind tighter */
    enum dt_expr_code code;
} operators[] = {
    {"||", 1, DT_OP_OR},      {"&&", 2, DT_OP_AND},        {"==", 3, DT_OP_EQUAL},
    {"!=", 3, DT_OP_UNEQUAL}, {"<=", 4, DT_OP_LESS_EQUAL}, {">=", 4, DT_OP_GREATER_EQUAL},
    {"<", 4, DT_OP_LESS},     {">", 4, DT_OP_GREATER},     {"in", 4, DT_OP_IN},
    {"+", 5, DT_OP_ADD},      {"-", 5, DT_OP_SUBTRACT},    {"*", 6, DT_OP_MULTIPLY},
    {"/", 6, DT_OP_DIVIDE},   {"%", 6, DT_OP_MODULO},
};

static dt_status parse_binary(struct parser *parser, int rank);

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

#define FAIL(parser, offset, ...) dt_expr_fail((parser)->expr->text, (int)(offset) + 1, __VA_ARGS__)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static const char *here(struct parser *parser)
{
    while (strchr(" \t\r\n", parser->expr->text[parser->at]) != NULL &&
           parser->expr->text[parser->at] != '\0')
        parser->at++;
    return parser->expr->text + parser->at;
}

static size_t word(const char *text)
{
    size_t n = 0;
    while (is_letter(text[n]) || is_digit(text[n]))
        n++;
    return n;
}

/* The text at the offset, for an error message. */
static dt_status unexpected(struct parser *parser, const char *wanted)
{
    const char *text = here(parser);
    if (*text == '\0')
        return FAIL(parser, parser->at, "the rule ends where %s is expected", wanted);
    int n = (int)word(text);
    return FAIL(parser, parser->at, "found '%.*s' where %s is expected", n > 0 ? n : 1, text,
                wanted);
}

static dt_status emit(struct parser *parser, enum dt_expr_code code, size_t offset,
                      int64_t argument)
{
    struct dt_expr *expr = parser->expr;
    if (expr->count == DT_EXPR_OPS)
        return FAIL(parser, offset, "the rule has more than %d operations", DT_EXPR_OPS);
    expr->ops[expr->count++] =
        (struct dt_expr_op){.code = code, .column = (int)offset + 1, .argument = argument};
    return DT_OK;
}

static dt_status enter(struct parser *parser, size_t offset)
{
    if (++parser->level > DT_EXPR_LEVELS)
        return FAIL(parser, offset, "the rule is nested deeper than %d levels", DT_EXPR_LEVELS);
    return DT_OK;
}

static dt_status expect(struct parser *parser, char c, const char *wanted)
{
    if (*here(parser) != c)
        return unexpected(parser, wanted);
    parser->at++;
    return DT_OK;
}

static dt_status parse_number(struct parser *parser)
{
    const char *text = here(parser);
    size_t start = parser->at, n = word(text);
    int64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(text[i]))
            return FAIL(parser, start, "'%.*s' is not an integer", (int)n, text);
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text[i] - '0', &value))
            return FAIL(parser, start, "%.*s is larger than the largest integer, %lld", (int)n,
                        text, (long long)INT64_MAX);
    }
    if (n > 1 && text[0] == '0')
        return FAIL(parser, start, "%.*s begins with a zero, numbers are decimal here", (int)n,
                    text);
    parser->at += n;
    return emit(parser, DT_OP_NUMBER, start, value);
}

static dt_status unknown_name(struct parser *parser, size_t start, const char *name)
{
    for (int i = 0; i < parser->name_count; i++)
        for (int k = 0; k < parser->expr->categories[i].count; k++)
            if (parser->expr->categories[i].labels != NULL &&
                strcmp(parser->expr->categories[i].labels[k], name) == 0)
                return FAIL(parser, start, "unknown name '%s': a value of '%s' is written \"%s\"",
                            name, parser->names[i], name);
    const char **known = calloc((size_t)parser->name_count + 1, sizeof *known);
    if (known == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading a rule");
    for (int i = 0; i < parser->name_count; i++)
        known[i] = parser->names[i];
    const char *near = dt_json_nearest(name, known);
    free(known);
    if (near != NULL)
        return FAIL(parser, start, "unknown name '%s', did you mean '%s'?", name, near);
    return FAIL(parser, start, "unknown name '%s'", name);
}

static dt_status parse_name(struct parser *parser)
{
    char name[64];
    const char *text = here(parser);
    size_t start = parser->at, n = word(text);
    if (n >= sizeof name)
        return FAIL(parser, start, "a name of %zu bytes is too long", n);
    memcpy(name, text, n);
    name[n] = '\0';
    parser->at += n;
    for (int i = 0; i < parser->name_count; i++) {
        if (strcmp(parser->names[i], name) == 0) {
            parser->expr->names.bits[i / 64] |= UINT64_C(1) << (i % 64);
            parser->last.name = i;
            return emit(parser, DT_OP_NAME, start, i);
        }
    }
    return unknown_name(parser, start, name);
}

/* Fails when the operand of an operation is a label. */
static dt_status no_label(struct parser *parser, const struct operand *operand)
{
    if (operand->label < 0)
        return DT_OK;
    return FAIL(parser, operand->start,
                "a text is only compared with the parameter whose value it is, by ==, != or in");
}

static dt_status parse_value(struct parser *parser)
{
    DT_TRY(parse_binary(parser, 1));
    DT_TRY(no_label(parser, &parser->last));
    parser->last = other;
    return DT_OK;
}

static dt_status parse_label(struct parser *parser)
{
    const char *text = here(parser);
    size_t start = parser->at;
    const char quote[] = {text[0], '\0'};
    size_t n = strcspn(text + 1, quote);
    if (text[1 + n] == '\0')
        return FAIL(parser, start, "the text that begins here has no end");
    parser->at += n + 2;
    parser->last =
        (struct operand){.name = -1, .label = parser->expr->count, .start = start, .size = n};
    return emit(parser, DT_OP_NUMBER, start, 0);
}

/* Replaces the label by its index among those of the name it is compared with. */
static dt_status resolve(struct parser *parser, const struct operand *a, const struct operand *b)
{
    const struct operand *label = a->label >= 0 ? a : b, *name = a->label >= 0 ? b : a;
    struct dt_expr *expr = parser->expr;
    if (label->label < 0)
        return DT_OK;
    if (name->name < 0)
        return no_label(parser, label);
    const char *const *labels = expr->categories[name->name].labels;
    const char *text = expr->text + label->start + 1, *of = parser->names[name->name];
    if (labels == NULL)
        return FAIL(parser, label->start, "'%.*s' is a text, but the values of '%s' are numbers",
                    (int)label->size, text, of);
    for (int i = 0; i < expr->categories[name->name].count; i++) {
        if (strlen(labels[i]) == label->size && memcmp(labels[i], text, label->size) == 0) {
            expr->ops[label->label].argument = i;
            return DT_OK;
        }
    }
    return FAIL(parser, label->start, "'%.*s' is none of the values of '%s'", (int)label->size,
                text, of);
}

static dt_status parse_pair(struct parser *parser, enum dt_expr_code code)
{
    size_t start = parser->at;
    parser->at += 3;
    DT_TRY(expect(parser, '(', "'('"));
    DT_TRY(enter(parser, start));
    DT_TRY(parse_value(parser));
    DT_TRY(expect(parser, ',', "',' and a second value"));
    DT_TRY(parse_value(parser));
    DT_TRY(expect(parser, ')', "')'"));
    parser->level--;
    return emit(parser, code, start, 0);
}

static dt_status parse_group(struct parser *parser)
{
    DT_TRY(enter(parser, parser->at));
    parser->at++;
    DT_TRY(parse_binary(parser, 1));
    parser->level--;
    return expect(parser, ')', "')'");
}

static dt_status parse_unary(struct parser *parser)
{
    const char *text = here(parser);
    size_t start = parser->at, n = word(text);
    parser->last = other;
    if (*text == '\'' || *text == '"')
        return parse_label(parser);
    if (*text == '-' || (*text == '!' && text[1] != '=')) {
        DT_TRY(enter(parser, start));
        parser->at++;
        DT_TRY(parse_unary(parser));
        DT_TRY(no_label(parser, &parser->last));
        parser->last = other;
        parser->level--;
        return emit(parser, *text == '-' ? DT_OP_NEGATE : DT_OP_NOT, start, 0);
    }
    if (*text == '(')
        return parse_group(parser);
    if (is_digit(*text))
        return parse_number(parser);
    if (n == 3 && strncmp(text, "min", 3) == 0)
        return parse_pair(parser, DT_OP_MIN);
    if (n == 3 && strncmp(text, "max", 3) == 0)
        return parse_pair(parser, DT_OP_MAX);
    if (n == 0 || (n == 2 && strncmp(text, "in", 2) == 0))
        return unexpected(parser, "a value");
    return parse_name(parser);
}

static const struct infix *next_operator(struct parser *parser)
{
    const char *text = here(parser);
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        size_t n = strlen(operators[i].text);
        if (is_letter(operators[i].text[0]) && word(text) != n)
            continue;
        if (strncmp(text, operators[i].text, n) == 0)
            return &operators[i];
    }
    return NULL;
}

/* The items of `in`: at least one. */
static dt_status parse_items(struct parser *parser, size_t start, const struct operand *tested)
{
    int64_t items = 0;
    DT_TRY(expect(parser, '(', "'(' and the values after 'in'"));
    DT_TRY(enter(parser, start));
    for (;;) {
        DT_TRY(parse_binary(parser, 1));
        DT_TRY(resolve(parser, tested, &parser->last));
        items++;
        if (*here(parser) != ',')
            break;
        parser->at++;
    }
    parser->level--;
    DT_TRY(expect(parser, ')', "',' or ')'"));
    return emit(parser, DT_OP_IN, start, items);
}

/* && and || jump over their right side; the target is known after compiling it. */
static dt_status parse_lazy(struct parser *parser, const struct infix *op, size_t start)
{
    int jump = parser->expr->count;
    DT_TRY(emit(parser, op->code, start, 0));
    DT_TRY(parse_binary(parser, op->rank + 1));
    DT_TRY(no_label(parser, &parser->last));
    DT_TRY(emit(parser, DT_OP_BOOL, start, 0));
    parser->expr->ops[jump].argument = parser->expr->count;
    return DT_OK;
}

static dt_status parse_plain(struct parser *parser, const struct infix *op, size_t start,
                             const struct operand *left)
{
    DT_TRY(parse_binary(parser, op->rank + 1));
    if (op->code == DT_OP_EQUAL || op->code == DT_OP_UNEQUAL)
        DT_TRY(resolve(parser, left, &parser->last));
    else
        DT_TRY(no_label(parser, &parser->last));
    return emit(parser, op->code, start, 0);
}

static dt_status parse_binary(struct parser *parser, int rank)
{
    DT_TRY(parse_unary(parser));
    for (;;) {
        const struct infix *op = next_operator(parser);
        if (op == NULL || op->rank < rank)
            return DT_OK;
        struct operand left = parser->last;
        size_t start = parser->at;
        parser->at += strlen(op->text);
        if (op->code != DT_OP_EQUAL && op->code != DT_OP_UNEQUAL)
            DT_TRY(no_label(parser, &left));
        if (op->code == DT_OP_IN)
            DT_TRY(parse_items(parser, start, &left));
        else if (op->code == DT_OP_AND || op->code == DT_OP_OR)
            DT_TRY(parse_lazy(parser, op, start));
        else
            DT_TRY(parse_plain(parser, op, start, &left));
        parser->last = other;
    }
}

dt_status dt_expr_parse(struct dt_expr *expr, const struct dt_vocabulary *words)
{
    struct parser parser = {.expr = expr, .names = words->names, .name_count = words->count};
    DT_TRY(parse_value(&parser));
    if (*here(&parser) != '\0')
        return unexpected(&parser, "an operator or the end");
    return DT_OK;
}
