/* SPDX-License-Identifier: MIT */
/* ctest: alone */
/* The measuring lock where flock fails, here by planting its error: only EWOULDBLOCK says that
 * another process has it. */
#include "tuner/machine/machine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <cmocka.h>

static int planted[8], calls; /* errno of each call, 0: it succeeds; the last one holds on */
static char notes[2000];

int flock(int fd, int operation)
{
    (void)fd, (void)operation;
    errno = planted[calls < 7 ? calls : 7];
    calls++;
    return errno == 0 ? 0 : -1;
}

static void note(const char *sentence)
{
    snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "%s\n", sentence);
}

static dt_status lock(int64_t patience_ns, const int errors[8])
{
    bool waited;
    memcpy(planted, errors, sizeof planted);
    calls = 0;
    notes[0] = '\0';
    return dt_lock_measuring(patience_ns, note, &waited);
}

static void test_cannot_be_locked(void **state)
{
    static const int errors[] = {ENOLCK, EOPNOTSUPP, EINVAL, EBADF, ENOSYS, EIO};
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        for (int waits = 0; waits < 2; waits++) {
            const int all[8] = {errors[i], errors[i], errors[i], errors[i],
                                errors[i], errors[i], errors[i], errors[i]};
            assert_int_equal(lock(waits ? INT64_MAX : 0, all), DT_OK);
            assert_non_null(strstr(notes, "warning: cannot lock the measuring lock "));
            assert_non_null(strstr(notes, strerror(errors[i])));
            assert_int_equal(calls, 1);
        }
}

static void test_signals_do_not_end_it(void **state)
{
    (void)state;
    assert_int_equal(lock(0, (const int[8]){EINTR, EINTR, 0}), DT_OK);
    assert_string_equal(notes, "");
    assert_int_equal(calls, 3);
}

static void test_held(void **state)
{
    const int held[8] = {EWOULDBLOCK, EWOULDBLOCK, EWOULDBLOCK, EWOULDBLOCK,
                         EWOULDBLOCK, EWOULDBLOCK, EWOULDBLOCK, EWOULDBLOCK};
    (void)state;
    assert_int_equal(lock(0, held), DT_EBUSY);
    assert_non_null(strstr(dt_message(), "--no-wait was given"));
    assert_int_equal(lock(1000000, held), DT_EBUSY);
    assert_non_null(strstr(dt_message(), "is measuring still, after a --wait of 1 ms"));
    assert_int_equal(lock(INT64_MAX, (const int[8]){EWOULDBLOCK, EWOULDBLOCK, 0}), DT_OK);
    assert_non_null(strstr(notes, "waiting"));
}

static int make_lock(void **state)
{
    static char path[] = "/tmp/dittune-lock-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        return -1;
    close(fd);
    *state = path;
    return setenv("DITTUNE_LOCK", path, 1);
}

static int remove_lock(void **state)
{
    return unlink(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cannot_be_locked),
        cmocka_unit_test(test_signals_do_not_end_it),
        cmocka_unit_test(test_held),
    };
    return cmocka_run_group_tests(tests, make_lock, remove_lock);
}
