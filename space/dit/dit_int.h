/* SPDX-License-Identifier: MIT */
/* dit_int - shared by the files of the built-in space */
#ifndef DT_SPACE_DIT_DIT_INT_H
#define DT_SPACE_DIT_DIT_INT_H

#include "space/dit/dit.h"
#include "space/expr/expr.h"

/* Most values of a parameter, most rows DT_LAYOUT, and the constants of the workload that those may name. */
enum { DT_DIT_VALUES = 4096, DT_DIT_LAYOUTS = 16, DT_DIT_FACTS = 3 };

#define DT_HOPPER 90 /* capability 9.0 */

struct dt_dit {
    struct dt_workload workload;
    enum dt_on on;
    int axis[DT_PARAMS]; /* of each parameter; -1: the device has none */
    bool tune_nccl;
    int cores, devices; /* on GPUs cores is how many there are */
    int hosts, slots;
    struct dt_gpus gpus;
    int64_t *batches; /* ascending, without repeats */
    int batch_count;
    int tile_q_limit,
        tile_kv_limit; /* the smallest tile that holds the sequence, or the largest there is */
    struct dt_attn_tile tile; /* the default, on GPUs; so are the two below */
    int attention, graph;
    const struct dt_plan *only; /* borrowed: the space is this plan, on any machine; else NULL */
    struct dt_expr *layout[DT_DIT_LAYOUTS]; /* own */
    int layout_count;
};

/* Names that the rules about the layout may use beside the parameters, with their values: heads, tokens, guidance. */
struct dt_dit_fact {
    const char *name;
    int64_t value;
};
void dt_dit_facts(const struct dt_dit *dit, struct dt_dit_fact facts[DT_DIT_FACTS]);

/* The rules of dit's device; with `only` the rows DT_SESSION are left out. */
dt_status dt_dit_add_rules(struct dt_space *space, const struct dt_dit *dit) DT_MUST_CHECK;

/* Compiles the rules about the layout; then tests values (in axis order) against them. */
dt_status dt_dit_compile_layout(struct dt_dit *dit) DT_MUST_CHECK;
bool dt_dit_has_layout(const struct dt_dit *dit, const int64_t values[]);

/* The values of a parameter that are worth trying, ascending. */
struct dt_dit_set {
    int64_t values[DT_DIT_VALUES];
    int count;
};
void dt_dit_values(const struct dt_dit *dit, int param, struct dt_dit_set *set);

/* How far a default plan grows along a degree: a divisor of the devices that remain. values: by parameter; the degrees that
 * grow earlier are set. */
int64_t dt_dit_grow(const struct dt_dit *dit, int degree, int64_t remaining,
                    const int64_t values[]);

/* The smallest batch that the degrees can share out, or the smallest there is. */
int64_t dt_dit_smallest_batch(const struct dt_dit *dit, const int64_t values[]);

/* Own attention in bfloat16 is built for heads of so many channels. */
bool dt_dit_own_head(int head);

/* dt_complete of the built-in space; context is a struct dt_dit. */
void dt_dit_complete(const void *context, const struct dt_space *space, const bool named[],
                     int64_t values[]);

#endif
