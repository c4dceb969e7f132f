/* SPDX-License-Identifier: MIT */
/* Builds the layers from the first axis to the last. */
#include "space/diagram/build.h"

#include <stdlib.h>
#include <string.h>

struct builder {
    struct dt_terms terms;
    int *stamps; /* for each term, the last depth at which it was visited, plus one */
    int *roots;  /* roots of one depth */
    struct dt_bound left;
    struct dt_diagram *diagram;
};

dt_status dt_diagram_no_memory(void)
{
    return dt_fail(DT_ENOMEM, "out of memory while enumerating a space of plans");
}

void dt_diagram_free(struct dt_diagram *diagram)
{
    if (diagram == NULL)
        return;
    for (int i = 0; i < diagram->layer_count; i++)
        dt_layer_fini(&diagram->layers[i]);
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
static bool add_live(struct builder *builder, int term, int depth, struct dt_nodes *nodes)
{
    const struct dt_terms *terms = &builder->terms;
    const struct dt_term *row = &terms->rows[term];
    if (builder->stamps[term] == depth + 1 || row->code == DT_OP_NUMBER)
        return true;
    builder->stamps[term] = depth + 1;
    if (row->sound && row->depth <= depth) {
        if (nodes->slots == DT_SLOTS_MAX)
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

static int ascending(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static dt_status find_live(struct builder *builder, int depth, struct dt_nodes *nodes)
{
    const struct dt_terms *terms = &builder->terms;
    for (int i = 0; i < terms->root_count; i++)
        if (terms->rows[terms->roots[i]].depth > depth &&
            !add_live(builder, terms->roots[i], depth, nodes))
            return dt_fail(DT_EUNSUP, "the space is too large to enumerate: its rules depend on "
                                      "too much at once");
    qsort(nodes->terms, (size_t)nodes->slots, sizeof nodes->terms[0], ascending);
    return DT_OK;
}

static bool calls(const struct dt_terms *terms, int term)
{
    const struct dt_term *row = &terms->rows[term];
    return row->code == DT_OP_CALL || row->code == DT_OP_PART ||
           (row->left >= 0 && calls(terms, row->left)) ||
           (row->right >= 0 && calls(terms, row->right));
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
                cost == (calls(terms, root) ? 2 : !terms->rows[root].sound))
                builder->roots[n++] = root;
        }
    return n;
}

/* Decides the rules that depend on no axis. */
static dt_status decide_constants(struct builder *builder, bool *hold)
{
    struct dt_block block;
    *hold = true;
    DT_TRY(dt_block_init(&block, &builder->terms, 1));
    int n = find_roots(builder, -1);
    for (int i = 0; i < n; i++)
        *hold = *hold && dt_block_holds(&block, builder->roots[i], 0);
    dt_block_fini(&block);
    return DT_OK;
}

static dt_status build_layers(struct builder *builder, const int order[])
{
    struct dt_diagram *diagram = builder->diagram;
    struct dt_nodes from = {.count = 1}, to = {0};
    dt_status status = DT_OK;
    for (int depth = 0; status == DT_OK && depth < builder->terms.space->axis_count; depth++) {
        struct dt_build_task task = {.terms = &builder->terms,
                                     .depth = depth,
                                     .axis = order[depth],
                                     .from = &from,
                                     .to = &to,
                                     .roots = builder->roots,
                                     .bound = &builder->left};
        to = (struct dt_nodes){0};
        task.root_count = find_roots(builder, depth);
        status = find_live(builder, depth, &to);
        if (status == DT_OK)
            status = dt_layer_build(&task, &diagram->layers[depth]);
        if (status == DT_OK) {
            diagram->layer_count++;
            builder->left.work -= task.work;
            builder->left.edges -= diagram->layers[depth].edges;
        }
        dt_nodes_fini(&from);
        from = to;
    }
    dt_nodes_fini(&from);
    return status;
}

static dt_status build(struct builder *builder, const int order[], const bool rules[])
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
        return dt_diagram_no_memory();
    DT_TRY(decide_constants(builder, &hold));
    if (!hold || space->axis_count == 0)
        return DT_OK;
    DT_TRY(build_layers(builder, order));
    return dt_diagram_finish(builder->diagram);
}

dt_status dt_diagram_new(const struct dt_space *space, const int order[], const bool rules[],
                         const struct dt_bound *bound, struct dt_diagram **out)
{
    struct builder builder = {.left = *bound};
    DT_TRY(dt_terms_init(&builder.terms, space, order));
    dt_status status = build(&builder, order, rules);
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
