/* SPDX-License-Identifier: MIT */
/* A sound term is computed for the whole block. A term that may fail is computed for one element at a time, with
 * short-circuit evaluation: `a == 0 || b / a > 2` must not divide where a is 0. */
#include "space/diagram/build.h"

#include <stdlib.h>

dt_status dt_block_init(struct dt_block *block, const struct dt_terms *terms, int room)
{
    *block = (struct dt_block){.terms = terms, .room = room, .levels = 1};
    for (int i = 0; i < terms->count; i++)
        if (terms->rows[i].levels > block->levels)
            block->levels = terms->rows[i].levels;
    block->sources = calloc((size_t)terms->count, sizeof *block->sources);
    block->columns = calloc((size_t)block->levels, sizeof *block->columns);
    bool made = block->sources != NULL && block->columns != NULL;
    for (int i = 0; made && i < block->levels; i++) {
        block->columns[i] = malloc((size_t)room * sizeof **block->columns);
        made = block->columns[i] != NULL;
    }
    if (made)
        return DT_OK;
    dt_block_fini(block);
    return dt_diagram_no_memory();
}

void dt_block_fini(struct dt_block *block)
{
    for (int i = 0; block->columns != NULL && i < block->levels; i++)
        free(block->columns[i]);
    free(block->columns);
    free((void *)block->sources);
    *block = (struct dt_block){0};
}

/* The values of the axes of an element; those that the term does not use may be any. */
static void take_values(struct dt_block *block, const struct dt_term *term, int element,
                        int64_t values[])
{
    const struct dt_terms *terms = block->terms;
    const struct dt_space *space = terms->space;
    for (int i = 0; i < space->axis_count; i++) {
        values[i] = space->axes[i].values[0];
        /* Its axes are among the terms, since the rule that calls it added them. */
        if ((term->axes >> i & 1) != 0)
            values[i] = block->sources[terms->axis_terms[i]][element];
    }
    block->work += 64;
}

static int64_t call(struct dt_block *block, const struct dt_term *term, int element)
{
    const struct dt_derived *derived = &block->terms->space->derived[term->number];
    int64_t values[DT_AXES_MAX];
    take_values(block, term, element, values);
    return derived->function(derived->context, values);
}

static bool part(struct dt_block *block, const struct dt_term *term, int element, int64_t *value)
{
    const struct dt_rule_part *row = &block->terms->parts[term->number];
    const struct dt_space *space = block->terms->space;
    int64_t values[DT_AXES_MAX], scope[DT_SCOPE_MAX];
    take_values(block, term, element, values);
    dt_space_scope(space, values, scope);
    return dt_expr_real(row->rule->expr, row->first, row->last, scope, value);
}

static bool is_small(const struct dt_term *term)
{
    return term->low >= INT32_MIN && term->high <= INT32_MAX;
}

static const int64_t *values_at(struct dt_block *block, int term, int level)
{
    const struct dt_term *row = &block->terms->rows[term];
    if (block->sources[term] != NULL)
        return block->sources[term];
    int64_t *out = block->columns[level];
    if (row->code == DT_OP_NUMBER)
        for (int i = 0; i < block->n; i++)
            out[i] = row->number;
    if (row->code == DT_OP_CALL)
        for (int i = 0; i < block->n; i++)
            out[i] = call(block, row, i);
    block->work += block->n;
    if (row->left < 0)
        return out;
    const struct dt_term *left = &block->terms->rows[row->left];
    const struct dt_term *right = row->right >= 0 ? &block->terms->rows[row->right] : left;
    const int64_t *a = values_at(block, row->left, level);
    const int64_t *b = row->right >= 0 ? values_at(block, row->right, level + 1) : a;
    if (row->code == DT_OP_STEP) {
        for (int i = 0; i < block->n; i++)
            out[i] = dt_case_step_next(&block->terms->steps[row->number], a[i], b[i]);
        block->work += 16 * (int64_t)block->n;
        return out;
    }
    dt_vector_apply(row->code, is_small(left) && is_small(right), a, b, out, block->n);
    return out;
}

const int64_t *dt_block_values(struct dt_block *block, int term)
{
    return values_at(block, term, 0);
}

/* false: it fails. */
static bool compute(struct dt_block *block, int term, int element, int64_t *value)
{
    const struct dt_term *row = &block->terms->rows[term];
    int64_t a = 0, b = 0;
    block->work += 4;
    if (block->sources[term] != NULL) {
        *value = block->sources[term][element];
        return true;
    }
    if (row->code == DT_OP_NUMBER || row->code == DT_OP_CALL) {
        *value = row->code == DT_OP_NUMBER ? row->number : call(block, row, element);
        return true;
    }
    if (row->code == DT_OP_PART)
        return part(block, row, element, value);
    if (!compute(block, row->left, element, &a))
        return false;
    if ((row->code == DT_OP_AND && a == 0) || (row->code == DT_OP_OR && a != 0)) {
        *value = row->code == DT_OP_OR;
        return true;
    }
    if (row->right >= 0 && !compute(block, row->right, element, &b))
        return false;
    return dt_expr_apply(row->code, a, b, value);
}

bool dt_block_holds(struct dt_block *block, int root, int i)
{
    int64_t value;
    return compute(block, root, i, &value) && value != 0;
}
