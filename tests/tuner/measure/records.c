/* SPDX-License-Identifier: MIT */
/* The rows of a result against schema/, docs/database.md and docs/json.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/records.h"
#include "tuner/measure/measure.h"

static void schema_and_docs_are_of_the_rows(void **state)
{
    (void)state;
    static const struct dt_record *const printed[] = {
        &dt_record_printed_plan, &dt_record_printed_series, &dt_record_printed_processes,
        &dt_record_printed_device};
    bool same = schema_has("dittune-trial-1.schema.json", &dt_record_measurement);
    same = docs_have("docs/database.md", &dt_record_measurement) && same;
    for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++)
        same = docs_have("docs/json.md", printed[i]) && same;
    assert_true(same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(schema_and_docs_are_of_the_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
