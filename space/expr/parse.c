/* SPDX-License-Identifier: MIT */
/* Precedence climbing (Richards 1979): one table of operators instead of one function per level. The recursion is
 * bounded by DT_EXPR_LEVELS, so hostile text cannot reach the end of the stack. Comparisons are one level, as in Python:
 * a < b == c is a < b && b == c, so the operations of the operand in the middle are written twice. */
#include "space/expr/parse_int.h"

#include <string.h>

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

/* What people write who know Python or C, and rules do not have. */
static dt_status refuse_rest(struct dt_parser *parser, const char *wanted)
{
    static const char *const words[] = {"if", "is", "for", "lambda", "&", "|", "^", "~", "=", "!"};
    bool python = parser->expr->python;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (dt_parse_is(parser, words[i]))
            return DT_PARSE_FAIL(parser, parser->at,
                                 "'%s' is not read in rules; they have + - * / // %% **, "
                                 "comparisons, in, %s, min, max, abs and range",
                                 words[i], python ? "and, or, not" : "&& || !");
    return dt_parse_unexpected(parser, wanted);
}

static dt_status enter(struct dt_parser *parser, size_t offset)
{
    if (++parser->level > DT_EXPR_LEVELS)
        return DT_PARSE_FAIL(parser, offset, "the rule is nested deeper than %d levels",
                             DT_EXPR_LEVELS);
    return DT_OK;
}

static dt_status expect(struct dt_parser *parser, char c, const char *wanted)
{
    if (*dt_parse_here(parser) != c)
        return refuse_rest(parser, wanted);
    parser->at++;
    return DT_OK;
}

static void result(struct dt_parser *parser, enum dt_kind kind)
{
    parser->last = (struct dt_operand){.kind = kind, .name = -1, .label = -1};
}

/* An operand whose value is computed with: in Python `a and b` is a or b, not a truth. */
static dt_status check_value(struct dt_parser *parser, const struct dt_operand *operand)
{
    DT_TRY(dt_parse_no_text(parser, operand));
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
    return dt_parse_no_text(parser, &parser->last);
}

/* Appends the operations [from, to) once more; returns the distance. */
static dt_status copy(struct dt_parser *parser, int from, int to, int *distance)
{
    *distance = parser->expr->count - from;
    for (int i = from; i < to; i++) {
        struct dt_expr_op op = parser->expr->ops[i];
        bool jumps = op.code == DT_OP_AND || op.code == DT_OP_OR;
        DT_TRY(dt_parse_emit(parser, op.code, (size_t)op.column - 1,
                             op.argument + (jumps ? *distance : 0)));
    }
    return DT_OK;
}

/* min and max of two or more values, which may be in []. */
static dt_status parse_extreme(struct dt_parser *parser, enum dt_expr_code code)
{
    size_t start = parser->at;
    struct dt_operand first;
    DT_TRY(expect(parser, '(', "'('"));
    bool list = *dt_parse_here(parser) == '[';
    parser->at += list;
    DT_TRY(parse_value(parser));
    first = parser->last;
    DT_TRY(check_value(parser, &first));
    DT_TRY(expect(parser, ',', "',' and a second value"));
    for (;;) {
        DT_TRY(parse_value(parser));
        DT_TRY(check_value(parser, &parser->last));
        DT_TRY(dt_parse_emit(parser, code, start, 0));
        first.kind = kind_of(&first, &parser->last);
        if (*dt_parse_here(parser) != ',')
            break;
        parser->at++;
    }
    if (list)
        DT_TRY(expect(parser, ']', "']'"));
    result(parser, first.kind);
    return expect(parser, ')', "')'");
}

/* abs(a) is max(a, -a). */
static dt_status parse_absolute(struct dt_parser *parser)
{
    size_t start = parser->at;
    int from = parser->expr->count, distance;
    DT_TRY(expect(parser, '(', "'('"));
    DT_TRY(parse_value(parser));
    DT_TRY(check_value(parser, &parser->last));
    DT_TRY(copy(parser, from, parser->expr->count, &distance));
    DT_TRY(dt_parse_emit(parser, DT_OP_NEGATE, start, 0));
    DT_TRY(dt_parse_emit(parser, DT_OP_MAX, start, 0));
    result(parser, kind_of(&parser->last, &parser->last));
    return expect(parser, ')', "')'");
}

/* The name of a function is next. */
static bool calls(struct dt_parser *parser, const char *name)
{
    const char *text = dt_parse_here(parser);
    size_t n = strlen(name);
    return dt_parse_is(parser, name) && text[n + strspn(text + n, " \t\r\n")] == '(';
}

static dt_status parse_call(struct dt_parser *parser)
{
    bool absolute = calls(parser, "abs");
    enum dt_expr_code code = dt_parse_is(parser, "min") ? DT_OP_MIN : DT_OP_MAX;
    DT_TRY(enter(parser, parser->at));
    parser->at += 3;
    DT_TRY(absolute ? parse_absolute(parser) : parse_extreme(parser, code));
    parser->level--;
    return DT_OK;
}

static dt_status parse_group(struct dt_parser *parser)
{
    DT_TRY(enter(parser, parser->at));
    parser->at++;
    DT_TRY(parse_binary(parser, OR));
    parser->level--;
    return expect(parser, ')', "')'");
}

static dt_status parse_sign(struct dt_parser *parser, enum dt_expr_code code)
{
    size_t start = parser->at;
    DT_TRY(enter(parser, start));
    parser->at++;
    DT_TRY(parse_unary(parser));
    DT_TRY(check_value(parser, &parser->last));
    result(parser, code == DT_OP_NOT ? DT_KIND_BOOL : kind_of(&parser->last, &parser->last));
    parser->level--;
    return code != DT_OP_NUMBER ? dt_parse_emit(parser, code, start, 0) : DT_OK;
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
    DT_TRY(enter(parser, start));
    parser->at += 2;
    DT_TRY(parse_unary(parser));
    DT_TRY(check_value(parser, &parser->last));
    parser->level--;
    if (parser->last.kind == DT_KIND_REAL && !is_half(&parser->expr->ops[parser->expr->count - 1]))
        return DT_PARSE_FAIL(parser, start,
                             "the exponent of ** is a whole number, or written as a "
                             "half such as 0.5");
    parser->expr->real = true;
    result(parser, kind_of(&left, &parser->last));
    return dt_parse_emit(parser, DT_OP_POWER, start, 0);
}

static dt_status parse_unary(struct dt_parser *parser)
{
    const char *text = dt_parse_here(parser);
    bool python = parser->expr->python;
    if (*text == '-')
        return parse_sign(parser, DT_OP_NEGATE);
    if (*text == '+')
        return parse_sign(parser, DT_OP_NUMBER);
    if (*text == '!' && text[1] != '=' && !python)
        return parse_sign(parser, DT_OP_NOT);
    if (*text == '(')
        DT_TRY(parse_group(parser));
    else if (dt_parse_is(parser, "min") || dt_parse_is(parser, "max") || calls(parser, "abs"))
        DT_TRY(parse_call(parser));
    else
        DT_TRY(dt_parse_leaf(parser));
    return dt_parse_is(parser, "**") ? parse_power(parser) : DT_OK;
}

static const struct infix *next_operator(struct dt_parser *parser)
{
    int other = parser->expr->python ? OURS : PYTHONS;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (operators[i].language != other && dt_parse_is(parser, operators[i].text))
            return &operators[i];
    return NULL;
}

/* The items of `in`, in () or []: at least one. */
static dt_status parse_items(struct dt_parser *parser, size_t start,
                             const struct dt_operand *tested)
{
    int64_t items = 0;
    bool set = parser->expr->python && *dt_parse_here(parser) == '{';
    char close = *dt_parse_here(parser) == '[' ? ']' : set ? '}' : ')';
    if (close == ')' && *dt_parse_here(parser) != '(')
        return dt_parse_unexpected(parser, "'(' and the values after 'in'");
    parser->at++;
    DT_TRY(enter(parser, start));
    do {
        DT_TRY(parse_binary(parser, OR));
        DT_TRY(dt_parse_resolve(parser, tested, &parser->last));
        items++;
        if (*dt_parse_here(parser) != ',')
            break;
        parser->at++;
    } while (*dt_parse_here(parser) != close);
    parser->level--;
    DT_TRY(expect(parser, close, "',' or the end of the values"));
    return dt_parse_emit(parser, DT_OP_IN, start, items);
}

/* && and the operations [from, to) once more; *jump is that of &&. */
static dt_status begin_and(struct dt_parser *parser, size_t start, int from, int to, int *jump)
{
    int distance;
    *jump = parser->expr->count;
    DT_TRY(dt_parse_emit(parser, DT_OP_AND, start, 0));
    return copy(parser, from, to, &distance);
}

/* Compares with the last two values and ends the right side of &&. */
static dt_status end_and(struct dt_parser *parser, size_t start, int jump, enum dt_expr_code code)
{
    DT_TRY(dt_parse_emit(parser, code, start, 0));
    DT_TRY(dt_parse_emit(parser, DT_OP_BOOL, start, 0));
    parser->expr->ops[jump].argument = parser->expr->count;
    return DT_OK;
}

static dt_status parse_bound(struct dt_parser *parser)
{
    (void)dt_parse_here(parser);
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
    if (*dt_parse_here(parser) != ',')
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

/* x in range(first, end, step) is first <= x && x < end && (x - first) % step == 0; the operations from `from` on compute x. */
static dt_status parse_range(struct dt_parser *parser, size_t start, int from,
                             const struct dt_operand *tested)
{
    struct dt_expr *expr = parser->expr;
    int to = expr->count, first, jump, distance;
    int64_t step = 1;
    DT_TRY(dt_parse_no_text(parser, tested));
    DT_TRY(enter(parser, start));
    parser->at += strlen("range");
    DT_TRY(expect(parser, '(', "'('"));
    DT_TRY(parse_bound(parser));
    first = expr->count;
    bool from_0 = *dt_parse_here(parser) != ',';
    DT_TRY(dt_parse_emit(parser, from_0 ? DT_OP_LESS : DT_OP_GREATER_EQUAL, start, 0));
    DT_TRY(begin_and(parser, start, from, to, &jump));
    parser->at += !from_0;
    DT_TRY(from_0 ? dt_parse_emit(parser, DT_OP_NUMBER, start, 0) : parse_bound(parser));
    DT_TRY(end_and(parser, start, jump, from_0 ? DT_OP_GREATER_EQUAL : DT_OP_LESS));
    DT_TRY(parse_step(parser, &step));
    if (step > 1 || expr->real) { /* a fraction is in no range */
        DT_TRY(begin_and(parser, start, from, to, &jump));
        DT_TRY(from_0 ? dt_parse_emit(parser, DT_OP_NUMBER, start, 0)
                      : copy(parser, to, first, &distance));
        DT_TRY(dt_parse_emit(parser, DT_OP_SUBTRACT, start, 0));
        DT_TRY(dt_parse_emit(parser, DT_OP_NUMBER, start, step));
        DT_TRY(dt_parse_emit(parser, DT_OP_MODULO, start, 0));
        DT_TRY(dt_parse_emit(parser, DT_OP_NUMBER, start, 0));
        DT_TRY(end_and(parser, start, jump, DT_OP_EQUAL));
    }
    parser->level--;
    return expect(parser, ')', "the end of the range");
}

/* What follows `in`; the operations from `from` on compute the tested value. */
static dt_status parse_members(struct dt_parser *parser, size_t start, int from,
                               const struct dt_operand *tested)
{
    DT_TRY(calls(parser, "range") ? parse_range(parser, start, from, tested)
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
    DT_TRY(dt_parse_no_text(parser, &left));
    DT_TRY(dt_parse_emit(parser, op->code, start, 0));
    DT_TRY(parse_binary(parser, op->rank + 1));
    DT_TRY(dt_parse_no_text(parser, &parser->last));
    DT_TRY(dt_parse_emit(parser, DT_OP_BOOL, start, 0));
    parser->expr->ops[jump].argument = parser->expr->count;
    bool truth = left.kind == DT_KIND_BOOL && parser->last.kind == DT_KIND_BOOL;
    result(parser, truth ? DT_KIND_BOOL : DT_KIND_EITHER);
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
        DT_TRY(dt_parse_no_text(parser, left));
    if (op->code == DT_OP_IN || op->code == DT_OP_NOT)
        DT_TRY(dt_parse_no_label(parser, left));
    if (left->kind == DT_KIND_EITHER)
        DT_TRY(check_value(parser, left));
    if (op->code == DT_OP_NOT && !dt_parse_is(parser, "in"))
        return dt_parse_unexpected(parser, "'in'");
    parser->at += op->code == DT_OP_NOT ? 2 : 0;
    if (op->code == DT_OP_IN || op->code == DT_OP_NOT) {
        DT_TRY(parse_members(parser, start, from, left));
        return op->code == DT_OP_NOT ? dt_parse_emit(parser, DT_OP_NOT, start, 0) : DT_OK;
    }
    DT_TRY(parse_binary(parser, SUM));
    if (parser->last.kind == DT_KIND_EITHER)
        DT_TRY(check_value(parser, &parser->last));
    if (is_ordering(op->code))
        DT_TRY(dt_parse_no_text(parser, &parser->last));
    else
        DT_TRY(dt_parse_resolve(parser, left, &parser->last));
    return dt_parse_emit(parser, op->code, start, 0);
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
            DT_TRY(dt_parse_emit(parser, DT_OP_BOOL, start, 0));
            expr->ops[jump].argument = expr->count;
        }
        op = next_operator(parser);
        if (op == NULL || op->rank != COMPARE)
            break;
        left = parser->last;
        jump = expr->count;
        DT_TRY(dt_parse_emit(parser, DT_OP_AND, parser->at, 0));
        from = expr->count;
        DT_TRY(copy(parser, middle, end, &distance));
        left.label += left.label >= 0 ? distance : 0;
    }
    result(parser, DT_KIND_BOOL);
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
    result(parser, inexact ? DT_KIND_REAL : kind);
    return dt_parse_emit(parser, code, start, 0);
}

static dt_status parse_not(struct dt_parser *parser)
{
    size_t start = parser->at;
    DT_TRY(enter(parser, start));
    parser->at += 3;
    DT_TRY(parse_binary(parser, NOT));
    DT_TRY(dt_parse_no_text(parser, &parser->last));
    result(parser, DT_KIND_BOOL);
    parser->level--;
    return dt_parse_emit(parser, DT_OP_NOT, start, 0);
}

static dt_status parse_binary(struct dt_parser *parser, enum rank rank)
{
    int from = parser->expr->count;
    if (rank <= NOT && dt_parse_is(parser, "not"))
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
    if (*dt_parse_here(&parser) != '\0')
        return refuse_rest(&parser, "an operator or the end");
    return DT_OK;
}
