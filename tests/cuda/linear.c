/* SPDX-License-Identifier: MIT */
/* Linear layers on the GPU against sums in double of the rounded inputs: every data type,
 * activation and output, groups, shapes that are no multiples of anything, every rank of proposal;
 * the fallbacks when the library (a fake one, lt= in DITTUNE_FAKE_CUDA) lacks an algorithm; and
 * nothing is written outside the output. DITTUNE_DOSE=thin: one shape a data type, and no peak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cuda/case.h"
#include "tests/lib/dose.h"

static struct dt_device *gpu;
static bool bare; /* the fake library has no epilogues */

struct trial {
    enum dt_dtype dtype;
    struct dt_linear_shape shape;
    float *x, *weight, *bias;
    int tried,
        wrong; /* layers, and those with a wrong number; the test goes on, so that one run shows all */
    bool reported; /* this layer's first wrong number was printed */
};

/* Rows that are no multiple of 16 bytes, which no DiT has. A real library need not have a product
 * for them; cuBLASLt 13.1 on an H100 stores the product, or parts of it, in the output's data type
 * before it adds the bias. */
static bool unaligned(const struct trial *trial)
{
    const struct dt_linear_shape *shape = &trial->shape;
    int groups = shape->groups > 1 ? shape->groups : 1;
    return getenv("DITTUNE_FAKE_CUDA") == NULL &&
           (shape->in % 8 != 0 || shape->out / groups % 8 != 0);
}

static double activated(enum dt_activation act, double y)
{
    if (act == DT_ACT_SILU)
        return y / (1.0 + exp(-y));
    if (act == DT_ACT_GELU)
        return 0.5 * y * (1.0 + tanh(0.7978845608028654 * (y + 0.044715 * y * y * y)));
    return y;
}

/* A sum of n products in float32 is off by n 2^-24 of the sum of their magnitudes (Higham 2002,
 * 3.1), an activation, of slope below 1.13, adds a few roundings of its own. bfloat16: the bias and
 * the output are rounded to 8 bits, 2^-8 each, and GELU is the library's, with tanh.approx, whose
 * relative error is 2^-11 (PTX ISA); tf32: both inputs, 2^-10 each when cut. */
static double allowed(const struct trial *trial, double magnitudes, double bias, double sum,
                      double y)
{
    bool narrow = trial->dtype == DT_BFLOAT16 && !trial->shape.wide;
    double off = (trial->shape.in + 16) * ldexp(1.0, -23) * magnitudes;
    if (narrow)
        off += 1.13 * ldexp(fabs(bias), -8) + ldexp(fabs(y), -8) * 1.01;
    if (narrow && trial->shape.act == DT_ACT_GELU)
        off += ldexp(fabs(sum), -11) / 2.0;
    if (narrow && unaligned(trial))
        off += 1.13 * ldexp(magnitudes, -8);
    if (trial->dtype == DT_TF32)
        off += 1.13 * 2.0 * ldexp(magnitudes, -10);
    return off + 1e-30;
}

static void describe(const struct trial *trial, char text[120])
{
    const struct dt_linear_shape *shape = &trial->shape;
    snprintf(text, 120, "%s %dx%d->%d act %d groups %d wide %d", dt_dtype_text(trial->dtype),
             shape->rows, shape->in, shape->out, (int)shape->act, shape->groups, (int)shape->wide);
}

static void check_one(struct trial *trial, int row, int out, float got)
{
    const struct dt_linear_shape *shape = &trial->shape;
    double sum = trial->bias[out], magnitudes = fabs(sum);
    for (int i = 0; i < shape->in; i++) {
        double product =
            (double)trial->x[row * shape->in + i] * (double)trial->weight[out * shape->in + i];
        sum += product;
        magnitudes += fabs(product);
    }
    double y = activated(shape->act, sum);
    double off = allowed(trial, magnitudes, trial->bias[out], sum, y);
    if (fabs(got - y) <= off || trial->reported)
        return;
    char text[120];
    describe(trial, text);
    print_message("%s: y[%d][%d] is %.9g, not %.9g +- %.2g\n", text, row, out, (double)got, y, off);
    trial->reported = true;
    trial->wrong++;
}

/* y begins as NaN and is a little longer than it need be: between the groups, and after
 * the last, it stays so. */
static void check_all(struct trial *trial, const float *y, int64_t size)
{
    const struct dt_linear_shape *shape = &trial->shape;
    int groups = shape->groups > 1 ? shape->groups : 1, out = shape->out / groups;
    for (int64_t i = 0; i < size; i++) {
        int64_t group = groups > 1 ? i / shape->group_stride : 0;
        int64_t at = i - group * shape->group_stride;
        if (group < groups && at < (int64_t)shape->rows * out)
            check_one(trial, (int)(at / out), (int)(group * out + at % out), y[i]);
        else
            assert_true(isnan(y[i]));
    }
}

static void try(struct trial *trial)
{
    const struct dt_linear_shape *shape = &trial->shape;
    const enum dt_dtype y_dtype = shape->wide ? DT_FLOAT32 : trial->dtype;
    const int64_t size = (int64_t)shape->rows * shape->out + 40;
    int64_t in_size = (int64_t)shape->rows * shape->in,
            packed = 4 * (int64_t)shape->in * shape->out;
    struct dt_linear *linear = NULL;
    trial->reported = false;
    void *weight = NULL, *x = array_new(gpu, trial->dtype, trial->x, in_size),
         *bias = array_new(gpu, DT_FLOAT32, trial->bias, shape->out),
         *y = array_new(gpu, y_dtype, NULL, size);
    assert_int_equal(gpu->compute->memory.alloc(gpu, packed, &weight), DT_OK);
    assert_int_equal(
        gpu->compute->linear.pack(gpu, trial->dtype, trial->weight, shape->in, shape->out, weight),
        DT_OK);
    dt_status status = gpu->compute->linear.make(gpu, trial->dtype, shape, &linear);
    bool narrow = trial->dtype == DT_BFLOAT16 && !shape->wide;
    if (bare && narrow && shape->act != DT_ACT_NONE)
        assert_int_equal(status, DT_EUNSUP);
    else if (status == DT_EUNSUP && unaligned(trial))
        print_message("%s\n", dt_message());
    else if (status != DT_OK)
        fail_msg("%s", dt_message());
    const struct dt_linear_call call = {x, weight, bias, y};
    for (int i = 0; i < 2 && status == DT_OK;
         i++) { /* the second finds the bias where the first left it */
        gpu->compute->memory.fill(gpu, y, 0xff, size * (y_dtype == DT_BFLOAT16 ? 2 : 4));
        gpu->compute->linear.apply(gpu, linear, &call);
        float *got = array_read(gpu, y_dtype, y, size);
        check_all(trial, got, size);
        free(got);
    }
    gpu->compute->linear.free(linear);
    gpu->compute->memory.release(gpu, weight);
    gpu->compute->memory.release(gpu, y);
    gpu->compute->memory.release(gpu, bias);
    gpu->compute->memory.release(gpu, x);
    trial->tried++;
}

/* Two outputs in three groups have no meaning, nor has SiLU in bfloat16: no
 * layer of a DiT wants it. */
static void try_outputs(struct trial *trial)
{
    struct dt_linear_shape *shape = &trial->shape;
    for (int wide = 0; wide <= 1; wide++)
        for (int act = DT_ACT_NONE; act <= DT_ACT_SILU; act++)
            for (int groups = 1; groups <= 3; groups++) {
                shape->wide = wide == 1;
                shape->act = (enum dt_activation)act;
                shape->groups = groups;
                shape->group_stride =
                    groups == 1 ? 0 : (int64_t)shape->rows * shape->out / groups + 8;
                shape->choice = (shape->choice + 3) % 9;
                if (shape->out % groups == 0 &&
                    (shape->wide || trial->dtype != DT_BFLOAT16 || act != DT_ACT_SILU))
                    try(trial);
            }
}

static void layers_match_the_reference(void **state)
{
    (void)state;
    static const int shapes[][3] = {
        {5, 16, 24}, {1, 256, 96}, {7, 12, 48}, {33, 48, 6}, {3, 3, 10}};
    struct trial trial = {0};
    for (int dtype = 0; dtype < DT_DTYPES; dtype++)
        for (size_t i = 0; i < (dose_thin() ? 1 : sizeof shapes / sizeof shapes[0]); i++) {
            int rows = shapes[i][0], in = shapes[i][1], out = shapes[i][2];
            trial.dtype = (enum dt_dtype)dtype;
            trial.shape = (struct dt_linear_shape){.rows = rows, .in = in, .out = out};
            trial.x = random_floats("x", (int64_t)rows * in);
            trial.weight = random_floats("weight", (int64_t)out * in);
            trial.bias = random_floats("bias", out);
            round_floats(trial.dtype, trial.x, (int64_t)rows * in);
            round_floats(trial.dtype, trial.weight, (int64_t)out * in);
            try_outputs(&trial);
            free(trial.x);
            free(trial.weight);
            free(trial.bias);
        }
    print_message("%d layers, %d of them wrong\n", trial.tried, trial.wrong);
    assert_int_equal(trial.wrong, 0);
    assert_true(trial.tried > (dose_thin() ? 40 : 200));
}

/* A weight is cut at any row: the lower half of the outputs alone is what the whole layer
 * has there, bit for bit. */
static void weights_can_be_split_at_any_row(void **state)
{
    (void)state;
    enum { ROWS = 6, IN = 32, OUT = 48 };
    for (int dtype = 0; dtype < DT_DTYPES; dtype++) {
        enum dt_dtype type = (enum dt_dtype)dtype;
        float *x = random_floats("x", ROWS * IN), *weight = random_floats("weight", OUT * IN),
              *bias = random_floats("bias", OUT), *whole, *half;
        char *packed = array_new(gpu, DT_FLOAT32, NULL, OUT * IN);
        float *bias_at = array_new(gpu, DT_FLOAT32, bias, OUT);
        void *x_at = array_new(gpu, type, x, ROWS * IN),
             *y = array_new(gpu, type, NULL, ROWS * OUT);
        struct dt_linear *linear = NULL;
        struct dt_linear_shape shape = {.rows = ROWS, .in = IN, .out = OUT};
        assert_int_equal(gpu->compute->linear.pack(gpu, type, weight, IN, OUT, packed), DT_OK);
        assert_int_equal(gpu->compute->linear.make(gpu, type, &shape, &linear), DT_OK);
        gpu->compute->linear.apply(gpu, linear, &(struct dt_linear_call){x_at, packed, bias_at, y});
        whole = array_read(gpu, type, y, ROWS * OUT);
        gpu->compute->linear.free(linear);
        shape.out = OUT / 2;
        assert_int_equal(gpu->compute->linear.make(gpu, type, &shape, &linear), DT_OK);
        const struct dt_linear_call call = {
            x_at, packed + gpu->compute->linear.weight_row(type, IN, OUT / 2), bias_at + OUT / 2,
            y};
        gpu->compute->linear.apply(gpu, linear, &call);
        half = array_read(gpu, type, y, ROWS * OUT / 2);
        for (int row = 0; row < ROWS; row++)
            for (int i = 0; i < OUT / 2; i++)
                assert_true(fabsf(half[row * OUT / 2 + i] - whole[row * OUT + OUT / 2 + i]) <=
                            4e-3F * (1.0F + fabsf(whole[row * OUT + OUT / 2 + i])));
        gpu->compute->linear.free(linear);
        gpu->compute->memory.release(gpu, packed);
        gpu->compute->memory.release(gpu, bias_at);
        gpu->compute->memory.release(gpu, x_at);
        gpu->compute->memory.release(gpu, y);
        free(x);
        free(weight);
        free(bias);
        free(whole);
        free(half);
    }
}

/* The copy of a bias in bfloat16 follows its memory: put, fill, and memory that was given
 * back and taken again. */
static void biases_follow_their_memory(void **state)
{
    (void)state;
    enum { ROWS = 2, IN = 16, OUT = 16 };
    const float zeros[IN * OUT] = {0};
    const struct dt_linear_shape shape = {.rows = ROWS, .in = IN, .out = OUT};
    struct dt_linear *linear = NULL;
    void *x = array_new(gpu, DT_BFLOAT16, zeros, ROWS * IN),
         *weight = array_new(gpu, DT_BFLOAT16, zeros, IN * OUT),
         *y = array_new(gpu, DT_BFLOAT16, NULL, ROWS * OUT);
    assert_int_equal(gpu->compute->linear.make(gpu, DT_BFLOAT16, &shape, &linear), DT_OK);
    float value = 1.0F, *bias = NULL;
    for (int i = 0; i < 6; i++, value *= 2.0F) {
        float values[OUT];
        for (int k = 0; k < OUT; k++)
            values[k] = value;
        if (i % 3 == 0) {
            gpu->compute->memory.release(gpu, bias);
            bias = array_new(gpu, DT_FLOAT32, values, OUT);
        } else if (i % 3 == 1) {
            assert_int_equal(gpu->compute->memory.put(gpu, bias, values, sizeof values), DT_OK);
        } else {
            gpu->compute->memory.fill(gpu, bias, 0, sizeof values);
        }
        gpu->compute->linear.apply(gpu, linear, &(struct dt_linear_call){x, weight, bias, y});
        float *got = array_read(gpu, DT_BFLOAT16, y, ROWS * OUT);
        for (int k = 0; k < ROWS * OUT; k++)
            assert_true(got[k] == (i % 3 == 2 ? 0.0F : value));
        free(got);
    }
    gpu->compute->linear.free(linear);
    gpu->compute->memory.release(gpu, bias);
    gpu->compute->memory.release(gpu, x);
    gpu->compute->memory.release(gpu, weight);
    gpu->compute->memory.release(gpu, y);
}

static void peak_is_a_rate(void **state)
{
    (void)state;
    double rate = 0.0;
    if (dose_thin()) /* products of 8192 on a real GPU */
        return;
    assert_int_equal(gpu->compute->peak(gpu, DT_BFLOAT16, &rate), DT_OK);
    assert_true(rate > 1e6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_match_the_reference),
        cmocka_unit_test(weights_can_be_split_at_any_row),
        cmocka_unit_test(biases_follow_their_memory),
        cmocka_unit_test(peak_is_a_rate),
    };
    const char *settings = getenv("DITTUNE_FAKE_CUDA");
    bare = settings != NULL && strstr(settings, "noepilogue") != NULL;
    gpu = gpu_open();
    if (gpu == NULL)
        return SKIPPED;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    gpu->compute->close(gpu);
    return failed;
}
