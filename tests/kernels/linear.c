/* SPDX-License-Identifier: MIT */
/* Each library's row of linear layers against float64, whichever of them this processor
 * prefers: oneDNN of either major version also where it has kernels for AVX-512 only, for
 * then it has slower ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernels/cpu/gemm_int.h"
#include "tests/kernels/values.h"

#include <math.h>
#include <stdio.h>

static double activated(double x, enum dt_activation act)
{
    if (act == DT_ACT_GELU)
        return 0.5 * x *
               (1.0 + tanh(sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    return act == DT_ACT_SILU ? x / (1.0 + exp(-x)) : x;
}

/* Sums of `in` products in float32, and for bfloat16 the rounding of x, weight and y to 8 bits. */
static double allowed(enum dt_dtype dtype, bool wide, double size, double y)
{
    double sums = 8e-6 * (1.0 + size);
    double rounded = dtype == DT_FLOAT32 || wide ? 0.0 : fabs(y) * 0x1p-8;
    return sums + rounded;
}

/* Weights as the row rounds them: bfloat16 to nearest even. */
static double weight_value(enum dt_dtype dtype, float weight)
{
    uint32_t bits;
    memcpy(&bits, &weight, sizeof bits);
    if (dtype == DT_BFLOAT16)
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&weight, &bits, sizeof bits);
    return (double)weight;
}

/* False: the library has no such product on this processor. */
static bool layer_is_right(const struct dt_gemm *gemm, enum dt_dtype dtype,
                           const struct dt_linear_shape *shape)
{
    int rows = shape->rows, in = shape->in, out = shape->out;
    float *weight = seeded((int64_t)in * out, "weight", 0.5f), *bias = seeded(out, "bias", 0.5f);
    float *numbers = seeded((int64_t)rows * in, "input", 1.0f);
    void *x = activations(dtype, numbers, (int64_t)rows * in);
    void *packed = calloc((size_t)(in + 32) * (size_t)(out + 64), sizeof(float)), *own = NULL;
    void *y = calloc((size_t)rows * (size_t)out, sizeof(float));
    assert_true(packed != NULL && y != NULL);
    bool there = gemm->ready == NULL || gemm->ready(dtype, shape, &own) == DT_OK;
    if (there) {
        assert_int_equal(gemm->pack(dtype, weight, in, out, packed), DT_OK);
        for (int again = 0; again < 2; again++) /* a layer is run at each step */
            gemm->run(own, shape, &(struct dt_linear_call){x, packed, bias, y});
        for (int r = 0; r < rows; r++)
            for (int o = 0; o < out; o++) {
                double sum = (double)bias[o], size = fabs(sum);
                for (int i = 0; i < in; i++) {
                    double part = (double)value(dtype, x, (int64_t)r * in + i) *
                                  weight_value(dtype, weight[(int64_t)o * in + i]);
                    sum += part;
                    size += fabs(part);
                }
                double want = activated(sum, shape->act);
                double got =
                    (double)value(shape->wide ? DT_FLOAT32 : dtype, y, (int64_t)r * out + o);
                if (!(fabs(got - want) <= allowed(dtype, shape->wide, size, want)))
                    fail_msg("%s, %s, %d x %d by %d, y[%d][%d]: %.9g, not %.9g", gemm->name,
                             dt_dtype_text(dtype), rows, in, out, r, o, got, want);
            }
    }
    if (own != NULL)
        gemm->free(own);
    free(weight);
    free(bias);
    free(numbers);
    free(x);
    free(packed);
    free(y);
    return there;
}

/* Outputs and inputs that do and do not fill a block, with each activation. */
static void rows_match_float64(void **state)
{
    (void)state;
    static const int sizes[][3] = {{5, 64, 128}, {16, 96, 64}, {3, 33, 70}, {1, 384, 48}};
    static const enum dt_activation acts[] = {DT_ACT_NONE, DT_ACT_GELU, DT_ACT_SILU};
    static const enum dt_dtype dtypes[] = {DT_FLOAT32, DT_BFLOAT16};
    for (int g = 0; dt_gemm_rows()[g] != NULL; g++)
        for (size_t d = 0; d < 2; d++) {
            const struct dt_gemm *gemm = dt_gemm_rows()[g];
            int made = 0;
            bool prefers = gemm->usable(dtypes[d]); /* also prepares the library */
            if (!prefers && (dtypes[d] != DT_FLOAT32 || gemm->ready == NULL))
                continue;
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
                for (size_t a = 0; a < 3; a++) {
                    struct dt_linear_shape shape = {.rows = sizes[s][0],
                                                    .in = sizes[s][1],
                                                    .out = sizes[s][2],
                                                    .act = acts[a],
                                                    .wide = a == 0};
                    made += layer_is_right(gemm, dtypes[d], &shape);
                }
            print_message("%s %s, %s: %d of 12 layers\n", gemm->name, gemm->version(),
                          dt_dtype_text(dtypes[d]), made);
            assert_true(made == 12 || !prefers);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_match_float64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
