/* SPDX-License-Identifier: MIT */
/* Layers are built from the first axis to the last, a block of (node, value) pairs at a time,
 * each operation of a rule over the whole block, so the cost of interpreting the rule is spread
 * over a thousand pairs. */
#include "space/diagram/diagram.h"
#include "base/array.h"
#include "space/diagram/terms.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char dt_diagram_enumerating[] = "while enumerating a space of plans";

enum { BLOCK = 1024, SLOTS_MAX = 128 };

/* The nodes of a layer while the next one is built: the numbers that distinguish
 * them, column by column. */
struct nodes {
    int slots, terms[SLOTS_MAX]; /* ascending */
    uint32_t count, room;
    int64_t *values[SLOTS_MAX];
};

/* Computes terms over a block. sources[term]: existing column of a term that is not computed. */
struct block {
    const struct dt_terms *terms;
    int n, room;
    const int64_t **sources;
    int64_t **columns; /* room for the results, one per level */
    int levels;
    int64_t work;
};

/* Input of building one layer. */
struct build_task {
    const struct dt_terms *terms;
    int axis;
    const struct nodes *from; /* the nodes of this layer */
    struct nodes *to;         /* the next layer's: terms set, no nodes yet */
    const int *roots;         /* roots decided here, quick ones first */
    int root_count;
    const struct dt_bound *bound; /* remaining */
    int64_t work;
};

/* ---- one layer: each node with each value of the axis, a block at a time. Rejected elements leave
 * the block at once, so that later rules have less work; the remaining ones lead to the node with
 * their numbers in the next layer. */

/* Finds the node with given numbers, or adds it. */
struct merge {
    struct nodes *nodes;
    bool packed; /* all numbers fit one word */
    bool direct; /* the word is small enough for an index */
    int64_t low[SLOTS_MAX];
    uint64_t stride[SLOTS_MAX]; /* strides of the packed word */
    uint64_t *words;            /* each node's packed word, or a hash */
    uint32_t room;
    uint32_t *table; /* nodes, plus one */
    uint64_t size;   /* slots of the table; a power of two unless direct */
};

/* Index of the axis' values by a term that must equal number `slot` of the node, which may be the
 * state of a list of cases; slot -1: no such rule. */
struct match {
    int64_t key;
    uint16_t pick;
};

struct join {
    int slot, n;
    struct match *matches;           /* ascending */
    const struct dt_case_step *step; /* the cases' step; NULL: matches are used */
    bool *allowed;                   /* by value */
};

/* One operation over columns. Plain loops that the compiler vectorises; only sound terms are
 * computed here, so nothing can overflow or divide by zero. */

#define EACH(expression)                                                                           \
    for (int i = 0; i < n; i++)                                                                    \
    out[i] = (expression)

/* The quotient of 32-bit numbers is exact in a double, whose division is quicker than
 * that of 64-bit integers. */
static void divide_column(bool small, bool remainder, const int64_t *a, const int64_t *b,
                          int64_t *out, int n)
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

static void compare_column(enum dt_expr_code code, const int64_t *a, const int64_t *b, int64_t *out,
                           int n)
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

/* out[i] = a[i] code b[i]; small: all lie within 32 bits. */
static void vector_apply(enum dt_expr_code code, bool small, const int64_t *a, const int64_t *b,
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
        divide_column(small, code == DT_OP_MODULO, a, b, out, n);
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
        compare_column(code, a, b, out, n);
    }
}

/* A sound term is computed for the whole block. A term that may fail is computed for one element at
 * a time, with short-circuit evaluation: `a == 0 || b / a > 2` must not divide where a is 0. */

static void block_fini(struct block *block)
{
    for (int i = 0; block->columns != NULL && i < block->levels; i++)
        free(block->columns[i]);
    free(block->columns);
    free((void *)block->sources);
    *block = (struct block){0};
}

static dt_status block_init(struct block *block, const struct dt_terms *terms, int room)
{
    *block = (struct block){.terms = terms, .room = room, .levels = 1};
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
    block_fini(block);
    return dt_no_memory(dt_diagram_enumerating);
}

/* The values of the axes of an element; those that the term does not use may be any. */
static void take_values(struct block *block, const struct dt_term *term, int element,
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

static int64_t call_element(struct block *block, const struct dt_term *term, int element)
{
    const struct dt_derived *derived = &block->terms->space->derived[term->number];
    int64_t values[DT_AXES_MAX];
    take_values(block, term, element, values);
    return derived->function(derived->context, values);
}

static bool part_of_block(struct block *block, const struct dt_term *term, int element,
                          int64_t *value)
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

static const int64_t *values_at(struct block *block, int term, int level)
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
            out[i] = call_element(block, row, i);
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
    vector_apply(row->code, is_small(left) && is_small(right), a, b, out, block->n);
    return out;
}

/* A sound term; valid until the next call. */
static const int64_t *block_values(struct block *block, int term)
{
    return values_at(block, term, 0);
}

/* false: it fails. */
static bool compute_term(struct block *block, int term, int element, int64_t *value)
{
    const struct dt_term *row = &block->terms->rows[term];
    int64_t a = 0, b = 0;
    block->work += 4;
    if (block->sources[term] != NULL) {
        *value = block->sources[term][element];
        return true;
    }
    if (row->code == DT_OP_NUMBER || row->code == DT_OP_CALL) {
        *value = row->code == DT_OP_NUMBER ? row->number : call_element(block, row, element);
        return true;
    }
    if (row->code == DT_OP_PART)
        return part_of_block(block, row, element, value);
    if (!compute_term(block, row->left, element, &a))
        return false;
    if ((row->code == DT_OP_AND && a == 0) || (row->code == DT_OP_OR && a != 0)) {
        *value = row->code == DT_OP_OR;
        return true;
    }
    if (row->right >= 0 && !compute_term(block, row->right, element, &b))
        return false;
    return dt_expr_apply(row->code, a, b, value);
}

/* The root holds for element i; for roots that may fail. */
static bool block_holds(struct block *block, int root, int i)
{
    int64_t value;
    return compute_term(block, root, i, &value) && value != 0;
}

/* Merges nodes with equal numbers. The range of each number is known, so together they usually fit
 * one word, and often an index. */

enum { FIRST = 1024 };
static const uint64_t BYTES_MAX = 128 << 20; /* limit for the numbers of a layer's nodes */

static void nodes_fini(struct nodes *nodes)
{
    for (int i = 0; i < nodes->slots; i++)
        free(nodes->values[i]);
    *nodes = (struct nodes){0};
}

/* true: the product of the ranges is in *size. */
static bool pack_key(struct merge *merge, const struct dt_terms *terms, uint64_t *size)
{
    *size = 1;
    for (int i = 0; i < merge->nodes->slots; i++) {
        const struct dt_term *term = &terms->rows[merge->nodes->terms[i]];
        uint64_t values = (uint64_t)term->high - (uint64_t)term->low + 1;
        merge->low[i] = term->low;
        merge->stride[i] = *size;
        if (values == 0 || __builtin_mul_overflow(*size, values, size))
            return false;
    }
    return true;
}

/* pairs: how many look-ups to expect. */
static dt_status merge_init(struct merge *merge, const struct dt_terms *terms, struct nodes *nodes,
                            int64_t pairs)
{
    uint64_t size = 0;
    *merge = (struct merge){.nodes = nodes};
    merge->packed = pack_key(merge, terms, &size);
    merge->direct = merge->packed && size <= 4 * (uint64_t)pairs + FIRST && size <= 1 << 24;
    merge->size = merge->direct ? size : FIRST;
    merge->table = calloc(merge->size, sizeof *merge->table);
    return merge->table != NULL ? DT_OK : dt_no_memory(dt_diagram_enumerating);
}

static void merge_fini(struct merge *merge)
{
    free(merge->words);
    free(merge->table);
    merge->words = NULL;
    merge->table = NULL;
}

static uint64_t mix_word(uint64_t word)
{
    word *= 0x9E3779B97F4A7C15u;
    word ^= word >> 32;
    word *= 0xD6E8FEB86659FD93u;
    return word ^ word >> 32;
}

static uint64_t word_of(const struct merge *merge, const int64_t *const columns[], int i)
{
    uint64_t word = 0;
    for (int k = 0; k < merge->nodes->slots; k++) {
        if (merge->packed)
            word += ((uint64_t)columns[k][i] - (uint64_t)merge->low[k]) * merge->stride[k];
        else
            word = mix_word(word ^ (uint64_t)columns[k][i]);
    }
    return word;
}

/* A word is the numbers themselves when they are packed, and a hash of them otherwise. */
static bool same_node(const struct merge *merge, uint32_t node, uint64_t word,
                      const int64_t *const columns[], int i)
{
    if (merge->words[node] != word)
        return false;
    for (int k = 0; !merge->packed && k < merge->nodes->slots; k++)
        if (merge->nodes->values[k][node] != columns[k][i])
            return false;
    return true;
}

/* The caller tries another order, or reports the error. */
static dt_status too_much(void)
{
    return dt_fail(DT_EUNSUP, "the space is too large to enumerate: its rules decide too late");
}

static dt_status widen_keys(struct merge *merge)
{
    uint32_t room = merge->room > 0 ? 2 * merge->room : 256;
    if ((uint64_t)room * sizeof(int64_t) * (uint64_t)(merge->nodes->slots + 1) > BYTES_MAX)
        return too_much();
    DT_TRY(DT_RESIZE(merge->words, room));
    for (int k = 0; k < merge->nodes->slots; k++)
        DT_TRY(DT_RESIZE(merge->nodes->values[k], room));
    merge->room = room;
    return DT_OK;
}

static bool rehash_nodes(struct merge *merge)
{
    uint64_t size = 4 * merge->size;
    uint32_t *table = calloc(size, sizeof *table);
    if (table == NULL)
        return false;
    for (uint32_t node = 0; node < merge->nodes->count; node++) {
        uint64_t at = mix_word(merge->words[node]) & (size - 1);
        while (table[at] != 0)
            at = (at + 1) & (size - 1);
        table[at] = node + 1;
    }
    free(merge->table);
    merge->table = table;
    merge->size = size;
    return true;
}

static dt_status add_node(struct merge *merge, uint64_t word, const int64_t *const columns[], int i)
{
    if (merge->nodes->count == merge->room)
        DT_TRY(widen_keys(merge));
    uint32_t node = merge->nodes->count++;
    merge->words[node] = word;
    for (int k = 0; k < merge->nodes->slots; k++)
        merge->nodes->values[k][node] = columns[k][i];
    return DT_OK;
}

/* The nodes of columns[slot][0..n-1]. */
static dt_status merge_find(struct merge *merge, const int64_t *const columns[], int n,
                            uint32_t found[])
{
    for (int i = 0; i < n; i++) {
        uint64_t word = word_of(merge, columns, i);
        if (!merge->direct && 2 * (uint64_t)merge->nodes->count >= merge->size &&
            !rehash_nodes(merge))
            return dt_no_memory(dt_diagram_enumerating);
        uint64_t at = merge->direct ? word : mix_word(word) & (merge->size - 1);
        while (merge->table[at] != 0 && !merge->direct &&
               !same_node(merge, merge->table[at] - 1, word, columns, i))
            at = (at + 1) & (merge->size - 1);
        if (merge->table[at] == 0) {
            DT_TRY(add_node(merge, word, columns, i));
            merge->table[at] = merge->nodes->count;
        }
        found[i] = merge->table[at] - 1;
    }
    return DT_OK;
}

/* Where a rule equates a term of this axis alone with a number of the node, as in `a + b == c`, or
 * where a list of cases goes on, the matching values are looked up and not tried. */

static int by_key(const void *a, const void *b)
{
    const struct match *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->pick > y->pick) - (x->pick < y->pick);
}

static int slot_of(const struct build_task *task, int term)
{
    for (int i = 0; i < task->from->slots; i++)
        if (task->from->terms[i] == term)
            return i;
    return -1;
}

/* The term of this axis that equals a slot of the nodes; -1: the root is of another kind. */
static int side_slot(const struct build_task *task, int root, int *slot)
{
    const struct dt_term *rows = task->terms->rows, *row = &rows[root];
    if (row->code != DT_OP_EQUAL || !row->sound)
        return -1;
    for (int i = 0; i < 2; i++) {
        int one = i == 0 ? row->left : row->right, other = i == 0 ? row->right : row->left;
        *slot = slot_of(task, other);
        if (rows[one].axes == UINT32_C(1) << task->axis && *slot >= 0)
            return one;
    }
    return -1;
}

/* The cases that this axis is of, where other axes of theirs are bound. */
static const struct dt_case_step *step_of(const struct build_task *task, int *slot)
{
    for (int i = 0; i < task->root_count; i++) {
        const struct dt_term *row = &task->terms->rows[task->roots[i]];
        *slot = row->code == DT_OP_STEP ? slot_of(task, row->left) : -1;
        if (*slot >= 0)
            return &task->terms->steps[row->number];
    }
    return NULL;
}

static dt_status init_step(struct join *join, int count, int n, const uint16_t picks[])
{
    join->allowed = calloc((size_t)count, sizeof *join->allowed);
    if (join->allowed == NULL)
        return dt_no_memory(dt_diagram_enumerating);
    for (int i = 0; i < n; i++)
        join->allowed[picks[i]] = true;
    return DT_OK;
}

/* Builds the index for the block's elements, whose values are picks[]. */
static dt_status join_init(struct join *join, const struct build_task *task, struct block *block,
                           const uint16_t picks[])
{
    int term = -1;
    *join = (struct join){.slot = -1};
    join->step = step_of(task, &join->slot);
    if (join->step != NULL)
        return init_step(join, join->step->axis->count, block->n, picks);
    for (int i = 0; i < task->root_count && term < 0; i++)
        term = side_slot(task, task->roots[i], &join->slot);
    if (term < 0) {
        join->slot = -1;
        return DT_OK;
    }
    join->n = block->n;
    join->matches = malloc((size_t)block->n * sizeof *join->matches + 1);
    if (join->matches == NULL)
        return dt_no_memory(dt_diagram_enumerating);
    const int64_t *keys = block_values(block, term);
    for (int i = 0; i < block->n; i++)
        join->matches[i] = (struct match){.key = keys[i], .pick = picks[i]};
    qsort(join->matches, (size_t)join->n, sizeof *join->matches, by_key);
    return DT_OK;
}

static void join_fini(struct join *join)
{
    free(join->matches);
    free(join->allowed);
    join->matches = NULL;
    join->allowed = NULL;
}

static int find_cases(const struct join *join, int64_t state, uint16_t picks[])
{
    const struct dt_layer *layer = join->step->layer;
    int found = 0;
    for (uint32_t edge = layer->begin[state - 1]; edge < layer->begin[state]; edge++)
        if (join->allowed[layer->values[edge]])
            picks[found++] = layer->values[edge];
    return found;
}

/* Writes the matching values, ascending; returns their number. */
static int join_find(const struct join *join, int64_t key, uint16_t picks[])
{
    int low = 0, high = join->n, found = 0;
    if (join->step != NULL)
        return find_cases(join, key, picks);
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (join->matches[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < join->n && join->matches[low].key == key; low++)
        picks[found++] = join->matches[low].pick;
    return found;
}

static const uint32_t UNKNOWN = UINT32_MAX;

struct run {
    struct build_task *task;
    struct dt_layer *layer;
    struct block block;
    struct merge merge;
    struct join join;
    int room;
    int64_t *bound[SLOTS_MAX]; /* the numbers of each element's node */
    int64_t *keys[SLOTS_MAX];  /* numbers of the next node, where computed */
    int64_t *values;           /* the axis' value of each element */
    uint32_t *nodes, *found;   /* for each element: its node, the next node */
    uint16_t *picks;           /* index of each element's value */
    uint16_t *allowed;         /* values that pass the rules of this axis alone */
    int allowed_count;
    int from_slot[SLOTS_MAX];  /* index of this node's number that the next node copies, or -1 */
    bool for_roots[SLOTS_MAX]; /* numbers used by the roots */
    bool for_keys[SLOTS_MAX];  /* numbers used for those of the next node */
};

static void layer_fini(struct dt_layer *layer)
{
    free(layer->begin);
    free(layer->values);
    free(layer->children);
    free(layer->counts);
    free(layer->weights);
    *layer = (struct dt_layer){0};
}

static void run_fini(struct run *run)
{
    for (int i = 0; i < SLOTS_MAX; i++) {
        free(run->bound[i]);
        free(run->keys[i]);
    }
    free(run->values);
    free(run->nodes);
    free(run->found);
    free(run->picks);
    free(run->allowed);
    join_fini(&run->join);
    merge_fini(&run->merge);
    block_fini(&run->block);
}

static dt_status run_init(struct run *run)
{
    const struct build_task *task = run->task;
    size_t room = (size_t)task->terms->space->axes[task->axis].count;
    room = room > BLOCK ? room : BLOCK;
    run->room = (int)room;
    run->values = malloc(room * sizeof *run->values);
    run->nodes = malloc(room * sizeof *run->nodes);
    run->found = malloc(room * sizeof *run->found);
    run->picks = malloc(room * sizeof *run->picks);
    run->allowed = malloc(room * sizeof *run->allowed);
    bool made = run->values != NULL && run->nodes != NULL && run->found != NULL &&
                run->picks != NULL && run->allowed != NULL;
    for (int i = 0; made && i < task->from->slots; i++)
        made = (run->bound[i] = malloc(room * sizeof *run->bound[i])) != NULL;
    for (int i = 0; made && i < task->to->slots; i++)
        made = (run->keys[i] = malloc(room * sizeof *run->keys[i])) != NULL;
    if (!made)
        return dt_no_memory(dt_diagram_enumerating);
    DT_TRY(block_init(&run->block, task->terms, (int)room));
    run->block.sources[task->terms->axis_terms[task->axis]] = run->values;
    for (int i = 0; i < task->from->slots; i++)
        run->block.sources[task->from->terms[i]] = run->bound[i];
    return DT_OK;
}

static bool is_unary(const struct run *run, int root)
{
    return run->task->terms->rows[root].axes == UINT32_C(1) << run->task->axis;
}

/* Marks the numbers of this layer's nodes that a term uses. */
static void mark_terms(const struct run *run, int term, bool marks[])
{
    const struct dt_terms *terms = run->task->terms;
    const struct dt_term *row = &terms->rows[term];
    bool opaque = row->code == DT_OP_CALL || row->code == DT_OP_PART;
    for (int i = 0; i < run->task->from->slots; i++) {
        int slot = run->task->from->terms[i];
        if (slot == term || (opaque && terms->rows[slot].code == DT_OP_NAME &&
                             (row->axes >> terms->rows[slot].number & 1) != 0))
            marks[i] = true;
        if (slot == term)
            return;
    }
    if (row->left >= 0)
        mark_terms(run, row->left, marks);
    if (row->right >= 0)
        mark_terms(run, row->right, marks);
}

static void connect_terms(struct run *run)
{
    const struct build_task *task = run->task;
    for (int i = 0; i < task->root_count; i++)
        if (!is_unary(run, task->roots[i]))
            mark_terms(run, task->roots[i], run->for_roots);
    for (int k = 0; k < task->to->slots; k++) {
        run->from_slot[k] = -1;
        for (int i = 0; i < task->from->slots; i++)
            if (task->from->terms[i] == task->to->terms[k])
                run->from_slot[k] = i;
        mark_terms(run, task->to->terms[k], run->for_keys);
    }
}

static void gather_rules(struct run *run, const bool wanted[])
{
    const struct nodes *from = run->task->from;
    const int64_t *axis = run->task->terms->space->axes[run->task->axis].values;
    int n = run->block.n;
    for (int k = 0; k < from->slots; k++)
        for (int i = 0; wanted[k] && i < n; i++)
            run->bound[k][i] = from->values[k][run->nodes[i]];
    for (int i = 0; i < n; i++)
        run->values[i] = axis[run->picks[i]];
}

/* Drops the elements the root rejects. */
static void decide_rule(struct run *run, int root, const bool wanted[])
{
    struct block *block = &run->block;
    const int64_t *verdicts = block->terms->rows[root].sound ? block_values(block, root) : NULL;
    int kept = 0;
    for (int i = 0; i < block->n; i++) {
        bool holds = verdicts != NULL ? verdicts[i] != 0 : block_holds(block, root, i);
        run->nodes[kept] = run->nodes[i];
        run->picks[kept] = run->picks[i];
        kept += holds;
    }
    bool dropped = kept < block->n;
    block->n = kept;
    if (dropped)
        gather_rules(run, wanted);
}

/* Rules of this axis alone are decided once. Returns how many others there are. */
static int decide_alone(struct run *run)
{
    const struct build_task *task = run->task;
    static const bool none[SLOTS_MAX];
    int others = 0;
    run->block.n = task->terms->space->axes[task->axis].count;
    for (int i = 0; i < run->block.n; i++) {
        run->nodes[i] = 0;
        run->picks[i] = (uint16_t)i;
    }
    gather_rules(run, none);
    for (int i = 0; i < task->root_count; i++) {
        if (is_unary(run, task->roots[i]) && run->block.n > 0)
            decide_rule(run, task->roots[i], none);
        others += !is_unary(run, task->roots[i]);
    }
    run->allowed_count = run->block.n;
    memcpy(run->allowed, run->picks, (size_t)run->block.n * sizeof *run->allowed);
    return others;
}

static bool projects_away(const struct run *run)
{
    for (int k = 0; k < run->task->to->slots; k++)
        if (run->from_slot[k] < 0)
            return false;
    return true;
}

/* For an axis on which nothing below depends: all nodes share its values. */
static dt_status share_suffixes(struct run *run)
{
    const struct nodes *from = run->task->from;
    struct dt_layer *layer = run->layer;
    const int64_t *columns[SLOTS_MAX] = {NULL};
    layer->shared = true;
    layer->edges = (uint32_t)run->allowed_count;
    layer->values = malloc((size_t)run->allowed_count * sizeof *layer->values + 1);
    layer->children = malloc((size_t)from->count * sizeof *layer->children + 1);
    if (layer->values == NULL || layer->children == NULL)
        return dt_no_memory(dt_diagram_enumerating);
    memcpy(layer->values, run->allowed, (size_t)run->allowed_count * sizeof *layer->values);
    for (int k = 0; k < run->task->to->slots; k++)
        columns[k] = from->values[run->from_slot[k]];
    run->task->work += 8 * (int64_t)from->count;
    return merge_find(&run->merge, columns, (int)from->count, layer->children);
}

/* For an axis whose value does not matter below: one look-up per node. */
static dt_status find_by_node(struct run *run)
{
    const int64_t *columns[SLOTS_MAX] = {NULL};
    uint32_t last = UNKNOWN, child = 0;
    for (int i = 0; i < run->block.n; i++) {
        if (run->nodes[i] != last) {
            last = run->nodes[i];
            for (int k = 0; k < run->task->to->slots; k++)
                columns[k] = run->task->from->values[run->from_slot[k]] + last;
            DT_TRY(merge_find(&run->merge, columns, 1, &child));
        }
        run->found[i] = child;
    }
    return DT_OK;
}

static dt_status nodes_find(struct run *run)
{
    const int64_t *columns[SLOTS_MAX] = {NULL};
    if (projects_away(run))
        return find_by_node(run);
    gather_rules(run, run->for_keys);
    for (int k = 0; k < run->task->to->slots; k++) {
        columns[k] = run->from_slot[k] >= 0 ? run->bound[run->from_slot[k]] : run->keys[k];
        if (run->from_slot[k] < 0)
            memcpy(run->keys[k], block_values(&run->block, run->task->to->terms[k]),
                   (size_t)run->block.n * sizeof *run->keys[k]);
    }
    return merge_find(&run->merge, columns, run->block.n, run->found);
}

static dt_status run_block(struct run *run)
{
    const struct build_task *task = run->task;
    struct dt_layer *layer = run->layer;
    gather_rules(run, run->for_roots);
    run->block.work += 4 * (int64_t)run->block.n;
    for (int i = 0; i < task->root_count && run->block.n > 0; i++)
        if (!is_unary(run, task->roots[i]))
            decide_rule(run, task->roots[i], run->for_roots);
    if (run->block.n == 0)
        return DT_OK;
    DT_TRY(nodes_find(run));
    run->block.work += 16 * (int64_t)run->block.n;
    DT_TRY(DT_GROW(layer->values, layer->edges, run->block.n));
    DT_TRY(DT_GROW(layer->children, layer->edges, run->block.n));
    for (int i = 0; i < run->block.n; i++) {
        layer->values[layer->edges] = run->picks[i];
        layer->children[layer->edges++] = run->found[i];
        layer->begin[run->nodes[i] + 1]++;
    }
    return DT_OK;
}

/* Appends the node with its values to the n elements; returns the new number. */
static int append_node(struct run *run, uint32_t node, int n)
{
    const struct nodes *from = run->task->from;
    int more = run->allowed_count;
    if (run->join.slot >= 0)
        more = join_find(&run->join, from->values[run->join.slot][node], run->picks + n);
    else
        memcpy(run->picks + n, run->allowed, (size_t)more * sizeof *run->picks);
    for (int i = 0; i < more; i++)
        run->nodes[n + i] = node;
    return n + more;
}

static dt_status run_blocks(struct run *run)
{
    const struct build_task *task = run->task;
    struct dt_layer *layer = run->layer;
    int n = 0;
    DT_TRY(join_init(&run->join, task, &run->block, run->allowed));
    layer->begin = calloc((size_t)layer->nodes + 1, sizeof *layer->begin);
    if (layer->begin == NULL)
        return dt_no_memory(dt_diagram_enumerating);
    for (uint32_t node = 0; node < layer->nodes; node++) {
        n = append_node(run, node, n);
        run->block.work += 4;
        if (node + 1 < layer->nodes && n + run->allowed_count <= run->room)
            continue;
        run->block.n = n;
        n = 0;
        DT_TRY(run_block(run));
        if (task->work + run->block.work > task->bound->work || layer->edges > task->bound->edges)
            return too_much();
    }
    for (uint32_t node = 0; node < layer->nodes; node++)
        layer->begin[node + 1] += layer->begin[node];
    return DT_OK;
}

static dt_status layer_build(struct build_task *task, struct dt_layer *layer)
{
    struct run run = {.task = task, .layer = layer};
    *layer = (struct dt_layer){.axis = task->axis, .nodes = task->from->count};
    dt_status status = run_init(&run);
    if (status == DT_OK) {
        connect_terms(&run);
        int others = decide_alone(&run);
        int64_t pairs = (int64_t)task->from->count * run.allowed_count;
        status = merge_init(&run.merge, task->terms, task->to, pairs);
        if (status == DT_OK)
            status = others == 0 && projects_away(&run) ? share_suffixes(&run) : run_blocks(&run);
    }
    task->work += run.block.work;
    run_fini(&run);
    if (status != DT_OK)
        layer_fini(layer);
    return status;
}

/* ---- all layers */

struct builder {
    struct dt_terms terms;
    int *stamps; /* for each term, the last depth at which it was visited, plus one */
    int *roots;  /* roots of one depth */
    struct dt_bound left;
    struct dt_diagram *diagram;
};

void dt_diagram_free(struct dt_diagram *diagram)
{
    if (diagram == NULL)
        return;
    for (int i = 0; i < diagram->layer_count; i++)
        layer_fini(&diagram->layers[i]);
    free(diagram);
}

size_t dt_diagram_bytes(const struct dt_diagram *diagram)
{
    size_t bytes = sizeof *diagram;
    for (int i = 0; i < diagram->layer_count; i++) {
        const struct dt_layer *layer = &diagram->layers[i];
        size_t children = layer->shared ? layer->nodes : layer->edges;
        bytes += layer->nodes * sizeof(uint64_t) + layer->edges * sizeof(uint16_t) +
                 children * sizeof(uint32_t);
        bytes += layer->shared ? 0 : layer->nodes * sizeof(uint32_t);
    }
    return bytes;
}

/* Adds the numbers that the term needs of the axes bound so far. false: too many. */
static bool add_live(struct builder *builder, int term, int depth, struct nodes *nodes)
{
    const struct dt_terms *terms = &builder->terms;
    const struct dt_term *row = &terms->rows[term];
    if (builder->stamps[term] == depth + 1 || row->code == DT_OP_NUMBER)
        return true;
    builder->stamps[term] = depth + 1;
    if (row->sound && row->depth <= depth) {
        if (nodes->slots == SLOTS_MAX)
            return false;
        nodes->terms[nodes->slots++] = term;
        return true;
    }
    bool opaque = row->code == DT_OP_CALL || row->code == DT_OP_PART;
    for (int i = 0; opaque && i < terms->space->axis_count; i++)
        if ((row->axes >> i & 1) != 0 && !add_live(builder, terms->axis_terms[i], depth, nodes))
            return false;
    return (row->code == DT_OP_NAME || row->left < 0 ||
            add_live(builder, row->left, depth, nodes)) &&
           (row->right < 0 || add_live(builder, row->right, depth, nodes));
}

static dt_status find_live(struct builder *builder, int depth, struct nodes *nodes)
{
    const struct dt_terms *terms = &builder->terms;
    for (int i = 0; i < terms->root_count; i++)
        if (terms->rows[terms->roots[i]].depth > depth &&
            !add_live(builder, terms->roots[i], depth, nodes))
            return dt_fail(DT_EUNSUP, "the space is too large to enumerate: its rules depend on "
                                      "too much at once");
    qsort(nodes->terms, (size_t)nodes->slots, sizeof nodes->terms[0], dt_ascending_int);
    return DT_OK;
}

static bool calls_table(const struct dt_terms *terms, int term)
{
    const struct dt_term *row = &terms->rows[term];
    return row->code == DT_OP_CALL || row->code == DT_OP_PART ||
           (row->left >= 0 && calls_table(terms, row->left)) ||
           (row->right >= 0 && calls_table(terms, row->right));
}

/* Quick ones first: vectorised roots, then those that may fail, then those with derived names. */
static int find_roots(struct builder *builder, int depth)
{
    const struct dt_terms *terms = &builder->terms;
    int n = 0;
    for (int cost = 0; cost < 3; cost++)
        for (int i = 0; i < terms->root_count; i++) {
            int root = terms->roots[i];
            if (terms->rows[root].depth == depth &&
                cost == (calls_table(terms, root) ? 2 : !terms->rows[root].sound))
                builder->roots[n++] = root;
        }
    return n;
}

/* Decides the rules that depend on no axis. */
static dt_status decide_constants(struct builder *builder, bool *hold)
{
    struct block block;
    *hold = true;
    DT_TRY(block_init(&block, &builder->terms, 1));
    int n = find_roots(builder, -1);
    for (int i = 0; i < n; i++)
        *hold = *hold && block_holds(&block, builder->roots[i], 0);
    block_fini(&block);
    return DT_OK;
}

static dt_status build_layers(struct builder *builder, const int order[])
{
    struct dt_diagram *diagram = builder->diagram;
    struct nodes from = {.count = 1}, to = {0};
    dt_status status = DT_OK;
    for (int depth = 0; status == DT_OK && depth < builder->terms.space->axis_count; depth++) {
        struct build_task task = {.terms = &builder->terms,
                                  .axis = order[depth],
                                  .from = &from,
                                  .to = &to,
                                  .roots = builder->roots,
                                  .bound = &builder->left};
        to = (struct nodes){0};
        task.root_count = find_roots(builder, depth);
        status = find_live(builder, depth, &to);
        if (status == DT_OK)
            status = layer_build(&task, &diagram->layers[depth]);
        if (status == DT_OK) {
            diagram->layer_count++;
            builder->left.work -= task.work;
            builder->left.edges -= diagram->layers[depth].edges;
        }
        nodes_fini(&from);
        from = to;
    }
    nodes_fini(&from);
    return status;
}

/* From the last layer back to the first: counts the points below each node and drops
 * edges that lead nowhere. */

/* A child of the last layer is the end of a point. */
static double weight_of(const struct dt_diagram *diagram, int layer, uint32_t node)
{
    if (layer == diagram->layer_count)
        return 1;
    const struct dt_layer *row = &diagram->layers[layer];
    return row->counts != NULL ? (double)row->counts[node] : row->weights[node];
}

static void drop_dead(const struct dt_diagram *diagram, int depth)
{
    struct dt_layer *layer = (struct dt_layer *)&diagram->layers[depth];
    uint32_t kept = 0, edge = 0;
    for (uint32_t node = 0; !layer->shared && node < layer->nodes; node++) {
        for (; edge < layer->begin[node + 1]; edge++) {
            if (weight_of(diagram, depth + 1, layer->children[edge]) == 0)
                continue;
            layer->values[kept] = layer->values[edge];
            layer->children[kept++] = layer->children[edge];
        }
        layer->begin[node + 1] = kept;
    }
    if (!layer->shared)
        layer->edges = kept;
}

/* false: the count exceeds 62 bits. */
static bool count_node(const struct dt_diagram *diagram, int depth, uint32_t node, uint64_t *count)
{
    const struct dt_layer *layer = &diagram->layers[depth];
    const uint64_t *below =
        depth + 1 < diagram->layer_count ? diagram->layers[depth + 1].counts : NULL;
    *count = 0;
    if (layer->shared)
        return !__builtin_mul_overflow(below != NULL ? below[layer->children[node]] : 1,
                                       (uint64_t)layer->edges, count) &&
               *count <= INT64_MAX / 2;
    for (uint32_t i = layer->begin[node]; i < layer->begin[node + 1]; i++)
        if (__builtin_add_overflow(*count, below != NULL ? below[layer->children[i]] : 1, count))
            return false;
    return *count <= INT64_MAX / 2;
}

static double weigh_node(const struct dt_diagram *diagram, int depth, uint32_t node)
{
    const struct dt_layer *layer = &diagram->layers[depth];
    double sum = 0;
    if (layer->shared)
        return layer->edges * weight_of(diagram, depth + 1, layer->children[node]);
    for (uint32_t i = layer->begin[node]; i < layer->begin[node + 1]; i++)
        sum += weight_of(diagram, depth + 1, layer->children[i]);
    return sum;
}

static bool weigh_nodes(struct dt_diagram *diagram, int depth, bool *exact)
{
    struct dt_layer *layer = &diagram->layers[depth];
    drop_dead(diagram, depth);
    layer->counts = *exact ? malloc(layer->nodes * sizeof *layer->counts + 1) : NULL;
    if (*exact && layer->counts == NULL)
        return false;
    for (uint32_t node = 0; *exact && node < layer->nodes; node++)
        *exact = count_node(diagram, depth, node, &layer->counts[node]);
    if (*exact)
        return true;
    free(layer->counts);
    layer->counts = NULL;
    layer->weights = malloc(layer->nodes * sizeof *layer->weights + 1);
    for (uint32_t node = 0; layer->weights != NULL && node < layer->nodes; node++)
        layer->weights[node] = weigh_node(diagram, depth, node);
    return layer->weights != NULL;
}

/* Counts the points of the layers. */
static dt_status diagram_finish(struct dt_diagram *diagram)
{
    bool exact = true;
    for (int depth = diagram->layer_count - 1; depth >= 0; depth--)
        if (!weigh_nodes(diagram, depth, &exact))
            return dt_no_memory(dt_diagram_enumerating);
    diagram->weight = weight_of(diagram, 0, 0);
    diagram->count = exact ? (int64_t)diagram->layers[0].counts[0] : -1;
    return DT_OK;
}

static dt_status build_order(struct builder *builder, const int order[], const bool rules[])
{
    const struct dt_space *space = builder->terms.space;
    bool hold = true;
    for (int i = 0; i < space->rule_count; i++)
        if (rules == NULL || rules[i])
            DT_TRY(dt_terms_add(&builder->terms, &space->rules[i]));
    builder->stamps = calloc((size_t)builder->terms.count, sizeof *builder->stamps);
    builder->roots = calloc((size_t)builder->terms.root_count + 1, sizeof *builder->roots);
    builder->diagram = calloc(1, sizeof *builder->diagram);
    if (builder->stamps == NULL || builder->roots == NULL || builder->diagram == NULL)
        return dt_no_memory(dt_diagram_enumerating);
    DT_TRY(decide_constants(builder, &hold));
    if (!hold || space->axis_count == 0)
        return DT_OK;
    DT_TRY(build_layers(builder, order));
    return diagram_finish(builder->diagram);
}

dt_status dt_diagram_new(const struct dt_space *space, const int order[], const bool rules[],
                         const struct dt_bound *bound, struct dt_diagram **out)
{
    struct builder builder = {.left = *bound};
    DT_TRY(dt_terms_init(&builder.terms, space, order));
    dt_status status = build_order(&builder, order, rules);
    dt_terms_fini(&builder.terms);
    free(builder.stamps);
    free(builder.roots);
    if (status != DT_OK) {
        dt_diagram_free(builder.diagram);
        return status;
    }
    *out = builder.diagram;
    return DT_OK;
}

/* An order of the axes that keeps few of them open (bound, and used by an undecided rule). Greedy;
 * ties go to the order in which the axes were declared. */

struct sets {
    const struct dt_space *space;
    const uint32_t *rules;
    int rule_count;
};

/* log2 of the combinations of the open axes once those in the mask are bound. */
static double width_bound(const struct sets *sets, uint32_t bound)
{
    uint32_t open = 0;
    double sum = 0;
    for (int i = 0; i < sets->rule_count; i++)
        if ((sets->rules[i] & ~bound) != 0)
            open |= sets->rules[i] & bound;
    for (int i = 0; i < sets->space->axis_count; i++)
        if (open >> i & 1)
            sum += log2(sets->space->axes[i].count);
    return sum;
}

/* Cost of binding this axis: the open combinations before it times its values,
 * plus those after it. */
static double step_cost(const struct sets *sets, uint32_t bound, int axis)
{
    double before = width_bound(sets, bound) + log2(sets->space->axes[axis].count);
    return fmax(before, width_bound(sets, bound | UINT32_C(1) << axis) + 1);
}

static double greedy_order(const struct sets *sets, int first, int order[])
{
    uint32_t bound = 0;
    double sum = 0;
    for (int n = 0; n < sets->space->axis_count; n++) {
        int best = -1;
        double least = INFINITY;
        for (int i = 0; i < sets->space->axis_count; i++) {
            double cost = bound >> i & 1 ? INFINITY : step_cost(sets, bound, i);
            if (cost < least - 1e-9) {
                least = cost;
                best = i;
            }
        }
        if (n == 0) {
            least = step_cost(sets, bound, first);
            best = first;
        }
        order[n] = best;
        bound |= UINT32_C(1) << best;
        sum += exp2(least);
    }
    return sum;
}

void dt_diagram_order(const struct dt_space *space, const uint32_t rules[], int n, int order[])
{
    const struct sets sets = {.space = space, .rules = rules, .rule_count = n};
    double least = INFINITY;
    for (int first = 0; first < space->axis_count; first++) {
        int tried[DT_AXES_MAX];
        double cost = greedy_order(&sets, first, tried);
        if (cost >= least * (1 - 1e-9))
            continue;
        least = cost;
        for (int i = 0; i < space->axis_count; i++)
            order[i] = tried[i];
    }
}

/* A diagram of given points: a node for each prefix of a point (a trie: Fredkin 1960). */

/* The point differs from the one before it in the first `length` values. */
static bool begins_group(const struct dt_point points[], int64_t k, int length)
{
    if (k == 0)
        return true;
    for (int i = 0; i < length; i++)
        if (points[k].index[i] != points[k - 1].index[i])
            return true;
    return false;
}

static dt_status add_layer(struct dt_diagram *diagram, int axes, const struct dt_point points[],
                           int64_t n)
{
    int axis = diagram->layer_count;
    struct dt_layer *layer = &diagram->layers[diagram->layer_count++];
    *layer = (struct dt_layer){.axis = axis};
    for (int64_t k = 0; k < n; k++) {
        layer->nodes += begins_group(points, k, axis);
        layer->edges += begins_group(points, k, axis + 1);
    }
    layer->begin = calloc((size_t)layer->nodes + 2, sizeof *layer->begin);
    layer->values = calloc((size_t)layer->edges + 1, sizeof *layer->values);
    layer->children = calloc((size_t)layer->edges + 1, sizeof *layer->children);
    if (layer->begin == NULL || layer->values == NULL || layer->children == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a space of %lld plans", (long long)n);
    uint32_t node = 0, edge = 0;
    for (int64_t k = 0; k < n; k++) {
        node += begins_group(points, k, axis);
        if (!begins_group(points, k, axis + 1))
            continue;
        layer->values[edge] = (uint16_t)points[k].index[axis];
        layer->children[edge] = axis + 1 < axes ? edge : 0;
        layer->begin[node] = ++edge;
    }
    layer->nodes += layer->nodes == 0; /* without points there is still the empty prefix */
    return DT_OK;
}

dt_status dt_diagram_of(int axes, const struct dt_point points[], int64_t n,
                        struct dt_diagram **out)
{
    DT_CLEANUP(dt_diagram_free_at) struct dt_diagram *diagram = calloc(1, sizeof *diagram);
    if (diagram == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a space of %lld plans", (long long)n);
    while (diagram->layer_count < axes)
        DT_TRY(add_layer(diagram, axes, points, n));
    if (axes > 0)
        DT_TRY(diagram_finish(diagram));
    *out = diagram;
    diagram = NULL;
    return DT_OK;
}

/* Paths through a diagram: the k-th, that of a point, a random one. */

struct edges {
    uint32_t first, end;
};

static struct edges edges_of(const struct dt_layer *layer, uint32_t node)
{
    if (layer->shared)
        return (struct edges){0, layer->edges};
    return (struct edges){layer->begin[node], layer->begin[node + 1]};
}

static uint32_t child_of(const struct dt_layer *layer, uint32_t node, uint32_t edge)
{
    return layer->children[layer->shared ? node : edge];
}

static uint64_t count_of(const struct dt_diagram *diagram, int layer, uint32_t node)
{
    return layer < diagram->layer_count ? diagram->layers[layer].counts[node] : 1;
}

void dt_diagram_at(const struct dt_diagram *diagram, uint64_t k, struct dt_point *point)
{
    uint32_t node = 0;
    *point = (struct dt_point){{0}};
    assert(k < (uint64_t)diagram->count);
    for (int i = 0; i < diagram->layer_count; i++) {
        const struct dt_layer *layer = &diagram->layers[i];
        struct edges edges = edges_of(layer, node);
        uint32_t edge = edges.first;
        if (layer->shared) {
            uint64_t each = count_of(diagram, i + 1, layer->children[node]);
            edge = (uint32_t)(k / each);
            k %= each;
        }
        for (uint64_t n; !layer->shared; edge++) {
            n = count_of(diagram, i + 1, layer->children[edge]);
            if (k < n)
                break;
            k -= n;
        }
        point->index[layer->axis] = layer->values[edge];
        node = child_of(layer, node, edge);
    }
}

/* The edge with that value, or the end of the edges. */
static uint32_t edge_find(const struct dt_layer *layer, struct edges edges, int32_t value)
{
    uint32_t low = edges.first, high = edges.end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (layer->values[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < edges.end && layer->values[low] == value ? low : edges.end;
}

bool dt_diagram_has(const struct dt_diagram *diagram, const struct dt_point *point)
{
    uint32_t node = 0;
    if (diagram->weight == 0)
        return false;
    for (int i = 0; i < diagram->layer_count; i++) {
        const struct dt_layer *layer = &diagram->layers[i];
        struct edges edges = edges_of(layer, node);
        uint32_t edge = edge_find(layer, edges, point->index[layer->axis]);
        if (edge == edges.end)
            return false;
        node = child_of(layer, node, edge);
    }
    return true;
}

int64_t dt_diagram_index(const struct dt_diagram *diagram, const struct dt_point *point)
{
    uint32_t node = 0;
    uint64_t k = 0;
    if (diagram->weight == 0)
        return -1;
    for (int i = 0; i < diagram->layer_count; i++) {
        const struct dt_layer *layer = &diagram->layers[i];
        struct edges edges = edges_of(layer, node);
        uint32_t edge = edge_find(layer, edges, point->index[layer->axis]);
        if (edge == edges.end)
            return -1;
        if (layer->shared)
            k += edge * count_of(diagram, i + 1, layer->children[node]);
        for (uint32_t j = edges.first; !layer->shared && j < edge; j++)
            k += count_of(diagram, i + 1, layer->children[j]);
        node = child_of(layer, node, edge);
    }
    return (int64_t)k;
}

void dt_diagram_at_coordinates(const struct dt_diagram *diagram, const double coordinates[],
                               struct dt_point *point)
{
    uint32_t node = 0;
    *point = (struct dt_point){{0}};
    for (int i = 0; i < diagram->layer_count; i++) {
        const struct dt_layer *layer = &diagram->layers[i];
        struct edges edges = edges_of(layer, node);
        double rest = coordinates[i] * weight_of(diagram, i, node);
        uint32_t edge = edges.first;
        if (layer->shared)
            edge = (uint32_t)(coordinates[i] * layer->edges);
        for (; !layer->shared && edge + 1 < edges.end; edge++) {
            double n = weight_of(diagram, i + 1, layer->children[edge]);
            if (rest < n)
                break;
            rest -= n;
        }
        point->index[layer->axis] = layer->values[edge];
        node = child_of(layer, node, edge);
    }
}

void dt_diagram_draw(const struct dt_diagram *diagram, struct dt_rng *rng, struct dt_point *point)
{
    double coordinates[DT_AXES_MAX] = {0};
    if (diagram->count >= 0) {
        dt_diagram_at(diagram, dt_rng_below(rng, (uint64_t)diagram->count), point);
        return;
    }
    for (int i = 0; i < diagram->layer_count; i++)
        coordinates[i] = dt_rng_uniform(rng);
    dt_diagram_at_coordinates(diagram, coordinates, point);
}

/* Points that differ from a given one in exactly so many axes: a path may deviate from the given
 * values only that often, so most of the diagram is never visited. */

static const int64_t STEPS_MAX = 20000000;

static void visit_near(struct dt_near *near, int depth, uint32_t node, int changes)
{
    const struct dt_diagram *diagram = near->diagram;
    if (depth == diagram->layer_count) {
        near->found(near->context, &near->point);
        return;
    }
    const struct dt_layer *layer = &diagram->layers[depth];
    const struct edges edges = edges_of(layer, node);
    for (uint32_t edge = edges.first; edge < edges.end && near->steps < STEPS_MAX; edge++) {
        bool same = layer->values[edge] == near->from[layer->axis];
        int left = changes - !same;
        near->steps++;
        if (left < 0 || left > diagram->layer_count - depth - 1)
            continue;
        near->point.index[layer->axis] = layer->values[edge];
        visit_near(near, depth + 1, child_of(layer, node, edge), left);
    }
}

bool dt_diagram_near(struct dt_near *near, int changes)
{
    near->point = (struct dt_point){{0}};
    if (near->diagram->weight > 0)
        visit_near(near, 0, 0, changes);
    return near->steps < STEPS_MAX;
}
