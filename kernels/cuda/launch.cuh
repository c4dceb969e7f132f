/* SPDX-License-Identifier: MIT */
/* launch - the only way in which .cu files start a kernel, so that tests can replace it
 *
 *     return DT_LAUNCH(add<float>, blocks, threads, 0, stream, x, y, n);
 */
#ifndef DT_KERNELS_CUDA_LAUNCH_CUH
#define DT_KERNELS_CUDA_LAUNCH_CUH

#include <stdint.h>

/* The CUDA error of the launch, as an int. A name that contains a comma must be in parentheses;
 * shared: bytes of extern shared memory. */
#ifndef DT_LAUNCH
#define DT_LAUNCH(kernel, grid, block, shared, stream, ...)                                        \
    (kernel<<<(grid), (block), (shared), (cudaStream_t)(stream)>>>(__VA_ARGS__),                   \
     (int)cudaGetLastError())
#endif

/* Blocks for n pieces of work, `each` per block; at least 1, at most the limit of a grid in x.
 * Kernels that may get fewer blocks loop in steps of the whole grid. */
static inline unsigned dt_blocks(int64_t n, int64_t each)
{
    int64_t blocks = (n + each - 1) / each;
    return (unsigned)(blocks < 1 ? 1 : blocks > 0x7fffffff ? 0x7fffffff : blocks);
}

#endif
