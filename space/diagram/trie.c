/* SPDX-License-Identifier: MIT */
/* A diagram of given points: a node for each prefix of a point (a trie: Fredkin 1960). */
#include "space/diagram/build.h"

#include <stdlib.h>

/* The point differs from the one before it in the first `length` values. */
static bool begins(const struct dt_point points[], int64_t k, int length)
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
        layer->nodes += begins(points, k, axis);
        layer->edges += begins(points, k, axis + 1);
    }
    layer->begin = calloc((size_t)layer->nodes + 2, sizeof *layer->begin);
    layer->values = calloc((size_t)layer->edges + 1, sizeof *layer->values);
    layer->children = calloc((size_t)layer->edges + 1, sizeof *layer->children);
    if (layer->begin == NULL || layer->values == NULL || layer->children == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a space of %lld plans", (long long)n);
    uint32_t node = 0, edge = 0;
    for (int64_t k = 0; k < n; k++) {
        node += begins(points, k, axis);
        if (!begins(points, k, axis + 1))
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
    struct dt_diagram *diagram = calloc(1, sizeof *diagram);
    if (diagram == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a space of %lld plans", (long long)n);
    dt_status status = DT_OK;
    while (status == DT_OK && diagram->layer_count < axes)
        status = add_layer(diagram, axes, points, n);
    if (status == DT_OK && axes > 0)
        status = dt_diagram_finish(diagram);
    if (status != DT_OK) {
        dt_diagram_free(diagram);
        return status;
    }
    *out = diagram;
    return DT_OK;
}
