/* SPDX-License-Identifier: MIT */
/* attention_float - attention in float32, for any head dimension up to 256:
 * simple, as a reference */
#ifndef DT_KERNELS_CUDA_ATTENTION_FLOAT_CUH
#define DT_KERNELS_CUDA_ATTENTION_FLOAT_CUH

#include "kernels/compute.h"

/* Like dt_launch_attention_ready and dt_launch_attention. */
int dt_attention_float_ready(const struct dt_attention *op);
int dt_attention_float(const struct dt_attention *op, void *stream);

#endif
