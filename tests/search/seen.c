/* SPDX-License-Identifier: MIT */
/* Points seen against a plain list of them, as bits and as hashes; draws of what is left,
 * uniform by chi-square. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "search/seen.h"
#include "tests/search/line.h"

#include <string.h>

/* n axes of `values` values. */
static struct dt_space *make_box(int n, int values)
{
    struct dt_space *space = NULL;
    int64_t numbers[100];
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < values; i++)
        numbers[i] = i;
    for (int i = 0; i < n; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        const struct dt_axis axis = {.name = name, .count = values, .values = numbers};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_seal(space), DT_OK);
    return space;
}

/* Draws with repetition; has and count say what a list of them says. */
static void check_against_a_list(struct dt_space *space, bool bits)
{
    enum { DRAWS = 3000 };
    static struct dt_point list[DRAWS];
    struct dt_seen seen;
    struct dt_rng rng = dt_rng_at(5, "points");
    int n = 0;
    assert_int_equal(dt_seen_init(&seen, space), DT_OK);
    assert_int_equal(seen.bits != NULL, bits);
    for (int i = 0; i < DRAWS; i++) {
        struct dt_point point;
        bool known = false;
        dt_space_draw(space, &rng, &point);
        for (int k = 0; k < n && !known; k++)
            known = dt_point_equal(space, &list[k], &point);
        assert_int_equal(dt_seen_has(&seen, &point), known);
        assert_true(dt_seen_add(&seen, &point));
        assert_true(dt_seen_has(&seen, &point));
        if (!known)
            list[n++] = point;
        assert_int_equal(seen.count, n);
        for (int k = i % 97; k < n; k += 97) /* the old ones are still there */
            assert_true(dt_seen_has(&seen, &list[k]));
        assert_true(dt_seen_draw(&seen, &rng, &point));
        assert_false(dt_seen_has(&seen, &point));
    }
    assert_false(dt_seen_all(&seen));
    dt_seen_fini(&seen);
    dt_space_free(space);
}

static void bits_match_a_list(void **state)
{
    (void)state;
    check_against_a_list(make_box(2, 70), true);
}

static void hashes_match_a_list(void **state)
{
    (void)state;
    check_against_a_list(make_box(5, 30), false); /* 24 million */
}

/* Bits of 70 x 70 points, most of which are seen. */
static void the_last_unseen_points_are_uniform(void **state)
{
    enum { LEFT = 20, DRAWS = 20000 };
    struct dt_space *space = make_box(2, 70);
    struct dt_seen seen;
    struct dt_rng rng = dt_rng_at(6, "points");
    struct dt_point point;
    int counts[4900] = {0}, met = 0;
    double chi2 = 0;
    (void)state;
    assert_int_equal(dt_seen_init(&seen, space), DT_OK);
    for (int k = 0; k < 4900; k++) {
        dt_space_at(space, k, &point);
        if (k % 245 != 244) /* the last of each 245 stays, the last of all too */
            dt_seen_add(&seen, &point);
    }
    for (int i = 0; i < DRAWS; i++) {
        assert_true(dt_seen_draw(&seen, &rng, &point));
        counts[dt_space_index(space, &point)]++;
    }
    for (int k = 0; k < 4900; k++) {
        if (counts[k] == 0)
            continue;
        assert_int_equal(k % 245, 244);
        chi2 += pow(counts[k] - (double)DRAWS / LEFT, 2) / ((double)DRAWS / LEFT);
        met++;
    }
    assert_int_equal(met, LEFT);
    assert_true(chi2 < 51); /* 19 degrees of freedom, P(> 51) is 1e-4 */
    for (int k = 244; k < 4900; k += 245) {
        dt_space_at(space, k, &point);
        dt_seen_add(&seen, &point);
    }
    assert_true(dt_seen_all(&seen));
    assert_false(dt_seen_draw(&seen, &rng, &point));
    dt_seen_fini(&seen);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_match_a_list),
        cmocka_unit_test(hashes_match_a_list),
        cmocka_unit_test(the_last_unseen_points_are_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
