/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

#include <signal.h>
#include <sys/time.h>
#include <time.h>

static void never_goes_back(void **state)
{
    (void)state;
    int64_t last = dt_clock_ns();
    for (int i = 0; i < 100000; i++) {
        int64_t now = dt_clock_ns();
        assert_true(now >= last);
        last = now;
    }
}

static void wall_clock_agrees_with_time(void **state)
{
    (void)state;
    int64_t before = (int64_t)time(NULL), now = dt_clock_wall_ns() / DT_NS_PER_SECOND;
    assert_in_range(now + 1, before, (int64_t)time(NULL) + 2);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
    (void)number;
    alarms++;
}

static void sleeps_through_signals(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = count_alarm};
    struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    int64_t begin = dt_clock_ns();
    dt_clock_sleep_ns(60000000);
    int64_t slept = dt_clock_ns() - begin;
    setitimer(ITIMER_REAL, &never, NULL);
    assert_true(alarms > 0);
    assert_true(slept >= 60000000);
}

static void skipped_time_is_taken_out(void **state)
{
    (void)state;
    int64_t before = dt_clock_ns(), machine = dt_clock_machine_ns();
    dt_clock_skip_ns(600 * DT_NS_PER_SECOND);
    int64_t after = dt_clock_ns();
    assert_int_equal(dt_clock_skipped_ns(), 600 * DT_NS_PER_SECOND);
    assert_true(after < before && dt_clock_machine_ns() >= machine);
    dt_clock_skip_ns(-600 * DT_NS_PER_SECOND); /* the tests beside this one share the clock */
    assert_true(dt_clock_ns() >= before);
}

static void sleeping_past_times_returns_at_once(void **state)
{
    (void)state;
    dt_clock_sleep_ns(0);
    dt_clock_sleep_ns(-5); /* a deadline that has passed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_goes_back),
        cmocka_unit_test(wall_clock_agrees_with_time),
        cmocka_unit_test(sleeps_through_signals),
        cmocka_unit_test(skipped_time_is_taken_out),
        cmocka_unit_test(sleeping_past_times_returns_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
