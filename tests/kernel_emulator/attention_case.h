/* SPDX-License-Identifier: MIT */
/* attention_case - a call of dt_launch_attention on the emulator, and what it should give in float64 */
#ifndef DT_TESTS_KERNEL_EMULATOR_ATTENTION_CASE_H
#define DT_TESTS_KERNEL_EMULATOR_ATTENTION_CASE_H

#include "base/rng.h"
#include "kernels/cuda/launch.h"
#include "tests/kernel_emulator/emulator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Half a unit in the last place of bfloat16, relative: 8 bits. */
#define ROUNDING 0x1p-8

/* Queries and keys lie as a layer makes them: [sequence, row, (q), k, v, head, D], outputs have a gap behind each row. */
struct attention_case {
    struct dt_attention op;
    enum dt_dtype dtype;
    void *q_block, *kv_block;
    int64_t q_count, kv_count, out_count, lse_count;
};

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

static inline void *place(enum dt_dtype dtype, void *block, int64_t at)
{
    return (char *)block + at * dt_dtype_bytes(dtype);
}

/* Where an element is: [sequence, row, head, d]. */
static inline int64_t element(const struct attention_case *c, struct dt_strides at,
                              const int index[4])
{
    return index[0] * at.sequence + index[1] * at.row + (int64_t)index[2] * c->op.head + index[3];
}

/* Buffers for a call whose sizes are set in op; everything is NaN at first. */
static inline void lay_out(struct attention_case *c)
{
    struct dt_attention *op = &c->op;
    int64_t width = (int64_t)op->heads * op->head, size = dt_dtype_bytes(c->dtype);
    op->q_at = (struct dt_strides){op->queries * 3 * width, 3 * width};
    op->kv_at = (struct dt_strides){op->keys * 2 * width, 2 * width};
    op->out_at = (struct dt_strides){op->queries * (width + 8) + 16, width + 8};
    c->q_count = op->sequences * op->q_at.sequence;
    c->kv_count = op->sequences * op->kv_at.sequence;
    c->out_count = op->sequences * op->out_at.sequence;
    c->lse_count = (int64_t)op->sequences * op->heads * op->queries;
    c->q_block = emu_alloc((size_t)(c->q_count * size), 0);
    c->kv_block = emu_alloc((size_t)(c->kv_count * size), 0);
    op->out = emu_alloc((size_t)(c->out_count * size), 0);
    op->lse = emu_alloc((size_t)c->lse_count * sizeof(float), 0);
    op->q = place(c->dtype, c->q_block, width);
    op->k = c->kv_block;
    op->v = place(c->dtype, c->kv_block, width);
}

/* Sets one of q, k, v to what value says of [sequence, row, head, d]. */
static inline void fill(struct attention_case *c, const void *tensor,
                        float (*value)(void *arg, const int index[4]), void *arg)
{
    const struct dt_attention *op = &c->op;
    bool q = tensor == op->q;
    void *block = q ? c->q_block : c->kv_block;
    int64_t first = ((const char *)tensor - (char *)block) / dt_dtype_bytes(c->dtype);
    int index[4], rows = q ? op->queries : op->keys;
    for (index[0] = 0; index[0] < op->sequences; index[0]++)
        for (index[1] = 0; index[1] < rows; index[1]++)
            for (index[2] = 0; index[2] < op->heads; index[2]++)
                for (index[3] = 0; index[3] < op->head; index[3]++)
                    set(c->dtype, block, first + element(c, q ? op->q_at : op->kv_at, index),
                        value(arg, index));
}

/* Random numbers of about unit size; arg is a struct dt_rng. */
static inline float random_value(void *arg, const int index[4])
{
    (void)index;
    return (float)dt_rng_normal(arg);
}

static inline float zero_value(void *arg, const int index[4])
{
    (void)arg;
    (void)index;
    return 0.0f;
}

/* One row of the answer in float64, and the most by which a kernel may miss it.
 *
 * With u half a unit in the last place of the activations: a probability is rounded once before it meets the values (its
 * sum is not), the output once: u (sum p|v| + |out|). A score is a sum of D products in float32, whose error moves its
 * probability by as much, relative; so do exp2 and its argument (2^-22 each of |score|, 1) and the rescaling of each tile;
 * sums over keys are in float32. */
struct answer {
    double out[256], out_error[256], lse, lse_error;
};

static inline void answer_row(const struct attention_case *c, const int at[3], struct answer *a)
{
    const struct dt_attention *op = &c->op;
    double scale = 1 / sqrt(op->head), top = -INFINITY, sum = 0, inexact = 0;
    double *scores = malloc((size_t)(op->keys + 1) * sizeof *scores);
    for (int j = 0; j < op->keys; j++) {
        double dot = 0, size = 0;
        for (int d = 0; d < op->head; d++) {
            double product =
                (double)get(c->dtype, op->q,
                            element(c, op->q_at, (int[4]){at[0], at[1], at[2], d})) *
                get(c->dtype, op->k, element(c, op->kv_at, (int[4]){at[0], j, at[2], d}));
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
    double u = c->dtype == DT_BFLOAT16 ? ROUNDING : 0x1p-24;
    for (int d = 0; d < op->head; d++) {
        double out = 0, size = 0;
        for (int j = 0; j < op->keys; j++) {
            double v = get(c->dtype, op->v, element(c, op->kv_at, (int[4]){at[0], j, at[2], d}));
            out += scores[j] / sum * v;
            size += scores[j] / sum * fabs(v);
        }
        a->out[d] = out;
        a->out_error[d] = 1.01 * (u * (size + fabs(out)) + 2 * inexact * size);
    }
    free(scores);
}

/* Runs it; outputs are NaN before. */
static inline void run_case(struct attention_case *c)
{
    memset(c->op.out, 0xff, (size_t)(c->out_count * dt_dtype_bytes(c->dtype)));
    if (c->op.lse != NULL)
        memset(c->op.lse, 0xff, (size_t)c->lse_count * sizeof(float));
    emu_reset();
    int code = dt_launch_attention(c->dtype, &c->op, NULL);
    assert_string_equal(emu_error(), "");
    assert_int_equal(code, 0);
}

/* Nothing but the rows of heads was written. */
static inline void gaps_are_intact(const struct attention_case *c)
{
    const struct dt_attention *op = &c->op;
    int64_t size = dt_dtype_bytes(c->dtype), width = (int64_t)op->heads * op->head;
    for (int64_t i = 0; i < c->out_count; i++) {
        int64_t within = i % op->out_at.sequence;
        if (within / op->out_at.row < op->queries && within % op->out_at.row < width)
            continue;
        for (int64_t b = 0; b < size; b++)
            assert_int_equal(((const unsigned char *)op->out)[i * size + b], 0xff);
    }
}

#endif
