/* SPDX-License-Identifier: MIT */
/* cpu_int - the functions of the CPU back end, for its table */
#ifndef DT_KERNELS_CPU_CPU_INT_H
#define DT_KERNELS_CPU_CPU_INT_H

#include "kernels/compute.h"

void dt_cpu_threads(int count);
void dt_cpu_linear(const struct dt_linear *op);
void dt_cpu_modulate(const struct dt_modulate *op);
void dt_cpu_gate(const struct dt_gate *op);
void dt_cpu_attention(const struct dt_attention *op);
void dt_cpu_merge(const struct dt_merge *op);

#endif
