/* SPDX-License-Identifier: MIT */
/* Credit by hand, and a bandit among arms of planted chances that change half-way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "search/bandit_int.h"

#include <math.h>

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

/* Arm 0: failure, success, success, so (2 + 3) / (1 + 2 + 3); arm 1: success, then a failure pending. */
static void credit_by_hand(void **state)
{
    struct dt_bandit bandit;
    (void)state;
    assert_int_equal(dt_bandit_init(&bandit, 4), DT_OK);
    assert_true(isinf(dt_bandit_score(&bandit, 0, 0, 0, 0.05)));
    dt_bandit_tell(&bandit, 0, false);
    assert_true(near(dt_bandit_score(&bandit, 0, 0, 0, 0.05), 0)); /* log2(1) = 0 */
    dt_bandit_tell(&bandit, 1, true);
    dt_bandit_tell(&bandit, 0, true);
    dt_bandit_tell(&bandit, 0, true);
    assert_true(near(dt_bandit_score(&bandit, 0, 0, 0, 0), 5.0 / 6));
    assert_true(near(dt_bandit_score(&bandit, 0, 0, 0, 0.5), 5.0 / 6 + 0.5 * sqrt(4.0 / 3)));
    assert_true(near(dt_bandit_score(&bandit, 1, 0, 0, 0.5), 1 + 0.5 * sqrt(4.0)));
    assert_true(near(dt_bandit_score(&bandit, 1, 1, 4, 0.5), 1 + 0.5 * sqrt(2.0 * 3 / 2)));
    assert_true(isinf(dt_bandit_score(&bandit, 2, 0, 0, 0.5)));
    /* The window slides: arm 0's first failure is forgotten, then arm 1's success. */
    dt_bandit_tell(&bandit, 2, false);
    assert_true(near(dt_bandit_score(&bandit, 0, 0, 0, 0), 1));
    assert_true(near(dt_bandit_score(&bandit, 1, 0, 0, 0), 1));
    dt_bandit_tell(&bandit, 0, false);
    assert_true(near(dt_bandit_score(&bandit, 0, 0, 0, 0), 0.5)); /* (1 + 2) / 6 */
    assert_true(isinf(dt_bandit_score(&bandit, 1, 0, 0, 0)));
    struct dt_uses uses = dt_bandit_uses(&bandit, 0);
    assert_int_equal(uses.count, 3);
    assert_int_equal(uses.successes, 2);
    dt_bandit_fini(&bandit);
}

/* Pulls of arm 0 in each half; it succeeds three times in ten and then once in fifty, arm 1 the other way round. */
static void shifts_to_the_better_arm(void **state)
{
    enum { PULLS = 1000 };
    static const double chance[2][2] = {{0.3, 0.02}, {0.02, 0.3}};
    struct dt_bandit bandit;
    struct dt_rng rng = dt_rng_at(1, "pulls");
    int first[2] = {0};
    (void)state;
    assert_int_equal(dt_bandit_init(&bandit, 50), DT_OK);
    for (int i = 0; i < 2 * PULLS; i++) {
        int half = i / PULLS;
        int arm = dt_bandit_score(&bandit, 0, 0, 0, 0.05) < dt_bandit_score(&bandit, 1, 0, 0, 0.05);
        first[half] += arm == 0;
        dt_bandit_tell(&bandit, arm, dt_rng_uniform(&rng) < chance[half][arm]);
    }
    assert_in_range(first[0], PULLS * 3 / 4, PULLS);
    assert_in_range(first[1], 1, PULLS / 4);
    dt_bandit_fini(&bandit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credit_by_hand),
        cmocka_unit_test(shifts_to_the_better_arm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
