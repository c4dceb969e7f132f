/* SPDX-License-Identifier: MIT */
/* Interval arithmetic (Moore 1966): the range of an expression, and whether it can overflow or divide by zero. */
#include "space/diagram/terms.h"

static void whole(struct dt_term *term)
{
    term->sound = false;
    term->low = INT64_MIN;
    term->high = INT64_MAX;
}

static void add_corner(struct dt_term *term, int64_t value, bool first)
{
    if (first || value < term->low)
        term->low = value;
    if (first || value > term->high)
        term->high = value;
}

/* Sums, differences, products and quotients take their extremes at the ends of their operands' ranges. */
static void corners(struct dt_term *term, const struct dt_term *a, const struct dt_term *b)
{
    const int64_t left[] = {a->low, a->high}, right[] = {b->low, b->high};
    bool divides = term->code == DT_OP_DIVIDE;
    if (divides && b->low <= 0 && b->high >= 0) {
        whole(term);
        return;
    }
    for (int i = 0; i < 4; i++) {
        int64_t value = 0;
        if (!dt_expr_apply(term->code, left[i / 2], right[i % 2], &value)) {
            whole(term);
            return;
        }
        add_corner(term, value, i == 0);
    }
}

/* The remainder has the sign of the left operand, and its size is below both. */
static void remainder_range(struct dt_term *term, const struct dt_term *a, const struct dt_term *b)
{
    if ((b->low <= 0 && b->high >= 0) || (a->low == INT64_MIN && b->low <= -1 && b->high >= -1)) {
        whole(term);
        return;
    }
    int64_t most = b->high > 0 ? b->high - 1 : -(b->low + 1);
    term->low = a->low >= 0 ? 0 : a->low < -most ? -most : a->low;
    term->high = a->high <= 0 ? 0 : a->high > most ? most : a->high;
}

static void negated(struct dt_term *term, const struct dt_term *a)
{
    if (a->low == INT64_MIN) {
        whole(term);
        return;
    }
    term->low = -a->high;
    term->high = -a->low;
}

static void extreme(struct dt_term *term, const struct dt_term *a, const struct dt_term *b)
{
    (void)dt_expr_apply(term->code, a->low, b->low, &term->low);
    (void)dt_expr_apply(term->code, a->high, b->high, &term->high);
}

static void leaf(const struct dt_terms *terms, struct dt_term *term)
{
    if (term->code == DT_OP_NUMBER)
        term->low = term->high = term->number;
    if (term->code == DT_OP_NAME) {
        const struct dt_axis *axis = &terms->space->axes[term->number];
        term->low = axis->values[0];
        term->high = axis->values[axis->count - 1];
    }
    if (term->code == DT_OP_CALL) {
        term->low = INT64_MIN;
        term->high = INT64_MAX;
    }
}

void dt_term_range(const struct dt_terms *terms, struct dt_term *term)
{
    const struct dt_term *a = term->left >= 0 ? &terms->rows[term->left] : NULL;
    const struct dt_term *b = term->right >= 0 ? &terms->rows[term->right] : NULL;
    term->sound = (a == NULL || a->sound) && (b == NULL || b->sound) && term->code != DT_OP_PART;
    term->low = 0;
    term->high = 1;
    if (!term->sound) {
        whole(term);
        return;
    }
    if (term->code == DT_OP_STEP)
        term->high = terms->steps[term->number].states;
    else if (a == NULL)
        leaf(terms, term);
    else if (b == NULL && term->code == DT_OP_NEGATE)
        negated(term, a);
    else if (b != NULL && term->code == DT_OP_MODULO)
        remainder_range(term, a, b);
    else if (b != NULL && (term->code == DT_OP_MIN || term->code == DT_OP_MAX))
        extreme(term, a, b);
    else if (b != NULL && term->code >= DT_OP_ADD && term->code <= DT_OP_DIVIDE)
        corners(term, a, b);
}
