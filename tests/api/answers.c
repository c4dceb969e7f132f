/* SPDX-License-Identifier: MIT */
/* Compares every accessor with the JSON of the same answer; tests NULL handles, and
 * messages in small buffers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/api/session.h"

#include <math.h>

static json_t *as_json(const struct dittune_answer *answer, const char *field)
{
    char *text = NULL, why[256] = "";
    json_t *root = NULL;
    if (dittune_answer_json(answer, field, &text, why, sizeof why) != DITTUNE_OK)
        fail_msg("%s", why);
    assert_int_equal(dt_json_parse(text, strlen(text), "the answer", &root), DT_OK);
    dittune_text_free(text);
    return root;
}

static void check_plan(const struct dittune_answer *answer, const json_t *plan)
{
    const char *name;
    char value[64];
    int64_t number;
    size_t n = 0;
    for (; (name = dittune_answer_name(answer, n)) != NULL; n++) {
        const json_t *is = json_object_get(plan, name);
        assert_int_equal(dittune_answer_integer(answer, name, &number), DITTUNE_OK);
        assert_int_equal(number, json_integer_value(is));
        assert_int_equal(dittune_answer_value(answer, name, value, sizeof value), DITTUNE_OK);
        assert_int_equal(strtoll(value, NULL, 10), number);
        assert_int_equal(dittune_answer_value(answer, name, value, strlen(value)), DITTUNE_USAGE);
    }
    assert_int_equal(n, json_object_size(plan));
    assert_int_equal(n, dittune_answer_count(answer));
    assert_int_equal(dittune_answer_integer(answer, "no such", &number), DITTUNE_USAGE);
    assert_int_equal(dittune_answer_value(answer, "no such", value, sizeof value), DITTUNE_USAGE);
}

static void check_all(const struct dittune_answer *answer)
{
    json_t *whole = as_json(answer, NULL);
    const json_t *gain = json_object_get(whole, "gain");
    double ratio = 0, low = 0, high = 0;
    assert_string_equal(dittune_tier_text(dittune_answer_tier(answer)),
                        json_string_value(json_object_get(whole, "tier")));
    assert_int_equal(dittune_answer_is_stale(answer),
                     json_is_true(json_object_get(whole, "stale")));
    assert_int_equal(dittune_answer_is_provisional(answer),
                     json_is_true(json_object_get(whole, "provisional")));
    const json_t *distance = json_object_get(whole, "distance");
    if (json_is_number(distance))
        assert_true(dittune_answer_distance(answer) == json_number_value(distance));
    else
        assert_true(isnan(dittune_answer_distance(answer)));
    assert_string_equal(dittune_answer_reason(answer),
                        json_string_value(json_object_get(whole, "reason")));
    if (dittune_answer_count(answer) > 0)
        assert_string_equal(dittune_answer_evidence(answer),
                            json_string_value(json_object_get(whole, "evidence")));
    else
        assert_string_equal(dittune_answer_evidence(answer), "");
    assert_int_equal(dittune_answer_gain(answer, &ratio, &low, &high), json_is_object(gain));
    if (json_is_object(gain)) {
        assert_true(ratio == json_number_value(json_object_get(gain, "ratio")));
        assert_true(low == json_number_value(json_array_get(json_object_get(gain, "interval"), 0)));
        assert_true(high ==
                    json_number_value(json_array_get(json_object_get(gain, "interval"), 1)));
    }
    check_plan(answer, json_object_get(whole, "plan"));
    json_decref(whole);
}

static void accessors_agree_with_the_json(void **state)
{
    (void)state;
    struct dittune_machine *machine = session_begin(2);
    struct dittune_db *db = session_open();
    const int32_t tiers[] = {DITTUNE_EXACT, DITTUNE_EXACT, DITTUNE_NEAR};
    assert_int_equal(dittune_db_count(db), 2);
    for (size_t i = 0; i < 3; i++) {
        struct dittune_query *query = session_ask(machine, i);
        struct dittune_answer *answer = session_answer(db, query);
        assert_int_equal(dittune_answer_tier(answer), tiers[i]);
        assert_in_range(dittune_answer_age_seconds(answer), 0, 600);
        check_all(answer);
        json_t *plan = as_json(answer, "plan");
        check_plan(answer, plan);
        json_decref(plan);
        dittune_answer_free(answer);
        dittune_query_free(query);
    }
    dittune_db_close(db);
    dittune_machine_free(machine);
}

/* An engine by its name, with its version, or by the name of its file: all
 * select the same entries. */
static void names_and_versions_select_one_engine(void **state)
{
    static const char *const names[] = {"xdit", "xdit:0.7.0", "xdit:0.4.5", "xdit-runner:0.7.0"};
    char why[512] = "";
    (void)state;
    struct dittune_machine *machine = session_begin(2);
    struct dittune_db *db = session_open();
    struct dittune_query *query = session_ask(machine, 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(dittune_query_set(query, "engine", names[i], why, sizeof why), DITTUNE_OK);
        assert_int_equal(dittune_query_seal(query, why, sizeof why), DITTUNE_OK);
        struct dittune_answer *answer = session_answer(db, query);
        assert_int_equal(dittune_answer_tier(answer), DITTUNE_PROXY);
        assert_non_null(strstr(dittune_answer_reason(answer), "not by xdit (eager)"));
        dittune_answer_free(answer);
    }
    assert_int_equal(dittune_query_set(query, "engine", "xdit:9.9", why, sizeof why),
                     DITTUNE_USAGE);
    assert_non_null(
        strstr(why, "unknown engine 'xdit:9.9': the nearest version with a file is xdit:0.7.0"));
    assert_int_equal(dittune_query_set(query, "engine", "my own:2", why, sizeof why), DITTUNE_OK);
    dittune_query_free(query);
    dittune_db_close(db);
    dittune_machine_free(machine);
}

static void check_rows(const json_t *rows, const struct dittune_export *words, bool notes)
{
    const char *row;
    size_t n = 0;
    for (; (row = notes ? dittune_export_note(words, n) : dittune_export_unexpressed(words, n)) !=
           NULL;
         n++) {
        const json_t *is = json_array_get(rows, n);
        if (notes)
            assert_string_equal(row, json_string_value(is));
        else {
            assert_non_null(strstr(row, json_string_value(json_object_get(is, "name"))));
            assert_non_null(strstr(row, json_string_value(json_object_get(is, "why"))));
        }
    }
    assert_int_equal(n, json_array_size(rows));
    assert_true(n > 0);
}

/* Each listed engine accepts the plan or names the rule that forbids it; the accessors
 * agree with the JSON form. */
static void exports_agree_with_the_json(void **state)
{
    (void)state;
    struct dittune_machine *machine = session_begin(2);
    struct dittune_db *db = session_open();
    struct dittune_query *query = session_ask(machine, 1);
    struct dittune_answer *answer = session_answer(db, query);
    struct dittune_export *words = NULL;
    json_t *list = NULL, *root = NULL, *row;
    char *text = NULL, why[512] = "", name[128];
    size_t i, made = 0;
    assert_int_equal(dittune_engines(&text, why, sizeof why), DITTUNE_OK);
    assert_int_equal(dt_json_parse(text, strlen(text), "the engines", &list), DT_OK);
    dittune_text_free(text);
    json_array_foreach(list, i, row)
    {
        snprintf(name, sizeof name, "%s:%s", json_string_value(json_object_get(row, "engine")),
                 json_string_value(json_object_get(row, "version")));
        int32_t code = dittune_export_new(answer, name, "argv", &words, why, sizeof why);
        assert_true(code == DITTUNE_OK || code == DITTUNE_INFEASIBLE);
        if (code == DITTUNE_OK) {
            made++;
            dittune_export_free(words);
        }
    }
    assert_true(made > 0);
    json_decref(list);
    assert_int_equal(dittune_export_new(answer, "xdit", "json", &words, why, sizeof why),
                     DITTUNE_OK);
    const char *json = dittune_export_text(words);
    assert_int_equal(dt_json_parse(json, strlen(json), "the export", &root), DT_OK);
    check_rows(json_object_get(root, "notes"), words, true);
    check_rows(json_object_get(root, "unexpressed"), words, false);
    json_decref(root);
    dittune_export_free(words);
    assert_int_equal(dittune_export_new(answer, "no such", "argv", &words, why, sizeof why),
                     DITTUNE_USAGE);
    assert_int_equal(dittune_export_new(answer, "xdit", "no such", &words, why, sizeof why),
                     DITTUNE_USAGE);
    dittune_answer_free(answer);
    dittune_query_free(query);
    dittune_db_close(db);
    dittune_machine_free(machine);
}

static void an_empty_store_gives_an_answer(void **state)
{
    (void)state;
    struct dittune_machine *machine = session_begin(1);
    assert_int_equal(unlink(at("best.json")), 0);
    struct dittune_db *db = session_open();
    struct dittune_query *query = session_ask(machine, 0);
    struct dittune_answer *answer = session_answer(db, query);
    assert_int_equal(dittune_db_count(db), 0);
    assert_in_range(dittune_answer_tier(answer), DITTUNE_NONE, DITTUNE_HEURISTIC);
    assert_int_equal(dittune_answer_age_seconds(answer), -1);
    check_all(answer);
    assert_int_equal(dittune_db_is_outdated(db), 0);
    assert_int_equal(made_directory(scratch, 1), DT_OK);
    assert_int_equal(dittune_db_is_outdated(db), 1);
    dittune_answer_free(answer);
    dittune_query_free(query);
    dittune_db_close(db);
    dittune_machine_free(machine);
}

static void every_function_accepts_null(void **state)
{
    (void)state;
    struct dittune_db *db = NULL;
    char why[80] = "kept", *text = NULL;
    double x;
    dittune_db_close(NULL);
    dittune_machine_free(NULL);
    dittune_query_free(NULL);
    dittune_answer_free(NULL);
    dittune_export_free(NULL);
    dittune_text_free(NULL);
    assert_int_equal(dittune_db_count(NULL), 0);
    assert_int_equal(dittune_db_is_outdated(NULL), 0);
    assert_int_equal(dittune_answer_tier(NULL), DITTUNE_NONE);
    assert_int_equal(dittune_answer_count(NULL), 0);
    assert_int_equal(dittune_answer_gain(NULL, &x, &x, &x), 0);
    assert_null(dittune_answer_name(NULL, 0));
    assert_null(dittune_answer_reason(NULL));
    assert_null(dittune_export_text(NULL));
    assert_int_equal(dittune_db_open(scratch, NULL, NULL, 0), DITTUNE_USAGE);
    assert_int_equal(dittune_db_parse(NULL, 7, &db, NULL, 0), DITTUNE_USAGE);
    assert_int_equal(dittune_lookup(NULL, NULL, NULL, NULL, 0), DITTUNE_USAGE);
    assert_int_equal(dittune_answer_json(NULL, NULL, &text, why, sizeof why), DITTUNE_USAGE);
    assert_string_not_equal(why, "kept");
    assert_null(db);
    assert_string_equal(dittune_tier_text(99), "unknown");
    assert_string_equal(dittune_status_text(-99), "unknown");
    assert_string_equal(dittune_status_text(DITTUNE_OK), "ok");
}

/* A sentence is cut at a whole character, and nothing is written beyond the buffer. */
static void messages_are_cut_to_the_buffer(void **state)
{
    (void)state;
    struct dittune_machine *machine = NULL;
    const char *name = "no\xc3\xa4\xc3\xa4\xc3\xa4";
    char whole[256], part[256];
    assert_int_equal(dittune_machine_open(name, &machine, whole, sizeof whole), DITTUNE_IO);
    assert_non_null(strstr(whole, name));
    for (size_t room = 1; room < strlen(whole) + 2; room++) {
        memset(part, 'x', sizeof part);
        assert_int_equal(dittune_machine_open(name, &machine, part, room), DITTUNE_IO);
        size_t size = strlen(part);
        assert_true(size < room && size + 2 >= (room <= strlen(whole) ? room : size));
        assert_int_equal(memcmp(part, whole, size), 0);
        assert_int_equal(whole[size] & 0xc0 ? (unsigned char)whole[size] >> 6 == 2 : 0, 0);
        assert_int_equal(part[room], 'x');
    }
    assert_null(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(accessors_agree_with_the_json, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(names_and_versions_select_one_engine, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(exports_agree_with_the_json, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(an_empty_store_gives_an_answer, scratch_make,
                                        scratch_remove),
        cmocka_unit_test(every_function_accepts_null),
        cmocka_unit_test(messages_are_cut_to_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
