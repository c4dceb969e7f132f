/* SPDX-License-Identifier: MIT */
/* The library leaves the process as it was: standard output and error, open files, locale, signals,
 * directory. In a locale whose decimal point is a comma it reads and writes the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/api/session.h"

#include <locale.h>
#include <signal.h>

/* Calls every function, and makes every kind of mistake. */
static void use_all(const struct dittune_machine *machine)
{
    struct dittune_db *db = session_open(), *none = NULL;
    struct dittune_query *query = session_ask(machine, 1);
    struct dittune_answer *answer = session_answer(db, query);
    struct dittune_export *words = NULL;
    struct dittune_machine *other = NULL;
    char why[64], *text = NULL;
    assert_int_equal(dittune_answer_tier(answer), DITTUNE_EXACT);
    assert_int_equal(dittune_export_new(answer, "xdit", "env", &words, why, sizeof why),
                     DITTUNE_OK);
    assert_int_equal(dittune_export_new(answer, "xdti", "env", &words, why, sizeof why),
                     DITTUNE_USAGE);
    assert_int_equal(dittune_answer_json(answer, NULL, &text, why, sizeof why), DITTUNE_OK);
    assert_non_null(strstr(text, "\"ratio\":2.5"));
    dittune_text_free(text);
    assert_int_equal(dittune_engines(&text, why, sizeof why), DITTUNE_OK);
    assert_int_equal(dittune_db_parse("{}", 2, &none, why, sizeof why), DITTUNE_CORRUPT);
    assert_int_equal(dittune_machine_open(at("nowhere"), &other, why, sizeof why), DITTUNE_IO);
    assert_int_equal(dittune_query_set(query, "size", "3.5", why, sizeof why), DITTUNE_USAGE);
    dittune_text_free(text);
    dittune_export_free(words);
    dittune_answer_free(answer);
    dittune_query_free(query);
    dittune_db_close(db);
}

static void prints_nothing_and_keeps_nothing_open(void **state)
{
    (void)state;
    struct dittune_machine *machine = session_begin(3);
    int files = count_names("/proc/self/fd", ""), kept[2];
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++) {
        int into = open(at(i == 0 ? "out" : "err"), O_CREAT | O_WRONLY, 0644);
        kept[i] = dup(1 + i);
        assert_true(into >= 0 && kept[i] >= 0);
        dup2(into, 1 + i);
        close(into);
    }
    use_all(machine);
    fflush(stdout);
    fflush(stderr);
    for (int i = 0; i < 2; i++) {
        struct stat info;
        dup2(kept[i], 1 + i);
        close(kept[i]);
        assert_int_equal(stat(at(i == 0 ? "out" : "err"), &info), 0);
        assert_int_equal(info.st_size, 0);
    }
    assert_int_equal(count_names("/proc/self/fd", ""), files);
    dittune_machine_free(machine);
}

static void leaves_signals_and_directory(void **state)
{
    (void)state;
    struct dittune_machine *machine = session_begin(3);
    struct sigaction before[32], after;
    char here[4096], there[4096];
    mode_t mask = umask(022);
    umask(mask);
    for (int i = 1; i < 32; i++)
        assert_int_equal(sigaction(i, NULL, &before[i]), 0);
    assert_non_null(getcwd(here, sizeof here));
    use_all(machine);
    assert_non_null(getcwd(there, sizeof there));
    assert_string_equal(here, there);
    for (int i = 1; i < 32; i++) {
        assert_int_equal(sigaction(i, NULL, &after), 0);
        assert_true(before[i].sa_handler == after.sa_handler);
    }
    assert_int_equal(umask(mask), mask);
    dittune_machine_free(machine);
}

/* tests/api/locale.sh makes such a locale; without it this is the C locale twice. */
static void ignores_the_locale(void **state)
{
    (void)state;
    const char *wanted = getenv("DITTUNE_TEST_LOCALE");
    if (wanted != NULL)
        assert_non_null(setlocale(LC_ALL, wanted));
    char before[256], point[8];
    snprintf(before, sizeof before, "%s", setlocale(LC_ALL, NULL));
    snprintf(point, sizeof point, "%s", localeconv()->decimal_point);
    if (wanted != NULL)
        assert_string_equal(point, ",");
    struct dittune_machine *machine = session_begin(3);
    use_all(machine);
    dittune_machine_free(machine);
    assert_string_equal(setlocale(LC_ALL, NULL), before);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(prints_nothing_and_keeps_nothing_open, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(leaves_signals_and_directory, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(ignores_the_locale, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
