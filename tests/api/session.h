/* SPDX-License-Identifier: MIT */
/* session - a store, a machine and questions through the public library
 *
 * Include after cmocka.h: everything here asserts.
 */
#ifndef DT_TESTS_API_SESSION_H
#define DT_TESTS_API_SESSION_H

#include "bench/lookup_speed/store.h"
#include "db/api/dittune.h"
#include "tests/db/scratch.h"

/* Entries 0 to n-1 in the scratch directory; the machine of all questions. */
static inline struct dittune_machine *session_begin(size_t n)
{
    struct dittune_machine *machine = NULL;
    char why[256] = "";
    if (made_directory(scratch, n) != DT_OK)
        fail_msg("%s", dt_message());
    if (dittune_machine_open(at("machine.json"), &machine, why, sizeof why) != DITTUNE_OK)
        fail_msg("%s", why);
    return machine;
}

static inline struct dittune_db *session_open(void)
{
    struct dittune_db *db = NULL;
    char why[512] = "";
    if (dittune_db_open(scratch, &db, why, sizeof why) != DITTUNE_OK)
        fail_msg("%s", why);
    return db;
}

/* The i-th question, sealed. */
static inline struct dittune_query *session_ask(const struct dittune_machine *machine, size_t i)
{
    struct dittune_query *query = NULL;
    struct made_word words[MADE_WORDS];
    char why[512] = "";
    made_question(i, words);
    assert_int_equal(dittune_query_new(machine, &query, why, sizeof why), DITTUNE_OK);
    for (int k = 0; k < MADE_WORDS; k++)
        if (dittune_query_set(query, words[k].name, words[k].value, why, sizeof why) != DITTUNE_OK)
            fail_msg("%s", why);
    if (dittune_query_seal(query, why, sizeof why) != DITTUNE_OK)
        fail_msg("%s", why);
    return query;
}

static inline struct dittune_answer *session_answer(const struct dittune_db *db,
                                                    const struct dittune_query *query)
{
    struct dittune_answer *answer = NULL;
    char why[512] = "";
    if (dittune_lookup(db, query, &answer, why, sizeof why) != DITTUNE_OK)
        fail_msg("%s", why);
    return answer;
}

#endif
