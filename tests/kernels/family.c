/* SPDX-License-Identifier: MIT */
/* A second family, which only this program knows: no labels, the MLP before the attention, a field
 * and a letter of its own. The common code must run it as float64 does, the same on any number of
 * ranks, and count what it does. */
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

enum { INNER }; /* channels inside the MLP: letter W */

enum {
    W_PATCH,
    B_PATCH,
    W_TIME,
    B_TIME,
    W_FINAL_MOD,
    B_FINAL_MOD,
    W_OUT,
    B_OUT,
    POSITION,
    WHOLE,
    W_MOD = WHOLE,
    B_MOD,
    W_UP,
    B_UP,
    W_DOWN,
    B_DOWN,
    W_QKV,
    B_QKV,
    W_PROJ,
    B_PROJ,
    TENSORS
};

static const struct dt_tensor_row tensors[TENSORS] = {
    [W_PATCH] = {"x_embedder.proj.weight", "CAPP", DT_TENSOR_LINEAR, 1.0f},
    [B_PATCH] = {"x_embedder.proj.bias", "C", DT_TENSOR_PLAIN, 0.1f},
    [W_TIME] = {"time.weight", "CF", DT_TENSOR_LINEAR, 1.5f},
    [B_TIME] = {"time.bias", "C", DT_TENSOR_PLAIN, 0.1f},
    [W_FINAL_MOD] = {"final_mod.weight", "2C", DT_TENSOR_LINEAR, 0.5f},
    [B_FINAL_MOD] = {"final_mod.bias", "2", DT_TENSOR_PLAIN, 0.1f},
    [W_OUT] = {"out.weight", "OC", DT_TENSOR_LINEAR, 1.0f},
    [B_OUT] = {"out.bias", "O", DT_TENSOR_PLAIN, 0.05f},
    [POSITION] = {"position", "1TC", DT_TENSOR_POSITION, 0.0f},
    [W_MOD] = {"mod.weight", "6C", DT_TENSOR_STACKED, 0.6f},
    [B_MOD] = {"mod.bias", "6", DT_TENSOR_PLAIN, 0.1f},
    [W_UP] = {"up.weight", "WC", DT_TENSOR_LINEAR, 1.0f},
    [B_UP] = {"up.bias", "W", DT_TENSOR_PLAIN, 0.05f},
    [W_DOWN] = {"down.weight", "CW", DT_TENSOR_LINEAR, 1.0f},
    [B_DOWN] = {"down.bias", "C", DT_TENSOR_PLAIN, 0.05f},
    [W_QKV] = {"qkv.weight", "3C", DT_TENSOR_LINEAR, 1.25f},
    [B_QKV] = {"qkv.bias", "3", DT_TENSOR_PLAIN, 0.05f},
    [W_PROJ] = {"proj.weight", "CC", DT_TENSOR_LINEAR, 1.5f},
    [B_PROJ] = {"proj.bias", "C", DT_TENSOR_PLAIN, 0.05f},
};

enum {
    STREAM = DT_BUFFER_OWN,
    NORM,
    MLP,
    WAVES,
    CONDITION,
    MODULATION,
    FINAL_MODULATION,
    EMBEDDED,
    BUFFERS_END
};

static const struct dt_buffer_row buffers[BUFFERS_END - DT_BUFFER_OWN] = {
    {DT_ROWS_TOKEN, "C", false, false},    {DT_ROWS_TOKEN, "C", true, false},
    {DT_ROWS_TOKEN, "W", true, false},     {DT_ROWS_SEQUENCE, "F", false, false},
    {DT_ROWS_SEQUENCE, "C", false, false}, {DT_ROWS_SEQUENCE, "6", false, true},
    {DT_ROWS_SEQUENCE, "2", false, false}, {DT_ROWS_IMAGE_TOKEN, "C", false, false}};

#define LINEAR(from, to, weight) .kind = DT_OP_LINEAR, .x = (from), .y = (to), .tensor = (weight)
#define MODULATE                 .kind = DT_OP_MODULATE, .x = STREAM, .y = NORM

static const struct dt_op embed_ops[] = {
    {LINEAR(DT_BUFFER_LATENT, EMBEDDED, W_PATCH)},
    {.kind = DT_OP_POSITION, .x = EMBEDDED, .y = STREAM, .tensor = POSITION},
    {.kind = DT_OP_SINUSOID, .x = DT_BUFFER_TIME, .y = WAVES},
    {LINEAR(WAVES, CONDITION, W_TIME), .act = DT_ACT_SILU},
    {LINEAR(CONDITION, MODULATION, W_MOD)},
    {LINEAR(CONDITION, FINAL_MODULATION, W_FINAL_MOD)},
    {0}};

/* Parts of the modulation: 0 to 2 for the MLP, 3 to 5 for the attention. */
static const struct dt_op block_ops[] = {
    {MODULATE, .when = DT_FIRST, .shift = {MODULATION, 0}},
    {LINEAR(NORM, MLP, W_UP), .act = DT_ACT_SILU},
    {LINEAR(MLP, NORM, W_DOWN)},
    {MODULATE, .gate = {MODULATION, 2}, .shift = {MODULATION, 3}},
    {.kind = DT_OP_QUERIES, .x = NORM, .y = DT_BUFFER_QKV, .tensor = W_QKV},
    {.kind = DT_OP_ATTENTION},
    {LINEAR(DT_BUFFER_ATTENTION, NORM, W_PROJ)},
    {MODULATE, .when = DT_INNER, .next = true, .gate = {MODULATION, 5}, .shift = {MODULATION, 0}},
    {MODULATE, .when = DT_LAST, .gate = {MODULATION, 5}, .shift = {FINAL_MODULATION, 0}},
    {0}};

static const struct dt_op final_ops[] = {{LINEAR(NORM, DT_BUFFER_OUT, W_OUT)}, {0}};

static int64_t size(const struct dt_network *network, char letter)
{
    return letter == 'W' ? network->own[INNER] : 0;
}

static const struct dt_family_field fields[] = {{"inner", 4096}, {NULL, 0}};

static const struct dt_family second = {.name = "second",
                                        .doc = "of this test",
                                        .fields = fields,
                                        .size = size,
                                        .tensors = tensors,
                                        .whole = WHOLE,
                                        .of_block = TENSORS - WHOLE,
                                        .buffers = buffers,
                                        .buffer_count = BUFFERS_END - DT_BUFFER_OWN,
                                        .embed = embed_ops,
                                        .block = block_ops,
                                        .final = final_ops};

static struct dt_workload second_workload(void)
{
    struct dt_workload workload = case_workload(4, 12, 8, 12);
    workload.network.family = &second;
    workload.network.depth = 3;
    workload.network.own[INNER] = 40;
    return workload;
}

/* x += gate (branch of the norm of x), for each token. */
static void mlp_branch(const struct reference *ref, int i, const double *mod, double *x)
{
    int c = ref->c, inner = ref->workload->network.own[INNER];
    double *norm = zeros(c), *wide = zeros(inner), *branch = zeros(c);
    for (int t = 0; t < ref->tokens; t++) {
        normalise(x + t * c, c, mod, mod + c, norm);
        dense(norm, c, block_tensor(ref, i, "up.weight"), block_tensor(ref, i, "up.bias"), inner,
              wide);
        for (int k = 0; k < inner; k++)
            wide[k] = silu(wide[k]);
        dense(wide, inner, block_tensor(ref, i, "down.weight"), block_tensor(ref, i, "down.bias"),
              c, branch);
        for (int k = 0; k < c; k++)
            x[t * c + k] += mod[2 * c + k] * branch[k];
    }
    free(norm);
    free(wide);
    free(branch);
}

static void attention_branch(const struct reference *ref, int i, const double *mod, double *x)
{
    int c = ref->c;
    double *norm = zeros(c), *qkv = zeros(ref->tokens * 3 * c), *heads = zeros(ref->tokens * c);
    double *branch = zeros(c);
    for (int t = 0; t < ref->tokens; t++) {
        normalise(x + t * c, c, mod, mod + c, norm);
        dense(norm, c, block_tensor(ref, i, "qkv.weight"), block_tensor(ref, i, "qkv.bias"), 3 * c,
              qkv + t * 3 * c);
    }
    for (int h = 0; h < ref->workload->network.heads; h++)
        attend(ref, qkv, h, heads);
    for (int t = 0; t < ref->tokens; t++) {
        dense(heads + t * c, c, block_tensor(ref, i, "proj.weight"),
              block_tensor(ref, i, "proj.bias"), c, branch);
        for (int k = 0; k < c; k++)
            x[t * c + k] += mod[2 * c + k] * branch[k];
    }
    free(norm);
    free(qkv);
    free(heads);
    free(branch);
}

static void network(const struct reference *ref, const double *image, double time, double *out)
{
    int c = ref->c;
    double wave[256], *cond = zeros(c), *x = zeros(ref->tokens * c), *mod = zeros(6 * c);
    double *norm = zeros(c), pixels[2 * 2 * 6];
    embed(ref, image, x);
    sinusoids(time, wave);
    dense(wave, 256, tensor(ref, "time.weight"), tensor(ref, "time.bias"), c, cond);
    for (int k = 0; k < c; k++)
        cond[k] = silu(cond[k]);
    for (int i = 0; i < ref->workload->network.depth; i++) {
        dense(cond, c, block_tensor(ref, i, "mod.weight"), block_tensor(ref, i, "mod.bias"), 6 * c,
              mod);
        mlp_branch(ref, i, mod, x);
        attention_branch(ref, i, mod + 3 * c, x);
    }
    dense(cond, c, tensor(ref, "final_mod.weight"), tensor(ref, "final_mod.bias"), 2 * c, mod);
    for (int t = 0; t < ref->tokens; t++) {
        normalise(x + t * c, c, mod, mod + c, norm);
        dense(norm, c, tensor(ref, "out.weight"), tensor(ref, "out.bias"), 2 * 2 * 6, pixels);
        unpatch(ref, t, pixels, out);
    }
    free(cond);
    free(x);
    free(mod);
    free(norm);
}

enum { PIXELS = 3 * 8 * 12 };

/* The first step from the seeded noise: without labels the guided and the unguided half are one. */
static void plans_match_float64(void **state)
{
    static const struct {
        int cfg, ulysses, ring, chunks, overlap;
    } rows[] = {{1, 1, 1, 1, 0}, {1, 1, 1, 2, 0}, {2, 1, 1, 1, 0}, {1, 2, 1, 1, 0}, {1, 4, 1, 1, 0},
                {1, 2, 1, 2, 1}, {1, 1, 3, 1, 0}, {1, 1, 2, 2, 1}, {2, 2, 2, 1, 1}};
    (void)state;
    struct dt_workload workload = second_workload();
    struct dt_weights *weights = NULL;
    assert_int_equal(dt_weights_new(&workload, case_device(), &weights), DT_OK);
    struct reference ref = reference_of(&workload);
    float noise[PIXELS], got[2 * PIXELS];
    double *image = zeros(PIXELS), *want = zeros(2 * PIXELS);
    dt_rng_fill(noise, PIXELS, workload.seed, dt_rng_stream("noise"), 0, 1.0f);
    for (int i = 0; i < PIXELS; i++)
        image[i] = noise[i];
    network(&ref, image, 980, want);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dt_plan plan = case_plan(rows[i].cfg, rows[i].ulysses, rows[i].ring);
        char text[512];
        plan.chunks = rows[i].chunks;
        plan.overlap = rows[i].overlap;
        struct case_run run = {
            .workload = &workload, .plan = &plan, .weights = weights, .steps = 1, .out = got};
        assert_int_equal(case_run_plan(&run, &(struct dt_fake_options){0}), DT_OK);
        double error = apart(got, want, 2 * PIXELS);
        print_message("%s: relative error %.2e\n", plan_text(&plan, text), error);
        assert_true(error < 1e-5);
        assert_int_equal(run.bytes[0], dt_layout_bytes(&workload, &plan));
    }
    dt_weights_free(weights);
    forget(&ref);
    free(image);
    free(want);
}

/* By hand: C = 48, W = 40, T = 24, A P P = 12, O = 24. */
static void counts_follow_the_operations(void **state)
{
    (void)state;
    struct dt_workload workload = second_workload();
    const int64_t c = 48, w = 40, t = 24,
                  whole = 12 * c + c + 256 * c + c + 2 * c * c + 2 * c + 24 * c + 24 + t * c;
    const int64_t block = 6 * c * c + 6 * c + 2 * w * c + w + c + 3 * c * c + 3 * c + c * c + c;
    assert_int_equal(dt_workload_parameters(&workload), whole + 3 * block);
    double linear = (double)(t * 12 * c + 256 * c + 2 * c * c + t * 24 * c +
                             3 * (6 * c * c + t * (2 * w * c + 4 * c * c)));
    double attention = (double)(3 * 2 * t * t * c);
    assert_true(dt_workload_flops(&workload, 1) == 2 * 2 * (linear + attention));
    assert_true(dt_workload_attention_flops(&workload, 1) == 2 * 2 * attention);
    /* embedding 12; norm 8, and 16 with a gate: one and six of them */
    assert_true(dt_workload_rest_bytes(&workload, 1) == (double)(2 * t * c * (12 + 8 + 6 * 16)));
}

/* x and t are its inputs; it has no label. */
static void labels_are_not_an_input(void **state)
{
    char path[] = "/tmp/dt-family-XXXXXX";
    int batch, height, width;
    const struct dt_network network = second_workload().network;
    static const float x[PIXELS];
    static const int64_t t[1], y[1];
    const struct dt_safetensor inputs[] = {{"x", "F32", 4, {1, 3, 8, 12}, x, sizeof x},
                                           {"t", "I64", 1, {1}, t, sizeof t},
                                           {"y", "I64", 1, {1}, y, sizeof y}};
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(dt_safetensors_write(path, inputs, 2), DT_OK);
    assert_int_equal(dt_input_inspect(path, &network, &batch, &height, &width), DT_OK);
    assert_int_equal(dt_safetensors_write(path, inputs, 3), DT_OK);
    assert_int_equal(dt_input_inspect(path, &network, &batch, &height, &width), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "tensor 'y' is not an input, expected x and t"));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_match_float64),
        cmocka_unit_test(counts_follow_the_operations),
        cmocka_unit_test(labels_are_not_an_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
