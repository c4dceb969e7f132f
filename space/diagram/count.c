/* SPDX-License-Identifier: MIT */
/* From the last layer back to the first: counts the points below each node and drops edges that lead nowhere. */
#include "space/diagram/build.h"

#include <stdlib.h>

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

static bool weigh(struct dt_diagram *diagram, int depth, bool *exact)
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

dt_status dt_diagram_finish(struct dt_diagram *diagram)
{
    bool exact = true;
    for (int depth = diagram->layer_count - 1; depth >= 0; depth--)
        if (!weigh(diagram, depth, &exact))
            return dt_diagram_no_memory();
    diagram->weight = weight_of(diagram, 0, 0);
    diagram->count = exact ? (int64_t)diagram->layers[0].counts[0] : -1;
    return DT_OK;
}
