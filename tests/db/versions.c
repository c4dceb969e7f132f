/* SPDX-License-Identifier: MIT */
/* Stores of other versions, with fields nobody knows, spelt otherwise, too large: kept, read or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/db/scratch.h"

static void rewrite(const char *path, const char *from, const char *to)
{
    size_t size;
    char *text = read_file(path, &size);
    const char *found = strstr(text, from);
    struct dt_text out = {0};
    assert_non_null(found);
    dt_text_add(&out, "%.*s%s%s", (int)(found - text), text, to, found + strlen(from));
    write_file(path, out.bytes, out.size);
    dt_text_fini(&out);
    free(text);
}

static void unknown_fields_are_kept(void **state)
{
    (void)state;
    json_t *entry = make_entry("a", 1), *found = NULL, *root = NULL;
    json_object_set_new(entry, "later", json_pack("[i, {s:n}]", 7, "x"));
    assert_int_equal(dt_store_put(scratch, entry), DT_OK);
    rewrite(at("best.json"), "\"compat\":[],", "\"compat\":[],\"note\":{\"by\":\"hand\"},");
    assert_int_equal(put("b", 2), DT_OK);
    assert_int_equal(get("a", &found), DT_OK);
    assert_true(json_equal(found, entry));
    assert_int_equal(dt_json_read(at("best.json"), "the store", &root), DT_OK);
    assert_string_equal(json_string_value(json_object_get(json_object_get(root, "note"), "by")),
                        "hand");
    json_decref(root);
    json_decref(found);
    json_decref(entry);
}

/* A person may re-indent the file, or another JSON library write its numbers: the checksum is of values. */
static void spelling_does_not_matter(void **state)
{
    (void)state;
    json_t *root = NULL;
    assert_int_equal(put("a", 1), DT_OK);
    rewrite(at("best.json"), "0.10000000000000001", "0.1");
    assert_int_equal(value_of("a"), 1);
    assert_int_equal(dt_json_read(at("best.json"), "the store", &root), DT_OK);
    assert_int_equal(json_dump_file(root, at("best.json"), JSON_INDENT(4) | JSON_SORT_KEYS), 0);
    json_decref(root);
    assert_int_equal(put("b", 2), DT_OK);
    assert_int_equal(value_of("a"), 1);
    assert_int_equal(count_names(scratch, "best.json.bad"), 0);
}

/* The bytes before and after, to see that a refused write changed nothing. */
static void refused(dt_status expected, const char *sentence)
{
    size_t before, after;
    char *old = read_file(at("best.json"), &before);
    assert_int_equal(put("b", 2), expected);
    assert_non_null(strstr(dt_message(), sentence));
    char *new = read_file(at("best.json"), &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, new, before);
    assert_int_equal(count_names(scratch, "best.json.bad"), 0);
    assert_int_equal(count_names(scratch, ".dittune"), 0);
    free(old);
    free(new);
}

static void newer_minor_is_read_only(void **state)
{
    (void)state;
    assert_int_equal(put("a", 1), DT_OK);
    rewrite(at("best.json"), "\"minor\":0", "\"minor\":1");
    assert_int_equal(value_of("a"), 1);
    refused(DT_ECORRUPT, "written by a newer dittune");
    assert_int_equal(dt_store_check(scratch), DT_ECORRUPT);
}

static void unknown_compat_is_read_only(void **state)
{
    (void)state;
    assert_int_equal(put("a", 1), DT_OK);
    rewrite(at("best.json"), "\"compat\":[]", "\"compat\":[\"colour\"]");
    assert_int_equal(value_of("a"), 1);
    refused(DT_ECORRUPT, "written by a newer dittune");
}

static void newer_major_is_refused(void **state)
{
    (void)state;
    assert_int_equal(put("a", 1), DT_OK);
    assert_int_equal(put("a", 2),
                     DT_OK); /* so that there is a best.json.1 it must not fall back to */
    rewrite(at("best.json"), "\"major\":1", "\"major\":2");
    assert_int_equal(value_of("a"), DT_ECORRUPT - 1);
    assert_non_null(strstr(dt_message(), "written by a newer dittune"));
    refused(DT_ECORRUPT, "written by a newer dittune");
}

static void unknown_incompat_is_refused(void **state)
{
    (void)state;
    assert_int_equal(put("a", 1), DT_OK);
    rewrite(at("best.json"), "\"incompat\":[]", "\"incompat\":[\"zip\"]");
    assert_int_equal(value_of("a"), DT_ECORRUPT - 1);
    refused(DT_ECORRUPT, "written by a newer dittune");
}

/* 16 MiB is the most a reader takes: the entry that would cross it is refused, the store stays as it was. */
static void too_large_is_refused(void **state)
{
    (void)state;
    size_t size = 9 * 1024 * 1024;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, 'x', size);
    for (int i = 0; i < 2; i++) {
        json_t *entry = make_entry(i == 0 ? "a" : "b", i);
        json_object_set_new(entry, "long", json_stringn(text, size));
        assert_int_equal(dt_store_put(scratch, entry), i == 0 ? DT_OK : DT_EUSAGE);
        json_decref(entry);
    }
    assert_non_null(strstr(dt_message(), "the new best.json is"));
    free(text);
    assert_int_equal(value_of("a"), 0);
    assert_int_equal(value_of("b"), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unknown_fields_are_kept),  TEST(spelling_does_not_matter),
        TEST(newer_minor_is_read_only), TEST(unknown_compat_is_read_only),
        TEST(newer_major_is_refused),   TEST(unknown_incompat_is_refused),
        TEST(too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
