/* SPDX-License-Identifier: MIT */
/* The journals of a store in their order, and what each says as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/journal.h"
#include "db/outline.h"
#include "tests/db/scratch.h"

/* The walk's names, each followed by a space; those that are not ours in brackets. */
static void names_of(struct dt_journals runs, char names[512])
{
    names[0] = '\0';
    while (dt_journals_next(&runs)) {
        size_t size = strlen(names);
        assert_string_equal(strrchr(runs.path, '/') + 1, runs.name);
        snprintf(names + size, 512 - size, dt_journals_ours(&runs) ? "%s " : "(%s) ", runs.id);
    }
    assert_int_equal(dt_journals_end(&runs), DT_OK);
}

static void the_walk(void **state)
{
    (void)state;
    char names[512];
    names_of((struct dt_journals){.directory = scratch}, names);
    assert_string_equal(names, ""); /* no folder */
    assert_int_equal(mkdir(at("runs"), 0700), 0);
    write_file(at("runs/20261124T000000Z-1-b.jsonl"), "", 0);
    write_file(at("runs/20261123T000000Z-1-a.jsonl"), "", 0);
    write_file(at("runs/20261125T000000Z-1-c.jsonl"), "", 0);
    write_file(at("runs/notes.txt"), "", 0);
    assert_int_equal(symlink("notes.txt", at("runs/z.jsonl")), 0);
    names_of((struct dt_journals){.directory = scratch}, names);
    assert_string_equal(names, "(z) 20261125T000000Z-1-c 20261124T000000Z-1-b "
                               "20261123T000000Z-1-a ");
    names_of((struct dt_journals){.directory = scratch, .oldest_first = true}, names);
    assert_string_equal(names, "20261123T000000Z-1-a 20261124T000000Z-1-b 20261125T000000Z-1-c "
                               "(z) ");
    names_of((struct dt_journals){.directory = scratch, .since = "20261124T000000Z"}, names);
    assert_string_equal(names, "(z) 20261125T000000Z-1-c 20261124T000000Z-1-b ");
    /* two of one second: processes count up */
    write_file(at("runs/20261126T090909Z-9998-d.jsonl"), "", 0);
    write_file(at("runs/20261126T090909Z-10002-a.jsonl"), "", 0);
    names_of((struct dt_journals){.directory = scratch, .since = "20261126T000000Z"}, names);
    assert_string_equal(names, "(z) 20261126T090909Z-10002-a 20261126T090909Z-9998-d ");
}

/* Ended by the caller: the rest is freed, and the caller's status comes back. */
static void an_early_end(void **state)
{
    (void)state;
    struct dt_journals runs = {.directory = scratch};
    int n = 0;
    assert_int_equal(mkdir(at("runs"), 0700), 0);
    write_file(at("runs/a.jsonl"), "", 0);
    write_file(at("runs/b.jsonl"), "", 0);
    while (dt_journals_next(&runs)) {
        runs.status = DT_EUSAGE;
        n++;
    }
    assert_int_equal(dt_journals_end(&runs), DT_EUSAGE);
    assert_int_equal(n, 1);
    write_file(at("file"), "", 0);
    runs = (struct dt_journals){.directory = at("file")};
    assert_false(dt_journals_next(&runs));
    assert_int_equal(dt_journals_end(&runs), DT_EIO);
}

static void record_add(struct dt_journal *journal, const char *kind, json_t *record)
{
    assert_int_equal(dt_journal_add(journal, kind, record), DT_OK);
    json_decref(record);
}

static void a_session(void **state)
{
    (void)state;
    struct dt_journal *journal = NULL;
    struct dt_outline outline;
    assert_int_equal(dt_journal_open(scratch, &journal), DT_OK);
    const char *path = dt_journal_path(journal);
    record_add(journal, "session",
               json_pack("{s:{s:i}, s:{s:{}}, s:I, s:{s:s, s:i, s:i}, s:{s:s}}", "key", "devices",
                         2, "fingerprint", "hard", "budget_ns", (json_int_t)7000, "list", "id",
                         "it", "work", 1, "works", 3, "worker", "engine", "vllm-omni"));
    record_add(journal, "resumed", json_pack("{s:s, s:I}", "of", "x", "spent_ns", (json_int_t)11));
    record_add(journal, "trial", json_pack("{s:i}", "n", 1));
    assert_int_equal(dt_outline_read(path, &outline), DT_OK);
    assert_true(outline.copying && !outline.ended && !outline.compared);
    assert_false(dt_outline_decided(&outline));
    dt_outline_fini(&outline);
    record_add(journal, "taken", json_pack("{s:s}", "of", "x"));
    record_add(journal, "sets", json_pack("{s:s}", "name", "shoot-out"));
    record_add(journal, "sets", json_pack("{s:s}", "name", "final comparison"));
    record_add(journal, "best", json_pack("{s:i}", "n", 1));
    record_add(journal, "best", json_pack("{s:i}", "n", 2));
    record_add(journal, "check", json_object());
    record_add(journal, "end", json_pack("{s:s}", "verdict", "faster"));
    assert_int_equal(dt_outline_read(path, &outline), DT_OK);
    assert_string_equal(outline.kind, "session");
    assert_string_equal(outline.id, dt_journal_id(journal));
    assert_string_equal(outline.list, "it");
    assert_int_equal(outline.work, 1);
    assert_int_equal(outline.works, 3);
    assert_int_equal(outline.budget_ns, 7000);
    assert_int_equal(outline.before_ns, 11);
    assert_int_equal(outline.trials, 1);
    assert_true(outline.spent_ns > 0 && outline.began_ns > 0);
    assert_true(outline.ended && outline.compared && !outline.copying);
    assert_true(dt_outline_decided(&outline));
    assert_int_equal(json_integer_value(json_object_get(outline.key, "devices")), 2);
    assert_non_null(json_object_get(outline.fingerprint, "hard"));
    assert_string_equal(dt_json_text_at(outline.worker, "engine"), "vllm-omni");
    assert_int_equal(json_array_size(outline.results), 2);
    assert_int_equal(dt_json_integer_at(json_array_get(outline.results, 1), "n"), 2);
    assert_true(outline.checks == 1 && outline.damaged == 0);
    dt_outline_fini(&outline);
    dt_outline_first(path, &outline);
    assert_string_equal(outline.kind, "session");
    assert_int_equal(outline.budget_ns, 7000);
    assert_true(!outline.ended && outline.trials == 0 && outline.results == NULL);
    assert_non_null(outline.worker);
    dt_outline_fini(&outline);
    assert_int_equal(symlink(path, at("link")), 0);
    assert_int_equal(dt_outline_read(at("link"), &outline), DT_EIO);
    assert_non_null(strstr(dt_message(), "symbolic link"));
    dt_outline_fini(&outline);
    dt_outline_first(at("none"), &outline);
    assert_string_equal(outline.kind, "");
    dt_journal_close(journal);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(the_walk), TEST(an_early_end), TEST(a_session)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
