/* SPDX-License-Identifier: MIT */
/* The rows of a stored entry against schema/ and docs/json.md, and its verdicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "db/stored.h"
#include "tests/lib/records.h"

static void schema_and_docs_are_of_the_rows(void **state)
{
    (void)state;
    static const struct dt_record *const records[] = {
        &dt_record_measured,    &dt_record_gain,          &dt_record_noise_floor,
        &dt_record_stored_load, &dt_record_image_time,    &dt_record_stored_info,
        &dt_record_fingerprint, &dt_record_documentation, &dt_record_stored_entry};
    bool same = true;
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        same = schema_has("dittune-best-2.schema.json", records[i]) && same;
        same = docs_have("docs/json.md", records[i]) && same;
    }
    assert_true(same);
}

static void verdicts_are_found_by_their_texts(void **state)
{
    (void)state;
    for (int i = 0; i < DT_VERDICTS; i++)
        assert_int_equal(dt_verdict_of(dt_verdict_text((enum dt_verdict)i)), i);
    assert_int_equal(dt_verdict_of("certain"), DT_VERDICT_NONE);
    assert_int_equal(dt_verdict_of(NULL), DT_VERDICT_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schema_and_docs_are_of_the_rows),
        cmocka_unit_test(verdicts_are_found_by_their_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
