/* SPDX-License-Identifier: MIT */
/* Builds one layer: each node with each value of the axis, a block at a time. Rejected elements leave the block at
 * once, so that later rules have less work; the remaining ones lead to the node with their numbers in the next
 * layer. */
#include "base/array.h"
#include "space/diagram/build.h"

#include <stdlib.h>
#include <string.h>

/* Finds the node with given numbers, or adds it. */
struct dt_layer_merge {
    struct dt_nodes *nodes;
    bool packed; /* all numbers fit one word */
    bool direct; /* the word is small enough for an index */
    int64_t low[DT_SLOTS_MAX];
    uint64_t stride[DT_SLOTS_MAX]; /* of the packed word */
    uint64_t *words;               /* each node's packed word, or a hash */
    uint32_t room;
    uint32_t *table; /* nodes, plus one */
    uint64_t size;   /* of the table; a power of two unless direct */
};

/* Index of the axis' values by a term that must equal number `slot` of the node, which may be the state of a list of cases; slot -1:
 * no such rule. */
struct dt_layer_match {
    int64_t key;
    uint16_t pick;
};

struct dt_join {
    int slot, n;
    struct dt_layer_match *matches;  /* ascending */
    const struct dt_case_step *step; /* of the cases; NULL: matches are used */
    bool *allowed;                   /* by value */
};

/* One operation over columns. Plain loops that the compiler vectorises; only sound terms are computed here, so nothing
 * can overflow or divide by zero. */

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

/* A sound term is computed for the whole block. A term that may fail is computed for one element at a time, with
 * short-circuit evaluation: `a == 0 || b / a > 2` must not divide where a is 0. */

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
    return dt_no_memory(dt_diagram_enumerating);
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
    vector_apply(row->code, is_small(left) && is_small(right), a, b, out, block->n);
    return out;
}

/* A sound term; valid until the next call. */
static const int64_t *block_values(struct dt_block *block, int term)
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

/* Merges nodes with equal numbers. The range of each number is known, so together they usually fit one word, and often
 * an index. */

enum { FIRST = 1024 };
static const uint64_t BYTES_MAX = 128 << 20; /* limit for the numbers of a layer's nodes */

void dt_nodes_fini(struct dt_nodes *nodes)
{
    for (int i = 0; i < nodes->slots; i++)
        free(nodes->values[i]);
    *nodes = (struct dt_nodes){0};
}

/* true: the product of the ranges is in *size. */
static bool pack(struct dt_layer_merge *merge, const struct dt_terms *terms, uint64_t *size)
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
static dt_status merge_init(struct dt_layer_merge *merge, const struct dt_terms *terms,
                            struct dt_nodes *nodes, int64_t pairs)
{
    uint64_t size = 0;
    *merge = (struct dt_layer_merge){.nodes = nodes};
    merge->packed = pack(merge, terms, &size);
    merge->direct = merge->packed && size <= 4 * (uint64_t)pairs + FIRST && size <= 1 << 24;
    merge->size = merge->direct ? size : FIRST;
    merge->table = calloc(merge->size, sizeof *merge->table);
    return merge->table != NULL ? DT_OK : dt_no_memory(dt_diagram_enumerating);
}

static void merge_fini(struct dt_layer_merge *merge)
{
    free(merge->words);
    free(merge->table);
    merge->words = NULL;
    merge->table = NULL;
}

static uint64_t mix(uint64_t word)
{
    word *= 0x9E3779B97F4A7C15u;
    word ^= word >> 32;
    word *= 0xD6E8FEB86659FD93u;
    return word ^ word >> 32;
}

static uint64_t word_of(const struct dt_layer_merge *merge, const int64_t *const columns[], int i)
{
    uint64_t word = 0;
    for (int k = 0; k < merge->nodes->slots; k++) {
        if (merge->packed)
            word += ((uint64_t)columns[k][i] - (uint64_t)merge->low[k]) * merge->stride[k];
        else
            word = mix(word ^ (uint64_t)columns[k][i]);
    }
    return word;
}

/* A word is the numbers themselves when they are packed, and a hash of them otherwise. */
static bool same(const struct dt_layer_merge *merge, uint32_t node, uint64_t word,
                 const int64_t *const columns[], int i)
{
    if (merge->words[node] != word)
        return false;
    for (int k = 0; !merge->packed && k < merge->nodes->slots; k++)
        if (merge->nodes->values[k][node] != columns[k][i])
            return false;
    return true;
}

static dt_status widen(struct dt_layer_merge *merge)
{
    uint32_t room = merge->room > 0 ? 2 * merge->room : 256;
    if ((uint64_t)room * sizeof(int64_t) * (uint64_t)(merge->nodes->slots + 1) > BYTES_MAX)
        return dt_fail(DT_EUNSUP, "the space is too large to enumerate: its rules decide too late");
    DT_TRY(DT_RESIZE(merge->words, room));
    for (int k = 0; k < merge->nodes->slots; k++)
        DT_TRY(DT_RESIZE(merge->nodes->values[k], room));
    merge->room = room;
    return DT_OK;
}

static bool rehash(struct dt_layer_merge *merge)
{
    uint64_t size = 4 * merge->size;
    uint32_t *table = calloc(size, sizeof *table);
    if (table == NULL)
        return false;
    for (uint32_t node = 0; node < merge->nodes->count; node++) {
        uint64_t at = mix(merge->words[node]) & (size - 1);
        while (table[at] != 0)
            at = (at + 1) & (size - 1);
        table[at] = node + 1;
    }
    free(merge->table);
    merge->table = table;
    merge->size = size;
    return true;
}

static dt_status add(struct dt_layer_merge *merge, uint64_t word, const int64_t *const columns[],
                     int i)
{
    if (merge->nodes->count == merge->room)
        DT_TRY(widen(merge));
    uint32_t node = merge->nodes->count++;
    merge->words[node] = word;
    for (int k = 0; k < merge->nodes->slots; k++)
        merge->nodes->values[k][node] = columns[k][i];
    return DT_OK;
}

/* The nodes of columns[slot][0..n-1]. */
static dt_status merge_find(struct dt_layer_merge *merge, const int64_t *const columns[], int n,
                            uint32_t found[])
{
    for (int i = 0; i < n; i++) {
        uint64_t word = word_of(merge, columns, i);
        if (!merge->direct && 2 * (uint64_t)merge->nodes->count >= merge->size && !rehash(merge))
            return dt_no_memory(dt_diagram_enumerating);
        uint64_t at = merge->direct ? word : mix(word) & (merge->size - 1);
        while (merge->table[at] != 0 && !merge->direct &&
               !same(merge, merge->table[at] - 1, word, columns, i))
            at = (at + 1) & (merge->size - 1);
        if (merge->table[at] == 0) {
            DT_TRY(add(merge, word, columns, i));
            merge->table[at] = merge->nodes->count;
        }
        found[i] = merge->table[at] - 1;
    }
    return DT_OK;
}

/* Where a rule equates a term of this axis alone with a number of the node, as in `a + b == c`, or where a list of cases goes on,
 * the matching values are looked up and not tried. */

static int by_key(const void *a, const void *b)
{
    const struct dt_layer_match *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->pick > y->pick) - (x->pick < y->pick);
}

static int slot_of(const struct dt_build_task *task, int term)
{
    for (int i = 0; i < task->from->slots; i++)
        if (task->from->terms[i] == term)
            return i;
    return -1;
}

/* The term of this axis that equals a slot of the nodes; -1: the root is of another kind. */
static int side(const struct dt_build_task *task, int root, int *slot)
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
static const struct dt_case_step *step_of(const struct dt_build_task *task, int *slot)
{
    for (int i = 0; i < task->root_count; i++) {
        const struct dt_term *row = &task->terms->rows[task->roots[i]];
        *slot = row->code == DT_OP_STEP ? slot_of(task, row->left) : -1;
        if (*slot >= 0)
            return &task->terms->steps[row->number];
    }
    return NULL;
}

static dt_status init_step(struct dt_join *join, int count, int n, const uint16_t picks[])
{
    join->allowed = calloc((size_t)count, sizeof *join->allowed);
    if (join->allowed == NULL)
        return dt_no_memory(dt_diagram_enumerating);
    for (int i = 0; i < n; i++)
        join->allowed[picks[i]] = true;
    return DT_OK;
}

/* Builds the index for the block's elements, whose values are picks[]. */
static dt_status join_init(struct dt_join *join, const struct dt_build_task *task,
                           struct dt_block *block, const uint16_t picks[])
{
    int term = -1;
    *join = (struct dt_join){.slot = -1};
    join->step = step_of(task, &join->slot);
    if (join->step != NULL)
        return init_step(join, join->step->axis->count, block->n, picks);
    for (int i = 0; i < task->root_count && term < 0; i++)
        term = side(task, task->roots[i], &join->slot);
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
        join->matches[i] = (struct dt_layer_match){.key = keys[i], .pick = picks[i]};
    qsort(join->matches, (size_t)join->n, sizeof *join->matches, by_key);
    return DT_OK;
}

static void join_fini(struct dt_join *join)
{
    free(join->matches);
    free(join->allowed);
    join->matches = NULL;
    join->allowed = NULL;
}

static int find_cases(const struct dt_join *join, int64_t state, uint16_t picks[])
{
    const struct dt_layer *layer = join->step->layer;
    int found = 0;
    for (uint32_t edge = layer->begin[state - 1]; edge < layer->begin[state]; edge++)
        if (join->allowed[layer->values[edge]])
            picks[found++] = layer->values[edge];
    return found;
}

/* Writes the matching values, ascending; returns their number. */
static int join_find(const struct dt_join *join, int64_t key, uint16_t picks[])
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
    struct dt_build_task *task;
    struct dt_layer *layer;
    struct dt_block block;
    struct dt_layer_merge merge;
    struct dt_join join;
    int room;
    int64_t *bound[DT_SLOTS_MAX]; /* the numbers of each element's node */
    int64_t *keys[DT_SLOTS_MAX];  /* numbers of the next node, where computed */
    int64_t *values;              /* the axis' value of each element */
    uint32_t *nodes, *found;      /* for each element: its node, the next node */
    uint16_t *picks;              /* index of each element's value */
    uint16_t *allowed;            /* values that pass the rules of this axis alone */
    int allowed_count;
    int from_slot[DT_SLOTS_MAX];  /* index of this node's number that the next node copies, or -1 */
    bool for_roots[DT_SLOTS_MAX]; /* numbers used by the roots */
    bool for_keys[DT_SLOTS_MAX];  /* numbers used for those of the next node */
};

/* The caller tries another order, or reports the error. */
static dt_status too_much(void)
{
    return dt_fail(DT_EUNSUP, "the space is too large to enumerate: its rules decide too late");
}

void dt_layer_fini(struct dt_layer *layer)
{
    free(layer->begin);
    free(layer->values);
    free(layer->children);
    free(layer->counts);
    free(layer->weights);
    *layer = (struct dt_layer){0};
}

static void fini(struct run *run)
{
    for (int i = 0; i < DT_SLOTS_MAX; i++) {
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
    dt_block_fini(&run->block);
}

static dt_status init(struct run *run)
{
    const struct dt_build_task *task = run->task;
    size_t room = (size_t)task->terms->space->axes[task->axis].count;
    room = room > DT_BLOCK ? room : DT_BLOCK;
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
    DT_TRY(dt_block_init(&run->block, task->terms, (int)room));
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
static void mark(const struct run *run, int term, bool marks[])
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
        mark(run, row->left, marks);
    if (row->right >= 0)
        mark(run, row->right, marks);
}

static void connect(struct run *run)
{
    const struct dt_build_task *task = run->task;
    for (int i = 0; i < task->root_count; i++)
        if (!is_unary(run, task->roots[i]))
            mark(run, task->roots[i], run->for_roots);
    for (int k = 0; k < task->to->slots; k++) {
        run->from_slot[k] = -1;
        for (int i = 0; i < task->from->slots; i++)
            if (task->from->terms[i] == task->to->terms[k])
                run->from_slot[k] = i;
        mark(run, task->to->terms[k], run->for_keys);
    }
}

static void gather(struct run *run, const bool wanted[])
{
    const struct dt_nodes *from = run->task->from;
    const int64_t *axis = run->task->terms->space->axes[run->task->axis].values;
    int n = run->block.n;
    for (int k = 0; k < from->slots; k++)
        for (int i = 0; wanted[k] && i < n; i++)
            run->bound[k][i] = from->values[k][run->nodes[i]];
    for (int i = 0; i < n; i++)
        run->values[i] = axis[run->picks[i]];
}

/* Drops the elements the root rejects. */
static void decide(struct run *run, int root, const bool wanted[])
{
    struct dt_block *block = &run->block;
    const int64_t *verdicts = block->terms->rows[root].sound ? block_values(block, root) : NULL;
    int kept = 0;
    for (int i = 0; i < block->n; i++) {
        bool holds = verdicts != NULL ? verdicts[i] != 0 : dt_block_holds(block, root, i);
        run->nodes[kept] = run->nodes[i];
        run->picks[kept] = run->picks[i];
        kept += holds;
    }
    bool dropped = kept < block->n;
    block->n = kept;
    if (dropped)
        gather(run, wanted);
}

/* Rules of this axis alone are decided once. Returns how many others there are. */
static int decide_alone(struct run *run)
{
    const struct dt_build_task *task = run->task;
    static const bool none[DT_SLOTS_MAX];
    int others = 0;
    run->block.n = task->terms->space->axes[task->axis].count;
    for (int i = 0; i < run->block.n; i++) {
        run->nodes[i] = 0;
        run->picks[i] = (uint16_t)i;
    }
    gather(run, none);
    for (int i = 0; i < task->root_count; i++) {
        if (is_unary(run, task->roots[i]) && run->block.n > 0)
            decide(run, task->roots[i], none);
        others += !is_unary(run, task->roots[i]);
    }
    run->allowed_count = run->block.n;
    memcpy(run->allowed, run->picks, (size_t)run->block.n * sizeof *run->allowed);
    return others;
}

static bool projects(const struct run *run)
{
    for (int k = 0; k < run->task->to->slots; k++)
        if (run->from_slot[k] < 0)
            return false;
    return true;
}

/* For an axis on which nothing below depends: all nodes share its values. */
static dt_status share(struct run *run)
{
    const struct dt_nodes *from = run->task->from;
    struct dt_layer *layer = run->layer;
    const int64_t *columns[DT_SLOTS_MAX] = {NULL};
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
    const int64_t *columns[DT_SLOTS_MAX] = {NULL};
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

static dt_status find(struct run *run)
{
    const int64_t *columns[DT_SLOTS_MAX] = {NULL};
    if (projects(run))
        return find_by_node(run);
    gather(run, run->for_keys);
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
    const struct dt_build_task *task = run->task;
    struct dt_layer *layer = run->layer;
    gather(run, run->for_roots);
    run->block.work += 4 * (int64_t)run->block.n;
    for (int i = 0; i < task->root_count && run->block.n > 0; i++)
        if (!is_unary(run, task->roots[i]))
            decide(run, task->roots[i], run->for_roots);
    if (run->block.n == 0)
        return DT_OK;
    DT_TRY(find(run));
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
static int append(struct run *run, uint32_t node, int n)
{
    const struct dt_nodes *from = run->task->from;
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
    const struct dt_build_task *task = run->task;
    struct dt_layer *layer = run->layer;
    int n = 0;
    DT_TRY(join_init(&run->join, task, &run->block, run->allowed));
    layer->begin = calloc((size_t)layer->nodes + 1, sizeof *layer->begin);
    if (layer->begin == NULL)
        return dt_no_memory(dt_diagram_enumerating);
    for (uint32_t node = 0; node < layer->nodes; node++) {
        n = append(run, node, n);
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

dt_status dt_layer_build(struct dt_build_task *task, struct dt_layer *layer)
{
    struct run run = {.task = task, .layer = layer};
    *layer = (struct dt_layer){.axis = task->axis, .nodes = task->from->count};
    dt_status status = init(&run);
    if (status == DT_OK) {
        connect(&run);
        int others = decide_alone(&run);
        int64_t pairs = (int64_t)task->from->count * run.allowed_count;
        status = merge_init(&run.merge, task->terms, task->to, pairs);
        if (status == DT_OK)
            status = others == 0 && projects(&run) ? share(&run) : run_blocks(&run);
    }
    task->work += run.block.work;
    fini(&run);
    if (status != DT_OK)
        dt_layer_fini(layer);
    return status;
}
