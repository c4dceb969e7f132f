/* SPDX-License-Identifier: MIT */
/* launch - starts the kernels of the CUDA back end: the only interface between C and CUDA C++
 *
 * Each function takes the struct of the operation with that name in kernels/compute.h, with device
 * pointers, and a stream (cudaStream_t). Returns the CUDA error of the launch as an int (0: none);
 * never waits, never allocates. Shapes are checked by the caller. 16-byte accesses where addresses
 * and widths allow, 4-byte or 2-byte ones elsewhere: every legal shape works.
 */
#ifndef DT_KERNELS_CUDA_LAUNCH_H
#define DT_KERNELS_CUDA_LAUNCH_H

#include "kernels/compute.h"

#ifdef __cplusplus
extern "C" {
#endif

int dt_launch_narrow(enum dt_dtype dtype, const float *x, void *y, int64_t n, void *stream);
int dt_launch_modulate(enum dt_dtype dtype, const struct dt_modulate *op, void *stream);
int dt_launch_merge(enum dt_dtype dtype, const struct dt_merge *op, void *stream);
int dt_launch_copy(const struct dt_copy *op, void *stream);
int dt_launch_sum(const void *data, int64_t bytes, uint64_t *sum, void *stream);
int dt_launch_sinusoid(const struct dt_sinusoid *op, void *stream);
int dt_launch_condition(const struct dt_condition *op, void *stream);
int dt_launch_position(const struct dt_position *op, void *stream);
int dt_launch_guide(const struct dt_guide *op, void *stream);
int dt_launch_sampler(const struct dt_sampler *op, void *stream);
/* x[i] = SiLU(x[i]) or GELU(x[i]) (tanh form) in place, float32: for layers without such an
 * epilogue in the library */
int dt_launch_activation(enum dt_activation act, float *x, int64_t n, void *stream);
/* Writes clock64 of one multiprocessor and globaltimer (ns): out[0], out[1]; two of them around a
 * step give its SM clock. */
int dt_launch_clock(uint64_t *out, void *stream);

/* Own attention. bfloat16: rows of model/tiles_cuda.def, head dimensions 64, 72, 88, 128, by
 * mma.sync. float32: a plain kernel for any head dimension up to 256, tiles ignored. Call ready
 * once per shape before (it raises the shared memory limit); -1: no such instance. */
int dt_launch_attention_ready(enum dt_dtype dtype, const struct dt_attention *op);
int dt_launch_attention(enum dt_dtype dtype, const struct dt_attention *op, void *stream);

/* The compiled instances, for the table of registers and occupancy, by
 * cudaFuncGetAttributes; false past the end. */
struct dt_attention_instance {
    int tile_q, tile_kv, stages, warps, head;
    int registers, shared_bytes, local_bytes, threads,
        blocks_per_sm; /* blocks_per_sm: needs a device, else 0 */
};
bool dt_attention_instance(int index, struct dt_attention_instance *out);

#ifdef __cplusplus
}
#endif
#endif
