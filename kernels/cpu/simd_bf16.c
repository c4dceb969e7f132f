/* SPDX-License-Identifier: MIT */
/* Activations in bfloat16, sums in float32, by AVX-512 BF16: its dot product adds two products of
 * neighbours in each of 16 lanes, so the summed index is stored in pairs: channels of queries and
 * keys, keys of values and weights. Otherwise attention is as in simd_attention_body.h: queries in
 * the lanes, tiles of keys and values copied once into scratch. */
#include "kernels/cpu/simd.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>

#define LANES            16
#define VEC_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define VEC_MAX(a, b)    _mm512_max_ps(a, b)

#include "kernels/cpu/simd_vec_body.h"

#define ACT   uint16_t
#define ROWS  8           /* keys, or channels, of a register block */
#define WIDTH (2 * LANES) /* queries of a register block */

INLINE VEC widen(__m256i half)
{
    return (VEC)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}

INLINE VEC load_act(const uint16_t *p)
{
    return widen(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

INLINE VEC load_act_part(const uint16_t *p, int n)
{
    return widen(_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p));
}

INLINE void store_act(uint16_t *p, VEC v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, (__m256i)_mm512_cvtneps_pbh((__m512)v));
}

INLINE void store_act_part(uint16_t *p, VEC v, int n)
{
    _mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1), (__m256i)_mm512_cvtneps_pbh((__m512)v));
}

#include "kernels/cpu/simd_rows_body.h"

static void narrow_row(const float *x, void *y, int n)
{
    uint16_t *to = y;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        store_act(to + i, load(x + i));
    if (i < n)
        store_act_part(to + i, load_part(x + i, n - i), n - i);
}

/* One thread's scratch; its size is in model/layout.c. A pair is two bfloat16 in 32 bits, the
 * first in the low half. */
struct work {
    uint32_t *queries; /* [tile_q/WIDTH][channels/2][WIDTH] pairs of channels */
    float *out;        /* [tile_q/WIDTH][channels][WIDTH] outputs so far, not yet divided by sums */
    float *maxima;     /* [tile_q] of the scores so far */
    float *sums;       /* [tile_q] of 2^(score - maximum) */
    float *scores;     /* [tile_kv][WIDTH] */
    uint32_t *weights; /* [tile_kv/2][WIDTH] pairs of keys */
    uint16_t *keys;    /* [tile_kv][channels] */
    uint32_t *values;  /* [tile_kv/2][channels] pairs of keys */
    int channels;      /* D rounded up to 8 */
    int keys_here;
    float scale; /* log2(e) / sqrt(D): softmax by powers of two */
};

INLINE __m512 dot(__m512 sum, uint32_t pair, const uint32_t *vector)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32((int)pair),
                            (__m512bh)_mm512_loadu_si512(vector));
}

INLINE uint32_t pair_at(const uint16_t *p)
{
    uint32_t pair;
    memcpy(&pair, p, sizeof pair);
    return pair;
}

/* out[ROWS keys][WIDTH queries] = keys queries */
static void score_block(const struct work *work, const uint16_t *keys, const uint32_t *queries,
                        float *out)
{
    __m512 acc[ROWS][2];
    for (int r = 0; r < ROWS; r++)
        acc[r][0] = acc[r][1] = _mm512_setzero_ps();
    for (int d = 0; d < work->channels; d += 2, queries += WIDTH)
        for (int r = 0; r < ROWS; r++) {
            uint32_t pair = pair_at(keys + r * work->channels + d);
            acc[r][0] = dot(acc[r][0], pair, queries);
            acc[r][1] = dot(acc[r][1], pair, queries + LANES);
        }
    for (int r = 0; r < ROWS; r++) {
        _mm512_storeu_ps(out + r * WIDTH, acc[r][0]);
        _mm512_storeu_ps(out + r * WIDTH + LANES, acc[r][1]);
    }
}

/* out[ROWS channels][WIDTH queries] = decay out + values^T weights */
static void value_block(const struct work *work, const uint32_t *values, const float *decay,
                        float *out)
{
    __m512 acc[ROWS][2];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < 2; c++)
            acc[r][c] = (__m512)(load(out + r * WIDTH + c * LANES) * load(decay + c * LANES));
    const uint32_t *weights = work->weights;
    for (int j = 0; j < work->keys_here; j += 2, weights += WIDTH, values += work->channels)
        for (int r = 0; r < ROWS; r++) {
            acc[r][0] = dot(acc[r][0], values[r], weights);
            acc[r][1] = dot(acc[r][1], values[r], weights + LANES);
        }
    for (int r = 0; r < ROWS; r++) {
        _mm512_storeu_ps(out + r * WIDTH, acc[r][0]);
        _mm512_storeu_ps(out + r * WIDTH + LANES, acc[r][1]);
    }
}

/* 2^x for x <= 0, by the Taylor series of 2^r to r^4, |r| <= 1/2: 4e-5, a fiftieth of the
 * rounding that follows. */
INLINE __m512 power_of_two(__m512 x)
{
    __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_sub_ps(x, n), p = _mm512_set1_ps(9.61812911e-3f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.55041087e-2f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.40226507e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.93147181e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, n);
}

/* Rounded half up, as weights are not negative: low half the first, high half the second. */
INLINE __m512i join(__m512 first, __m512 second)
{
    const __m512i half = _mm512_set1_epi32(0x8000);
    __m512i a = _mm512_srli_epi32(_mm512_add_epi32((__m512i)first, half), 16);
    __m512i b = _mm512_add_epi32((__m512i)second, half);
    return _mm512_mask_blend_epi16(0xaaaaaaaau, a, b);
}

/* Weights = 2^(scale (score - new maximum)); decay[WIDTH] is the factor for
 * earlier sums and outputs. */
static void soften_scores(const struct work *work, float *maxima, float *sums, float *decay)
{
    const __m512 scale = _mm512_set1_ps(work->scale), zero = _mm512_setzero_ps();
    for (int c = 0; c < WIDTH; c += LANES) {
        const float *scores = work->scores + c;
        __m512 old = _mm512_loadu_ps(maxima + c), top = old, total = zero;
        for (int j = 0; j < work->keys_here; j++)
            top = _mm512_max_ps(_mm512_loadu_ps(scores + j * WIDTH), top);
        __m512 shift = _mm512_sub_ps(zero, _mm512_mul_ps(top, scale));
        for (int j = 0; j < work->keys_here; j += 2) {
            const float *row = scores + j * WIDTH;
            __m512 a = power_of_two(_mm512_fmadd_ps(_mm512_loadu_ps(row), scale, shift)), b = zero;
            if (j + 1 < work->keys_here)
                b = power_of_two(_mm512_fmadd_ps(_mm512_loadu_ps(row + WIDTH), scale, shift));
            _mm512_storeu_si512(work->weights + j / 2 * WIDTH + c, join(a, b));
            total = _mm512_add_ps(total, _mm512_add_ps(a, b));
        }
        __m512 fade = power_of_two(_mm512_fmadd_ps(old, scale, shift));
        _mm512_storeu_ps(decay + c, fade);
        _mm512_storeu_ps(maxima + c, top);
        _mm512_storeu_ps(sums + c, _mm512_fmadd_ps(_mm512_loadu_ps(sums + c), fade, total));
    }
}

static void split_scratch(struct work *work, const struct dt_attention *op, float *scratch)
{
    int queries = (op->tile.tile_q + 31) / 32 * 32, keys = (op->tile.tile_kv + 7) / 8 * 8;
    work->channels = (op->head + 7) / 8 * 8;
    work->scale = 1.44269504f / sqrtf((float)op->head);
    work->out = scratch;
    work->maxima = work->out + (int64_t)queries * work->channels;
    work->sums = work->maxima + queries;
    work->scores = work->sums + queries;
    work->queries = (uint32_t *)(void *)(work->scores + (int64_t)keys * WIDTH);
    work->weights = work->queries + (int64_t)queries * work->channels / 2;
    work->values = work->weights + (int64_t)keys * WIDTH / 2;
    work->keys = (uint16_t *)(work->values + (int64_t)keys * work->channels / 2);
}

/* Loads pairs of channels of `count` rows into the lanes; the rest is zero. */
static void take_queries(const struct work *work, const struct dt_attention *op, const uint16_t *q,
                         int count)
{
    int blocks = (count + WIDTH - 1) / WIDTH;
    memset(work->queries, 0, (size_t)(blocks * work->channels * WIDTH) * sizeof(uint16_t));
    memset(work->out, 0, (size_t)(blocks * work->channels * WIDTH) * sizeof(float));
    for (int i = 0; i < blocks * WIDTH; i++) {
        uint32_t *to =
            work->queries + (int64_t)(i / WIDTH) * work->channels / 2 * WIDTH + i % WIDTH;
        const uint16_t *row = q + i * op->q_at.row;
        work->maxima[i] = -FLT_MAX / 4;
        work->sums[i] = 0.0f;
        for (int d = 0; i < count && d < op->head; d += 2)
            to[d / 2 * WIDTH] = d + 1 < op->head ? pair_at(row + d) : row[d];
    }
}

/* Rows up to a multiple of ROWS and channels beyond D are zero. */
static void take_keys(const struct work *work, const struct dt_attention *op, const uint16_t *from)
{
    uint16_t *to = work->keys;
    for (int j = 0; j < (work->keys_here + ROWS - 1) / ROWS * ROWS; j++, to += work->channels) {
        int n = j < work->keys_here ? op->head : 0;
        if (n > 0)
            memcpy(to, from + j * op->kv_at.row, (size_t)n * sizeof *to);
        memset(to + n, 0, (size_t)(work->channels - n) * sizeof *to);
    }
}

static void take_values(const struct work *work, const struct dt_attention *op,
                        const uint16_t *from)
{
    uint32_t *to = work->values;
    for (int j = 0; j < work->keys_here; j += 2, to += work->channels) {
        const uint16_t *a = from + j * op->kv_at.row, *b = a + op->kv_at.row;
        bool both = j + 1 < work->keys_here;
        for (int d = 0; d < op->head; d++)
            to[d] = a[d] | (both ? (uint32_t)b[d] << 16 : 0);
        memset(to + op->head, 0, (size_t)(work->channels - op->head) * sizeof *to);
    }
}

static void attend_tile(const struct work *work, int count)
{
    float decay[WIDTH];
    for (int block = 0; block * WIDTH < count; block++) {
        int64_t at = (int64_t)block * work->channels * WIDTH;
        for (int j = 0; j < work->keys_here; j += ROWS)
            score_block(work, work->keys + (int64_t)j * work->channels, work->queries + at / 2,
                        work->scores + j * WIDTH);
        soften_scores(work, work->maxima + block * WIDTH, work->sums + block * WIDTH, decay);
        for (int d = 0; d < work->channels; d += ROWS)
            value_block(work, work->values + d, decay, work->out + at + d * WIDTH);
    }
}

static void give_out(const struct work *work, const struct dt_attention *op, int i, uint16_t *to,
                     float *lse)
{
    const float *from = work->out + (int64_t)(i / WIDTH) * work->channels * WIDTH + i % WIDTH;
    float inverse = work->sums[i] > 0.0f ? 1.0f / work->sums[i] : 0.0f;
    for (int d = 0; d < op->head; d += LANES) {
        int n = op->head - d < LANES ? op->head - d : LANES;
        float part[LANES] = {0};
        for (int k = 0; k < n; k++)
            part[k] = from[(d + k) * WIDTH] * inverse;
        store_act_part(to + d, load(part), n);
    }
    if (lse != NULL)
        *lse = work->maxima[i] / sqrtf((float)op->head) + logf(work->sums[i]);
}

static void attention_rows(const struct dt_attention *op, int sequence, int head, int first,
                           float *scratch)
{
    struct work work;
    int count = op->queries - first < op->tile.tile_q ? op->queries - first : op->tile.tile_q;
    int64_t column = (int64_t)head * op->head;
    const uint16_t *q = (const uint16_t *)op->q + sequence * op->q_at.sequence + column;
    const uint16_t *k = (const uint16_t *)op->k + sequence * op->kv_at.sequence + column;
    const uint16_t *v = (const uint16_t *)op->v + sequence * op->kv_at.sequence + column;
    uint16_t *out = (uint16_t *)op->out + sequence * op->out_at.sequence + column;
    float *lse = op->lse;
    if (lse != NULL)
        lse += ((int64_t)sequence * op->heads + head) * op->queries;
    split_scratch(&work, op, scratch);
    take_queries(&work, op, q + first * op->q_at.row, count);
    for (int j = 0; j < op->keys; j += op->tile.tile_kv) {
        work.keys_here = op->keys - j < op->tile.tile_kv ? op->keys - j : op->tile.tile_kv;
        take_keys(&work, op, k + j * op->kv_at.row);
        take_values(&work, op, v + j * op->kv_at.row);
        attend_tile(&work, count);
    }
    for (int i = first; i < first + count; i++)
        give_out(&work, op, i - first, out + i * op->out_at.row, lse != NULL ? lse + i : NULL);
}

const struct dt_simd dt_simd_bf16 = {
    .name = "avx512_bf16",
    .dtype = DT_BFLOAT16,
    .attention = attention_rows,
    .exp = exp_row,
    .activate = activate_row,
    .modulate = modulate_row,
    .residual = residual_row,
    .blend = blend_row,
    .narrow = narrow_row,
};
#endif
