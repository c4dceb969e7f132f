/* SPDX-License-Identifier: MIT */
/* The logarithm of look-ups against libm's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "db/lookup/lookup_int.h"

#include <math.h>

static void agrees_with_libm(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(1, "log2");
    for (int i = 0; i < 200000; i++) {
        double x = exp2(40 * dt_rng_uniform(&rng) - 20);
        assert_true(fabs(dt_lookup_log2(x) - log2(x)) <= 1e-14);
    }
    for (int k = -40; k <= 40; k++)
        assert_true(dt_lookup_log2(exp2(k)) == k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_libm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
