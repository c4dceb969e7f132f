/* SPDX-License-Identifier: MIT */
/* ctest: dose slow */
/* Attention of a GPU against float64 on the host: every row of model/tiles_cuda.def, every head
 * dimension, data type and kind of kernel, ragged numbers of queries and keys, none at all, with
 * and without the log-sum-exp, and two parts merged as a ring does. Outputs are not numbers before.
 * It needs no other back end, so it runs where the processor has no bfloat16.
 *
 * DITTUNE_DOSE=thin: one shape of each kernel, for programs that slow it down a hundred times
 * (compute-sanitizer). full: all shapes; on a real GPU also one of more than a thousand tokens.
 * DITTUNE_SEED=N repeats the numbers of a run that failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cuda/case.h"
#include "tests/lib/attention_oracle.h"
#include "tests/lib/dose.h"

static struct dt_device *gpu;
static uint64_t seed = 1;
static int wrong; /* calls; a test goes on after one, so that one run shows all */

/* queries = tiles[0] tile_q + more[0], keys alike */
struct shape {
    int tiles[2], more[2], sequences, heads;
    bool lse;
};
static const struct shape shapes[] = {{{1, 2}, {3, 5}, 2, 2, true},
                                      {{0, 0}, {1, 1}, 2, 1, true},
                                      {{0, 1}, {17, 0}, 1, 3, false},
                                      {{0, 0}, {19, 0}, 2, 2, true}, /* no keys */
                                      /* full: */
                                      {{0, 3}, {5, -1}, 1, 1, true},
                                      {{2, 4}, {1, 8}, 2, 2, false},
                                      {{1, 3}, {-1, 0}, 1, 3, true},
                                      {{3, 2}, {16, 16}, 1, 1, true}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], PLAIN = 4 };

static int shape_count(void)
{
    return dose_thin() ? 1 : dose_full() ? SHAPES : PLAIN;
}

/* Inputs and outputs of a call, on the host and on the GPU; rows and sequences are further
 * apart than they must be. */
struct problem {
    struct dt_attention op; /* with pointers of the host */
    enum dt_dtype dtype;
    int64_t q_count, kv_count, out_count, lse_count;
    void *memory[5]; /* of the GPU: q, k, v, out, lse */
};

static void *numbers(struct problem *p, struct dt_rng *rng, int64_t n, int k)
{
    float *x = calloc((size_t)n + 1, sizeof *x);
    void *host = calloc((size_t)n + 1, (size_t)dt_dtype_bytes(p->dtype));
    assert_true(x != NULL && host != NULL);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)dt_rng_normal(rng);
        set(p->dtype, host, i, x[i]);
    }
    p->memory[k] = array_new(gpu, p->dtype, x, n > 0 ? n : 1);
    free(x);
    return host;
}

static void problem_init(struct problem *p, const struct shape *shape, int head, uint64_t number)
{
    struct dt_attention *op = &p->op;
    const int64_t width = (int64_t)shape->heads * head;
    struct dt_rng rng = dt_rng_at(seed * 1000 + number, "attention");
    op->sequences = shape->sequences;
    op->heads = shape->heads;
    op->head = head;
    op->q_at = (struct dt_strides){op->queries * 3 * width + 8, 3 * width};
    op->kv_at = (struct dt_strides){op->keys * 2 * width, 2 * width};
    op->out_at = (struct dt_strides){op->queries * (width + 8) + 16, width + 8};
    p->q_count = op->sequences * op->q_at.sequence;
    p->kv_count = op->sequences * op->kv_at.sequence;
    p->out_count = op->sequences * op->out_at.sequence;
    p->lse_count = (int64_t)op->sequences * op->heads * op->queries;
    op->q = numbers(p, &rng, p->q_count, 0);
    op->k = numbers(p, &rng, p->kv_count, 1);
    op->v = numbers(p, &rng, p->kv_count, 2);
    p->memory[3] = array_new(gpu, p->dtype, NULL, p->out_count);
    p->memory[4] = array_new(gpu, DT_FLOAT32, NULL, p->lse_count);
}

static void problem_fini(struct problem *p)
{
    const void *host[] = {p->op.q, p->op.k, p->op.v};
    for (int i = 0; i < 3; i++)
        free((void *)host[i]);
    for (int i = 0; i < 5; i++)
        gpu->compute->memory.release(gpu, p->memory[i]);
}

/* The call on the GPU, of keys first .. first + keys. */
static struct dt_attention on_gpu(const struct problem *p, int first, int keys, bool lse)
{
    struct dt_attention op = p->op;
    int64_t bytes = first * op.kv_at.row * dt_dtype_bytes(p->dtype);
    op.q = p->memory[0];
    op.k = (char *)p->memory[1] + bytes;
    op.v = (char *)p->memory[2] + bytes;
    op.out = p->memory[3];
    op.lse = lse ? p->memory[4] : NULL;
    op.keys = keys;
    return op;
}

static void name_it(const struct problem *p, char text[160])
{
    const struct dt_attn_tile *tile = &p->op.tile;
    snprintf(text, 160,
             "%s, %s, %dx%d, %d stages, %d warps, head %d, %d queries, %d keys, seed %llu",
             p->op.kind == DT_ATTENTION_OWN ? "own" : "another kernel", dt_dtype_text(p->dtype),
             tile->tile_q, tile->tile_kv, tile->stages, tile->warps, p->op.head, p->op.queries,
             p->op.keys, (unsigned long long)seed);
}

/* Prints the first of a call's wrong elements, and counts them. */
static void hold(const struct problem *p, const char *what, const int at[4], const double values[3],
                 int *off)
{
    char name[160];
    if ((*off)++ > 0)
        return;
    name_it(p, name);
    print_message("%s: %s[%d, %d, %d, %d] is %.9g, not %.9g +- %g\n", name, what, at[0], at[1],
                  at[2], at[3], values[0], values[1], values[2]);
}

/* Every element of the outputs, and what lies between them. slack: the tolerance is so
 * many times the bound. */
static void compare(const struct problem *p, bool lse, double slack)
{
    const struct dt_attention *op = &p->op;
    float *out = array_read(gpu, p->dtype, p->memory[3], p->out_count);
    float *sums = array_read(gpu, DT_FLOAT32, p->memory[4], p->lse_count);
    const int64_t width = (int64_t)op->heads * op->head;
    struct answer a = {0};
    int at[4], off = 0;
    for (at[0] = 0; at[0] < op->sequences; at[0]++)
        for (at[1] = 0; at[1] < op->queries; at[1]++)
            for (at[2] = 0; at[2] < op->heads; at[2]++) {
                attention_answer(op, p->dtype, at, &a);
                for (at[3] = 0; at[3] < op->head; at[3]++) {
                    const double values[] = {(double)out[attention_element(op, op->out_at, at)],
                                             a.out[at[3]], slack * a.out_error[at[3]]};
                    if (!(fabs(values[0] - values[1]) <= values[2]))
                        hold(p, "out", at, values, &off);
                }
                int64_t row = ((int64_t)at[0] * op->heads + at[2]) * op->queries + at[1];
                const double values[] = {(double)sums[row], a.lse, slack * a.lse_error};
                bool right = op->keys == 0 ? values[0] == -INFINITY
                                           : fabs(values[0] - values[1]) <= values[2];
                if (lse && !right)
                    hold(p, "lse", (const int[]){at[0], at[1], at[2], 0}, values, &off);
            }
    for (int64_t i = 0; i < p->out_count; i++) {
        int64_t within = i % op->out_at.sequence;
        bool between = within / op->out_at.row >= op->queries || within % op->out_at.row >= width;
        if (between && !isnan(out[i])) /* nobody wrote there */
            hold(p, "between rows, out", (const int[]){(int)i, 0, 0, 0},
                 (const double[]){(double)out[i], NAN, 0.0}, &off);
    }
    if (off > 0)
        print_message("  %d elements are wrong\n", off);
    wrong += off > 0;
    free(out);
    free(sums);
}

/* False: there is no such kernel here. */
static bool try_one(struct problem p, const struct shape *shape, int head, uint64_t number)
{
    p.op.queries = shape->tiles[0] * p.op.tile.tile_q + shape->more[0];
    p.op.keys = shape->tiles[1] * p.op.tile.tile_kv + shape->more[1];
    problem_init(&p, shape, head, number);
    struct dt_attention op = on_gpu(&p, 0, p.op.keys, shape->lse);
    bool built = gpu->compute->attention.ready(gpu, p.dtype, &op) == DT_OK;
    if (built) {
        gpu->compute->attention.run(gpu, p.dtype, &op);
        compare(&p, shape->lse, 1);
    }
    problem_fini(&p);
    return built;
}

static void none_is_wrong(void)
{
    int count = wrong;
    wrong = 0;
    assert_int_equal(count, 0);
}

static bool on_a_real_gpu(void)
{
    return getenv("DITTUNE_FAKE_CUDA") == NULL;
}

/* Returns how many calls were compared, of so many shapes at most. */
static int try_shapes(const struct problem *p, int head, uint64_t number, int most)
{
    static const struct shape large = {{0, 0}, {1101, 1111}, 1, 2, true};
    int n = 0;
    for (int s = 0; s < shape_count() && s < most; s++)
        n += try_one(*p, &shapes[s], head, number + (uint64_t)s);
    if (n > 0 && dose_full() && on_a_real_gpu())
        n += try_one(*p, &large, head, number + SHAPES);
    return n;
}

static void every_tile_in_bfloat16(void **state)
{
    (void)state;
    int calls = 0;
    for (int i = 0; i < DT_ATTN_TILES && compared() > DT_BFLOAT16; i++)
        for (int h = 0; h < DT_ATTN_HEADS; h++) {
            struct problem p = {.dtype = DT_BFLOAT16, .op = {.tile = dt_attn_tiles[i]}};
            int n =
                try_shapes(&p, dt_attn_heads[h], (uint64_t)(i * DT_ATTN_HEADS + h) * 16, SHAPES);
            assert_int_equal(n > 0, 1); /* all are built */
            calls += n;
        }
    print_message("%d calls in bfloat16\n", calls);
    none_is_wrong();
}

static void wide_data_types(void **state)
{
    static const enum dt_dtype dtypes[] = {DT_FLOAT32, DT_TF32};
    static const int heads[] = {64, 72, 88, 128, 40, 144};
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int h = 0; h < (dose_thin() ? 2 : 6); h++) {
            struct problem p = {.dtype = dtypes[i], .op = {.tile = dt_attn_tiles[0]}};
            assert_true(try_shapes(&p, heads[h], 2000 + (uint64_t)(i * 6 + h) * 16, SHAPES) > 0);
        }
    none_is_wrong();
}

/* Those that this build and GPU do not have are only named. Their probabilities may be rounded
 * twice. Few shapes: for each cuDNN chooses and perhaps compiles a kernel, which takes a second;
 * and none where a sanitizer looks at our kernels. */
static void kernels_of_libraries(void **state)
{
    static const int heads[] = {64, 72, 88, 96, 128};
    enum { FEW = 2 };
    (void)state;
    if (dose_thin())
        return;
    for (int kind = DT_ATTENTION_OWN + 1; kind < DT_ATTENTIONS; kind++) {
        int calls = 0;
        for (int h = 0; h < 5; h++) {
            struct problem p = {
                .dtype = DT_BFLOAT16,
                .op = {.tile = dt_attn_tiles[0], .kind = (enum dt_attention_kind)kind}};
            calls += try_shapes(&p, heads[h], 4000 + (uint64_t)(kind * 8 + h) * 16, FEW);
        }
        print_message("attention %d of libraries: %d calls\n", kind, calls);
    }
    none_is_wrong();
}

/* Attention over keys 0 to 40, then over the rest as a part of its own, merged: the
 * whole, rounded twice more. */
static void parts_merge_to_the_whole(void **state)
{
    static const struct shape shape = {{0, 0}, {0, 0}, 2, 2, true};
    (void)state;
    for (int i = 0; i < compared(); i++) {
        struct problem p = {.dtype = (enum dt_dtype)i,
                            .op = {.tile = dt_attn_tiles[0], .queries = 37, .keys = 93}};
        problem_init(&p, &shape, 72, 6000 + (uint64_t)i);
        const int64_t width = 2 * 72;
        void *part = array_new(gpu, p.dtype, NULL, 2 * 37 * width);
        float *part_lse = array_new(gpu, DT_FLOAT32, NULL, p.lse_count);
        struct dt_attention op = on_gpu(&p, 0, 41, true), rest = on_gpu(&p, 41, 52, true);
        rest.out = part;
        rest.out_at = (struct dt_strides){37 * width, width};
        rest.lse = part_lse;
        assert_int_equal(gpu->compute->attention.ready(gpu, p.dtype, &op), DT_OK);
        gpu->compute->attention.run(gpu, p.dtype, &op);
        assert_int_equal(gpu->compute->attention.ready(gpu, p.dtype, &rest), DT_OK);
        gpu->compute->attention.run(gpu, p.dtype, &rest);
        const struct dt_merge merge = {op.out,       op.lse,   part, part_lse, op.out_at,
                                       op.sequences, op.heads, 72,   37};
        gpu->compute->attention.merge(gpu, p.dtype, &merge);
        compare(&p, true, 3);
        gpu->compute->memory.release(gpu, part);
        gpu->compute->memory.release(gpu, part_lse);
        problem_fini(&p);
    }
    none_is_wrong();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_in_bfloat16),
        cmocka_unit_test(wide_data_types),
        cmocka_unit_test(kernels_of_libraries),
        cmocka_unit_test(parts_merge_to_the_whole),
    };
    seed = dose_seed("attention", 1) % 1000000007;
    gpu = gpu_open();
    if (gpu == NULL)
        return SKIPPED;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    gpu->compute->close(gpu);
    return failed;
}
