/* SPDX-License-Identifier: MIT */
/* line - spaces for searches to walk, and a whole walk written down
 *
 * Include after cmocka.h: everything here asserts.
 */
#ifndef DT_TESTS_SEARCH_LINE_H
#define DT_TESTS_SEARCH_LINE_H

#include "search/search.h"

#include <math.h>
#include <stdlib.h>

enum { LINE_MOST = 4096 };

/* n points in a row. */
static inline struct dt_space *make_line(int n)
{
    static int64_t values[LINE_MOST];
    struct dt_space *space = NULL;
    assert_in_range(n, 1, LINE_MOST);
    for (int i = 0; i < n; i++)
        values[i] = i;
    const struct dt_axis axis = {.name = "x", .count = n, .values = values};
    assert_int_equal(dt_space_new(&space), DT_OK);
    assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    assert_int_equal(dt_space_count(space), n);
    return space;
}

static inline struct dt_search *start(const char *name, const struct dt_space *space, uint64_t seed)
{
    struct dt_search *search = NULL;
    const struct dt_search_opts opts = {.space = space, .seed = seed};
    assert_int_equal(dt_search_new(name, &opts, &search), DT_OK);
    return search;
}

/* The answer number i: every outcome has its turn. */
static inline void answer(struct dt_search *search, const struct dt_point *point, int i)
{
    struct dt_trial trial = {.point = *point, .value = NAN, .low = NAN, .high = NAN, .cost = 1};
    trial.outcome = (enum dt_outcome)(i % DT_TRIAL_OUTCOMES);
    if (trial.outcome == DT_TRIAL_OK || trial.outcome == DT_TRIAL_SLOW)
        trial.value = trial.low = trial.high = trial.seconds = 1 + i % 7;
    dt_search_tell(search, &trial);
}

/* Numbers of the points in the order they are asked for, each answered at once; returns how many. */
static inline int walk(struct dt_search *search, const struct dt_space *space, int order[],
                       int room)
{
    struct dt_point point;
    int n = 0;
    dt_status status;
    while ((status = dt_search_ask(search, &point)) == DT_OK) {
        int64_t k = dt_space_index(space, &point);
        assert_true(k >= 0); /* feasible */
        assert_true(n < room);
        order[n] = (int)k;
        answer(search, &point, n++);
    }
    assert_int_equal(status, DT_DONE);
    for (int again = 0; again < 3; again++)
        assert_int_equal(dt_search_ask(search, &point), DT_DONE);
    return n;
}

#endif
