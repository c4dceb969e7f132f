/* SPDX-License-Identifier: MIT */
/* The front against its definition: what no other point beats in both, once. */
#include "stats/front.h"

#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#define POINTS 60

static bool beats(const struct dt_front_point *a, const struct dt_front_point *b)
{
    bool same = a->value == b->value && a->bytes == b->bytes;
    return a->value <= b->value && a->bytes <= b->bytes && (!same || a->index < b->index);
}

static bool on_front(const struct dt_front_point points[], int n, int i)
{
    if (!isfinite(points[i].value))
        return false;
    for (int k = 0; k < n; k++)
        if (k != i && isfinite(points[k].value) && beats(&points[k], &points[i]))
            return false;
    return true;
}

/* Few values make ties; many make none. */
static void check(struct dt_rng *rng, int n, uint64_t values)
{
    struct dt_front_point points[POINTS], sorted[POINTS];
    int expected = 0;
    for (int i = 0; i < n; i++) {
        points[i] = (struct dt_front_point){(double)dt_rng_below(rng, values),
                                            (int64_t)dt_rng_below(rng, values), i};
        if (dt_rng_below(rng, 10) == 0)
            points[i].value = dt_rng_below(rng, 2) == 0 ? (double)NAN : (double)INFINITY;
        sorted[i] = points[i];
    }
    int count = dt_front(sorted, n);
    for (int i = 0; i < n; i++)
        expected += on_front(points, n, i);
    assert_int_equal(count, expected);
    for (int k = 0; k < count; k++) {
        assert_true(on_front(points, n, sorted[k].index));
        assert_true(k == 0 || sorted[k].value > sorted[k - 1].value);
    }
}

static void front_matches_its_definition(void **state)
{
    struct dt_rng rng = dt_rng_at(1, "front");
    (void)state;
    for (int round = 0; round < 3000; round++)
        check(&rng, (int)dt_rng_below(&rng, POINTS + 1),
              round % 3 == 0   ? 4
              : round % 3 == 1 ? 20
                               : 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(front_matches_its_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
