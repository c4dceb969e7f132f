/* SPDX-License-Identifier: MIT */
/* One operation over columns. Plain loops that the compiler vectorises; only sound terms are computed here, so nothing
 * can overflow or divide by zero. */
#include "space/diagram/build.h"

#define EACH(expression)                                                                           \
    for (int i = 0; i < n; i++)                                                                    \
    out[i] = (expression)

/* The quotient of 32-bit numbers is exact in a double, whose division is quicker than that of 64-bit integers. */
static void divide(bool small, bool remainder, const int64_t *a, const int64_t *b, int64_t *out,
                   int n)
{
    if (small && remainder)
        EACH(a[i] - (int64_t)((double)(int32_t)a[i] / (double)(int32_t)b[i]) * b[i]);
    else if (small)
        EACH((int64_t)((double)(int32_t)a[i] / (double)(int32_t)b[i]));
    else if (remainder)
        EACH(a[i] % b[i]);
    else
        EACH(a[i] / b[i]);
}

static void compare(enum dt_expr_code code, const int64_t *a, const int64_t *b, int64_t *out, int n)
{
    switch (code) {
    case DT_OP_EQUAL:
        EACH(a[i] == b[i]);
        break;
    case DT_OP_UNEQUAL:
        EACH(a[i] != b[i]);
        break;
    case DT_OP_LESS:
        EACH(a[i] < b[i]);
        break;
    case DT_OP_LESS_EQUAL:
        EACH(a[i] <= b[i]);
        break;
    case DT_OP_GREATER:
        EACH(a[i] > b[i]);
        break;
    default:
        EACH(a[i] >= b[i]);
    }
}

void dt_vector_apply(enum dt_expr_code code, bool small, const int64_t *a, const int64_t *b,
                     int64_t *out, int n)
{
    switch (code) {
    case DT_OP_ADD:
        EACH(a[i] + b[i]);
        break;
    case DT_OP_SUBTRACT:
        EACH(a[i] - b[i]);
        break;
    case DT_OP_MULTIPLY:
        EACH(a[i] * b[i]);
        break;
    case DT_OP_DIVIDE:
    case DT_OP_MODULO:
        divide(small, code == DT_OP_MODULO, a, b, out, n);
        break;
    case DT_OP_MIN:
        EACH(a[i] < b[i] ? a[i] : b[i]);
        break;
    case DT_OP_MAX:
        EACH(a[i] > b[i] ? a[i] : b[i]);
        break;
    case DT_OP_NEGATE:
        EACH(-a[i]);
        break;
    case DT_OP_NOT:
        EACH(a[i] == 0);
        break;
    case DT_OP_BOOL:
        EACH(a[i] != 0);
        break;
    case DT_OP_AND:
        EACH((a[i] != 0) & (b[i] != 0));
        break;
    case DT_OP_OR:
        EACH((a[i] != 0) | (b[i] != 0));
        break;
    default:
        compare(code, a, b, out, n);
    }
}
