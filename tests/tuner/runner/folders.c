/* SPDX-License-Identifier: MIT */
/* Folders of dead sessions are swept; those of living ones, of other hosts,
 * links and files stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/proc.h"
#include "tuner/runner/folders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char parent[128];

/* The folder of a process that has made it and ended. */
static void make_dead(char folder[DT_FOLDER_ROOM])
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        bool made = dt_folder_make(parent, folder) == DT_OK;
        _exit(made && write(ends[1], folder, DT_FOLDER_ROOM) == DT_FOLDER_ROOM ? 0 : 1);
    }
    assert_int_equal(read(ends[0], folder, DT_FOLDER_ROOM), DT_FOLDER_ROOM);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
    close(ends[1]);
}

static bool there(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

static void write_file(const char *folder, const char *name)
{
    char path[DT_FOLDER_ROOM + 16];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static void test_the_dead_are_swept(void **state)
{
    (void)state;
    char dead[DT_FOLDER_ROOM], living[DT_FOLDER_ROOM];
    make_dead(dead);
    write_file(dead, "file");
    assert_int_equal(dt_folder_make(parent, living), DT_OK);
    dt_folders_sweep(parent);
    assert_false(there(dead));
    assert_true(there(living));
    dt_folder_remove(living);
    assert_false(there(living));
}

/* Puts another number into one of the four places of a name; the folder itself is renamed. */
static void rename_place(char folder[DT_FOLDER_ROOM], int place, const char *text)
{
    char *parts[5], copy[DT_FOLDER_ROOM], named[DT_FOLDER_ROOM + 64];
    snprintf(copy, sizeof copy, "%s", strrchr(folder, '/') + 1);
    for (int i = 0; i < 5; i++)
        parts[i] = strtok(i == 0 ? copy : NULL, "-");
    assert_non_null(parts[4]);
    parts[place] = (char *)text;
    snprintf(named, sizeof named, "%s/%s-%s-%s-%s-%s", parent, parts[0], parts[1], parts[2],
             parts[3], parts[4]);
    assert_int_equal(rename(folder, named), 0);
    snprintf(folder, DT_FOLDER_ROOM, "%.255s", named);
}

static void a_reused_pid_is_distinguished(void **state)
{
    (void)state;
    char folder[DT_FOLDER_ROOM];
    assert_int_equal(dt_folder_make(parent, folder), DT_OK);
    rename_place(folder, 2, "12345"); /* started soon after the boot, which this test was not */
    dt_folders_sweep(parent);
    assert_false(there(folder));
}

static void test_other_hosts_are_left_alone(void **state)
{
    (void)state;
    char folder[DT_FOLDER_ROOM];
    make_dead(folder);
    rename_place(folder, 3, "00000000");
    dt_folders_sweep(parent);
    assert_true(there(folder));
    dt_folder_remove(folder);
}

static void test_no_link_is_followed(void **state)
{
    (void)state;
    char dead[DT_FOLDER_ROOM], kept[160], file[180];
    snprintf(kept, sizeof kept, "%s/kept", parent);
    snprintf(file, sizeof file, "%s/file", kept);
    assert_int_equal(mkdir(kept, 0700), 0);
    write_file(kept, "file");
    make_dead(dead);
    rmdir(dead);
    assert_int_equal(symlink(kept, dead), 0); /* in the place of a folder */
    dt_folders_sweep(parent);
    assert_true(there(file) && there(dead));
    unlink(dead);
    assert_int_equal(mkdir(dead, 0700), 0);
    char link[DT_FOLDER_ROOM + 8];
    snprintf(link, sizeof link, "%s/link", dead);
    assert_int_equal(symlink(kept, link), 0); /* within one */
    dt_folders_sweep(parent);
    assert_true(there(file));
    assert_false(there(dead));
}

static void test_other_users_are_left_alone(void **state)
{
    (void)state;
    char dead[DT_FOLDER_ROOM];
    if (geteuid() != 0)
        skip(); /* only root can make a folder somebody else's */
    make_dead(dead);
    assert_int_equal(chown(dead, 12345, 12345), 0);
    dt_folders_sweep(parent);
    assert_true(there(dead));
    dt_folder_remove(dead);
}

static void test_other_names_are_left_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"dittune-", "dittune-abcdef", "dittune-1-1-1-1",
                                        "dittune-99999999-1-0-abcdef-x"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[200];
        snprintf(path, sizeof path, "%s/%s", parent, names[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        dt_folders_sweep(parent);
        assert_true(there(path));
        rmdir(path);
    }
}

static void test_a_path_that_is_too_long_is_refused(void **state)
{
    (void)state;
    char folder[DT_FOLDER_ROOM], path[300];
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(dt_folder_make(path, folder), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "299 letters"));
    assert_string_equal(folder, "");
    dt_folders_sweep(path); /* finds nothing */
}

int main(void)
{
    snprintf(parent, sizeof parent, "/tmp/folders-XXXXXX");
    if (mkdtemp(parent) == NULL)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_dead_are_swept),
        cmocka_unit_test(a_reused_pid_is_distinguished),
        cmocka_unit_test(test_other_hosts_are_left_alone),
        cmocka_unit_test(test_no_link_is_followed),
        cmocka_unit_test(test_other_users_are_left_alone),
        cmocka_unit_test(test_other_names_are_left_alone),
        cmocka_unit_test(test_a_path_that_is_too_long_is_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dt_folder_remove(parent);
    return failed;
}
