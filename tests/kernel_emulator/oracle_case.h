/* SPDX-License-Identifier: MIT */
/* oracle_case - what the tests of launchers share: buffers, random numbers, the CPU
 * back end beside them
 *
 * Each case runs the launcher on one set of buffers and the CPU back end on a copy. Bounds are
 * sums of roundings: both sides compute in float32, and a result kept in bfloat16 may be rounded
 * to either neighbour.
 */
#ifndef DT_TESTS_KERNEL_EMULATOR_ORACLE_CASE_H
#define DT_TESTS_KERNEL_EMULATOR_ORACLE_CASE_H

#include "base/rng.h"
#include "kernels/cuda/launch.h"
#include "tests/kernel_emulator/emulator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Half a unit in the last place, relative. */
#define ROUNDING_FLOAT    0x1p-24
#define ROUNDING_BFLOAT16 0x1p-8

static struct dt_device *cpu;
static struct dt_rng dice;

static inline int open_cpu(void **state)
{
    (void)state;
    dice = dt_rng_at(11, "rows");
    if (dt_compute_cpu.open(0, &cpu) != 0)
        return -1;
    dt_compute_cpu.threads(cpu, 1);
    return 0;
}

static inline int close_cpu(void **state)
{
    (void)state;
    dt_compute_cpu.close(cpu);
    return 0;
}

static inline float widen(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* To nearest, ties to even; NaN stays NaN. */
static inline uint16_t narrowed(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    if (isnan(value))
        return 0x7fff;
    return (uint16_t)((word + 0x7fffu + (word >> 16 & 1)) >> 16);
}

/* n random floats about `middle`, `shift` bytes past a multiple of 256. */
static inline float *floats(int64_t n, size_t shift, float middle)
{
    float *out = emu_alloc((size_t)n * sizeof *out, shift);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)dt_rng_normal(&dice) + middle;
    return out;
}

/* n random activations. */
static inline void *activations(enum dt_dtype dtype, int64_t n, size_t shift)
{
    if (dtype == DT_FLOAT32)
        return floats(n, shift, 0);
    uint16_t *out = emu_alloc((size_t)n * sizeof *out, shift);
    for (int64_t i = 0; i < n; i++)
        out[i] = narrowed((float)dt_rng_normal(&dice));
    return out;
}

static inline float active(enum dt_dtype dtype, const void *x, int64_t i)
{
    return dtype == DT_BFLOAT16 ? widen(((const uint16_t *)x)[i]) : ((const float *)x)[i];
}

static inline double rounding(enum dt_dtype dtype)
{
    return dtype == DT_BFLOAT16 ? ROUNDING_BFLOAT16 : ROUNDING_FLOAT;
}

/* The same numbers as float32 on the heap: the CPU back end need not know bfloat16. */
static inline float *wide_copy(enum dt_dtype dtype, const void *x, int64_t n)
{
    float *out = malloc((size_t)(n > 0 ? n : 1) * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        out[i] = active(dtype, x, i);
    return out;
}

static inline void ran(int code)
{
    assert_string_equal(emu_error(), "");
    assert_int_equal(code, 0);
}

static inline void near(double got, double want, double bound, const char *what, int64_t i)
{
    if (!(fabs(got - want) <= bound))
        fail_msg("%s[%lld] is %.9g, not %.9g +- %g", what, (long long)i, got, want, bound);
}

/* Requirements of every kernel over long rows: 16 bytes an access, and sectors at most twice as
 * many as needed (an access of eight floats is two of 16 bytes, each of half a sector). */
static inline void moves_well(const char *what)
{
    struct emu_tally t = emu_counts();
    printf("%s: %lld of %lld bytes read 16 at a time, %lld sectors for %lld; %lld of %lld written, "
           "%lld for %lld\n",
           what, (long long)t.load.wide, (long long)t.load.bytes, (long long)t.load.units,
           (long long)t.load.least, (long long)t.store.wide, (long long)t.store.bytes,
           (long long)t.store.units, (long long)t.store.least);
    assert_true(t.load.bytes - t.load.wide <= t.load.bytes / 50);
    assert_true(t.store.bytes - t.store.wide <= t.store.bytes / 50);
    assert_true(t.load.units <= 2 * t.load.least + 64);
    assert_true(t.store.units <= 2 * t.store.least + 64);
}

#endif
