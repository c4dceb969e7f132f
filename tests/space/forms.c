/* SPDX-License-Identifier: MIT */
/* ctest: dose */
/* The ways to write a space down: each is the same space as its plain form, and what is wrong with
 * one, or too much, is one sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "space/json/json.h"
#include "space/space.h"
#include "tests/lib/dose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dt_status read_text(const char *text, struct dt_space **space)
{
    json_t *root = NULL;
    if (dt_json_parse(text, strlen(text), "the file", &root) != DT_OK)
        fail_msg("%s", dt_message());
    dt_status status = dt_space_from_json(root, "the file", space);
    json_decref(root);
    return status;
}

#define RULE "\"rules\": [\"a * b <= 24\"]"

static const char plain[] =
    "{\"parameters\": [{\"name\": \"a\", \"values\": [2, 4, 8, 16], \"default\": 4},"
    "{\"name\": \"b\", \"values\": [1, 4, 7, 10]},"
    "{\"name\": \"kind\", \"values\": [\"x\", \"y\"]}], " RULE "}";

static const char *const same[] = {
    "{\"parameters\": {\"a\": {\"values\": [16, 8, 4, 2], \"default\": 4}, \"b\": [1, 4, 7, 10],"
    "\"kind\": [\"x\", \"y\"]}, " RULE "}",
    "{\"parameters\": {\"a\": {\"values\": {\"from\": 2, \"to\": 16, \"factor\": 2}, \"default\": "
    "4},"
    "\"b\": {\"from\": 1, \"to\": 12, \"step\": 3}, \"kind\": [\"x\", \"y\"]}, " RULE "}",
    "{\"parameters\": [{\"name\": \"a\", \"values\": {\"from\": 2, \"to\": 31, \"factor\": 2},"
    "\"default\": 4}, {\"name\": \"b\", \"values\": {\"from\": 1, \"to\": 10, \"step\": 3}},"
    "{\"name\": \"kind\", \"values\": [\"x\", \"y\"]}], \"name\": \"any\", \"cartesian\": 32,"
    "\"valid\": 16, \"comment\": \"none of our business\", \"constants\": {\"most\": 24},"
    "\"rules\": [{\"if\": \"a * b <= most\"}]}",
};

static void equivalent_forms_give_one_space(void **state)
{
    struct dt_space *space = NULL;
    assert_int_equal(read_text(plain, &space), DT_OK);
    json_t *axes = dt_space_axes_json(space);
    int64_t count = dt_space_count(space);
    (void)state;
    dt_space_free(space);
    assert_int_equal(count, 16);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        if (read_text(same[i], &space) != DT_OK)
            fail_msg("%s: %s", same[i], dt_message());
        json_t *others = dt_space_axes_json(space);
        assert_true(json_equal(axes, others));
        assert_int_equal(dt_space_count(space), count);
        json_decref(others);
        dt_space_free(space);
    }
    json_decref(axes);
}

#define RANGE(text) "{\"parameters\": {\"a\": {" text "}}}"
#define WITH(text)  "{\"parameters\": {\"a\": [1, 2]}, " text "}"

static const struct {
    const char *text, *says;
} bad[] = {
    {RANGE("\"from\": 1"), "'to'"},
    {RANGE("\"to\": 1"), "'from'"},
    {RANGE("\"from\": 4, \"to\": 1"), "parameter 'a'"},
    {RANGE("\"from\": 1, \"to\": 4, \"step\": 0"), "'step' is 0"},
    {RANGE("\"from\": 1, \"to\": 4, \"factor\": 1"), "'factor' is 1"},
    {RANGE("\"from\": 0, \"to\": 4, \"factor\": 2"), "'from' is 0"},
    {RANGE("\"from\": 1, \"to\": 4, \"step\": 1, \"factor\": 2"), "not both"},
    {RANGE("\"from\": 1, \"to\": 9223372036854775807"), "more than 4096 values"},
    {RANGE("\"from\": 1, \"to\": 4, \"stop\": 2"), "stop"},
    {RANGE("\"from\": 1.5, \"to\": 4"), "a range of decimals has a 'step'"},
    {RANGE("\"from\": 1.5, \"to\": 4, \"step\": 0"), "'step' is too small"},
    {RANGE("\"from\": 1.5, \"to\": 0.5, \"step\": 0.1"), "'to' is too small"},
    {RANGE("\"values\": 3"), "neither a list nor a range"},
    {"{\"parameters\": {\"a\": 3}}", "neither a list nor a range"},
    {"{\"parameters\": {}}", "nothing to tune"},
    {"{\"parameters\": {\"a b\": [1]}}", "'a b' is not a name"},
    {WITH("\"cartesian\": 3"), "'cartesian' is 3, but the values make 2 plans"},
    {WITH("\"valid\": 1"), "'valid' is 1, but the rules allow 2 plans"},
    {WITH("\"rules\": [\"a / 0 == 1\"], \"valid\": 1"), "'valid' is 1, but the rules allow 0"},
};

static void refuses_each_mistake(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dt_space *space = NULL;
        assert_int_equal(read_text(bad[i].text, &space), DT_EUSAGE);
        assert_null(space);
        if (strstr(dt_message(), bad[i].says) == NULL ||
            strncmp(dt_message(), "the file", 8) != 0 || strchr(dt_message(), '\n') != NULL)
            fail_msg("%s says: %s", bad[i].text, dt_message());
    }
}

/* The ends of 64 bits are values like others. */
static void reads_64_bit_values(void **state)
{
    struct dt_space *space = NULL;
    (void)state;
    assert_int_equal(read_text(RANGE("\"from\": -9223372036854775808, \"to\": 9223372036854775807,"
                                     "\"step\": 9223372036854775807"),
                               &space),
                     DT_OK);
    assert_int_equal(dt_space_axis(space, 0)->count, 3);
    assert_true(dt_space_axis(space, 0)->values[2] == INT64_MAX - 1);
    dt_space_free(space);
    assert_int_equal(
        read_text(RANGE("\"from\": 3, \"to\": 9223372036854775807, \"factor\": 3"), &space), DT_OK);
    assert_int_equal(dt_space_axis(space, 0)->count, 39); /* 3^39 < 2^63 < 3^40 */
    dt_space_free(space);
}

/* A text repeated n times between two others. */
static char *repeated(const char *before, const char *each, const char *after, int n)
{
    struct dt_text text = {0};
    dt_text_add(&text, "%s", before);
    for (int i = 0; i < n; i++) {
        dt_text_add(&text, "%s", i > 0 ? ", " : "");
        for (const char *c = each; *c != '\0'; c++)
            if (*c == '#')
                dt_text_add(&text, "%d", i);
            else
                dt_text_add_bytes(&text, c, 1);
    }
    dt_text_add(&text, "%s", after);
    return dt_text_take(&text);
}

static void refuses_too_much(void **state)
{
    static const struct {
        const char *before, *each, *after, *says;
        int n;
    } cases[] = {
        {"{\"parameters\": {\"a\": [", "#", "]}}", "has 4097 values", 4097},
        {"{\"parameters\": {\"a\": [", "\"v#\"", "]}}", "has 4097 values", 4097},
        {"{\"parameters\": {", "\"a#\": [1]", "}}", "one more than the 32 allowed", 33},
        {"{\"parameters\": {\"a\": [1]}, \"rules\": [", "\"a == 1\"", "]}",
         "one more than the 1024 allowed", 1025},
        {"{\"parameters\": {\"a\": [1]}, \"constants\": {", "\"c#\": 1", "}}",
         "one more than the 64 allowed", 65},
        {"{\"parameters\": {\"a\": [1]}, \"rules\": [\"a in (", "#", ")\"]}", "bytes", 4096},
        {"{\"parameters\": {\"a\": [1]}, \"rules\": [\"a in (", "1", ")\"]}", "operations", 520},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dt_space *space = NULL;
        char *text = repeated(cases[i].before, cases[i].each, cases[i].after, cases[i].n);
        assert_int_equal(read_text(text, &space), DT_EUSAGE);
        if (strstr(dt_message(), cases[i].says) == NULL)
            fail_msg("%.60s... says: %s", text, dt_message());
        free(text);
    }
}

/* Spaces at the limits, with rules on all of it: a quick answer or an error. */
static void the_largest_spaces_are_handled_quickly(void **state)
{
    struct dt_space *space = NULL;
    char *axes = repeated("", "\"a#\": {\"from\": 1, \"to\": 4096}", "", 32);
    char *rules = repeated("", "\"(a0 * 7 + a1) * (a# + a2) != a3 * a4 + #\"", "", 32);
    struct dt_text text = {0};
    (void)state;
    dt_text_add(&text, "{\"parameters\": {%s}, \"rules\": [%s]}", axes, rules);
    dt_status status = read_text(dt_text_at(&text), &space);
    assert_true(status == DT_OK || status == DT_EUNSUP);
    if (status == DT_OK) {
        struct dt_rng rng = dt_rng_at(1, "much");
        struct dt_point point;
        dt_space_draw(space, &rng, &point);
        assert_true(dt_space_feasible(space, &point));
        dt_space_free(space);
    }
    dt_text_fini(&text);
    free(axes);
    free(rules);
}

/* Files that were good once, with a few bytes changed: a space, or one sentence. */
static void mutated_files_are_refused_or_read(void **state)
{
    static const char *const bytes = "{}[]\",:0123456789ab*/%<=!&|-( )";
    struct dt_rng rng = dt_rng_at(dose_seed("forms", 31), "mutated");
    const int files = dose_thin() ? 1500 : 6000;
    int read = 0;
    (void)state;
    for (int i = 0; i < files; i++) {
        char text[512];
        json_t *root = NULL;
        struct dt_space *space = NULL;
        snprintf(text, sizeof text, "%s", i % 4 == 0 ? plain : same[i % 4 - 1]);
        for (uint64_t n = 1 + dt_rng_below(&rng, 4); n > 0; n--)
            text[dt_rng_below(&rng, strlen(text))] = bytes[dt_rng_below(&rng, strlen(bytes))];
        if (dt_json_parse(text, strlen(text), "the file", &root) != DT_OK)
            continue;
        dt_status status = dt_space_from_json(root, "the file", &space);
        if (status != DT_OK && status != DT_EUSAGE && status != DT_EUNSUP)
            fail_msg("%s: %s", text, dt_message());
        read += status == DT_OK;
        dt_space_free(space);
        json_decref(root);
    }
    assert_in_range(read, files / 60, files - files / 6);
}

static dt_status read_file(const char *text, struct dt_space **space)
{
    char path[] = "/tmp/dittune-forms-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    dt_status status = dt_space_read(path, space);
    unlink(path);
    return status;
}

static void reads_files(void **state)
{
    struct dt_space *space = NULL;
    (void)state;
    assert_int_equal(dt_space_read("/nowhere/space.json", &space), DT_EIO);
    assert_int_equal(read_file("[1, 2", &space), DT_EUSAGE);
    assert_int_equal(read_file("[1, 2]", &space), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "is not a JSON object"));
    assert_int_equal(read_file(WITH("\"rule\": []"), &space), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "unknown field 'rule', did you mean 'rules'?"));
    char *deep = repeated("{\"parameters\": {\"a\": ", "[", "", 200);
    assert_int_equal(read_file(deep, &space), DT_EUSAGE);
    free(deep);
    assert_int_equal(read_file(plain, &space), DT_OK);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equivalent_forms_give_one_space),
        cmocka_unit_test(refuses_each_mistake),
        cmocka_unit_test(reads_64_bit_values),
        cmocka_unit_test(refuses_too_much),
        cmocka_unit_test(reads_files),
        cmocka_unit_test(the_largest_spaces_are_handled_quickly),
        cmocka_unit_test(mutated_files_are_refused_or_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
