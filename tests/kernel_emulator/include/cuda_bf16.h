/* SPDX-License-Identifier: MIT */
/* cuda_bf16.h - bfloat16 as the kernels use it, for the emulator: 16 bits, conversions round to
 * nearest, ties to even */
#ifndef DT_TESTS_KERNEL_EMULATOR_CUDA_BF16_H
#define DT_TESTS_KERNEL_EMULATOR_CUDA_BF16_H

#include <cuda_runtime.h>

struct __nv_bfloat16_raw {
    unsigned short x;
};
struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    inline __nv_bfloat16(float value);
    inline operator float() const;
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline float __bfloat162float(__nv_bfloat16 value)
{
    return __uint_as_float((unsigned)value.bits << 16);
}
static inline unsigned short emu_bfloat16_bits(float value)
{
    unsigned bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff; /* the canonical NaN */
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
inline __nv_bfloat16::__nv_bfloat16(float value) : bits(emu_bfloat16_bits(value))
{
}
inline __nv_bfloat16::operator float() const
{
    return __bfloat162float(*this);
}
static inline __nv_bfloat16 __float2bfloat16(float value)
{
    return __nv_bfloat16(value);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float value)
{
    return __nv_bfloat16(value);
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
static inline __nv_bfloat162 __float22bfloat162_rn(float2 value)
{
    return __floats2bfloat162_rn(value.x, value.y);
}
static inline float2 __bfloat1622float2(__nv_bfloat162 value)
{
    return {__bfloat162float(value.x), __bfloat162float(value.y)};
}
static inline float __low2float(__nv_bfloat162 value)
{
    return __bfloat162float(value.x);
}
static inline float __high2float(__nv_bfloat162 value)
{
    return __bfloat162float(value.y);
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value)
{
    return value.bits;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    __nv_bfloat16 value;
    value.bits = bits;
    return value;
}

#endif
