/* SPDX-License-Identifier: MIT */
/* Every guard and every sentence of base/json. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void refuse(const char *text, size_t size, const char *sentence)
{
    json_t *root = (json_t *)0x1;
    assert_int_equal(dt_json_parse(text, size, "the file", &root), DT_EUSAGE);
    if (strstr(dt_message(), sentence) == NULL)
        fail_msg("'%s' does not say '%s'", dt_message(), sentence);
    assert_ptr_equal(root, (json_t *)0x1);
}

static void refuses_text_that_is_not_json(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"", "the file is not valid JSON: line 1"},
        {"{", "line 1, column 1"},
        {"{\"a\":1,\n \"b\":}", "line 2, column 6"},
        {"{\"a\":1,\"a\":2}", "duplicate object key"},
        {"[1] 2", "end of file expected"},
        {"[1,]", "is not valid JSON"},
        {"[NaN]", "is not valid JSON"},
        {"[1e400]", "real number overflow"},
        {"[9223372036854775808]", "too big integer"},
        {"[\"\\u0000\"]", "is not valid JSON"},
        {"[\"\\ud800\"]", "is not valid JSON"},
        {"[\"\xff\"]", "is not valid JSON"},
        {"\xef\xbb\xbf[]", "is not valid JSON"},
        {"[\"a", "is not valid JSON"},
        {"[\"\\", "is not valid JSON"},
        {"]]]]", "is not valid JSON"},
        {"// remark\n{}", "is not valid JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuse(cases[i].text, strlen(cases[i].text), cases[i].sentence);
    refuse("[1,\0 2]", 7, "has a NUL byte at offset 3");
}

/* n times open, then n times close. */
static char *nested(size_t n, char open, char close)
{
    char *text = malloc(2 * n);
    assert_non_null(text);
    memset(text, open, n);
    memset(text + n, close, n);
    return text;
}

static void limits_the_depth(void **state)
{
    (void)state;
    json_t *root = NULL;
    char *text = nested(32, '[', ']');
    assert_int_equal(dt_json_parse(text, 64, "the file", &root), DT_OK);
    json_decref(root);
    free(text);
    text = nested(33, '[', ']');
    refuse(text, 66, "the file is nested deeper than 32 levels");
    free(text);
    text = nested(1000000, '{', '}');
    refuse(text, 2000000, "nested deeper than 32 levels");
    free(text);
    /* brackets in a string are no levels, also after an escaped quote */
    const char *quoted = "[\"[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[[[[[[[[[[[[[[[[\"]";
    assert_int_equal(dt_json_parse(quoted, strlen(quoted), "the file", &root), DT_OK);
    json_decref(root);
    const char *flat = "[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],"
                       "[],[],[],[],[],[],[],[],[],[],[],[],[],[]]";
    assert_int_equal(dt_json_parse(flat, strlen(flat), "the file", &root), DT_OK);
    json_decref(root);
}

static char path[64];

static int make_path(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/dittune-test-XXXXXX");
    int fd = mkstemp(path);
    return fd >= 0 ? close(fd) : -1;
}

static int remove_path(void **state)
{
    (void)state;
    return remove(path);
}

static void cannot_read(const char *name, dt_status expected, const char *sentence)
{
    json_t *root = NULL;
    assert_int_equal(dt_json_read(name, "the model file", &root), expected);
    assert_non_null(strstr(dt_message(), "the model file"));
    assert_non_null(strstr(dt_message(), name));
    assert_non_null(strstr(dt_message(), sentence));
    assert_null(root);
}

static void refuses_unreadable_files(void **state)
{
    (void)state;
    json_t *root = NULL;
    cannot_read("/none/such", DT_EIO, "No such file or directory");
    cannot_read("/tmp", DT_EIO, "not a regular file");
    cannot_read("/dev/zero", DT_EIO, "not a regular file");
    cannot_read(path, DT_EUSAGE, "line 1, column 0");
    assert_int_equal(remove(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    cannot_read(path, DT_EIO, "not a regular file"); /* and it does not wait for a writer */
    assert_int_equal(remove(path), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"a\":[1,2.5,true,null,\"x\"]}", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(dt_json_read(path, "the model file", &root), DT_OK);
    struct dt_text text = {0};
    assert_int_equal(dt_json_text(root, &text), DT_OK);
    assert_string_equal(dt_text_at(&text), "{\"a\":[1,2.5,true,null,\"x\"]}");
    dt_text_fini(&text);
    json_decref(root);
}

/* [ and ] with blanks between: a legal file of any size. */
static void write_blanks(size_t size)
{
    char *text = malloc(size);
    FILE *file = fopen(path, "w");
    assert_true(text != NULL && file != NULL);
    memset(text, ' ', size);
    text[0] = '[';
    text[size - 1] = ']';
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    free(text);
}

static void limits_the_size(void **state)
{
    (void)state;
    json_t *root = NULL;
    write_blanks(DT_JSON_MAX_BYTES);
    assert_int_equal(dt_json_read(path, "the model file", &root), DT_OK);
    json_decref(root);
    write_blanks(DT_JSON_MAX_BYTES + 1);
    cannot_read(path, DT_EUSAGE, "larger than the 16777216 bytes allowed");
    refuse(path, DT_JSON_MAX_BYTES + 1, "is 16777217 bytes long, more than the 16777216 allowed");
}

#define EXPECT(call, sentence)                                                                     \
    do {                                                                                           \
        assert_int_equal(call, DT_EUSAGE);                                                         \
        assert_string_equal(dt_message(), sentence);                                               \
    } while (0)

static void reads_fields(void **state)
{
    (void)state;
    int64_t number = 5;
    double real = 5;
    bool flag = true;
    const char *string = NULL;
    json_t *array = NULL, *object = NULL;
    json_t *o = json_pack("{s:i, s:f, s:b, s:s, s:[i], s:{}}", "i", -3, "f", 2.5, "b", 0, "s",
                          "text", "a", 1, "o");
    assert_int_equal(dt_json_int(o, "x", "i", -3, -3, &number), DT_OK);
    assert_int_equal(number, -3);
    assert_int_equal(dt_json_real(o, "x", "f", &real), DT_OK);
    assert_true(real == 2.5);
    assert_int_equal(dt_json_real(o, "x", "i", &real), DT_OK);
    assert_true(real == -3);
    assert_int_equal(dt_json_bool(o, "x", "b", &flag), DT_OK);
    assert_false(flag);
    assert_int_equal(dt_json_string(o, "x", "s", &string), DT_OK);
    assert_string_equal(string, "text");
    assert_int_equal(dt_json_array(o, "x", "a", &array), DT_OK);
    assert_ptr_equal(array, json_object_get(o, "a"));
    assert_int_equal(dt_json_object(o, "x", "o", &object), DT_OK);
    assert_ptr_equal(object, json_object_get(o, "o"));
    assert_true(dt_json_has(o, "i"));
    assert_false(dt_json_has(o, "none"));
    assert_false(dt_json_has(array, "i"));
    json_decref(o);
}

static void names_a_wrong_field(void **state)
{
    (void)state;
    int64_t number = 5;
    double real = 5;
    bool flag = true;
    const char *string = "kept";
    json_t *part = NULL;
    json_t *o = json_pack("{s:i, s:f, s:s, s:n}", "i", -3, "f", 2.0, "s", "1", "n");
    EXPECT(dt_json_int(o, "the file", "i", 1, 4096, &number),
           "the file: 'i' is -3, expected 1 to 4096");
    EXPECT(dt_json_int(o, "the file", "f", 1, 9, &number), "the file: 'f' is not an integer");
    EXPECT(dt_json_int(o, "the file", "s", 1, 9, &number), "the file: 's' is not an integer");
    EXPECT(dt_json_int(o, "the file", "none", 1, 9, &number), "the file: 'none' is missing");
    EXPECT(dt_json_real(o, "the file", "s", &real), "the file: 's' is not a number");
    EXPECT(dt_json_bool(o, "the file", "i", &flag), "the file: 'i' is neither true nor false");
    EXPECT(dt_json_string(o, "the file", "n", &string), "the file: 'n' is not a string");
    EXPECT(dt_json_array(o, "the file", "i", &part), "the file: 'i' is not an array");
    EXPECT(dt_json_object(o, "the file", "i", &part), "the file: 'i' is not an object");
    json_t *array = json_array();
    EXPECT(dt_json_string(array, "the file", "n", &string), "the file is not a JSON object");
    EXPECT(dt_json_string(NULL, "the file", "n", &string), "the file is not a JSON object");
    assert_int_equal(number, 5);
    assert_true(real == 5 && flag && part == NULL);
    assert_string_equal(string, "kept");
    json_decref(array);
    json_decref(o);
}

static const char *const known[] = {"hidden", "heads", "depth", "patch", NULL};

static void refuses_unknown_fields(void **state)
{
    (void)state;
    json_t *good = json_pack("{s:i, s:i}", "heads", 1, "patch", 2);
    json_t *near = json_pack("{s:i}", "haeds", 1), *far = json_pack("{s:i}", "colour", 1);
    json_t *array = json_array();
    assert_int_equal(dt_json_only(good, "the file", known), DT_OK);
    EXPECT(dt_json_only(near, "the file", known),
           "the file: unknown field 'haeds', did you mean 'heads'?");
    EXPECT(dt_json_only(far, "the file", known), "the file: unknown field 'colour'");
    EXPECT(dt_json_only(array, "the file", known), "the file is not a JSON object");
    json_decref(good);
    json_decref(near);
    json_decref(far);
    json_decref(array);
}

static void finds_the_nearest_name(void **state)
{
    (void)state;
    char endless[200];
    memset(endless, 'h', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_string_equal(dt_json_nearest("hiden", known), "hidden");
    assert_string_equal(dt_json_nearest("head", known), "heads");
    assert_string_equal(dt_json_nearest("dept", known), "depth");
    assert_string_equal(dt_json_nearest("patches", known), "patch");
    assert_string_equal(dt_json_nearest("HID", known), "hidden"); /* a word begins with it */
    assert_null(dt_json_nearest("zzzzzz", known));
    assert_null(dt_json_nearest(endless, known));
}

static void writes_no_text_of_null(void **state)
{
    (void)state;
    struct dt_text text = {0};
    assert_int_equal(dt_json_text(NULL, &text), DT_ENOMEM);
    json_t *scalar = json_string("a\n\"");
    assert_int_equal(dt_json_text(scalar, &text), DT_OK);
    assert_string_equal(dt_text_at(&text), "\"a\\n\\\"\"");
    json_decref(scalar);
    dt_text_fini(&text);
}

static void gives_a_text_or_an_empty_one(void **state)
{
    json_t *object = json_pack("{s:s, s:i, s:n}", "text", "a", "number", 1, "null");
    (void)state;
    assert_string_equal(dt_json_text_at(object, "text"), "a");
    assert_string_equal(dt_json_text_at(object, "number"), "");
    assert_string_equal(dt_json_text_at(object, "null"), "");
    assert_string_equal(dt_json_text_at(object, "missing"), "");
    assert_string_equal(dt_json_text_at(NULL, "text"), "");
    json_decref(object);
}

static void writes_what_is_no_number_as_null(void **state)
{
    const double numbers[] = {0, -1.5, NAN, INFINITY, -INFINITY};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        json_t *value = dt_json_number(numbers[i]);
        assert_true(i < 2 ? json_real_value(value) == numbers[i] : json_is_null(value));
        json_decref(value);
    }
}

static void writes_a_list_of_integers(void **state)
{
    const int values[] = {3, 0, -7};
    json_t *list = dt_json_ints(values, 3), *none = dt_json_ints(NULL, 3);
    (void)state;
    assert_int_equal(json_array_size(list), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(json_integer_value(json_array_get(list, i)), values[i]);
    assert_true(json_is_array(none) && json_array_size(none) == 0);
    json_decref(list);
    json_decref(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_text_that_is_not_json),
        cmocka_unit_test(limits_the_depth),
        cmocka_unit_test_setup_teardown(refuses_unreadable_files, make_path, remove_path),
        cmocka_unit_test_setup_teardown(limits_the_size, make_path, remove_path),
        cmocka_unit_test(reads_fields),
        cmocka_unit_test(names_a_wrong_field),
        cmocka_unit_test(refuses_unknown_fields),
        cmocka_unit_test(finds_the_nearest_name),
        cmocka_unit_test(writes_no_text_of_null),
        cmocka_unit_test(gives_a_text_or_an_empty_one),
        cmocka_unit_test(writes_what_is_no_number_as_null),
        cmocka_unit_test(writes_a_list_of_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
