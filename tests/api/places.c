/* SPDX-License-Identifier: MIT */
/* Default places of the store and the machine, and the fallback when best.json is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/api/session.h"

/* A folder in the scratch directory, and those above it. */
static const char *folder(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s", at(name));
    for (char *slash = strchr(path + strlen(scratch) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    mkdir(path, 0755);
    return at(name);
}

static size_t usual_count(void)
{
    struct dittune_db *db = NULL;
    char why[512] = "";
    if (dittune_db_open(NULL, &db, why, sizeof why) != DITTUNE_OK)
        fail_msg("%s", why);
    size_t count = dittune_db_count(db);
    dittune_db_close(db);
    return count;
}

static void finds_the_default_store(void **state)
{
    (void)state;
    struct dittune_db *db = NULL;
    char why[512] = "";
    assert_int_equal(made_directory(folder("given"), 3), DT_OK);
    assert_int_equal(made_directory(folder("data/dittune"), 2), DT_OK);
    assert_int_equal(made_directory(folder("home/.local/share/dittune"), 1), DT_OK);
    setenv("DITTUNE_STORE", at("given"), 1);
    setenv("XDG_DATA_HOME", at("data"), 1);
    setenv("HOME", at("home"), 1);
    assert_int_equal(usual_count(), 3);
    setenv("DITTUNE_STORE", "", 1);
    assert_int_equal(usual_count(), 2);
    setenv("XDG_DATA_HOME", "not/absolute", 1);
    assert_int_equal(usual_count(), 1);
    unsetenv("XDG_DATA_HOME");
    assert_int_equal(usual_count(), 1);
    unsetenv("HOME");
    assert_int_equal(dittune_db_open(NULL, &db, why, sizeof why), DITTUNE_USAGE);
    assert_non_null(strstr(why, "HOME"));
    assert_null(db);
}

static void finds_the_cached_machine(void **state)
{
    (void)state;
    struct dittune_machine *machine = NULL;
    char why[512] = "";
    setenv("XDG_CACHE_HOME", at("cache"), 1);
    assert_int_equal(dittune_machine_open(NULL, &machine, why, sizeof why), DITTUNE_IO);
    assert_non_null(strstr(why, "cache/dittune/machine.json"));
    assert_int_equal(made_directory(folder("cache/dittune"), 1), DT_OK);
    assert_int_equal(dittune_machine_open(NULL, &machine, why, sizeof why), DITTUNE_OK);
    dittune_machine_free(machine);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", at("home"), 1);
    assert_int_equal(made_directory(folder("home/.cache/dittune"), 1), DT_OK);
    assert_int_equal(dittune_machine_open(NULL, &machine, why, sizeof why), DITTUNE_OK);
    dittune_machine_free(machine);
}

/* A damaged store of one entry with a backup of two: the backup is read and reported; without a
 * backup it is an error. */
static void reads_the_backup_of_a_damaged_store(void **state)
{
    (void)state;
    struct dittune_db *db = NULL;
    char why[512] = "";
    assert_int_equal(made_directory(scratch, 2), DT_OK);
    db = session_open();
    assert_int_equal(dittune_db_is_fallback(db), 0);
    dittune_db_close(db);
    assert_int_equal(rename(at("best.json"), at("best.json.1")), 0);
    assert_int_equal(made_directory(scratch, 1), DT_OK);
    int fd = open(at("best.json"), O_WRONLY);
    assert_int_equal(pwrite(fd, "X", 1, 900), 1);
    close(fd);
    db = session_open();
    assert_int_equal(dittune_db_is_fallback(db), 1);
    assert_int_equal(dittune_db_count(db), 2);
    assert_int_equal(dittune_db_is_outdated(db), 0);
    dittune_db_close(db);
    db = NULL;
    assert_int_equal(unlink(at("best.json.1")), 0);
    assert_int_equal(dittune_db_open(scratch, &db, why, sizeof why), DITTUNE_CORRUPT);
    assert_non_null(strstr(why, "best.json"));
    assert_null(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_the_default_store, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(finds_the_cached_machine, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(reads_the_backup_of_a_damaged_store, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
