/* SPDX-License-Identifier: MIT */
/* Equal terms are found by hashing their three fields (Ershov 1958). Term 0 is the number 0, which
 * is also returned when memory runs out. */
#include "space/diagram/terms.h"
#include "base/array.h"

#include <math.h>
#include <stdlib.h>

/* Interval arithmetic (Moore 1966): the range of an expression, and whether it can
 * overflow or divide by zero. */

static void bound_whole(struct dt_term *term)
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

/* Sums, differences, products and quotients take their extremes at the ends of
 * their operands' ranges. */
static void bound_corners(struct dt_term *term, const struct dt_term *a, const struct dt_term *b)
{
    const int64_t left[] = {a->low, a->high}, right[] = {b->low, b->high};
    bool divides = term->code == DT_OP_DIVIDE;
    if (divides && b->low <= 0 && b->high >= 0) {
        bound_whole(term);
        return;
    }
    for (int i = 0; i < 4; i++) {
        int64_t value = 0;
        if (!dt_expr_apply(term->code, left[i / 2], right[i % 2], &value)) {
            bound_whole(term);
            return;
        }
        add_corner(term, value, i == 0);
    }
}

/* The remainder has the sign of the left operand, and its size is below both. */
static void remainder_range(struct dt_term *term, const struct dt_term *a, const struct dt_term *b)
{
    if ((b->low <= 0 && b->high >= 0) || (a->low == INT64_MIN && b->low <= -1 && b->high >= -1)) {
        bound_whole(term);
        return;
    }
    int64_t most = b->high > 0 ? b->high - 1 : -(b->low + 1);
    term->low = a->low >= 0 ? 0 : a->low < -most ? -most : a->low;
    term->high = a->high <= 0 ? 0 : a->high > most ? most : a->high;
}

static void bound_negated(struct dt_term *term, const struct dt_term *a)
{
    if (a->low == INT64_MIN) {
        bound_whole(term);
        return;
    }
    term->low = -a->high;
    term->high = -a->low;
}

static void bound_extreme(struct dt_term *term, const struct dt_term *a, const struct dt_term *b)
{
    (void)dt_expr_apply(term->code, a->low, b->low, &term->low);
    (void)dt_expr_apply(term->code, a->high, b->high, &term->high);
}

static void bound_leaf(const struct dt_terms *terms, struct dt_term *term)
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

/* Sets sound, low and high of a term whose other fields are set. */
static void term_range(const struct dt_terms *terms, struct dt_term *term)
{
    const struct dt_term *a = term->left >= 0 ? &terms->rows[term->left] : NULL;
    const struct dt_term *b = term->right >= 0 ? &terms->rows[term->right] : NULL;
    term->sound = (a == NULL || a->sound) && (b == NULL || b->sound) && term->code != DT_OP_PART;
    term->low = 0;
    term->high = 1;
    if (!term->sound) {
        bound_whole(term);
        return;
    }
    if (term->code == DT_OP_STEP)
        term->high = terms->steps[term->number].states;
    else if (a == NULL)
        bound_leaf(terms, term);
    else if (b == NULL && term->code == DT_OP_NEGATE)
        bound_negated(term, a);
    else if (b != NULL && term->code == DT_OP_MODULO)
        remainder_range(term, a, b);
    else if (b != NULL && (term->code == DT_OP_MIN || term->code == DT_OP_MAX))
        bound_extreme(term, a, b);
    else if (b != NULL && term->code >= DT_OP_ADD && term->code <= DT_OP_DIVIDE)
        bound_corners(term, a, b);
}

static uint32_t hash_term(enum dt_expr_code code, int left, int right, int64_t number)
{
    uint64_t key = (uint64_t)code * 0x9E3779B97F4A7C15u ^ (uint64_t)(uint32_t)left << 32 ^
                   (uint64_t)(uint32_t)right;
    key = (key ^ (uint64_t)number * 0xD6E8FEB86659FD93u) * 0xBF58476D1CE4E5B9u;
    return (uint32_t)(key >> 32);
}

/* Makes room for one more term in both tables. */
static bool grow_table(struct dt_terms *terms)
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
        uint32_t at = hash_term(row->code, row->left, row->right, row->number) & terms->mask;
        while (slots[at] != 0)
            at = (at + 1) & terms->mask;
        slots[at] = i + 1;
    }
    return true;
}

static void place_term(struct dt_terms *terms, struct dt_term *term)
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

static int intern_term(struct dt_terms *terms, enum dt_expr_code code, int left, int right,
                       int64_t number)
{
    if (terms->failed || !grow_table(terms)) {
        terms->failed = true;
        return 0;
    }
    uint32_t at = hash_term(code, left, right, number) & terms->mask;
    for (; terms->slots[at] != 0; at = (at + 1) & terms->mask) {
        const struct dt_term *row = &terms->rows[terms->slots[at] - 1];
        if (row->code == code && row->left == left && row->right == right && row->number == number)
            return terms->slots[at] - 1;
    }
    struct dt_term term = {.code = code, .left = left, .right = right, .number = number};
    place_term(terms, &term);
    term_range(terms, &term);
    terms->slots[at] = terms->count + 1;
    terms->rows[terms->count] = term;
    return terms->count++;
}

/* Returns the term of an operation on two terms; folds numbers and shares equal terms. */
static int terms_leaf(struct dt_terms *terms, enum dt_expr_code code, int64_t number)
{
    return intern_term(terms, code, -1, -1, number);
}

/* The comparison has the same result for all values in the ranges. */
static bool decided_by_bounds(enum dt_expr_code code, const struct dt_term *a,
                              const struct dt_term *b, int64_t *value)
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

static int terms_make(struct dt_terms *terms, enum dt_expr_code code, int left, int right)
{
    if (terms->failed)
        return 0;
    const struct dt_term *a = &terms->rows[left], *b = right >= 0 ? &terms->rows[right] : a;
    int64_t value = 0;
    if (a->sound && b->sound) {
        if (a->low == a->high && b->low == b->high && dt_expr_apply(code, a->low, b->low, &value))
            return terms_leaf(terms, DT_OP_NUMBER, value);
        if (right >= 0 && decided_by_bounds(code, a, b, &value))
            return terms_leaf(terms, DT_OP_NUMBER, value);
        if (code == DT_OP_BOOL && is_boolean(a))
            return left;
        bool both = code == DT_OP_AND || code == DT_OP_OR;
        for (int i = 0; both && i < 2; i++) {
            const struct dt_term *one = i == 0 ? a : b;
            bool zero = one->low == 0 && one->high == 0, never = one->low > 0 || one->high < 0;
            if ((zero && code == DT_OP_AND) || (never && code == DT_OP_OR))
                return terms_leaf(terms, DT_OP_NUMBER, code == DT_OP_OR);
            if (zero || never)
                return terms_make(terms, DT_OP_BOOL, i == 0 ? right : left, -1);
        }
    }
    return intern_term(terms, code, left, right, 0);
}

dt_status dt_terms_init(struct dt_terms *terms, const struct dt_space *space, const int order[])
{
    *terms = (struct dt_terms){.space = space};
    for (int i = 0; i < space->axis_count; i++)
        terms->position[order[i]] = i;
    terms_leaf(terms, DT_OP_NUMBER, 0);
    for (int i = 0; i < space->axis_count; i++)
        terms->axis_terms[i] = terms_leaf(terms, DT_OP_NAME, i);
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

/* Consequences of a comparison that can be decided earlier: `a * b * c <= 100` is false
 * once a * b is above 100 / c's least value. They become roots of their own (bounds
 * propagation: Mackworth 1977). */

static dt_status terms_root(struct dt_terms *terms, int term)
{
    if (terms->failed || terms->rows[term].root)
        return DT_OK;
    DT_TRY(DT_GROW(terms->roots, terms->root_count, 1));
    terms->rows[term].root = true;
    terms->roots[terms->root_count++] = term;
    return DT_OK;
}

static dt_status add_bound(struct dt_terms *terms, enum dt_expr_code code, int term, int64_t limit)
{
    int number = terms_leaf(terms, DT_OP_NUMBER, limit);
    return terms_root(terms, terms_make(terms, code, term, number));
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
static dt_status add_below(struct dt_terms *terms, int term, int64_t limit)
{
    while (limit >= 0 && may_split(terms, term)) {
        const struct dt_term row = terms->rows[term];
        int64_t least = terms->rows[row.right].low;
        if (row.code == DT_OP_MULTIPLY && least == 0)
            return DT_OK;
        limit = row.code == DT_OP_ADD ? limit - least : limit / least;
        term = row.left;
        DT_TRY(add_bound(terms, DT_OP_LESS_EQUAL, term, limit));
    }
    return DT_OK;
}

/* term >= limit */
static dt_status add_above(struct dt_terms *terms, int term, int64_t limit)
{
    while (limit > 0 && may_split(terms, term)) {
        const struct dt_term row = terms->rows[term];
        int64_t most = terms->rows[row.right].high;
        if (row.code == DT_OP_MULTIPLY && most == 0)
            return DT_OK;
        limit = row.code == DT_OP_ADD ? limit - most : (limit - 1) / most + 1;
        term = row.left;
        DT_TRY(add_bound(terms, DT_OP_GREATER_EQUAL, term, limit));
    }
    return DT_OK;
}

/* a <= b, or a < b where strict is 1; each against the range of the other, then part by part. */
static dt_status add_ordered(struct dt_terms *terms, int a, int b, int strict)
{
    const struct dt_term left = terms->rows[a], right = terms->rows[b];
    if (right.high == INT64_MIN || left.low == INT64_MAX)
        return DT_OK;
    int64_t most = right.high - strict, least = left.low + strict;
    if (left.depth >= 0 && right.depth > left.depth)
        DT_TRY(add_bound(terms, DT_OP_LESS_EQUAL, a, most));
    if (right.depth >= 0 && left.depth > right.depth)
        DT_TRY(add_bound(terms, DT_OP_GREATER_EQUAL, b, least));
    DT_TRY(add_below(terms, a, most));
    return add_above(terms, b, least);
}

/* Adds one root, and its consequences that can be decided earlier. */
static dt_status terms_imply(struct dt_terms *terms, int root)
{
    const struct dt_term row = terms->rows[root];
    if (terms->failed || !row.sound || row.left < 0 || row.right < 0)
        return DT_OK;
    switch (row.code) {
    case DT_OP_LESS:
    case DT_OP_LESS_EQUAL:
        return add_ordered(terms, row.left, row.right, row.code == DT_OP_LESS);
    case DT_OP_GREATER:
    case DT_OP_GREATER_EQUAL:
        return add_ordered(terms, row.right, row.left, row.code == DT_OP_GREATER);
    case DT_OP_EQUAL:
        DT_TRY(add_ordered(terms, row.left, row.right, 0));
        return add_ordered(terms, row.right, row.left, 0);
    default:
        return DT_OK;
    }
}

/* Converts a rule's operations to terms. An expression that may fail keeps its written form, since
 * short-circuit evaluation matters there; all others may be reordered. */

static const double SUM_MOST = 4611686018427387904.0; /* 2^62: sums in any order fit 64 bits */

static const char compiling[] = "while compiling the rules of a space";

struct operand {
    int term;
    bool negative;
};

struct reading {
    struct dt_terms *terms;
    const struct dt_rule *rule;
    const struct dt_expr *expr;
    bool opaque[DT_EXPR_OPS]; /* its values are no integers, or may be none */
    struct dt_expr_kids kids[DT_EXPR_OPS];
    int made[DT_EXPR_OPS];                /* term of each operation, plus one */
    struct operand operands[DT_EXPR_OPS]; /* a stack, shared by nested chains */
    int top;
};

static int build_term(struct reading *reading, int op);

/* First code of the family of operations that may be regrouped with this one. */
static enum dt_expr_code family_of(enum dt_expr_code code)
{
    switch (code) {
    case DT_OP_ADD:
    case DT_OP_SUBTRACT:
        return DT_OP_ADD;
    case DT_OP_MULTIPLY:
    case DT_OP_MIN:
    case DT_OP_MAX:
    case DT_OP_AND:
    case DT_OP_OR:
        return code;
    default:
        return DT_OP_NUMBER;
    }
}

static void collect_operands(struct reading *reading, enum dt_expr_code chain, int op,
                             bool negative)
{
    enum dt_expr_code code = reading->expr->ops[op].code;
    if (family_of(code) == chain) {
        collect_operands(reading, chain, reading->kids[op].left, negative);
        collect_operands(reading, chain, reading->kids[op].right,
                         negative != (code == DT_OP_SUBTRACT));
        return;
    }
    int term = build_term(reading, op);
    reading->operands[reading->top++] = (struct operand){.term = term, .negative = negative};
}

static double term_size(const struct dt_term *term)
{
    return fmax(fabs((double)term->low), fabs((double)term->high));
}

static bool may_regroup(const struct reading *reading, enum dt_expr_code chain, int from)
{
    double sum = 0, product = 1;
    for (int i = from; i < reading->top; i++) {
        const struct dt_term *term = &reading->terms->rows[reading->operands[i].term];
        if (!term->sound)
            return false;
        sum += term_size(term);
        product *= fmax(1, term_size(term));
    }
    return (chain != DT_OP_ADD || sum <= SUM_MOST) &&
           (chain != DT_OP_MULTIPLY || product <= SUM_MOST);
}

/* Orders by the depth at which terms are known; the order of equal depths is
 * the same in all rules. */
static bool sorts_before(const struct dt_term rows[], int a, int b)
{
    return rows[a].depth != rows[b].depth ? rows[a].depth < rows[b].depth : a < b;
}

static void sort_operands(struct reading *reading, int from)
{
    const struct dt_term *rows = reading->terms->rows;
    for (int i = from + 1; i < reading->top; i++) {
        struct operand moved = reading->operands[i];
        int at = i;
        while (at > from && sorts_before(rows, moved.term, reading->operands[at - 1].term)) {
            reading->operands[at] = reading->operands[at - 1];
            at--;
        }
        reading->operands[at] = moved;
    }
}

static int combine_operands(struct reading *reading, enum dt_expr_code chain, int from)
{
    const struct operand *operands = reading->operands;
    int term = operands[from].term;
    if (operands[from].negative)
        term = terms_make(reading->terms, DT_OP_NEGATE, term, -1);
    for (int i = from + 1; i < reading->top; i++)
        term = terms_make(reading->terms, operands[i].negative ? DT_OP_SUBTRACT : chain, term,
                          operands[i].term);
    return term;
}

/* A term with the same remainder. Partial sums and products are reduced, so that only a remainder
 * of the first axes is kept. */
static int reduce_modulo(struct dt_terms *terms, int term, int modulus)
{
    struct dt_term row = terms->rows[term];
    if (row.high < terms->rows[modulus].number)
        return term;
    bool grows = row.code == DT_OP_ADD || row.code == DT_OP_MULTIPLY;
    if (grows && terms->rows[row.left].low >= 0 && terms->rows[row.right].low >= 0) {
        int left = reduce_modulo(terms, row.left, modulus);
        term = terms_make(terms, row.code, left, reduce_modulo(terms, row.right, modulus));
    }
    return terms_make(terms, DT_OP_MODULO, term, modulus);
}

static int build_pair(struct reading *reading, int op)
{
    struct dt_terms *terms = reading->terms;
    enum dt_expr_code code = reading->expr->ops[op].code;
    int left = build_term(reading, reading->kids[op].left);
    int right = build_term(reading, reading->kids[op].right);
    code = code == DT_OP_FLOOR ? DT_OP_DIVIDE : code == DT_OP_FLOOR_MODULO ? DT_OP_MODULO : code;
    if (!terms->failed && code == DT_OP_MODULO && terms->rows[right].code == DT_OP_NUMBER &&
        terms->rows[right].number > 0 && terms->rows[left].sound && terms->rows[left].low >= 0)
        return reduce_modulo(terms, left, right);
    return terms_make(terms, code, left, right);
}

static int build_chain(struct reading *reading, int op)
{
    enum dt_expr_code chain = family_of(reading->expr->ops[op].code);
    int from = reading->top, term;
    collect_operands(reading, chain, op, false);
    if (!reading->terms->failed && may_regroup(reading, chain, from)) {
        sort_operands(reading, from);
        term = combine_operands(reading, chain, from);
    } else {
        reading->top = from;
        term = build_pair(reading, op);
    }
    reading->top = from;
    return term;
}

/* All items are computed even if one is equal: where one may fail this is a maximum of comparisons
 * and not a lazy `or`. */
static int build_in(struct reading *reading, int op)
{
    int tested = build_term(reading, reading->kids[op].left), term = 0;
    for (int item = reading->kids[op].right; item >= 0; item = reading->kids[item].next) {
        int equal = terms_make(reading->terms, DT_OP_EQUAL, tested, build_term(reading, item));
        bool sound = !reading->terms->failed && reading->terms->rows[equal].sound &&
                     reading->terms->rows[term].sound;
        term = terms_make(reading->terms, sound ? DT_OP_OR : DT_OP_MAX, term, equal);
    }
    return term;
}

static int build_name(struct reading *reading, int64_t name)
{
    const struct dt_space *space = reading->terms->space;
    int64_t constant = name - space->axis_count, derived = constant - space->constants.count;
    if (constant < 0)
        return terms_leaf(reading->terms, DT_OP_NAME, name);
    if (derived >= 0)
        return terms_leaf(reading->terms, DT_OP_CALL, derived);
    return terms_leaf(reading->terms, DT_OP_NUMBER, space->constants.values[constant]);
}

static bool is_logical(enum dt_expr_code code)
{
    return code == DT_OP_AND || code == DT_OP_OR || code == DT_OP_NOT;
}

/* Rounding down and cutting off are the same where neither operand is negative. */
static bool rounds_down(struct reading *reading, int op)
{
    int left = build_term(reading, reading->kids[op].left);
    int right = build_term(reading, reading->kids[op].right);
    const struct dt_term *rows = reading->terms->rows;
    return reading->terms->failed || !rows[left].sound || !rows[right].sound ||
           rows[left].low < 0 || rows[right].low < 0;
}

/* Marks what the terms, which are integers, cannot hold. Operands come before their operation. */
static void find_opaque(struct reading *reading)
{
    const struct dt_expr *expr = reading->expr;
    for (int op = 0; op < expr->count; op++) {
        enum dt_expr_code code = expr->ops[op].code;
        const struct dt_expr_kids *kids = &reading->kids[op];
        bool opaque = code == DT_OP_REAL || code == DT_OP_QUOTIENT || code == DT_OP_POWER ||
                      (code == DT_OP_NAME && expr->categories[expr->ops[op].argument].digits > 0);
        if (code == DT_OP_BOOL || is_logical(code))
            continue;
        opaque = opaque || (kids->left >= 0 && reading->opaque[kids->left]);
        for (int kid = kids->right; kid >= 0; kid = reading->kids[kid].next)
            opaque = opaque || reading->opaque[kid];
        if (!opaque && (code == DT_OP_FLOOR || code == DT_OP_FLOOR_MODULO))
            opaque = rounds_down(reading, op);
        reading->opaque[op] = opaque;
    }
}

static uint32_t axes_of(const struct reading *reading, int first, int last)
{
    const struct dt_space *space = reading->terms->space;
    uint32_t axes = 0;
    for (int op = first; op <= last; op++) {
        int64_t name = reading->expr->ops[op].argument;
        int64_t derived = name - space->axis_count - space->constants.count;
        if (reading->expr->ops[op].code != DT_OP_NAME)
            continue;
        if (name < space->axis_count)
            axes |= UINT32_C(1) << name;
        else if (derived >= 0)
            axes |= space->derived[derived].axes;
    }
    return axes;
}

static int build_part(struct reading *reading, int op)
{
    struct dt_terms *terms = reading->terms;
    int first = op;
    while (reading->kids[first].left >= 0)
        first = reading->kids[first].left;
    if (terms->failed || DT_GROW(terms->parts, terms->part_count, 1) != DT_OK) {
        terms->failed = true;
        return 0;
    }
    terms->parts[terms->part_count] = (struct dt_rule_part){
        .rule = reading->rule, .first = first, .last = op, .axes = axes_of(reading, first, op)};
    return terms_leaf(terms, DT_OP_PART, terms->part_count++);
}

static int build_term(struct reading *reading, int op)
{
    const struct dt_expr_op *row = &reading->expr->ops[op];
    int term;
    if (reading->made[op] > 0)
        return reading->made[op] - 1;
    if (reading->opaque[op])
        term = build_part(reading, op);
    else if (row->code == DT_OP_NUMBER)
        term = terms_leaf(reading->terms, DT_OP_NUMBER, row->argument);
    else if (row->code == DT_OP_NAME)
        term = build_name(reading, row->argument);
    else if (row->code == DT_OP_IN)
        term = build_in(reading, op);
    else if (row->code == DT_OP_NEGATE || row->code == DT_OP_NOT)
        term =
            terms_make(reading->terms, row->code, build_term(reading, reading->kids[op].left), -1);
    else if (family_of(row->code) != DT_OP_NUMBER)
        term = build_chain(reading, op);
    else
        term = build_pair(reading, op);
    reading->made[op] = term + 1;
    return term;
}

/* A rule that fails is violated, so a conjunction can be split in any order. */
static dt_status split_rule(struct reading *reading, int op, bool negated)
{
    enum dt_expr_code code = reading->expr->ops[op].code;
    if (code == DT_OP_NOT)
        return split_rule(reading, reading->kids[op].left, !negated);
    if (code == (negated ? DT_OP_OR : DT_OP_AND)) {
        DT_TRY(split_rule(reading, reading->kids[op].left, negated));
        return split_rule(reading, reading->kids[op].right, negated);
    }
    int term = build_term(reading, op);
    if (negated)
        term = terms_make(reading->terms, DT_OP_NOT, term, -1);
    DT_TRY(terms_root(reading->terms, term));
    return terms_imply(reading->terms, term);
}

/* ---- lists of cases: each axis, in the order in which they are bound, rules out
 * what no case begins with */

/* The axes of a table in that order, and its rows likewise. */
static struct dt_cases *normal_ordered(const struct dt_terms *terms, const struct dt_cases *table)
{
    struct dt_cases *made = dt_cases_copy(table);
    int from[DT_AXES_MAX];
    for (int i = 0; made != NULL && i < made->width; i++) {
        int at = i;
        for (; at > 0 && terms->position[made->axes[at - 1]] > terms->position[table->axes[i]];
             at--) {
            made->axes[at] = made->axes[at - 1];
            from[at] = from[at - 1];
        }
        made->axes[at] = table->axes[i];
        from[at] = i;
    }
    for (int row = 0; made != NULL && row < made->count; row++)
        for (int i = 0; i < made->width; i++)
            made->rows[row].index[i] = table->rows[row].index[from[i]];
    if (made != NULL)
        (void)dt_points_sort(made->rows, made->count);
    return made;
}

static dt_status add_table(struct dt_terms *terms, const struct dt_cases *table)
{
    const struct dt_axis *axes = terms->space->axes;
    int state = terms_leaf(terms, DT_OP_NUMBER, 1);
    DT_TRY(DT_GROW(terms->tries, terms->trie_count, 1));
    struct dt_diagram **trie = &terms->tries[terms->trie_count];
    DT_TRY(dt_diagram_of(table->width, table->rows, table->count, trie));
    terms->trie_count++;
    for (int i = 0; i < table->width; i++) {
        const struct dt_layer *layer = &(*trie)->layers[i];
        DT_TRY(DT_GROW(terms->steps, terms->step_count, 1));
        terms->steps[terms->step_count] = (struct dt_case_step){
            layer, &axes[table->axes[i]], i + 1 < table->width ? layer->edges : 1};
        state = intern_term(terms, DT_OP_STEP, state, terms->axis_terms[table->axes[i]],
                            terms->step_count++);
        DT_TRY(terms_root(terms, state));
    }
    return DT_OK;
}

int64_t dt_case_step_next(const struct dt_case_step *step, int64_t state, int64_t value)
{
    int index = state > 0 ? dt_axis_find(step->axis, value) : -1;
    if (index < 0)
        return 0;
    uint32_t low = step->layer->begin[state - 1], end = step->layer->begin[state], high = end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (step->layer->values[middle] < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && step->layer->values[low] == index ? (int64_t)step->layer->children[low] + 1
                                                          : 0;
}

dt_status dt_terms_add(struct dt_terms *terms, const struct dt_rule *rule)
{
    if (rule->cases != NULL) {
        DT_CLEANUP(dt_cases_free_at) struct dt_cases *table = normal_ordered(terms, rule->cases);
        dt_status added = table != NULL ? add_table(terms, table) : DT_ENOMEM;
        return added == DT_OK && !terms->failed ? DT_OK : dt_no_memory(compiling);
    }
    dt_auto_free struct reading *reading = calloc(1, sizeof *reading);
    if (reading == NULL)
        return dt_no_memory(compiling);
    reading->terms = terms;
    reading->rule = rule;
    reading->expr = rule->expr;
    int root = dt_expr_tree(rule->expr, reading->kids);
    find_opaque(reading);
    dt_status status = split_rule(reading, root, false);
    return status == DT_ENOMEM || terms->failed ? dt_no_memory(compiling) : status;
}
