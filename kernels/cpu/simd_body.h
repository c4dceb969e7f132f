/* SPDX-License-Identifier: MIT */
/* simd_body - the vector kernels, included once by each simd_<name>.c
 *
 * The includer defines LANES (floats of a vector), ROWS (keys, or channels, of a register block; divides 8),
 * VEC_FMA(a, b, c), VEC_MAX(a, b) (b when either is not a number), and SIMD and SIMD_NAME, the table and its name.
 *
 * Attention keeps queries in the lanes: scores are computed transposed, [keys, queries], so that row maxima and sums
 * need no shuffles, K and V are read by broadcast in the order they lie, and any D works without masks. A tile of
 * keys and values is copied once into scratch, where rows are adjacent whatever the stride of the tensor was.
 */
#include "kernels/cpu/simd.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define VEC    float __attribute__((vector_size(LANES * 4)))
#define IVEC   int32_t __attribute__((vector_size(LANES * 4)))
#define COLS   2              /* vectors of a register block */
#define WIDTH  (COLS * LANES) /* queries of a register block */
#define INLINE static inline __attribute__((always_inline))

INLINE VEC load(const float *p)
{
    VEC v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void store(float *p, VEC v)
{
    memcpy(p, &v, sizeof v);
}

/* The first n lanes; the rest are zero. */
INLINE VEC load_part(const float *p, int n)
{
    VEC v = {0};
    memcpy(&v, p, (size_t)n * sizeof *p);
    return v;
}

INLINE void store_part(float *p, VEC v, int n)
{
    memcpy(p, &v, (size_t)n * sizeof *p);
}

INLINE VEC splat(float x)
{
    VEC zero = {0};
    return zero + x;
}

/* e^x = 2^n e^r with |r| <= ln(2)/2, e^r by the polynomial of Cephes expf (Moshier). n is rounded by adding 1.5 * 2^23,
 * which leaves it in the low bits. */
INLINE VEC exp_vec(VEC x)
{
    const float magic = 12582912.0f;
    x = VEC_MAX(splat(-87.0f), x); /* in this order not-a-number goes through */
    x = -VEC_MAX(splat(-88.0f), -x);
    VEC shifted = VEC_FMA(x, splat(1.44269504088896341f), splat(magic));
    VEC n = shifted - magic;
    VEC r = VEC_FMA(n, splat(-0.693359375f), x);
    r = VEC_FMA(n, splat(2.12194440e-4f), r);
    VEC p = splat(1.9875691500e-4f);
    p = VEC_FMA(p, r, splat(1.3981999507e-3f));
    p = VEC_FMA(p, r, splat(8.3334519073e-3f));
    p = VEC_FMA(p, r, splat(4.1665795894e-2f));
    p = VEC_FMA(p, r, splat(1.6666665459e-1f));
    p = VEC_FMA(p, r, splat(5.0000001201e-1f));
    p = VEC_FMA(p, r * r, r) + 1.0f;
    IVEC bits, power;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&power, &shifted, sizeof power);
    bits += power << 23;
    memcpy(&p, &bits, sizeof p);
    return p;
}

INLINE float sum(VEC v)
{
    float lanes[LANES];
    store(lanes, v);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lanes[i] += lanes[i + width];
    return lanes[0];
}

static void exp_row(const float *x, float *y, int n)
{
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        store(y + i, exp_vec(load(x + i)));
    if (i < n)
        store_part(y + i, exp_vec(load_part(x + i, n - i)), n - i);
}

/* tanh-GELU is x sigmoid(2u) with u = sqrt(2/pi) (x + 0.044715 x^3): no cancellation, one exponential. */
INLINE VEC gelu(VEC x)
{
    VEC cubic = VEC_FMA(x * x, splat(0.044715f), splat(1.0f));
    return x / (exp_vec(x * cubic * -1.5957691216057308f) + 1.0f);
}

INLINE VEC silu(VEC x)
{
    return x / (exp_vec(-x) + 1.0f);
}

INLINE VEC act_vec(VEC x, enum dt_activation act)
{
    if (act == DT_ACT_GELU)
        return gelu(x);
    return act == DT_ACT_SILU ? silu(x) : x;
}

INLINE void activate_as(float *y, const float *bias, int n, enum dt_activation act)
{
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        store(y + i, act_vec(load(y + i) + load(bias + i), act));
    if (i < n)
        store_part(y + i, act_vec(load_part(y + i, n - i) + load_part(bias + i, n - i), act),
                   n - i);
}

static void activate_row(float *y, const float *bias, int n, enum dt_activation act)
{
    if (act == DT_ACT_NONE)
        activate_as(y, bias, n, DT_ACT_NONE);
    else if (act == DT_ACT_GELU)
        activate_as(y, bias, n, DT_ACT_GELU);
    else
        activate_as(y, bias, n, DT_ACT_SILU);
}

/* Mean first, then the variance about it: the one-pass formula cancels. */
static void modulate_row(const float *x, const float *shift, const float *scale, float *y, int n)
{
    VEC total = {0}, squares = {0};
    int whole = n / LANES * LANES, rest = n - whole;
    for (int i = 0; i < whole; i += LANES)
        total += load(x + i);
    total += load_part(x + whole, rest);
    float mean = sum(total) / (float)n;
    for (int i = 0; i < whole; i += LANES) {
        VEC apart = load(x + i) - mean;
        squares = VEC_FMA(apart, apart, squares);
    }
    float variance = sum(squares);
    for (int i = whole; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean);
    float inverse = 1.0f / sqrtf(variance / (float)n + 1e-6f);
    for (int i = 0; i < whole; i += LANES) {
        VEC unit = (load(x + i) - mean) * inverse;
        store(y + i, VEC_FMA(unit, load(scale + i) + 1.0f, load(shift + i)));
    }
    for (int i = whole; i < n; i++)
        y[i] = (x[i] - mean) * inverse * (1.0f + scale[i]) + shift[i];
}

static void gate_row(float *x, const float *y, const float *gate, int n)
{
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        store(x + i, VEC_FMA(load(gate + i), load(y + i), load(x + i)));
    for (; i < n; i++)
        x[i] += gate[i] * y[i];
}

static void blend_row(float *x, float a, const float *y, float b, int n)
{
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        store(x + i, VEC_FMA(splat(b), load(y + i), load(x + i) * a));
    for (; i < n; i++)
        x[i] = a * x[i] + b * y[i];
}

/* One thread's scratch; model/layout.c says how large. */
struct work {
    float *queries; /* [tile_q/WIDTH][channels][WIDTH] scaled queries */
    float *out;     /* the same shape: outputs so far, not yet divided by sums */
    float *maxima;  /* [tile_q] of the scores so far */
    float *sums;    /* [tile_q] of exp(score - maximum) */
    float *scores;  /* [tile_kv][WIDTH] */
    float *keys;    /* [tile_kv][channels] */
    float *values;  /* [tile_kv][channels] */
    int channels;   /* D rounded up to 8 */
    int keys_here;
};

/* out[ROWS keys][WIDTH queries] = keys queries */
static void score_block(const float *keys, int64_t stride, int head, const float *queries,
                        float *out)
{
    VEC acc[ROWS][COLS] = {0};
    for (int d = 0; d < head; d++) {
        VEC q0 = load(queries + d * WIDTH), q1 = load(queries + d * WIDTH + LANES);
        for (int r = 0; r < ROWS; r++) {
            VEC k = splat(keys[r * stride + d]);
            acc[r][0] = VEC_FMA(k, q0, acc[r][0]);
            acc[r][1] = VEC_FMA(k, q1, acc[r][1]);
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            store(out + r * WIDTH + c * LANES, acc[r][c]);
}

/* out[ROWS channels][WIDTH queries] = decay out + values^T scores */
static void value_block(const struct work *work, const float *values, const float *decay,
                        float *out)
{
    VEC acc[ROWS][COLS];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            acc[r][c] = load(out + r * WIDTH + c * LANES) * load(decay + c * LANES);
    for (int j = 0; j < work->keys_here; j++) {
        const float *row = values + (int64_t)j * work->channels;
        VEC p0 = load(work->scores + j * WIDTH), p1 = load(work->scores + j * WIDTH + LANES);
        for (int r = 0; r < ROWS; r++) {
            VEC v = splat(row[r]);
            acc[r][0] = VEC_FMA(v, p0, acc[r][0]);
            acc[r][1] = VEC_FMA(v, p1, acc[r][1]);
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            store(out + r * WIDTH + c * LANES, acc[r][c]);
}

/* Scores become exp(score - new maximum); decay[WIDTH] is what earlier sums and outputs are multiplied by. */
static void soften(float *scores, int keys, float *maxima, float *sums, float *decay)
{
    for (int c = 0; c < WIDTH; c += LANES) {
        VEC old = load(maxima + c), top = old, total = {0};
        for (int j = 0; j < keys; j++)
            top = VEC_MAX(load(scores + j * WIDTH + c), top);
        for (int j = 0; j < keys; j++) {
            VEC p = exp_vec(load(scores + j * WIDTH + c) - top);
            store(scores + j * WIDTH + c, p);
            total += p;
        }
        VEC scale = exp_vec(old - top);
        store(decay + c, scale);
        store(maxima + c, top);
        store(sums + c, VEC_FMA(load(sums + c), scale, total));
    }
}

static void split(struct work *work, const struct dt_attention *op, float *scratch)
{
    int queries = (op->tile_q + 31) / 32 * 32, keys = (op->tile_kv + 7) / 8 * 8;
    work->channels = (op->head + 7) / 8 * 8;
    work->queries = scratch;
    work->out = work->queries + (int64_t)queries * work->channels;
    work->maxima = work->out + (int64_t)queries * work->channels;
    work->sums = work->maxima + queries;
    work->scores = work->sums + queries;
    work->keys = work->scores + (int64_t)keys * 32;
    work->values = work->keys + (int64_t)keys * work->channels;
}

/* Transposes and scales the queries; lanes beyond count are zero. */
static void take_queries(const struct work *work, const struct dt_attention *op, const float *q,
                         int count)
{
    float scale = 1.0f / sqrtf((float)op->head);
    for (int i = 0; i < (count + WIDTH - 1) / WIDTH * WIDTH; i++) {
        const float *row = q + i * op->q_at.row;
        float *to = work->queries + (int64_t)(i / WIDTH) * work->channels * WIDTH + i % WIDTH;
        for (int d = 0; d < op->head; d++)
            to[d * WIDTH] = i < count ? row[d] * scale : 0.0f;
        work->maxima[i] = -FLT_MAX / 4;
        work->sums[i] = 0.0f;
    }
    int64_t blocks = (count + WIDTH - 1) / WIDTH;
    memset(work->out, 0, (size_t)(blocks * work->channels * WIDTH) * sizeof(float));
}

/* Copies a tile; rows up to a multiple of ROWS and channels beyond D are zero. */
static void take_tile(const struct work *work, const struct dt_attention *op, const float *from,
                      float *to)
{
    int rows = (work->keys_here + ROWS - 1) / ROWS * ROWS;
    size_t pad = (size_t)(work->channels - op->head) * sizeof(float);
    for (int j = 0; j < rows; j++, to += work->channels) {
        if (j >= work->keys_here) {
            memset(to, 0, (size_t)work->channels * sizeof(float));
            continue;
        }
        memcpy(to, from + j * op->kv_at.row, (size_t)op->head * sizeof(float));
        memset(to + op->head, 0, pad);
    }
}

static void attend_tile(const struct work *work, const struct dt_attention *op, int count)
{
    float decay[WIDTH];
    for (int block = 0; block * WIDTH < count; block++) {
        int64_t at = (int64_t)block * work->channels * WIDTH;
        for (int j = 0; j < work->keys_here; j += ROWS)
            score_block(work->keys + (int64_t)j * work->channels, work->channels, op->head,
                        work->queries + at, work->scores + j * WIDTH);
        soften(work->scores, work->keys_here, work->maxima + block * WIDTH,
               work->sums + block * WIDTH, decay);
        for (int d = 0; d < work->channels; d += ROWS)
            value_block(work, work->values + d, decay, work->out + at + d * WIDTH);
    }
}

static void attention_rows(const struct dt_attention *op, int sequence, int head, int first,
                           float *scratch)
{
    struct work work;
    int count = op->queries - first < op->tile_q ? op->queries - first : op->tile_q;
    int64_t column = (int64_t)head * op->head;
    const float *k = op->k + sequence * op->kv_at.sequence + column;
    const float *v = op->v + sequence * op->kv_at.sequence + column;
    split(&work, op, scratch);
    take_queries(&work, op, op->q + sequence * op->q_at.sequence + first * op->q_at.row + column,
                 count);
    for (int j = 0; j < op->keys; j += op->tile_kv) {
        work.keys_here = op->keys - j < op->tile_kv ? op->keys - j : op->tile_kv;
        take_tile(&work, op, k + j * op->kv_at.row, work.keys);
        take_tile(&work, op, v + j * op->kv_at.row, work.values);
        attend_tile(&work, op, count);
    }
    for (int i = 0; i < count; i++) {
        const float *from = work.out + (int64_t)(i / WIDTH) * work.channels * WIDTH + i % WIDTH;
        float *to =
            op->out + sequence * op->out_at.sequence + (first + i) * op->out_at.row + column;
        float inverse = work.sums[i] > 0.0f ? 1.0f / work.sums[i] : 0.0f;
        for (int d = 0; d < op->head; d++)
            to[d] = from[d * WIDTH] * inverse;
        if (op->lse != NULL)
            op->lse[((int64_t)sequence * op->heads + head) * op->queries + first + i] =
                work.maxima[i] + logf(work.sums[i]);
    }
}

const struct dt_simd SIMD = {
    .name = SIMD_NAME,
    .attention = attention_rows,
    .exp = exp_row,
    .activate = activate_row,
    .modulate = modulate_row,
    .gate = gate_row,
    .blend = blend_row,
};
