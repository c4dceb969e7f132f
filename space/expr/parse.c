/* SPDX-License-Identifier: MIT */
/* Precedence climbing (Richards 1979): one table of operators instead of one function per level.
 * The recursion is bounded by DT_EXPR_LEVELS, so hostile text cannot reach the end of the stack.
 * Comparisons are one level, as in Python: a < b == c is a < b && b == c, so the operations of the
 * operand in the middle are written twice. */
#include "base/json.h"
#include "space/expr/expr_int.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum dt_kind {
    DT_KIND_INTEGER,
    DT_KIND_REAL,
    DT_KIND_BOOL,
    DT_KIND_LABEL,
    DT_KIND_EITHER /* the result of and, or: in Python one of the operands */
};

/* The operand that was read last. */
struct dt_operand {
    enum dt_kind kind;
    int name;  /* the name it consists of, or -1 */
    int label; /* the operation that will hold the label's index, or -1 */
    size_t start, size;
};

struct dt_parser {
    struct dt_expr *expr;
    const char *const *names;
    int name_count;
    size_t at;
    int level;
    struct dt_operand last;
};

#define DT_PARSE_FAIL(parser, offset, ...)                                                         \
    dt_expr_fail((parser)->expr->text, (int)(offset) + 1, __VA_ARGS__)

/* The words of a rule: numbers, names, texts in quotes. A name may have '-' and '.' in it: the
 * longest known name wins. */

static const struct dt_operand plain_operand = {.name = -1, .label = -1};

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

/* The text after blanks. */
static const char *parse_here(struct dt_parser *parser)
{
    while (strchr(" \t\r\n", parser->expr->text[parser->at]) != NULL &&
           parser->expr->text[parser->at] != '\0')
        parser->at++;
    return parser->expr->text + parser->at;
}

/* Letters and digits that the text begins with. */
static size_t parse_word(const char *text)
{
    size_t n = 0;
    while (is_letter(text[n]) || is_digit(text[n]))
        n++;
    return n;
}

static bool parse_is(struct dt_parser *parser, const char *word)
{
    const char *text = parse_here(parser);
    size_t n = strlen(word);
    return strncmp(text, word, n) == 0 && (!is_letter(word[0]) || parse_word(text) == n);
}

/* "found 'x' where <wanted> is expected" */
static dt_status parse_unexpected(struct dt_parser *parser, const char *wanted)
{
    const char *text = parse_here(parser);
    if (*text == '\0')
        return DT_PARSE_FAIL(parser, parser->at, "the rule ends where %s is expected", wanted);
    int n = (int)parse_word(text);
    return DT_PARSE_FAIL(parser, parser->at, "found '%.*s' where %s is expected", n > 0 ? n : 1,
                         text, wanted);
}

static dt_status parse_emit(struct dt_parser *parser, enum dt_expr_code code, size_t offset,
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
    if (parse_word(end) > 0 || *end == '.')
        return DT_PARSE_FAIL(parser, start, "'%.*s' is not a number", (int)(n + parse_word(end)),
                             text);
    if (!(value < 1e300))
        return DT_PARSE_FAIL(parser, start, "%.*s is too large a number", (int)n, text);
    memcpy(&bits, &value, sizeof bits);
    parser->at += n;
    parser->expr->real = true;
    parser->last.kind = DT_KIND_REAL;
    return parse_emit(parser, DT_OP_REAL, start, bits);
}

static dt_status read_number(struct dt_parser *parser)
{
    const char *text = parse_here(parser);
    size_t start = parser->at, n = parse_word(text), digits = strspn(text, "0123456789");
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
    return parse_emit(parser, DT_OP_NUMBER, start, value);
}

static const char *near_name(const struct dt_parser *parser, const char *name)
{
    dt_auto_free const char **known = calloc((size_t)parser->name_count + 1, sizeof *known);
    for (int i = 0; known != NULL && i < parser->name_count; i++)
        known[i] = parser->names[i];
    return known != NULL ? dt_json_nearest(name, known) : NULL;
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

/* The character is of a word or joins words: '-', '.', and blanks beside them
 * if they may be there. */
static bool is_joint(const char *text, size_t at, bool blanks)
{
    static const char joints[] = "-.";
    size_t before = at, after = at + strspn(text + at, " ");
    if (text[at] != ' ' || !blanks)
        return parse_word(text + at) > 0 || (text[at] != '\0' && strchr(joints, text[at]));
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
        if (at != NULL && strlen(known) > n && (at == known || parse_word(at - 1) == 0) &&
            parse_word(at) == n)
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
    size_t start = parser->at, first = start, n = parse_word(text);
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
    while (*end == '.' && parse_word(end + 1) > 0)
        end += 1 + parse_word(end + 1);
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
                   : NULL; /* a known name before an unknown word */
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
        bool known = false; /* the first of the joined words */
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
    const char *text = parse_here(parser);
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
    return parse_emit(parser, DT_OP_NAME, start, name);
}

static dt_status read_label(struct dt_parser *parser)
{
    const char *text = parse_here(parser);
    size_t start = parser->at;
    const char quote[] = {text[0], '\0'};
    size_t n = strcspn(text + 1, quote);
    if (text[1 + n] == '\0')
        return DT_PARSE_FAIL(parser, start, "the text that begins here has no end");
    parser->at += n + 2;
    parser->last = (struct dt_operand){
        .kind = DT_KIND_LABEL, .name = -1, .label = parser->expr->count, .start = start, .size = n};
    return parse_emit(parser, DT_OP_NUMBER, start, 0);
}

/* A leaf: a number, true or false, a name, a text in quotes. */
static dt_status parse_leaf(struct dt_parser *parser)
{
    static const char *const truths[] = {"False", "True", "false", "true"};
    const char *text = parse_here(parser);
    parser->last = plain_operand;
    if (*text == '\'' || *text == '"')
        return read_label(parser);
    if (is_digit(*text) || (*text == '.' && is_digit(text[1])))
        return *text == '.' ? read_real(parser, text) : read_number(parser);
    for (int i = 0; i < (parser->expr->python ? 2 : 4); i++) {
        if (parse_is(parser, truths[i])) {
            size_t start = parser->at;
            parser->at += strlen(truths[i]);
            parser->last.kind = DT_KIND_BOOL;
            return parse_emit(parser, DT_OP_NUMBER, start, i % 2);
        }
    }
    if (!is_letter(*text) || parse_is(parser, "in") || parse_is(parser, "and") ||
        parse_is(parser, "or") || parse_is(parser, "not"))
        return parse_unexpected(parser, "a value");
    return read_name(parser);
}

/* Fails when it is a label. */
static dt_status parse_no_label(struct dt_parser *parser, const struct dt_operand *operand)
{
    if (operand->label < 0)
        return DT_OK;
    return DT_PARSE_FAIL(
        parser, operand->start,
        "a text is only compared with the parameter whose value it is, by ==, != or in");
}

/* Fails when the operand of an operation is a label, or the name of a parameter
 * whose values are texts. */
static dt_status parse_no_text(struct dt_parser *parser, const struct dt_operand *operand)
{
    DT_TRY(parse_no_label(parser, operand));
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
        return parse_no_text(parser, a->name < 0 ? b : a);
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

/* Replaces the label by its index among those of the name it is compared with. */
static dt_status parse_resolve(struct dt_parser *parser, const struct dt_operand *a,
                               const struct dt_operand *b)
{
    const struct dt_operand *label = a->label >= 0 ? a : b, *name = a->label >= 0 ? b : a;
    struct dt_expr *expr = parser->expr;
    if (label->label < 0)
        return check_words(parser, a, b);
    if (name->name < 0)
        return parse_no_label(parser, label);
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

enum rank { OR = 1, AND, NOT, COMPARE, SUM, PRODUCT };

enum { BOTH, OURS, PYTHONS }; /* languages that have the operator */

static const struct infix {
    const char *text;
    enum rank rank; /* higher ones bind tighter */
    enum dt_expr_code code, python;
    int language;
} operators[] = {
    {"||", OR, DT_OP_OR, DT_OP_OR, OURS},
    {"or", OR, DT_OP_OR, DT_OP_OR, BOTH},
    {"&&", AND, DT_OP_AND, DT_OP_AND, OURS},
    {"and", AND, DT_OP_AND, DT_OP_AND, BOTH},
    {"==", COMPARE, DT_OP_EQUAL, DT_OP_EQUAL, BOTH},
    {"!=", COMPARE, DT_OP_UNEQUAL, DT_OP_UNEQUAL, BOTH},
    {"<=", COMPARE, DT_OP_LESS_EQUAL, DT_OP_LESS_EQUAL, BOTH},
    {">=", COMPARE, DT_OP_GREATER_EQUAL, DT_OP_GREATER_EQUAL, BOTH},
    {"<", COMPARE, DT_OP_LESS, DT_OP_LESS, BOTH},
    {">", COMPARE, DT_OP_GREATER, DT_OP_GREATER, BOTH},
    {"in", COMPARE, DT_OP_IN, DT_OP_IN, BOTH},
    {"not", COMPARE, DT_OP_NOT, DT_OP_NOT, BOTH}, /* not in */
    {"+", SUM, DT_OP_ADD, DT_OP_ADD, BOTH},
    {"-", SUM, DT_OP_SUBTRACT, DT_OP_SUBTRACT, BOTH},
    {"*", PRODUCT, DT_OP_MULTIPLY, DT_OP_MULTIPLY, BOTH},
    {"//", PRODUCT, DT_OP_FLOOR, DT_OP_FLOOR, BOTH},
    {"/", PRODUCT, DT_OP_DIVIDE, DT_OP_QUOTIENT, BOTH},
    {"%", PRODUCT, DT_OP_MODULO, DT_OP_FLOOR_MODULO, BOTH},
};

static dt_status parse_binary(struct dt_parser *parser, enum rank rank);
static dt_status parse_unary(struct dt_parser *parser);

/* Refuses operators of Python or C that rules do not have. */
static dt_status refuse_rest(struct dt_parser *parser, const char *wanted)
{
    static const char *const words[] = {"if", "is", "for", "lambda", "&", "|", "^", "~", "=", "!"};
    bool python = parser->expr->python;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (parse_is(parser, words[i]))
            return DT_PARSE_FAIL(parser, parser->at,
                                 "'%s' is not read in rules; they have + - * / // %% **, "
                                 "comparisons, in, %s, min, max, abs and range",
                                 words[i], python ? "and, or, not" : "&& || !");
    return parse_unexpected(parser, wanted);
}

static dt_status enter_nesting(struct dt_parser *parser, size_t offset)
{
    if (++parser->level > DT_EXPR_LEVELS)
        return DT_PARSE_FAIL(parser, offset, "the rule is nested deeper than %d levels",
                             DT_EXPR_LEVELS);
    return DT_OK;
}

static dt_status expect_character(struct dt_parser *parser, char c, const char *wanted)
{
    if (*parse_here(parser) != c)
        return refuse_rest(parser, wanted);
    parser->at++;
    return DT_OK;
}

static void set_result(struct dt_parser *parser, enum dt_kind kind)
{
    parser->last = (struct dt_operand){.kind = kind, .name = -1, .label = -1};
}

/* An operand whose value is computed with: in Python `a and b` is a or b, not a truth. */
static dt_status check_value(struct dt_parser *parser, const struct dt_operand *operand)
{
    DT_TRY(parse_no_text(parser, operand));
    if (operand->kind == DT_KIND_EITHER && parser->expr->python)
        return DT_PARSE_FAIL(parser, parser->at,
                             "the value of 'and' or 'or' is used as a number, which is not read "
                             "here: compare its parts instead");
    return DT_OK;
}

static enum dt_kind kind_of(const struct dt_operand *a, const struct dt_operand *b)
{
    return a->kind == DT_KIND_REAL || b->kind == DT_KIND_REAL ? DT_KIND_REAL : DT_KIND_INTEGER;
}

static dt_status parse_value(struct dt_parser *parser)
{
    DT_TRY(parse_binary(parser, OR));
    return parse_no_text(parser, &parser->last);
}

/* Appends the operations [from, to) once more; returns the distance. */
static dt_status copy_steps(struct dt_parser *parser, int from, int to, int *distance)
{
    *distance = parser->expr->count - from;
    for (int i = from; i < to; i++) {
        struct dt_expr_op op = parser->expr->ops[i];
        bool jumps = op.code == DT_OP_AND || op.code == DT_OP_OR;
        DT_TRY(parse_emit(parser, op.code, (size_t)op.column - 1,
                          op.argument + (jumps ? *distance : 0)));
    }
    return DT_OK;
}

/* min and max of two or more values, which may be in []. */
static dt_status parse_extreme(struct dt_parser *parser, enum dt_expr_code code)
{
    size_t start = parser->at;
    struct dt_operand first;
    DT_TRY(expect_character(parser, '(', "'('"));
    bool list = *parse_here(parser) == '[';
    parser->at += list;
    DT_TRY(parse_value(parser));
    first = parser->last;
    DT_TRY(check_value(parser, &first));
    DT_TRY(expect_character(parser, ',', "',' and a second value"));
    for (;;) {
        DT_TRY(parse_value(parser));
        DT_TRY(check_value(parser, &parser->last));
        DT_TRY(parse_emit(parser, code, start, 0));
        first.kind = kind_of(&first, &parser->last);
        if (*parse_here(parser) != ',')
            break;
        parser->at++;
    }
    if (list)
        DT_TRY(expect_character(parser, ']', "']'"));
    set_result(parser, first.kind);
    return expect_character(parser, ')', "')'");
}

/* abs(a) is max(a, -a). */
static dt_status parse_absolute(struct dt_parser *parser)
{
    size_t start = parser->at;
    int from = parser->expr->count, distance;
    DT_TRY(expect_character(parser, '(', "'('"));
    DT_TRY(parse_value(parser));
    DT_TRY(check_value(parser, &parser->last));
    DT_TRY(copy_steps(parser, from, parser->expr->count, &distance));
    DT_TRY(parse_emit(parser, DT_OP_NEGATE, start, 0));
    DT_TRY(parse_emit(parser, DT_OP_MAX, start, 0));
    set_result(parser, kind_of(&parser->last, &parser->last));
    return expect_character(parser, ')', "')'");
}

/* The name of a function is next. */
static bool calls_function(struct dt_parser *parser, const char *name)
{
    const char *text = parse_here(parser);
    size_t n = strlen(name);
    return parse_is(parser, name) && text[n + strspn(text + n, " \t\r\n")] == '(';
}

static dt_status parse_call(struct dt_parser *parser)
{
    bool absolute = calls_function(parser, "abs");
    enum dt_expr_code code = parse_is(parser, "min") ? DT_OP_MIN : DT_OP_MAX;
    DT_TRY(enter_nesting(parser, parser->at));
    parser->at += 3;
    DT_TRY(absolute ? parse_absolute(parser) : parse_extreme(parser, code));
    parser->level--;
    return DT_OK;
}

static dt_status parse_group(struct dt_parser *parser)
{
    DT_TRY(enter_nesting(parser, parser->at));
    parser->at++;
    DT_TRY(parse_binary(parser, OR));
    parser->level--;
    return expect_character(parser, ')', "')'");
}

static dt_status parse_sign(struct dt_parser *parser, enum dt_expr_code code)
{
    size_t start = parser->at;
    DT_TRY(enter_nesting(parser, start));
    parser->at++;
    DT_TRY(parse_unary(parser));
    DT_TRY(check_value(parser, &parser->last));
    set_result(parser, code == DT_OP_NOT ? DT_KIND_BOOL : kind_of(&parser->last, &parser->last));
    parser->level--;
    return code != DT_OP_NUMBER ? parse_emit(parser, code, start, 0) : DT_OK;
}

static bool is_half(const struct dt_expr_op *op)
{
    double value = 0;
    if (op->code == DT_OP_REAL)
        memcpy(&value, &op->argument, sizeof value);
    return op->code == DT_OP_REAL && value < 1000 && 2 * value == (double)(int)(2 * value);
}

/* a ** b, from the right; it binds tighter than a sign before it: -2 ** 2 is -4. */
static dt_status parse_power(struct dt_parser *parser)
{
    struct dt_operand left = parser->last;
    size_t start = parser->at;
    DT_TRY(check_value(parser, &left));
    DT_TRY(enter_nesting(parser, start));
    parser->at += 2;
    DT_TRY(parse_unary(parser));
    DT_TRY(check_value(parser, &parser->last));
    parser->level--;
    if (parser->last.kind == DT_KIND_REAL && !is_half(&parser->expr->ops[parser->expr->count - 1]))
        return DT_PARSE_FAIL(parser, start,
                             "the exponent of ** is a whole number, or written as a "
                             "half such as 0.5");
    parser->expr->real = true;
    set_result(parser, kind_of(&left, &parser->last));
    return parse_emit(parser, DT_OP_POWER, start, 0);
}

static dt_status parse_unary(struct dt_parser *parser)
{
    const char *text = parse_here(parser);
    bool python = parser->expr->python;
    if (*text == '-')
        return parse_sign(parser, DT_OP_NEGATE);
    if (*text == '+')
        return parse_sign(parser, DT_OP_NUMBER);
    if (*text == '!' && text[1] != '=' && !python)
        return parse_sign(parser, DT_OP_NOT);
    if (*text == '(')
        DT_TRY(parse_group(parser));
    else if (parse_is(parser, "min") || parse_is(parser, "max") || calls_function(parser, "abs"))
        DT_TRY(parse_call(parser));
    else
        DT_TRY(parse_leaf(parser));
    return parse_is(parser, "**") ? parse_power(parser) : DT_OK;
}

static const struct infix *next_operator(struct dt_parser *parser)
{
    int other = parser->expr->python ? OURS : PYTHONS;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (operators[i].language != other && parse_is(parser, operators[i].text))
            return &operators[i];
    return NULL;
}

/* The items of `in`, in () or []: at least one. */
static dt_status parse_items(struct dt_parser *parser, size_t start,
                             const struct dt_operand *tested)
{
    int64_t items = 0;
    bool set = parser->expr->python && *parse_here(parser) == '{';
    char close = *parse_here(parser) == '[' ? ']' : set ? '}' : ')';
    if (close == ')' && *parse_here(parser) != '(')
        return parse_unexpected(parser, "'(' and the values after 'in'");
    parser->at++;
    DT_TRY(enter_nesting(parser, start));
    do {
        DT_TRY(parse_binary(parser, OR));
        DT_TRY(parse_resolve(parser, tested, &parser->last));
        items++;
        if (*parse_here(parser) != ',')
            break;
        parser->at++;
    } while (*parse_here(parser) != close);
    parser->level--;
    DT_TRY(expect_character(parser, close, "',' or the end of the values"));
    return parse_emit(parser, DT_OP_IN, start, items);
}

/* && and the operations [from, to) once more; *jump is that of &&. */
static dt_status begin_and(struct dt_parser *parser, size_t start, int from, int to, int *jump)
{
    int distance;
    *jump = parser->expr->count;
    DT_TRY(parse_emit(parser, DT_OP_AND, start, 0));
    return copy_steps(parser, from, to, &distance);
}

/* Compares with the last two values and ends the right side of &&. */
static dt_status end_and(struct dt_parser *parser, size_t start, int jump, enum dt_expr_code code)
{
    DT_TRY(parse_emit(parser, code, start, 0));
    DT_TRY(parse_emit(parser, DT_OP_BOOL, start, 0));
    parser->expr->ops[jump].argument = parser->expr->count;
    return DT_OK;
}

static dt_status parse_bound(struct dt_parser *parser)
{
    (void)parse_here(parser);
    size_t start = parser->at;
    DT_TRY(parse_value(parser));
    DT_TRY(check_value(parser, &parser->last));
    return parser->last.kind != DT_KIND_REAL
               ? DT_OK
               : DT_PARSE_FAIL(parser, start, "range has whole numbers only");
}

/* *step: what is written behind a comma, else 1. */
static dt_status parse_step(struct dt_parser *parser, int64_t *step)
{
    struct dt_expr *expr = parser->expr;
    int at = expr->count;
    *step = 1;
    if (*parse_here(parser) != ',')
        return DT_OK;
    parser->at++;
    DT_TRY(parse_bound(parser));
    if (expr->count != at + 1 || expr->ops[at].code != DT_OP_NUMBER || expr->ops[at].argument < 1)
        return DT_PARSE_FAIL(parser, (size_t)expr->ops[at].column - 1,
                             "the step of range is written as a whole number above 0");
    *step = expr->ops[at].argument;
    expr->count = at;
    return DT_OK;
}

/* x in range(first, end, step) is first <= x && x < end && (x - first) % step == 0; the operations
 * from `from` on compute x. */
static dt_status parse_range(struct dt_parser *parser, size_t start, int from,
                             const struct dt_operand *tested)
{
    struct dt_expr *expr = parser->expr;
    int to = expr->count, first, jump, distance;
    int64_t step = 1;
    DT_TRY(parse_no_text(parser, tested));
    DT_TRY(enter_nesting(parser, start));
    parser->at += strlen("range");
    DT_TRY(expect_character(parser, '(', "'('"));
    DT_TRY(parse_bound(parser));
    first = expr->count;
    bool from_0 = *parse_here(parser) != ',';
    DT_TRY(parse_emit(parser, from_0 ? DT_OP_LESS : DT_OP_GREATER_EQUAL, start, 0));
    DT_TRY(begin_and(parser, start, from, to, &jump));
    parser->at += !from_0;
    DT_TRY(from_0 ? parse_emit(parser, DT_OP_NUMBER, start, 0) : parse_bound(parser));
    DT_TRY(end_and(parser, start, jump, from_0 ? DT_OP_GREATER_EQUAL : DT_OP_LESS));
    DT_TRY(parse_step(parser, &step));
    if (step > 1 || expr->real) { /* a fraction is in no range */
        DT_TRY(begin_and(parser, start, from, to, &jump));
        DT_TRY(from_0 ? parse_emit(parser, DT_OP_NUMBER, start, 0)
                      : copy_steps(parser, to, first, &distance));
        DT_TRY(parse_emit(parser, DT_OP_SUBTRACT, start, 0));
        DT_TRY(parse_emit(parser, DT_OP_NUMBER, start, step));
        DT_TRY(parse_emit(parser, DT_OP_MODULO, start, 0));
        DT_TRY(parse_emit(parser, DT_OP_NUMBER, start, 0));
        DT_TRY(end_and(parser, start, jump, DT_OP_EQUAL));
    }
    parser->level--;
    return expect_character(parser, ')', "the end of the range");
}

/* Parses the values after `in`; the operations from `from` on compute the tested value. */
static dt_status parse_members(struct dt_parser *parser, size_t start, int from,
                               const struct dt_operand *tested)
{
    DT_TRY(calls_function(parser, "range") ? parse_range(parser, start, from, tested)
                                           : parse_items(parser, start, tested));
    const struct infix *next = next_operator(parser);
    if (next != NULL && next->rank == COMPARE)
        return DT_PARSE_FAIL(parser, parser->at,
                             "a comparison follows the values of 'in': put (.. in (..)) in "
                             "parentheses");
    return DT_OK;
}

/* && and || jump over their right side; the target is known after compiling it. */
static dt_status parse_lazy(struct dt_parser *parser, const struct infix *op, size_t start)
{
    int jump = parser->expr->count;
    struct dt_operand left = parser->last;
    DT_TRY(parse_no_text(parser, &left));
    DT_TRY(parse_emit(parser, op->code, start, 0));
    DT_TRY(parse_binary(parser, op->rank + 1));
    DT_TRY(parse_no_text(parser, &parser->last));
    DT_TRY(parse_emit(parser, DT_OP_BOOL, start, 0));
    parser->expr->ops[jump].argument = parser->expr->count;
    bool truth = left.kind == DT_KIND_BOOL && parser->last.kind == DT_KIND_BOOL;
    set_result(parser, truth ? DT_KIND_BOOL : DT_KIND_EITHER);
    return DT_OK;
}

static bool is_ordering(enum dt_expr_code code)
{
    return code != DT_OP_EQUAL && code != DT_OP_UNEQUAL && code != DT_OP_IN && code != DT_OP_NOT;
}

/* One comparison: the operator is next, left was read, by the operations from `from` on. */
static dt_status parse_comparison(struct dt_parser *parser, const struct infix *op, int from,
                                  const struct dt_operand *left)
{
    size_t start = parser->at;
    parser->at += strlen(op->text);
    if (is_ordering(op->code))
        DT_TRY(parse_no_text(parser, left));
    if (op->code == DT_OP_IN || op->code == DT_OP_NOT)
        DT_TRY(parse_no_label(parser, left));
    if (left->kind == DT_KIND_EITHER)
        DT_TRY(check_value(parser, left));
    if (op->code == DT_OP_NOT && !parse_is(parser, "in"))
        return parse_unexpected(parser, "'in'");
    parser->at += op->code == DT_OP_NOT ? 2 : 0;
    if (op->code == DT_OP_IN || op->code == DT_OP_NOT) {
        DT_TRY(parse_members(parser, start, from, left));
        return op->code == DT_OP_NOT ? parse_emit(parser, DT_OP_NOT, start, 0) : DT_OK;
    }
    DT_TRY(parse_binary(parser, SUM));
    if (parser->last.kind == DT_KIND_EITHER)
        DT_TRY(check_value(parser, &parser->last));
    if (is_ordering(op->code))
        DT_TRY(parse_no_text(parser, &parser->last));
    else
        DT_TRY(parse_resolve(parser, left, &parser->last));
    return parse_emit(parser, op->code, start, 0);
}

/* a < b < c: [a][b] < && [b][c] <. The first operand is read, by the operations from `from` on. */
static dt_status parse_chain(struct dt_parser *parser, int from)
{
    struct dt_operand left = parser->last;
    struct dt_expr *expr = parser->expr;
    int jump = -1;
    for (const struct infix *op; (op = next_operator(parser)) != NULL && op->rank == COMPARE;) {
        size_t start = parser->at;
        int middle = expr->count, distance = 0;
        DT_TRY(parse_comparison(parser, op, from, &left));
        int end = expr->count - 1;
        if (jump >= 0) {
            DT_TRY(parse_emit(parser, DT_OP_BOOL, start, 0));
            expr->ops[jump].argument = expr->count;
        }
        op = next_operator(parser);
        if (op == NULL || op->rank != COMPARE)
            break;
        left = parser->last;
        jump = expr->count;
        DT_TRY(parse_emit(parser, DT_OP_AND, parser->at, 0));
        from = expr->count;
        DT_TRY(copy_steps(parser, middle, end, &distance));
        left.label += left.label >= 0 ? distance : 0;
    }
    set_result(parser, DT_KIND_BOOL);
    return DT_OK;
}

static dt_status parse_arithmetic(struct dt_parser *parser, const struct infix *op, size_t start)
{
    struct dt_operand left = parser->last;
    enum dt_expr_code code = parser->expr->python ? op->python : op->code;
    DT_TRY(check_value(parser, &left));
    DT_TRY(parse_binary(parser, op->rank + 1));
    DT_TRY(check_value(parser, &parser->last));
    enum dt_kind kind = kind_of(&left, &parser->last);
    if (code == DT_OP_DIVIDE && kind == DT_KIND_REAL)
        code = DT_OP_QUOTIENT;
    bool inexact = code == DT_OP_QUOTIENT;
    parser->expr->real = parser->expr->real || inexact;
    set_result(parser, inexact ? DT_KIND_REAL : kind);
    return parse_emit(parser, code, start, 0);
}

static dt_status parse_not(struct dt_parser *parser)
{
    size_t start = parser->at;
    DT_TRY(enter_nesting(parser, start));
    parser->at += 3;
    DT_TRY(parse_binary(parser, NOT));
    DT_TRY(parse_no_text(parser, &parser->last));
    set_result(parser, DT_KIND_BOOL);
    parser->level--;
    return parse_emit(parser, DT_OP_NOT, start, 0);
}

static dt_status parse_binary(struct dt_parser *parser, enum rank rank)
{
    int from = parser->expr->count;
    if (rank <= NOT && parse_is(parser, "not"))
        DT_TRY(parse_not(parser));
    else
        DT_TRY(parse_unary(parser));
    for (;;) {
        const struct infix *op = next_operator(parser);
        size_t start = parser->at;
        if (op == NULL || op->rank < rank)
            return DT_OK;
        if (op->rank == COMPARE) {
            DT_TRY(parse_chain(parser, from));
            continue;
        }
        parser->at += strlen(op->text);
        if (op->rank < COMPARE)
            DT_TRY(parse_lazy(parser, op, start));
        else
            DT_TRY(parse_arithmetic(parser, op, start));
    }
}

dt_status dt_expr_parse(struct dt_expr *expr, const struct dt_vocabulary *words)
{
    struct dt_parser parser = {.expr = expr, .names = words->names, .name_count = words->count};
    DT_TRY(parse_value(&parser));
    if (*parse_here(&parser) != '\0')
        return refuse_rest(&parser, "an operator or the end");
    return DT_OK;
}
