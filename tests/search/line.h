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

#define EACH_STRATEGY(name)                                                                        \
    for (const struct dt_strategy *const *row_ = dt_strategies;                                    \
         *row_ != NULL && ((name) = (*row_)->name) != NULL; row_++)

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

/* Axes a, b, .. of so many values each; not sealed. */
static inline struct dt_space *open_box(int axes, int n)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    static int64_t values[LINE_MOST];
    struct dt_space *space = NULL;
    for (int i = 0; i < n; i++)
        values[i] = i;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < axes; i++) {
        const struct dt_axis axis = {.name = names[i], .count = n, .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
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

static inline bool has_note(const struct dt_search *search)
{
    struct dt_text note = {0};
    dt_search_note(search, &note);
    bool any = note.size > 0;
    dt_text_fini(&note);
    return any;
}

/* Numbers of the points in the order they are asked for, each answered at once, until it ends or
 * `room` are there; returns how many. A search that ends before every point is known says why. */
static inline int walk(struct dt_search *search, const struct dt_space *space, int order[],
                       int room)
{
    struct dt_point point;
    int n = 0;
    dt_status status = DT_OK;
    while (n < room && (status = dt_search_ask(search, &point)) == DT_OK) {
        int64_t k = dt_space_index(space, &point);
        assert_true(k >= 0); /* feasible */
        order[n] = (int)k;
        answer(search, &point, n++);
    }
    if (n == room)
        return n;
    assert_int_equal(status, DT_DONE);
    assert_true(has_note(search));
    for (int again = 0; again < 3; again++)
        assert_int_equal(dt_search_ask(search, &point), DT_DONE);
    return n;
}

#endif
