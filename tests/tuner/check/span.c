/* SPDX-License-Identifier: MIT */
/* How long a check is expected to take, from the stored times of its plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tuner/check/check.h"

#define MS 1000000

static struct dt_check_opts opts;
static struct dt_check_item item;
static struct dt_check_entry entry;

/* Sums of plans with these steps, in the order of the roles. */
static void assert_steps(const enum dt_entrant_role roles[], const double steps[], int n)
{
    entry = (struct dt_check_entry){.opts = &opts, .item = &item, .count = n};
    for (int i = 0; i < n; i++)
        entry.entrants[i].role = roles[i];
    assert_int_equal(dt_check_span(&entry).least_ns, dt_check_estimate_ns(steps, n, DT_SETS_LEAST));
}

static void a_plan_takes_what_was_stored_for_its_role(void **state)
{
    (void)state;
    item.entry = (struct dt_stored_entry){.figures = {.median_ns = 100 * MS},
                                          .fallback = {.median_ns = 200 * MS},
                                          .documented = {.median_ns = 300 * MS},
                                          .baseline = {.median_ns = 900 * MS}};
    assert_steps((enum dt_entrant_role[]){DT_ENTRANT_TUNED, DT_ENTRANT_DEFAULT,
                                          DT_ENTRANT_DOCUMENTED, DT_ENTRANT_BASELINE,
                                          DT_ENTRANT_RUNNER_UP, DT_ENTRANT_TWIN},
                 (double[]){0.1, 0.2, 0.3, 0.9, 0.1, 0.1}, 6);
    assert_steps(
        (enum dt_entrant_role[]){DT_ENTRANT_TUNED, DT_ENTRANT_BASELINE}, /* the default is tuned */
        (double[]){0.1, 0.9}, 2);
    item.entry.documented.median_ns = DT_NO_NS;
    assert_steps((enum dt_entrant_role[]){DT_ENTRANT_TUNED, DT_ENTRANT_DOCUMENTED},
                 (double[]){0.1, 0.1}, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_plan_takes_what_was_stored_for_its_role)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
