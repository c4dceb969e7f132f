/* SPDX-License-Identifier: MIT */
/* ctest: alone */
/* Where the kernel has no close_range, a supervisor and its program close what they inherited all
 * the same, also a descriptor above the limit on their number, which was lowered after it was
 * opened. This program has a close_range of its own, which finds no such call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tuner/runner/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

enum { HIGH = 900, LIMIT = 100, PATIENCE_MS = 20000 };

int close_range(unsigned first, unsigned last, int flags)
{
    (void)first, (void)last, (void)flags;
    errno = ENOSYS;
    return -1;
}

static void no_descriptor_is_inherited(void **state)
{
    (void)state;
    const char folders[DT_SUPERVISOR_FOLDERS][256] = {""};
    char *const argv[] = {"sleep", "1000", NULL}, *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    struct rlimit limit;
    struct dt_supervised supervised;
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(dup2(pipes[1], HIGH), HIGH);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = LIMIT;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct dt_supervisor_program program = {"/bin/sleep", argv, envp, 1, 0, 1};
    assert_int_equal(dt_supervisor_start(&program, folders, &supervised), DT_OK);
    close(pipes[1]);
    close(HIGH);
    struct pollfd poller = {.fd = pipes[0], .events = POLLIN};
    assert_int_equal(poll(&poller, 1, PATIENCE_MS), 1); /* no other process has it open */
    assert_int_equal(read(pipes[0], &(char){0}, 1), 0);
    dt_supervisor_stop(&supervised, 0);
    close(pipes[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_descriptor_is_inherited)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
