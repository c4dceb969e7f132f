/* SPDX-License-Identifier: MIT */
/* ctest: slow */
/* Racing over recorded repetitions: a table of three plans whose six orders are worked out by
 * hand, and recorded ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "search/landscape/simulate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 32 };

static void write_plan(FILE *file, int x, double level)
{
    fprintf(file, "%s\"%d\": {\"x\": %d, \"time\": %g, \"times\": [50", x > 1 ? ", " : "", x, x,
            level);
    for (int i = 1; i < COUNT; i++)
        fprintf(file, ", %g", level);
    fprintf(file, "]}");
}

/* A takes 1, B 2, C 1.1; the cold first repetition takes 50 of each. */
static struct dt_landscape *three_plans(void)
{
    char path[] = "/tmp/dittune_race_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    struct dt_landscape *landscape = NULL;
    assert_non_null(file);
    fprintf(file, "{\"device_name\": \"d\", \"kernel_name\": \"k\", \"tune_params_keys\": [\"x\"], "
                  "\"cache\": {");
    write_plan(file, 1, 1);
    write_plan(file, 2, 2);
    write_plan(file, 3, 1.1);
    fprintf(file, "}}");
    fclose(file);
    assert_int_equal(dt_landscape_open(path, NULL, &landscape), DT_OK);
    unlink(path);
    return landscape;
}

/* Nothing varies, so B is dropped after 4 repetitions behind A or C, C after 9 behind A, and what
 * is the best so far gets all 32: of A, B, C in the order ABC ACB BAC BCA CAB CBA. */
static void three_plans_match_a_count_by_hand(void **state)
{
    static const int made[6][3] = {{32, 4, 9},   {32, 4, 9},  {32, 32, 9},
                                   {32, 32, 32}, {32, 4, 32}, {32, 4, 32}};
    struct dt_landscape *landscape = three_plans();
    int met[6] = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct dt_raced raced;
        assert_int_equal(dt_race_replay(landscape, 1, 150, seed, &raced), DT_OK);
        assert_int_equal(raced.plans, 3);
        assert_int_equal(raced.lost, 0);
        assert_true(raced.worst == 1);
        assert_true(fabs(raced.all - (150 + 31 * 4.1)) < 1e-9);
        bool any = false;
        for (int i = 0; i < 6; i++) {
            double spent = 150 + (made[i][0] - 1) + 2 * (made[i][1] - 1) + 1.1 * (made[i][2] - 1);
            bool is = fabs(raced.spent - spent) < 1e-9;
            met[i] += is;
            any = any || is;
        }
        assert_true(any);
    }
    for (int i = 0; i < 6; i++)
        assert_true(met[i] > 0);
    dt_landscape_free(landscape);
}

static void recorded_tables_lose_no_best_plan(void **state)
{
    static const char *const tables[] = {"convolution_milo_A100",    "convolution_milo_A4000",
                                         "convolution_milo_MI250X",  "dedispersion_milo_A100",
                                         "dedispersion_milo_MI250X", "dedispersion_milo_W6600"};
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char path[512];
        struct dt_landscape *landscape = NULL;
        struct dt_raced raced;
        snprintf(path, sizeof path, "%s/../shared/landscapes/%s.json.gz", DT_SOURCE_DIR, tables[i]);
        if (access(path, R_OK) != 0)
            skip();
        assert_int_equal(dt_landscape_open(path, NULL, &landscape), DT_OK);
        assert_int_equal(dt_race_replay(landscape, 100, 150, 1, &raced), DT_OK);
        assert_int_equal(raced.lost, 0);
        assert_true(raced.spent < 0.5 * raced.all);
        dt_landscape_free(landscape);
    }
}

static void refuses_a_table_without_repetitions(void **state)
{
    struct dt_landscape *landscape = three_plans();
    struct dt_raced raced;
    (void)state;
    for (int k = 0; k < 2; k++)
        landscape->entries[k].count = 4; /* no more than the warm ones that say nothing */
    assert_int_equal(dt_race_replay(landscape, 1, 150, 1, &raced), DT_EUSAGE);
    dt_landscape_free(landscape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_plans_match_a_count_by_hand),
        cmocka_unit_test(recorded_tables_lose_no_best_plan),
        cmocka_unit_test(refuses_a_table_without_repetitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
