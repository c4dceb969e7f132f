/* SPDX-License-Identifier: MIT */
/* The network on one rank against a slow reference of the same layers in float64, written from the
 * paper and the names of the tensors alone: loops over images and tokens, no tiles, no tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "base/safetensors.h"
#include "model/input.h"
#include "tests/kernels/reference.h"

#include <unistd.h>

/* SiLU(timestep + class) */
static void conditioning(const struct reference *ref, double time, int label, double *out)
{
    double wave[256], *hidden = zeros(ref->c);
    sinusoids(time, wave);
    dense(wave, 256, tensor(ref, "t_embedder.mlp.0.weight"), tensor(ref, "t_embedder.mlp.0.bias"),
          ref->c, hidden);
    for (int i = 0; i < ref->c; i++)
        hidden[i] = silu(hidden[i]);
    dense(hidden, ref->c, tensor(ref, "t_embedder.mlp.2.weight"),
          tensor(ref, "t_embedder.mlp.2.bias"), ref->c, out);
    const float *table = tensor(ref, "y_embedder.embedding_table.weight");
    for (int i = 0; i < ref->c; i++)
        out[i] = silu(out[i] + (double)table[label * ref->c + i]);
    free(hidden);
}

static void block(const struct reference *ref, int i, const double *cond, double *x)
{
    int c = ref->c;
    double *mod = zeros(6 * c), *norm = zeros(c), *qkv = zeros(ref->tokens * 3 * c);
    double *heads = zeros(ref->tokens * c), *branch = zeros(c), *wide = zeros(ref->mlp);
    dense(cond, c, block_tensor(ref, i, "adaLN_modulation.1.weight"),
          block_tensor(ref, i, "adaLN_modulation.1.bias"), 6 * c, mod);
    for (int t = 0; t < ref->tokens; t++) {
        normalise(x + t * c, c, mod, mod + c, norm);
        dense(norm, c, block_tensor(ref, i, "attn.qkv.weight"),
              block_tensor(ref, i, "attn.qkv.bias"), 3 * c, qkv + t * 3 * c);
    }
    for (int h = 0; h < ref->workload->network.heads; h++)
        attend(ref, qkv, h, heads);
    for (int t = 0; t < ref->tokens; t++) {
        dense(heads + t * c, c, block_tensor(ref, i, "attn.proj.weight"),
              block_tensor(ref, i, "attn.proj.bias"), c, branch);
        for (int k = 0; k < c; k++)
            x[t * c + k] += mod[2 * c + k] * branch[k];
        normalise(x + t * c, c, mod + 3 * c, mod + 4 * c, norm);
        dense(norm, c, block_tensor(ref, i, "mlp.fc1.weight"), block_tensor(ref, i, "mlp.fc1.bias"),
              ref->mlp, wide);
        for (int k = 0; k < ref->mlp; k++)
            wide[k] = gelu(wide[k]);
        dense(wide, ref->mlp, block_tensor(ref, i, "mlp.fc2.weight"),
              block_tensor(ref, i, "mlp.fc2.bias"), c, branch);
        for (int k = 0; k < c; k++)
            x[t * c + k] += mod[5 * c + k] * branch[k];
    }
    free(mod);
    free(norm);
    free(qkv);
    free(heads);
    free(branch);
    free(wide);
}

/* out [out_channels, h, w] of one image. */
static void network(const struct reference *ref, const double *image, double time, int label,
                    double *out)
{
    const struct dt_network *net = &ref->workload->network;
    int c = ref->c, p = net->patch, channels = dt_network_out_channels(net);
    double *cond = zeros(c), *x = zeros(ref->tokens * c), *mod = zeros(2 * c), *norm = zeros(c);
    double *pixels = zeros(p * p * channels);
    conditioning(ref, time, label, cond);
    embed(ref, image, x);
    for (int i = 0; i < net->depth; i++)
        block(ref, i, cond, x);
    dense(cond, c, tensor(ref, "final_layer.adaLN_modulation.1.weight"),
          tensor(ref, "final_layer.adaLN_modulation.1.bias"), 2 * c, mod);
    for (int t = 0; t < ref->tokens; t++) {
        normalise(x + t * c, c, mod, mod + c, norm);
        dense(norm, c, tensor(ref, "final_layer.linear.weight"),
              tensor(ref, "final_layer.linear.bias"), p * p * channels, pixels);
        unpatch(ref, t, pixels, out);
    }
    free(cond);
    free(x);
    free(mod);
    free(norm);
    free(pixels);
}

static double alpha_bar(int time)
{
    double product = 1.0;
    for (int i = 0; i <= time; i++)
        product *= 1.0 - (1e-4 + (0.02 - 1e-4) / 999.0 * i);
    return product;
}

/* Two guided steps of DDIM from the seeded noise. */
static void guided_steps_match_float64(void **state)
{
    (void)state;
    struct dt_workload workload = case_workload(3, 12, 8, 12);
    struct dt_plan plan = case_plan(1, 1, 1);
    struct dt_weights *weights = NULL;
    assert_int_equal(dt_weights_new(&workload, case_device(), &weights), DT_OK);
    struct reference ref = reference_of(&workload);
    int pixels = 3 * 8 * 12, label;
    double *image = zeros(pixels), *cond = zeros(2 * pixels), *uncond = zeros(2 * pixels);
    float noise[3 * 8 * 12], got[2 * 3 * 8 * 12];
    dt_rng_fill(noise, (size_t)pixels, workload.seed, dt_rng_stream("noise"), 0, 1.0f);
    label = (int)(dt_rng_hash(workload.seed, dt_rng_stream("label"), 0) % 7);
    for (int i = 0; i < pixels; i++)
        image[i] = noise[i];
    for (int step = 0; step < 2; step++) {
        int time = (49 - step) * 20;
        double here = alpha_bar(time), next = alpha_bar(time - 20);
        network(&ref, image, time, label, cond);
        network(&ref, image, time, 7, uncond);
        for (int i = 0; i < pixels; i++) {
            double eps = uncond[i] + 4.0 * (cond[i] - uncond[i]);
            double clean = (image[i] - sqrt(1.0 - here) * eps) / sqrt(here);
            cond[i] = eps;
            image[i] = sqrt(next) * clean + sqrt(1.0 - next) * eps;
        }
        struct case_run run = {.workload = &workload,
                               .plan = &plan,
                               .weights = weights,
                               .steps = step + 1,
                               .out = got};
        assert_int_equal(case_run_plan(&run, &(struct dt_fake_options){0}), DT_OK);
        double error = apart(got, cond, 2 * pixels);
        print_message("step %d: relative error %.2e\n", step, error);
        assert_true(error < 1e-5);
    }
    dt_weights_free(weights);
    forget(&ref);
    free(image);
    free(cond);
    free(uncond);
}

static void write_input(const char *path, const float *x, const int64_t *t, const int64_t *y)
{
    const struct dt_safetensor tensors[] = {
        {"x", "F32", 4, {2, 3, 12, 8}, x, 2 * 3 * 12 * 8 * 4},
        {"t", "I64", 1, {2}, t, 16},
        {"y", "I64", 1, {2}, y, 16},
    };
    assert_int_equal(dt_safetensors_write(path, tensors, 3), DT_OK);
}

/* A file's own t and y, no guidance, no sampler: every step gives the same output. */
static void input_file_matches_float64(void **state)
{
    (void)state;
    char path[] = "/tmp/dt-forward-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct dt_workload workload = case_workload(2, 16, 12, 8);
    struct dt_plan plan = case_plan(1, 1, 1);
    float x[2 * 3 * 12 * 8], got[2 * 6 * 12 * 8];
    const int64_t t[2] = {999, 13}, y[2] = {7, 2};
    dt_rng_fill(x, 2 * 3 * 12 * 8, 5, 1, 0, 1.0f);
    write_input(path, x, t, y);
    workload.guidance = false;
    snprintf(workload.input, sizeof workload.input, "%s", path);
    assert_int_equal(dt_input_inspect(path, &workload.network, &workload.input_batch,
                                      &workload.height, &workload.width),
                     DT_OK);
    assert_int_equal(workload.input_batch, 2);
    assert_int_equal(workload.height, 12);
    assert_int_equal(workload.width, 8);
    plan.batch = 2;
    struct dt_weights *weights = NULL;
    assert_int_equal(dt_weights_new(&workload, case_device(), &weights), DT_OK);
    struct reference ref = reference_of(&workload);
    int size = 3 * 12 * 8;
    double *image = zeros(size), *want = zeros(2 * size);
    for (int steps = 1; steps <= 2; steps++) {
        struct case_run run = {
            .workload = &workload, .plan = &plan, .weights = weights, .steps = steps, .out = got};
        assert_int_equal(case_run_plan(&run, &(struct dt_fake_options){0}), DT_OK);
        for (int i = 0; i < 2; i++) {
            for (int e = 0; e < size; e++)
                image[e] = x[i * size + e];
            network(&ref, image, (double)t[i], (int)y[i], want);
            double error = apart(got + (int64_t)i * 2 * size, want, 2 * size);
            print_message("image %d: relative error %.2e\n", i, error);
            assert_true(error < 1e-5);
        }
    }
    unlink(path);
    dt_weights_free(weights);
    forget(&ref);
    free(image);
    free(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guided_steps_match_float64),
        cmocka_unit_test(input_file_matches_float64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
