/* SPDX-License-Identifier: MIT */
/* diagram - all feasible points of a space as paths through layers, one per axis
 *
 * Undecided rules depend on the axes bound so far only through a few numbers: the values of
 * those parts of the rules whose axes are all bound. Two partial plans with equal numbers have
 * the same completions, so they share a node (a decision diagram: Bryant 1986; with values for
 * edges: Srinivasan, Kam, Malik, Brayton 1990). Independent axes therefore cost a sum and not
 * a product, and a node knows how many points lie below it, which suffices for counting,
 * ranking and uniform draws.
 */
#ifndef DT_SPACE_DIAGRAM_DIAGRAM_H
#define DT_SPACE_DIAGRAM_DIAGRAM_H

#include "space/space_int.h"

/* Node n of a layer has the edges begin[n] .. begin[n + 1] - 1, by ascending value. Where an axis
 * does not depend on the axes before it, the nodes share one list of values, and all edges of node
 * n lead to children[n]. */
struct dt_layer {
    int axis;
    bool shared;
    uint32_t nodes;
    uint32_t *begin;    /* [nodes + 1]; NULL when shared */
    uint16_t *values;   /* indices into the axis */
    uint32_t *children; /* nodes of the next layer; 0 below the last */
    uint32_t edges;     /* length of values */
    uint64_t *counts;   /* points below each node; NULL when a count exceeds 62 bits: */
    double *weights;    /* then the counts are here */
};

struct dt_diagram {
    int layer_count;
    struct dt_layer layers[DT_AXES_MAX]; /* one per axis, in binding order */
    double weight;                       /* number of all points */
    int64_t count;                       /* -1: exceeds 62 bits */
};

extern const char dt_diagram_enumerating[]; /* the words for dt_no_memory */

/* Limits of building a diagram; one operation on one value is one unit of work. */
struct dt_bound {
    int64_t work, edges;
};

/* Builds the diagram of the rules in the mask (NULL: all of them), with the axes in that order.
 * DT_EUNSUP: the bound is exceeded. */
dt_status dt_diagram_new(const struct dt_space *space, const int order[], const bool rules[],
                         const struct dt_bound *bound, struct dt_diagram **out) DT_MUST_CHECK;

/* Builds the diagram of given points, which must be ascending and distinct; axes in their order. */
dt_status dt_diagram_of(int axes, const struct dt_point points[], int64_t n,
                        struct dt_diagram **out) DT_MUST_CHECK;
void dt_diagram_free(struct dt_diagram *diagram);
DT_FREE_AT(dt_diagram_free, struct dt_diagram)
size_t dt_diagram_bytes(const struct dt_diagram *diagram);

/* The k-th point and the number of a point, in the order of the diagram, last layer fastest;
 * count must be known. */
void dt_diagram_at(const struct dt_diagram *diagram, uint64_t k, struct dt_point *point);
int64_t dt_diagram_index(const struct dt_diagram *diagram, const struct dt_point *point);
bool dt_diagram_has(const struct dt_diagram *diagram, const struct dt_point *point);
void dt_diagram_draw(const struct dt_diagram *diagram, struct dt_rng *rng, struct dt_point *point);

/* The point at coordinates in [0, 1), one per layer, by the distribution of each layer's
 * values given those above. */
void dt_diagram_at_coordinates(const struct dt_diagram *diagram, const double coordinates[],
                               struct dt_point *point);

/* Calls found for each point that differs from `from` (indices by axis, -1: no value of it) in
 * exactly `changes` axes. false: it gave up, there are too many to look at. */
struct dt_near {
    const struct dt_diagram *diagram;
    const int32_t *from;
    void (*found)(void *context, const struct dt_point *point);
    void *context;
    struct dt_point point;
    int64_t steps; /* so far, over all calls */
};
bool dt_diagram_near(struct dt_near *near, int changes);

/* An order of the axes for n rules, each given by the axes it depends on. */
void dt_diagram_order(const struct dt_space *space, const uint32_t rules[], int n, int order[]);

#endif
