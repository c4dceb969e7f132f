/* SPDX-License-Identifier: MIT */
/* Many writers, killed writers, a lock that is held: nothing acknowledged is ever lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "db/file_int.h"
#include "tests/db/scratch.h"

#include <signal.h>
#include <sys/wait.h>

#define WRITERS 8
#define COMMITS 50
#define KILLS   100

/* Writes entries w<writer>.<i> and counts up one of its own, so both new and replaced entries are
 * at stake. On a slow disk one of many may wait for the lock in vain (it is not fair); nothing was
 * acknowledged then, so it asks again. */
static int write_many(int writer)
{
    char model[32], own[32];
    snprintf(own, sizeof own, "w%d", writer);
    for (int i = 0; i < COMMITS; i++) {
        snprintf(model, sizeof model, "w%d.%d", writer, i);
        dt_status status;
        do
            status = put(i % 2 == 0 ? own : model, i);
        while (status == DT_ELOCK);
        if (status != DT_OK)
            return 1;
    }
    return 0;
}

static void none_is_lost(void **state)
{
    (void)state;
    pid_t children[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        children[w] = fork();
        assert_true(children[w] >= 0);
        if (children[w] == 0)
            _exit(write_many(w));
    }
    for (int w = 0; w < WRITERS; w++) {
        int outcome = 0, n = 0;
        /* a reader meanwhile sees whole versions only, without a lock */
        while (waitpid(children[w], &outcome, WNOHANG) == 0)
            assert_int_equal(dt_store_each(scratch, count_entry, &n), DT_OK);
        assert_int_equal(outcome, 0);
    }
    int n = 0;
    assert_int_equal(dt_store_each(scratch, count_entry, &n), DT_OK);
    assert_int_equal(n, WRITERS * (COMMITS / 2 + 1));
    for (int w = 0; w < WRITERS; w++) {
        char model[32];
        snprintf(model, sizeof model, "w%d", w);
        assert_int_equal(value_of(model), COMMITS - 2);
        for (int i = 1; i < COMMITS; i += 2) {
            snprintf(model, sizeof model, "w%d.%d", w, i);
            assert_int_equal(value_of(model), i);
        }
    }
    assert_int_equal(count_names(scratch, ".dittune"), 0);
    assert_int_equal(count_names(scratch, "best.json.bad"), 0);
}

/* Counts up without end; a byte through the pipe after each commit that returned. */
static void commit_until_killed(int64_t value, int acknowledge)
{
    for (;; value++)
        if (put("counter", value) != DT_OK || write(acknowledge, "", 1) != 1)
            _exit(1);
}

static int64_t count_bytes(int fd)
{
    char bytes[256];
    int64_t n = 0;
    for (;;) {
        ssize_t got = read(fd, bytes, sizeof bytes);
        if (got <= 0)
            return n;
        n += got;
    }
}

/* Waits for so many commits, so that kills come between and within them on any machine. */
static int64_t take_bytes(int fd, int n)
{
    char byte;
    for (int i = 0; i < n; i++)
        assert_int_equal(read(fd, &byte, 1), 1);
    return n;
}

static void killed_at_any_time(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(1, "kills");
    int64_t value = 0;
    assert_int_equal(put("other", 42), DT_OK);
    assert_int_equal(put("counter", 0), DT_OK);
    for (int kill_number = 0; kill_number < KILLS; kill_number++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            close(ends[0]);
            commit_until_killed(value + 1, ends[1]);
        }
        close(ends[1]);
        int64_t acknowledged = value + take_bytes(ends[0], (int)dt_rng_below(&rng, 4));
        dt_clock_sleep_ns((int64_t)dt_rng_below(&rng, 4000000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        acknowledged += count_bytes(ends[0]);
        close(ends[0]);
        int64_t stored = value_of("counter");
        assert_in_range(stored, acknowledged, acknowledged + 1);
        assert_int_equal(value_of("other"), 42);
        assert_int_equal(count_names(scratch, "best.json.bad"), 0);
        value = stored;
    }
    assert_true(value >= KILLS);
    assert_int_equal(put("counter", -7), DT_OK); /* the kernel freed the lock of the killed */
}

static void held_lock_times_out(void **state)
{
    (void)state;
    int directory = -1, first = -1, second = -1;
    assert_int_equal(dt_file_open_directory(scratch, &directory), DT_OK);
    assert_int_equal(dt_file_lock(directory, scratch, 0, &first), DT_OK);
    assert_int_equal(dt_file_lock(directory, scratch, 20000000, &second), DT_ELOCK);
    assert_int_equal(second, -1);
    assert_non_null(strstr(dt_message(), "/lock"));
    close(first);
    assert_int_equal(dt_file_lock(directory, scratch, 0, &second), DT_OK);
    close(second);
    close(directory);
}

/* A program started while the lock is held must not keep it. */
static void lock_is_not_inherited_by_exec(void **state)
{
    (void)state;
    int directory = -1, lock = -1;
    assert_int_equal(dt_file_open_directory(scratch, &directory), DT_OK);
    assert_int_equal(dt_file_lock(directory, scratch, 0, &lock), DT_OK);
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execlp("sleep", "sleep", "60", (char *)NULL);
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(count_bytes(ready[0]), 0); /* end of file: the program runs */
    close(ready[0]);
    close(lock);
    assert_int_equal(put("a", 1), DT_OK);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(directory);
}

/* With standard error closed, what a library prints must not land in the store. */
static void low_descriptors_are_not_used(void **state)
{
    (void)state;
    int outcome = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(0);
        close(1);
        close(2);
        int fd = dt_file_open(AT_FDCWD, at("file"), O_RDWR | O_CREAT, 0644);
        _exit(fd > 2 && fcntl(fd, F_GETFD) == FD_CLOEXEC && fcntl(0, F_GETFD) == -1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_int_equal(outcome, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(none_is_lost),
        TEST(killed_at_any_time),
        TEST(held_lock_times_out),
        TEST(lock_is_not_inherited_by_exec),
        TEST(low_descriptors_are_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
