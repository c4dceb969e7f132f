/* SPDX-License-Identifier: MIT */
/* The rows of a check's record against schema/ and docs/json.md, and its verdicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/records.h"
#include "tuner/check/check.h"

static void schema_and_docs_are_of_the_rows(void **state)
{
    (void)state;
    static const struct dt_record *const records[] = {
        &dt_record_check_row, &dt_record_check_successor, &dt_record_check_record};
    bool same = true;
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        same = schema_has("dittune-trial-1.schema.json", records[i]) && same;
        same = docs_have("docs/json.md", records[i]) && same;
    }
    assert_true(same);
}

static void verdicts_are_found_by_their_texts(void **state)
{
    (void)state;
    for (int i = DT_CHECK_INCONCLUSIVE; i <= DT_CHECK_UNSUPPORTED; i++)
        assert_int_equal(dt_check_verdict_of(dt_check_verdict_text((enum dt_check_verdict)i)), i);
    assert_int_equal(dt_check_verdict_of("certain"), DT_CHECK_UNKNOWN);
    assert_int_equal(dt_check_verdict_of(NULL), DT_CHECK_UNKNOWN);
    assert_int_equal(dt_check_verdict_of(dt_check_verdict_text(DT_CHECK_UNJUDGED)),
                     DT_CHECK_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schema_and_docs_are_of_the_rows),
        cmocka_unit_test(verdicts_are_found_by_their_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
