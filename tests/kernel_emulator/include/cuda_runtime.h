/* SPDX-License-Identifier: MIT */
/* cuda_runtime.h - what kernels/cuda uses of CUDA C++, for the emulator
 * (tests/kernel_emulator/emulator.h): this file and cuda_bf16.h stand before the toolkit's.
 * Lines of barriers and warp-wide instructions are passed on, so that lanes that wait at
 * different ones are found. */
#ifndef DT_TESTS_KERNEL_EMULATOR_CUDA_RUNTIME_H
#define DT_TESTS_KERNEL_EMULATOR_CUDA_RUNTIME_H

#include "tests/kernel_emulator/emulator_int.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __constant__    static const
#define __shared__      thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __align__(n)    __attribute__((aligned(n)))
#define __launch_bounds__(...)

using std::max;
using std::min;

#define EMU_VECTOR2(name, type, bytes)                                                             \
    struct alignas(bytes) name {                                                                   \
        type x, y;                                                                                 \
    };                                                                                             \
    static inline name make_##name(type x, type y)                                                 \
    {                                                                                              \
        return {x, y};                                                                             \
    }
#define EMU_VECTOR4(name, type, bytes)                                                             \
    struct alignas(bytes) name {                                                                   \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    static inline name make_##name(type x, type y, type z, type w)                                 \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }
EMU_VECTOR2(float2, float, 8)
EMU_VECTOR2(int2, int, 8)
EMU_VECTOR2(uint2, unsigned, 8)
EMU_VECTOR2(ushort2, unsigned short, 4)
EMU_VECTOR4(float4, float, 16)
EMU_VECTOR4(int4, int, 16)
EMU_VECTOR4(uint4, unsigned, 16)
EMU_VECTOR4(ushort4, unsigned short, 8)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
};

#define threadIdx (emu_now.thread)
#define blockIdx  (emu_now.block)
#define blockDim  (emu_now.block_size)
#define gridDim   (emu_now.grid_size)
#define warpSize  32

/* The runtime, as far as launchers need it. */
typedef void *cudaStream_t;
enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorLaunchFailure = EMU_FAILED
};
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize,
    cudaFuncAttributePreferredSharedMemoryCarveout
};
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, maxDynamicSharedSizeBytes;
};
enum { cudaSharedmemCarveoutMaxShared = 100 };

/* Shared memory above 48 KiB must be requested here before a launch, as on a GPU. */
template <class F>
static inline cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute what, int value)
{
    if (what == cudaFuncAttributeMaxDynamicSharedMemorySize &&
        !emu_allow_shared((const void *)kernel, value))
        return cudaErrorInvalidValue;
    return cudaSuccess;
}
template <class F> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, F *)
{
    *out = {};
    return cudaSuccess;
}
template <class F>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, F *, int, size_t)
{
    *out = 0;
    return cudaSuccess;
}
static inline cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}
static inline cudaError_t cudaPeekAtLastError(void)
{
    return cudaSuccess;
}

/* Runs the whole grid, now. */
template <class... P> struct emu_bound {
    void (*kernel)(P...);
    std::tuple<P...> parameters;
    static void run(void *self)
    {
        emu_bound *b = static_cast<emu_bound *>(self);
        std::apply(b->kernel, b->parameters);
    }
};
template <class... P, class... A>
static inline int emu_start(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                            size_t shared, A... args)
{
    emu_bound<P...> bound = {kernel, std::tuple<P...>(static_cast<P>(args)...)};
    emu_call call = {emu_bound<P...>::run,        &bound, {grid.x, grid.y, grid.z},
                     {block.x, block.y, block.z}, shared, name,
                     (const void *)kernel};
    return emu_launch(&call);
}
#define DT_LAUNCH(kernel, grid, block, shared, stream, ...)                                        \
    ((void)(stream), emu_start(#kernel, (kernel), (grid), (block), (size_t)(shared), __VA_ARGS__))
#define DT_SHARED(type, name) type *name = (type *)emu_now.shared

#define EMU_LINE int line = __builtin_LINE()

static inline void __syncthreads(EMU_LINE)
{
    emu_barrier(line);
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, EMU_LINE)
{
    if (mask != 0xffffffffu)
        emu_fail("line %d: __syncwarp of some lanes only", line);
    emu_meet(EMU_SYNCWARP, line, nullptr, nullptr);
}

/* A shuffle of 4 or 8 bytes, a word at a time. */
template <class T> static inline T emu_shuffled(unsigned mask, T value, int lane, int line)
{
    static_assert(sizeof(T) % 4 == 0, "shuffles move words");
    uint32_t words[sizeof(T) / 4];
    memcpy(words, &value, sizeof value);
    for (uint32_t &word : words)
        word = emu_shuffle(mask, word, lane, line);
    memcpy(&value, words, sizeof value);
    return value;
}
template <class T>
static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32, EMU_LINE)
{
    int mine = emu_now.id % 32;
    return emu_shuffled(mask, value, mine / width * width + lane % width, line);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, EMU_LINE)
{
    int mine = emu_now.id % 32, from = mine ^ bits;
    return emu_shuffled(mask, value, from / width == mine / width ? from : mine, line);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, EMU_LINE)
{
    int mine = emu_now.id % 32, from = mine + (int)by;
    return emu_shuffled(mask, value, from / width == mine / width ? from : mine, line);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, EMU_LINE)
{
    int mine = emu_now.id % 32, from = mine - (int)by;
    return emu_shuffled(mask, value, from >= mine / width * width ? from : mine, line);
}
static inline unsigned __ballot_sync(unsigned mask, int value, EMU_LINE)
{
    return emu_vote(mask, value != 0, line);
}
static inline int __any_sync(unsigned mask, int value, EMU_LINE)
{
    return emu_vote(mask, value != 0, line) != 0;
}
static inline int __all_sync(unsigned mask, int value, EMU_LINE)
{
    return emu_vote(mask, value != 0, line) == 0xffffffffu;
}

template <class T> static inline T atomicAdd(T *at, T value)
{
    T before, after;
    emu_atomic_load(at, sizeof(T), &before);
    after = before + value;
    emu_atomic_store(at, sizeof(T), &after);
    return before;
}

static inline size_t __cvta_generic_to_shared(const void *at)
{
    return emu_shared_number(at);
}

/* Arithmetic. The approximate functions have the library's accuracy here; bounds in tests
 * must not count on it. */
template <class T> static inline T __ldg(const T *at)
{
    return *at;
}
/* The exponentials of a kernel's library: the host's, off by emu_exponentials
 * units in the last place. */
extern "C" int emu_exponentials;
static inline float emu_expf(float x)
{
    float y = expf(x);
    for (int i = 0; i < emu_exponentials; i++)
        y = nextafterf(y, INFINITY);
    return y;
}
static inline double emu_exp(double x)
{
    double y = exp(x);
    for (int i = 0; i < emu_exponentials; i++)
        y = nextafter(y, INFINITY);
    return y;
}
#define expf(x)   emu_expf(x)
#define exp(x)    emu_exp(x)
#define __expf(x) emu_expf(x) /* the C library declares a function of that name */
#define __logf(x) logf(x)
#define rsqrtf(x) emu_rsqrtf(x) /* of the C library since C23 */
static inline float emu_rsqrtf(float x)
{
    return (float)(1.0 / sqrt((double)x));
}
static inline float __frcp_rn(float x)
{
    return 1.0f / x;
}
static inline float __fdividef(float x, float y)
{
    return x / y;
}
static inline float __fmaf_rn(float x, float y, float z)
{
    return fmaf(x, y, z);
}
static inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline int __float_as_int(float x)
{
    return (int)__float_as_uint(x);
}
static inline float __int_as_float(int bits)
{
    return __uint_as_float((unsigned)bits);
}

/* Clocks that count launches: equal times are never read twice. */
long long clock64(void);
unsigned long long emu_globaltimer(void);

#endif
