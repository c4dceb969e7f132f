/* SPDX-License-Identifier: MIT */
/* build - declarations that the files that build a diagram share
 *
 * Layers are built from the first to the last, a block of (node, value) pairs at a time, each operation of a rule over
 * the whole block, so the cost of interpreting the rule is spread over a thousand pairs.
 */
#ifndef DT_SPACE_DIAGRAM_BUILD_H
#define DT_SPACE_DIAGRAM_BUILD_H

#include "space/diagram/diagram.h"
#include "space/diagram/terms.h"

enum { DT_BLOCK = 1024, DT_SLOTS_MAX = 128 };

/* The nodes of a layer while the next one is built: the numbers that distinguish them, column by column. */
struct dt_nodes {
    int slots, terms[DT_SLOTS_MAX]; /* ascending */
    uint32_t count, room;
    int64_t *values[DT_SLOTS_MAX];
};
void dt_nodes_fini(struct dt_nodes *nodes);

/* Computes terms over a block. sources[term]: existing column of a term that is not computed. */
struct dt_block {
    const struct dt_terms *terms;
    int n, room;
    const int64_t **sources;
    int64_t **columns; /* room for the results, one per level */
    int levels;
    int64_t work;
};
dt_status dt_block_init(struct dt_block *block, const struct dt_terms *terms,
                        int room) DT_MUST_CHECK;
void dt_block_fini(struct dt_block *block);

/* The root holds for element i; for roots that may fail. */
bool dt_block_holds(struct dt_block *block, int root, int i);

/* Input of building one layer. */
struct dt_build_task {
    const struct dt_terms *terms;
    int depth, axis;
    const struct dt_nodes *from; /* the nodes of this layer */
    struct dt_nodes *to;         /* the next layer's: terms set, no nodes yet */
    const int *roots;            /* roots decided here, quick ones first */
    int root_count;
    const struct dt_bound *bound; /* remaining */
    int64_t work;
};

dt_status dt_layer_build(struct dt_build_task *task, struct dt_layer *layer) DT_MUST_CHECK;
void dt_layer_fini(struct dt_layer *layer);

#endif
