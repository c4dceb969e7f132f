/* SPDX-License-Identifier: MIT */
/* Stored plans that a session tries first: for the same work, nearest first, without
 * duplicates, feasible here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "space/json/json.h"
#include "tests/db/scratch.h"
#include "tuner/session/tuning.h"

static struct dt_target target;

static json_t *key_of(const char *network, const char *objective, int devices)
{
    return json_pack("{s:s, s:s, s:i, s:[i]}", "network", network, "objective", objective,
                     "devices", devices, "batch", 2);
}

static json_t *hard_of(const char *device, int cores)
{
    return json_pack("{s:s, s:i}", "device", device, "cores", cores);
}

/* Takes both. */
static void store(json_t *key, json_t *hard, int tile, int batch)
{
    json_t *entry = json_pack("{s:o, s:{s:o, s:{}, s:{}}, s:{s:i, s:i}}", "key", key, "fingerprint",
                              "hard", hard, "soft", "info", "plan", "tile", tile, "batch", batch);
    assert_non_null(entry);
    assert_int_equal(dt_store_put(scratch, entry), DT_OK);
    json_decref(entry);
}

static int setup(void **state)
{
    static const char text[] =
        "{\"parameters\": [{\"name\": \"tile\", \"values\": [1, 2, 3, 4, 5, 6, 7, 8], \"default\": "
        "1},"
        " {\"name\": \"batch\", \"values\": [2, 4], \"role\": \"batch\", \"default\": 2}],"
        " \"rules\": [{\"if\": \"tile != 8\", \"say\": \"no\"}]}";
    json_t *root = NULL;
    if (scratch_make(state) != 0 ||
        dt_json_parse(text, sizeof text - 1, "a space", &root) != DT_OK ||
        dt_space_from_json(root, "a space", &target.space) != DT_OK)
        return -1;
    json_decref(root);
    target.identity.key = key_of("mine", "latency", 2);
    target.identity.hard = hard_of("here", 2);
    return 0;
}

static int teardown(void **state)
{
    dt_space_free(target.space);
    json_decref(target.identity.key);
    json_decref(target.identity.hard);
    target = (struct dt_target){0};
    return scratch_remove(state);
}

static void expect(const int tiles[], int n)
{
    struct dt_tuning tuning = {.target = &target};
    dt_known_read(&tuning, scratch);
    assert_int_equal(tuning.search.known_count, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(dt_point_value(target.space, &tuning.search.known[i], 0), tiles[i]);
        assert_int_equal(dt_point_value(target.space, &tuning.search.known[i], 1), 2);
    }
}

static void test_nearest_first(void **state)
{
    (void)state;
    expect(NULL, 0);
    store(key_of("mine", "cost", 4), hard_of("there", 8), 6, 2);
    store(key_of("mine", "cost", 2), hard_of("there", 8), 5, 2);
    store(key_of("mine", "cost", 2), hard_of("here", 2), 4, 2);
    expect((int[]){4, 5, 6}, 3);
    store(key_of("mine", "latency", 2), hard_of("here", 2), 3, 2);
    store(key_of("mine", "latency", 2), hard_of("there", 2), 2, 2);
    expect((int[]){3, 4, 2, 5}, 4);
}

static void plans_of_other_work_are_ignored(void **state)
{
    (void)state;
    store(key_of("another", "latency", 2), hard_of("here", 2), 4, 2);
    expect(NULL, 0);
}

static void test_each_plan_once_where_it_is_nearest(void **state)
{
    (void)state;
    store(key_of("mine", "cost", 4), hard_of("there", 8), 4, 2);
    store(key_of("mine", "cost", 2), hard_of("here", 2), 5, 2);
    store(key_of("mine", "latency", 2), hard_of("here", 2), 4, 2);
    expect((int[]){4, 5}, 2);
}

/* Tile 8 is against a rule, 9 no value; a batch that is not of this session becomes its default. */
static void infeasible_plans_are_ignored(void **state)
{
    (void)state;
    store(key_of("mine", "latency", 2), hard_of("here", 2), 8, 2);
    store(key_of("mine", "cost", 2), hard_of("here", 2), 9, 2);
    store(key_of("mine", "throughput", 2), hard_of("here", 2), 7, 16);
    expect((int[]){7}, 1);
}

static void a_broken_store_gives_no_plans(void **state)
{
    (void)state;
    store(key_of("mine", "latency", 2), hard_of("here", 2), 4, 2);
    write_file(at("best.json"), "{", 1);
    write_file(at("best.json.1"), "{", 1);
    expect(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nearest_first, setup, teardown),
        cmocka_unit_test_setup_teardown(plans_of_other_work_are_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(test_each_plan_once_where_it_is_nearest, setup, teardown),
        cmocka_unit_test_setup_teardown(infeasible_plans_are_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(a_broken_store_gives_no_plans, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
