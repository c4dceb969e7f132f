/* SPDX-License-Identifier: MIT */
/* tensors - the network's parameters by number: the rows of tensors.def, those of a block repeated for each block
 *
 * Their names, shapes and the check of a weights file stand here; kernels/ holds the values. To add one, add a row.
 */
#ifndef DT_MODEL_TENSORS_H
#define DT_MODEL_TENSORS_H

#include "base/safetensors.h"
#include "model/workload.h"

#include <stdbool.h>
#include <stdint.h>

enum {
#define DT_TENSOR(id, ...) id,
#define DT_BLOCK_TENSOR(id, ...)
#include "model/tensors.def"
    DT_TENSOR_BLOCKS, /* the first of block 0 */
    DT_TENSOR_BLOCK_START = -1,
#define DT_TENSOR(id, ...)
#define DT_BLOCK_TENSOR(id, ...) id,
#include "model/tensors.def"
    DT_TENSORS_OF_BLOCK
};

struct dt_tensor {
    char name[64];
    int rank;
    int64_t shape[4];
    int64_t size; /* elements */
    bool
        linear; /* the weight of a linear layer [out, in...] : kept packed, in the workload's data type */
    int64_t bytes; /* as it is kept */
    float scale;   /* standard deviation of seeded values */
};

int dt_tensor_count(const struct dt_network *network);

/* Inputs and outputs of a linear layer's weight. */
int dt_tensor_out(const struct dt_tensor *tensor);
int dt_tensor_in(const struct dt_tensor *tensor);

/* The table of positions is that of the workload's grid; all others depend on the network only. */
void dt_tensor_init(struct dt_tensor *tensor, const struct dt_workload *workload, int index);

/* Opens a weights file whose every tensor is there, of the right shape, float32 and known. Only DT_W_POSITION may be
 * missing or have another number of tokens: the authors' table is a formula, so who needs it for another grid computes
 * it. The caller closes. DT_EIO, DT_EUSAGE, DT_ENOMEM. */
dt_status dt_tensors_open(const char *path, const struct dt_network *network,
                          struct dt_safetensors **file) DT_MUST_CHECK;

#endif
