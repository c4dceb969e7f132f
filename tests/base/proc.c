/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/proc.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 1 << 20 };

static char path[64];
static char bytes[SIZE];

/* A file of which the page cache has nothing. */
static bool make_cold(void)
{
    snprintf(path, sizeof path, "./dittune-cold-XXXXXX");
    int fd = mkstemp(path);
    bool made = fd >= 0 && write(fd, bytes, SIZE) == SIZE && fsync(fd) == 0 &&
                posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
    close(fd);
    return made;
}

static void read_all(void)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, bytes, SIZE) != SIZE)
        abort();
    close(fd);
}

/* What the kernel counts of this process, where its file system counts at all. */
static long long own(void)
{
    char line[128];
    long long count = -1;
    FILE *file = fopen("/proc/self/io", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "read_bytes: %lld", &count);
    if (file != NULL)
        fclose(file);
    return count;
}

static void check_storage(void **state)
{
    (void)state;
    long long before = own();
    bool made = make_cold();
    if (made)
        read_all();
    bool counts = made && own() - before >= SIZE;
    unlink(path);
    if (!counts) /* as on a tmpfs */
        skip();
    assert_true(make_cold());
    int64_t first = dt_proc_storage_bytes();
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0)
            read_all();
        wait(NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    int64_t read = dt_proc_storage_bytes() - first;
    assert_true(read >= SIZE);
    read_all(); /* from the page cache */
    assert_true(dt_proc_storage_bytes() - first < read + SIZE);
    unlink(path);
}

/* A child that computes, and one that sleeps: what the kernel's processor clocks
 * have of them is there. */
static void check_time(void **state)
{
    (void)state;
    int64_t spent = 0;
    struct dt_proc_time before = dt_proc_time_below(getpid()), after;
    pid_t busy = fork();
    static volatile bool computes = true;
    while (busy == 0 && computes)
        ;
    pid_t idle = fork();
    if (idle == 0) {
        pause();
        _exit(0);
    }
    while (spent < 200000000) {
        clockid_t clock;
        struct timespec time = {0};
        assert_int_equal(clock_getcpuclockid(busy, &clock), 0);
        assert_int_equal(clock_gettime(clock, &time), 0);
        spent = time.tv_sec * 1000000000LL + time.tv_nsec;
    }
    after = dt_proc_time_below(getpid());
    kill(busy, SIGKILL);
    kill(idle, SIGKILL);
    waitpid(busy, NULL, 0);
    waitpid(idle, NULL, 0);
    if (after.ran_ns == 0)
        skip(); /* the kernel does not tell */
    assert_true(after.ran_ns - before.ran_ns > spent / 2);
    assert_true(after.waited_ns >= 0);
}

/* The kernel's first thread, where this namespace has it; this process is none. */
static void check_kernel(void **state)
{
    (void)state;
    struct dt_proc proc;
    assert_true(dt_proc_read(getpid(), &proc));
    assert_false(proc.kernel);
    if (!dt_proc_read(2, &proc) || strcmp(proc.name, "kthreadd") != 0)
        skip();
    assert_true(proc.kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(check_storage),
                                       cmocka_unit_test(check_time),
                                       cmocka_unit_test(check_kernel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
