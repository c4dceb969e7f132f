/* SPDX-License-Identifier: MIT */
/* cuDNN's attention on a GPU against float64 on the host: outputs, log-sum-exp, and two parts
 * merged by it as a ring does. Skipped where there is no GPU.
 *
 * Tolerances: q, k, v are bfloat16 values exactly. A score is D products, of size 1 in the mean,
 * summed in float32 that may be cut off: D x D x 2^-23 / sqrt(D), below 2^-12, and the log-sum-exp
 * differs by no more (ex2.approx and lg2.approx: 2^-22, PTX ISA). The weights differ by twice that,
 * relative; probabilities and output are rounded to bfloat16 once each, half a unit in the last
 * place, 2^-9; sums of 300 terms in float32 add 300 x 2^-23. All of it of the largest |v|, 1. */
#include "kernels/cuda/cudnn.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORKSPACE (32 << 20)
#define LSE_MOST  (1.0 / 4096)
#define OUT_MOST  (2.0 / 512 + 2 * LSE_MOST + 300.0 / (1 << 23))

static struct dt_cuda_sdpa *sdpa;
static void *workspace;

/* Values of bfloat16, as words; from a generator of the test's own (Lehmer's,
 * Park and Miller 1988). */
static uint32_t seed = 20261121;
static void fill(uint16_t *words, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++) {
        seed = (uint32_t)((uint64_t)seed * 48271 % 2147483647);
        float value = ((float)seed / 2147483647.0F * 2 - 1) * scale;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        words[i] = (uint16_t)(bits >> 16);
    }
}

static double value_of(uint16_t word)
{
    uint32_t bits = (uint32_t)word << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void *on_device(const void *from, size_t bytes)
{
    void *memory = NULL;
    assert_int_equal(cudaMalloc(&memory, bytes), cudaSuccess);
    assert_int_equal(cudaMemset(memory, 0xff, bytes), cudaSuccess);
    if (from != NULL)
        assert_int_equal(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    return memory;
}

struct problem {
    struct dt_attention op;
    size_t q_count, kv_count, out_count, lse_count;
    uint16_t *q, *k, *v, *out; /* host, as on the device */
    float *lse;
};

/* Rows are wider than a head's and sequences further apart than they must be: strides are obeyed,
 * and gaps left alone. */
static void problem_init(struct problem *p, int heads, int head, int queries, int keys)
{
    int64_t row = (int64_t)heads * head;
    p->op = (struct dt_attention){.q_at = {3 * row * queries + 8, 3 * row},
                                  .kv_at = {2 * row * keys, 2 * row},
                                  .out_at = {row * queries + 16, row},
                                  .sequences = 2,
                                  .heads = heads,
                                  .head = head,
                                  .queries = queries,
                                  .keys = keys};
    p->q_count = (size_t)p->op.q_at.sequence * 2;
    p->kv_count = (size_t)p->op.kv_at.sequence * 2;
    p->out_count = (size_t)p->op.out_at.sequence * 2;
    p->lse_count = (size_t)2 * (size_t)heads * (size_t)queries;
    p->q = calloc(p->q_count, 2);
    p->k = calloc(p->kv_count, 2);
    p->v = calloc(p->kv_count, 2);
    p->out = calloc(p->out_count, 2);
    p->lse = calloc(p->lse_count, sizeof(float));
    fill(p->q, p->q_count, 2);
    fill(p->k, p->kv_count, 2);
    fill(p->v, p->kv_count, 1);
}

static void problem_fini(struct problem *p)
{
    free(p->q);
    free(p->k);
    free(p->v);
    free(p->out);
    free(p->lse);
}

/* Runs it with keys first .. first + keys of the whole; fills p->out and p->lse. */
static void run(struct problem *p, int first, int keys, bool with_lse)
{
    struct dt_attention op = p->op;
    char *k = on_device(p->k, p->kv_count * 2), *v = on_device(p->v, p->kv_count * 2);
    void *q = on_device(p->q, p->q_count * 2);
    op.keys = keys;
    op.q = q;
    op.k = k + 2 * first * op.kv_at.row;
    op.v = v + 2 * first * op.kv_at.row;
    op.out = on_device(NULL, p->out_count * 2);
    op.lse = with_lse ? on_device(NULL, p->lse_count * sizeof(float)) : NULL;
    if (dt_cuda_sdpa_ready(sdpa, &op, WORKSPACE) != DT_OK)
        fail_msg("%s", dt_message());
    for (int i = 0; i < 2; i++) /* the second meets its pack again */
        if (dt_cuda_sdpa_run(sdpa, &op, workspace, WORKSPACE) != DT_OK)
            fail_msg("%s", dt_message());
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    assert_int_equal(cudaMemcpy(p->out, op.out, p->out_count * 2, cudaMemcpyDeviceToHost),
                     cudaSuccess);
    if (with_lse)
        assert_int_equal(
            cudaMemcpy(p->lse, op.lse, p->lse_count * sizeof(float), cudaMemcpyDeviceToHost),
            cudaSuccess);
    cudaFree(q);
    cudaFree(k);
    cudaFree(v);
    cudaFree(op.out);
    cudaFree(op.lse);
}

struct place {
    int sequence, head, query;
};

static size_t q_index(const struct dt_attention *op, struct place at)
{
    return (size_t)(at.sequence * op->q_at.sequence + at.query * op->q_at.row +
                    (int64_t)at.head * op->head);
}

static size_t out_index(const struct dt_attention *op, struct place at)
{
    return (size_t)(at.sequence * op->out_at.sequence + at.query * op->out_at.row +
                    (int64_t)at.head * op->head);
}

static size_t lse_index(const struct dt_attention *op, struct place at)
{
    return (size_t)((at.sequence * op->heads + at.head) * op->queries + at.query);
}

/* One row in float64, out[D]; returns its log-sum-exp. */
static double reference(const struct problem *p, struct place at, double out[])
{
    const struct dt_attention *op = &p->op;
    const uint16_t *q = p->q + q_index(op, at);
    double most = -INFINITY, sum = 0, *score = calloc((size_t)op->keys, sizeof *score);
    for (int j = 0; j < op->keys; j++) {
        const uint16_t *k = p->k + at.sequence * op->kv_at.sequence + j * op->kv_at.row +
                            (int64_t)at.head * op->head;
        for (int c = 0; c < op->head; c++)
            score[j] += value_of(q[c]) * value_of(k[c]);
        score[j] /= sqrt((double)op->head);
        most = fmax(most, score[j]);
    }
    memset(out, 0, (size_t)op->head * sizeof *out);
    for (int j = 0; j < op->keys; j++) {
        const uint16_t *v = p->v + at.sequence * op->kv_at.sequence + j * op->kv_at.row +
                            (int64_t)at.head * op->head;
        double weight = exp(score[j] - most);
        sum += weight;
        for (int c = 0; c < op->head; c++)
            out[c] += weight * value_of(v[c]);
    }
    for (int c = 0; c < op->head; c++)
        out[c] /= sum;
    free(score);
    return most + log(sum);
}

/* Each place in turn; false past the last. */
static bool next(const struct dt_attention *op, struct place *at)
{
    if (++at->query < op->queries)
        return true;
    at->query = 0;
    if (++at->head < op->heads)
        return true;
    at->head = 0;
    return ++at->sequence < op->sequences;
}

static void compare(const struct problem *p, bool with_lse)
{
    struct place at = {0, 0, 0};
    double out[DT_CUDA_SDPA_HEAD_MOST];
    do {
        double lse = reference(p, at, out);
        for (int c = 0; c < p->op.head; c++) {
            double got = value_of(p->out[out_index(&p->op, at) + (size_t)c]);
            if (!(fabs(got - out[c]) <= OUT_MOST))
                fail_msg("head %d: out is %g, not %g", p->op.head, got, out[c]);
        }
        if (with_lse && !(fabs(p->lse[lse_index(&p->op, at)] - lse) <= LSE_MOST))
            fail_msg("head %d: lse is %g, not %g", p->op.head, p->lse[lse_index(&p->op, at)], lse);
    } while (next(&p->op, &at));
}

static void attention_matches_the_reference(void **state)
{
    static const int heads[] = {64, 72, 88, 128};
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct problem p;
        problem_init(&p, 3, heads[i], 130, 77);
        run(&p, 0, 77, false);
        compare(&p, false);
        run(&p, 0, 77, true);
        compare(&p, true);
        problem_fini(&p);
    }
}

/* The parts over keys 0 to 99 and 100 to 299, merged in float64 by their log-sum-exps,
 * are the whole: each part's output was rounded, their weights add to one, so the
 * tolerance is that of one. */
static void parts_merge_to_the_whole(void **state)
{
    struct problem p, second;
    (void)state;
    problem_init(&p, 2, 72, 65, 300);
    second = p;
    second.out = calloc(p.out_count, 2);
    second.lse = calloc(p.lse_count, sizeof(float));
    run(&p, 0, 100, true);
    run(&second, 100, 200, true);
    struct place at = {0, 0, 0};
    double out[DT_CUDA_SDPA_HEAD_MOST];
    do {
        double whole = reference(&p, at, out);
        double a = exp(p.lse[lse_index(&p.op, at)] - whole);
        double b = exp(second.lse[lse_index(&p.op, at)] - whole);
        assert_true(fabs(a + b - 1) <= 2 * LSE_MOST);
        for (int c = 0; c < p.op.head; c++) {
            size_t k = out_index(&p.op, at) + (size_t)c;
            double merged = a * value_of(p.out[k]) + b * value_of(second.out[k]);
            assert_true(fabs(merged - out[c]) <= OUT_MOST + 2 * LSE_MOST);
        }
    } while (next(&p.op, &at));
    free(second.out);
    free(second.lse);
    problem_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(attention_matches_the_reference),
                                       cmocka_unit_test(parts_merge_to_the_whole)};
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        printf("skipped: no GPU here\n");
        return 77;
    }
    if (cudaMalloc(&workspace, WORKSPACE) != cudaSuccess || dt_cuda_sdpa_open(NULL, &sdpa) != DT_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dt_cuda_sdpa_close(sdpa);
    return failed;
}
