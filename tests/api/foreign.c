/* SPDX-License-Identifier: MIT */
/* The plan of a foreign worker: texts among its values, and rules given with the query. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/api/session.h"

#define SPACE                                                                                      \
    "{\"parameters\":[{\"name\":\"gpus\",\"role\":\"ranks\",\"values\":[1,2,4]},"                  \
    "{\"name\":\"tp\",\"values\":[1,2,4]},"                                                        \
    "{\"name\":\"kernel\",\"values\":[\"plain\",\"fused\"]}],"                                     \
    "\"constants\":{},\"rules\":[{\"if\":\"tp == gpus\",\"say\":\"tp is the GPUs\"}]}"

static const char *const words[][2] = {
    {"worker", "mine"}, {"workload", "video"}, {"job", "{\"model\":\"org/flux\"}"},
    {"devices", "4"},   {"engine", "sglang"},  {"space", SPACE},
};

static void store(const char *kernel, int tp)
{
    struct dt_machine *machine = NULL;
    struct dt_query *query = NULL;
    assert_int_equal(dt_machine_parse(MADE_MACHINE, strlen(MADE_MACHINE), "the machine", &machine),
                     DT_OK);
    assert_int_equal(dt_query_new(machine, &query), DT_OK);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_int_equal(dt_query_set(query, words[i][0], words[i][1]), DT_OK);
    if (dt_query_seal(query) != DT_OK)
        fail_msg("%s", dt_message());
    json_t *space = NULL;
    assert_int_equal(dt_json_parse(SPACE, strlen(SPACE), "the space", &space), DT_OK);
    json_t *entry = json_pack("{s:O, s:{s:O, s:{}, s:{s:I}}, s:{s:i, s:i, s:s}, s:n, s:o}", "key",
                              dt_query_key(query), "fingerprint", "hard", dt_query_hard(query),
                              "soft", "info", "t_wall_ns", (json_int_t)dt_clock_wall_ns(), "plan",
                              "gpus", 4, "tp", tp, "kernel", kernel, "gain", "space", space);
    assert_non_null(entry);
    assert_int_equal(dt_store_put(scratch, entry), DT_OK);
    json_decref(entry);
    dt_query_free(query);
    dt_machine_free(machine);
}

/* A new question on the test's machine; the query has what it needs of it. */
static struct dittune_query *question(void)
{
    struct dittune_machine *machine = NULL;
    struct dittune_query *query = NULL;
    char why[512] = "";
    assert_int_equal(
        dittune_machine_parse(MADE_MACHINE, strlen(MADE_MACHINE), &machine, why, sizeof why),
        DITTUNE_OK);
    assert_int_equal(dittune_query_new(machine, &query, why, sizeof why), DITTUNE_OK);
    dittune_machine_free(machine);
    return query;
}

static struct dittune_answer *ask(struct dittune_db **db, struct dittune_query **query)
{
    char why[512] = "";
    *query = question();
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (dittune_query_set(*query, words[i][0], words[i][1], why, sizeof why) != DITTUNE_OK)
            fail_msg("%s", why);
    if (dittune_query_seal(*query, why, sizeof why) != DITTUNE_OK)
        fail_msg("%s", why);
    *db = session_open();
    return session_answer(*db, *query);
}

static void end(struct dittune_db *db, struct dittune_query *query, struct dittune_answer *answer)
{
    dittune_answer_free(answer);
    dittune_query_free(query);
    dittune_db_close(db);
}

static void labels_are_returned_as_text(void **state)
{
    (void)state;
    struct dittune_db *db;
    struct dittune_query *query;
    char value[64];
    int64_t number;
    double x;
    store("fused", 4);
    struct dittune_answer *answer = ask(&db, &query);
    assert_int_equal(dittune_answer_tier(answer), DITTUNE_EXACT);
    assert_int_equal(dittune_answer_count(answer), 3);
    assert_int_equal(dittune_answer_value(answer, "kernel", value, sizeof value), DITTUNE_OK);
    assert_string_equal(value, "fused");
    assert_int_equal(dittune_answer_integer(answer, "kernel", &number), DITTUNE_USAGE);
    assert_int_equal(dittune_answer_integer(answer, "tp", &number), DITTUNE_OK);
    assert_int_equal(number, 4);
    assert_int_equal(dittune_answer_gain(answer, &x, &x, &x), 0);
    end(db, query, answer);
}

static void answers_obey_the_rules(void **state)
{
    (void)state;
    struct dittune_db *db;
    struct dittune_query *query;
    store("plain", 2);
    struct dittune_answer *answer = ask(&db, &query);
    assert_int_equal(dittune_answer_tier(answer), DITTUNE_NONE);
    assert_int_equal(dittune_answer_count(answer), 0);
    assert_non_null(strstr(dittune_answer_reason(answer), "tp is the GPUs"));
    end(db, query, answer);
}

/* By the engine and a part of its job: no worker, workload or space is named. */
static void a_plan_is_found_by_its_engine(void **state)
{
    (void)state;
    char why[512] = "";
    store("fused", 4);
    struct dittune_db *db = session_open();
    struct dittune_query *query = question();
    assert_int_equal(dittune_query_set(query, "engine", "sglang", why, sizeof why), DITTUNE_OK);
    assert_int_equal(dittune_query_set(query, "devices", "4", why, sizeof why), DITTUNE_OK);
    assert_int_equal(dittune_query_set(query, "model", "org/flux", why, sizeof why), DITTUNE_OK);
    assert_int_equal(dittune_query_seal(query, why, sizeof why), DITTUNE_OK);
    struct dittune_answer *answer = session_answer(db, query);
    assert_int_equal(dittune_answer_tier(answer), DITTUNE_EXACT);
    assert_int_equal(dittune_answer_count(answer), 3);
    struct dittune_export *made = NULL;
    assert_int_equal(dittune_export_new(answer, "sglang", "argv", &made, why, sizeof why),
                     DITTUNE_OK);
    assert_non_null(strstr(dittune_export_text(made), "--model-path=org/flux "));
    dittune_export_free(made);
    dittune_answer_free(answer);
    assert_int_equal(dittune_query_set(query, "model", "org/wan", why, sizeof why), DITTUNE_OK);
    assert_int_equal(dittune_query_seal(query, why, sizeof why), DITTUNE_OK);
    answer = session_answer(db, query);
    assert_int_equal(dittune_answer_tier(answer), DITTUNE_NONE);
    assert_non_null(strstr(dittune_answer_reason(answer), "only with org/flux"));
    end(db, query, answer);
}

/* What a program may choose among, before it asks for all of it. */
static void the_jobs_that_could_answer_are_listed(void **state)
{
    (void)state;
    char why[512] = "", *text = NULL;
    store("fused", 4);
    struct dittune_db *db = session_open();
    struct dittune_query *query = question();
    assert_int_equal(dittune_query_set(query, "devices", "4", why, sizeof why), DITTUNE_OK);
    assert_int_equal(dittune_jobs(db, query, &text, why, sizeof why), DITTUNE_USAGE);
    assert_string_equal(why, "the query is not sealed");
    assert_int_equal(dittune_query_seal(query, why, sizeof why), DITTUNE_OK);
    assert_int_equal(dittune_jobs(db, query, &text, why, sizeof why), DITTUNE_USAGE);
    assert_string_equal(why, "the query names no engine");
    assert_int_equal(dittune_query_set(query, "engine", "sglang", why, sizeof why), DITTUNE_OK);
    assert_int_equal(dittune_query_seal(query, why, sizeof why), DITTUNE_OK);
    assert_int_equal(dittune_jobs(db, query, &text, why, sizeof why), DITTUNE_OK);
    assert_string_equal(text, "[{\"model\":\"org/flux\"}]");
    dittune_text_free(text);
    assert_int_equal(dittune_query_set(query, "model", "org/wan", why, sizeof why), DITTUNE_OK);
    assert_int_equal(dittune_query_seal(query, why, sizeof why), DITTUNE_OK);
    assert_int_equal(dittune_jobs(db, query, &text, why, sizeof why), DITTUNE_OK);
    assert_string_equal(text, "[]");
    dittune_text_free(text);
    end(db, query, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(labels_are_returned_as_text, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(answers_obey_the_rules, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_plan_is_found_by_its_engine, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(the_jobs_that_could_answer_are_listed, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
