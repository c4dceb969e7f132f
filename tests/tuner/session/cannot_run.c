/* SPDX-License-Identifier: MIT */
/* Failures that show that a plan cannot run here: every kind, after each history of its trials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/search/line.h"
#include "tuner/session/session_int.h"

enum { LIMIT = 1000 };

static bool cannot(const enum dt_outcome trials[], int n, enum dt_outcome failed,
                   int64_t peak_bytes)
{
    struct dt_space *space = make_line(3);
    const struct dt_target target = {.space = space, .max_bytes = LIMIT};
    struct dt_session session = {.target = &target};
    struct dt_result result = {.outcome = failed, .facts.peak_bytes = peak_bytes};
    for (int i = 0; i < n; i++) {
        struct dt_log_record record = {.kind = DT_LOG_TRIAL, .result.outcome = trials[i]};
        assert_int_equal(dt_session_apply(&session, &record), DT_OK);
    }
    bool answer = dt_verdict_cannot_run(&session, &result);
    dt_session_fini(&session);
    dt_space_free(space);
    return answer;
}

#define CANNOT(failed, peak, ...)                                                                  \
    cannot((const enum dt_outcome[]){__VA_ARGS__},                                                 \
           sizeof((const enum dt_outcome[]){__VA_ARGS__}) / sizeof(enum dt_outcome), failed, peak)

static void temporary_failures_may_run_again(void **state)
{
    (void)state;
    assert_false(CANNOT(DT_TRIAL_OK, 0, DT_TRIAL_OK));
    assert_false(CANNOT(DT_TRIAL_CRASHED, 0, DT_TRIAL_CRASHED));
    assert_false(CANNOT(DT_TRIAL_HUNG, 0, DT_TRIAL_HUNG, DT_TRIAL_HUNG));
    assert_false(CANNOT(DT_TRIAL_INTERRUPTED, 0, DT_TRIAL_INTERRUPTED)); /* there was no time */
    assert_false(CANNOT(DT_TRIAL_MEMORY, 0, DT_TRIAL_OK)); /* it ran, then there was no memory */
    assert_false(CANNOT(DT_TRIAL_MEMORY, 0, DT_TRIAL_MEMORY, DT_TRIAL_OK));
    assert_false(CANNOT(DT_TRIAL_INFEASIBLE, 0, DT_TRIAL_OK));
    assert_false(CANNOT(DT_TRIAL_MEMORY, 0, DT_TRIAL_MEMORY)); /* once is not enough */
    assert_false(CANNOT(DT_TRIAL_MEMORY, 0, DT_TRIAL_MEMORY, DT_TRIAL_INTERRUPTED));
}

static void permanent_failures_cannot_run(void **state)
{
    (void)state;
    assert_true(CANNOT(DT_TRIAL_WRONG, 0, DT_TRIAL_WRONG));
    assert_true(CANNOT(DT_TRIAL_WRONG, 0, DT_TRIAL_OK));
    assert_true(CANNOT(DT_TRIAL_INFEASIBLE, 0, DT_TRIAL_INFEASIBLE));
    assert_true(CANNOT(DT_TRIAL_MEMORY, 0, DT_TRIAL_MEMORY, DT_TRIAL_MEMORY));
    assert_true(CANNOT(DT_TRIAL_MEMORY, LIMIT + 1, DT_TRIAL_MEMORY)); /* more than --max-bytes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(temporary_failures_may_run_again),
        cmocka_unit_test(permanent_failures_cannot_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
