/* SPDX-License-Identifier: MIT */
/* A stack machine: a rule is decided millions of times while a space is enumerated, and a flat
 * array of operations is fast enough and needs no free. */
#include "space/expr/decimal.h"
#include "space/expr/expr_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rebuilds a tree from postfix code, with a stack of operations that have no parent yet. */

static void take_items(struct dt_expr_kids kids[], int op, int64_t items, const int stack[],
                       int top)
{
    int next = -1;
    for (int64_t i = 0; i < items; i++) {
        int item = stack[top - i];
        kids[item].next = next;
        next = item;
    }
    kids[op].right = next;
    kids[op].left = stack[top - items];
}

int dt_expr_tree(const struct dt_expr *expr, struct dt_expr_kids kids[])
{
    int stack[DT_EXPR_OPS + 1] = {0}, lazy[DT_EXPR_OPS + 1] = {0};
    int top = 0, open = 0;
    for (int op = 0; op < expr->count; op++) {
        kids[op] = (struct dt_expr_kids){.left = -1, .right = -1, .next = -1};
        switch (expr->ops[op].code) {
        case DT_OP_NUMBER:
        case DT_OP_REAL:
        case DT_OP_NAME:
            break;
        case DT_OP_NEGATE:
        case DT_OP_NOT:
            kids[op].left = stack[top--];
            break;
        case DT_OP_IN:
            take_items(kids, op, expr->ops[op].argument, stack, top);
            top -= (int)expr->ops[op].argument + 1;
            break;
        case DT_OP_AND:
        case DT_OP_OR: /* complete at the DT_OP_BOOL after its right side */
            kids[op].left = stack[top--];
            lazy[open++] = op;
            continue;
        case DT_OP_BOOL:
            kids[lazy[--open]].right = stack[top];
            stack[top] = lazy[open];
            continue;
        default:
            kids[op].right = stack[top--];
            kids[op].left = stack[top--];
        }
        stack[++top] = op;
    }
    return stack[top];
}

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
    DT_CLEANUP(dt_expr_free_at) struct dt_expr *expr = calloc(1, sizeof *expr);
    if (expr == NULL || (expr->text = strdup(text)) == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading a rule");
    expr->python = words->python;
    for (int i = 0; i < words->count; i++) {
        expr->categories[i].size = (int)strlen(words->names[i]);
        expr->categories[i].digits = words->digits != NULL ? words->digits[i] : 0;
        if (words->labels != NULL) {
            expr->categories[i].labels = words->labels[i];
            expr->categories[i].count = words->counts[i];
        }
    }
    DT_TRY(dt_expr_parse(expr, words));
    *out = expr;
    expr = NULL;
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
static bool apply_arithmetic(enum dt_expr_code code, int64_t a, int64_t b, int64_t *out)
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

static int64_t apply_comparison(enum dt_expr_code code, int64_t a, int64_t b)
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
        return apply_arithmetic(code, a, b, out);
    case DT_OP_NEGATE:
        return apply_arithmetic(DT_OP_SUBTRACT, 0, a, out);
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
        *out = apply_comparison(code, a, b);
        return true;
    }
}

static dt_status fail_undefined(const struct dt_expr *expr, const struct dt_expr_op *op,
                                int64_t divisor)
{
    if (op->code >= DT_OP_DIVIDE && op->code <= DT_OP_FLOOR_MODULO && divisor == 0)
        return dt_expr_fail(expr->text, op->column, "division by zero");
    return dt_expr_fail(expr->text, op->column, "the result does not fit 64 bits");
}

static dt_status no_real(const struct dt_expr *expr)
{
    return dt_expr_fail(expr->text, 1, "it divides by zero, or has no real value");
}

static int64_t one_of(const int64_t *tested, int64_t n)
{
    for (int64_t i = 1; i <= n; i++)
        if (tested[i] == tested[0])
            return 1;
    return 0;
}

/* The analyzer cannot know that the parser's code never pops more than it pushed. */
/* NOLINTBEGIN(clang-analyzer-core.*) */
dt_status dt_expr_eval(const struct dt_expr *expr, const int64_t values[], int64_t *result)
{
    int64_t stack[DT_EXPR_OPS + 1]; /* the first is never read: top points at it while empty */
    int64_t *top = stack;
    if (expr->real)
        return dt_expr_real(expr, 0, expr->count - 1, values, result) ? DT_OK : no_real(expr);
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
            if (!apply_arithmetic(op->code, top[0], top[1], top))
                return fail_undefined(expr, op, top[1]);
            break;
        case DT_OP_NEGATE:
            if (!apply_arithmetic(DT_OP_SUBTRACT, 0, *top, top))
                return fail_undefined(expr, op, 1);
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
            *top = apply_comparison(op->code, top[0], top[1]);
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

/* Operands keep their order in postfix code, so the names come in the order of the text. A name
 * gets parentheses where "=6" could be misread together with the text before it. */
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

/* Rules with decimals, quotients and powers: each operand is an integer or a double, as in Python.
 * Integers that do not fit 64 bits go on as doubles. Outside of Python's language numbers that
 * agree in 12 digits are equal, so that 0.1 + 0.2 == 0.3. libdittune has no libm, so remainders and
 * powers are computed here. */

static struct dt_number of_integer(int64_t value)
{
    return (struct dt_number){.integer = value, .value = (double)value};
}

static struct dt_number of_real(double value)
{
    return (struct dt_number){.real = true, .value = value};
}

static bool is_true(struct dt_number a)
{
    return a.real ? a.value != 0 : a.integer != 0;
}

/* -1, 0, 1. A long double holds each 64-bit integer. */
static int compare_numbers(const struct dt_expr *expr, struct dt_number a, struct dt_number b)
{
    long double x = a.real ? (long double)a.value : (long double)a.integer;
    long double y = b.real ? (long double)b.value : (long double)b.integer;
    long double size = fabsl(x) > fabsl(y) ? fabsl(x) : fabsl(y);
    if (!expr->python && (a.real || b.real) && fabsl(x - y) <= 1e-12L * size)
        return 0;
    return (x > y) - (x < y);
}

static double round_half_even(double x)
{
    double whole = fabs(x) < 4503599627370496.0 ? (double)(int64_t)x : x; /* 2^52 */
    return whole > x ? whole - 1 : whole;
}

/* a modulo b, of positive numbers: multiples b * 2^k are taken away, each without an
 * error (a long division). */
static double python_modulo(double a, double b)
{
    int high, low;
    (void)frexp(a, &high);
    (void)frexp(b, &low);
    for (int k = high - low; k >= 0; k--)
        a -= a >= ldexp(b, k) ? ldexp(b, k) : 0;
    return a;
}

/* The quotient rounded down and the remainder, as CPython's float_divmod computes them. */
static double floor_division(bool python, double a, double b, double *rest)
{
    double remainder = a < 0 ? -python_modulo(-a, fabs(b)) : python_modulo(a, fabs(b));
    double quotient = (a - remainder) / b;
    if (!python &&
        (fabs(remainder) <= 1e-12 * fabs(a) || fabs(b) - fabs(remainder) <= 1e-12 * fabs(a))) {
        *rest = 0;
        return round_half_even(a / b + 0.5);
    }
    if (remainder != 0 && (b < 0) != (remainder < 0)) {
        remainder += b;
        quotient -= 1;
    }
    *rest = remainder;
    double down = round_half_even(quotient);
    return quotient - down > 0.5 ? down + 1 : down;
}

static double remainder_of(bool python, double a, double b)
{
    double rest = 0;
    (void)floor_division(python, fabs(a), fabs(b), &rest);
    return a < 0 ? -rest : rest;
}

/* x to the power of a whole number or a half: repeated squares (Knuth, TAOCP 4.6.3). */
static double raise_power(double x, double exponent)
{
    bool less = exponent < 0;
    uint64_t n = (uint64_t)fabs(exponent);
    long double power = fabs(exponent) > (double)n ? (long double)sqrt(x) : 1, square = x;
    for (; n > 0; n /= 2, square *= square)
        power *= n % 2 != 0 ? square : 1;
    return (double)(less ? 1 / power : power);
}

static bool exact_power(struct dt_number a, struct dt_number b, struct dt_number *out)
{
    int64_t product = 1;
    bool fits = !a.real && !b.real && b.integer >= 0;
    for (int64_t i = 0; fits && i < b.integer && i < 64 && a.integer != 0; i++)
        fits = !__builtin_mul_overflow(product, a.integer, &product);
    if (fits && a.integer >= -1 && a.integer <= 1)
        product = a.integer == 0 ? b.integer == 0 : b.integer % 2 != 0 ? a.integer : 1;
    *out = fits ? of_integer(product) : of_real(raise_power(a.value, b.value));
    return isfinite(out->value);
}

static bool real_arithmetic(bool python, enum dt_expr_code code, struct dt_number a,
                            struct dt_number b, struct dt_number *out)
{
    int64_t integer = 0;
    double rest = 0;
    bool divides = code >= DT_OP_DIVIDE && code <= DT_OP_FLOOR_MODULO;
    if (code == DT_OP_POWER)
        return exact_power(a, b, out);
    if (divides && !is_true(b))
        return false;
    if (code != DT_OP_QUOTIENT && !a.real && !b.real &&
        dt_expr_apply(code, a.integer, b.integer, &integer)) {
        *out = of_integer(integer);
        return true;
    }
    switch (code) {
    case DT_OP_ADD:
        *out = of_real(a.value + b.value);
        break;
    case DT_OP_SUBTRACT:
        *out = of_real(a.value - b.value);
        break;
    case DT_OP_MULTIPLY:
        *out = of_real(a.value * b.value);
        break;
    case DT_OP_MODULO:
        *out = of_real(remainder_of(python, a.value, b.value));
        break;
    case DT_OP_FLOOR:
        *out = of_real(floor_division(python, a.value, b.value, &rest));
        break;
    case DT_OP_FLOOR_MODULO:
        (void)floor_division(python, a.value, b.value, &rest);
        *out = of_real(rest);
        break;
    default:
        *out = of_real(a.value / b.value);
    }
    return isfinite(out->value);
}

static struct dt_number leaf_number(const struct dt_expr *expr, const struct dt_expr_op *op,
                                    const int64_t values[])
{
    double real;
    if (op->code == DT_OP_NUMBER)
        return of_integer(op->argument);
    if (op->code == DT_OP_REAL) {
        memcpy(&real, &op->argument, sizeof real);
        return of_real(real);
    }
    int digits = expr->categories[op->argument].digits;
    int64_t value = values[op->argument];
    return digits > 0 ? of_real(dt_decimal_number(value, digits)) : of_integer(value);
}

static struct dt_number negate_number(struct dt_number a)
{
    return a.real || a.integer == INT64_MIN ? of_real(-a.value) : of_integer(-a.integer);
}

static bool real_one_of(const struct dt_expr *expr, const struct dt_number *tested, int64_t n)
{
    for (int64_t i = 1; i <= n; i++)
        if (compare_numbers(expr, tested[i], tested[0]) == 0)
            return true;
    return false;
}

/* The analyzer cannot know that the parser's code never pops more than it pushed. */
/* NOLINTBEGIN(clang-analyzer-core.*) */
static bool run_steps(const struct dt_expr *expr, int first, int last, const int64_t values[],
                      struct dt_number *result)
{
    struct dt_number stack[DT_EXPR_OPS + 1], *top = stack;
    for (int i = first; i <= last; i++) {
        const struct dt_expr_op *op = &expr->ops[i];
        switch (op->code) {
        case DT_OP_NUMBER:
        case DT_OP_REAL:
        case DT_OP_NAME:
            *++top = leaf_number(expr, op, values);
            break;
        case DT_OP_NEGATE:
            *top = negate_number(*top);
            break;
        case DT_OP_NOT:
        case DT_OP_BOOL:
            *top = of_integer(is_true(*top) == (op->code == DT_OP_BOOL));
            break;
        case DT_OP_AND:
        case DT_OP_OR:
            if (is_true(*top) == (op->code == DT_OP_OR)) {
                *top = of_integer(op->code == DT_OP_OR);
                i = (int)op->argument - 1;
            } else {
                top--;
            }
            break;
        case DT_OP_IN:
            top -= op->argument;
            *top = of_integer(real_one_of(expr, top, op->argument));
            break;
        case DT_OP_MIN:
        case DT_OP_MAX:
            top--;
            if ((compare_numbers(expr, top[1], top[0]) < 0) == (op->code == DT_OP_MIN))
                top[0] = compare_numbers(expr, top[1], top[0]) != 0 ? top[1] : top[0];
            break;
        default:
            top--;
            if (op->code >= DT_OP_EQUAL && op->code <= DT_OP_GREATER_EQUAL)
                *top = of_integer(
                    apply_comparison(op->code, compare_numbers(expr, top[0], top[1]), 0));
            else if (!real_arithmetic(expr->python, op->code, top[0], top[1], top))
                return false;
        }
    }
    *result = *top;
    return true;
}

/* NOLINTEND(clang-analyzer-core.*) */

bool dt_expr_real(const struct dt_expr *expr, int first, int last, const int64_t values[],
                  int64_t *result)
{
    struct dt_number number;
    if (!run_steps(expr, first, last, values, &number))
        return false;
    *result = number.real ? number.value != 0 : number.integer;
    return true;
}

dt_status dt_expr_number(const struct dt_expr *expr, const int64_t values[],
                         struct dt_number *number)
{
    if (run_steps(expr, 0, expr->count - 1, values, number))
        return DT_OK;
    return no_real(expr);
}
