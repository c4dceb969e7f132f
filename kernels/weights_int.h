/* SPDX-License-Identifier: MIT */
/* weights_int - where the values of model/tensors.h lie */
#ifndef DT_KERNELS_WEIGHTS_INT_H
#define DT_KERNELS_WEIGHTS_INT_H

#include "kernels/forward.h"
#include "model/tensors.h"

#include <stdint.h>

/* A tensor of the whole network, and one of block `block`. */
const float *dt_weights_at(const struct dt_weights *weights, int tensor);
const float *dt_weights_block(const struct dt_weights *weights, int block, int tensor);
int64_t dt_weights_bytes(const struct dt_weights *weights);

#endif
