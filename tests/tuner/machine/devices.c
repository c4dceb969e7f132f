/* SPDX-License-Identifier: MIT */
/* Whatever the program asked for devices does (sh scripts here), it is an answer with a sentence,
 * and nothing of it is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tuner/machine/machine_int.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_NS (600 * DT_NS_PER_SECOND)

static char folder[] = "/tmp/dittune-test-XXXXXX";

static struct dt_devices_answer ask(const char *script, int64_t patience_ns)
{
    char path[64];
    struct dt_devices_answer answer;
    snprintf(path, sizeof path, "%s/program", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(dt_machine_devices(path, dt_clock_machine_ns() + patience_ns, &answer), DT_OK);
    return answer;
}

static void says(const char *script, const char *cause)
{
    struct dt_devices_answer answer = ask(script, PATIENCE_NS);
    assert_null(answer.devices);
    assert_false(answer.missing);
    assert_string_equal(answer.cause, cause);
}

static void reads_a_good_answer(void **state)
{
    (void)state;
    struct dt_devices_answer answer =
        ask("[ \"$1\" = --devices ] && echo noise >&2 && echo '{\"count\":0,\"devices\":[]}'",
            PATIENCE_NS);
    assert_string_equal(answer.cause, "");
    assert_int_equal(json_integer_value(json_object_get(answer.devices, "count")), 0);
    assert_true(json_is_array(json_object_get(answer.devices, "devices")));
    dt_devices_answer_fini(&answer);
}

static void reports_each_failure(void **state)
{
    (void)state;
    says("kill -SEGV $$", "killed by signal 11 (Segmentation fault)");
    says("echo first >&2; echo cannot open >&2; exit 3", "exited with 3: cannot open");
    says("echo '{\"count\":'", "answered what is no description of devices");
    says("echo '[]'", "answered what is no description of devices");
    says("true", "answered what is no description of devices");
    says("exit 1", "exited with 1");
}

static void limits_the_output(void **state)
{
    (void)state;
    struct dt_devices_answer answer =
        ask("head -c 3000000 /dev/zero | tr '\\0' '['; head -c 300000 /dev/zero | tr '\\0' 'x' >&2",
            PATIENCE_NS);
    assert_null(answer.devices);
    assert_int_equal(strncmp(answer.cause, "answered what is no description", 31), 0);
}

/* The number in a file; 0 when there is none. */
static int number_in(const char *path)
{
    int number = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%d", &number) != 1)
        number = 0;
    if (file != NULL)
        fclose(file);
    return number;
}

/* It hangs, and so does what it started, for which a busy machine may need more than the first
 * patience: both are gone. */
static void kills_a_program_that_hangs(void **state)
{
    (void)state;
    char path[64], script[160];
    int pid = 0;
    snprintf(path, sizeof path, "%s/pid", folder);
    snprintf(script, sizeof script, "sleep 1000 & echo $! >%s; echo half; wait", path);
    for (int64_t patience_ns = DT_NS_PER_SECOND; pid == 0 && patience_ns < PATIENCE_NS;
         patience_ns *= 4) {
        struct dt_devices_answer answer = ask(script, patience_ns);
        assert_null(answer.devices);
        assert_string_equal(answer.cause, "did not answer in time");
        pid = number_in(path);
    }
    assert_int_not_equal(pid, 0);
    assert_int_not_equal(kill(pid, 0), 0);
    unlink(path);
}

static void reports_a_missing_program(void **state)
{
    (void)state;
    struct dt_devices_answer answer;
    assert_int_equal(
        dt_machine_devices("/nowhere/dittune-worker-cuda", dt_clock_machine_ns(), &answer), DT_OK);
    assert_true(answer.missing);
    assert_string_equal(answer.cause, "there is no /nowhere/dittune-worker-cuda");
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "%s/program", folder);
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_good_answer),       cmocka_unit_test(reports_each_failure),
        cmocka_unit_test(limits_the_output),         cmocka_unit_test(kills_a_program_that_hangs),
        cmocka_unit_test(reports_a_missing_program),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
