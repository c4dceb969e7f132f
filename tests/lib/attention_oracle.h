/* SPDX-License-Identifier: MIT */
/* attention_oracle - what attention should give, in float64 from the rounded inputs, and by how
 * much a kernel may miss it
 *
 * The pointers of the struct dt_attention are the host's.
 */
#ifndef DT_TESTS_LIB_ATTENTION_ORACLE_H
#define DT_TESTS_LIB_ATTENTION_ORACLE_H

#include "kernels/compute.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Half a unit in the last place of bfloat16, relative: 8 bits. */
#define ROUNDING 0x1p-8

static inline float widen(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static inline uint16_t narrowed(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return (uint16_t)((word + 0x7fffu + (word >> 16 & 1)) >> 16);
}

static inline float get(enum dt_dtype dtype, const void *block, int64_t at)
{
    return dtype == DT_BFLOAT16 ? widen(((const uint16_t *)block)[at]) : ((const float *)block)[at];
}

static inline void set(enum dt_dtype dtype, void *block, int64_t at, float value)
{
    if (dtype == DT_BFLOAT16)
        ((uint16_t *)block)[at] = narrowed(value);
    else
        ((float *)block)[at] = value;
}

/* Where an element is: [sequence, row, head, d]. */
static inline int64_t attention_element(const struct dt_attention *op, struct dt_strides at,
                                        const int index[4])
{
    return index[0] * at.sequence + index[1] * at.row + (int64_t)index[2] * op->head + index[3];
}

/* One row of the answer, and the most by which a kernel may miss it.
 *
 * With u half a unit in the last place of the activations: a probability is rounded once
 * before it meets the values (its sum is not), the output once: u (sum p|v| + |out|). A score
 * is a sum of D products in float32, whose error moves its probability by as much, relative;
 * so do exp2 and its argument (2^-22 each of |score|, 1) and the rescaling of each tile; sums
 * over keys are in float32. */
struct answer {
    double out[256], out_error[256], lse, lse_error;
};

/* at: sequence, query, head */
static inline void attention_answer(const struct dt_attention *op, enum dt_dtype dtype,
                                    const int at[3], struct answer *a)
{
    double scale = 1 / sqrt(op->head), top = -INFINITY, sum = 0, inexact = 0;
    double *scores = malloc((size_t)(op->keys + 1) * sizeof *scores);
    for (int j = 0; j < op->keys; j++) {
        double dot = 0, size = 0;
        for (int d = 0; d < op->head; d++) {
            double product =
                (double)get(dtype, op->q,
                            attention_element(op, op->q_at, (int[4]){at[0], at[1], at[2], d})) *
                get(dtype, op->k, attention_element(op, op->kv_at, (int[4]){at[0], j, at[2], d}));
            dot += product;
            size += fabs(product);
        }
        scores[j] = dot * scale;
        top = fmax(top, scores[j]);
        inexact = fmax(inexact, scale * size * op->head * 0x1p-23 + fabs(scores[j]) * 0x1p-20);
    }
    inexact = 2 * inexact + 0x1p-20 * (1 + op->keys / 16.0);
    for (int j = 0; j < op->keys; j++)
        sum += scores[j] = exp(scores[j] - top);
    a->lse = top + log(sum);
    a->lse_error = inexact + fabs(a->lse) * 0x1p-22;
    double u = dtype == DT_BFLOAT16 ? ROUNDING : 0x1p-24;
    for (int d = 0; d < op->head; d++) {
        double out = 0, size = 0;
        for (int j = 0; j < op->keys; j++) {
            double v =
                get(dtype, op->v, attention_element(op, op->kv_at, (int[4]){at[0], j, at[2], d}));
            out += scores[j] / sum * v;
            size += scores[j] / sum * fabs(v);
        }
        a->out[d] = op->keys > 0 ? out : 0;
        a->out_error[d] = 1.01 * (u * (size + fabs(out)) + 2 * inexact * size);
    }
    free(scores);
}

#endif
