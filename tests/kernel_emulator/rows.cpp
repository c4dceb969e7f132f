// SPDX-License-Identifier: MIT
// The row by row kernels against the CPU back end and closed forms: every type, shapes that go in eights and shapes that do
// not, at aligned and at odd addresses; with both orders of threads, to the same bits.
extern "C" {
#include "kernels/cuda/launch.h"
}
#include "tests/kernel_emulator/emulator.h"

#include <cmath>
#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#define U 0x1p-24 // unit roundoff of float32

static uint32_t state = 1;

static float draw(void) // in [-2, 2)
{
    state = state * 1664525u + 1013904223u;
    return (float)((int)(state >> 8) - 0x800000) * 0x1p-22f;
}

// Random elements of a type in the emulator's memory, `shift` bytes past a multiple of 256.
static void *random_of(enum dt_dtype dtype, int64_t n, int shift)
{
    char *out = (char *)emu_alloc((size_t)n * (size_t)dt_dtype_bytes(dtype), (size_t)shift);
    for (int64_t i = 0; i < n; i++) {
        float x = draw();
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        uint16_t half = (uint16_t)(bits >> 16);
        if (dtype == DT_BFLOAT16)
            memcpy(out + i * 2, &half, 2);
        else
            memcpy(out + i * 4, &x, 4);
    }
    return out;
}

static float *floats(int64_t n, int shift)
{
    return (float *)random_of(DT_FLOAT32, n, shift);
}

static double at(const void *data, enum dt_dtype dtype, int64_t i)
{
    float x;
    if (dtype != DT_BFLOAT16)
        return ((const float *)data)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// Rounding to the type's own: half a unit in the last place of bfloat16, nothing for float32, whose rounding is in U.
static double rounding(enum dt_dtype dtype)
{
    return dtype == DT_BFLOAT16 ? 0x1p-8 : 0.0;
}

static void launched(int error)
{
    if (error != 0)
        fail_msg("error %d: %s", error, emu_error());
}

#define NEAR(got, want, bound)                                                                     \
    do {                                                                                           \
        if (!(fabs((got) - (want)) <= (bound)))                                                    \
            fail_msg("%.9g, expected %.9g within %.3g", (double)(got), (double)(want), (double)(bound)); \
    } while (0)

static const enum dt_dtype dtypes[] = {DT_FLOAT32, DT_BFLOAT16};

// ---- layer-norm, with and without a branch; a stream in bfloat16 is rounded after the sum, and y is of the sum before

static const struct kind {
    enum dt_dtype type, stream;
} kinds[] = {{DT_FLOAT32, DT_FLOAT32}, {DT_BFLOAT16, DT_FLOAT32}, {DT_BFLOAT16, DT_BFLOAT16}};

static void check_stored(const struct dt_modulate *op, float x, int64_t i)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (op->stream != DT_BFLOAT16)
        assert_memory_equal(&bits, (const uint32_t *)op->x + i, sizeof bits);
    else
        assert_int_equal(((const uint16_t *)op->x)[i], (bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// Sums have fewer than depth roundings in a row: mean off by depth U mean|x|, the rest follows to first order.
static void check_row(const struct dt_modulate *op, enum dt_dtype dtype, int64_t row, const void *before)
{
    int64_t n = op->channels, sequence = row / op->tokens;
    double mean = 0, size = 0, squares = 0, depth = (double)n / 256 + 32;
    std::vector<float> x((size_t)n);
    for (int64_t i = 0; i < n; i++) {
        float sum = (float)at(before, op->stream, row * n + i);
        if (op->branch != NULL)
            sum = fmaf(op->gate[sequence * op->gate_stride + i], (float)at(op->branch, dtype, row * n + i), sum);
        check_stored(op, sum, row * n + i);
        mean += sum / (double)n;
        size += fabs(sum) / (double)n;
        x[(size_t)i] = sum;
    }
    for (int64_t i = 0; i < n; i++)
        squares += (x[(size_t)i] - mean) * (x[(size_t)i] - mean);
    double inverse = 1 / sqrt(squares / (double)n + 1e-6), off = depth * U * size;
    for (int64_t i = 0; i < n; i++) {
        double scale = 1 + (double)op->scale[sequence * op->stride + i];
        double shift = op->shift[sequence * op->stride + i];
        double unit = (x[(size_t)i] - mean) * inverse, want = unit * scale + shift;
        double bound = fabs(scale) * (off * inverse + fabs(unit) * (depth + 8) * U) + fabs(want) * U;
        NEAR(at(op->y, dtype, row * n + i), want, 1.01 * bound + fabs(want) * rounding(dtype) + 1e-30);
    }
}

static void modulate_case(const struct kind &kind, int channels, int shift, bool branch)
{
    const enum dt_dtype dtype = kind.type;
    const size_t of_x = (size_t)dt_dtype_bytes(kind.stream);
    struct dt_modulate op = {};
    op.sequences = 2, op.tokens = 3, op.channels = channels;
    op.stride = op.gate_stride = 6 * (int64_t)channels, op.stream = kind.stream;
    int64_t n = 6 * (int64_t)channels;
    op.x = random_of(op.stream, n, shift * (int)of_x);
    op.branch = branch ? random_of(dtype, n, shift * dt_dtype_bytes(dtype)) : NULL;
    float *table = floats(2 * op.stride, shift * 4);
    op.shift = table, op.scale = table + channels, op.gate = table + 2 * channels;
    op.y = emu_alloc((size_t)(n * dt_dtype_bytes(dtype)), (size_t)(shift * dt_dtype_bytes(dtype)));
    std::vector<char> before((const char *)op.x, (const char *)op.x + (size_t)n * of_x);
    std::vector<char> bits((size_t)(n * dt_dtype_bytes(dtype)));
    for (int backwards = 0; backwards < 2; backwards++) {
        memcpy(op.x, before.data(), before.size());
        emu_reset();
        emu_order(backwards);
        launched(dt_launch_modulate(dtype, &op, NULL));
        if (backwards == 1)
            assert_memory_equal(bits.data(), op.y, bits.size());
        memcpy(bits.data(), op.y, bits.size());
    }
    emu_order(0);
    for (int64_t row = 0; row < 6; row++)
        check_row(&op, dtype, row, before.data());
    struct emu_tally counts = emu_counts();
    if (channels % 8 == 0 && shift == 0) { // 16 bytes at a time, and every row read and written once
        assert_int_equal(counts.load.wide, counts.load.bytes);
        assert_int_equal(counts.store.wide, counts.store.bytes);
        int64_t bytes = dt_dtype_bytes(dtype);
        assert_int_equal(counts.load.bytes, n * ((int64_t)of_x + 2 * 4 + (branch ? 4 + bytes : 0)));
        assert_int_equal(counts.store.bytes, n * (bytes + (branch ? (int64_t)of_x : 0)));
    }
    emu_forget();
}

static void modulate_is_layer_norm(void **)
{
    static const int channels[] = {8, 72, 1152, 2056, 4104, 13, 257};
    for (const struct kind &kind : kinds) {
        for (int n : channels)
            for (int branch = 0; branch < 2; branch++)
                modulate_case(kind, n, 0, branch);
        modulate_case(kind, 72, 1, true);
    }
}

// ---- copies

static void copy_case(int element, int64_t width, int64_t gap, int shift)
{
    struct dt_copy op = {};
    int64_t counts[3] = {2, 3, 5};
    memcpy(op.count, counts, sizeof counts);
    op.width = width, op.element = element;
    op.from_stride[2] = width + gap, op.from_stride[1] = 5 * op.from_stride[2];
    op.from_stride[0] = 3 * op.from_stride[1];
    op.to_stride[0] = width + gap, op.to_stride[2] = 2 * op.to_stride[0]; // the order turned round
    op.to_stride[1] = 5 * op.to_stride[2];
    size_t bytes = (size_t)(30 * (width + gap) * element);
    unsigned char *from = (unsigned char *)emu_alloc(bytes, (size_t)shift);
    unsigned char *to = (unsigned char *)emu_alloc(bytes, (size_t)shift);
    for (size_t i = 0; i < bytes; i++)
        from[i] = (unsigned char)(i * 7 + i / 256);
    std::vector<unsigned char> want(bytes, 0xff);
    op.from = from;
    op.to = want.data();
    dt_compute_cpu.rows.copy(NULL, &op);
    op.to = to;
    emu_reset();
    launched(dt_launch_copy(&op, NULL));
    assert_memory_equal(to, want.data(), bytes);
    struct emu_tally counted = emu_counts();
    assert_int_equal(counted.load.bytes, 30 * width * element);
    if (shift == 0 && width * element % 16 == 0 && gap * element % 16 == 0)
        assert_int_equal(counted.load.wide, counted.load.bytes);
    emu_forget();
}

static void copies_are_the_cpu_s(void **)
{
    copy_case(2, 72, 0, 0);
    copy_case(2, 72, 8, 0);
    copy_case(2, 72, 4, 0); // 8 bytes
    copy_case(2, 72, 2, 0); // 4
    copy_case(2, 71, 0, 0); // 2
    copy_case(4, 33, 3, 4);
    copy_case(4, 1024, 0, 0);
}

static void narrow_and_sum_are_the_cpu_s(void **)
{
    static const int64_t sizes[] = {1, 7, 8, 264, 5001};
    for (int64_t n : sizes)
        for (int shift = 0; shift < 2; shift++) {
            float *x = floats(n, shift * 4);
            uint16_t *y = (uint16_t *)emu_alloc((size_t)n * 2, (size_t)shift * 2);
            float *same = (float *)emu_alloc((size_t)n * 4, 0);
            launched(dt_launch_narrow(DT_BFLOAT16, x, y, n, NULL));
            launched(dt_launch_narrow(DT_FLOAT32, x, same, n, NULL));
            assert_memory_equal(x, same, (size_t)n * 4);
            for (int64_t i = 0; i < n; i++) { // to nearest: what is left has half a place, ties to even
                uint32_t bits, tail;
                memcpy(&bits, x + i, 4);
                tail = bits & 0xffffu;
                uint32_t up = tail > 0x8000u || (tail == 0x8000u && (bits >> 16 & 1u));
                assert_int_equal(y[i], (bits >> 16) + up);
            }
            uint64_t *sum = (uint64_t *)emu_alloc(8, 0), want = 11;
            *sum = 11;
            dt_compute_cpu.rows.sum(NULL, y, n * 2, &want);
            launched(dt_launch_sum(y, n * 2, sum, NULL));
            assert_true(*sum == want);
            emu_forget();
        }
}

// ---- merging

static void merge_case(enum dt_dtype dtype, int head, int queries, int64_t gap)
{
    struct dt_merge op = {};
    op.sequences = 2, op.heads = 3, op.head = head, op.queries = queries;
    op.out_at.row = 3 * head + gap, op.out_at.sequence = queries * op.out_at.row + gap;
    int64_t n = 2 * op.out_at.sequence, rows = 2 * 3 * (int64_t)queries;
    op.out = random_of(dtype, n, 0);
    op.part = random_of(dtype, rows * head, 0);
    op.lse = floats(rows, 0);
    float *part_lse = floats(rows, 0);
    part_lse[0] = -INFINITY; // a part without keys
    op.part_lse = part_lse;
    std::vector<char> out((char *)op.out, (char *)op.out + n * dt_dtype_bytes(dtype));
    std::vector<float> lse(op.lse, op.lse + rows);
    emu_reset();
    launched(dt_launch_merge(dtype, &op, NULL));
    for (int64_t i = 0; i < rows; i++) {
        int64_t head_at = i % 3, row = i / 3 % queries, sequence = i / 3 / queries;
        int64_t place = (sequence * 3 + head_at) * queries + row;
        double a = exp((double)lse[place]), b = exp((double)part_lse[place]);
        NEAR(op.lse[place], log(a + b), 8 * U * (2 + fabs(log(a + b))));
        for (int64_t c = 0; c < head; c++) {
            int64_t to = sequence * op.out_at.sequence + row * op.out_at.row + head_at * head + c;
            double x = at(out.data(), dtype, to) * a / (a + b), y = at(op.part, dtype, i * head + c) * b / (a + b);
            NEAR(at(op.out, dtype, to), x + y,
                 12 * U * (fabs(x) + fabs(y)) + rounding(dtype) * (fabs(x + y) + U));
        }
    }
    struct emu_tally counts = emu_counts();
    if (head % 8 == 0 && gap % 8 == 0)
        assert_int_equal(counts.store.wide, rows * head * dt_dtype_bytes(dtype));
    emu_forget();
}

static void merge_is_one_softmax(void **)
{
    for (enum dt_dtype dtype : dtypes) {
        merge_case(dtype, 64, 5, 0);
        merge_case(dtype, 72, 4, 8);
        merge_case(dtype, 128, 3, 1);
        merge_case(dtype, 20, 3, 0);
        merge_case(dtype, 256, 2, 0);
    }
}

// ---- float32 alone: what the CPU back end gives, to the bit but for exp, sin and cos

static void small_ones_are_the_cpu_s(void **)
{
    float *x = floats(3 * 40, 0), *table = floats(5 * 40, 0), *out = floats(240, 0), want[240];
    int32_t *label = (int32_t *)emu_alloc(12, 0);
    label[0] = 4, label[1] = 0, label[2] = 2;
    struct dt_condition condition = {x, table, label, want, 3, 40};
    dt_compute_cpu.rows.condition(NULL, &condition);
    condition.out = out;
    launched(dt_launch_condition(&condition, NULL));
    for (int i = 0; i < 120; i++)
        NEAR(out[i], want[i], 8 * U * fabsf(want[i]));

    float *time = floats(3, 0);
    time[0] = 0.0f, time[1] = 999.0f, time[2] = 20.5f;
    struct dt_sinusoid sinusoid = {time, want, 3, 40};
    dt_compute_cpu.rows.sinusoid(NULL, &sinusoid);
    sinusoid.out = out;
    launched(dt_launch_sinusoid(&sinusoid, NULL));
    for (int i = 0; i < 120; i++)
        NEAR(out[i], want[i], 4 * U);

    for (int channels : {8, 20, 13}) {
        struct dt_position position = {floats(2 * 3 * 13 * 2, 0), table, want, 4, 2, 3, channels, DT_FLOAT32};
        dt_compute_cpu.rows.position(NULL, &position);
        position.out = out;
        launched(dt_launch_position(&position, NULL));
        assert_memory_equal(out, want, 12 * (size_t)channels * 4);
    }

    struct dt_guide guide = {x, x + 50, table, want, 9, 11, 6, 5, 3, 1.75f};
    dt_compute_cpu.rows.guide(NULL, &guide);
    guide.out = out;
    launched(dt_launch_guide(&guide, NULL));
    assert_memory_equal(out, want, 30 * 4);

    float *update = floats(2, 0), before[120];
    memcpy(before, x, sizeof before);
    memcpy(want, x, sizeof before);
    struct dt_sampler sampler = {want, table, update, 3, 4, 8, 4};
    dt_compute_cpu.rows.sampler(NULL, &sampler);
    sampler.latent = x;
    launched(dt_launch_sampler(&sampler, NULL));
    assert_memory_equal(x, want, 48 * 4);
    emu_forget();
}

static void activations_are_their_formulas(void **)
{
    for (int n : {1, 5, 16, 2051}) {
        float *x = floats(n, 0);
        x[0] = -30.0f;
        std::vector<float> before(x, x + n);
        launched(dt_launch_activation(DT_ACT_SILU, x, n, NULL));
        for (int i = 0; i < n; i++) {
            double v = before[(size_t)i], want = v / (1 + exp(-v));
            NEAR(x[i], want, fabs(want) * U * (8 + fabs(v)));
        }
        std::copy(before.begin(), before.end(), x);
        launched(dt_launch_activation(DT_ACT_GELU, x, n, NULL));
        for (int i = 0; i < n; i++) {
            double v = before[(size_t)i], u = 0.7978845608028654 * (v + 0.044715 * v * v * v);
            double want = v / (1 + exp(-2 * u));
            NEAR(x[i], want, fabs(want) * U * (8 + 8 * fabs(u)) + 1e-38);
        }
        emu_forget();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modulate_is_layer_norm),         cmocka_unit_test(copies_are_the_cpu_s),
        cmocka_unit_test(narrow_and_sum_are_the_cpu_s),   cmocka_unit_test(merge_is_one_softmax),
        cmocka_unit_test(small_ones_are_the_cpu_s),       cmocka_unit_test(activations_are_their_formulas),
    };
    return cmocka_run_group_tests_name("rows", tests, nullptr, nullptr);
}
