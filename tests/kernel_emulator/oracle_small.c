/* SPDX-License-Identifier: MIT */
/* The launchers that copy, add up, and work on float32 alone, on the emulator,
 * against the CPU back end. */
#include "tests/kernel_emulator/oracle_case.h"

struct copy_case {
    int64_t count[3], width, to_gap, from_gap;
    int element;
    size_t to_shift, from_shift;
};

static unsigned char *bytes_at(size_t n, size_t shift)
{
    unsigned char *out = emu_alloc(n, shift);
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)dt_rng_next(&dice);
    return out;
}

/* to is transposed in its first two counts, as a split of heads has it. */
static void run_copy(const struct copy_case *c)
{
    emu_forget();
    int64_t from_row = c->width + c->from_gap, to_row = c->width + c->to_gap;
    struct dt_copy op = {
        .width = c->width,
        .element = c->element,
        .count = {c->count[0], c->count[1], c->count[2]},
        .from_stride = {c->count[1] * c->count[2] * from_row, c->count[2] * from_row, from_row},
        .to_stride = {c->count[2] * to_row, c->count[0] * c->count[2] * to_row, to_row}};
    int64_t rows = c->count[0] * c->count[1] * c->count[2];
    size_t to_bytes = (size_t)(rows * to_row * c->element);
    op.from = bytes_at((size_t)(rows * from_row * c->element), c->from_shift);
    op.to = emu_alloc(to_bytes, c->to_shift);
    struct dt_copy oracle = op;
    oracle.to = malloc(to_bytes + 1);
    memset(oracle.to, 0xff, to_bytes);
    dt_compute_cpu.rows.copy(cpu, &oracle);
    emu_reset();
    ran(dt_launch_copy(&op, NULL));
    assert_memory_equal(op.to, oracle.to, to_bytes);
    free(oracle.to);
}

static void copy_is_the_cpu_s(void **state)
{
    (void)state;
    static const struct copy_case cases[] = {
        {{2, 3, 5}, 72, 0, 144, 2, 0, 0}, {{4, 9, 2}, 128, 128, 0, 2, 0, 0},
        {{1, 1, 7}, 33, 1, 2, 2, 0, 0},   {{2, 2, 2}, 4, 0, 4, 4, 0, 0},
        {{3, 2, 1}, 5, 3, 1, 4, 4, 8},    {{1, 2, 3}, 8, 8, 8, 2, 2, 0},
        {{2, 1, 2}, 64, 0, 64, 2, 0, 8},  {{1, 1, 1}, 1, 0, 0, 2, 2, 6},
        {{1, 1, 1}, 4096, 0, 0, 4, 0, 0}, {{5, 1, 300}, 16, 0, 0, 2, 0, 16},
        {{1, 1, 3}, 13, 2, 5, 2, 2, 6},   {{2, 0, 3}, 8, 0, 0, 4, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_copy(&cases[i]);
        if (cases[i].width == 4096)
            moves_well("copy");
    }
}

static void sum_is_exact(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 2, 14, 16, 18, 30, 4096, 70002};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t shift = 0; shift <= 6; shift += 2) {
            emu_forget();
            unsigned char *data = bytes_at(counts[c], shift);
            uint64_t *sum = emu_alloc(sizeof *sum, 0), want = 5;
            *sum = 5;
            for (size_t i = 0; i < counts[c]; i += 2)
                want += (uint64_t)(data[i] | data[i + 1] << 8);
            emu_reset();
            ran(dt_launch_sum(data, (int64_t)counts[c], sum, NULL));
            assert_true(*sum == want);
            if (counts[c] == 70002 && shift == 0)
                moves_well("sum");
            uint64_t oracle = 5;
            dt_compute_cpu.rows.sum(cpu, data, (int64_t)counts[c], &oracle);
            assert_true(oracle == want);
        }
}

/* Both sides have the same angles whatever library they have: only the cosines' own errors remain,
 * two units of 1 on each side. A frequency that is one unit off would move an angle by 6e-5. */
static void check_sinusoid(void)
{
    for (int channels = 2; channels <= 256; channels = channels * 2 + 6) {
        emu_forget();
        struct dt_sinusoid op = {.count = 3, .channels = channels};
        float *time = floats(3, 0, 0);
        time[0] = 0;
        time[1] = 999;
        op.time = time;
        op.out = emu_alloc((size_t)(3 * channels) * sizeof(float), 0);
        struct dt_sinusoid oracle = op;
        oracle.out = malloc((size_t)(3 * channels) * sizeof(float));
        dt_compute_cpu.rows.sinusoid(cpu, &oracle);
        emu_reset();
        ran(dt_launch_sinusoid(&op, NULL));
        for (int i = 0; i < 3 * channels; i++)
            near(op.out[i], oracle.out[i], 0x1p-22, "out", i);
        free(oracle.out);
    }
}

static void sinusoid_is_the_cpu_s(void **state)
{
    (void)state;
    for (emu_exponentials = 2; emu_exponentials > 0; emu_exponentials--)
        check_sinusoid();
    check_sinusoid();
}

static void condition_is_the_cpu_s(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 1200; channels = channels * 3 + 1) {
        emu_forget();
        struct dt_condition op = {.count = 4, .channels = channels};
        int32_t *label = emu_alloc(4 * sizeof *label, 0);
        memcpy(label, (int32_t[]){2, 0, 2, 4}, 4 * sizeof *label);
        op.x = floats(4 * channels, 0, 0);
        op.table = floats(5 * channels, 0, 0);
        op.label = label;
        op.out = emu_alloc((size_t)(4 * channels) * sizeof(float), 0);
        struct dt_condition oracle = op;
        oracle.out = malloc((size_t)(4 * channels) * sizeof(float));
        dt_compute_cpu.rows.condition(cpu, &oracle);
        emu_reset();
        ran(dt_launch_condition(&op, NULL));
        for (int i = 0; i < 4 * channels; i++)
            near(op.out[i], oracle.out[i], 0x1p-20 * fabs((double)oracle.out[i]), "out", i);
        free(oracle.out);
    }
}

static void position_is_the_cpu_s(void **state)
{
    (void)state;
    static const int channels[] = {1, 4, 7, 8, 12, 36, 1152, 1153};
    for (size_t c = 0; c < sizeof channels / sizeof *channels; c++)
        for (size_t shift = 0; shift <= 4; shift += 4) {
            emu_forget();
            struct dt_position op = {
                .sequences = 4, .images = 2, .tokens = 3, .channels = channels[c]};
            int64_t n = (int64_t)op.tokens * op.channels;
            op.x = floats(2 * n, shift, 0);
            op.position = floats(n, 0, 0);
            op.out = emu_alloc((size_t)(4 * n) * sizeof(float), shift);
            struct dt_position oracle = op;
            oracle.out = malloc((size_t)(4 * n) * sizeof(float));
            dt_compute_cpu.rows.position(cpu, &oracle);
            emu_reset();
            ran(dt_launch_position(&op, NULL));
            assert_memory_equal(op.out, oracle.out, (size_t)(4 * n) * sizeof(float));
            if (channels[c] == 1152 && shift == 0)
                moves_well("position");
            op.stream = DT_BFLOAT16;
            op.out = emu_alloc((size_t)(4 * n) * sizeof(uint16_t), shift);
            emu_reset();
            ran(dt_launch_position(&op, NULL));
            for (int64_t i = 0; i < 4 * n; i++)
                assert_int_equal(((uint16_t *)op.out)[i], narrowed(((float *)oracle.out)[i]));
            if (channels[c] == 1152 && shift == 0)
                moves_well("position in bfloat16");
            free(oracle.out);
        }
}

static void guide_is_the_cpu_s(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 8; channels++)
        for (int guided = 0; guided <= channels; guided++) {
            emu_forget();
            struct dt_guide op = {
                .pixels = 37, .channels = channels, .guided = guided, .scale = 4.5f};
            op.cond_stride = channels + 1;
            op.uncond_stride = channels + 3;
            op.cond = floats(37 * op.cond_stride, 0, 0);
            op.uncond = floats(37 * op.uncond_stride, 4, 0);
            op.rest = floats(37 * channels, 0, 0);
            op.out = emu_alloc((size_t)(37 * channels) * sizeof(float), 0);
            struct dt_guide oracle = op;
            oracle.out = malloc((size_t)(37 * channels) * sizeof(float));
            dt_compute_cpu.rows.guide(cpu, &oracle);
            emu_reset();
            ran(dt_launch_guide(&op, NULL));
            for (int i = 0; i < 37 * channels; i++) {
                int c = i % channels;
                double a = op.cond[i / channels * op.cond_stride + c],
                       b = op.uncond[i / channels * op.uncond_stride + c];
                near(op.out[i], oracle.out[i],
                     c < guided ? 4 * ROUNDING_FLOAT * (fabs(b) + 4.5 * (fabs(a) + fabs(b))) : 0,
                     "out", i);
            }
            free(oracle.out);
        }
}

static void sampler_is_the_cpu_s(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 5; channels += 2)
        for (int patch = 1; patch <= 4; patch++) {
            emu_forget();
            struct dt_sampler op = {.tokens = 19,
                                    .channels = channels,
                                    .eps_channels = channels * 2 - 1,
                                    .pixels = patch * patch};
            int64_t n = (int64_t)op.tokens * channels * op.pixels;
            float *update = floats(2, 0, 0);
            op.latent = floats(n, 0, 0);
            op.eps = floats((int64_t)op.tokens * op.eps_channels * op.pixels, 0, 0);
            op.update = update;
            float *before = wide_copy(DT_FLOAT32, op.latent, n);
            struct dt_sampler oracle = op;
            oracle.latent = wide_copy(DT_FLOAT32, op.latent, n);
            dt_compute_cpu.rows.sampler(cpu, &oracle);
            emu_reset();
            ran(dt_launch_sampler(&op, NULL));
            for (int64_t i = 0; i < n; i++) /* |step eps| is at most what was added */
                near(op.latent[i], oracle.latent[i],
                     4 * ROUNDING_FLOAT *
                         (2 * fabs((double)update[0] * before[i]) + fabs((double)oracle.latent[i])),
                     "latent", i);
            free(before);
            free(oracle.latent);
        }
}

static void clock_goes_on(void **state)
{
    (void)state;
    uint64_t *times = emu_alloc(4 * sizeof *times, 0);
    emu_reset();
    ran(dt_launch_clock(times, NULL));
    ran(dt_launch_clock(times + 2, NULL));
    assert_true(times[2] > times[0] && times[3] > times[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_is_the_cpu_s),     cmocka_unit_test(sum_is_exact),
        cmocka_unit_test(sinusoid_is_the_cpu_s), cmocka_unit_test(condition_is_the_cpu_s),
        cmocka_unit_test(position_is_the_cpu_s), cmocka_unit_test(guide_is_the_cpu_s),
        cmocka_unit_test(sampler_is_the_cpu_s),  cmocka_unit_test(clock_goes_on),
    };
    return cmocka_run_group_tests_name("small", tests, open_cpu, close_cpu);
}
