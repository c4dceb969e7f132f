/* SPDX-License-Identifier: MIT */
/* Whatever a program leaves running, and however the controller ends, nothing
 * survives the supervisor: the processes of a test carry a mark in their environment,
 * and /proc is searched for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tuner/runner/supervisor.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
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

static const char nowhere[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM];

static void start_ranks(const char *script, int ranks,
                        const char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM],
                        struct dt_supervised *out)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", script);
    char *const argv[] = {"sh", "-c", text, NULL};
    char *const envp[] = {"PATH=/usr/bin:/bin", mark, NULL};
    const struct dt_supervisor_program program = {"/bin/sh", argv, envp, ranks, 0, 1};
    assert_int_equal(dt_supervisor_start(&program, folders, out), DT_OK);
}

static void start(const char *script, const char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM],
                  struct dt_supervised *out)
{
    start_ranks(script, 1, folders, out);
}

/* A tree with a member that left the process group, one that left its parent, and
 * one that ignores TERM. */
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
    struct dt_ended ended = {0, 0};
    start(TREE "read word; exit 7", nowhere, &supervised);
    assert_true(come_to(6));
    assert_false(dt_supervisor_ended(&supervised, &ended));
    assert_int_equal(write(supervised.to, "go\n", 3), 3);
    assert_true(come_to(0)); /* it says how the program ended before it kills the rest */
    assert_true(dt_supervisor_ended(&supervised, &ended));
    assert_true(WIFEXITED(ended.status));
    assert_int_equal(WEXITSTATUS(ended.status), 7);
    dt_supervisor_stop(&supervised, 0);
}

/* However busy the machine is. */
static void await_end(struct dt_supervised *supervised, struct dt_ended *ended)
{
    for (int i = 0; i < 60000; i++) {
        if (dt_supervisor_ended(supervised, ended))
            return;
        dt_clock_sleep_ns(DT_NS_PER_SECOND / 100);
    }
    fail_msg("the program did not end");
}

static void test_a_rank_that_fails_ends_the_others(void **state)
{
    (void)state;
    struct dt_supervised supervised;
    struct dt_ended ended = {0, 0};
    char word;
    start_ranks("test \"$RANK\" = 2 && test \"$LOCAL_RANK\" = 2 && exit 5; exec sleep 1000", 4,
                nowhere, &supervised);
    assert_int_equal(read(supervised.from, &word, 1), 0); /* rank 0 has ended */
    await_end(&supervised, &ended);
    assert_int_equal(ended.rank, 2);
    assert_int_equal(WEXITSTATUS(ended.status), 5);
    dt_supervisor_stop(&supervised, 0);
}

static void test_the_program_ends_with_its_last_rank(void **state)
{
    (void)state;
    struct dt_supervised supervised;
    struct dt_ended ended = {7, 7};
    char word[16] = "";
    start_ranks("test -z \"$RANK\" || { read word; exit 0; }; read word; echo $word", 3, nowhere,
                &supervised);
    assert_false(dt_supervisor_ended(&supervised, &ended));
    assert_int_equal(write(supervised.to, "go\n", 3), 3);
    assert_int_equal(read(supervised.from, word, sizeof word - 1), 3);
    await_end(&supervised, &ended); /* the input of the other ranks is empty, so they have ended */
    assert_true(ended.rank == 0 && ended.status == 0);
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
    char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM] = {{0}}, inner[300];
    struct dt_supervised supervised;
    struct stat info;
    snprintf(folders[0], sizeof folders[0], "%s/supervisor-XXXXXX", DT_BINARY_DIR);
    assert_non_null(mkdtemp(folders[0]));
    snprintf(inner, sizeof inner, "%s/session", folders[0]);
    assert_int_equal(mkdir(inner, 0700), 0);
    start("exec sleep 1000", (const char(*)[DT_FOLDER_ROOM])folders, &supervised);
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

/* A folder for the supervisor to remove. */
static void make_folder(char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM])
{
    memset(folders, 0, DT_SUPERVISOR_FOLDERS * DT_FOLDER_ROOM);
    snprintf(folders[0], DT_FOLDER_ROOM, "%s/supervisor-XXXXXX", DT_BINARY_DIR);
    assert_non_null(mkdtemp(folders[0]));
}

static void test_a_stopped_supervisor_is_resumed(void **state)
{
    (void)state;
    struct dt_supervised supervised;
    struct stat info;
    char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM];
    make_folder(folders);
    start(TREE "wait", (const char(*)[DT_FOLDER_ROOM])folders, &supervised);
    assert_true(come_to(6));
    assert_int_equal(kill(supervised.pid, SIGSTOP), 0);
    dt_supervisor_stop(&supervised, DT_NS_PER_SECOND / 5);
    assert_int_equal(survivors(), 0);
    assert_int_equal(stat(folders[0], &info), -1);
}

/* The controller dies while its supervisor and the ranks are stopped. */
static void test_the_controllers_death_resumes_its_supervisor(void **state)
{
    (void)state;
    int ends[2];
    pid_t pid = 0, controller;
    assert_int_equal(pipe(ends), 0);
    if ((controller = fork()) == 0) {
        struct dt_supervised supervised;
        start("kill -STOP $$", nowhere, &supervised);
        if (write(ends[1], &supervised.pid, sizeof supervised.pid) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &pid, sizeof pid), sizeof pid);
    assert_true(come_to(1));
    kill(pid, SIGSTOP);
    kill(controller, SIGKILL);
    assert_int_equal(waitpid(controller, NULL, 0), controller);
    assert_true(come_to(0));
    close(ends[0]);
    close(ends[1]);
}

static void test_a_killed_supervisor_takes_the_program(void **state)
{
    (void)state;
    struct dt_supervised supervised;
    struct stat info;
    char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM];
    make_folder(folders);
    start("kill -STOP $$", (const char(*)[DT_FOLDER_ROOM])folders, &supervised);
    assert_true(come_to(1));
    kill(supervised.pid, SIGKILL);
    assert_true(come_to(0));
    dt_supervisor_stop(&supervised, DT_NS_PER_SECOND);
    assert_int_equal(stat(folders[0], &info), -1);
}

/* Until the supervisor has read all requests sent to it. */
static void await_read(const struct dt_supervised *supervised)
{
    int unread = 1;
    while (ioctl(supervised->control, FIONREAD, &unread) == 0 && unread > 0)
        dt_clock_sleep_ns(DT_NS_PER_SECOND / 1000);
}

/* Files that libomp leaves of killed processes are removed; processes killed by others are known
 * from dt_supervisor_note. */
static void test_registrations_are_removed(void **state)
{
    (void)state;
    struct dt_supervised supervised;
    char text[64] = "", paths[2][64];
    int pids[2];
    struct stat info;
    if (access("/dev/shm", W_OK) != 0)
        skip();
    start("mark() { : > /dev/shm/__KMP_REGISTERED_LIB_${1}_$(id -u); }; sleep 1000 & "
          "mark $!; mark $$; echo $$ $!; wait; sleep 1000",
          nowhere, &supervised);
    assert_true(read(supervised.from, text, sizeof text - 1) > 0);
    assert_int_equal(sscanf(text, "%d %d", &pids[0], &pids[1]), 2);
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "/dev/shm/__KMP_REGISTERED_LIB_%d_%d", pids[i],
                 (int)getuid());
        assert_int_equal(stat(paths[i], &info), 0);
    }
    for (int i = 0; i < 2; i++) { /* the second is read after the first was obeyed */
        dt_supervisor_note(&supervised);
        await_read(&supervised);
    }
    kill(pids[1], SIGKILL);
    while (kill(pids[1], 0) == 0)
        dt_clock_sleep_ns(DT_NS_PER_SECOND / 1000);
    dt_supervisor_stop(&supervised, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(stat(paths[i], &info), -1);
}

/* Holds a process as a debugger does, so that SIGCONT does not resume it; SIGKILL of
 * the tracer lets it go. */
static pid_t trace(pid_t pid)
{
    int ends[2];
    char held = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t tracer = fork();
    if (tracer == 0) {
        held = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 &&
               ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0 && waitpid(pid, NULL, __WALL) == pid;
        if (write(ends[1], &held, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &held, 1), 1);
    close(ends[0]);
    close(ends[1]);
    if (held)
        return tracer;
    kill(tracer, SIGKILL);
    waitpid(tracer, NULL, 0);
    return 0;
}

/* Stops the group, and returns what that writes to standard error. */
static const char *stopped(struct dt_supervised *supervised)
{
    static char said[512];
    int ends[2], keep = dup(STDERR_FILENO);
    supervised->patience_ns = DT_NS_PER_SECOND / 10;
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    dt_supervisor_stop(supervised, 0);
    dup2(keep, STDERR_FILENO);
    close(keep);
    close(ends[1]);
    ssize_t size = read(ends[0], said, sizeof said - 1);
    assert_true(size > 0);
    said[size] = 0;
    close(ends[0]);
    return said;
}

static void test_a_group_that_does_not_end_is_given_up(void **state)
{
    (void)state;
    struct dt_supervised supervised;
    char want[64];
    start("sleep 1000", nowhere, &supervised);
    pid_t pid = supervised.pid, tracer = trace(pid);
    if (tracer == 0) {
        dt_supervisor_stop(&supervised, 0);
        skip(); /* not allowed here */
    }
    const char *said = stopped(&supervised);
    snprintf(want, sizeof want, "process %d (", (int)pid);
    assert_non_null(strstr(said, want));
    assert_non_null(strstr(said, "its state is t: it is stopped"));
    assert_true(come_to(0)); /* its descendants are still killed */
    kill(tracer, SIGKILL);
    assert_int_equal(waitpid(tracer, NULL, 0), tracer);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool put(const char *folder, const char *file, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *to = fopen(path, "w");
    bool written = to != NULL && fputs(text, to) >= 0;
    return to != NULL && fclose(to) == 0 && written;
}

/* The shell has become `sleep`. */
static bool sleeps(const char *pid)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    FILE *from = fopen(path, "r");
    bool read = from != NULL && fgets(name, sizeof name, from) != NULL;
    if (from != NULL)
        fclose(from);
    return read && strcmp(name, "sleep\n") == 0;
}

/* A process in the freezer of cgroup 1 waits uninterruptibly: no signal ends it, as in a driver
 * that does not answer. */
static void test_a_process_that_cannot_be_killed_is_given_up(void **state)
{
    (void)state;
    struct dt_supervised supervised;
    char folder[200], pid[32], want[64];
    snprintf(folder, sizeof folder, "/sys/fs/cgroup/freezer/dittune-test-%d", (int)getpid());
    if (mkdir(folder, 0700) != 0)
        skip(); /* no such freezer, or not allowed here */
    start("echo $$; exec sleep 1000", nowhere, &supervised);
    ssize_t size = read(supervised.from, pid, sizeof pid - 1);
    assert_true(size > 1);
    pid[size - 1] = 0;
    while (!sleeps(pid))
        dt_clock_sleep_ns(DT_NS_PER_SECOND / 100);
    bool frozen = put(folder, "cgroup.procs", pid) && put(folder, "freezer.state", "FROZEN");
    pid_t supervisor = supervised.pid;
    if (frozen) {
        const char *said = stopped(&supervised);
        snprintf(want, sizeof want, "process %s (sleep)", pid);
        assert_non_null(strstr(said, want));
        assert_non_null(strstr(said, "its state is D: it waits for a device or a file system"));
        assert_int_equal(kill(atoi(pid), 0), 0);
        assert_true(put(folder, "freezer.state", "THAWED"));
        assert_int_equal(waitpid(supervisor, NULL, 0), supervisor);
    } else {
        dt_supervisor_stop(&supervised, 0);
    }
    assert_true(come_to(0));
    while (rmdir(folder) != 0 && errno == EBUSY)
        dt_clock_sleep_ns(DT_NS_PER_SECOND / 100);
    if (!frozen)
        skip();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    snprintf(mark, sizeof mark, "DITTUNE_TEST_MARK=%d", (int)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_leaves_no_descendant),
        cmocka_unit_test(test_the_programs_end_takes_its_orphans),
        cmocka_unit_test(test_a_rank_that_fails_ends_the_others),
        cmocka_unit_test(test_the_program_ends_with_its_last_rank),
        cmocka_unit_test(test_the_controllers_death_takes_all),
        cmocka_unit_test(test_folders_are_removed),
        cmocka_unit_test(test_streams_are_the_programs),
        cmocka_unit_test(test_a_stopped_supervisor_is_resumed),
        cmocka_unit_test(test_the_controllers_death_resumes_its_supervisor),
        cmocka_unit_test(test_a_killed_supervisor_takes_the_program),
        cmocka_unit_test(test_registrations_are_removed),
        cmocka_unit_test(test_a_group_that_does_not_end_is_given_up),
        cmocka_unit_test(test_a_process_that_cannot_be_killed_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
