/* SPDX-License-Identifier: MIT */
/* Counts against the published ones of the paper's networks; shares of a
 * sequence against their laws. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/workload.h"
#include "model/workload_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct dt_workload make(const char *name)
{
    struct dt_workload workload = {.sampler_steps = 50};
    assert_int_equal(dt_network_load(name, &workload.network), DT_OK);
    workload.height = workload.width = workload.network.latent_size;
    return workload;
}

/* Peebles & Xie 2023, table 4: parameters in millions, Gflops (which are multiply-adds) at
 * 256 pixels. The authors' training script prints 675,129,632 for DiT-XL/2, with the 256 x
 * 1152 position table. */
static void test_published_counts(void **state)
{
    static const struct {
        const char *name;
        double millions, gflops;
    } rows[] = {{"dit-s/2", 33, 6.06},
                {"dit-b/2", 130, 23.01},
                {"dit-l/2", 458, 80.71},
                {"dit-xl/2", 675, 118.64}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dt_workload workload = make(rows[i].name);
        double parameters = (double)dt_workload_parameters(&workload);
        double gflops = dt_workload_flops(&workload, 1) / 2e9;
        assert_true(fabs(parameters / 1e6 - rows[i].millions) <= 0.6);
        assert_true(fabs(gflops / rows[i].gflops - 1) < 0.005);
    }
    struct dt_workload largest = make("dit-xl/2");
    assert_int_equal(dt_workload_parameters(&largest), 675129632LL);
}

static void test_flops_scale(void **state)
{
    struct dt_workload workload = make("dit-s/2");
    (void)state;
    double once = dt_workload_flops(&workload, 1);
    assert_true(dt_workload_flops(&workload, 8) == 8 * once);
    assert_int_equal(dt_workload_passes(&workload), 1);
    workload.guidance = true;
    assert_int_equal(dt_workload_passes(&workload), 2);
    assert_true(dt_workload_flops(&workload, 1) == 2 * once);
    workload.height = 64;
    assert_int_equal(dt_workload_tokens(&workload), 512);
}

static void test_shares_tile_the_sequence(void **state)
{
    (void)state;
    for (int tokens = 1; tokens <= 40; tokens++) {
        for (int ranks = 1; ranks <= tokens; ranks++) {
            int at = 0, least = tokens, most = 0;
            for (int i = 0; i < ranks; i++) {
                int share = dt_workload_share(tokens, ranks, i);
                assert_int_equal(dt_workload_offset(tokens, ranks, i), at);
                at += share;
                least = share < least ? share : least;
                most = share > most ? share : most;
            }
            assert_int_equal(at, tokens);
            assert_true(most - least <= 1);
        }
    }
}

static void test_rank_bytes_hold_the_weights(void **state)
{
    struct dt_workload workload = make("dit-s/2");
    struct dt_plan plan;
    (void)state;
    for (int i = 0; i < dt_param_count; i++)
        dt_plan_set(&plan, i, dt_params[i].fallback);
    int64_t one = dt_workload_activation_bytes(&workload, &plan);
    assert_int_equal(dt_workload_rank_bytes(&workload, &plan),
                     one + dt_workload_weight_bytes(&workload));
    /* A layer's inputs and outputs of 256 tokens must fit at least. */
    assert_true(one > (int64_t)sizeof(float) * 256 * 384 * 5);
    plan.batch = 4;
    assert_true(dt_workload_activation_bytes(&workload, &plan) > one);
}

/* Two passes of 256 tokens of 384 channels, two bytes less each. */
static void test_a_residual_in_bfloat16_takes_half(void **state)
{
    struct dt_workload workload = make("dit-s/2");
    struct dt_plan plan = dt_plan_fallback;
    (void)state;
    workload.dtype = DT_BFLOAT16;
    workload.guidance = true;
    int64_t wide = dt_workload_activation_bytes(&workload, &plan);
    plan.residual = DT_PLAN_NARROW;
    assert_int_equal(wide - dt_workload_activation_bytes(&workload, &plan), 2 * 256 * 384 * 2);
}

static void test_round_trip(void **state)
{
    struct dt_workload workload = make("dit-b/2"), again;
    (void)state;
    workload.seed = UINT64_MAX - 5;
    workload.width = 64;
    workload.input_batch = 3;
    snprintf(workload.input, sizeof workload.input, "x.safetensors");
    snprintf(workload.weights, sizeof workload.weights, "w.safetensors");
    json_t *root = dt_workload_to_json(&workload);
    assert_non_null(root);
    assert_int_equal(dt_workload_from_json(root, "it", &again), DT_OK);
    json_t *back = dt_workload_to_json(&again);
    assert_true(json_equal(root, back));
    assert_true(again.seed == workload.seed && again.width == 64 && again.input_batch == 3);
    json_decref(root);
    json_decref(back);
}

static void test_each_mistake_is_one_sentence(void **state)
{
    static const struct {
        const char *field, *value, *sentence;
    } rows[] = {
        {"height", "33", "it: 'height' is 33, not a multiple of the patch, 2"},
        {"width", "0", "it: 'width' is 0, expected 1 to 8192"},
        {"dtype", "\"float16\"",
         "it: 'dtype' 'float16' is unknown, expected float32, bfloat16 or tf32"},
        {"guidance", "1", "it: 'guidance' is neither true nor false"},
        {"sampler_steps", "0", "it: 'sampler_steps' is 0, expected 1 to 1048576"},
        {"input", "\"x\"", "it: with 'input' there is no guidance, set it to false"},
        {"input_batch", "2", "it: 'input_batch' is 2 without an 'input'"},
        {"heigth", "2", "it: unknown field 'heigth', did you mean 'height'?"},
        {"network", "7", "it: 'network' is not an object"},
    };
    struct dt_workload workload = make("dit-s/2"), out;
    (void)state;
    workload.guidance = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *root = dt_workload_to_json(&workload);
        json_t *value = json_loads(rows[i].value, JSON_DECODE_ANY, NULL);
        assert_int_equal(json_object_set_new(root, rows[i].field, value), 0);
        assert_int_equal(dt_workload_from_json(root, "it", &out), DT_EUSAGE);
        assert_string_equal(dt_message(), rows[i].sentence);
        json_decref(root);
    }
    workload.height = workload.width = 8192;
    json_t *root = dt_workload_to_json(&workload);
    assert_int_equal(dt_workload_from_json(root, "it", &out), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "16777216 tokens"));
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_counts),
        cmocka_unit_test(test_flops_scale),
        cmocka_unit_test(test_shares_tile_the_sequence),
        cmocka_unit_test(test_rank_bytes_hold_the_weights),
        cmocka_unit_test(test_a_residual_in_bfloat16_takes_half),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_each_mistake_is_one_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
