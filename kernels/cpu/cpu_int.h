/* SPDX-License-Identifier: MIT */
/* cpu_int - the functions of the CPU back end, for its table */
#ifndef DT_KERNELS_CPU_CPU_INT_H
#define DT_KERNELS_CPU_CPU_INT_H

#include "kernels/compute.h"

/* device.c; put and get are the same function, since all memory is host memory. */
dt_status dt_cpu_open(int index, struct dt_device **device) DT_MUST_CHECK;
int dt_cpu_count(void);
const char *dt_cpu_model(struct dt_device *device);
dt_status dt_cpu_memory(struct dt_device *device, int64_t *free_bytes,
                        int64_t *total_bytes) DT_MUST_CHECK;
void dt_cpu_close(struct dt_device *device);
void dt_cpu_threads(struct dt_device *device, int count);
dt_status dt_cpu_alloc(struct dt_device *device, int64_t bytes, void **memory) DT_MUST_CHECK;
void dt_cpu_release(struct dt_device *device, void *memory);
dt_status dt_cpu_copy_bytes(struct dt_device *device, void *to, const void *from,
                            int64_t bytes) DT_MUST_CHECK;
void dt_cpu_fill(struct dt_device *device, void *to, int byte, int64_t bytes);
dt_status dt_cpu_finish(struct dt_device *device, int64_t deadline_ns,
                        dt_status (*check)(void *arg), void *arg) DT_MUST_CHECK;
void dt_cpu_mark(struct dt_device *device, int slot);
dt_status dt_cpu_times(struct dt_device *device, int n, int64_t ns[]) DT_MUST_CHECK;

void dt_cpu_modulate(struct dt_device *device, enum dt_dtype dtype, const struct dt_modulate *op);
void dt_cpu_position(struct dt_device *device, const struct dt_position *op);
void dt_cpu_narrow(struct dt_device *device, enum dt_dtype dtype, const float *x, void *y,
                   int64_t n);
dt_status dt_cpu_attention_ready(struct dt_device *device, enum dt_dtype dtype,
                                 const struct dt_attention *op) DT_MUST_CHECK;
void dt_cpu_attention(struct dt_device *device, enum dt_dtype dtype, const struct dt_attention *op);
void dt_cpu_merge(struct dt_device *device, enum dt_dtype dtype, const struct dt_merge *op);

/* peak.c */
dt_status dt_cpu_peak(struct dt_device *device, enum dt_dtype dtype,
                      double *flop_rate) DT_MUST_CHECK;
const struct dt_version *dt_cpu_versions(void);

#endif
