/* SPDX-License-Identifier: MIT */
/* Builds the layers from the first axis to the last. */
#include "space/diagram/build.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct builder {
    struct dt_terms terms;
    int *stamps; /* for each term, the last depth at which it was visited, plus one */
    int *roots;  /* roots of one depth */
    struct dt_bound left;
    struct dt_diagram *diagram;
};

const char dt_diagram_enumerating[] = "while enumerating a space of plans";

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

/* From the last layer back to the first: counts the points below each node and drops edges that lead nowhere. */

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

/* Counts the points of the layers. */
static dt_status diagram_finish(struct dt_diagram *diagram)
{
    bool exact = true;
    for (int depth = diagram->layer_count - 1; depth >= 0; depth--)
        if (!weigh(diagram, depth, &exact))
            return dt_no_memory(dt_diagram_enumerating);
    diagram->weight = weight_of(diagram, 0, 0);
    diagram->count = exact ? (int64_t)diagram->layers[0].counts[0] : -1;
    return DT_OK;
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

/* An order of the axes that keeps few of them open (bound, and used by an undecided rule). Greedy; ties go to the order
 * in which the axes were declared. */

struct sets {
    const struct dt_space *space;
    const uint32_t *rules;
    int rule_count;
};

/* log2 of the combinations of the open axes once those in the mask are bound. */
static double width(const struct sets *sets, uint32_t bound)
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

/* Cost of binding this axis: the open combinations before it times its values, plus those after it. */
static double step(const struct sets *sets, uint32_t bound, int axis)
{
    double before = width(sets, bound) + log2(sets->space->axes[axis].count);
    return fmax(before, width(sets, bound | UINT32_C(1) << axis) + 1);
}

static double greedy(const struct sets *sets, int first, int order[])
{
    uint32_t bound = 0;
    double sum = 0;
    for (int n = 0; n < sets->space->axis_count; n++) {
        int best = -1;
        double least = INFINITY;
        for (int i = 0; i < sets->space->axis_count; i++) {
            double cost = bound >> i & 1 ? INFINITY : step(sets, bound, i);
            if (cost < least - 1e-9) {
                least = cost;
                best = i;
            }
        }
        if (n == 0) {
            least = step(sets, bound, first);
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
        double cost = greedy(&sets, first, tried);
        if (cost >= least * (1 - 1e-9))
            continue;
        least = cost;
        for (int i = 0; i < space->axis_count; i++)
            order[i] = tried[i];
    }
}

/* A diagram of given points: a node for each prefix of a point (a trie: Fredkin 1960). */

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
        status = diagram_finish(diagram);
    if (status != DT_OK) {
        dt_diagram_free(diagram);
        return status;
    }
    *out = diagram;
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

/* Points that differ from a given one in exactly so many axes: a path may deviate from the given values only that
 * often, so most of the diagram is never visited. */

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
