/* SPDX-License-Identifier: MIT */
/* attention_case - a call of dt_launch_attention on the emulator */
#ifndef DT_TESTS_KERNEL_EMULATOR_ATTENTION_CASE_H
#define DT_TESTS_KERNEL_EMULATOR_ATTENTION_CASE_H

#include "base/rng.h"
#include "kernels/cuda/launch.h"
#include "tests/kernel_emulator/emulator.h"
#include "tests/lib/attention_oracle.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Queries and keys lie as a layer makes them: [sequence, row, (q), k, v, head, D], outputs have a
 * gap behind each row. */
struct attention_case {
    struct dt_attention op;
    enum dt_dtype dtype;
    void *q_block, *kv_block;
    int64_t q_count, kv_count, out_count, lse_count;
};

static inline void *place(enum dt_dtype dtype, void *block, int64_t at)
{
    return (char *)block + at * dt_dtype_bytes(dtype);
}

static inline int64_t element(const struct attention_case *c, struct dt_strides at,
                              const int index[4])
{
    return attention_element(&c->op, at, index);
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

static inline void answer_row(const struct attention_case *c, const int at[3], struct answer *a)
{
    attention_answer(&c->op, c->dtype, at, a);
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
