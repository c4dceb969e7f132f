/* SPDX-License-Identifier: MIT */
/* dit_int - the built-in space while it is made, and the values of its parameters (dit_values.c) */
#ifndef DT_SPACE_DIT_DIT_INT_H
#define DT_SPACE_DIT_DIT_INT_H

#include "space/dit/dit.h"
#include "space/expr/expr.h"

/* Most values of a parameter, most rows DT_LAYOUT. */
enum { DT_DIT_VALUES = 4096, DT_DIT_LAYOUTS = 16 };

struct dt_dit {
    struct dt_workload workload;
    enum dt_on on;
    int axis[DT_PARAMS]; /* axis of each parameter; -1: the device has none */
    bool tune_nccl;
    int cores, devices;         /* on GPUs cores is how many there are */
    int hosts, slots, replicas; /* replicas: the most */
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

/* The values of a parameter that are worth trying, ascending. */
struct dt_dit_set {
    int64_t values[DT_DIT_VALUES];
    int count;
};
void dt_dit_values(const struct dt_dit *dit, int param, struct dt_dit_set *set);

/* How far a default plan grows along a degree: a divisor of the devices that remain. values: by
 * parameter; the degrees that grow earlier are set. */
int64_t dt_dit_grow(const struct dt_dit *dit, int degree, int64_t remaining,
                    const int64_t values[]);

#endif
