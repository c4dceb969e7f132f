/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/plan.h"
#include "model/workload_json.h"

#include <string.h>

static void test_rows_reach_their_fields(void **state)
{
    struct dt_plan plan = {0};
    (void)state;
    for (int i = 0; i < dt_param_count; i++)
        dt_plan_set(&plan, i, 100 + i);
    for (int i = 0; i < dt_param_count; i++)
        assert_int_equal(dt_plan_get(&plan, i), 100 + i);
    assert_string_equal(dt_params[0].name, "ranks");
    assert_int_equal(plan.ranks, 100);
    for (int i = 0; i < dt_param_count; i++)
        if (strcmp(dt_params[i].name, "ring") == 0)
            assert_int_equal(plan.ring, 100 + i);
}

static struct dt_plan plan_of_12(void)
{
    struct dt_plan plan = dt_plan_fallback;
    plan.ranks = 12;
    plan.cfg = 2;
    plan.ring = 3;
    plan.ulysses = 2;
    return plan;
}

/* The header's formula, backwards. */
static void test_places_are_the_formula(void **state)
{
    const struct dt_plan plan = plan_of_12();
    (void)state;
    for (int rank = 0; rank < plan.ranks; rank++) {
        struct dt_place place = dt_plan_place(&plan, rank);
        assert_in_range(place.cfg, 0, plan.cfg - 1);
        assert_in_range(place.ring, 0, plan.ring - 1);
        assert_in_range(place.ulysses, 0, plan.ulysses - 1);
        assert_int_equal((place.cfg * plan.ring + place.ring) * plan.ulysses + place.ulysses, rank);
    }
}

/* With neighbours=ring ulysses and ring change places, and the rest stays. */
static void ring_may_be_innermost(void **state)
{
    struct dt_plan plan = plan_of_12();
    (void)state;
    plan.neighbours = DT_PLAN_BY_RING;
    for (int rank = 0; rank < plan.ranks; rank++) {
        struct dt_place place = dt_plan_place(&plan, rank);
        assert_in_range(place.ring, 0, plan.ring - 1);
        assert_in_range(place.ulysses, 0, plan.ulysses - 1);
        assert_int_equal((place.cfg * plan.ulysses + place.ulysses) * plan.ring + place.ring, rank);
        for (int i = 0; i < DT_DEGREES; i++)
            assert_true(rank + dt_plan_stride(&plan, i) >= plan.ranks ||
                        dt_plan_stride(&plan, i) * dt_plan_degree(&plan, i) <= plan.ranks);
    }
    assert_int_equal(dt_plan_stride(&plan, DT_DEGREE_ring), 1);
    assert_int_equal(dt_plan_stride(&plan, DT_DEGREE_ulysses), plan.ring);
}

/* Both orders of degrees.def name each degree once, and a rank's neighbour along a
 * degree is a stride away. */
static void degrees_are_complete_and_ordered(void **state)
{
    const struct dt_plan plan = plan_of_12();
    int ranks = 1, named[DT_DEGREES] = {0};
    (void)state;
    for (int i = 0; i < DT_DEGREES; i++) {
        assert_int_equal(dt_plan_stride(&plan, i), ranks);
        ranks *= dt_plan_degree(&plan, i);
        named[dt_degrees_grown[i]]++;
        for (int k = 0; k < i; k++)
            assert_int_not_equal(dt_degrees[i].param, dt_degrees[k].param);
    }
    assert_int_equal(ranks, plan.ranks);
    for (int i = 0; i < DT_DEGREES; i++)
        assert_int_equal(named[i], 1);
    assert_int_equal(dt_plan_degree(&plan, DT_DEGREE_ring), 3);
    assert_int_equal(dt_plan_place(&plan, 17 + dt_plan_stride(&plan, DT_DEGREE_cfg)).cfg, 1);
}

static json_t *whole(void)
{
    json_t *root = json_object();
    for (int i = 0; i < dt_param_count; i++) {
        json_t *value =
            dt_params[i].labels != NULL ? json_string(dt_params[i].labels[1]) : json_integer(i + 1);
        assert_int_equal(json_object_set_new(root, dt_params[i].name, value), 0);
    }
    return root;
}

static void reads_plans_from_json(void **state)
{
    struct dt_plan plan;
    (void)state;
    json_t *root = whole();
    assert_int_equal(dt_plan_from_json(root, &plan), DT_OK);
    for (int i = 0; i < dt_param_count; i++)
        assert_int_equal(dt_plan_get(&plan, i), dt_params[i].labels != NULL ? 1 : i + 1);
    json_object_set_new(root, "overlap", json_integer(0));
    assert_int_equal(dt_plan_from_json(root, &plan), DT_OK);
    json_object_set_new(root, "ring", json_integer(0));
    assert_int_equal(dt_plan_from_json(root, &plan), DT_EUSAGE);
    assert_string_equal(dt_message(), "the plan: 'ring' is 0, expected 1 to 1048576");
    json_object_set_new(root, "ring", json_integer((1 << 20) + 1));
    assert_int_equal(dt_plan_from_json(root, &plan), DT_EUSAGE);
    json_object_del(root, "ring");
    assert_int_equal(dt_plan_from_json(root, &plan), DT_EUSAGE);
    assert_string_equal(dt_message(), "the plan: 'ring' is missing");
    json_object_set_new(root, "rings", json_integer(1));
    assert_int_equal(dt_plan_from_json(root, &plan), DT_EUSAGE);
    assert_string_equal(dt_message(), "the plan: unknown field 'rings', did you mean 'ring'?");
    json_decref(root);
}

/* Parameters of the other device may be left out, and then have their fallbacks. */
static void parameters_of_the_other_device_get_fallbacks(void **state)
{
    static const enum dt_on devices[] = {DT_ON_CPU, DT_ON_GPU};
    (void)state;
    for (int d = 0; d < 2; d++) {
        json_t *root = whole();
        struct dt_plan plan;
        for (int i = 0; i < dt_param_count; i++)
            if ((dt_params[i].on & devices[d]) == 0)
                json_object_del(root, dt_params[i].name);
        assert_int_equal(dt_plan_from_json(root, &plan), DT_OK);
        assert_int_equal(dt_plan_on(&plan), devices[d]);
        for (int i = 0; i < dt_param_count; i++)
            assert_int_equal(dt_plan_get(&plan, i), (dt_params[i].on & devices[d]) == 0
                                                        ? dt_params[i].fallback
                                                    : dt_params[i].labels != NULL ? 1
                                                                                  : i + 1);
        json_object_set_new(root, "attention", json_string("fast"));
        assert_int_equal(dt_plan_from_json(root, &plan), DT_EUSAGE);
        json_object_del(root, d == 0 ? "threads" : "graph");
        json_object_del(root, "attention");
        assert_int_equal(dt_plan_from_json(root, &plan), DT_EUSAGE);
        assert_string_equal(dt_message(), d == 0 ? "the plan: 'threads' is missing"
                                                 : "the plan: 'attention' is missing");
        json_decref(root);
    }
}

/* The largest row of head dimension 128 must fit what an A100's block may have, 163 KiB (CUDA C++
 * guide, table of compute capabilities), and FlashAttention-2's 128 x 64 what every GPU with
 * bfloat16 may, 99 KiB. */
static void attention_tiles_fit_shared_memory(void **state)
{
    (void)state;
    for (int i = 0; i < DT_ATTN_TILES; i++) {
        const struct dt_attn_tile *tile = &dt_attn_tiles[i];
        assert_int_equal(tile->tile_q % (16 * tile->warps), 0);
        assert_true(dt_attn_tile_bytes(tile, 128) <= 163 * 1024);
    }
    assert_int_equal(dt_attn_tile_bytes(&(struct dt_attn_tile){128, 64, 1, 4}, 128), 256 * 272);
    assert_int_equal(dt_attn_tile_bytes(&(struct dt_attn_tile){64, 64, 2, 4}, 72), 256 * 176);
}

static void role_names_round_trip(void **state)
{
    enum dt_role role;
    (void)state;
    for (int i = DT_ROLE_PLAIN; i <= DT_ROLE_LOSSY; i++) {
        assert_int_equal(dt_role_parse(dt_role_text((enum dt_role)i), &role), DT_OK);
        assert_int_equal(role, i);
    }
    assert_int_equal(dt_role_parse("rank", &role), DT_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_reach_their_fields),
        cmocka_unit_test(test_places_are_the_formula),
        cmocka_unit_test(ring_may_be_innermost),
        cmocka_unit_test(degrees_are_complete_and_ordered),
        cmocka_unit_test(reads_plans_from_json),
        cmocka_unit_test(parameters_of_the_other_device_get_fallbacks),
        cmocka_unit_test(attention_tiles_fit_shared_memory),
        cmocka_unit_test(role_names_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
