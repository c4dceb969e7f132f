/* SPDX-License-Identifier: MIT */
/* Labels in rules: what they compare with, what they cannot, and how a rule that names
 * them explains itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "space/json/json.h"
#include "tests/space/walk.h"

#include <string.h>

static dt_status make(const char *rule, struct dt_space **space)
{
    json_t *root =
        json_pack("{s:{s:[s,s,s], s:[s,s], s:[i,i,i]}, s:[s]}", "parameters", "codec", "raw", "lz4",
                  "zstd-9", "mode", "lz4", "fast", "level", 0, 1, 2, "rules", rule);
    assert_non_null(root);
    dt_status status = dt_space_from_json(root, "the file", space);
    json_decref(root);
    return status;
}

/* The same space with numbers in the place of the texts. */
static dt_status make_numbers(const char *rule, struct dt_space **space)
{
    json_t *root = json_pack("{s:{s:[i,i,i], s:[i,i], s:[i,i,i]}, s:[s]}", "parameters", "codec", 0,
                             1, 2, "mode", 0, 1, "level", 0, 1, 2, "rules", rule);
    assert_non_null(root);
    dt_status status = dt_space_from_json(root, "the file", space);
    json_decref(root);
    return status;
}

/* The same rule of numbers: codec 0, 1, 2; mode 0, 1. */
static const char *const same[][2] = {
    {"codec == \"lz4\"", "codec == 1"},
    {"'lz4' == codec", "codec == 1"},
    {"codec != 'raw' || level == 0", "codec != 0 || level == 0"},
    {"codec in ('raw', 'zstd-9')", "codec in (0, 2)"},
    {"(codec) == ('lz4') && mode == \"lz4\"", "codec == 1 && mode == 0"},
    {"!(mode == 'fast') || !(codec == 'raw')", "mode != 1 || codec != 0"},
    {"(codec == 'lz4') + (mode == 'fast') == level", "(codec == 1) + (mode == 1) == level"},
    {"level == 0 || codec in ('lz4')", "level == 0 || codec == 1"},
};

static void labels_are_as_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        struct dt_space *by_label = NULL, *by_index = NULL;
        struct dt_point point = {{0}};
        if (make(same[i][0], &by_label) != DT_OK)
            fail_msg("%s: %s", same[i][0], dt_message());
        assert_int_equal(make_numbers(same[i][1], &by_index), DT_OK);
        assert_in_range(dt_space_count(by_index), 1, 17);
        do
            assert_int_equal(dt_space_feasible(by_label, &point),
                             dt_space_feasible(by_index, &point));
        while (walk_on(by_index, &point));
        dt_space_free(by_label);
        dt_space_free(by_index);
    }
}

static const struct {
    const char *rule, *says;
} bad[] = {
    {"codec == \"gzip\"", "column 10: 'gzip' is none of the values of 'codec'"},
    {"level == 'raw'", "column 10: 'raw' is a text, but the values of 'level' are numbers"},
    {"codec == raw", "column 10: unknown name 'raw': a value of 'codec' is written \"raw\""},
    {"codec < 'raw'", "column 1: 'codec' is a text"},
    {"codec == 'raw", "column 10: the text that begins here has no end"},
    {"'raw' == 'raw'", "column 1: a text is only compared"},
    {"'raw'", "column 1: a text is only compared"},
    {"!'raw'", "column 2: a text is only compared"},
    {"codec + 0 == 'raw'", "column 1: 'codec' is a text: it is only compared with its values"},
    {"level == -codec", "column 11: 'codec' is a text"},
    {"codec == 1",
     "column 1: 'codec' is a text: it is only compared with its values, such as \"raw\""},
    {"1 == codec", "column 6: 'codec' is a text"},
    {"level == codec + 1", "column 10: 'codec' is a text"},
    {"codec in (0, 1)", "column 1: 'codec' is a text"},
    {"codec < 2", "column 1: 'codec' is a text"},
    {"0 < codec < 2", "column 5: 'codec' is a text"},
    {"codec && level == 1", "column 1: 'codec' is a text"},
    {"not codec", "column 5: 'codec' is a text"},
    {"codec", "column 1: 'codec' is a text"},
    {"max(level, codec) == 1", "column 12: 'codec' is a text"},
    {"codec ** 2 == 1", "column 1: 'codec' is a text"},
    {"codec == true", "column 1: 'codec' is a text"},
    {"min('raw', level) == 0", "column 5: a text is only compared"},
    {"level && 'raw'", "column 10: a text is only compared"},
    {"'raw' || level", "column 1: a text is only compared"},
    {"'raw' in (codec)", "column 1: a text is only compared"},
    {"codec in ('raw', 'gzip')", "column 18: 'gzip' is none of the values"},
    {"codec == mode", "'codec' and 'mode' have not the same values"},
    {"(codec == 'lz4') == 'raw'", "column 21: a text is only compared"},
};

static void refuses_each_mistake(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dt_space *space = NULL;
        assert_int_equal(make(bad[i].rule, &space), DT_EUSAGE);
        if (strstr(dt_message(), bad[i].says) == NULL)
            fail_msg("%s says: %s", bad[i].rule, dt_message());
    }
}

static void explanations_show_labels(void **state)
{
    struct dt_space *space = NULL;
    struct dt_point point;
    int64_t values[DT_AXES_MAX];
    (void)state;
    assert_int_equal(make("codec == 'lz4' || level == 0", &space), DT_OK);
    assert_int_equal(dt_space_parse(space, "codec=zstd-9 level=2", values), DT_OK);
    assert_int_equal(dt_space_locate(space, values, &point), DT_EINFEASIBLE);
    assert_non_null(strstr(dt_message(), "codec=zstd-9 == 'lz4' || (level=2) == 0"));
    assert_non_null(strstr(dt_message(), "codec=lz4"));
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_as_numbers),
        cmocka_unit_test(refuses_each_mistake),
        cmocka_unit_test(explanations_show_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
