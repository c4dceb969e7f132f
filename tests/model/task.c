/* SPDX-License-Identifier: MIT */
/* Tasks from JSON, and back: titles, options, what is no value of its field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/task.h"

#include <string.h>

static const struct row {
    const char *job, *title, *options, *back; /* back: NULL: as it came */
} rows[] = {
    {"{}", "", "", NULL},
    {"{\"model\":\"flux\",\"width\":64,\"height\":32,\"steps\":4}", "flux, 64 x 32 px, 4 steps",
     " --model flux --size 64x32 --steps 4", NULL},
    {"{\"guidance\":3.5,\"batch\":2,\"dtype\":\"bfloat16\",\"revision\":\"a b\"}",
     "revision a b, guidance 3.5, batch 2",
     " --revision 'a b' --guidance 3.5 --dtype bfloat16 --batch 2", NULL},
    {"{\"text_tokens\":\"37,17,37\"}", "17,37 text tokens", " --text-tokens 17,37",
     "{\"text_tokens\":\"17,37\"}"},
    {"{\"steps\":28.0}", "28 steps", " --steps 28", "{\"steps\":28}"},
    {"{\"width\":64}", "", "", NULL}, /* a side alone is no size */
    /* none of these is a value of its field */
    {"{\"steps\":0,\"frames\":-3,\"batch\":1.5,\"width\":-1e300,\"height\":1e300}", "", "", "{}"},
    {"{\"model\":7,\"guidance\":\"x\",\"text_tokens\":\"17,x\",\"dtype\":null,\"other\":1}", "", "",
     "{}"},
};

static void each_field_is_read_and_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        json_t *job = NULL, *back = NULL, *expected = NULL, *all = json_array();
        struct dt_text title = {0}, options = {0};
        struct dt_task task;
        for (int field = 0; field < DT_TASK_FIELDS; field++)
            json_array_append_new(all, json_string(dt_task_rows[field].name));
        const char *text = row->back != NULL ? row->back : row->job;
        assert_int_equal(dt_json_parse(row->job, strlen(row->job), "a job", &job), DT_OK);
        assert_int_equal(dt_json_parse(text, strlen(text), "a job", &expected), DT_OK);
        dt_task_read(job, &task);
        assert_int_equal(dt_task_json(&task, &back), DT_OK);
        dt_task_title(job, &title);
        dt_task_options(job, all, false, &options);
        if (!json_equal(back, expected) || strcmp(dt_text_at(&title), row->title) != 0 ||
            strcmp(dt_text_at(&options), row->options) != 0)
            fail_msg("row %zu: '%s', '%s'", i, dt_text_at(&title), dt_text_at(&options));
        dt_text_fini(&title);
        dt_text_fini(&options);
        json_decref(job);
        json_decref(back);
        json_decref(expected);
        json_decref(all);
    }
}

static void only_what_is_obeyed_is_an_option(void **state)
{
    (void)state;
    json_t *job =
               json_pack("{s:s, s:i, s:s}", "model", "m", "steps", 4, "engine_version", "0.42.1"),
           *obeys = json_pack("[s]", "steps");
    struct dt_text options = {0};
    dt_task_options(job, obeys, false, &options);
    assert_string_equal(dt_text_at(&options), " --steps 4");
    dt_task_options(job, NULL, false, &options);
    assert_string_equal(dt_text_at(&options), " --steps 4");
    dt_text_clear(&options);
    dt_task_options(job, obeys, true, &options);
    assert_string_equal(dt_text_at(&options), " --engine-version 0.42.1 --steps 4");
    dt_text_fini(&options);
    json_decref(job);
    json_decref(obeys);
}

/* As values, not as they are spelt: 4 is 4.0, and the order of lengths does not count. */
static void fields_are_compared_as_values(void **state)
{
    static const struct {
        const char *a, *b;
        enum dt_task_field field;
        bool same;
    } pairs[] = {
        {"{}", "{}", DT_TASK_model, true},
        {"{\"model\":\"a\"}", "{}", DT_TASK_model, false},
        {"{}", "{\"guidance\":0}", DT_TASK_guidance, false},
        {"{\"model\":\"a\"}", "{\"model\":\"a\",\"steps\":4}", DT_TASK_model, true},
        {"{\"model\":\"a\"}", "{\"model\":\"b\"}", DT_TASK_model, false},
        {"{\"guidance\":4}", "{\"guidance\":4.0}", DT_TASK_guidance, true},
        {"{\"guidance\":4}", "{\"guidance\":4.5}", DT_TASK_guidance, false},
        {"{\"steps\":28}", "{\"steps\":28.0}", DT_TASK_steps, true},
        {"{\"steps\":28}", "{\"steps\":50}", DT_TASK_steps, false},
        {"{\"text_tokens\":\"17,37\"}", "{\"text_tokens\":\"37,17,37\"}", DT_TASK_text_tokens,
         true},
        {"{\"text_tokens\":\"17,37\"}", "{\"text_tokens\":\"17\"}", DT_TASK_text_tokens, false},
        {"{\"text_tokens\":\"17,37\"}", "{\"text_tokens\":\"17,38\"}", DT_TASK_text_tokens, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        json_t *a = NULL, *b = NULL;
        struct dt_task one, other;
        assert_int_equal(dt_json_parse(pairs[i].a, strlen(pairs[i].a), "a job", &a), DT_OK);
        assert_int_equal(dt_json_parse(pairs[i].b, strlen(pairs[i].b), "a job", &b), DT_OK);
        dt_task_read(a, &one);
        dt_task_read(b, &other);
        if (dt_task_same(&one, &other, pairs[i].field) != pairs[i].same ||
            dt_task_same(&other, &one, pairs[i].field) != pairs[i].same)
            fail_msg("pair %zu: %s and %s", i, pairs[i].a, pairs[i].b);
        json_decref(a);
        json_decref(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_field_is_read_and_written),
        cmocka_unit_test(only_what_is_obeyed_is_an_option),
        cmocka_unit_test(fields_are_compared_as_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
