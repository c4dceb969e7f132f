/* SPDX-License-Identifier: MIT */
/* ctest: threads */
/* Nine threads look up, in a store that they share and in ones that they open, while two replace
 * its entries: every answer is of one version, whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/api/session.h"
#include "tests/lib/dose.h"

#include <pthread.h>
#include <stdatomic.h>

enum { ENTRIES = 12, READERS = 9, WRITERS = 2, COMMITS = 25 };

static int turns(void)
{
    return dose_thin() ? 20 : 60;
}

struct shared {
    const struct dittune_db *db;
    const struct dittune_machine *machine;
    const struct dittune_query *queries[ENTRIES];
    atomic_int bad, exact, writing;
};

/* The number that the entry was made with, by its gain; -1 when its plan is of another. */
static int number_of(const struct dittune_answer *answer)
{
    double ratio, low, high;
    int64_t tile, tiles[] = {32, 64, 128};
    if (!dittune_answer_gain(answer, &ratio, &low, &high) || low + high != 2 * ratio ||
        dittune_answer_integer(answer, "tile_q", &tile) != DITTUNE_OK)
        return -1;
    int number = (int)ratio - 1;
    return tile == tiles[number % 3] ? number : -1;
}

static void look(struct shared *shared, const struct dittune_db *db, size_t i, bool first)
{
    struct dittune_answer *answer = NULL;
    if (dittune_lookup(db, shared->queries[i], &answer, NULL, 0) != DITTUNE_OK ||
        dittune_answer_tier(answer) != DITTUNE_EXACT) {
        atomic_fetch_add(&shared->bad, 1);
        return;
    }
    int number = number_of(answer);
    atomic_fetch_add(&shared->exact, 1);
    if (number < 0 || (first && number != (int)i) || (size_t)number % ENTRIES != i)
        atomic_fetch_add(&shared->bad, 1);
    dittune_answer_free(answer);
}

/* Asks an own question about the shared machine, and writes out the whole answer. */
static void write_out(struct shared *shared, size_t i)
{
    struct dittune_query *query = session_ask(shared->machine, i);
    struct dittune_answer *answer = session_answer(shared->db, query);
    struct dittune_export *words = NULL;
    char *text = NULL;
    if (dittune_answer_json(answer, "entry", &text, NULL, 0) != DITTUNE_OK ||
        strstr(text, "\"tile_q\":") == NULL ||
        dittune_export_new(answer, "xdit", "argv", &words, NULL, 0) != DITTUNE_OK)
        atomic_fetch_add(&shared->bad, 1);
    dittune_export_free(words);
    dittune_text_free(text);
    dittune_answer_free(answer);
    dittune_query_free(query);
}

/* The shared store stays the first version; a store opened by the thread may be any version. */
static void *read_many(void *context)
{
    struct shared *shared = context;
    for (int turn = 0; turn < turns(); turn++) {
        struct dittune_db *db = NULL;
        if (dittune_db_open(scratch, &db, NULL, 0) != DITTUNE_OK) {
            atomic_fetch_add(&shared->bad, 1);
            continue;
        }
        for (size_t i = 0; i < ENTRIES; i++) {
            look(shared, shared->db, i, true);
            look(shared, db, i, false);
        }
        (void)dittune_db_is_outdated(db);
        write_out(shared, (size_t)turn % ENTRIES);
        dittune_db_close(db);
    }
    return NULL;
}

/* Entry i gets the numbers i + ENTRIES, i + 2 ENTRIES, ... in turn. */
static dt_status replace(const struct dt_machine *machine, size_t number)
{
    struct dt_query *query = NULL;
    dt_status status = made_query(machine, number % ENTRIES, &query);
    json_t *entry =
        status == DT_OK ? made_entry(dt_query_key(query), dt_query_hard(query), number) : NULL;
    if (status == DT_OK)
        do
            status = dt_store_put(scratch, entry);
        while (status == DT_ELOCK); /* locks are not fair: on a slow disk a writer may time out */
    json_decref(entry);
    dt_query_free(query);
    return status;
}

static void *write_many(void *context)
{
    struct shared *shared = context;
    struct dt_machine *machine = NULL;
    size_t which = (size_t)atomic_fetch_add(&shared->writing, 1);
    dt_status status =
        dt_machine_parse(MADE_MACHINE, strlen(MADE_MACHINE), "the machine", &machine);
    for (size_t k = 0; k < COMMITS && status == DT_OK; k++)
        status = replace(machine, ENTRIES + WRITERS * k + which);
    if (status != DT_OK)
        atomic_fetch_add(&shared->bad, 1);
    dt_machine_free(machine);
    return NULL;
}

static void threads_read_whole_answers_while_writers_commit(void **state)
{
    (void)state;
    struct dittune_machine *machine = session_begin(ENTRIES);
    struct dittune_db *db = session_open();
    struct shared shared = {.db = db, .machine = machine};
    pthread_t threads[READERS + WRITERS];
    for (size_t i = 0; i < ENTRIES; i++)
        shared.queries[i] = session_ask(machine, i);
    for (int i = 0; i < READERS + WRITERS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < READERS ? read_many : write_many, &shared), 0);
    for (int i = 0; i < READERS + WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(shared.bad, 0);
    assert_int_equal(shared.exact, READERS * turns() * ENTRIES * 2);
    assert_int_equal(dittune_db_is_outdated(db), 1);

    /* a store that is opened now has the last numbers */
    struct dittune_db *last = session_open();
    assert_int_equal(dittune_db_count(last), ENTRIES);
    assert_int_equal(dittune_db_is_outdated(last), 0);
    for (size_t number = WRITERS * COMMITS; number < ENTRIES + WRITERS * COMMITS; number++) {
        struct dittune_answer *answer = session_answer(last, shared.queries[number % ENTRIES]);
        assert_int_equal(number_of(answer), number);
        dittune_answer_free(answer);
    }
    for (size_t i = 0; i < ENTRIES; i++)
        dittune_query_free((struct dittune_query *)shared.queries[i]);
    dittune_machine_free(machine);
    dittune_db_close(db);
    dittune_db_close(last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_read_whole_answers_while_writers_commit,
                                        scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
