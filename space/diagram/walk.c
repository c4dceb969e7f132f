/* SPDX-License-Identifier: MIT */
/* Paths through a diagram: the k-th, that of a point, a random one. */
#include "space/diagram/diagram.h"

#include <assert.h>

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

static double weight_of(const struct dt_diagram *diagram, int layer, uint32_t node)
{
    if (layer == diagram->layer_count)
        return 1;
    const struct dt_layer *row = &diagram->layers[layer];
    return row->counts != NULL ? (double)row->counts[node] : row->weights[node];
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
static uint32_t find(const struct dt_layer *layer, struct edges edges, int32_t value)
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
        uint32_t edge = find(layer, edges, point->index[layer->axis]);
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
        uint32_t edge = find(layer, edges, point->index[layer->axis]);
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
