/* SPDX-License-Identifier: MIT */
/* diagram - all feasible points of a space as paths through layers, one an axis
 *
 * What the rules still to be decided need of the axes bound so far is a few numbers, the values of those parts of the rules whose
 * axes are all bound. Two beginnings of a plan with equal numbers go on alike, so they share a node (a decision diagram: Bryant
 * 1986; with values for edges: Srinivasan, Kam, Malik, Brayton 1990). Independent axes therefore cost a sum and not a product, and a
 * node knows how many points lie below it, which is all that counting, ranking and uniform draws take.
 */
#ifndef DT_SPACE_DIAGRAM_DIAGRAM_H
#define DT_SPACE_DIAGRAM_DIAGRAM_H

#include "space/space_int.h"

/* Node n of a layer has the edges begin[n] .. begin[n + 1] - 1, by ascending value. Where an axis is free of the axes before it
 * the nodes share one list of values, and all edges of node n lead to children[n]. */
struct dt_layer {
    int axis;
    bool shared;
    uint32_t nodes;
    uint32_t *begin;    /* [nodes + 1]; NULL when shared */
    uint16_t *values;   /* indices into the axis */
    uint32_t *children; /* nodes of the next layer; 0 below the last */
    uint32_t edges;     /* values there are */
    uint64_t *counts;   /* points below each node; NULL when 62 bits do not hold them all, */
    double *weights;    /* and then their number is here */
};

struct dt_diagram {
    int layer_count;
    struct dt_layer layers[DT_AXES_MAX]; /* one an axis, in the order they were bound */
    double weight;                       /* of all points */
    int64_t count;                       /* -1: more than 62 bits hold */
};

/* What a diagram may cost; one operation on one value is one unit of work. */
struct dt_bound {
    int64_t work, edges;
};

/* Of the rules in the mask (NULL: all of them), with the axes in that order. DT_EUNSUP: it would cost more than the bound. */
dt_status dt_diagram_new(const struct dt_space *space, const int order[], const bool rules[],
                         const struct dt_bound *bound, struct dt_diagram **out) DT_MUST_CHECK;
/* Of given points, ascending and once each; axes in their order. */
dt_status dt_diagram_of(int axes, const struct dt_point points[], int64_t n,
                        struct dt_diagram **out) DT_MUST_CHECK;
void dt_diagram_free(struct dt_diagram *diagram);
size_t dt_diagram_bytes(const struct dt_diagram *diagram);

/* In the order of the diagram, last layer fastest; count must be known. */
void dt_diagram_at(const struct dt_diagram *diagram, uint64_t k, struct dt_point *point);
int64_t dt_diagram_index(const struct dt_diagram *diagram, const struct dt_point *point);
bool dt_diagram_has(const struct dt_diagram *diagram, const struct dt_point *point);
void dt_diagram_draw(const struct dt_diagram *diagram, struct dt_rng *rng, struct dt_point *point);
/* The point at coordinates in [0, 1), one a layer, through the distribution of each layer's values given those above. */
void dt_diagram_at_coordinates(const struct dt_diagram *diagram, const double coordinates[],
                               struct dt_point *point);

/* Calls found for each point that differs from `from` (indices by axis, -1: no value of it) in exactly `changes` axes. false: it
 * gave up, there are too many to look at. */
struct dt_near {
    const struct dt_diagram *diagram;
    const int32_t *from;
    void (*found)(void *context, const struct dt_point *point);
    void *context;
    struct dt_point point;
    int64_t steps; /* taken so far, over all calls */
};
bool dt_diagram_near(struct dt_near *near, int changes);

/* An order of the axes for n rules, each given by the axes it depends on. */
void dt_diagram_order(const struct dt_space *space, const uint32_t rules[], int n, int order[]);

#endif
