/* SPDX-License-Identifier: MIT */
/* Records by a table of every kind: what is written is read again, what is wrong
 * is nothing or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/record_structs.h"

#include "tests/base/record.def"

#include "base/record_rows.h"

#include "tests/base/record.def"

static json_t *parsed(const char *text)
{
    json_t *root = NULL;
    assert_int_equal(dt_json_parse(text, strlen(text), "the test", &root), DT_OK);
    return root;
}

static const char whole[] = "{\"name\":\"a\",\"sure\":true,\"pairs\":8,\"bytes\":-5,\"took_ns\":7,"
                            "\"ratio\":1.5,\"interval\":[1.25,2.0],"
                            "\"interval_ns\":[1,null],\"plan\":{\"ranks\":2},\"batches\":[1,2],"
                            "\"inner\":{\"n\":1},\"inners\":[{\"n\":2},"
                            "{\"n\":3}],\"maybe_ns\":0}";

static void written_as_it_was_read(void **state)
{
    (void)state;
    struct dt_test_outer outer;
    struct dt_text text = {0};
    json_t *root = parsed(whole);
    dt_record_read(&dt_record_test_outer, root, &outer);
    assert_true(outer.known && outer.sure && outer.pairs == 8 && outer.took_ns == 7);
    assert_true(outer.interval.high == 2.0 && outer.interval_ns.high == DT_NO_NS);
    assert_true(outer.inner.known && outer.inners_count == 2 && outer.inners[1].n == 3);
    json_incref(outer.plan);
    json_incref(outer.batches);
    json_t *again = dt_record_json(&dt_record_test_outer, &outer);
    assert_int_equal(dt_json_text(again, &text), DT_OK);
    assert_string_equal(dt_text_at(&text), whole);
    dt_text_fini(&text);
    json_decref(again);
    json_decref(root);
}

static void nothing_is_null_or_left_out(void **state)
{
    (void)state;
    struct dt_test_outer outer;
    struct dt_text text = {0};
    dt_record_read(&dt_record_test_outer, NULL, &outer);
    assert_true(!outer.known && outer.name == NULL && isnan(outer.ratio) && !outer.inner.known);
    json_t *none = dt_record_json(&dt_record_test_outer, &outer);
    assert_true(json_is_null(none));
    struct dt_test_outer bare = {
        .known = true, .took_ns = dt_ns_of(NAN), .ratio = NAN, .maybe_ns = DT_NO_NS};
    json_t *json = dt_record_json(&dt_record_test_outer, &bare);
    assert_int_equal(dt_json_text(json, &text), DT_OK);
    assert_string_equal(
        dt_text_at(&text),
        "{\"name\":null,\"sure\":false,\"pairs\":0,\"bytes\":0,\"took_ns\":null,\"ratio\":null,"
        "\"interval\":[0.0,0.0],\"interval_ns\":null,\"plan\":null,\"batches\":null,"
        "\"inner\":null,\"inners\":[]}");
    dt_text_fini(&text);
    json_decref(json);
}

static void wrong_is_nothing_and_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {"{\"name\":1}", "the test: 'name' is not a string or null"},
        {"{\"sure\":1}", "the test: 'sure' is not true or false"},
        {"{\"pairs\":-1}", "the test: 'pairs' is not an integer of 0 or more"},
        {"{\"pairs\":3000000000}", "the test: 'pairs' is not an integer of 0 or more"},
        {"{\"bytes\":1.5}", "the test: 'bytes' is not an integer"},
        {"{\"took_ns\":-1}", "the test: 'took_ns' is not a number of nanoseconds or null"},
        {"{\"ratio\":\"1\"}", "the test: 'ratio' is not a number or null"},
        {"{\"interval\":[1]}", "the test: 'interval' is not [low, high]"},
        {"{\"plan\":[]}", "the test: 'plan' is not an object"},
        {"{\"inner\":5}", "the test: 'inner' is not an object or null"},
        {"{\"inners\":null}", "the test: 'inners' is not an array"},
        {"{\"inners\":{}}", "the test: 'inners' is not an array"},
    };
    struct dt_test_outer none, outer;
    json_t *empty = json_object();
    dt_record_read(&dt_record_test_outer, empty, &none);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *root = parsed(rows[i].text);
        assert_int_equal(dt_record_check(&dt_record_test_outer, root, "the test"), DT_EUSAGE);
        assert_string_equal(dt_message(), rows[i].sentence);
        dt_record_read(&dt_record_test_outer, root, &outer);
        assert_true(outer.name == NULL && !outer.sure && outer.pairs == 0 && outer.bytes == 0 &&
                    outer.took_ns == DT_NO_NS && isnan(outer.ratio) && isnan(outer.interval.low) &&
                    outer.plan == NULL && !outer.inner.known && outer.inners_count == 0);
        json_decref(root);
    }
    json_decref(empty);
}

static void what_each_has_may_not_be_missing(void **state)
{
    (void)state;
    json_t *root = parsed(whole);
    json_object_del(root, "maybe_ns");
    assert_int_equal(dt_record_require(&dt_record_test_outer, root, "the test"), DT_OK);
    json_object_set_new(root, "pairs", json_null());
    assert_int_equal(dt_record_require(&dt_record_test_outer, root, "the test"), DT_EUSAGE);
    assert_string_equal(dt_message(), "the test: 'pairs' is not an integer of 0 or more");
    json_object_del(root, "name");
    assert_int_equal(dt_record_require(&dt_record_test_outer, root, "the test"), DT_EUSAGE);
    assert_string_equal(dt_message(), "the test: 'name' is missing");
    json_decref(root);
}

static void list_ends_at_its_room(void **state)
{
    (void)state;
    struct dt_test_outer outer;
    json_t *root = parsed("{\"inners\":[{\"n\":1},7,{\"n\":3}]}");
    dt_record_read(&dt_record_test_outer, root, &outer);
    assert_true(outer.inners_count == 2 && outer.inners[0].n == 1 && !outer.inners[1].known);
    json_decref(root);
}

static void optional_is_left_out_where_it_is_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"maybe_ns\":0,\"maybe\":{\"n\":0}}", "{}"};
    for (int i = 0; i < 2; i++) {
        struct dt_test_outer outer;
        json_t *root = parsed(texts[i]);
        dt_record_read(&dt_record_test_outer, root, &outer);
        outer.maybe.n = 5 * i; /* of a part that is not known */
        json_t *again = dt_record_json(&dt_record_test_outer, &outer);
        assert_true((json_object_get(again, "maybe_ns") != NULL) == (i == 0));
        assert_true((json_object_get(again, "maybe") != NULL) == (i == 0));
        json_decref(again);
        json_decref(root);
    }
}

static void unknown_records_release_what_they_hold(void **state)
{
    (void)state;
    json_t *plan = json_object();
    const struct dt_test_outer outer = {.known = false, .plan = json_incref(plan)};
    const json_t *none = dt_record_json(&dt_record_test_outer, &outer);
    assert_true(json_is_null(none));
    assert_int_equal(plan->refcount, 1);
    json_decref(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_as_it_was_read),
        cmocka_unit_test(nothing_is_null_or_left_out),
        cmocka_unit_test(wrong_is_nothing_and_refused),
        cmocka_unit_test(what_each_has_may_not_be_missing),
        cmocka_unit_test(list_ends_at_its_room),
        cmocka_unit_test(optional_is_left_out_where_it_is_nothing),
        cmocka_unit_test(unknown_records_release_what_they_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
