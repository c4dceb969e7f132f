/* SPDX-License-Identifier: MIT */
/* weights_int - the network's tensors by number: the rows of tensors.def, those of a block repeated for each block */
#ifndef DT_KERNELS_WEIGHTS_INT_H
#define DT_KERNELS_WEIGHTS_INT_H

#include "kernels/forward.h"

#include <stdint.h>

enum {
#define DT_TENSOR(id, ...) id,
#define DT_BLOCK_TENSOR(id, ...)
#include "kernels/tensors.def"
    DT_TENSOR_BLOCKS, /* the first of block 0 */
    DT_TENSOR_BLOCK_START = -1,
#define DT_TENSOR(id, ...)
#define DT_BLOCK_TENSOR(id, ...) id,
#include "kernels/tensors.def"
    DT_TENSORS_OF_BLOCK
};

struct dt_tensor {
    char name[64];
    int rank;
    int64_t shape[4];
    int64_t size; /* elements */
    float scale;  /* standard deviation of seeded values */
};

int dt_tensor_count(const struct dt_network *network);
void dt_tensor_init(struct dt_tensor *tensor, const struct dt_workload *workload, int index);

/* A tensor of the whole network, and one of block `block`. */
const float *dt_weights_at(const struct dt_weights *weights, int tensor);
const float *dt_weights_block(const struct dt_weights *weights, int block, int tensor);
int64_t dt_weights_bytes(const struct dt_weights *weights);

#endif
