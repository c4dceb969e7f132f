/* SPDX-License-Identifier: MIT */
/* Entries that a store keeps or refuses, with one program at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/stored.h"
#include "db/stores.h"
#include "tests/db/scratch.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static void round_trip(void **state)
{
    (void)state;
    json_t *found = NULL, *entry = make_entry("a", 3);
    assert_int_equal(value_of("a"), -1);
    assert_int_equal(put("a", 3), DT_OK);
    assert_int_equal(get("a", &found), DT_OK);
    assert_true(same_entry(found, entry));
    json_decref(found);
    json_decref(entry);
    assert_int_equal(value_of("b"), -1);
}

static void missing_directory_is_empty(void **state)
{
    (void)state;
    int n = 0;
    rmdir(scratch);
    assert_int_equal(value_of("a"), -1);
    assert_int_equal(dt_store_each(scratch, count_entry, &n), DT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(access(scratch, F_OK), -1);
}

static void same_key_is_replaced(void **state)
{
    (void)state;
    int n = 0;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(put("a", i), DT_OK);
        assert_int_equal(put("b", 10 + i), DT_OK);
    }
    assert_int_equal(dt_store_each(scratch, count_entry, &n), DT_OK);
    assert_int_equal(n, 2);
    assert_int_equal(value_of("a"), 4);
    assert_int_equal(value_of("b"), 14);
}

/* Entries of every combination: decided, plans tried, sets, versions; each a place in the order
 * that the rule tells, spelt as a number. */
static json_t *entry_of(int i)
{
    json_t *entry = make_entry("a", i);
    int sets = 4 * (i / 2 % 3);
    json_object_set_new(entry, "provisional", json_boolean(i < 18));
    json_object_set_new(entry, "tried", json_integer(3 + i / 6 % 3));
    json_object_set_new(entry, "plans", json_integer(9));
    json_object_set_new(
        entry, "noise",
        json_pack("{s:f, s:i, s:i}", "margin", .1, "pairs", 4 * sets, "sets", sets));
    if (i % 2 == 1)
        json_object_set_new(json_object_get(entry, "fingerprint"), "soft",
                            json_pack("{s:s}", "mpi", "5.0"));
    return entry;
}

/* The processor's family counts where both sides have it; every other field on both sides. */
static void hardware_of_before_matches(void **state)
{
    static const char *const texts[] = {
        "{\"device\":\"A\",\"cores\":2}", "{\"device\":\"A\",\"cores\":2,\"cpu\":\"25.1.1\"}",
        "{\"device\":\"A\",\"cores\":2,\"cpu\":\"25.17.1\"}",
        "{\"device\":\"A\",\"cpu\":\"25.1.1\"}", "{\"device\":\"A\"}"};
    static const char *const same[] = {"11100", "11000", "10100", "00011", "00011"};
    static const char *const within[] = {"11111", "11011", "10101", "00011", "00011"};
    (void)state;
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 5; k++) {
            json_auto_t *one = json_loads(texts[i], 0, NULL),
                        *other = json_loads(texts[k], 0, NULL);
            assert_int_equal(dt_stored_same_hard(one, other), same[i][k] == '1');
            assert_int_equal(dt_stored_has_hard(one, other), within[i][k] == '1');
        }
    }
    assert_false(dt_stored_same_hard(NULL, NULL));
}

static void better_evidence_stays(void **state)
{
    (void)state;
    for (int i = 0; i < 36; i++)
        for (int k = 0; k < 36; k++) {
            json_t *mine = entry_of(i), *its = entry_of(k), *kept = NULL;
            struct dt_stored_entry first, second;
            bool decided = i >= 18 && k >= 18, same = i % 2 == k % 2;
            int expected = decided ? 0 : i / 18 != k / 18 ? i - k : same ? i - k : 0;
            dt_record_read(&dt_record_stored_entry, mine, &first);
            dt_record_read(&dt_record_stored_entry, its, &second);
            int order = dt_stored_evidence(&first, &second);
            assert_true((order > 0) == (expected > 0) && (order < 0) == (expected < 0));
            if ((7 * i + k) % 10 == 0) { /* a write takes a while */
                assert_int_equal(dt_store_put(scratch, its), DT_OK);
                assert_int_equal(dt_store_offer(scratch, mine, &kept), DT_OK);
                assert_int_equal(value_of("a"), expected < 0 ? k : i);
                assert_true((kept != NULL) == (expected < 0));
            }
            json_decref(kept);
            json_decref(mine);
            json_decref(its);
        }
}

static void other_hardware_is_another_entry(void **state)
{
    (void)state;
    int n = 0;
    json_t *other = make_entry("a", 9), *key = make_key("a"), *hard = make_hard(), *found = NULL;
    json_t *its = json_object_get(json_object_get(other, "fingerprint"), "hard");
    json_object_set_new(its, "cores", json_integer(64));
    json_object_set_new(hard, "cores", json_integer(64));
    assert_int_equal(put("a", 1), DT_OK);
    assert_int_equal(dt_store_put(scratch, other), DT_OK);
    assert_int_equal(dt_store_each(scratch, count_entry, &n), DT_OK);
    assert_int_equal(n, 2);
    assert_int_equal(value_of("a"), 1);
    assert_int_equal(dt_store_get(scratch, key, hard, &found), DT_OK);
    assert_true(same_entry(found, other));
    json_decref(found);
    json_decref(key);
    json_decref(hard);
    json_decref(other);
}

/* Types count: 2 and "2" are not the same key; the order of fields is not part of it. */
static void keys_are_canonical(void **state)
{
    (void)state;
    json_t *found = NULL, *hard = make_hard();
    json_t *turned =
        json_pack("{s:i, s:s, s:s}", "devices", 2, "objective", "latency", "model", "a");
    json_t *text =
        json_pack("{s:s, s:s, s:s}", "devices", "2", "objective", "latency", "model", "a");
    assert_int_equal(put("a", 1), DT_OK);
    assert_int_equal(dt_store_get(scratch, text, hard, &found), DT_OK);
    assert_null(found);
    assert_int_equal(dt_store_get(scratch, turned, hard, &found), DT_OK);
    assert_non_null(found);
    json_decref(found);
    json_decref(hard);
    json_decref(turned);
    json_decref(text);
}

static void broken_file_is_set_aside(void **state)
{
    (void)state;
    size_t size;
    assert_int_equal(put("a", 1), DT_OK);
    assert_int_equal(put("a", 2), DT_OK);
    write_file(at("best.json"), "{oops", 5);
    assert_int_equal(value_of("a"), 1); /* the version before */
    assert_int_equal(put("b", 5), DT_OK);
    assert_int_equal(value_of("a"), 1);
    assert_int_equal(value_of("b"), 5);
    assert_int_equal(count_names(scratch, "best.json.bad-"), 1);
    unlink(at("best.json.1"));
    write_file(at("best.json"), "", 0);
    assert_int_equal(value_of("a"), DT_ECORRUPT - 1);
    assert_int_equal(put("c", 7), DT_OK); /* from an empty store */
    assert_int_equal(value_of("a"), -1);
    assert_int_equal(value_of("c"), 7);
    assert_int_equal(count_names(scratch, "best.json.bad-"), 2);
    assert_int_equal(count_names(scratch, ".dittune"), 0);
    char *text = read_file(at("lock"), &size);
    assert_int_equal(size, 0);
    free(text);
}

static void backup_is_the_version_before(void **state)
{
    (void)state;
    size_t size, kept;
    assert_int_equal(put("a", 1), DT_OK);
    char *old = read_file(at("best.json"), &size);
    assert_int_equal(put("a", 2), DT_OK);
    char *backup = read_file(at("best.json.1"), &kept);
    assert_int_equal(size, kept);
    assert_memory_equal(old, backup, size);
    free(old);
    free(backup);
    /* a writer died between its two renames: one file under both names */
    unlink(at("best.json.1"));
    assert_int_equal(link(at("best.json"), at("best.json.1")), 0);
    assert_int_equal(put("a", 3), DT_OK);
    assert_int_equal(value_of("a"), 3);
    assert_int_equal(count_names(scratch, ".dittune"), 0);
}

/* Old ones, those of a process that is gone (no process has so high a number), and those of a
 * clock that was set back. */
static void only_leftovers_are_swept(void **state)
{
    (void)state;
    struct timespec old[2] = {{.tv_sec = time(NULL) - 120}, {.tv_sec = time(NULL) - 120}};
    struct timespec late[2] = {{.tv_sec = time(NULL) + 7200}, {.tv_sec = time(NULL) + 7200}};
    char young[64];
    snprintf(young, sizeof young, ".dittune-%ld-00.tmp", (long)getpid());
    write_file(at(".dittune-1-00.tmp"), "x", 1);
    write_file(at(".dittune-1-01.tmp"), "x", 1);
    write_file(at(".dittune-999999999-00.tmp"), "x", 1);
    write_file(at(young), "x", 1);
    write_file(at(".mine.tmp"), "x", 1);
    assert_int_equal(utimensat(AT_FDCWD, at(".dittune-1-00.tmp"), old, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, at(".dittune-1-01.tmp"), late, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, at(".mine.tmp"), old, 0), 0);
    assert_int_equal(put("a", 1), DT_OK);
    assert_int_equal(count_names(scratch, ".dittune-"), 1);
    assert_int_equal(access(at(young), F_OK), 0);
    assert_int_equal(access(at(".mine.tmp"), F_OK), 0);
}

static void not_a_directory(void **state)
{
    (void)state;
    char path[512];
    write_file(at("file"), "", 0);
    snprintf(path, sizeof path, "%s/file/store", scratch);
    json_t *entry = make_entry("a", 1), *found = NULL;
    assert_int_equal(dt_store_check(path), DT_EIO);
    assert_non_null(strstr(dt_message(), "Not a directory"));
    assert_int_equal(dt_store_put(path, entry), DT_EIO);
    assert_int_equal(dt_store_get(path, entry, entry, &found), DT_EIO);
    assert_int_equal(dt_store_check(at("file")), DT_EIO);
    json_decref(entry);
}

static void read_only_directory(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip();
    assert_int_equal(put("a", 1), DT_OK);
    assert_int_equal(chmod(scratch, 0555), 0);
    dt_status check = dt_store_check(scratch), write = put("a", 2);
    chmod(scratch, 0755);
    assert_int_equal(check, DT_EIO);
    assert_int_equal(write, DT_EIO);
    assert_non_null(strstr(dt_message(), "Permission denied"));
    assert_int_equal(value_of("a"), 1);
}

static void only_regular_files(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(at("best.json"), 0644), 0);
    assert_int_equal(value_of("a"), DT_EIO - 1);
    assert_int_equal(put("a", 1), DT_EIO);
    unlink(at("best.json"));
    assert_int_equal(mkdir(at("best.json"), 0755), 0);
    assert_int_equal(value_of("a"), DT_EIO - 1);
    assert_int_equal(put("a", 1), DT_EIO);
    rmdir(at("best.json"));
    write_file(at("elsewhere"), "{}", 2);
    assert_int_equal(symlink("elsewhere", at("best.json")), 0);
    assert_int_equal(value_of("a"), DT_EIO - 1);
    assert_int_equal(put("a", 1), DT_EIO);
    assert_non_null(strstr(dt_message(), "symbolic link"));
    assert_int_equal(count_names(scratch, ".dittune"), 0);
}

static void entries_are_checked(void **state)
{
    (void)state;
    json_t *deep = json_integer(1), *entry = make_entry("a", 1);
    for (int i = 0; i < 100; i++)
        deep = json_pack("[o]", deep);
    json_object_set_new(entry, "deep", deep);
    assert_int_equal(dt_store_put(scratch, entry), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "nested deeper"));
    json_object_del(entry, "deep");
    char *large = calloc(1, 5000);
    memset(large, 'x', 4097);
    json_t *key = json_object_get(entry, "key");
    json_object_set_new(key, "model", json_string(large));
    assert_int_equal(dt_store_put(scratch, entry), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "a string of 4097 bytes"));
    json_object_set_new(key, "model", json_string("a"));
    json_object_set_new(key, large, json_integer(1));
    assert_int_equal(dt_store_put(scratch, entry), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "a name of 4097 bytes"));
    json_object_del(key, large);
    free(large);
    json_object_del(entry, "plan");
    assert_int_equal(dt_store_put(scratch, entry), DT_EUSAGE);
    assert_string_equal(dt_message(), "the entry: 'plan' is missing");
    json_decref(entry);
    assert_int_equal(count_names(scratch, "best.json"), 0);
}

/* The kernel refuses to let a file grow: what a full disk does, without one. */
static void full_disk_changes_nothing(void **state)
{
    (void)state;
    int outcome = 0;
    size_t before, after;
    assert_int_equal(put("a", 1), DT_OK);
    char *old = read_file(at("best.json"), &before);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit limit = {before / 2, before / 2};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        _exit(put("b", 2) == DT_EIO && strstr(dt_message(), "cannot write in") != NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_int_equal(outcome, 0);
    char *new = read_file(at("best.json"), &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, new, before);
    assert_int_equal(count_names(scratch, ".dittune"), 0);
    free(old);
    free(new);
}

/* The folders of the list, with bars between them. */
static void lists(const char *list, const char *expected)
{
    struct dt_stores stores;
    dt_auto_text text = {0};
    assert_int_equal(dt_stores_read(list, "/nobody", &stores), DT_OK);
    for (int i = 0; i < stores.count; i++)
        dt_text_add(&text, "%s%s", i > 0 ? "|" : "", stores.at[i]);
    assert_string_equal(dt_text_at(&text), expected);
}

static void default_directory(void **state)
{
    (void)state;
    setenv("HOME", "/home/u", 1);
    unsetenv("DITTUNE_STORE");
    unsetenv("XDG_DATA_HOME");
    lists(NULL, "/home/u/.local/share/dittune");
    setenv("XDG_DATA_HOME", "relative", 1);
    lists(NULL, "/home/u/.local/share/dittune");
    setenv("XDG_DATA_HOME", "/data", 1);
    lists(NULL, "/data/dittune");
    setenv("DITTUNE_STORE", "", 1);
    lists(NULL, "/data/dittune");
    setenv("DITTUNE_STORE", "here", 1);
    lists(NULL, "here");
    unsetenv("HOME");
    unsetenv("XDG_DATA_HOME");
    unsetenv("DITTUNE_STORE");
    lists(NULL, "/nobody/.local/share/dittune");
    struct dt_stores stores;
    assert_int_equal(dt_stores_read(NULL, NULL, &stores), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "HOME"));
}

static void list_of_stores(void **state)
{
    (void)state;
    char list[9000];
    struct dt_stores stores;
    setenv("XDG_DATA_HOME", "/data", 1);
    setenv("DITTUNE_STORE", "/mine:/opt/two words", 1);
    lists(NULL, "/mine|/opt/two words");
    lists("a:b", "a|b");
    lists("", "/data/dittune");
    lists(":/opt/plans", "/data/dittune|/opt/plans");
    lists("/opt/plans:", "/opt/plans|/data/dittune");
    lists("a::b", "a|/data/dittune|b");
    lists("a:b:a", "a|b");
    lists("::", "/data/dittune");
    snprintf(list, sizeof list, "1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:1");
    assert_int_equal(dt_stores_read(list, NULL, &stores), DT_OK);
    assert_int_equal(stores.count, DT_STORES_MOST);
    snprintf(list, sizeof list, "1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17");
    assert_int_equal(dt_stores_read(list, NULL, &stores), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "at most 16"));
    memset(list, 'a', sizeof list - 1);
    list[sizeof list - 1] = '\0';
    assert_int_equal(dt_stores_read(list, NULL, &stores), DT_EUSAGE);
    unsetenv("XDG_DATA_HOME");
    unsetenv("DITTUNE_STORE");
}

static void check_makes_folders(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/a//b/c/", scratch);
    assert_int_equal(dt_store_check(path), DT_OK);
    assert_int_equal(access(at("a/b/c/runs"), W_OK), 0);
    assert_int_equal(count_names(at("a/b/c"), ".dittune"), 0);
    assert_int_equal(dt_store_check(path), DT_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(round_trip),
        TEST(missing_directory_is_empty),
        TEST(better_evidence_stays),
        cmocka_unit_test(hardware_of_before_matches),
        TEST(same_key_is_replaced),
        TEST(other_hardware_is_another_entry),
        TEST(keys_are_canonical),
        TEST(broken_file_is_set_aside),
        TEST(backup_is_the_version_before),
        TEST(only_leftovers_are_swept),
        TEST(not_a_directory),
        TEST(read_only_directory),
        TEST(only_regular_files),
        TEST(entries_are_checked),
        TEST(full_disk_changes_nothing),
        TEST(check_makes_folders),
        cmocka_unit_test(default_directory),
        cmocka_unit_test(list_of_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
