/* SPDX-License-Identifier: MIT */
/* Converts a rule's operations to terms. An expression that may fail keeps its written form, since short-circuit
 * evaluation matters there; all others may be reordered. */
#include "base/array.h"
#include "space/diagram/terms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double SUM_MOST = 4611686018427387904.0; /* 2^62: sums in any order fit 64 bits */

static dt_status no_memory(void)
{
    return dt_fail(DT_ENOMEM, "out of memory while compiling the rules of a space");
}

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

static int build(struct reading *reading, int op);

/* First code of the family of operations that may be regrouped with this one. */
static enum dt_expr_code family(enum dt_expr_code code)
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

static void collect(struct reading *reading, enum dt_expr_code chain, int op, bool negative)
{
    enum dt_expr_code code = reading->expr->ops[op].code;
    if (family(code) == chain) {
        collect(reading, chain, reading->kids[op].left, negative);
        collect(reading, chain, reading->kids[op].right, negative != (code == DT_OP_SUBTRACT));
        return;
    }
    int term = build(reading, op);
    reading->operands[reading->top++] = (struct operand){.term = term, .negative = negative};
}

static double size(const struct dt_term *term)
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
        sum += size(term);
        product *= fmax(1, size(term));
    }
    return (chain != DT_OP_ADD || sum <= SUM_MOST) &&
           (chain != DT_OP_MULTIPLY || product <= SUM_MOST);
}

/* Orders by the depth at which terms are known; the order of equal depths is the same in all rules. */
static bool earlier(const struct dt_term rows[], int a, int b)
{
    return rows[a].depth != rows[b].depth ? rows[a].depth < rows[b].depth : a < b;
}

static void sort(struct reading *reading, int from)
{
    const struct dt_term *rows = reading->terms->rows;
    for (int i = from + 1; i < reading->top; i++) {
        struct operand moved = reading->operands[i];
        int at = i;
        while (at > from && earlier(rows, moved.term, reading->operands[at - 1].term)) {
            reading->operands[at] = reading->operands[at - 1];
            at--;
        }
        reading->operands[at] = moved;
    }
}

static int combine(struct reading *reading, enum dt_expr_code chain, int from)
{
    const struct operand *operands = reading->operands;
    int term = operands[from].term;
    if (operands[from].negative)
        term = dt_terms_make(reading->terms, DT_OP_NEGATE, term, -1);
    for (int i = from + 1; i < reading->top; i++)
        term = dt_terms_make(reading->terms, operands[i].negative ? DT_OP_SUBTRACT : chain, term,
                             operands[i].term);
    return term;
}

/* A term with the same remainder. Partial sums and products are reduced, so that only a remainder of the first axes is
 * kept. */
static int reduce(struct dt_terms *terms, int term, int modulus)
{
    struct dt_term row = terms->rows[term];
    if (row.high < terms->rows[modulus].number)
        return term;
    bool grows = row.code == DT_OP_ADD || row.code == DT_OP_MULTIPLY;
    if (grows && terms->rows[row.left].low >= 0 && terms->rows[row.right].low >= 0) {
        int left = reduce(terms, row.left, modulus);
        term = dt_terms_make(terms, row.code, left, reduce(terms, row.right, modulus));
    }
    return dt_terms_make(terms, DT_OP_MODULO, term, modulus);
}

static int build_pair(struct reading *reading, int op)
{
    struct dt_terms *terms = reading->terms;
    enum dt_expr_code code = reading->expr->ops[op].code;
    int left = build(reading, reading->kids[op].left);
    int right = build(reading, reading->kids[op].right);
    code = code == DT_OP_FLOOR ? DT_OP_DIVIDE : code == DT_OP_FLOOR_MODULO ? DT_OP_MODULO : code;
    if (!terms->failed && code == DT_OP_MODULO && terms->rows[right].code == DT_OP_NUMBER &&
        terms->rows[right].number > 0 && terms->rows[left].sound && terms->rows[left].low >= 0)
        return reduce(terms, left, right);
    return dt_terms_make(terms, code, left, right);
}

static int build_chain(struct reading *reading, int op)
{
    enum dt_expr_code chain = family(reading->expr->ops[op].code);
    int from = reading->top, term;
    collect(reading, chain, op, false);
    if (!reading->terms->failed && may_regroup(reading, chain, from)) {
        sort(reading, from);
        term = combine(reading, chain, from);
    } else {
        reading->top = from;
        term = build_pair(reading, op);
    }
    reading->top = from;
    return term;
}

/* All items are computed even if one is equal: where one may fail this is a maximum of comparisons and not a lazy
 * `or`. */
static int build_in(struct reading *reading, int op)
{
    int tested = build(reading, reading->kids[op].left), term = 0;
    for (int item = reading->kids[op].right; item >= 0; item = reading->kids[item].next) {
        int equal = dt_terms_make(reading->terms, DT_OP_EQUAL, tested, build(reading, item));
        bool sound = !reading->terms->failed && reading->terms->rows[equal].sound &&
                     reading->terms->rows[term].sound;
        term = dt_terms_make(reading->terms, sound ? DT_OP_OR : DT_OP_MAX, term, equal);
    }
    return term;
}

static int build_name(struct reading *reading, int64_t name)
{
    const struct dt_space *space = reading->terms->space;
    int64_t constant = name - space->axis_count, derived = constant - space->constants.count;
    if (constant < 0)
        return dt_terms_leaf(reading->terms, DT_OP_NAME, name);
    if (derived >= 0)
        return dt_terms_leaf(reading->terms, DT_OP_CALL, derived);
    return dt_terms_leaf(reading->terms, DT_OP_NUMBER, space->constants.values[constant]);
}

static bool is_logical(enum dt_expr_code code)
{
    return code == DT_OP_AND || code == DT_OP_OR || code == DT_OP_NOT;
}

/* Rounding down and cutting off are the same where neither operand is negative. */
static bool rounds_down(struct reading *reading, int op)
{
    int left = build(reading, reading->kids[op].left);
    int right = build(reading, reading->kids[op].right);
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
    return dt_terms_leaf(terms, DT_OP_PART, terms->part_count++);
}

static int build(struct reading *reading, int op)
{
    const struct dt_expr_op *row = &reading->expr->ops[op];
    int term;
    if (reading->made[op] > 0)
        return reading->made[op] - 1;
    if (reading->opaque[op])
        term = build_part(reading, op);
    else if (row->code == DT_OP_NUMBER)
        term = dt_terms_leaf(reading->terms, DT_OP_NUMBER, row->argument);
    else if (row->code == DT_OP_NAME)
        term = build_name(reading, row->argument);
    else if (row->code == DT_OP_IN)
        term = build_in(reading, op);
    else if (row->code == DT_OP_NEGATE || row->code == DT_OP_NOT)
        term = dt_terms_make(reading->terms, row->code, build(reading, reading->kids[op].left), -1);
    else if (family(row->code) != DT_OP_NUMBER)
        term = build_chain(reading, op);
    else
        term = build_pair(reading, op);
    reading->made[op] = term + 1;
    return term;
}

dt_status dt_terms_root(struct dt_terms *terms, int term)
{
    if (terms->failed || terms->rows[term].root)
        return DT_OK;
    DT_TRY(DT_GROW(terms->roots, terms->root_count, 1));
    terms->rows[term].root = true;
    terms->roots[terms->root_count++] = term;
    return DT_OK;
}

/* A rule that fails is violated, so a conjunction can be split in any order. */
static dt_status split(struct reading *reading, int op, bool negated)
{
    enum dt_expr_code code = reading->expr->ops[op].code;
    if (code == DT_OP_NOT)
        return split(reading, reading->kids[op].left, !negated);
    if (code == (negated ? DT_OP_OR : DT_OP_AND)) {
        DT_TRY(split(reading, reading->kids[op].left, negated));
        return split(reading, reading->kids[op].right, negated);
    }
    int term = build(reading, op);
    if (negated)
        term = dt_terms_make(reading->terms, DT_OP_NOT, term, -1);
    DT_TRY(dt_terms_root(reading->terms, term));
    return dt_terms_imply(reading->terms, term);
}

/* ---- lists of cases: each axis, in the order in which they are bound, rules out what no case begins with */

/* The axes of a table in that order, and its rows likewise. */
static struct dt_cases *ordered(const struct dt_terms *terms, const struct dt_cases *table)
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
    int state = dt_terms_leaf(terms, DT_OP_NUMBER, 1);
    DT_TRY(DT_GROW(terms->tries, terms->trie_count, 1));
    struct dt_diagram **trie = &terms->tries[terms->trie_count];
    DT_TRY(dt_diagram_of(table->width, table->rows, table->count, trie));
    terms->trie_count++;
    for (int i = 0; i < table->width; i++) {
        const struct dt_layer *layer = &(*trie)->layers[i];
        DT_TRY(DT_GROW(terms->steps, terms->step_count, 1));
        terms->steps[terms->step_count] = (struct dt_case_step){
            layer, &axes[table->axes[i]], i + 1 < table->width ? layer->edges : 1};
        state = dt_terms_step(terms, state, terms->axis_terms[table->axes[i]], terms->step_count++);
        DT_TRY(dt_terms_root(terms, state));
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

static dt_status add_cases(struct dt_terms *terms, const struct dt_rule *rule)
{
    struct dt_cases *table = ordered(terms, rule->cases);
    dt_status status = table != NULL ? add_table(terms, table) : DT_ENOMEM;
    dt_cases_free(table);
    return status;
}

dt_status dt_terms_add(struct dt_terms *terms, const struct dt_rule *rule)
{
    if (rule->cases != NULL)
        return add_cases(terms, rule) == DT_OK && !terms->failed ? DT_OK : no_memory();
    struct reading *reading = calloc(1, sizeof *reading);
    dt_status status = reading != NULL ? DT_OK : DT_ENOMEM;
    if (status == DT_OK) {
        reading->terms = terms;
        reading->rule = rule;
        reading->expr = rule->expr;
        int root = dt_expr_tree(rule->expr, reading->kids);
        find_opaque(reading);
        status = split(reading, root, false);
    }
    if (status == DT_ENOMEM || terms->failed)
        status = no_memory();
    free(reading);
    return status;
}
