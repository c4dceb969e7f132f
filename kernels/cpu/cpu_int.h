/* SPDX-License-Identifier: MIT */
/* cpu_int - the functions of the CPU back end, for its table */
#ifndef DT_KERNELS_CPU_CPU_INT_H
#define DT_KERNELS_CPU_CPU_INT_H

#include "kernels/compute.h"

void dt_cpu_modulate(enum dt_dtype dtype, const struct dt_modulate *op);
void dt_cpu_narrow(enum dt_dtype dtype, const float *x, void *y, int64_t n);
void dt_cpu_attention(enum dt_dtype dtype, const struct dt_attention *op);
void dt_cpu_merge(enum dt_dtype dtype, const struct dt_merge *op);

#endif
