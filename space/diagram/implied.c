/* SPDX-License-Identifier: MIT */
/* Consequences of a comparison that can be decided earlier: `a * b * c <= 100` is false once a * b is above 100 / c's
 * least value. They become roots of their own (bounds propagation: Mackworth 1977). */
#include "space/diagram/terms.h"

static dt_status add(struct dt_terms *terms, enum dt_expr_code code, int term, int64_t limit)
{
    int number = dt_terms_leaf(terms, DT_OP_NUMBER, limit);
    return dt_terms_root(terms, dt_terms_make(terms, code, term, number));
}

/* The left part of a sum or product can be bounded by the range of the right part. */
static bool may_split(const struct dt_terms *terms, int term)
{
    const struct dt_term *row = &terms->rows[term];
    return !terms->failed && (row->code == DT_OP_ADD || row->code == DT_OP_MULTIPLY) &&
           terms->rows[row->left].low >= 0 && terms->rows[row->right].low >= 0 &&
           terms->rows[row->left].depth >= 0 &&
           terms->rows[row->left].depth < terms->rows[row->right].depth;
}

/* term <= limit */
static dt_status below(struct dt_terms *terms, int term, int64_t limit)
{
    while (limit >= 0 && may_split(terms, term)) {
        const struct dt_term row = terms->rows[term];
        int64_t least = terms->rows[row.right].low;
        if (row.code == DT_OP_MULTIPLY && least == 0)
            return DT_OK;
        limit = row.code == DT_OP_ADD ? limit - least : limit / least;
        term = row.left;
        DT_TRY(add(terms, DT_OP_LESS_EQUAL, term, limit));
    }
    return DT_OK;
}

/* term >= limit */
static dt_status above(struct dt_terms *terms, int term, int64_t limit)
{
    while (limit > 0 && may_split(terms, term)) {
        const struct dt_term row = terms->rows[term];
        int64_t most = terms->rows[row.right].high;
        if (row.code == DT_OP_MULTIPLY && most == 0)
            return DT_OK;
        limit = row.code == DT_OP_ADD ? limit - most : (limit - 1) / most + 1;
        term = row.left;
        DT_TRY(add(terms, DT_OP_GREATER_EQUAL, term, limit));
    }
    return DT_OK;
}

/* a <= b, or a < b where strict is 1; each against the range of the other, then part by part. */
static dt_status ordered(struct dt_terms *terms, int a, int b, int strict)
{
    const struct dt_term left = terms->rows[a], right = terms->rows[b];
    if (right.high == INT64_MIN || left.low == INT64_MAX)
        return DT_OK;
    int64_t most = right.high - strict, least = left.low + strict;
    if (left.depth >= 0 && right.depth > left.depth)
        DT_TRY(add(terms, DT_OP_LESS_EQUAL, a, most));
    if (right.depth >= 0 && left.depth > right.depth)
        DT_TRY(add(terms, DT_OP_GREATER_EQUAL, b, least));
    DT_TRY(below(terms, a, most));
    return above(terms, b, least);
}

dt_status dt_terms_imply(struct dt_terms *terms, int root)
{
    const struct dt_term row = terms->rows[root];
    if (terms->failed || !row.sound || row.left < 0 || row.right < 0)
        return DT_OK;
    switch (row.code) {
    case DT_OP_LESS:
    case DT_OP_LESS_EQUAL:
        return ordered(terms, row.left, row.right, row.code == DT_OP_LESS);
    case DT_OP_GREATER:
    case DT_OP_GREATER_EQUAL:
        return ordered(terms, row.right, row.left, row.code == DT_OP_GREATER);
    case DT_OP_EQUAL:
        DT_TRY(ordered(terms, row.left, row.right, 0));
        return ordered(terms, row.right, row.left, 0);
    default:
        return DT_OK;
    }
}
