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

/* Finds the node with given numbers, or adds it. */
struct dt_layer_merge {
    struct dt_nodes *nodes;
    bool packed; /* all numbers fit one word */
    bool direct; /* the word is small enough for an index */
    int64_t low[DT_SLOTS_MAX];
    uint64_t stride[DT_SLOTS_MAX]; /* of the packed word */
    uint64_t *words;               /* each node's packed word, or a hash */
    uint32_t room;
    uint32_t *table; /* nodes, plus one */
    uint64_t size;   /* of the table; a power of two unless direct */
};
/* pairs: how many look-ups to expect. */
dt_status dt_merge_init(struct dt_layer_merge *merge, const struct dt_terms *terms,
                        struct dt_nodes *nodes, int64_t pairs) DT_MUST_CHECK;
void dt_merge_fini(struct dt_layer_merge *merge);
/* The nodes of columns[slot][0..n-1]. */
dt_status dt_merge_find(struct dt_layer_merge *merge, const int64_t *const columns[], int n,
                        uint32_t found[]) DT_MUST_CHECK;

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
/* A sound term; valid until the next call. */
const int64_t *dt_block_values(struct dt_block *block, int term);
/* The root holds for element i; for roots that may fail. */
bool dt_block_holds(struct dt_block *block, int root, int i);

/* out[i] = a[i] code b[i]; small: all lie within 32 bits. */
void dt_vector_apply(enum dt_expr_code code, bool small, const int64_t *a, const int64_t *b,
                     int64_t *out, int n);

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

/* Index of the axis' values by a term that must equal number `slot` of the node, which may be the state of a list of cases; slot -1:
 * no such rule. */
struct dt_layer_match {
    int64_t key;
    uint16_t pick;
};
struct dt_join {
    int slot, n;
    struct dt_layer_match *matches;  /* ascending */
    const struct dt_case_step *step; /* of the cases; NULL: matches are used */
    bool *allowed;                   /* by value */
};
/* Builds the index for the block's elements, whose values are picks[]. */
dt_status dt_join_init(struct dt_join *join, const struct dt_build_task *task,
                       struct dt_block *block, const uint16_t picks[]) DT_MUST_CHECK;
void dt_join_fini(struct dt_join *join);
/* Writes the matching values, ascending; returns their number. */
int dt_join_find(const struct dt_join *join, int64_t key, uint16_t picks[]);

dt_status dt_layer_build(struct dt_build_task *task, struct dt_layer *layer) DT_MUST_CHECK;
void dt_layer_fini(struct dt_layer *layer);

/* Counts the points of the layers. */
dt_status dt_diagram_finish(struct dt_diagram *diagram) DT_MUST_CHECK;

#endif
