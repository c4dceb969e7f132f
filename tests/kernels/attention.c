/* SPDX-License-Identifier: MIT */
/* Attention of every instruction set this processor has, against plain float64 formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernels/cpu/simd.h"
#include "model/family.h"
#include "tests/kernels/values.h"
#include "tests/lib/dose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    int sequences, heads, head, queries, keys, tile_q, tile_kv;
};

static int64_t scratch_floats(enum dt_dtype dtype, const struct shape *s)
{
    struct dt_workload workload = {.dtype = dtype,
                                   .network = {.family = &dt_family_dit,
                                               .hidden = s->head * s->heads,
                                               .heads = s->heads,
                                               .patch = 1,
                                               .in_channels = 1,
                                               .mlp_ratio = 1.0},
                                   .height = 1,
                                   .width = 1};
    struct dt_plan plan = dt_plan_fallback;
    struct dt_layout layout;
    plan.tile_q = s->tile_q;
    plan.tile_kv = s->tile_kv;
    dt_layout_init(&layout, &workload, &plan, 0);
    return layout.scratch;
}

static double score(enum dt_dtype dtype, const struct dt_attention *op, const int at[4])
{
    double dot = 0.0;
    int64_t n = at[0], column = (int64_t)at[1] * op->head;
    int64_t q = n * op->q_at.sequence + at[2] * op->q_at.row + column;
    int64_t k = n * op->kv_at.sequence + at[3] * op->kv_at.row + column;
    for (int d = 0; d < op->head; d++)
        dot += (double)value(dtype, op->q, q + d) * (double)value(dtype, op->k, k + d);
    return dot / sqrt(op->head);
}

/* One query's row in float64 against what the kernel gave. Errors are relative to the
 * size of the values, 1. */
static double row_error(enum dt_dtype dtype, const struct dt_attention *op, int n, int h, int i)
{
    int64_t out = n * op->out_at.sequence + i * op->out_at.row + h * op->head;
    double worst = 0.0, total = 0.0;
    double *weights = calloc((size_t)op->keys, sizeof *weights);
    for (int j = 0; j < op->keys; j++)
        total += weights[j] = exp(score(dtype, op, (int[]){n, h, i, j}));
    for (int d = 0; d < op->head; d++) {
        double want = 0.0;
        for (int j = 0; j < op->keys; j++)
            want += weights[j] / total *
                    (double)value(dtype, op->v,
                                  n * op->kv_at.sequence + j * op->kv_at.row + h * op->head + d);
        double error = fabs((double)value(dtype, op->out, out + d) - want);
        worst = error > worst || isnan(error) ? error : worst;
    }
    double lse = (double)op->lse[((int64_t)n * op->heads + h) * op->queries + i];
    double error = fabs(lse - log(total)) / 4.0;
    free(weights);
    return error > worst || isnan(error) ? error : worst;
}

/* Strided as in a qkv buffer; what lies around the output must stay as it was. */
static double attention_error(const struct dt_simd *simd, const struct shape *s)
{
    int channels = s->heads * s->head, longest = s->queries > s->keys ? s->queries : s->keys;
    int64_t size = (int64_t)s->sequences * longest * 3 * channels;
    float *values = seeded(size, "qkv", 1.2f);
    char *qkv = activations(simd->dtype, values, size);
    int element = dt_dtype_bytes(simd->dtype);
    int64_t row = channels + 3, rows = (int64_t)s->sequences * s->queries;
    char *out = calloc((size_t)(rows * row), (size_t)element);
    float *lse = calloc((size_t)(rows * s->heads), sizeof *lse);
    int64_t room = scratch_floats(simd->dtype, s);
    float *scratch = aligned_alloc(64, (size_t)room * sizeof *scratch + 64);
    memset(scratch, 0xff, (size_t)room * sizeof *scratch + 64);
    struct dt_attention op = {.q = qkv,
                              .k = qkv + channels * element,
                              .v = qkv + 2 * channels * element,
                              .out = out,
                              .lse = lse,
                              .q_at = {(int64_t)longest * 3 * channels, 3 * channels},
                              .kv_at = {(int64_t)longest * 3 * channels, 3 * channels},
                              .out_at = {s->queries * row, row},
                              .sequences = s->sequences,
                              .heads = s->heads,
                              .head = s->head,
                              .queries = s->queries,
                              .keys = s->keys,
                              .tile = {.tile_q = s->tile_q, .tile_kv = s->tile_kv},
                              .scratch = scratch,
                              .scratch_floats = room};
    double worst = 0.0;
    dt_simd_use(simd);
    /* one unit after the other: one thread's scratch is enough */
    for (int unit = 0; unit < s->sequences * s->heads; unit++)
        for (int first = 0; first < s->queries; first += s->tile_q)
            simd->attention(&op, unit / s->heads, unit % s->heads, first, scratch);
    for (int n = 0; n < s->sequences; n++)
        for (int h = 0; h < s->heads; h++)
            for (int i = 0; i < s->queries; i += dose_thin() && s->queries > 40 ? 3 : 1) {
                double error = row_error(simd->dtype, &op, n, h, i);
                worst = error > worst || isnan(error) ? error : worst;
            }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = channels; c < row; c++)
            assert_true(value(simd->dtype, out, i * row + c) == 0.0f);
    for (int i = 0; i < 16; i++) {
        uint32_t bits;
        memcpy(&bits, scratch + room + i, sizeof bits);
        assert_int_equal(bits, UINT32_MAX);
    }
    free(values);
    free(qkv);
    free(out);
    free(lse);
    free(scratch);
    return worst;
}

static void check_shape(const struct dt_simd *simd, struct shape shape)
{
    double error = attention_error(simd, &shape);
    if (!(error < (simd->dtype == DT_FLOAT32 ? 2e-6 : 1.2e-2)))
        fail_msg("%s: D=%d %dx%d tokens, tile %dx%d: error %.2e", simd->name, shape.head,
                 shape.queries, shape.keys, shape.tile_q, shape.tile_kv, error);
}

static void check_tiles(const struct dt_simd *simd)
{
    const int *q = dt_tiles_q, *kv = dt_tiles_kv;
    const int heads[] = {8, 24, 64, 72, 88, 128, 1, 37};
    for (int i = 0; i < DT_TILES_Q; i++)
        for (int j = 0; j < DT_TILES_KV; j++)
            for (size_t k = 0; k < sizeof heads / sizeof heads[0]; k++)
                if (!dose_thin() || k == (size_t)(i + 3 * j) % (sizeof heads / sizeof heads[0]))
                    check_shape(simd,
                                (struct shape){1, 1, heads[k], q[i] + 13, kv[j] + 29, q[i], kv[j]});
}

static void attention_matches_float64(void **state)
{
    (void)state;
    for (int i = 0; dt_simd_rows()[i] != NULL; i++) {
        const struct dt_simd *simd = dt_simd_rows()[i];
        if (!dt_simd_usable(i))
            continue;
        print_message("%s\n", simd->name);
        check_tiles(simd);
        for (int n = 1; n <= 70; n += dose_thin() ? 9 : 3) /* ragged ends of both sides */
            check_shape(simd, (struct shape){2, 2, 16, n, 71 - n, 32, 64});
        check_shape(simd, (struct shape){1, 1, 64, 1, 1, 32, 64});
    }
    dt_simd_use(NULL);
}

/* Parts over disjoint keys, merged, are the whole; a part without keys changes nothing. */
static void parts_merge_to_the_whole(void **state)
{
    (void)state;
    enum { HEADS = 3, HEAD = 20, QUERIES = 33, KEYS = 50, C = HEADS * HEAD };
    struct shape s = {1, HEADS, HEAD, QUERIES, KEYS, 32, 64};
    float *q = seeded(QUERIES * C, "q", 1.2f), *k = seeded(KEYS * C, "k", 1.2f);
    float *v = seeded(KEYS * C, "v", 1.0f);
    float whole[QUERIES * C], out[QUERIES * C], part[QUERIES * C];
    float whole_lse[HEADS * QUERIES], lse[HEADS * QUERIES], part_lse[HEADS * QUERIES];
    const int cuts[] = {0, 17, 17, 18, KEYS};
    float *scratch = aligned_alloc(64, (size_t)scratch_floats(DT_FLOAT32, &s) * sizeof *scratch);
    struct dt_attention op = {.q = q,
                              .k = k,
                              .v = v,
                              .out = whole,
                              .lse = whole_lse,
                              .q_at = {0, C},
                              .kv_at = {0, C},
                              .out_at = {0, C},
                              .sequences = 1,
                              .heads = HEADS,
                              .head = HEAD,
                              .queries = QUERIES,
                              .keys = KEYS,
                              .tile = {.tile_q = 32, .tile_kv = 64},
                              .scratch = scratch,
                              .scratch_floats = scratch_floats(DT_FLOAT32, &s)};
    struct dt_merge merge = {out, lse, part, part_lse, {0, C}, 1, HEADS, HEAD, QUERIES};
    dt_compute_cpu.threads(NULL, 1);
    dt_compute_cpu.attention.run(NULL, DT_FLOAT32, &op);
    for (int i = 0; i < 4; i++) {
        op.k = k + cuts[i] * C;
        op.v = v + cuts[i] * C;
        op.keys = cuts[i + 1] - cuts[i];
        op.out = i == 0 ? out : part;
        op.lse = i == 0 ? lse : part_lse;
        dt_compute_cpu.attention.run(NULL, DT_FLOAT32, &op);
        if (i > 0)
            dt_compute_cpu.attention.merge(NULL, DT_FLOAT32, &merge);
    }
    for (int i = 0; i < QUERIES * C; i++)
        assert_true(fabsf(out[i] - whole[i]) < 1e-6f);
    for (int i = 0; i < HEADS * QUERIES; i++)
        assert_true(fabsf(lse[i] - whole_lse[i]) < 2e-6f);
    free(q);
    free(k);
    free(v);
    free(scratch);
}

/* A not-a-number in any input reaches the output: garbage is never softened away. */
static void nan_reaches_the_output(void **state)
{
    (void)state;
    enum { HEAD = 8, TOKENS = 20 };
    struct shape s = {1, 1, HEAD, TOKENS, TOKENS, 32, 64};
    for (int i = 0; dt_simd_rows()[i] != NULL; i++) {
        for (int which = 0; dt_simd_usable(i) && which < 3; which++) {
            enum dt_dtype dtype = dt_simd_rows()[i]->dtype;
            void *in[3];
            float out[TOKENS * HEAD];
            for (int j = 0; j < 3; j++) {
                float *x = seeded(TOKENS * HEAD, "x", 1.0f);
                if (j == which)
                    x[11 * HEAD + 3] = NAN;
                in[j] = activations(dtype, x, TOKENS * HEAD);
                free(x);
            }
            float *scratch = aligned_alloc(64, (size_t)scratch_floats(dtype, &s) * sizeof *scratch);
            struct dt_attention op = {.q = in[0],
                                      .k = in[1],
                                      .v = in[2],
                                      .out = out,
                                      .q_at = {0, HEAD},
                                      .kv_at = {0, HEAD},
                                      .out_at = {0, HEAD},
                                      .sequences = 1,
                                      .heads = 1,
                                      .head = HEAD,
                                      .queries = TOKENS,
                                      .keys = TOKENS,
                                      .tile = {.tile_q = 32, .tile_kv = 64},
                                      .scratch = scratch};
            dt_simd_rows()[i]->attention(&op, 0, 0, 0, scratch);
            bool shown = false;
            for (int j = 0; j < TOKENS * HEAD; j++)
                shown = shown || isnan(value(dtype, out, j));
            assert_true(shown);
            for (int j = 0; j < 3; j++)
                free(in[j]);
            free(scratch);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_matches_float64),
        cmocka_unit_test(parts_merge_to_the_whole),
        cmocka_unit_test(nan_reaches_the_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
