/* SPDX-License-Identifier: MIT */
/* rows_int - the operations of the table that consist of one kernel (kernels/compute.h defines them) */
#ifndef DT_KERNELS_CUDA_ROWS_INT_H
#define DT_KERNELS_CUDA_ROWS_INT_H

#include "kernels/compute.h"

void dt_cuda_narrow(struct dt_device *device, enum dt_dtype dtype, const float *x, void *y,
                    int64_t n);
void dt_cuda_modulate(struct dt_device *device, enum dt_dtype dtype, const struct dt_modulate *op);
void dt_cuda_merge(struct dt_device *device, enum dt_dtype dtype, const struct dt_merge *op);
void dt_cuda_copy(struct dt_device *device, const struct dt_copy *op);
void dt_cuda_sum(struct dt_device *device, const void *data, int64_t bytes, uint64_t *sum);
void dt_cuda_sinusoid(struct dt_device *device, const struct dt_sinusoid *op);
void dt_cuda_condition(struct dt_device *device, const struct dt_condition *op);
void dt_cuda_position(struct dt_device *device, const struct dt_position *op);
void dt_cuda_guide(struct dt_device *device, const struct dt_guide *op);
void dt_cuda_sampler(struct dt_device *device, const struct dt_sampler *op);

#endif
