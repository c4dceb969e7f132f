/* SPDX-License-Identifier: MIT */
/* weights_int - addresses of the tensors of model/tensors.h */
#ifndef DT_KERNELS_WEIGHTS_INT_H
#define DT_KERNELS_WEIGHTS_INT_H

#include "kernels/forward.h"
#include "model/tensors.h"

#include <stdint.h>

/* The tensor of a row of the family, of that block when the row is a block's: float32, the weights
 * of linear layers packed; on the device. */
const void *dt_weights_at(const struct dt_weights *weights, int row, int block);
struct dt_device *dt_weights_device(const struct dt_weights *weights);
int64_t dt_weights_bytes(const struct dt_weights *weights);

/* The values of a tensor before they are packed; for tests. */
void dt_weights_seeded(const struct dt_workload *workload, int index, float *data);

#endif
