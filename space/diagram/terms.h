/* SPDX-License-Identifier: MIT */
/* terms - the rules of a space as one set of shared expressions, each with the range of its values
 *
 * A rule is split at its conjunctions into roots, all of which must be nonzero. Equal expressions
 * are one term. Sums, products and similar operations that cannot overflow are sorted so that axes
 * bound early are adjacent: a part whose axes are all bound is then a single number.
 */
#ifndef DT_SPACE_DIAGRAM_TERMS_H
#define DT_SPACE_DIAGRAM_TERMS_H

#include "space/diagram/diagram.h"
#include "space/expr/expr_int.h"

struct dt_term {
    enum dt_expr_code
        code;        /* DT_OP_NAME: an axis; DT_OP_CALL: a derived name; DT_OP_PART: of parts[] */
    bool sound;      /* cannot fail, whatever the values of the axes */
    bool root;       /* is one of the roots */
    int left, right; /* terms, or -1 */
    int depth;       /* position of its last axis in the order; -1: a number */
    int levels;      /* arrays needed to compute it */
    uint32_t axes;
    int64_t number;    /* number, axis, derived name or part */
    int64_t low, high; /* range of its values; everything unless it is sound */
};

/* Operations of a rule whose values are no integers, or may be none: they are computed for
 * one element at a time. */
struct dt_rule_part {
    const struct dt_rule *rule;
    int first, last; /* operations */
    uint32_t axes;
};

/* One axis of a list of cases. The state before it is a node of the layer, plus one; the state
 * behind it is the child that the value leads to, plus one; 0: there is no such case. */
struct dt_case_step {
    const struct dt_layer *layer; /* its values ascend */
    const struct dt_axis *axis;
    int64_t states; /* behind it */
};
int64_t dt_case_step_next(const struct dt_case_step *step, int64_t state, int64_t value);

struct dt_terms {
    const struct dt_space *space;
    int position[DT_AXES_MAX];   /* each axis's place in the order */
    int axis_terms[DT_AXES_MAX]; /* the term of each axis */
    struct dt_term *rows;
    int count, room;
    struct dt_rule_part *parts;
    int part_count;
    struct dt_case_step *steps;
    int step_count;
    struct dt_diagram **tries; /* one for each list of cases, in the order of the axes */
    int trie_count;
    int *slots; /* a hash table of rows, plus one */
    uint32_t mask;
    int *roots;
    int root_count;
    bool failed; /* out of memory: rows must not be used */
};

/* order: the axes, first bound first. */
dt_status dt_terms_init(struct dt_terms *terms, const struct dt_space *space,
                        const int order[]) DT_MUST_CHECK;
void dt_terms_fini(struct dt_terms *terms);

/* Adds the roots of a rule. */
dt_status dt_terms_add(struct dt_terms *terms, const struct dt_rule *rule) DT_MUST_CHECK;

#endif
