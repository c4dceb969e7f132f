/* SPDX-License-Identifier: MIT */
/* ptx - every PTX instruction and warp intrinsic of the CUDA back end
 *
 * Section numbers are those of the PTX ISA 9.0. lane is the thread's index in its warp, group =
 * lane / 4, member = lane % 4; all 32 lanes call together unless a comment says otherwise. A shared
 * address is a number of bytes from the start of the block's shared memory (32 bits). bfloat16
 * values are passed as bits, two in a uint32_t, the lower index in the low half.
 *
 * A function added here needs a host version in tests/kernel_emulator.
 */
#ifndef DT_KERNELS_CUDA_PTX_CUH
#define DT_KERNELS_CUDA_PTX_CUH

#include <stdint.h>

#define DT_INLINE static __device__ __forceinline__

/* The block's dynamic shared memory, at a multiple of 128. Not collective. */
DT_INLINE unsigned char *dt_shared_memory(void)
{
    extern __shared__ __align__(128) unsigned char memory[];
    return memory;
}

/* The shared address of a pointer into shared memory (cvta.to.shared). Not collective. */
DT_INLINE uint32_t dt_shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* c[16, 8] += a[16, 16] b[16, 8], bfloat16 into float32: mma.m16n8k16 (9.7.14.5.8, "Matrix
 * Fragments for mma.m16n8k16 with floating point type"). A lane holds
 *   a[0]: row group,     columns 2 member, + 1        a[2]: row group,     columns 2 member + 8, + 9
 *   a[1]: row group + 8, columns 2 member, + 1        a[3]: row group + 8, columns 2 member + 8, + 9
 *   b[0]: rows 2 member, + 1, column group            b[1]: rows 2 member + 8, + 9, column group
 *   c[0], c[1]: row group, columns 2 member, + 1      c[2], c[3]: row group + 8, the same columns */
DT_INLINE void dt_mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Loads four 8x8 matrices of 16-bit elements: ldmatrix.x4 (9.7.14.5.15). Lane l gives the shared
 * address, a multiple of 16, of row l % 8 of matrix l / 8. A lane gets, of matrix i, row group,
 * columns 2 member, + 1 in out[i]. */
DT_INLINE void dt_load_matrices(uint32_t out[4], uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(shared)
                 : "memory");
}

/* The same with each matrix transposed (ldmatrix.x4.trans): rows 2 member, + 1,
 * column group in out[i]. */
DT_INLINE void dt_load_matrices_transposed(uint32_t out[4], uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(shared)
                 : "memory");
}

/* Starts a copy of 16 bytes from global to shared memory, past L1; where `take` is false 16
 * zeros are written and nothing is read: cp.async.cg with src-size (9.7.9.25.3.1). Both at
 * multiples of 16. Not collective. */
DT_INLINE void dt_copy_async(uint32_t shared, const void *global, bool take)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(shared), "l"(__cvta_generic_to_global(global)), "r"(take ? 16 : 0)
                 : "memory");
}

/* Closes the group of the copies this thread has started: cp.async.commit_group
 * (9.7.9.25.3.2). Not collective. */
DT_INLINE void dt_copy_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most PENDING of this thread's latest groups are under way: cp.async.wait_group
 * (9.7.9.25.3.3). Copies of other threads are visible after a barrier. Not collective. */
template <int PENDING> DT_INLINE void dt_copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* Stores 4 bytes, loads 16 bytes at a shared address aligned to the size: st.shared,
 * ld.shared.v4. Not collective. */
DT_INLINE void dt_store_shared4(uint32_t shared, uint32_t value)
{
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared), "r"(value) : "memory");
}

DT_INLINE uint4 dt_load_shared16(uint32_t shared)
{
    uint4 out;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
                 : "r"(shared)
                 : "memory");
    return out;
}

/* Stores 16 zero bytes. */
DT_INLINE void dt_zero_shared16(uint32_t shared)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(shared), "r"(0) : "memory");
}

/* 16 bytes of global memory at a multiple of 16: ld.global.v4, st.global.v4. Not collective. */
DT_INLINE uint4 dt_load16(const void *global)
{
    return *(const uint4 *)global;
}

DT_INLINE void dt_store16(void *global, uint4 value)
{
    *(uint4 *)global = value;
}

/* 2^x, relative error at most 2^-22; results below 2^-126 are 0: ex2.approx.ftz (9.7.3.21). 2^-inf
 * is 0. Not collective. */
DT_INLINE float dt_exp2(float x)
{
    float out;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
    return out;
}

/* Two float32 as bfloat16, rounded to nearest even: cvt.rn.bf16x2.f32
 * (9.7.9.22). Not collective. */
DT_INLINE uint32_t dt_pack_bf16(float low, float high)
{
    uint32_t out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
}

/* The value of lane (lane ^ mask): shfl.sync.bfly (9.7.9.6). */
DT_INLINE float dt_shuffle_xor(float value, int mask)
{
    return __shfl_xor_sync(0xffffffffu, value, mask);
}

/* All lanes arrive and see each other's writes: bar.warp.sync (9.7.13.3). */
DT_INLINE void dt_warp_sync(void)
{
    __syncwarp();
}

/* The number of the multiprocessor this thread runs on, and nanoseconds of a clock that all of the
 * GPU share, precise to about a microsecond: %smid, %globaltimer (10.8, 10.28). Not collective. */
DT_INLINE uint32_t dt_multiprocessor(void)
{
    uint32_t out;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(out));
    return out;
}

DT_INLINE uint64_t dt_globaltimer(void)
{
    uint64_t out;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(out));
    return out;
}

#endif
