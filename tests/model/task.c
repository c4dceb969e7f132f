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
        dt_task_options(job, all, &options);
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
    json_t *job = json_pack("{s:s, s:i}", "model", "m", "steps", 4),
           *obeys = json_pack("[s]", "steps");
    struct dt_text options = {0};
    dt_task_options(job, obeys, &options);
    assert_string_equal(dt_text_at(&options), " --steps 4");
    dt_task_options(job, NULL, &options);
    assert_string_equal(dt_text_at(&options), " --steps 4");
    dt_text_fini(&options);
    json_decref(job);
    json_decref(obeys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_field_is_read_and_written),
        cmocka_unit_test(only_what_is_obeyed_is_an_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
