/* SPDX-License-Identifier: MIT */
/* A stack machine: a rule is decided millions of times while a space is enumerated, and a flat array of operations is
 * fast enough and needs no free. */
#include "space/expr/decimal.h"
#include "space/expr/expr_int.h"

#include <stdlib.h>
#include <string.h>

dt_status dt_expr_new(const char *text, const char *const names[], int n, struct dt_expr **out)
{
    const struct dt_vocabulary words = {.names = names, .count = n};
    return dt_expr_new_of(text, &words, out);
}

dt_status dt_expr_new_of(const char *text, const struct dt_vocabulary *words, struct dt_expr **out)
{
    if (words->count > DT_EXPR_NAMES)
        return dt_fail(DT_EUSAGE, "%d names are more than the %d a rule can use", words->count,
                       DT_EXPR_NAMES);
    if (strlen(text) > DT_EXPR_BYTES)
        return dt_fail(DT_EUSAGE, "rule '%.40s...' has %zu bytes, more than the %d allowed", text,
                       strlen(text), DT_EXPR_BYTES);
    struct dt_expr *expr = calloc(1, sizeof *expr);
    if (expr == NULL || (expr->text = strdup(text)) == NULL) {
        free(expr);
        return dt_fail(DT_ENOMEM, "out of memory while reading a rule");
    }
    expr->python = words->python;
    for (int i = 0; i < words->count; i++) {
        expr->categories[i].size = (int)strlen(words->names[i]);
        expr->categories[i].digits = words->digits != NULL ? words->digits[i] : 0;
        if (words->labels != NULL) {
            expr->categories[i].labels = words->labels[i];
            expr->categories[i].count = words->counts[i];
        }
    }
    dt_status status = dt_expr_parse(expr, words);
    if (status != DT_OK) {
        dt_expr_free(expr);
        return status;
    }
    *out = expr;
    return DT_OK;
}

void dt_expr_free(struct dt_expr *expr)
{
    if (expr == NULL)
        return;
    free(expr->text);
    free(expr);
}

struct dt_names dt_expr_names(const struct dt_expr *expr)
{
    return expr->names;
}

const char *dt_expr_text(const struct dt_expr *expr)
{
    return expr->text;
}

static int64_t rounded_down(enum dt_expr_code code, int64_t a, int64_t b)
{
    bool between = a % b != 0 && (a < 0) != (b < 0);
    return code == DT_OP_FLOOR ? a / b - between : a % b + (between ? b : 0);
}

/* false on overflow or division by zero. */
static bool arithmetic(enum dt_expr_code code, int64_t a, int64_t b, int64_t *out)
{
    switch (code) {
    case DT_OP_ADD:
        return !__builtin_add_overflow(a, b, out);
    case DT_OP_SUBTRACT:
        return !__builtin_sub_overflow(a, b, out);
    case DT_OP_MULTIPLY:
        return !__builtin_mul_overflow(a, b, out);
    default:
        /* C leaves INT64_MIN % -1 undefined, as the quotient overflows. */
        if (b == 0 || (a == INT64_MIN && b == -1))
            return false;
        *out = code == DT_OP_DIVIDE   ? a / b
               : code == DT_OP_MODULO ? a % b
                                      : rounded_down(code, a, b);
        return true;
    }
}

static int64_t compare(enum dt_expr_code code, int64_t a, int64_t b)
{
    switch (code) {
    case DT_OP_EQUAL:
        return a == b;
    case DT_OP_UNEQUAL:
        return a != b;
    case DT_OP_LESS:
        return a < b;
    case DT_OP_LESS_EQUAL:
        return a <= b;
    case DT_OP_GREATER:
        return a > b;
    case DT_OP_GREATER_EQUAL:
        return a >= b;
    case DT_OP_MIN:
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

bool dt_expr_apply(enum dt_expr_code code, int64_t a, int64_t b, int64_t *out)
{
    switch (code) {
    case DT_OP_ADD:
    case DT_OP_SUBTRACT:
    case DT_OP_MULTIPLY:
    case DT_OP_DIVIDE:
    case DT_OP_MODULO:
    case DT_OP_FLOOR:
    case DT_OP_FLOOR_MODULO:
        return arithmetic(code, a, b, out);
    case DT_OP_NEGATE:
        return arithmetic(DT_OP_SUBTRACT, 0, a, out);
    case DT_OP_NOT:
        *out = a == 0;
        return true;
    case DT_OP_BOOL:
        *out = a != 0;
        return true;
    case DT_OP_AND:
        *out = a != 0 && b != 0;
        return true;
    case DT_OP_OR:
        *out = a != 0 || b != 0;
        return true;
    default:
        *out = compare(code, a, b);
        return true;
    }
}

static dt_status undefined(const struct dt_expr *expr, const struct dt_expr_op *op, int64_t divisor)
{
    if (op->code >= DT_OP_DIVIDE && op->code <= DT_OP_FLOOR_MODULO && divisor == 0)
        return dt_expr_fail(expr->text, op->column, "division by zero");
    return dt_expr_fail(expr->text, op->column, "the result does not fit 64 bits");
}

static int64_t one_of(const int64_t *tested, int64_t n)
{
    for (int64_t i = 1; i <= n; i++)
        if (tested[i] == tested[0])
            return 1;
    return 0;
}

static dt_status eval_real(const struct dt_expr *expr, const int64_t values[], int64_t *result)
{
    struct dt_number number;
    DT_TRY(dt_expr_number(expr, values, &number));
    *result = number.real ? number.value != 0 : number.integer;
    return DT_OK;
}

/* The analyzer cannot know that the parser's code never pops more than it pushed. */
/* NOLINTBEGIN(clang-analyzer-core.*) */
dt_status dt_expr_eval(const struct dt_expr *expr, const int64_t values[], int64_t *result)
{
    int64_t stack[DT_EXPR_OPS + 1]; /* the first is never read: top points at it while empty */
    int64_t *top = stack;
    if (expr->real)
        return eval_real(expr, values, result);
    for (int i = 0; i < expr->count; i++) {
        const struct dt_expr_op *op = &expr->ops[i];
        switch (op->code) {
        case DT_OP_NUMBER:
            *++top = op->argument;
            break;
        case DT_OP_NAME:
            *++top = values[op->argument];
            break;
        case DT_OP_ADD:
        case DT_OP_SUBTRACT:
        case DT_OP_MULTIPLY:
        case DT_OP_DIVIDE:
        case DT_OP_MODULO:
        case DT_OP_FLOOR:
        case DT_OP_FLOOR_MODULO:
            top--;
            if (!arithmetic(op->code, top[0], top[1], top))
                return undefined(expr, op, top[1]);
            break;
        case DT_OP_NEGATE:
            if (!arithmetic(DT_OP_SUBTRACT, 0, *top, top))
                return undefined(expr, op, 1);
            break;
        case DT_OP_NOT:
            *top = *top == 0;
            break;
        case DT_OP_BOOL:
            *top = *top != 0;
            break;
        case DT_OP_AND:
        case DT_OP_OR:
            if ((*top != 0) == (op->code == DT_OP_OR)) {
                *top = op->code == DT_OP_OR;
                i = (int)op->argument - 1;
            } else {
                top--;
            }
            break;
        case DT_OP_IN:
            top -= op->argument;
            *top = one_of(top, op->argument);
            break;
        default:
            top--;
            *top = compare(op->code, top[0], top[1]);
        }
    }
    *result = *top;
    return DT_OK;
}
/* NOLINTEND(clang-analyzer-core.*) */

static void add_value(const struct dt_expr *expr, int name, int64_t value, struct dt_text *out)
{
    if (expr->categories[name].labels != NULL && value >= 0 && value < expr->categories[name].count)
        dt_text_add(out, "%s", expr->categories[name].labels[value]);
    else
        dt_decimal_add(value, expr->categories[name].digits, out);
}

/* Operands keep their order in postfix code, so the names come in the order of the text. A name gets parentheses where
 * "=6" could be misread together with the text before it. */
void dt_expr_explain(const struct dt_expr *expr, const int64_t values[], struct dt_text *out)
{
    const char *text = expr->text;
    size_t at = 0;
    for (int i = 0; i < expr->count; i++) {
        const struct dt_expr_op *op = &expr->ops[i];
        size_t start = (size_t)op->column - 1;
        if (op->code != DT_OP_NAME || start < at) /* the middle of a chain is there twice */
            continue;
        size_t end = start + (size_t)expr->categories[op->argument].size;
        bool bare = start == 0 || (text[start - 1] == '(' && text[end] == ')');
        dt_text_add_bytes(out, text + at, start - at);
        dt_text_add(out, "%s%.*s=", bare ? "" : "(", (int)(end - start), text + start);
        add_value(expr, (int)op->argument, values[op->argument], out);
        dt_text_add(out, "%s", bare ? "" : ")");
        at = end;
    }
    dt_text_add(out, "%s", text + at);
}
