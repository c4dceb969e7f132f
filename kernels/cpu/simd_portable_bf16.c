/* SPDX-License-Identifier: MIT */
/* Activations in bfloat16 on any processor: the reference for simd_bf16.c, and what fake GPUs
 * compute with. Attention goes key by key (online softmax: Milakov, Gimelshein, arXiv:1805.02867),
 * so its bits do not depend on the tile. */
#include "kernels/cpu/simd_portable_body.h"

#include "kernels/cpu/simd_vec_body.h"

#define ACT uint16_t

INLINE float widen(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* To the nearest, ties to even; what is not a number stays so. */
INLINE uint16_t narrow(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

INLINE VEC load_act_part(const uint16_t *p, int n)
{
    VEC v = {0};
    for (int i = 0; i < n; i++)
        v[i] = widen(p[i]);
    return v;
}

INLINE VEC load_act(const uint16_t *p)
{
    return load_act_part(p, LANES);
}

INLINE void store_act_part(uint16_t *p, VEC v, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = narrow(v[i]);
}

INLINE void store_act(uint16_t *p, VEC v)
{
    store_act_part(p, v, LANES);
}

#include "kernels/cpu/simd_rows_body.h"

static void narrow_row(const float *x, void *y, int n)
{
    uint16_t *to = y;
    for (int i = 0; i < n; i++)
        to[i] = narrow(x[i]);
}

/* One query over all keys. out: [D] sums of the values, divided at the end. */
static float attend_row(const struct dt_attention *op, const uint16_t *q, const uint16_t *k,
                        const uint16_t *v, float *out)
{
    float top = -FLT_MAX / 4, sum = 0, scale = 1.0f / sqrtf((float)op->head);
    memset(out, 0, (size_t)op->head * sizeof *out);
    for (int j = 0; j < op->keys; j++, k += op->kv_at.row, v += op->kv_at.row) {
        float score = 0;
        for (int d = 0; d < op->head; d++)
            score += widen(q[d]) * widen(k[d]);
        score *= scale;
        float decay = score > top ? expf(top - score) : 1;
        top = score > top ? score : top;
        float weight = expf(score - top);
        sum = sum * decay + weight;
        for (int d = 0; d < op->head; d++)
            out[d] = out[d] * decay + weight * widen(v[d]);
    }
    for (int d = 0; d < op->head; d++)
        out[d] *= sum != 0 ? 1 / sum : 0;
    return top + logf(sum);
}

static void attention_rows(const struct dt_attention *op, int sequence, int head, int first,
                           float *scratch)
{
    int count = op->queries - first < op->tile.tile_q ? op->queries - first : op->tile.tile_q;
    int64_t column = (int64_t)head * op->head;
    const uint16_t *q = (const uint16_t *)op->q + sequence * op->q_at.sequence + column;
    const uint16_t *k = (const uint16_t *)op->k + sequence * op->kv_at.sequence + column;
    const uint16_t *v = (const uint16_t *)op->v + sequence * op->kv_at.sequence + column;
    uint16_t *out = (uint16_t *)op->out + sequence * op->out_at.sequence + column;
    for (int i = first; i < first + count; i++) {
        float lse = attend_row(op, q + i * op->q_at.row, k, v, scratch);
        narrow_row(scratch, out + i * op->out_at.row, op->head);
        if (op->lse != NULL)
            op->lse[((int64_t)sequence * op->heads + head) * op->queries + i] = lse;
    }
}

const struct dt_simd dt_simd_portable_bf16 = {
    .name = "portable_bf16",
    .dtype = DT_BFLOAT16,
    .attention = attention_rows,
    .exp = exp_row,
    .activate = activate_row,
    .modulate = modulate_row,
    .residual = residual_row,
    .blend = blend_row,
    .narrow = narrow_row,
};
