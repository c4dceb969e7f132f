/* SPDX-License-Identifier: MIT */
/* Damage that `dittune db` reports, and entries it merges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/db/sessions.h"

static void verify_names_what_is_broken(void **state)
{
    (void)state;
    char id[128];
    size_t size;
    struct dt_upkeep upkeep = fresh();
    assert_int_equal(dt_upkeep_verify(at("nowhere"), &upkeep), DT_OK);
    assert_true(was_told("there is no store at"));
    session(entry_at("a", 1, false, 1), true, id);
    session(entry_at("b", 2, false, 2), true, id);
    upkeep = fresh();
    assert_int_equal(dt_upkeep_verify(scratch, &upkeep), DT_OK);
    assert_true(was_told("0 best.json: 2 entries, all checksums right"));
    assert_true(was_told("0 best.json.1: 1 entry, all checksums right"));
    assert_true(was_told("0 runs: 2 journals, 4 records, all checksums right"));
    flip(at("best.json.1"), 200);
    flip(journal_path(id), 30);
    upkeep = fresh();
    assert_int_equal(dt_upkeep_verify(scratch, &upkeep), DT_ECORRUPT);
    assert_int_equal(upkeep.broken, 2);
    assert_true(was_told("best.json.1 is damaged: its 'checksum' is not that of"));
    assert_true(was_told("0 of its lines are whole"));
    char expected[256];
    snprintf(expected, sizeof expected, "2 %s.jsonl: line 2 does not match its crc", id);
    assert_true(was_told(expected));
    /* a torn end is no damage */
    flip(journal_path(id), 30);
    flip(at("best.json.1"), 200);
    char *bytes = read_file(journal_path(id), &size);
    write_file(journal_path(id), bytes, size - 9);
    free(bytes);
    upkeep = fresh();
    assert_int_equal(dt_upkeep_verify(scratch, &upkeep), DT_OK);
    snprintf(expected, sizeof expected, "1 %s.jsonl: line 4 is half a record", id);
    assert_true(was_told(expected));
}

static char gone[512];

/* Removes the second journal while `gc` reports the first. */
static void remove_second(enum dt_tell kind, const char *sentence, void *context)
{
    if (strstr(sentence, "half a record") != NULL)
        assert_int_equal(unlink(gone), 0);
    tell(kind, sentence, context);
}

static void verify_beside_gc(void **state)
{
    (void)state;
    char first[128], second[128];
    size_t size;
    session(entry_at("a", 1, false, 1), true, first);
    session(entry_at("b", 2, false, 2), true, second);
    bool in_order = strverscmp(first, second) < 0;
    char *bytes = read_file(journal_path(in_order ? first : second), &size);
    write_file(journal_path(in_order ? first : second), bytes, size - 9);
    free(bytes);
    snprintf(gone, sizeof gone, "%s", journal_path(in_order ? second : first));
    struct dt_upkeep upkeep = fresh();
    upkeep.tell = remove_second;
    assert_int_equal(dt_upkeep_verify(scratch, &upkeep), DT_OK);
    assert_int_equal(upkeep.broken, 0);
    assert_true(was_told("0 runs: 1 journal,"));
}

/* Two lines of one key, which nothing here writes: a file's checksums do not tell. */
static void verify_names_two_of_a_key(void **state)
{
    (void)state;
    struct dt_text text = {0};
    struct dt_upkeep upkeep = fresh();
    for (int i = 0; i < 3; i++) {
        json_t *entry = entry_at(i < 2 ? "a" : "b", i, false, i);
        assert_int_equal(dt_store_put(scratch, entry), DT_OK);
        json_decref(entry);
    }
    size_t size;
    char *bytes = read_file(at("best.json"), &size);
    char *first = strchr(bytes, '\n') + 1, *second = strchr(first, '\n') + 1;
    dt_text_add(&text, "%.*s", (int)(second - bytes), bytes);
    dt_text_add(&text, "%.*s,\n%.*s\n]", (int)(strchr(second, '\n') - second), second,
                (int)(second - 2 - first), first); /* a, b, a */
    dt_text_add(&text, ",\"checksum\":\"%08x\"}\n", (unsigned)dt_crc32c(text.bytes, text.size));
    write_file(at("best.json"), text.bytes, text.size);
    assert_int_equal(dt_upkeep_verify(scratch, &upkeep), DT_ECORRUPT);
    assert_int_equal(upkeep.broken, 1);
    assert_true(was_told("2 best.json: line 4 has the key and hardware of line 2"));
    assert_false(was_told("best.json: 3 entries, all checksums right"));
    dt_text_fini(&text);
    free(bytes);
}

/* Decided beats provisional, then newer beats older, and of equals the first stays: against that
 * rule, spelt as numbers. */
static void merge_takes_the_better(void **state)
{
    (void)state;
    for (int i = 0; i < 36; i++) {
        int mine = i % 6, its = i / 6; /* time 1..3, provisional first */
        struct dt_upkeep upkeep = fresh();
        json_t *ours = entry_at("a", 1, mine < 3, mine % 3 + 1), *theirs = json_array();
        assert_int_equal(dt_store_put(scratch, ours), DT_OK);
        json_array_append_new(theirs, entry_at("a", 2, its < 3, its % 3 + 1));
        json_array_append_new(theirs, entry_at("only theirs", 7, true, 1));
        assert_int_equal(dt_upkeep_take(scratch, theirs, "there", &upkeep), DT_OK);
        assert_int_equal(value_of("a"), its > mine ? 2 : 1);
        assert_int_equal(value_of("only theirs"), 7);
        assert_int_equal(upkeep.done + upkeep.notes, 2);
        assert_true(was_told(its >= 3 && mine < 3
                                 ? "from there: replaced: decided beats provisional"
                             : its > mine           ? "from there: replaced: newer"
                             : its < 3 && mine >= 3 ? "from there: not taken: it is provisional"
                                                    : "from there: not taken: ours is newer"));
        json_decref(ours);
        json_decref(theirs);
    }
}

/* Every entry of n, in a file that another program re-indented and sorted. */
static void exported_and_imported(void **state)
{
    (void)state;
    char model[32];
    struct dt_text text = {0};
    struct dt_upkeep upkeep = fresh();
    json_t *entries = NULL, *again = NULL, *root;
    json_error_t error;
    for (int i = 0; i < 20; i++) {
        json_t *entry = entry_at("x", i, i % 2 == 0, 1000 + i);
        snprintf(model, sizeof model, "m%d", i);
        json_object_set_new(json_object_get(entry, "key"), "model", json_string(model));
        json_object_set_new(entry, "later", json_pack("{s:f, s:[n]}", "x", 0.1 * i, "y"));
        assert_int_equal(dt_store_put(scratch, entry), DT_OK);
        json_decref(entry);
    }
    assert_int_equal(dt_upkeep_entries(scratch, &upkeep, &entries), DT_OK);
    assert_int_equal(dt_upkeep_export(entries, &text), DT_OK);
    root = json_loadb(text.bytes, text.size, JSON_REJECT_DUPLICATES, &error);
    assert_non_null(root);
    assert_int_equal(json_dump_file(root, at("file.json"), JSON_INDENT(3) | JSON_SORT_KEYS), 0);
    json_decref(root);
    dt_text_fini(&text);
    json_t *read = NULL;
    assert_int_equal(dt_upkeep_read(at("file.json"), &upkeep, &read), DT_OK);
    assert_int_equal(dt_upkeep_take(at("other"), read, "file.json", &upkeep), DT_OK);
    assert_int_equal(upkeep.done, 20);
    assert_int_equal(dt_upkeep_entries(at("other"), &upkeep, &again), DT_OK);
    assert_true(json_equal(entries, again));
    upkeep = fresh();
    assert_int_equal(dt_upkeep_take(at("other"), read, "file.json", &upkeep), DT_OK);
    assert_int_equal(upkeep.notes, 20); /* the same as ours */
    assert_int_equal(upkeep.done, 0);
    json_decref(again);
    /* imported entries are in a journal, where a rebuild finds them */
    unlink(at("other/best.json"));
    unlink(at("other/best.json.1"));
    upkeep = fresh();
    assert_int_equal(dt_upkeep_rebuild(at("other"), false, &upkeep), DT_OK);
    assert_int_equal(dt_upkeep_entries(at("other"), &upkeep, &again), DT_OK);
    assert_true(json_equal(entries, again));
    json_decref(again);
    json_decref(read);
    json_decref(entries);
}

static void strangers_are_checked(void **state)
{
    (void)state;
    static const char *const bad[] = {"{\"plan\":[]}",
                                      "{\"plan\":{\"ranks\":{}}}",
                                      "{\"plan\":{\"ranks\":null}}",
                                      "{\"verdict\":1}",
                                      "{\"provisional\":\"no\"}",
                                      "{\"figures\":[1]}",
                                      "{\"gain\":1.5}",
                                      "{\"top\":{}}",
                                      "{\"journal\":\"../../etc/passwd\"}",
                                      "{\"journal\":\".x\"}",
                                      "{\"journal\":\"a/b\"}",
                                      "{\"fingerprint\":{\"hard\":[]}}",
                                      "{\"key\":7}",
                                      "{\"crc\":\"00000000\"}",
                                      "{\"crc\":5}",
                                      "{\"checksum\":\"00000000\"}"};
    size_t n = sizeof bad / sizeof bad[0];
    json_error_t error;
    json_t *entries = json_array();
    struct dt_upkeep upkeep = fresh();
    for (size_t i = 0; i < n; i++) {
        json_t *entry = entry_at("a", 1, false, 1), *change = json_loads(bad[i], 0, &error);
        assert_non_null(change);
        json_object_update(entry, change);
        json_array_append_new(entries, entry);
        json_decref(change);
    }
    json_array_append_new(entries, json_string("no object"));
    json_array_append_new(entries, entry_at("good", 5, false, 1));
    assert_int_equal(dt_upkeep_take(scratch, entries, "there", &upkeep), DT_ECORRUPT);
    assert_int_equal(upkeep.broken, (int)n + 1);
    assert_int_equal(upkeep.done, 1);
    assert_int_equal(value_of("good"), 5);
    assert_int_equal(value_of("a"), -1);
    json_decref(entries);
}

/* Three entries, then damage: without a backup nothing is taken, and no session starts; with one,
 * the damage is reported. */
static void broken_stores_are_not_replaced_in_silence(void **state)
{
    (void)state;
    json_t *theirs = json_array();
    json_array_append_new(theirs, entry_at("theirs", 7, false, 1));
    for (int second = 0; second < 3; second++) { /* best.json.1: broken, not there, good */
        struct dt_upkeep upkeep = fresh();
        assert_int_equal(put("a", 1), DT_OK);
        assert_int_equal(put("b", 2), DT_OK);
        flip(at("best.json"), 200);
        if (second == 0)
            flip(at("best.json.1"), 200);
        else if (second == 1)
            unlink(at("best.json.1"));
        dt_status started = dt_store_check(scratch);
        assert_int_equal(dt_upkeep_take(scratch, theirs, "there", &upkeep), started);
        assert_int_equal(started, second < 2 ? DT_ECORRUPT : DT_OK);
        assert_int_equal(count_names(scratch, "best.json.bad-"), second == 2);
        if (second < 2) {
            assert_non_null(strstr(dt_message(), "dittune db rebuild"));
            assert_string_equal(dt_text_at(&told), "");
        } else {
            assert_true(was_told("best.json is damaged: its 'checksum' is not that of"));
            assert_true(was_told("what was stored after it is missing"));
            assert_int_equal(value_of("a"), 1);
            assert_int_equal(value_of("theirs"), 7);
        }
        scratch_remove(NULL);
        assert_int_equal(mkdir(scratch, 0755), 0);
    }
    json_decref(theirs);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(verify_names_what_is_broken),
        TEST(verify_names_two_of_a_key),
        TEST(verify_beside_gc),
        TEST(verify_names_two_of_a_key),
        TEST(merge_takes_the_better),
        TEST(exported_and_imported),
        TEST(strangers_are_checked),
        TEST(broken_stores_are_not_replaced_in_silence),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dt_text_fini(&told);
    return failed;
}
