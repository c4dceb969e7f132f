/* SPDX-License-Identifier: MIT */
/* Equal terms are found by hashing their three fields (Ershov 1958). Term 0 is the number 0, which is also returned
 * when memory runs out. */
#include "space/diagram/terms.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash(enum dt_expr_code code, int left, int right, int64_t number)
{
    uint64_t key = (uint64_t)code * 0x9E3779B97F4A7C15u ^ (uint64_t)(uint32_t)left << 32 ^
                   (uint64_t)(uint32_t)right;
    key = (key ^ (uint64_t)number * 0xD6E8FEB86659FD93u) * 0xBF58476D1CE4E5B9u;
    return (uint32_t)(key >> 32);
}

/* Makes room for one more term in both tables. */
static bool grow(struct dt_terms *terms)
{
    if (terms->count < terms->room)
        return true;
    int room = terms->room > 0 ? 2 * terms->room : 128;
    if (DT_RESIZE(terms->rows, room) < 0)
        return false;
    int *slots = calloc(2 * (size_t)room, sizeof *slots);
    if (slots == NULL)
        return false;
    free(terms->slots);
    terms->slots = slots;
    terms->mask = 2 * (uint32_t)room - 1;
    terms->room = room;
    for (int i = 0; i < terms->count; i++) {
        const struct dt_term *row = &terms->rows[i];
        uint32_t at = hash(row->code, row->left, row->right, row->number) & terms->mask;
        while (slots[at] != 0)
            at = (at + 1) & terms->mask;
        slots[at] = i + 1;
    }
    return true;
}

static void place(struct dt_terms *terms, struct dt_term *term)
{
    const struct dt_term *a = term->left >= 0 ? &terms->rows[term->left] : NULL;
    const struct dt_term *b = term->right >= 0 ? &terms->rows[term->right] : NULL;
    term->axes = (a != NULL ? a->axes : 0) | (b != NULL ? b->axes : 0);
    if (term->code == DT_OP_NAME)
        term->axes = UINT32_C(1) << term->number;
    if (term->code == DT_OP_CALL)
        term->axes = terms->space->derived[term->number].axes;
    if (term->code == DT_OP_PART)
        term->axes = terms->parts[term->number].axes;
    term->depth = -1;
    for (int i = 0; i < terms->space->axis_count; i++)
        if ((term->axes >> i & 1) != 0 && terms->position[i] > term->depth)
            term->depth = terms->position[i];
    term->levels = 1;
    if (a != NULL && a->levels > term->levels)
        term->levels = a->levels;
    if (b != NULL && b->levels + 1 > term->levels)
        term->levels = b->levels + 1;
}

static int intern(struct dt_terms *terms, enum dt_expr_code code, int left, int right,
                  int64_t number)
{
    if (terms->failed || !grow(terms)) {
        terms->failed = true;
        return 0;
    }
    uint32_t at = hash(code, left, right, number) & terms->mask;
    for (; terms->slots[at] != 0; at = (at + 1) & terms->mask) {
        const struct dt_term *row = &terms->rows[terms->slots[at] - 1];
        if (row->code == code && row->left == left && row->right == right && row->number == number)
            return terms->slots[at] - 1;
    }
    struct dt_term term = {.code = code, .left = left, .right = right, .number = number};
    place(terms, &term);
    dt_term_range(terms, &term);
    terms->slots[at] = terms->count + 1;
    terms->rows[terms->count] = term;
    return terms->count++;
}

int dt_terms_leaf(struct dt_terms *terms, enum dt_expr_code code, int64_t number)
{
    return intern(terms, code, -1, -1, number);
}

int dt_terms_step(struct dt_terms *terms, int state, int axis, int step)
{
    return intern(terms, DT_OP_STEP, state, axis, step);
}

/* The comparison has the same result for all values in the ranges. */
static bool decided(enum dt_expr_code code, const struct dt_term *a, const struct dt_term *b,
                    int64_t *value)
{
    switch (code) {
    case DT_OP_LESS:
        *value = a->high < b->low;
        return *value || a->low >= b->high;
    case DT_OP_LESS_EQUAL:
        *value = a->high <= b->low;
        return *value || a->low > b->high;
    case DT_OP_GREATER:
        *value = a->low > b->high;
        return *value || a->high <= b->low;
    case DT_OP_GREATER_EQUAL:
        *value = a->low >= b->high;
        return *value || a->high < b->low;
    case DT_OP_EQUAL:
    case DT_OP_UNEQUAL:
        *value = code == DT_OP_UNEQUAL;
        return a->high < b->low || a->low > b->high;
    default:
        return false;
    }
}

static bool is_boolean(const struct dt_term *term)
{
    return term->low >= 0 && term->high <= 1;
}

int dt_terms_make(struct dt_terms *terms, enum dt_expr_code code, int left, int right)
{
    if (terms->failed)
        return 0;
    const struct dt_term *a = &terms->rows[left], *b = right >= 0 ? &terms->rows[right] : a;
    int64_t value = 0;
    if (a->sound && b->sound) {
        if (a->low == a->high && b->low == b->high && dt_expr_apply(code, a->low, b->low, &value))
            return dt_terms_leaf(terms, DT_OP_NUMBER, value);
        if (right >= 0 && decided(code, a, b, &value))
            return dt_terms_leaf(terms, DT_OP_NUMBER, value);
        if (code == DT_OP_BOOL && is_boolean(a))
            return left;
        bool both = code == DT_OP_AND || code == DT_OP_OR;
        for (int i = 0; both && i < 2; i++) {
            const struct dt_term *one = i == 0 ? a : b;
            bool zero = one->low == 0 && one->high == 0, never = one->low > 0 || one->high < 0;
            if ((zero && code == DT_OP_AND) || (never && code == DT_OP_OR))
                return dt_terms_leaf(terms, DT_OP_NUMBER, code == DT_OP_OR);
            if (zero || never)
                return dt_terms_make(terms, DT_OP_BOOL, i == 0 ? right : left, -1);
        }
    }
    return intern(terms, code, left, right, 0);
}

dt_status dt_terms_init(struct dt_terms *terms, const struct dt_space *space, const int order[])
{
    *terms = (struct dt_terms){.space = space};
    for (int i = 0; i < space->axis_count; i++)
        terms->position[order[i]] = i;
    dt_terms_leaf(terms, DT_OP_NUMBER, 0);
    for (int i = 0; i < space->axis_count; i++)
        terms->axis_terms[i] = dt_terms_leaf(terms, DT_OP_NAME, i);
    if (!terms->failed)
        return DT_OK;
    dt_terms_fini(terms);
    return dt_fail(DT_ENOMEM, "out of memory while compiling the rules of a space");
}

void dt_terms_fini(struct dt_terms *terms)
{
    free(terms->rows);
    free(terms->slots);
    free(terms->roots);
    free(terms->parts);
    free(terms->steps);
    for (int i = 0; i < terms->trie_count; i++)
        dt_diagram_free(terms->tries[i]);
    free(terms->tries);
    *terms = (struct dt_terms){0};
}
