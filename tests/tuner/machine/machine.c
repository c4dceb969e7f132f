/* SPDX-License-Identifier: MIT */
/* The memory class against a list of the whole grid, and MemTotal of pairs of machines
 * that were sold as equal. */
#include "tuner/machine/machine_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t nearest_above(int64_t bytes)
{
    static const int quarters[] = {4, 5, 6, 7};
    int64_t best = INT64_MAX;
    for (int k = -2; k < 20; k++)
        for (int q = 0; q < 4; q++) {
            int64_t quarter_gib = k >= 0 ? (int64_t)quarters[q] << k : quarters[q] >> -k;
            bool whole = (k >= 0 || quarters[q] % (1 << -k) == 0) && quarter_gib % 4 == 0;
            if (whole && quarter_gib / 4 >= (bytes + (1LL << 30) - 1) >> 30 &&
                quarter_gib / 4 < best)
                best = quarter_gib / 4;
        }
    return best;
}

static void memory_is_rounded_to_the_grid(void **state)
{
    (void)state;
    for (int64_t mib = 1; mib < 3 * 1024 * 1024; mib += 1 + mib / 700) {
        int64_t bytes = mib * (1LL << 20) + (mib % 3 - 1);
        assert_int_equal(dt_machine_memory_gib(bytes), nearest_above(bytes));
    }
    for (int64_t gib = 1; gib < 5000; gib++)
        for (int off = -1; off <= 1; off++) {
            int64_t bytes = gib * (1LL << 30) + off;
            assert_int_equal(dt_machine_memory_gib(bytes), nearest_above(bytes));
        }
    assert_int_equal(dt_machine_memory_gib(0), 1);
}

static void machines_of_one_make_have_equal_memory(void **state)
{
    static const struct {
        int64_t kib[2];
        int gib;
    } sold[] = {{{1986792, 2030104}, 2},          {{3994152, 4023472}, 4},
                {{8052984, 8142804}, 8},          {{15896464, 16384256}, 16},
                {{24583488, 24684084}, 24},       {{32594008, 32780184}, 32},
                {{49281264, 49401880}, 48},       {{65699968, 65785500}, 64},
                {{98658004, 98831932}, 96},       {{131595944, 131745520}, 128},
                {{197549336, 197692060}, 192},    {{263729600, 263952128}, 256},
                {{395863264, 396050436}, 384},    {{527988040, 528279648}, 512},
                {{791213012, 791591876}, 768},    {{1056449200, 1056719420}, 1024},
                {{1584901572, 1585211088}, 1536}, {{2113503756, 2113754492}, 2048}};
    (void)state;
    for (size_t i = 0; i < sizeof sold / sizeof sold[0]; i++)
        for (int k = 0; k < 2; k++)
            assert_int_equal(dt_machine_memory_gib(sold[i].kib[k] * 1024), sold[i].gib);
}

static void lists_variables_that_matter(void **state)
{
    (void)state;
    setenv("NCCL_ALGO", "Ring\033[2J", 1);
    setenv("OMPI_MCA_btl", "self,vader", 1);
    setenv("OMPI_MCA_orte_jobid", "123", 1);
    setenv("CUDA_HOME", "/usr/local/cuda", 1);
    setenv("UNRELATED_THING", "1", 1);
    json_t *found = dt_machine_environment(false);
    assert_string_equal(json_string_value(json_object_get(found, "NCCL_ALGO")), "Ring?[2J");
    assert_string_equal(json_string_value(json_object_get(found, "OMPI_MCA_btl")), "self,vader");
    assert_null(json_object_get(found, "OMPI_MCA_orte_jobid"));
    assert_null(json_object_get(found, "CUDA_HOME"));
    assert_null(json_object_get(found, "UNRELATED_THING"));
    json_decref(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_is_rounded_to_the_grid),
                                       cmocka_unit_test(machines_of_one_make_have_equal_memory),
                                       cmocka_unit_test(lists_variables_that_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
