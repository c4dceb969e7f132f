/* SPDX-License-Identifier: MIT */
/* Points that differ from a given one in exactly so many axes: a path may deviate from the given values only that
 * often, so most of the diagram is never visited. */
#include "space/diagram/diagram.h"

static const int64_t STEPS_MAX = 20000000;

static void visit(struct dt_near *near, int depth, uint32_t node, int changes)
{
    const struct dt_diagram *diagram = near->diagram;
    if (depth == diagram->layer_count) {
        near->found(near->context, &near->point);
        return;
    }
    const struct dt_layer *layer = &diagram->layers[depth];
    uint32_t first = layer->shared ? 0 : layer->begin[node];
    uint32_t end = layer->shared ? layer->edges : layer->begin[node + 1];
    for (uint32_t edge = first; edge < end && near->steps < STEPS_MAX; edge++) {
        bool same = layer->values[edge] == near->from[layer->axis];
        int left = changes - !same;
        near->steps++;
        if (left < 0 || left > diagram->layer_count - depth - 1)
            continue;
        near->point.index[layer->axis] = layer->values[edge];
        visit(near, depth + 1, layer->children[layer->shared ? node : edge], left);
    }
}

bool dt_diagram_near(struct dt_near *near, int changes)
{
    near->point = (struct dt_point){{0}};
    if (near->diagram->weight > 0)
        visit(near, 0, 0, changes);
    return near->steps < STEPS_MAX;
}
