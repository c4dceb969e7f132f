/* SPDX-License-Identifier: MIT */
/* The launchers that work row by row, on the emulator, against the CPU back end in float32. */
#include "tests/kernel_emulator/oracle_case.h"

static const enum dt_dtype dtypes[] = {DT_FLOAT32, DT_BFLOAT16};

/* Of the activations and of the residual stream. */
static const enum dt_dtype kinds[][2] = {
    {DT_FLOAT32, DT_FLOAT32}, {DT_BFLOAT16, DT_FLOAT32}, {DT_BFLOAT16, DT_BFLOAT16}};

static void narrow_rounds_to_even(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 7, 8, 31, 256, 2049, 5000};
    static const uint32_t hard[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x7f7fffff, 0x7f800000,
                                    0xff800000, 0x00000001, 0x80000000, 0x007fffff, 0x3f7fffff,
                                    0x7fc00000, 0x7f800001, 0x3f80ffff};
    for (int d = 0; d < 2; d++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (size_t shift = 0; shift <= 4; shift += 4) {
                emu_forget();
                int64_t n = counts[c];
                float *x = floats(n, shift, 0);
                for (size_t i = 0; i < sizeof hard / sizeof *hard && (int64_t)i < n; i++)
                    memcpy(&x[i], &hard[i], sizeof *x);
                void *y = emu_alloc((size_t)(n * dt_dtype_bytes(dtypes[d])),
                                    dtypes[d] == DT_BFLOAT16 ? shift / 2 : shift);
                emu_reset();
                ran(dt_launch_narrow(dtypes[d], x, y, n, NULL));
                for (int64_t i = 0; i < n; i++) {
                    if (isnan(x[i]))
                        assert_true(isnan(active(dtypes[d], y, i)));
                    else if (dtypes[d] == DT_BFLOAT16)
                        assert_int_equal(((uint16_t *)y)[i], narrowed(x[i]));
                    else
                        assert_memory_equal(&((float *)y)[i], &x[i], sizeof *x);
                }
                if (shift == 0 && n == 5000)
                    moves_well("narrow");
            }
}

/* Channels, tokens, sequences, and the shift of addresses in bytes. */
struct modulate_case {
    int channels, tokens, sequences;
    size_t shift;
    float middle;
    bool branch;
};

/* The bound of y: unit = (x - mean) inverse; a sum of C numbers in float32 errs by at most C 2^-24
 * of the sum of their sizes, on either side; then three roundings of unit (1 + scale) + shift, and
 * that of the type of y. */
static void compare_modulate(const struct dt_modulate *op, enum dt_dtype dtype,
                             const struct dt_modulate *oracle)
{
    int64_t rows = (int64_t)op->sequences * op->tokens;
    const float *x = oracle->x;
    double stored = op->stream == DT_BFLOAT16 ? ROUNDING_BFLOAT16 : 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t n = row / op->tokens, first = row * op->channels;
        double size = 0, mean = 0, variance = 0;
        for (int c = 0; c < op->channels; c++) {
            double gated = op->branch == NULL ? 0
                                              : fabs(op->gate[n * op->gate_stride + c] *
                                                     active(dtype, op->branch, first + c));
            double want = x[first + c];
            near(active(op->stream, op->x, first + c), want,
                 2 * ROUNDING_FLOAT * (gated + fabs(want)) + stored * fabs(want), "x", first + c);
            size += fabs(want) / op->channels;
            mean += want / op->channels;
        }
        for (int c = 0; c < op->channels; c++)
            variance += (x[first + c] - mean) * (x[first + c] - mean) / op->channels;
        double inverse = 1 / sqrt(variance + 1e-6), of_sum = (op->channels + 8) * ROUNDING_FLOAT;
        for (int c = 0; c < op->channels; c++) {
            double scale = 1 + (double)op->scale[n * op->stride + c],
                   want = ((float *)oracle->y)[first + c];
            double unit = fabs(x[first + c] - mean) * inverse;
            double off = 2 * of_sum * (size * inverse + unit) * fabs(scale) +
                         8 * ROUNDING_FLOAT *
                             (unit * fabs(scale) + fabs((double)op->shift[n * op->stride + c]));
            near(active(dtype, op->y, first + c), want, 1.01 * off + rounding(dtype) * fabs(want),
                 "y", first + c);
        }
    }
}

static void run_modulate(const struct modulate_case *m, enum dt_dtype dtype, enum dt_dtype stream)
{
    emu_forget();
    int64_t rows = (int64_t)m->sequences * m->tokens, n = rows * m->channels;
    size_t bytes = (size_t)dt_dtype_bytes(dtype);
    struct dt_modulate op = {
        .sequences = m->sequences, .tokens = m->tokens, .channels = m->channels, .stream = stream};
    op.stride = op.gate_stride = (int64_t)6 * m->channels;
    float *six = floats(m->sequences * op.stride, m->shift, 0);
    op.gate = six + 2 * m->channels;
    op.shift = six;
    op.scale = six + m->channels;
    float *x = floats(n, m->shift, m->middle);
    op.x = x;
    if (stream == DT_BFLOAT16)
        op.x = emu_alloc((size_t)n * bytes, m->shift);
    for (int64_t i = 0; stream == DT_BFLOAT16 && i < n; i++)
        ((uint16_t *)op.x)[i] = narrowed(x[i]);
    op.branch = m->branch ? activations(dtype, n, m->shift) : NULL;
    op.y = emu_alloc((size_t)n * bytes, m->shift);
    struct dt_modulate oracle = op;
    oracle.x = wide_copy(stream, op.x, n);
    oracle.stream = DT_FLOAT32;
    float *branch = m->branch ? wide_copy(dtype, op.branch, n) : NULL;
    oracle.branch = branch;
    oracle.y = malloc((size_t)n * sizeof(float));
    dt_compute_cpu.rows.modulate(cpu, DT_FLOAT32, &oracle);
    emu_reset();
    ran(dt_launch_modulate(dtype, &op, NULL));
    compare_modulate(&op, dtype, &oracle);
    free(oracle.x);
    free(branch);
    free(oracle.y);
}

static void modulate_is_the_cpu_s(void **state)
{
    (void)state;
    static const struct modulate_case cases[] = {
        {64, 3, 2, 0, 0, true},    {1152, 5, 2, 0, 0, true}, {1152, 5, 2, 0, 0, false},
        {3072, 2, 1, 0, 4, true},  {8192, 2, 1, 0, 0, true}, {1, 3, 1, 0, 0, true},
        {7, 3, 2, 0, 0, true},     {31, 2, 2, 4, 0, false},  {36, 4, 1, 0, 0, true},
        {1153, 2, 2, 0, 0, true},  {1152, 2, 1, 4, 0, true}, {260, 2, 1, 8, 0, true},
        {4100, 1, 2, 0, 0, false}, {9001, 1, 1, 0, 0, true}, {16384, 1, 1, 0, 0, true},
        {128, 1, 1, 0, 100, true},
    };
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            run_modulate(&cases[i], kinds[k][0], kinds[k][1]);
            if (i == 1)
                moves_well("modulate");
        }
}

struct merge_case {
    int sequences, heads, head, queries;
    int64_t gap; /* elements behind each row of out */
    size_t shift;
};

/* Weights are exp of differences of log-sum-exps; each side errs by a few units. part of
 * -infinity weighs nothing. */
static void run_merge(const struct merge_case *m, enum dt_dtype dtype)
{
    emu_forget();
    int64_t width = (int64_t)m->heads * m->head, count = (int64_t)m->sequences * m->queries * width;
    int64_t lse_count = (int64_t)m->sequences * m->heads * m->queries;
    struct dt_merge op = {
        .sequences = m->sequences, .heads = m->heads, .head = m->head, .queries = m->queries};
    op.out_at = (struct dt_strides){m->queries * (width + m->gap), width + m->gap};
    int64_t out_count = m->sequences * op.out_at.sequence;
    size_t bytes = (size_t)dt_dtype_bytes(dtype);
    op.out = activations(dtype, out_count, m->shift * bytes);
    op.part = activations(dtype, count, m->shift * bytes);
    op.lse = floats(lse_count, 0, 3);
    float *part_lse = floats(lse_count, 0, 3);
    op.part_lse = part_lse;
    part_lse[0] = -INFINITY;
    op.lse[lse_count - 1] = lse_count > 1 ? -INFINITY : op.lse[0];
    struct dt_merge oracle = op;
    float *before = wide_copy(dtype, op.out, out_count), *part = wide_copy(dtype, op.part, count);
    oracle.out = wide_copy(dtype, op.out, out_count);
    oracle.part = part;
    oracle.lse = wide_copy(DT_FLOAT32, op.lse, lse_count);
    dt_compute_cpu.attention.merge(cpu, DT_FLOAT32, &oracle);
    emu_reset();
    ran(dt_launch_merge(dtype, &op, NULL));
    for (int64_t i = 0; i < out_count; i++) {
        int64_t row = i / op.out_at.row, column = i % op.out_at.row;
        double want = ((float *)oracle.out)[i];
        double sizes =
            column < width ? fabs((double)before[i]) + fabs((double)part[row * width + column]) : 0;
        near(active(dtype, op.out, i), want,
             0x1p-20 * sizes + (column < width ? rounding(dtype) * fabs(want) : 0), "out", i);
    }
    for (int64_t i = 0; i < lse_count; i++)
        near(op.lse[i], oracle.lse[i], 0x1p-21 * (1 + fabs((double)oracle.lse[i])), "lse", i);
    free(before);
    free(part);
    free(oracle.out);
    free(oracle.lse);
}

static void merge_is_the_cpu_s(void **state)
{
    (void)state;
    static const struct merge_case cases[] = {
        {1, 1, 64, 1, 0, 0},  {2, 3, 64, 5, 0, 0},  {2, 3, 72, 7, 8, 0}, {1, 2, 88, 33, 16, 0},
        {1, 4, 128, 9, 0, 0}, {2, 2, 65, 3, 1, 0},  {1, 3, 7, 11, 3, 1}, {1, 1, 1, 300, 0, 0},
        {1, 2, 64, 4, 4, 1},  {1, 1, 300, 2, 0, 0}, {3, 1, 256, 3, 8, 0}};
    for (int d = 0; d < 2; d++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            run_merge(&cases[i], dtypes[d]);
}

/* x / (1 + exp(-p)) with p = x for SiLU and the tanh-GELU's 2u: the exponential errs
 * by |p| roundings of p. */
static void activation_is_its_formula(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 5, 64, 1000, 2049};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t shift = 0; shift <= 4; shift += 4)
            for (int kind = 0; kind < 3; kind++) {
                emu_forget();
                int64_t n = counts[c];
                enum dt_activation act =
                    (enum dt_activation[]){DT_ACT_NONE, DT_ACT_GELU, DT_ACT_SILU}[kind];
                float *x = floats(n, shift, 0);
                for (int64_t i = 0; i < n; i++)
                    x[i] *= 4;
                float *before = wide_copy(DT_FLOAT32, x, n);
                emu_reset();
                ran(dt_launch_activation(act, x, n, NULL));
                for (int64_t i = 0; i < n; i++) {
                    double v = before[i], p = act == DT_ACT_GELU
                                                  ? 2 * sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)
                                                  : v;
                    double want = act == DT_ACT_NONE ? v : v / (1 + exp(-p));
                    near(x[i], want,
                         act == DT_ACT_NONE
                             ? 0
                             : 0x1p-122 + fabs(want) * (8 + 8 * fabs(p)) * ROUNDING_FLOAT,
                         "x", i);
                }
                free(before);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_rounds_to_even),
        cmocka_unit_test(modulate_is_the_cpu_s),
        cmocka_unit_test(merge_is_the_cpu_s),
        cmocka_unit_test(activation_is_its_formula),
    };
    return cmocka_run_group_tests_name("rows", tests, open_cpu, close_cpu);
}
