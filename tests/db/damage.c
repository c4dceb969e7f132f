/* SPDX-License-Identifier: MIT */
/* best.json of about 2 kB, truncated at every byte and with every bit flipped (in the thin
 * dose at every fifth, which are bits of each position): each version is refused, even if it
 * had the same meaning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/db/scratch.h"
#include "tests/lib/dose.h"

static size_t step(void)
{
    return dose_thin() ? 5 : 1;
}

/* The entry of model "a" is read exactly as it was put with that value. */
static bool exactly(int64_t value)
{
    json_t *found = NULL, *expected = make_entry("a", value);
    bool same = get("a", &found) == DT_OK && same_entry(found, expected);
    json_decref(found);
    json_decref(expected);
    return same;
}

/* "a" with the value 2, before that 1, among entries that make it about 2 kB. */
static char *two_versions(size_t *size)
{
    char model[32];
    for (int i = 0; i < 7; i++) {
        snprintf(model, sizeof model, "other-%d", i);
        assert_int_equal(put(model, i), DT_OK);
    }
    assert_int_equal(put("a", 1), DT_OK);
    assert_int_equal(put("a", 2), DT_OK);
    char *bytes = read_file(at("best.json"), size);
    assert_in_range(*size, 1800, 2500);
    return bytes;
}

static void cut_anywhere(void **state)
{
    (void)state;
    size_t size;
    char *bytes = two_versions(&size);
    for (size_t cut = 0; cut < size; cut += step()) {
        write_file(at("best.json"), bytes, cut);
        assert_true(exactly(1));
    }
    write_file(at("best.json"), bytes, size);
    assert_true(exactly(2));
    unlink(at("best.json.1"));
    for (size_t cut = 0; cut < size; cut += step()) {
        write_file(at("best.json"), bytes, cut);
        assert_int_equal(value_of("a"), DT_ECORRUPT - 1);
    }
    free(bytes);
}

static void write_flipped(const char *bytes, size_t size, size_t bit)
{
    char *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << (bit % 8)));
    write_file(at("best.json"), copy, size);
    free(copy);
}

static void every_bit(void **state)
{
    (void)state;
    size_t size;
    char *bytes = two_versions(&size);
    unlink(at("best.json.1"));
    for (size_t bit = 0; bit < 8 * size; bit += step()) {
        json_t *found = NULL;
        write_flipped(bytes, size, bit);
        assert_int_equal(get("a", &found), DT_ECORRUPT);
        assert_null(found);
        if (bit % 335 == 0)
            assert_int_equal(dt_store_check(scratch), DT_ECORRUPT);
    }
    free(bytes);
}

/* With the version before beside it, its answer is given; not when the file may
 * be a newer version's. */
static void every_byte_falls_back(void **state)
{
    (void)state;
    size_t size;
    int fallen = 0, newer = 0, tried = 0;
    char *bytes = two_versions(&size);
    for (size_t bit = 0; bit < 8 * size; bit += 7 * step()) {
        json_t *found = NULL;
        write_flipped(bytes, size, bit);
        dt_status status = get("a", &found);
        tried++;
        newer += status == DT_ECORRUPT;
        assert_true(status == DT_ECORRUPT || status == DT_OK);
        if (status == DT_ECORRUPT)
            assert_non_null(strstr(dt_message(), "written by a newer dittune"));
        json_decref(found);
        fallen += status == DT_OK && exactly(1);
    }
    assert_int_equal(fallen + newer, tried);
    assert_in_range(newer, 0, 12); /* the digits of the major version, the brackets of incompat */
    free(bytes);
}

/* The next writer after any single cut: the version before is the base, the broken one is kept. */
static void writer_recovers(void **state)
{
    (void)state;
    size_t size;
    assert_int_equal(put("old", 1), DT_OK);
    char *bytes = two_versions(&size);
    char *before;
    size_t before_size;
    before = read_file(at("best.json.1"), &before_size);
    for (size_t cut = 0; cut < size; cut += 41 * step()) {
        unlink(at("best.json.1"));
        write_file(at("best.json.1"), before, before_size);
        unlink(at("best.json"));
        write_file(at("best.json"), bytes, cut);
        int bad = count_names(scratch, "best.json.bad-");
        assert_int_equal(put("new", 7), DT_OK);
        assert_int_equal(value_of("old"), 1);
        assert_int_equal(value_of("a"), 1);
        assert_int_equal(value_of("new"), 7);
        assert_int_equal(count_names(scratch, "best.json.bad-"), bad + 1);
        assert_int_equal(count_names(scratch, ".dittune"), 0);
    }
    free(before);
    free(bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(cut_anywhere), TEST(every_bit),
                                       TEST(every_byte_falls_back), TEST(writer_recovers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
