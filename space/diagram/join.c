/* SPDX-License-Identifier: MIT */
/* Where a rule equates a term of this axis alone with a number of the node, as in `a + b == c`, or where a list of cases goes on,
 * the matching values are looked up and not tried. */
#include "space/diagram/build.h"

#include <stdlib.h>

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
        return dt_diagram_no_memory();
    for (int i = 0; i < n; i++)
        join->allowed[picks[i]] = true;
    return DT_OK;
}

dt_status dt_join_init(struct dt_join *join, const struct dt_build_task *task,
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
        return dt_diagram_no_memory();
    const int64_t *keys = dt_block_values(block, term);
    for (int i = 0; i < block->n; i++)
        join->matches[i] = (struct dt_layer_match){.key = keys[i], .pick = picks[i]};
    qsort(join->matches, (size_t)join->n, sizeof *join->matches, by_key);
    return DT_OK;
}

void dt_join_fini(struct dt_join *join)
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

int dt_join_find(const struct dt_join *join, int64_t key, uint16_t picks[])
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
