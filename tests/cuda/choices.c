/* SPDX-License-Identifier: MIT */
/* ctest: dose slow */
/* Which of the library's proposals a product takes: the fastest by the device's clock, once for
 * each shape; those that the library refuses when they are called are left out, and where that is
 * all of them, a simpler product is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cuda/case.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/lib/dose.h"

enum { ROWS = 24, IN = 64, OUT = 48, RANKS = 5 };

static struct dt_device *gpu;

static void begin(const char *settings)
{
    char text[160];
    snprintf(text, sizeof text, "devices=1:delay=0:poison=64k:memory=200m:%s", settings);
    dt_fake_cuda_set(text);
    gpu = gpu_open();
    assert_non_null(gpu);
}

static void end(void)
{
    assert_string_equal(dt_fake_cuda_complaint(), "");
    gpu->compute->close(gpu);
    assert_int_equal(dt_fake_cuda_blocks(0), 0);
}

static struct dt_linear *make_output(enum dt_activation act, bool wide, int choice)
{
    const struct dt_linear_shape shape = {
        .rows = ROWS, .in = IN, .out = OUT, .act = act, .wide = wide, .choice = choice};
    struct dt_linear *linear = NULL;
    if (gpu->compute->linear.make(gpu, DT_BFLOAT16, &shape, &linear) != DT_OK)
        fail_msg("%s", dt_message());
    return linear;
}

static struct dt_linear *make(enum dt_activation act, int choice)
{
    return make_output(act, true, choice);
}

/* Applies it to numbers whose products are exact, checks them, and returns the rank
 * that ran; -1: several. */
static int apply(struct dt_linear *linear)
{
    int64_t before[RANKS];
    int ran = -1, count = 0;
    float x[ROWS * IN], weight[OUT * IN], bias[OUT];
    for (int i = 0; i < ROWS * IN; i++)
        x[i] = (float)(i % 7) - 3;
    for (int i = 0; i < OUT * IN; i++)
        weight[i] = (float)(i % 5) - 2;
    for (int i = 0; i < OUT; i++)
        bias[i] = (float)i;
    void *memory[] = {
        array_new(gpu, DT_BFLOAT16, x, ROWS * IN), array_new(gpu, DT_BFLOAT16, weight, OUT * IN),
        array_new(gpu, DT_FLOAT32, bias, OUT), array_new(gpu, DT_FLOAT32, NULL, ROWS * OUT)};
    for (int r = 0; r < RANKS; r++)
        before[r] = dt_fake_cuda_products(r);
    gpu->compute->linear.apply(
        gpu, linear, &(struct dt_linear_call){memory[0], memory[1], memory[2], memory[3]});
    float *y = array_read(gpu, DT_FLOAT32, memory[3], ROWS * OUT);
    for (int r = 0; r < RANKS; r++)
        if (dt_fake_cuda_products(r) > before[r]) {
            ran = r;
            count++;
        }
    for (int i = 0; i < ROWS * OUT; i++) {
        float sum = bias[i % OUT];
        for (int k = 0; k < IN; k++)
            sum += x[i / OUT * IN + k] * weight[i % OUT * IN + k];
        assert_true(y[i] == sum);
    }
    free(y);
    for (int i = 0; i < 4; i++)
        gpu->compute->memory.release(gpu, memory[i]);
    return count == 1 ? ran : -1;
}

static void the_fastest_is_taken(void **state)
{
    (void)state;
    for (int best = 0; best < RANKS; best++) {
        char settings[32];
        snprintf(settings, sizeof settings, "lt=best%d", best);
        begin(settings);
        struct dt_linear *linear = make(DT_ACT_NONE, 0);
        assert_int_equal(apply(linear), best);
        gpu->compute->linear.free(linear);
        end();
    }
}

/* A step's weights are not in the cache: what is fastest on one that is must not win. */
static void weights_are_not_in_the_cache(void **state)
{
    (void)state;
    for (int best = 0; best < RANKS; best++) {
        char settings[32];
        snprintf(settings, sizeof settings, "lt=cold%d", best);
        begin(settings);
        struct dt_linear *linear = make(DT_ACT_NONE, 0);
        assert_int_equal(apply(linear), best);
        gpu->compute->linear.free(linear);
        end();
    }
}

static void a_proposal_can_be_named(void **state)
{
    (void)state;
    begin("lt=best3");
    for (int choice = 1; choice <= 7; choice++) {
        struct dt_linear *linear = make(DT_ACT_NONE, choice);
        assert_int_equal(apply(linear), choice <= RANKS ? choice - 1 : RANKS - 1);
        gpu->compute->linear.free(linear);
    }
    end();
}

static int64_t products(void)
{
    int64_t sum = 0;
    for (int r = 0; r < RANKS; r++)
        sum += dt_fake_cuda_products(r);
    return sum;
}

static void a_shape_is_measured_once(void **state)
{
    (void)state;
    begin("lt=best2");
    struct dt_linear *first = make(DT_ACT_NONE, 0);
    int64_t before = products();
    assert_true(before > 2 * RANKS);
    struct dt_linear *second = make(DT_ACT_NONE, 0), *other = NULL;
    assert_int_equal(products(), before);
    assert_int_equal(apply(second), 2);
    gpu->compute->linear.free(second);
    before = products();
    second = make(DT_ACT_GELU, 0); /* an activation of our own follows the same product */
    assert_int_equal(products(), before);
    other = make_output(DT_ACT_GELU, false, 0); /* another epilogue is another product */
    assert_true(products() > before + 1);
    gpu->compute->linear.free(first);
    gpu->compute->linear.free(second);
    gpu->compute->linear.free(other);
    end();
}

static void refused_proposals_are_left_out(void **state)
{
    (void)state;
    begin("lt=best1+refuse1");
    struct dt_linear *linear = make(DT_ACT_NONE, 0);
    int rank = apply(linear);
    assert_true(rank >= 0 && rank != 1);
    gpu->compute->linear.free(linear);
    end();
    begin("lt=refuse0+one");
    const struct dt_linear_shape shape = {.rows = ROWS, .in = IN, .out = OUT, .wide = true};
    assert_int_equal(gpu->compute->linear.make(gpu, DT_BFLOAT16, &shape, &linear), DT_EUNSUP);
    assert_non_null(strstr(dt_message(), "cuBLASLt has no bfloat16 product"));
    end();
}

/* The bias is then stored before. */
static void a_simpler_product_stands_in(void **state)
{
    (void)state;
    begin("lt=refuseepilogue+best4");
    struct dt_linear *linear = make(DT_ACT_NONE, 0);
    assert_int_equal(apply(linear), 4);
    gpu->compute->linear.free(linear);
    end();
}

/* Room for the layer itself, not for a second set of operands. */
static void without_memory_the_first_is_taken(void **state)
{
    (void)state;
    begin("lt=best3");
    const struct dt_linear_shape shape = {.rows = 8192, .in = 2048, .out = 2048, .wide = true};
    struct dt_linear *linear = NULL;
    void *most = NULL;
    assert_int_equal(gpu->compute->memory.alloc(gpu, 64 << 20, &most), DT_OK);
    int64_t before = products();
    assert_int_equal(gpu->compute->linear.make(gpu, DT_BFLOAT16, &shape, &linear), DT_OK);
    assert_int_equal(products(), before);
    gpu->compute->linear.free(linear);
    gpu->compute->memory.release(gpu, most);
    end();
}

static void nothing_is_measured_in_a_recording(void **state)
{
    struct dt_graph *graph = NULL;
    (void)state;
    begin("lt=best3");
    assert_int_equal(gpu->compute->graph.record(gpu), DT_OK);
    struct dt_linear *linear = make(DT_ACT_NONE, 0);
    assert_int_equal(products(), 0);
    assert_int_equal(gpu->compute->graph.recorded(gpu, &graph), DT_OK);
    gpu->compute->graph.free(gpu, graph);
    gpu->compute->linear.free(linear);
    end();
}

/* Whatever call fails while it is measured: a status with a sentence, and no memory is left. */
static void every_failure_ends_well(void **state)
{
    static const int codes[] = {2, 700};
    const int step = dose_full() ? 1 : dose_thin() ? 31 : 11;
    (void)state;
    for (int c = 0; c < 2; c++)
        for (int at = 1;; at += step) {
            char settings[64];
            snprintf(settings, sizeof settings, "fault=any,at=%d,code=%d", at, codes[c]);
            char text[160];
            snprintf(text, sizeof text, "devices=1:delay=0:poison=64k:memory=200m:%s", settings);
            dt_fake_cuda_set(text);
            const struct dt_linear_shape shape = {.rows = ROWS, .in = IN, .out = OUT, .wide = true};
            struct dt_linear *linear = NULL;
            gpu = NULL;
            dt_status status = dt_compute_cuda.open(0, &gpu);
            if (status == DT_OK)
                status = gpu->compute->linear.make(gpu, DT_BFLOAT16, &shape, &linear);
            if (status != DT_OK)
                assert_true(dt_message()[0] != '\0');
            if (status == DT_OK)
                gpu->compute->linear.free(linear);
            dt_compute_cuda.close(gpu);
            if (dt_fake_cuda_fired() == 0) {
                assert_int_equal(status, DT_OK);
                break;
            }
            assert_true(dt_fake_cuda_blocks(0) <= (status == DT_OK));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_is_taken),
        cmocka_unit_test(weights_are_not_in_the_cache),
        cmocka_unit_test(a_proposal_can_be_named),
        cmocka_unit_test(a_shape_is_measured_once),
        cmocka_unit_test(refused_proposals_are_left_out),
        cmocka_unit_test(a_simpler_product_stands_in),
        cmocka_unit_test(without_memory_the_first_is_taken),
        cmocka_unit_test(nothing_is_measured_in_a_recording),
        cmocka_unit_test(every_failure_ends_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
