/* SPDX-License-Identifier: MIT */
/* rng - random numbers that do not depend on the order of calls
 *
 * dt_rng_hash is a counter-based generator: the value at (seed, stream, index) is the same on every
 * rank, so a tensor is filled in parallel, or in part, without communication. struct dt_rng walks
 * along one stream. Streams are named by dt_rng_stream("blocks.0.attn.qkv.weight").
 */
#ifndef DT_BASE_RNG_H
#define DT_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a of a name (Fowler, Noll, Vo), and of bytes behind those of `hash`, which
 * begins as DT_RNG_FNV. */
#define DT_RNG_FNV UINT64_C(0xcbf29ce484222325)
uint64_t dt_rng_stream(const char *name);
uint64_t dt_rng_bytes(uint64_t hash, const void *bytes, size_t n);

/* 64 well-mixed bits; two rounds of the finaliser of SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t dt_rng_hash(uint64_t seed, uint64_t stream, uint64_t index);

struct dt_rng {
    uint64_t seed, stream, index;
};

struct dt_rng dt_rng_at(uint64_t seed, const char *stream);
uint64_t dt_rng_next(struct dt_rng *rng);
uint64_t dt_rng_below(struct dt_rng *rng, uint64_t n); /* uniform in 0..n-1, without bias; n >= 1 */
double dt_rng_uniform(struct dt_rng *rng);             /* in [0, 1) */
double dt_rng_normal(struct dt_rng *rng);              /* mean 0, variance 1 (Box, Muller 1958) */

/* out[i] = scale * u, where u is uniform with mean 0 and variance 1, for the
 * indices first .. first+n-1. */
void dt_rng_fill(float *out, size_t n, uint64_t seed, uint64_t stream, uint64_t first, float scale);

#endif
