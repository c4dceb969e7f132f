/* SPDX-License-Identifier: MIT */
/* ptx - the host's twin of kernels/cuda/ptx.cuh: the same functions, from the PTX ISA's
 * description of each instruction
 *
 * What is wide (mma, ldmatrix, shuffles, cp.async) is in tests/kernel_emulator/warp.cpp.
 */
#ifndef DT_KERNELS_CUDA_PTX_CUH
#define DT_KERNELS_CUDA_PTX_CUH

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#define DT_INLINE static __device__ __forceinline__

DT_INLINE unsigned char *dt_shared_memory(void)
{
    return emu_now.shared;
}

DT_INLINE uint32_t dt_shared_address(const void *pointer)
{
    return emu_shared_number(pointer);
}

DT_INLINE void dt_mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2], EMU_LINE)
{
    emu_mma_bf16(c, a, b, line);
}

DT_INLINE void dt_load_matrices(uint32_t out[4], uint32_t shared, EMU_LINE)
{
    emu_ldmatrix(out, emu_shared_pointer(shared), false, line);
}

DT_INLINE void dt_load_matrices_transposed(uint32_t out[4], uint32_t shared, EMU_LINE)
{
    emu_ldmatrix(out, emu_shared_pointer(shared), true, line);
}

DT_INLINE void dt_copy_async(uint32_t shared, const void *global, bool take)
{
    emu_cp_async(emu_shared_pointer(shared), global, take ? 16 : 0);
}

DT_INLINE void dt_copy_commit(void)
{
    emu_cp_async_commit();
}

template <int PENDING> DT_INLINE void dt_copy_wait(void)
{
    emu_cp_async_wait(PENDING);
}

DT_INLINE void dt_store_shared4(uint32_t shared, uint32_t value)
{
    *(uint32_t *)emu_shared_pointer(shared) = value;
}

DT_INLINE uint4 dt_load_shared16(uint32_t shared)
{
    return *(const uint4 *)emu_shared_pointer(shared);
}

DT_INLINE void dt_zero_shared16(uint32_t shared)
{
    *(uint4 *)emu_shared_pointer(shared) = make_uint4(0, 0, 0, 0);
}

DT_INLINE uint4 dt_load16(const void *global)
{
    return *(const uint4 *)global;
}

DT_INLINE void dt_store16(void *global, uint4 value)
{
    *(uint4 *)global = value;
}

/* Results below 2^-126 are 0 (9.7.3.21). */
DT_INLINE float dt_exp2(float x)
{
    float value = exp2f(x);
    return value < 0x1p-126f ? 0.0f : value;
}

DT_INLINE uint32_t dt_pack_bf16(float low, float high)
{
    return emu_bfloat16_bits(low) | (uint32_t)emu_bfloat16_bits(high) << 16;
}

DT_INLINE float dt_shuffle_xor(float value, int mask, EMU_LINE)
{
    return __shfl_xor_sync(0xffffffffu, value, mask, 32, line);
}

DT_INLINE void dt_warp_sync(EMU_LINE)
{
    __syncwarp(0xffffffffu, line);
}

/* Every block runs on a multiprocessor of its own. */
DT_INLINE uint32_t dt_multiprocessor(void)
{
    return blockIdx.x;
}

DT_INLINE uint64_t dt_globaltimer(void)
{
    return emu_globaltimer();
}

#endif
