/* SPDX-License-Identifier: MIT */
/* Files of a small network: the true one is accepted, each wrong tensor is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/family.h"
#include "model/input.h"
#include "model/tensors.h"
#include "tests/lib/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64, FLOATS = 64 * 1024 };

static const struct dt_network network = {.name = "tiny",
                                          .family = &dt_family_dit,
                                          .hidden = 12,
                                          .heads = 3,
                                          .depth = 2,
                                          .patch = 2,
                                          .in_channels = 3,
                                          .latent_size = 8,
                                          .own = {5},
                                          .mlp_ratio = 4.0,
                                          .learn_sigma = true};
static float zeros[FLOATS];

static void says(const char *sentence)
{
    if (strstr(dt_message(), sentence) == NULL || strstr(dt_message(), path) == NULL)
        fail_msg("'%s' does not name the file or say '%s'", dt_message(), sentence);
}

struct made {
    struct dt_safetensor tensors[MOST];
    struct dt_tensor about[MOST];
    int count, position; /* position: of the table of positions */
};

static int64_t bytes_of(const struct dt_safetensor *tensor)
{
    int64_t bytes = strcmp(tensor->dtype, "I64") == 0 || strcmp(tensor->dtype, "F64") == 0 ? 8 : 4;
    for (int i = 0; i < tensor->rank; i++)
        bytes *= tensor->shape[i];
    assert_true(bytes <= (int64_t)sizeof zeros);
    return bytes;
}

static void write_made(struct made *made)
{
    for (int i = 0; i < made->count; i++) {
        if (made->tensors[i].data == NULL)
            made->tensors[i].data = zeros;
        made->tensors[i].bytes = bytes_of(&made->tensors[i]);
    }
    assert_int_equal(dt_safetensors_write(path, made->tensors, made->count), DT_OK);
}

static void make_weights(struct made *made)
{
    const struct dt_workload workload = {.network = network, .height = 8, .width = 8};
    *made = (struct made){.count = dt_tensor_count(&network)};
    assert_true(made->count < MOST);
    for (int i = 0; i < made->count; i++) {
        struct dt_tensor *about = &made->about[i];
        dt_tensor_init(about, &workload, i);
        if (about->kind == DT_TENSOR_POSITION)
            made->position = i;
        made->tensors[i] =
            (struct dt_safetensor){.name = about->name, .dtype = "F32", .rank = about->rank};
        memcpy(made->tensors[i].shape, about->shape, sizeof about->shape);
    }
}

static void refuse_weights(struct made *made, const char *sentence)
{
    write_made(made);
    assert_int_equal(dt_weights_inspect(path, &network), DT_EUSAGE);
    says(sentence);
}

/* Names and shapes as `state_dict()` of the authors' DiT(input_size=8, patch_size=2, in_channels=3,
 * hidden_size=12, depth=2, num_heads=3, num_classes=5) lists them. */
static void names_and_shapes_are_the_authors(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int rank;
        int64_t shape[4];
    } rows[] = {
        {"pos_embed", 3, {1, 16, 12}},
        {"x_embedder.proj.weight", 4, {12, 3, 2, 2}},
        {"x_embedder.proj.bias", 1, {12}},
        {"t_embedder.mlp.0.weight", 2, {12, 256}},
        {"t_embedder.mlp.0.bias", 1, {12}},
        {"t_embedder.mlp.2.weight", 2, {12, 12}},
        {"t_embedder.mlp.2.bias", 1, {12}},
        {"y_embedder.embedding_table.weight", 2, {6, 12}},
        {"blocks.1.attn.qkv.weight", 2, {36, 12}},
        {"blocks.1.attn.qkv.bias", 1, {36}},
        {"blocks.1.attn.proj.weight", 2, {12, 12}},
        {"blocks.1.attn.proj.bias", 1, {12}},
        {"blocks.1.mlp.fc1.weight", 2, {48, 12}},
        {"blocks.1.mlp.fc1.bias", 1, {48}},
        {"blocks.1.mlp.fc2.weight", 2, {12, 48}},
        {"blocks.1.mlp.fc2.bias", 1, {12}},
        {"blocks.1.adaLN_modulation.1.weight", 2, {72, 12}},
        {"blocks.1.adaLN_modulation.1.bias", 1, {72}},
        {"final_layer.linear.weight", 2, {24, 12}},
        {"final_layer.linear.bias", 1, {24}},
        {"final_layer.adaLN_modulation.1.weight", 2, {24, 12}},
        {"final_layer.adaLN_modulation.1.bias", 1, {24}},
    };
    struct made made;
    int n = sizeof rows / sizeof rows[0];
    make_weights(&made);
    assert_int_equal(made.count, n + 10); /* block 0 has ten tensors too */
    for (int i = 0; i < n; i++) {
        int at = 0;
        while (at < made.count && strcmp(made.about[at].name, rows[i].name) != 0)
            at++;
        if (at == made.count)
            fail_msg("'%s' is not there", rows[i].name);
        assert_int_equal(made.about[at].rank, rows[i].rank);
        assert_memory_equal(made.about[at].shape, rows[i].shape, sizeof rows[i].shape);
    }
    write_made(&made);
    assert_int_equal(dt_weights_inspect(path, &network), DT_OK);
}

static void each_wrong_weight_is_refused(void **state)
{
    (void)state;
    struct made made;
    char sentence[128];
    make_weights(&made);
    for (int i = 0; i < made.count; i++) {
        const struct dt_safetensor whole = made.tensors[i];
        snprintf(sentence, sizeof sentence, "tensor '%s' has dtype F64, expected F32", whole.name);
        made.tensors[i].dtype = "F64";
        refuse_weights(&made, sentence);
        made.tensors[i] = whole;
        snprintf(sentence, sizeof sentence, "tensor '%s' has shape", whole.name);
        made.tensors[i].shape[whole.rank - 1]++;
        refuse_weights(&made, sentence);
        made.tensors[i] = whole;
        made.tensors[i].shape[made.tensors[i].rank++] = 1;
        refuse_weights(&made, sentence);
        made.tensors[i] = made.tensors[made.count - 1];
        made.count--;
        snprintf(sentence, sizeof sentence, "tensor '%s' is missing", whole.name);
        if (i != made.position)
            refuse_weights(&made, sentence);
        made.tensors[made.count++] = made.tensors[i];
        made.tensors[i] = whole;
    }
}

static void unknown_weights_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"blocks.2.attn.qkv.bias",
                                        "blocks.00.attn.qkv.bias",
                                        "blocks.-1.attn.qkv.bias",
                                        "blocks.0.attn",
                                        "blocks.",
                                        "blocks.0",
                                        "head.weight",
                                        "blocks.99999999999999999999.attn.qkv.bias",
                                        "blocks.0.pos_embed",
                                        "blocks. 0.attn.qkv.bias",
                                        ""};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct made made;
        char sentence[128];
        make_weights(&made);
        made.tensors[made.count++] =
            (struct dt_safetensor){.name = names[i], .dtype = "F32", .rank = 1, .shape = {3}};
        snprintf(sentence, sizeof sentence,
                 "tensor '%s' is not part of the network 'tiny' of depth 2", names[i]);
        refuse_weights(&made, sentence);
    }
}

/* The table of positions is a formula: it may be missing, or be that of another grid. */
static void the_table_of_positions_is_free(void **state)
{
    (void)state;
    struct made made;
    make_weights(&made);
    made.tensors[made.position].shape[1] = 35;
    write_made(&made);
    assert_int_equal(dt_weights_inspect(path, &network), DT_OK);
    struct dt_workload workload = {.network = network, .height = 10, .width = 14};
    assert_int_equal(dt_weights_inspect_positions(path, &workload), DT_OK);
    workload.width = 16;
    assert_int_equal(dt_weights_inspect_positions(path, &workload), DT_EUSAGE);
    says("'pos_embed' has 35 positions, expected 40, as the image has tokens, or the 16 of");
    made.tensors[made.position].shape[1] = 16;
    write_made(&made);
    assert_int_equal(dt_weights_inspect_positions(path, &workload), DT_OK);
    made.tensors[made.position] = made.tensors[--made.count];
    write_made(&made);
    assert_int_equal(dt_weights_inspect(path, &network), DT_OK);
    assert_int_equal(dt_weights_inspect_positions(path, &workload), DT_OK);
}

static const int64_t times[] = {0, 1000000}, labels[] = {5, 0};

static void make_input(struct made *made)
{
    *made = (struct made){
        .tensors = {{.name = "x", .dtype = "F32", .rank = 4, .shape = {2, 3, 6, 14}},
                    {.name = "t", .dtype = "I64", .rank = 1, .shape = {2}, .data = times},
                    {.name = "y", .dtype = "I64", .rank = 1, .shape = {2}, .data = labels}},
        .count = 3};
}

static void refuse_input(struct made *made, const char *sentence)
{
    int batch = -1, height = -1, width = -1;
    write_made(made);
    assert_int_equal(dt_input_inspect(path, &network, &batch, &height, &width), DT_EUSAGE);
    says(sentence);
    assert_int_equal(batch, -1);
    make_input(made);
}

static void inputs_are_checked(void **state)
{
    (void)state;
    static const int64_t negative[] = {3, -1}, high[] = {6, 0};
    struct made made;
    int batch, height, width;
    make_input(&made);
    write_made(&made);
    assert_int_equal(dt_input_inspect(path, &network, &batch, &height, &width), DT_OK);
    assert_int_equal(batch, 2);
    assert_int_equal(height, 6);
    assert_int_equal(width, 14);
    made.tensors[0].shape[1] = 4;
    refuse_input(&made, "tensor 'x' has shape [2, 4, 6, 14], expected [any, 3, any, any]");
    made.tensors[0].shape[2] = 5;
    refuse_input(&made, "tensor 'x' is 5 pixels high, expected a multiple of the patch, 2");
    made.tensors[0].shape[3] = 0;
    refuse_input(&made, "tensor 'x' is 0 pixels wide");
    made.tensors[0].shape[0] = 0;
    refuse_input(&made, "tensor 'x' holds 0 images");
    made.tensors[0].shape[0] = 3;
    refuse_input(&made, "tensor 't' has shape [2], expected [3]");
    made.tensors[0].dtype = "F64";
    refuse_input(&made, "tensor 'x' has dtype F64, expected F32");
    made.tensors[2].dtype = "I32";
    refuse_input(&made, "tensor 'y' has dtype I32, expected I64");
    made.tensors[2].name = "z";
    refuse_input(&made, "tensor 'y' is missing");
    made.tensors[1].data = negative;
    refuse_input(&made, "tensor 't' holds -1 at 1, expected 0 or more");
    made.tensors[2].data = negative;
    refuse_input(&made, "tensor 'y' holds -1 at 1, expected 0 to 5");
    made.tensors[2].data = high;
    refuse_input(&made, "tensor 'y' holds 6 at 0, expected 0 to 5");
    made.tensors[made.count++] =
        (struct dt_safetensor){.name = "mask", .dtype = "F32", .rank = 1, .shape = {1}};
    refuse_input(&made, "tensor 'mask' is not an input, expected x, t and y");
}

static void unreadable_files_are_io_errors(void **state)
{
    (void)state;
    int batch, height, width;
    assert_int_equal(dt_input_inspect("/tmp/no/such/file", &network, &batch, &height, &width),
                     DT_EIO);
    assert_int_equal(dt_weights_inspect("/tmp", &network), DT_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_shapes_are_the_authors),
        cmocka_unit_test(each_wrong_weight_is_refused),
        cmocka_unit_test(unknown_weights_are_refused),
        cmocka_unit_test(the_table_of_positions_is_free),
        cmocka_unit_test(inputs_are_checked),
        cmocka_unit_test(unreadable_files_are_io_errors),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
