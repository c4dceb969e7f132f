/* SPDX-License-Identifier: MIT */
/* expr_int - the code that the compiler (parse.c) makes for the interpreter (expr.c) */
#ifndef DT_SPACE_EXPR_EXPR_INT_H
#define DT_SPACE_EXPR_EXPR_INT_H

#include "space/expr/expr.h"

#include <stdbool.h>

enum { DT_EXPR_BYTES = 4096, DT_EXPR_OPS = 512, DT_EXPR_LEVELS = 32, DT_EXPR_NAMES = 128 };

enum dt_expr_code {
    DT_OP_NUMBER, /* push argument */
    DT_OP_REAL,   /* push the double whose bits argument has */
    DT_OP_NAME,   /* push values[argument] */
    DT_OP_ADD,
    DT_OP_SUBTRACT,
    DT_OP_MULTIPLY,
    DT_OP_DIVIDE,       /* integers divide as in C; exact where one is a decimal */
    DT_OP_MODULO,       /* with the sign of the left operand */
    DT_OP_QUOTIENT,     /* division of real numbers */
    DT_OP_FLOOR,        /* the quotient rounded down */
    DT_OP_FLOOR_MODULO, /* with the sign of the right operand */
    DT_OP_POWER,
    DT_OP_EQUAL,
    DT_OP_UNEQUAL,
    DT_OP_LESS,
    DT_OP_LESS_EQUAL,
    DT_OP_GREATER,
    DT_OP_GREATER_EQUAL,
    DT_OP_MIN,
    DT_OP_MAX,
    DT_OP_NEGATE,
    DT_OP_NOT,
    DT_OP_BOOL, /* top becomes 0 or 1 */
    DT_OP_AND,  /* top is 0: leave 0 and go on at op `argument`; else drop it */
    DT_OP_OR,   /* top is not 0: leave 1 and go on at op `argument`; else drop it */
    DT_OP_IN,   /* `argument` items above the tested value; leaves 0 or 1 */
    /* never in a rule's code, for further compilation (space/diagram): a derived name, a part of a
     * rule, the state of a list of cases (left operand) after one more axis (right) */
    DT_OP_CALL,
    DT_OP_PART,
    DT_OP_STEP
};

struct dt_expr_op {
    enum dt_expr_code code;
    int column; /* 1-based, of the token it came from */
    int64_t argument;
};

struct dt_expr {
    char *text;
    int count;
    bool python; /* its language */
    bool real;   /* has an operation whose result may be no integer */
    struct dt_names names;
    struct {
        const char *const *labels; /* NULL: numbers */
        int count;
        int digits; /* after the decimal point: a value is the name's value / 10^digits */
        int size;   /* bytes of the name */
    } categories[DT_EXPR_NAMES];
    struct dt_expr_op ops[DT_EXPR_OPS];
};

/* The operands of an operation; && and || are at their place in the code, and
 * DT_OP_BOOL is in no tree. */
struct dt_expr_kids {
    int left,
        right; /* -1: none. The items of `in` begin at right and go on by next, the tested value is left */
    int next;
};

/* kids[DT_EXPR_OPS]; returns the operation whose value is the rule's. */
int dt_expr_tree(const struct dt_expr *expr, struct dt_expr_kids kids[]);

/* The operations from first to last, which are one whole operand. Returns false when it fails: a
 * division by zero, no real number. */
bool dt_expr_real(const struct dt_expr *expr, int first, int last, const int64_t values[],
                  int64_t *result);

/* Applies one operation on integers that is neither a leaf nor `in`, a quotient or a power; unary
 * operations ignore b. false: it fails. */
bool dt_expr_apply(enum dt_expr_code code, int64_t a, int64_t b, int64_t *out);

/* Fills count, names and ops from text. */
dt_status dt_expr_parse(struct dt_expr *expr, const struct dt_vocabulary *words) DT_MUST_CHECK;

/* "rule '<text>', column <column>: <sentence>", a long text cut. */
dt_status dt_expr_fail(const char *text, int column, const char *format, ...) DT_FORMAT(3, 4);

#endif
