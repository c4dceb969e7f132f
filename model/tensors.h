/* SPDX-License-Identifier: MIT */
/* tensors - the network's parameters by number: the rows of its family, those of a block
 * repeated for each block
 *
 * Names, shapes and the check of a weights file; kernels/ holds the values.
 */
#ifndef DT_MODEL_TENSORS_H
#define DT_MODEL_TENSORS_H

#include "base/safetensors.h"
#include "model/family.h"
#include "model/workload.h"

#include <stdint.h>

struct dt_tensor {
    char name[64];
    int rank;
    int64_t shape[4];
    int64_t size;             /* elements */
    enum dt_tensor_kind kind; /* a linear layer's is kept packed, in the workload's data type */
    bool stacked;  /* STACKED weights or their biases: follow those of the block before in memory */
    int64_t bytes; /* in memory, packed */
    float scale;   /* standard deviation of seeded values */
};

int dt_tensor_count(const struct dt_network *network);

/* The tensor of a row of the family: of that block when the row is a block's. */
int dt_tensor_index(const struct dt_family *family, int row, int block);

/* Whether it is a linear layer's weight; its inputs and outputs. */
bool dt_tensor_is_linear(const struct dt_tensor *tensor);
int dt_tensor_out(const struct dt_tensor *tensor);
int dt_tensor_in(const struct dt_tensor *tensor);

/* The table of positions is that of the workload's grid; all others depend on the network only. */
void dt_tensor_init(struct dt_tensor *tensor, const struct dt_workload *workload, int index);

/* Opens a weights file and checks it: every tensor is present, known, float32 and of the right
 * shape. Only the table of positions may be missing or have another number of tokens: it is
 * computed. The caller closes the file. DT_EIO, DT_EUSAGE, DT_ENOMEM. */
dt_status dt_tensors_open(const char *path, const struct dt_network *network,
                          struct dt_safetensors **file) DT_MUST_CHECK;

#endif
