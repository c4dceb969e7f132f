/* SPDX-License-Identifier: MIT */
/* sessions - stores as sessions leave them, and the reports of `dittune db`
 *
 * Include after cmocka.h, as scratch.h.
 */
#ifndef DT_TESTS_DB_SESSIONS_H
#define DT_TESTS_DB_SESSIONS_H

#include "db/journal.h"
#include "db/upkeep/upkeep.h"
#include "tests/db/scratch.h"

static struct dt_text told; /* one line for each sentence: its kind, its words */

static inline void tell(enum dt_tell kind, const char *sentence, void *context)
{
    (void)context;
    dt_text_add(&told, "%d %s\n", (int)kind, sentence);
}

static inline struct dt_upkeep fresh(void)
{
    dt_text_clear(&told);
    return (struct dt_upkeep){.tell = tell};
}

static inline bool was_told(const char *words)
{
    return strstr(dt_text_at(&told), words) != NULL;
}

/* An entry as a session stores it: decided or not, at a time. */
static inline json_t *entry_at(const char *model, int64_t value, bool provisional, int64_t when)
{
    json_t *entry = make_entry(model, value);
    json_t *info = json_object_get(json_object_get(entry, "fingerprint"), "info");
    json_object_set_new(info, "t_wall_ns", json_integer(when));
    json_object_set_new(entry, "provisional", json_boolean(provisional));
    return entry;
}

/* A session that ends: its result to a journal and, when it is to be, to the store.
 * The journal's id to id. */
static inline void session(json_t *entry, bool stored, char id[128])
{
    struct dt_journal *journal = NULL;
    assert_int_equal(dt_journal_open(scratch, &journal), DT_OK);
    snprintf(id, 128, "%s", dt_journal_id(journal));
    json_object_set_new(entry, "journal", json_string(id));
    json_t *trial = json_pack("{s:i}", "ranks", 1);
    assert_int_equal(dt_journal_add(journal, "trial", trial), DT_OK);
    assert_int_equal(dt_journal_add(journal, "best", entry), DT_OK);
    dt_journal_close(journal);
    if (stored)
        assert_int_equal(dt_store_put(scratch, entry), DT_OK);
    json_decref(trial);
    json_decref(entry);
}

static inline const char *journal_path(const char *id)
{
    char name[160];
    snprintf(name, sizeof name, "runs/%s.jsonl", id);
    return at(name);
}

static inline void flip(const char *path, size_t byte)
{
    size_t size;
    char *bytes = read_file(path, &size);
    assert_true(byte < size);
    bytes[byte] = (char)(bytes[byte] ^ 1);
    write_file(path, bytes, size);
    free(bytes);
}

#endif
