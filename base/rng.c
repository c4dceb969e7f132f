/* SPDX-License-Identifier: MIT */
#include "base/rng.h"

#include <math.h>
#include <string.h>

static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

uint64_t dt_rng_stream(const char *name)
{
    return dt_rng_bytes(DT_RNG_FNV, name, strlen(name));
}

uint64_t dt_rng_bytes(uint64_t hash, const void *bytes, size_t n)
{
    for (const unsigned char *at = bytes; n > 0; n--, at++)
        hash = (hash ^ *at) * 0x100000001b3ULL;
    return hash;
}

uint64_t dt_rng_hash(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint64_t key = mix_bits(seed + 0x9e3779b97f4a7c15ULL) ^ stream;
    return mix_bits(mix_bits(key) + (index + 1) * 0x9e3779b97f4a7c15ULL);
}

struct dt_rng dt_rng_at(uint64_t seed, const char *stream)
{
    return (struct dt_rng){.seed = seed, .stream = dt_rng_stream(stream)};
}

uint64_t dt_rng_next(struct dt_rng *rng)
{
    return dt_rng_hash(rng->seed, rng->stream, rng->index++);
}

uint64_t dt_rng_below(struct dt_rng *rng, uint64_t n)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t bits;
    do {
        bits = dt_rng_next(rng);
    } while (bits >= limit);
    return bits % n;
}

double dt_rng_uniform(struct dt_rng *rng)
{
    return (double)(dt_rng_next(rng) >> 11) * 0x1p-53;
}

double dt_rng_normal(struct dt_rng *rng)
{
    double u = 1.0 - dt_rng_uniform(rng);
    double v = dt_rng_uniform(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

void dt_rng_fill(float *out, size_t n, uint64_t seed, uint64_t stream, uint64_t first, float scale)
{
    /* a uniform on [-a, a] has variance a^2/3 */
    float step = scale * 1.7320508f * 0x1p-31f;
    for (size_t i = 0; i < n; i++) {
        int32_t bits = (int32_t)(dt_rng_hash(seed, stream, first + i) >> 32);
        out[i] = step * ((float)bits + 0.5f);
    }
}
