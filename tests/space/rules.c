/* SPDX-License-Identifier: MIT */
/* A space that is only compiled says of every combination what the enumerated one says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/family.h"
#include "space/dit/dit.h"
#include "space/json/json.h"

#include <string.h>

static struct dt_workload small(bool guidance)
{
    struct dt_workload workload = {.height = 8, .width = 8, .guidance = guidance};
    workload.network = (struct dt_network){.family = &dt_family_dit,
                                           .hidden = 48,
                                           .heads = 6,
                                           .depth = 2,
                                           .patch = 2,
                                           .in_channels = 4,
                                           .latent_size = 16,
                                           .own = {10},
                                           .mlp_ratio = 4};
    return workload;
}

/* Counts up in all axes; false after the last combination. */
static bool next(const struct dt_space *space, struct dt_point *point)
{
    for (int i = dt_space_axes(space) - 1; i >= 0; i--) {
        if (++point->index[i] < dt_space_axis(space, i)->count)
            return true;
        point->index[i] = 0;
    }
    return false;
}

static long compare(struct dt_space *sealed, struct dt_space *compiled)
{
    struct dt_point point = {{0}};
    long legal = 0;
    assert_int_equal(dt_space_count(compiled), -1);
    assert_false(dt_space_listed(compiled));
    assert_int_equal(dt_space_axes(compiled), dt_space_axes(sealed));
    do {
        bool there = dt_space_feasible(sealed, &point);
        assert_int_equal(dt_space_feasible(compiled, &point), there);
        legal += there;
    } while (next(sealed, &point));
    assert_int_equal(legal, dt_space_count(sealed));
    dt_space_free(sealed);
    dt_space_free(compiled);
    return legal;
}

static void compiled_rules_match_the_sealed_space_of_the_dit(void **state)
{
    (void)state;
    for (int guidance = 0; guidance < 2; guidance++) {
        const int batches[] = {1, 4};
        struct dt_workload workload = small(guidance != 0);
        struct dt_limits limits = {.cores = 4,
                                   .devices = 4,
                                   .memory_bytes = INT64_C(1) << 40,
                                   .batches = batches,
                                   .batch_count = 2};
        struct dt_plan one = dt_plan_fallback;
        one.tile_q = one.tile_kv = 16;
        int64_t bytes = dt_workload_rank_bytes(&workload, &one);
        for (int i = 0; i < 3; i++) {
            struct dt_space *sealed = NULL, *compiled = NULL;
            struct dt_point a, b;
            limits.max_bytes = i == 1 ? bytes * 3 / 2 : 0;
            limits.memory_bytes = i == 2 ? bytes * 3 : INT64_C(1) << 40;
            assert_int_equal(dt_dit_space(&workload, &limits, &sealed), DT_OK);
            assert_int_equal(dt_dit_rules(&workload, &limits, &compiled), DT_OK);
            dt_status status = dt_dit_default(sealed, &a);
            assert_int_equal(dt_dit_default(compiled, &b), status);
            assert_true(status != DT_OK || dt_point_equal(sealed, &a, &b));
            assert_true(compare(sealed, compiled) > 0);
        }
    }
}

static void compiled_rules_match_the_sealed_space_of_a_file(void **state)
{
    (void)state;
    static const char text[] =
        "{\"parameters\":{\"a\":[1,2,3,4,6],\"b\":{\"from\":1,\"to\":9,\"step\":1},"
        "\"kind\":[\"slow\",\"fast\"]},\"constants\":{\"n\":12},"
        "\"rules\":[{\"if\":\"n % (a * b) == 0\",\"say\":\"a x b divides n\"},"
        "\"kind == 'fast' || a <= b\"]}";
    json_t *root = NULL;
    struct dt_space *sealed = NULL, *compiled = NULL;
    assert_int_equal(dt_json_parse(text, strlen(text), "it", &root), DT_OK);
    assert_int_equal(dt_space_from_json(root, "it", &sealed), DT_OK);
    assert_int_equal(dt_space_rules_from_json(root, "it", &compiled), DT_OK);
    json_decref(root);
    assert_true(compare(sealed, compiled) > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_rules_match_the_sealed_space_of_the_dit),
        cmocka_unit_test(compiled_rules_match_the_sealed_space_of_a_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
