/* SPDX-License-Identifier: MIT */
/* Recovery by `dittune db`: from journals, from intact lines; and its removals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "db/canonical_int.h"
#include "tests/db/sessions.h"

#include <sys/wait.h>
#include <time.h>

/* Sessions at random, some provisional, some not stored in the end; then the store is lost. */
static void rebuilt_from_journals(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(3, "sessions");
    char id[128], model[8];
    int64_t best[4] = {-1, -1, -1,
                       -1}; /* the value each model must have: the last decided, else the last */
    bool decided[4] = {false};
    for (int i = 0; i < 40; i++) {
        int m = (int)dt_rng_below(&rng, 4);
        bool provisional = dt_rng_below(&rng, 2) == 0;
        snprintf(model, sizeof model, "m%d", m);
        session(entry_at(model, i, provisional, 1000 + i), !provisional || !decided[m], id);
        if (!provisional || !decided[m])
            best[m] = i;
        decided[m] = decided[m] || !provisional;
    }
    json_t *before = NULL, *after = NULL;
    struct dt_upkeep upkeep = fresh();
    assert_int_equal(dt_upkeep_entries(scratch, &upkeep, &before), DT_OK);
    unlink(at("best.json.1"));
    write_file(at("best.json"), "{", 1);
    assert_int_equal(value_of("m0"), DT_ECORRUPT - 1);
    assert_non_null(strstr(dt_message(), "dittune db rebuild"));
    upkeep = fresh();
    assert_int_equal(dt_upkeep_rebuild(scratch, false, &upkeep), DT_OK);
    for (int m = 0; m < 4; m++) {
        snprintf(model, sizeof model, "m%d", m);
        assert_int_equal(value_of(model), best[m]);
    }
    assert_int_equal(dt_upkeep_entries(scratch, &upkeep, &after), DT_OK);
    assert_int_equal(json_array_size(before), json_array_size(after));
    assert_int_equal(count_names(scratch, "best.json.bad-"), 1);
    /* a good file is set aside, too, and what no journal knows is named */
    assert_int_equal(put("no session", 9), DT_OK);
    upkeep = fresh();
    assert_int_equal(dt_upkeep_rebuild(scratch, false, &upkeep), DT_OK);
    assert_true(was_told("no session ["));
    assert_int_equal(value_of("no session"), -1);
    assert_int_equal(count_names(scratch, "best.json.old-"), 1);
    upkeep = fresh();
    assert_int_equal(dt_upkeep_rebuild(scratch, true, &upkeep), DT_OK);
    assert_int_equal(value_of("no session"), 9);
    json_decref(before);
    json_decref(after);
}

static void nothing_to_rebuild_from(void **state)
{
    (void)state;
    size_t size;
    struct dt_upkeep upkeep = fresh();
    assert_int_equal(put("a", 1), DT_OK);
    assert_int_equal(dt_upkeep_rebuild(scratch, false, &upkeep), DT_ECORRUPT);
    assert_int_equal(value_of("a"), 1);
    char *text = read_file(at("best.json"), &size);
    char *major = strstr(text, "\"major\":2");
    major[8] = '3';
    write_file(at("best.json"), text, size);
    free(text);
    assert_int_equal(dt_upkeep_rebuild(scratch, true, &upkeep), DT_ECORRUPT);
    assert_non_null(strstr(dt_message(), "written by a newer dittune"));
    assert_int_equal(count_names(scratch, "best.json"), 1);
}

/* The byte belongs to a line that begins like an entry. */
static bool in_entry(const char *bytes, size_t byte)
{
    size_t start = byte;
    while (start > 0 && bytes[start - 1] != '\n')
        start--;
    return strncmp(bytes + start, "{\"id\":", 6) == 0;
}

/* Any one byte wrong costs the entry it is in, no other. */
static void salvaged(void **state)
{
    (void)state;
    size_t size;
    char model[8];
    for (int i = 0; i < 5; i++) {
        snprintf(model, sizeof model, "m%d", i);
        assert_int_equal(put(model, i), DT_OK);
    }
    char *bytes = read_file(at("best.json"), &size);
    for (size_t byte = 0; byte < size; byte += 13) {
        struct dt_upkeep upkeep = fresh();
        scratch_remove(NULL);
        assert_int_equal(mkdir(scratch, 0755), 0);
        write_file(at("best.json"), bytes, size);
        flip(at("best.json"), byte);
        dt_status status = dt_upkeep_rebuild(scratch, true, &upkeep);
        if (status == DT_ECORRUPT) { /* a digit of the major version, or a bracket of incompat */
            assert_non_null(strstr(dt_message(), "newer dittune"));
            continue;
        }
        assert_int_equal(status, DT_OK);
        int saved = 0;
        for (int i = 0; i < 5; i++) {
            snprintf(model, sizeof model, "m%d", i);
            int64_t value = value_of(model);
            assert_true(value == i || value == -1);
            saved += value == i;
        }
        if (bytes[byte] == '\n' || bytes[byte] == ',')
            assert_in_range(saved, 3, 5);
        else
            assert_int_equal(saved, in_entry(bytes, byte) ? 4 : 5);
    }
    free(bytes);
}

static void age(const char *path, int days)
{
    struct timespec then[2] = {{.tv_sec = time(NULL) - days * 86400},
                               {.tv_sec = time(NULL) - days * 86400}};
    assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
}

/* In a child, whose process is gone afterwards. */
static void dead_session(const char *model, int64_t value, int64_t when, bool stored, char id[128])
{
    int ends[2], outcome;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        session(entry_at(model, value, false, when), stored, id);
        _exit(write(ends[1], id, 128) == 128 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_int_equal(outcome, 0);
    assert_int_equal(read(ends[0], id, 128), 128);
    close(ends[0]);
    close(ends[1]);
}

/* A journal of a merge: its result is an entry, which names the session's own journal. */
static void dead_merge(const char *model, char id[128])
{
    json_t *entry = entry_at(model, 3, false, 3);
    dead_session("not stored", 0, 0, false, id); /* for the name of a process that is gone */
    json_object_set_new(entry, "journal", json_string("elsewhere"));
    assert_int_equal(dt_store_put(scratch, entry), DT_OK);
    struct dt_journal *journal = NULL;
    assert_int_equal(dt_journal_create(journal_path(id), &journal), DT_OK);
    assert_int_equal(dt_journal_add(journal, "best", entry), DT_OK);
    assert_int_equal(dt_journal_save(journal), DT_OK);
    dt_journal_close(journal);
    json_decref(entry);
}

static void gc_spares_the_evidence(void **state)
{
    (void)state;
    char old[128], named[128], merged[128], young[128], mine[128];
    dead_session("a", 1, 1, true,
                 old); /* replaced by the next, whose journal's result is then changed */
    dead_session("a", 2, 2, true, named);
    json_t *changed = entry_at("a", 3, false, 3);
    json_object_set_new(changed, "journal", json_string(named));
    assert_int_equal(dt_store_put(scratch, changed), DT_OK);
    json_decref(changed);
    dead_merge("b", merged);
    dead_session("a", 0, 0, false, young);
    session(entry_at("c", 4, true, 4), false, mine); /* this process runs */
    write_file(at("best.json.bad-20200101T000000Z"), "x", 1);
    write_file(at("runs/notes.txt"), "x", 1);
    const char *const spared[] = {named, merged, young, mine};
    age(journal_path(old), 40);
    for (int i = 0; i < 4; i++)
        age(journal_path(spared[i]), spared[i] == young ? 20 : 40);
    age(at("best.json.bad-20200101T000000Z"), 40);
    age(at("runs/notes.txt"), 40);
    struct dt_upkeep upkeep = fresh();
    assert_int_equal(dt_upkeep_gc(scratch, 30, false, &upkeep), DT_OK);
    assert_int_equal(upkeep.done, 2);
    assert_true(was_told(old));
    assert_true(was_told("would remove"));
    assert_int_equal(access(journal_path(old), F_OK), 0);
    assert_int_equal(dt_upkeep_gc(scratch, 30, true, &upkeep), DT_OK);
    assert_int_equal(access(journal_path(old), F_OK), -1);
    assert_int_equal(access(at("best.json.bad-20200101T000000Z"), F_OK), -1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(access(journal_path(spared[i]), F_OK), 0);
    assert_int_equal(access(at("runs/notes.txt"), F_OK), 0);
    write_file(at("best.json"), "{", 1);
    assert_int_equal(dt_upkeep_gc(scratch, 0, true, &upkeep), DT_ECORRUPT);
    assert_int_equal(access(journal_path(named), F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rebuilt_from_journals),
        TEST(nothing_to_rebuild_from),
        TEST(salvaged),
        TEST(gc_spares_the_evidence),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dt_text_fini(&told);
    return failed;
}
