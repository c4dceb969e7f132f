/* SPDX-License-Identifier: MIT */
/* launch - how the .cu files start a kernel: in one way, so that tests can put another in its place
 *
 *     return DT_LAUNCH(add<float>, blocks, threads, 0, stream, x, y, n);
 */
#ifndef DT_KERNELS_CUDA_LAUNCH_CUH
#define DT_KERNELS_CUDA_LAUNCH_CUH

#include <stdint.h>

/* The CUDA error of the launch, as an int. A name with a comma in it stands in parentheses; shared: bytes of extern
 * shared memory. */
#ifndef DT_LAUNCH
#define DT_LAUNCH(kernel, grid, block, shared, stream, ...)                                        \
    (kernel<<<(grid), (block), (shared), (cudaStream_t)(stream)>>>(__VA_ARGS__),                   \
     (int)cudaGetLastError())
#endif

/* Blocks for n pieces of work, `each` a block; never 0, and as many as a grid may have in x. A kernel that can get less than
 * one block for `each` pieces goes on in steps of the whole grid. */
static inline unsigned dt_blocks(int64_t n, int64_t each)
{
    int64_t blocks = (n + each - 1) / each;
    return (unsigned)(blocks < 1 ? 1 : blocks > 0x7fffffff ? 0x7fffffff : blocks);
}

#endif
