/* SPDX-License-Identifier: MIT */
/* dit_int - what the files of the built-in space share */
#ifndef DT_SPACE_DIT_DIT_INT_H
#define DT_SPACE_DIT_DIT_INT_H

#include "space/dit/dit.h"

enum { DT_DIT_VALUES = 4096 };

struct dt_dit {
    struct dt_workload workload;
    enum dt_on on;
    int axis[DT_PARAMS]; /* of each parameter; -1: the device has none */
    int cores, devices;  /* on GPUs cores is how many there are */
    struct dt_gpus gpus;
    int64_t *batches; /* ascending, without repeats */
    int batch_count;
    int tile_q_limit,
        tile_kv_limit; /* the smallest tile that holds the sequence, or the largest there is */
    struct dt_attn_tile tile; /* the default, on GPUs */
};

/* The values of a parameter that are worth trying, ascending. */
struct dt_dit_set {
    int64_t values[DT_DIT_VALUES];
    int count;
};
void dt_dit_values(const struct dt_dit *dit, int param, struct dt_dit_set *set);

/* Own attention in bfloat16 is built for heads of so many channels. */
bool dt_dit_own_head(int head);

/* dt_complete of the built-in space; context is a struct dt_dit. */
void dt_dit_complete(const void *context, const struct dt_space *space, const bool named[],
                     int64_t values[]);

#endif
