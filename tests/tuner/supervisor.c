/* SPDX-License-Identifier: MIT */
/* Whatever a program leaves running, and however the controller ends, nothing survives the supervisor: the processes of a
 * test carry a mark in their environment, and /proc is searched for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tuner/process/supervisor.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char mark[64];

static bool is_marked(const char *pid)
{
    char path[300], block[4096];
    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    FILE *file = fopen(path, "r");
    size_t size = file != NULL ? fread(block, 1, sizeof block - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    return size > 0 && memmem(block, size, mark, strlen(mark)) != NULL;
}

/* Processes with the mark in their environment (zombies have none). */
static int survivors(void)
{
    int n = 0;
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        n += entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && is_marked(entry->d_name);
    if (folder != NULL)
        closedir(folder);
    return n;
}

/* Waits for a count of survivors, however busy the machine is. */
static bool come_to(int n)
{
    for (int i = 0; i < 60000; i++) {
        if (survivors() == n)
            return true;
        dt_clock_sleep_ns(DT_NS_PER_SECOND / 100);
    }
    return false;
}

static const char nowhere[DT_SUPERVISOR_FOLDERS][256];

static void start(const char *script, const char folders[DT_SUPERVISOR_FOLDERS][256],
                  struct dt_supervised *out)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", script);
    char *const argv[] = {"sh", "-c", text, NULL};
    char *const envp[] = {"PATH=/usr/bin:/bin", mark, NULL};
    assert_int_equal(dt_supervisor_start("/bin/sh", argv, envp, folders, out), DT_OK);
}

/* A tree with a member that left the process group, one that left its parent, and one that ignores TERM. */
#define TREE                                                                                       \
    "sleep 1000 & setsid sleep 1000 & (sleep 1000 &) ; "                                           \
    "sh -c 'trap \"\" TERM; while :; do sleep 1000; done' & "

static void test_stop_leaves_no_descendant(void **state)
{
    (void)state;
    struct dt_supervised supervised;
    start(TREE "wait", nowhere, &supervised);
    assert_true(come_to(6));
    dt_supervisor_stop(&supervised, DT_NS_PER_SECOND / 5);
    assert_int_equal(survivors(), 0);
}

static void test_the_programs_end_takes_its_orphans(void **state)
{
    (void)state;
    struct dt_supervised supervised;
    int wait_status = 0;
    start(TREE "read word; exit 7", nowhere, &supervised);
    assert_true(come_to(6));
    assert_false(dt_supervisor_ended(&supervised, &wait_status));
    assert_int_equal(write(supervised.to, "go\n", 3), 3);
    assert_true(come_to(0)); /* it says how the program ended before it kills the rest */
    assert_true(dt_supervisor_ended(&supervised, &wait_status));
    assert_true(WIFEXITED(wait_status));
    assert_int_equal(WEXITSTATUS(wait_status), 7);
    dt_supervisor_stop(&supervised, 0);
}

static void test_the_controllers_death_takes_all(void **state)
{
    (void)state;
    pid_t controller = fork();
    if (controller == 0) {
        struct dt_supervised supervised;
        start(TREE "wait", nowhere, &supervised);
        for (;;)
            pause();
    }
    assert_true(come_to(6));
    kill(controller, SIGKILL);
    assert_int_equal(waitpid(controller, NULL, 0), controller);
    assert_true(come_to(0));
}

static void test_folders_are_removed(void **state)
{
    (void)state;
    char folders[DT_SUPERVISOR_FOLDERS][256] = {{0}}, inner[300];
    struct dt_supervised supervised;
    struct stat info;
    snprintf(folders[0], sizeof folders[0], "%s/supervisor-XXXXXX", DT_BINARY_DIR);
    assert_non_null(mkdtemp(folders[0]));
    snprintf(inner, sizeof inner, "%s/session", folders[0]);
    assert_int_equal(mkdir(inner, 0700), 0);
    start("exec sleep 1000", (const char(*)[256])folders, &supervised);
    dt_supervisor_stop(&supervised, 0);
    assert_int_equal(stat(folders[0], &info), -1);
}

static void test_streams_are_the_programs(void **state)
{
    (void)state;
    struct dt_supervised supervised;
    char text[64] = "";
    start("read word; echo \"got $word\"; echo trouble >&2", nowhere, &supervised);
    assert_int_equal(write(supervised.to, "it\n", 3), 3);
    assert_true(read(supervised.from, text, sizeof text - 1) > 0);
    assert_string_equal(text, "got it\n");
    memset(text, 0, sizeof text);
    assert_true(read(supervised.messages, text, sizeof text - 1) > 0);
    assert_string_equal(text, "trouble\n");
    dt_supervisor_stop(&supervised, 0);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    snprintf(mark, sizeof mark, "DITTUNE_TEST_MARK=%d", (int)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_leaves_no_descendant),
        cmocka_unit_test(test_the_programs_end_takes_its_orphans),
        cmocka_unit_test(test_the_controllers_death_takes_all),
        cmocka_unit_test(test_folders_are_removed),
        cmocka_unit_test(test_streams_are_the_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
