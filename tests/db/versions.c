/* SPDX-License-Identifier: MIT */
/* ctest: slow */
/* Stores of other versions, with unknown fields, in other layouts, too large:
 * kept, read or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/best_int.h"
#include "db/journal.h"
#include "tests/db/scratch.h"

/* As Jansson writes 0.1 before 2.15, where it became the shortest text that
 * reads as the same number. */
#define TENTH "0.10000000000000001"

static void rewrite(const char *path, const char *from, const char *to)
{
    size_t size;
    char *text = read_file(path, &size);
    const char *found = strstr(text, from);
    if (found == NULL && strcmp(from, TENTH) == 0)
        found = strstr(text, from = "0.1");
    struct dt_text out = {0};
    assert_non_null(found);
    dt_text_add(&out, "%.*s%s%s", (int)(found - text), text, to, found + strlen(from));
    write_file(path, out.bytes, out.size);
    dt_text_fini(&out);
    free(text);
}

/* Gives the file, changed by hand, the checksum of its bytes again. */
static void reseal(const char *path)
{
    size_t size;
    char *text = read_file(path, &size), tail[32];
    snprintf(tail, sizeof tail, ",\"checksum\":\"%08x\"}\n", (unsigned)dt_crc32c(text, size - 24));
    memcpy(text + size - 24, tail, 24);
    write_file(path, text, size);
    free(text);
}

/* The file has exactly these bytes. */
static bool holds(const char *path, const char *bytes)
{
    size_t size;
    char *text = read_file(path, &size);
    bool found = strstr(text, bytes) != NULL;
    free(text);
    return found;
}

/* Header, footer and other entries are copied byte for byte, spaces and spellings
 * of numbers included. */
static void unknown_fields_are_kept(void **state)
{
    (void)state;
    json_t *entry = make_entry("a", 1), *found = NULL, *root = NULL;
    json_object_set_new(entry, "later", json_pack("[i, {s:n}]", 7, "x"));
    assert_int_equal(dt_store_put(scratch, entry), DT_OK);
    rewrite(at("best.json"), "\"compat\":[],", "\"compat\":[], \"note\" : {\"by\":\"hand\"} ,");
    rewrite(at("best.json"), TENTH, "0.1, \"more\" : 1.50e0 ");
    rewrite(at("best.json"), "],\"checksum\"", "], \"after\":[1e1],\"checksum\"");
    reseal(at("best.json"));
    for (int i = 0; i < 3; i++)
        assert_int_equal(put("b", i), DT_OK);
    assert_true(holds(at("best.json"), "[], \"note\" : {\"by\":\"hand\"} ,\"entries\":[\n{\"id\""));
    assert_true(holds(at("best.json"),
                      "\"gain\":{\"ratio\":0.1, \"more\" : 1.50e0 },\"later\":[7,{\"x\":null}]"));
    assert_true(holds(at("best.json"), "}\n], \"after\":[1e1],\"checksum\":\""));
    json_object_set_new(json_object_get(entry, "gain"), "more", json_real(1.5));
    assert_int_equal(get("a", &found), DT_OK);
    assert_true(same_entry(found, entry));
    assert_int_equal(dt_json_read(at("best.json"), "the store", &root), DT_OK);
    assert_int_equal(json_array_size(json_object_get(root, "entries")), 2);
    json_decref(root);
    json_decref(found);
    json_decref(entry);
}

/* It is one line an entry: whoever re-indents it has damaged it. */
static void spelling_matters(void **state)
{
    (void)state;
    json_t *root = NULL;
    assert_int_equal(put("a", 1), DT_OK);
    assert_int_equal(dt_json_read(at("best.json"), "the store", &root), DT_OK);
    assert_int_equal(json_dump_file(root, at("best.json"), JSON_INDENT(4)), 0);
    json_decref(root);
    assert_int_equal(value_of("a"), DT_ECORRUPT - 1);
    assert_non_null(strstr(dt_message(), "dittune db rebuild"));
}

/* The bytes before and after, to see that a refused write changed nothing. */
static void refused(dt_status expected, const char *sentence)
{
    size_t before, after;
    char *old = read_file(at("best.json"), &before);
    assert_int_equal(put("c", 3), expected);
    assert_non_null(strstr(dt_message(), sentence));
    char *new = read_file(at("best.json"), &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, new, before);
    assert_int_equal(dt_store_check(scratch), expected);
    assert_non_null(strstr(dt_message(), sentence));
    assert_int_equal(count_names(scratch, "best.json.bad"), 0);
    assert_int_equal(count_names(scratch, ".dittune"), 0);
    free(old);
    free(new);
}

/* No release wrote it: damaged, whatever its checksum. */
static void an_older_major_is_damaged(void **state)
{
    (void)state;
    assert_int_equal(put("a", 1), DT_OK);
    rewrite(at("best.json"), "\"major\":2", "\"major\":1");
    reseal(at("best.json"));
    assert_int_equal(value_of("a"), DT_ECORRUPT - 1);
    assert_non_null(strstr(dt_message(), "'major' is 1"));
    assert_non_null(strstr(dt_message(), "dittune db rebuild"));
}

static void newer_minor_is_read_only(void **state)
{
    (void)state;
    assert_int_equal(put("a", 1), DT_OK);
    rewrite(at("best.json"), "\"minor\":0", "\"minor\":1");
    reseal(at("best.json"));
    assert_int_equal(value_of("a"), 1);
    refused(DT_ECORRUPT, "written by a newer dittune");
}

static void unknown_compat_is_read_only(void **state)
{
    (void)state;
    assert_int_equal(put("a", 1), DT_OK);
    rewrite(at("best.json"), "\"compat\":[]", "\"compat\":[\"colour\"]");
    reseal(at("best.json"));
    assert_int_equal(value_of("a"), 1);
    refused(DT_ECORRUPT, "written by a newer dittune");
}

/* With a best.json.1 it must not fall back to, and with whatever else that version may do. */
static void newer_major_is_refused(void **state)
{
    (void)state;
    assert_int_equal(put("a", 1), DT_OK);
    assert_int_equal(put("a", 2), DT_OK);
    rewrite(at("best.json"), "\"major\":2", "\"major\":3");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(value_of("a"), DT_ECORRUPT - 1);
        assert_non_null(strstr(dt_message(), "written by a newer dittune"));
        refused(DT_ECORRUPT, "written by a newer dittune");
        if (i == 0)
            reseal(at("best.json"));
        else if (i == 1)
            rewrite(at("best.json"), "\"entries\":[", "\"packed\":\"");
    }
}

static void unknown_incompat_is_refused(void **state)
{
    (void)state;
    assert_int_equal(put("a", 1), DT_OK);
    rewrite(at("best.json"), "\"incompat\":[]", "\"incompat\":[\"zip\"]");
    assert_int_equal(value_of("a"), DT_ECORRUPT - 1);
    refused(DT_ECORRUPT, "written by a newer dittune");
    reseal(at("best.json"));
    assert_int_equal(value_of("a"), DT_ECORRUPT - 1);
    refused(DT_ECORRUPT, "written by a newer dittune");
}

/* 64 MiB is the most a reader takes: the file that would be larger is refused
 * before it is written. */
static void too_large_is_refused(void **state)
{
    (void)state;
    struct dt_best empty = {.state = DT_BEST_ABSENT}, full = {.state = DT_BEST_ABSENT};
    size_t size = 15 * 1024 * 1024;
    char *large = calloc(1, size + 1);
    assert_non_null(large);
    memset(large, 'x', size);
    json_t *entries = json_array(), *value = json_string(large);
    free(large);
    for (int i = 0; i < 5; i++) {
        json_t *entry = make_entry((const char *[]){"a", "b", "c", "d", "e"}[i], i);
        json_object_set(entry, "long", value);
        json_array_append_new(entries, entry);
    }
    assert_int_equal(dt_best_put(&empty, entries, &full.text), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "the new best.json is 786"));
    dt_text_clear(&full.text);
    json_array_remove(entries, 4);
    assert_int_equal(dt_best_put(&empty, entries, &full.text), DT_OK);
    assert_int_equal(dt_best_parse("the file", &full), DT_OK);
    assert_int_equal(full.state, DT_BEST_GOOD);
    assert_int_equal(full.count, 4);
    dt_best_fini(&full);
    json_decref(entries);
    json_decref(value);
}

/* Of entries that would make the file too long the largest lose their spaces, no more than needed;
 * the lines that are there stay. */
static void spaces_make_room(void **state)
{
    static const size_t mebibytes[] = {15, 15, 15, 12, 2, 13, 3}; /* 57 are there, 18 come */
    (void)state;
    struct dt_best best = {.state = DT_BEST_ABSENT};
    struct dt_text next = {0};
    json_t *old = json_array(), *more = json_array();
    for (int i = 0; i < 7; i++) {
        size_t size = mebibytes[i] * 1024 * 1024;
        char *large = calloc(1, size + 1);
        assert_non_null(large);
        memset(large, 'x', size);
        json_t *entry = make_entry((const char *[]){"a", "b", "c", "d", "e", "f", "g"}[i], i);
        json_object_set_new(entry, "space", json_pack("{s:s}", "doc", large));
        json_array_append_new(i < 4 ? old : more, entry);
        free(large);
    }
    assert_int_equal(dt_best_put(&best, old, &best.text), DT_OK);
    assert_int_equal(dt_best_parse("the file", &best), DT_OK);
    assert_int_equal(dt_best_put(&best, more, &next), DT_OK);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(dt_json_has(json_array_get(more, i), "space"), mebibytes[4 + i] < 13);
    assert_in_range(next.size, 62 << 20, (62 << 20) + 8192);
    dt_text_fini(&next);
    dt_best_fini(&best);
    json_decref(old);
    json_decref(more);
}

static void too_many_are_refused(void **state)
{
    (void)state;
    struct dt_best empty = {.state = DT_BEST_ABSENT}, full = {.state = DT_BEST_ABSENT};
    json_t *entries = json_array(), *one = json_array();
    char model[32];
    for (int i = 0; i < DT_BEST_MAX_ENTRIES; i++) {
        snprintf(model, sizeof model, "m%d", i);
        json_array_append_new(entries, make_entry(model, i));
    }
    assert_int_equal(dt_best_put(&empty, entries, &full.text), DT_OK);
    assert_int_equal(dt_best_parse("the file", &full), DT_OK);
    assert_int_equal(full.count, DT_BEST_MAX_ENTRIES);
    json_array_append_new(one, make_entry("m7", 1));
    struct dt_text text = {0};
    assert_int_equal(dt_best_put(&full, one, &text), DT_OK);
    json_array_append_new(one, make_entry("new", 1));
    dt_text_clear(&text);
    assert_int_equal(dt_best_put(&full, one, &text), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "more than the 65536 entries"));
    dt_text_fini(&text);
    dt_best_fini(&full);
    json_decref(entries);
    json_decref(one);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unknown_fields_are_kept),
        TEST(spelling_matters),
        TEST(an_older_major_is_damaged),
        TEST(newer_minor_is_read_only),
        TEST(unknown_compat_is_read_only),
        TEST(newer_major_is_refused),
        TEST(unknown_incompat_is_refused),
        TEST(too_large_is_refused),
        TEST(spaces_make_room),
        TEST(too_many_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
