/* SPDX-License-Identifier: MIT */
/* Every operation of the table except linear layers and attention (attention.c), on random data,
 * into memory filled with NAN: those of activations against float64 from the rounded inputs, so
 * that no bfloat16 of the processor is needed, the others against the CPU back end. Tolerances are
 * derived beside each comparison. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cuda/case.h"

static struct dt_device *gpu, *cpu;

/* Result of an operation in up to two arrays. */
struct result {
    float *out[2];
    int64_t size[2];
};

/* |a - b| <= bound max(1, max |b|), and what is no finite number is the same on both. */
static void near(const char *what, struct result got, struct result expected, double bound)
{
    for (int k = 0; k < 2 && expected.out[k] != NULL; k++) {
        double most = 1.0;
        for (int64_t i = 0; i < expected.size[k]; i++)
            if (isfinite(expected.out[k][i]))
                most = fmax(most, fabs((double)expected.out[k][i]));
        for (int64_t i = 0; i < expected.size[k]; i++) {
            float a = got.out[k][i], b = expected.out[k][i];
            bool same = isfinite(b) ? fabs((double)a - (double)b) <= bound * most
                                    : (isnan(b) ? isnan(a) : a == b);
            if (!same)
                fail_msg("%s: out %d [%lld] is %.9g, not %.9g", what, k, (long long)i, (double)a,
                         (double)b);
        }
        free(got.out[k]);
        free(expected.out[k]);
    }
}

/* One rounding of an output to the data type, either way. */
static double unit(enum dt_dtype dtype)
{
    return dtype == DT_BFLOAT16 ? ldexp(1.0, -8) : ldexp(1.0, -23);
}

static void *floats(struct dt_device *device, enum dt_dtype dtype, const char *name, int64_t n)
{
    float *x = random_floats(name, n);
    void *memory = array_new(device, dtype, x, n);
    free(x);
    return memory;
}

static void take(struct result *result, int k, struct dt_device *device, enum dt_dtype dtype,
                 void *memory, int64_t n)
{
    result->out[k] = array_read(device, dtype, memory, n);
    result->size[k] = n;
}

/* stream: of x */
static struct result run_modulate(struct dt_device *device, enum dt_dtype dtype,
                                  enum dt_dtype stream, int channels, bool branch)
{
    enum { N = 3, T = 5 };
    const int64_t size = (int64_t)N * T * channels, six = 6LL * channels;
    struct result result = {0};
    float *modulation = floats(device, DT_FLOAT32, "modulation", N * six);
    void *memory[] = {floats(device, stream, "x", size), floats(device, dtype, "branch", size),
                      array_new(device, dtype, NULL, size), modulation};
    const struct dt_modulate op = {.x = memory[0],
                                   .branch = branch ? memory[1] : NULL,
                                   .gate = branch ? modulation + 2 * channels : NULL,
                                   .shift = modulation,
                                   .scale = modulation + channels,
                                   .y = memory[2],
                                   .gate_stride = six,
                                   .stride = six,
                                   .sequences = N,
                                   .tokens = T,
                                   .channels = channels,
                                   .stream = stream};
    device->compute->rows.modulate(device, dtype, &op);
    take(&result, 0, device, dtype, memory[2], size);
    take(&result, 1, device, stream, memory[0], size);
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        device->compute->memory.release(device, memory[i]);
    return result;
}

/* The inputs of a device's array. */
static float *inputs(enum dt_dtype dtype, const char *name, int64_t n)
{
    float *x = random_floats(name, n);
    round_floats(dtype, x, n);
    return x;
}

static struct result new_result(int64_t first, int64_t second)
{
    struct result result = {.size = {first, second}};
    for (int k = 0; k < 2; k++)
        result.out[k] = calloc((size_t)result.size[k], sizeof(float));
    return result;
}

/* One token: x[C] and branch[C] or NULL, modulation[6 C] of its sequence; adds to x. */
static void modulate_row(float *x, const float *branch, const float *modulation, int channels,
                         float *y)
{
    double mean = 0, variance = 0;
    for (int c = 0; c < channels; c++) {
        if (branch != NULL)
            x[c] = (float)(x[c] + (double)modulation[2 * channels + c] * branch[c]);
        mean += (double)x[c] / channels;
    }
    for (int c = 0; c < channels; c++)
        variance += (x[c] - mean) * (x[c] - mean) / channels;
    for (int c = 0; c < channels; c++)
        y[c] =
            (float)((x[c] - mean) / sqrt(variance + 1e-6) * (1 + (double)modulation[channels + c]) +
                    modulation[c]);
}

static struct result expect_modulate(enum dt_dtype dtype, enum dt_dtype stream, int channels,
                                     bool branch)
{
    enum { N = 3, T = 5 };
    const int64_t size = (int64_t)N * T * channels, six = 6LL * channels;
    struct result result = new_result(size, size);
    float *modulation = inputs(DT_FLOAT32, "modulation", N * six), *x = inputs(stream, "x", size),
          *added = inputs(dtype, "branch", size);
    for (int64_t t = 0; t < N * T; t++)
        modulate_row(x + t * channels, branch ? added + t * channels : NULL,
                     modulation + t / T * six, channels, result.out[0] + t * channels);
    memcpy(result.out[1], x, (size_t)size * sizeof *x);
    free(modulation);
    free(x);
    free(added);
    return result;
}

/* Mean and variance are sums of C terms: (C + 16) 2^-23 of what is largest. x is rounded when it is
 * stored: y is of the sum before. */
static void modulation_is_right(void **state)
{
    (void)state;
    static const int channels[] = {8, 30, 64, 144, 1152};
    for (int dtype = 0; dtype < compared(); dtype++)
        for (int of_x = 0; of_x <= dtype; of_x++)
            for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
                for (int branch = 0; branch <= 1; branch++) {
                    enum dt_dtype type = (enum dt_dtype)dtype, stream = (enum dt_dtype)of_x;
                    double bound = (channels[i] + 16) * ldexp(1.0, -23) + unit(type);
                    near("modulate", run_modulate(gpu, type, stream, channels[i], branch == 1),
                         expect_modulate(type, stream, channels[i], branch == 1), bound);
                }
}

static void positions_are_added_and_rounded(void **state)
{
    (void)state;
    static const int channels[] = {8, 12, 30, 1152};
    enum { N = 4, B = 2, T = 7 };
    for (size_t i = 0; compared() > DT_BFLOAT16 && i < sizeof channels / sizeof channels[0]; i++) {
        const int64_t image = (int64_t)T * channels[i];
        float *x = random_floats("x", B * image), *table = random_floats("table", image);
        void *memory[] = {array_new(gpu, DT_FLOAT32, x, B * image),
                          array_new(gpu, DT_FLOAT32, table, image),
                          array_new(gpu, DT_BFLOAT16, NULL, N * image)};
        gpu->compute->rows.position(gpu, &(struct dt_position){memory[0], memory[1], memory[2], N,
                                                               B, T, channels[i], DT_BFLOAT16});
        float *got = array_read(gpu, DT_BFLOAT16, memory[2], N * image);
        for (int64_t k = 0; k < N * image; k++) {
            float want = x[k % (B * image)] + table[k % image];
            round_floats(DT_BFLOAT16, &want, 1);
            assert_true(got[k] == want);
        }
        for (size_t k = 0; k < sizeof memory / sizeof memory[0]; k++)
            gpu->compute->memory.release(gpu, memory[k]);
        free(got);
        free(x);
        free(table);
    }
}

static void an_instance_that_is_not_built_is_named(void **state)
{
    (void)state;
    struct dt_attention op = {.sequences = 1, .heads = 1, .head = 64, .queries = 16, .keys = 16};
    op.q_at = op.kv_at = op.out_at = (struct dt_strides){1024, 64};
    op.tile = (struct dt_attn_tile){77, 64, 1, 4};
    assert_int_equal(gpu->compute->attention.ready(gpu, DT_BFLOAT16, &op), DT_EUNSUP);
    assert_non_null(strstr(dt_message(), "tile_q=77"));
    op.tile.tile_q = 64;
    op.head = 56;
    assert_int_equal(gpu->compute->attention.ready(gpu, DT_BFLOAT16, &op), DT_EUNSUP);
    assert_non_null(strstr(dt_message(), "56 channels"));
}

static struct result run_merge(struct dt_device *device, enum dt_dtype dtype)
{
    enum { N = 2, H = 3, Q = 7, D = 24, SIZE = N * Q * H * D, LSE = N * H * Q };
    struct result result = {0};
    float *lse = random_floats("lse", LSE), *part_lse = random_floats("part_lse", LSE);
    lse[0] = part_lse[1] = -INFINITY;
    void *memory[] = {floats(device, dtype, "out", SIZE), floats(device, dtype, "part", SIZE),
                      array_new(device, DT_FLOAT32, lse, LSE),
                      array_new(device, DT_FLOAT32, part_lse, LSE)};
    const struct dt_merge op = {.out = memory[0],
                                .lse = memory[2],
                                .part = memory[1],
                                .part_lse = memory[3],
                                .out_at = {Q * H * D, H * D},
                                .sequences = N,
                                .heads = H,
                                .head = D,
                                .queries = Q};
    device->compute->attention.merge(device, dtype, &op);
    take(&result, 0, device, dtype, memory[0], SIZE);
    take(&result, 1, device, DT_FLOAT32, memory[2], LSE);
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        device->compute->memory.release(device, memory[i]);
    free(lse);
    free(part_lse);
    return result;
}

static struct result expect_merge(enum dt_dtype dtype)
{
    enum { N = 2, H = 3, Q = 7, D = 24, SIZE = N * Q * H * D, LSE = N * H * Q };
    struct result result = new_result(SIZE, LSE);
    float *lse = inputs(DT_FLOAT32, "lse", LSE), *other = inputs(DT_FLOAT32, "part_lse", LSE);
    float *out = inputs(dtype, "out", SIZE), *part = inputs(dtype, "part", SIZE);
    lse[0] = other[1] = -INFINITY;
    for (int n = 0; n < N; n++)
        for (int h = 0; h < H; h++)
            for (int q = 0; q < Q; q++) {
                int at = (n * H + h) * Q + q;
                double a = exp((double)lse[at]), b = exp((double)other[at]);
                result.out[1][at] = (float)log(a + b);
                for (int d = 0; d < D; d++) {
                    int i = ((n * Q + q) * H + h) * D + d;
                    result.out[0][i] = (float)((a * out[i] + b * part[i]) / (a + b));
                }
            }
    free(lse);
    free(other);
    free(out);
    free(part);
    return result;
}

static struct result run_copy(struct dt_device *device, int element)
{
    enum { FROM = 4 * 6 * 8 * 4, TO = 4 * 6 * 8 * 5 };
    struct result result = {0};
    const int words = element / 2; /* bfloat16 elements are compared */
    void *from = floats(device, DT_BFLOAT16, "from", FROM),
         *to = array_new(device, DT_BFLOAT16, NULL, TO);
    const struct dt_copy op = {.to = to,
                               .from = from,
                               .count = {2, 3, 4},
                               .to_stride = {120 / words, 40 / words, 10 / words},
                               .from_stride = {8 / words, 96 / words, 24 / words},
                               .width = 6 / words,
                               .element = element};
    device->compute->rows.copy(device, &op);
    take(&result, 0, device, DT_BFLOAT16, to, TO);
    device->compute->memory.release(device, from);
    device->compute->memory.release(device, to);
    return result;
}

static struct result run_small(struct dt_device *device, int which)
{
    enum { N = 3, T = 7, C = 20, PIXELS = 4, MOST = N * T * C };
    const int32_t label[N] = {2, 0, 6};
    const float update[2] = {0.75F, -0.25F};
    struct result result = {0};
    float *x = floats(device, DT_FLOAT32, "x", 8 * MOST), *y = x + MOST,
          *out = array_new(device, DT_FLOAT32, NULL, MOST);
    void *labels = array_new(device, DT_FLOAT32, (const float *)(const void *)label, N),
         *updates = array_new(device, DT_FLOAT32, update, 2);
    const struct dt_compute *compute = device->compute;
    if (which == 0)
        compute->rows.sinusoid(device, &(struct dt_sinusoid){x, out, N, C});
    else if (which == 1)
        compute->rows.condition(device, &(struct dt_condition){x, y, labels, out, N, C});
    else if (which == 2)
        compute->rows.position(device, &(struct dt_position){x, y, out, N, 2, T, C, DT_FLOAT32});
    else if (which == 3)
        compute->rows.guide(device, &(struct dt_guide){x, y, y + MOST, out, 9, 8, 11, 6, 3, 4.0F});
    else
        compute->rows.sampler(device, &(struct dt_sampler){x, y, updates, T, 3, 6, PIXELS});
    take(&result, 0, device, DT_FLOAT32, which == 4 ? x : out, which == 4 ? T * 3 * PIXELS : MOST);
    compute->memory.release(device, x);
    compute->memory.release(device, out);
    compute->memory.release(device, labels);
    compute->memory.release(device, updates);
    return result;
}

/* Few operations on each number: exp and log are good to a few units. */
static void other_operations_are_right(void **state)
{
    (void)state;
    static const char *const names[] = {"sinusoid", "condition", "position", "guide", "sampler"};
    for (int i = 0; i < 5; i++)
        near(names[i], run_small(gpu, i), run_small(cpu, i), ldexp(1.0, -20));
    for (int dtype = 0; dtype < compared(); dtype++)
        near("merge", run_merge(gpu, (enum dt_dtype)dtype), expect_merge((enum dt_dtype)dtype),
             ldexp(1.0, -20) + unit((enum dt_dtype)dtype));
    near("copy of 2 bytes", run_copy(gpu, 2), run_copy(cpu, 2), 0.0);
    near("copy of 4 bytes", run_copy(gpu, 4), run_copy(cpu, 4), 0.0);
}

static void narrowing_rounds_to_even(void **state)
{
    (void)state;
    enum { N = 1003 };
    float *x = random_floats("narrow", N), *from, *got;
    const uint32_t ties[] = {0x3f808000, 0x3f818000, 0xbf808000,
                             0x7f7fffff, 0x00000001, 0x80000000};
    memcpy(x, ties, sizeof ties);
    from = array_new(gpu, DT_FLOAT32, x, N);
    void *to = array_new(gpu, DT_BFLOAT16, NULL, N);
    gpu->compute->rows.narrow(gpu, DT_BFLOAT16, from, to, N);
    got = array_read(gpu, DT_BFLOAT16, to, N);
    round_floats(DT_BFLOAT16, x, N);
    assert_memory_equal(got, x, N * sizeof *x);
    gpu->compute->memory.release(gpu, from);
    gpu->compute->memory.release(gpu, to);
    free(x);
    free(got);
}

static void sums_of_words_are_exact(void **state)
{
    (void)state;
    enum { N = 100003 };
    uint16_t *words = malloc(N * sizeof *words);
    uint64_t expect = 41, got = 0;
    assert_non_null(words);
    for (int i = 0; i < N; i++) {
        words[i] = (uint16_t)(i * 7919);
        expect += words[i];
    }
    void *data = NULL, *sum = NULL;
    const uint64_t start = 41;
    assert_int_equal(gpu->compute->memory.alloc(gpu, N * 2, &data), DT_OK);
    assert_int_equal(gpu->compute->memory.alloc(gpu, 8, &sum), DT_OK);
    assert_int_equal(gpu->compute->memory.put(gpu, data, words, N * 2), DT_OK);
    assert_int_equal(gpu->compute->memory.put(gpu, sum, &start, 8), DT_OK);
    gpu->compute->rows.sum(gpu, data, N * 2, sum);
    assert_int_equal(gpu->compute->finish(gpu, soon(), NULL, NULL), DT_OK);
    assert_int_equal(gpu->compute->memory.get(gpu, &got, sum, 8), DT_OK);
    assert_true(got == expect);
    gpu->compute->memory.release(gpu, data);
    gpu->compute->memory.release(gpu, sum);
    free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modulation_is_right),
        cmocka_unit_test(positions_are_added_and_rounded),
        cmocka_unit_test(an_instance_that_is_not_built_is_named),
        cmocka_unit_test(other_operations_are_right),
        cmocka_unit_test(narrowing_rounds_to_even),
        cmocka_unit_test(sums_of_words_are_exact),
    };
    gpu = gpu_open();
    if (gpu == NULL)
        return SKIPPED;
    cpu = cpu_open();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    gpu->compute->close(gpu);
    cpu->compute->close(cpu);
    return failed;
}
