/* SPDX-License-Identifier: MIT */
/* dit_int - what the files of the built-in space share */
#ifndef DT_SPACE_DIT_INT_H
#define DT_SPACE_DIT_INT_H

#include "space/dit.h"

struct dt_dit {
    struct dt_workload workload;
    int cores, devices;
    int64_t *batches; /* ascending, without repeats */
    int batch_count;
    int tile_q_limit,
        tile_kv_limit; /* the smallest tile that holds the sequence, or the largest there is */
};

/* dt_complete of the built-in space; context is a struct dt_dit. */
void dt_dit_complete(const void *context, const struct dt_space *space, const bool named[],
                     int64_t values[]);

#endif
