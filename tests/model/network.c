/* SPDX-License-Identifier: MIT */
/* Presets against the table of the paper; each way a user's file can be wrong
 * against its sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network.h"
#include "model/workload_json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Peebles & Xie 2023, table 1. */
static void test_presets_are_the_papers(void **state)
{
    static const struct {
        const char *name;
        int depth, hidden, heads;
    } rows[] = {{"dit-s/2", 12, 384, 6},
                {"DiT-B/2", 12, 768, 12},
                {"dit-L/2", 24, 1024, 16},
                {"DIT-XL/2", 28, 1152, 16}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dt_network network;
        assert_int_equal(dt_network_load(rows[i].name, &network), DT_OK);
        assert_int_equal(network.depth, rows[i].depth);
        assert_int_equal(network.hidden, rows[i].hidden);
        assert_int_equal(network.heads, rows[i].heads);
        assert_int_equal(network.patch, 2);
        assert_int_equal(dt_network_mlp(&network), 4 * rows[i].hidden);
        assert_int_equal(dt_network_head(&network) * rows[i].heads, rows[i].hidden);
        assert_int_equal(dt_network_out_channels(&network), 8);
    }
    int n = 0;
    for (; dt_network_presets()[n] != NULL; n++) {
        struct dt_network network;
        assert_int_equal(dt_network_load(dt_network_presets()[n], &network), DT_OK);
        assert_string_equal(network.name, dt_network_presets()[n]);
    }
    assert_int_equal(n, 4);
}

static const char *const good =
    "{\"name\":\"mine\",\"family\":\"dit\",\"hidden\":48,\"heads\":3,\"depth\":2,\"patch\":2,"
    "\"in_channels\":4,\"latent_size\":6,\"classes\":10,\"mlp_ratio\":1.5,\"learn_sigma\":false}";

/* The good text with one piece replaced. */
static json_t *changed(const char *from, const char *to)
{
    struct dt_text text = {0};
    const char *at = strstr(good, from);
    json_t *root = NULL;
    assert_non_null(at);
    dt_text_add(&text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    assert_int_equal(dt_json_parse(dt_text_at(&text), text.size, "the text", &root), DT_OK);
    dt_text_fini(&text);
    return root;
}

static void test_round_trip(void **state)
{
    struct dt_network network, again;
    json_t *root = changed("mine", "mine");
    (void)state;
    assert_int_equal(dt_network_from_json(root, "it", &network), DT_OK);
    assert_string_equal(network.name, "mine");
    assert_int_equal(dt_network_mlp(&network), 72);
    assert_int_equal(dt_network_out_channels(&network), 4);
    json_t *back = dt_network_to_json(&network);
    assert_true(json_equal(root, back));
    assert_int_equal(dt_network_from_json(back, "it", &again), DT_OK);
    json_decref(root);
    json_decref(back);
}

static void test_each_mistake_is_one_sentence(void **state)
{
    static const struct {
        const char *from, *to, *sentence;
    } rows[] = {
        {"\"heads\":3", "\"heads\":5", "it: 'heads' is 5, which does not divide 'hidden', 48"},
        {"\"heads\":3", "\"heads\":0", "it: 'heads' is 0, expected 1 to 4096"},
        {"\"heads\":3", "\"heads\":3.0", "it: 'heads' is not an integer"},
        {"\"hidden\":48", "\"hidden\":-1", "it: 'hidden' is -1, expected 1 to 16384"},
        {"\"hidden\":48", "\"hidden\":42",
         "it: 'hidden' is 42, the sine-cosine position embedding needs a multiple of 4"},
        {"\"latent_size\":6", "\"latent_size\":7",
         "it: 'latent_size' is 7, not a multiple of 'patch', 2"},
        {"\"mlp_ratio\":1.5", "\"mlp_ratio\":0",
         "it: 'mlp_ratio' is 0, expected above 0 to 64, with at least one MLP channel"},
        {"\"mlp_ratio\":1.5", "\"mlp_ratio\":0.001",
         "it: 'mlp_ratio' is 0.001, expected above 0 to 64, with at least one MLP channel"},
        {"\"family\":\"dit\"", "\"family\":\"unet\"", "it: 'family' is 'unet', known: dit"},
        {"\"depth\":2", "\"dept\":2", "it: unknown field 'dept', did you mean 'depth'?"},
        {"\"depth\":2,", "", "it: 'depth' is missing"},
        {"\"learn_sigma\":false", "\"learn_sigma\":0",
         "it: 'learn_sigma' is neither true nor false"},
        {"\"name\":\"mine\"", "\"name\":\"\"", "it: 'name' must be 1 to 63 bytes long, it has 0"},
        {"\"name\":\"mine\"", "\"name\":7", "it: 'name' is not a string"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dt_network network = {.hidden = 7};
        json_t *root = changed(rows[i].from, rows[i].to);
        assert_int_equal(dt_network_from_json(root, "it", &network), DT_EUSAGE);
        assert_string_equal(dt_message(), rows[i].sentence);
        assert_int_equal(network.hidden, 7);
        json_decref(root);
    }
}

static void loads_presets_and_files(void **state)
{
    struct dt_network network;
    char path[] = "/tmp/network_XXXXXX.json";
    (void)state;
    assert_int_equal(dt_network_load("dit-s/3", &network), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "unknown model 'dit-s/3', did you mean 'dit-"));
    assert_int_equal(dt_network_load("zzzzzzzzzzzzzzzzzzzzzzzz", &network), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "dit-b/2, dit-l/2, dit-s/2, dit-xl/2"));
    assert_int_equal(dt_network_load("/nowhere/x.json", &network), DT_EIO);
    assert_int_equal(dt_network_load("", &network), DT_EUSAGE);
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, good, strlen(good)), strlen(good));
    close(fd);
    assert_int_equal(dt_network_load(path, &network), DT_OK);
    assert_int_equal(network.hidden, 48);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_presets_are_the_papers),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_each_mistake_is_one_sentence),
        cmocka_unit_test(loads_presets_and_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
