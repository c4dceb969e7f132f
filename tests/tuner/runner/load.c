/* SPDX-License-Identifier: MIT */
/* ctest: alone */
/* The load of others: the arithmetic by hand, and of the real system a busy child, which is ours,
 * and a busy stranger, which is not. What they had of the cores is asked of the kernel by another
 * way (their processor clocks), so other load does not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tuner/runner/load.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEAST 0.7 /* seconds of processor time that a busy process gets before the second reading */

static void others_are_what_is_left(void **state)
{
    (void)state;
    static struct dt_load_reading a, b;
    a = (struct dt_load_reading){.known = true, .at = 10, .busy = 100, .stolen = 1, .ours = 50};
    b = (struct dt_load_reading){.known = true, .at = 14, .busy = 107, .stolen = 2, .ours = 53};
    a.count = b.count = 2;
    a.programs[0] = (struct dt_load_program){.pid = 7, .seconds = 30, .name = "old"};
    b.programs[0] = (struct dt_load_program){.pid = 7, .seconds = 31, .name = "old"};
    a.programs[1] = (struct dt_load_program){.pid = 8, .seconds = 90, .name = "gone"};
    b.programs[1] = (struct dt_load_program){.pid = 8, .seconds = 3, .name = "new"};
    struct dt_load load = dt_load_between(&a, &b);
    /* 7 busy, 3 ours, 1 stolen: 5 of 4 seconds, but for the grain of ticks */
    assert_true(fabs(load.others - (5 - 0.05) / 4) < 1e-12 && fabs(load.ours - 0.75) < 1e-12);
    assert_string_equal(load.name, "new"); /* a pid that is used again is another program */
    b.known = false;
    assert_true(isnan(dt_load_between(&a, &b).others));
    b.known = true;
    b.at = a.at;
    assert_true(isnan(dt_load_between(&a, &b).others));
    b.at = 1000;
    b.busy = a.busy;
    assert_true(dt_load_between(&a, &b).others >= 0);
}

/* Waits in which none of ours ran are others' load, also where nothing else shows it; of which
 * program is not said. */
static void waits_are_others(void **state)
{
    (void)state;
    static struct dt_load_reading a, b;
    a = (struct dt_load_reading){.known = true, .at = 10, .waits = {.some = 1, .all = 2}};
    b = (struct dt_load_reading){.known = true, .at = 14, .busy = 4, .ours = 4, .waits = {3, 5}};
    b.count = 1;
    b.programs[0] = (struct dt_load_program){.pid = 7, .seconds = 0.1, .name = "innocent"};
    struct dt_load load = dt_load_between(&a, &b);
    assert_true(fabs(load.others - 0.75) < 1e-12 && fabs(load.stalled - 0.5) < 1e-12);
    assert_string_equal(load.name, "");
    b.waits = (struct dt_load_waits){.some = 3, .all = NAN};
    assert_true(dt_load_between(&a, &b).others == 0);
    b.busy = 6; /* two seconds of others, of which the program had a twentieth */
    assert_string_equal(dt_load_between(&a, &b).name, "");
    b.programs[0].seconds = 0.6; /* two of them had more than half of it together */
    b.programs[b.count++] = (struct dt_load_program){.pid = 8, .seconds = 0.6, .name = "innocent"};
    assert_string_equal(dt_load_between(&a, &b).name, "innocent");
    a.stolen = 1;
    b.stolen = 3;
    assert_true(fabs(dt_load_between(&a, &b).stolen - 0.5) < 1e-12);
}

static void plant(const char *root, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *at = strchr(path + strlen(root) + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

#define TOTALS(some, all)                                                                          \
    "some avg10=1.00 avg60=2.00 avg300=3.00 total=" some                                           \
    "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=" all "\n"

static void expect(const char *root, double some, double all)
{
    struct dt_load_waits waits = dt_load_waits(root);
    assert_true(same(waits.some, some) && same(waits.all, all));
}

/* Of the control group, else of the system, where only "some" is said; nothing
 * where there is neither. */
static void waits_are_read(void **state)
{
    (void)state;
    char root[] = "/tmp/dittune-waits.XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    expect(root, NAN, NAN);
    plant(root, "proc/pressure/cpu", TOTALS("1500000", "0"));
    expect(root, 1.5, NAN);
    plant(root, "proc/self/cgroup", "1:cpu:/old\n0::/user.slice/mine\n");
    expect(root, 1.5, NAN);
    plant(root, "sys/fs/cgroup/user.slice/mine/cpu.pressure", TOTALS("2500000", "250000"));
    expect(root, 2.5, 0.25);
    plant(root, "sys/fs/cgroup/user.slice/mine/cpu.max", "150000 100000\n");
    expect(root, 2.5, NAN); /* a quota may be why they wait */
    plant(root, "sys/fs/cgroup/user.slice/mine/cpu.pressure", "nonsense\n");
    expect(root, 1.5, NAN);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

static void compute(const char *name)
{
    prctl(PR_SET_NAME, name);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    volatile unsigned i = 0;
    while (i < 2)
        i = i == 0;
}

static double processor_seconds(pid_t pid)
{
    clockid_t clock;
    struct timespec spent = {0};
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &spent), 0);
    return (double)spent.tv_sec + (double)spent.tv_nsec * 1e-9;
}

/* What the process had of the cores between two readings, at least LEAST. */
static double wait_for(pid_t pid, struct dt_load_reading *before, struct dt_load_reading *after)
{
    dt_load_read(before);
    double began = processor_seconds(pid);
    while (processor_seconds(pid) - began < LEAST)
        dt_clock_sleep_ns(DT_NS_PER_SECOND / 50);
    double spent = processor_seconds(pid) - began;
    dt_load_read(after);
    return spent;
}

static void a_child_is_ours(void **state)
{
    (void)state;
    static struct dt_load_reading a, b;
    unsetenv("DITTUNE_LOAD");
    pid_t child = fork();
    if (child == 0)
        compute("busy-child");
    double spent = wait_for(child, &a, &b);
    assert_true(a.known && b.known);
    assert_true(b.ours - a.ours > spent - 0.1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    dt_load_read(&a); /* it has ended: its time stays ours */
    assert_true(a.ours > b.ours - 0.1);
}

static void a_stranger_is_not(void **state)
{
    (void)state;
    static struct dt_load_reading a, b;
    int ends[2];
    pid_t stranger = 0;
    unsetenv("DITTUNE_LOAD");
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) { /* its own child outlives it, and so has another parent */
        pid_t grandchild = fork();
        if (grandchild == 0) {
            prctl(PR_SET_NAME, "busy-stranger");
            for (time_t until = time(NULL) + 120; time(NULL) < until;)
                ;
            _exit(0);
        }
        ssize_t written = write(ends[1], &grandchild, sizeof grandchild);
        _exit(written == (ssize_t)sizeof grandchild ? 0 : 1);
    }
    assert_int_equal(read(ends[0], &stranger, sizeof stranger), (ssize_t)sizeof stranger);
    waitpid(child, NULL, 0);
    double spent = wait_for(stranger, &a, &b);
    struct dt_load load = dt_load_between(&a, &b);
    kill(stranger, SIGKILL);
    close(ends[0]);
    close(ends[1]);
    assert_true(load.others * (b.at - a.at) > spent - 0.2);
    assert_true(b.ours - a.ours < spent);
    bool seen = false;
    for (int i = 0; i < b.count; i++)
        seen = seen ||
               (b.programs[i].pid == stranger && strcmp(b.programs[i].name, "busy-stranger") == 0);
    assert_true(seen);
}

static void it_can_be_left_alone(void **state)
{
    (void)state;
    static struct dt_load_reading reading;
    setenv("DITTUNE_LOAD", "none", 1);
    dt_load_read(&reading);
    assert_false(reading.known);
    unsetenv("DITTUNE_LOAD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_what_is_left), cmocka_unit_test(waits_are_others),
        cmocka_unit_test(waits_are_read),          cmocka_unit_test(a_child_is_ours),
        cmocka_unit_test(a_stranger_is_not),       cmocka_unit_test(it_can_be_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
