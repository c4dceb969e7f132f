/* SPDX-License-Identifier: MIT */
/* Builds one layer: each node with each value of the axis, a block at a time. Rejected elements leave the block at
 * once, so that later rules have less work; the remaining ones lead to the node with their numbers in the next
 * layer. */
#include "base/array.h"
#include "space/diagram/build.h"

#include <stdlib.h>
#include <string.h>

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
    dt_join_fini(&run->join);
    dt_merge_fini(&run->merge);
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
        return dt_diagram_no_memory();
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
    const int64_t *verdicts = block->terms->rows[root].sound ? dt_block_values(block, root) : NULL;
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
        return dt_diagram_no_memory();
    memcpy(layer->values, run->allowed, (size_t)run->allowed_count * sizeof *layer->values);
    for (int k = 0; k < run->task->to->slots; k++)
        columns[k] = from->values[run->from_slot[k]];
    run->task->work += 8 * (int64_t)from->count;
    return dt_merge_find(&run->merge, columns, (int)from->count, layer->children);
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
            DT_TRY(dt_merge_find(&run->merge, columns, 1, &child));
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
            memcpy(run->keys[k], dt_block_values(&run->block, run->task->to->terms[k]),
                   (size_t)run->block.n * sizeof *run->keys[k]);
    }
    return dt_merge_find(&run->merge, columns, run->block.n, run->found);
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
        more = dt_join_find(&run->join, from->values[run->join.slot][node], run->picks + n);
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
    DT_TRY(dt_join_init(&run->join, task, &run->block, run->allowed));
    layer->begin = calloc((size_t)layer->nodes + 1, sizeof *layer->begin);
    if (layer->begin == NULL)
        return dt_diagram_no_memory();
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
        status = dt_merge_init(&run.merge, task->terms, task->to, pairs);
        if (status == DT_OK)
            status = others == 0 && projects(&run) ? share(&run) : run_blocks(&run);
    }
    task->work += run.block.work;
    fini(&run);
    if (status != DT_OK)
        dt_layer_fini(layer);
    return status;
}
