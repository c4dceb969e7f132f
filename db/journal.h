/* SPDX-License-Identifier: MIT */
/* journal - a session's log: one record a line, safe against a torn end
 *
 * A record is "\n" + compact JSON + "\n" (newline first, so a torn tail never spoils the next record), one write() with
 * O_APPEND and one fdatasync. dt_journal_add adds "v", "seq", "run", "t_wall_ns", "t_mono_ns" and, last, "crc": CRC-32C
 * (Castagnoli), eight hex digits, of the bytes before `,"crc"`.
 */
#ifndef DT_DB_JOURNAL_H
#define DT_DB_JOURNAL_H

#include "base/json.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct dt_journal;

/* Creates directory/runs/<id>.jsonl; id is time, pid and random. */
dt_status dt_journal_open(const char *directory, struct dt_journal **journal) DT_MUST_CHECK;
/* A file of any name, which is replaced when the journal is saved before it is closed (base/replace.h). */
dt_status dt_journal_create(const char *path, struct dt_journal **journal) DT_MUST_CHECK;
/* DT_EIO; DT_FAILED: there is no record in it, or one could not be written. */
dt_status dt_journal_save(struct dt_journal *journal) DT_MUST_CHECK;
/* Borrowed: <id> of its name, and the path of its file. */
const char *dt_journal_id(const struct dt_journal *journal);
const char *dt_journal_path(const struct dt_journal *journal);
/* (optional) Called with each record that a journal of this program has written, without its newlines. */
extern void (*dt_journal_added)(const char *record, size_t size);

/* kind: "session", "trial", "final", "best", "end", ...; record is borrowed, its fields are kept. */
dt_status dt_journal_add(struct dt_journal *journal, const char *kind,
                         const json_t *record) DT_MUST_CHECK;
/* A file of dt_journal_create that was not saved is removed. NULL is fine. */
void dt_journal_close(struct dt_journal *journal);

/* Calls visit for each good record of a journal (borrowed); *bad counts the records that fail their crc or are not JSON. */
dt_status dt_journal_read(const char *path, void (*visit)(const json_t *record, void *context),
                          void *context, int *bad) DT_MUST_CHECK;

/* Like dt_journal_read, and calls damaged for each damaged line; torn: it is the last one, as after a kill of its
 * writer. */
dt_status dt_journal_verify(const char *path, void (*visit)(const json_t *record, void *context),
                            void (*damaged)(int line, bool torn, void *context),
                            void *context) DT_MUST_CHECK;

/* Reads records that any program may have written, one JSON object a line: a crc must be right where there is one. Ends
 * at the first damaged line, DT_ECORRUPT with its number, or at an error of visit. */
dt_status dt_journal_scan(const char *path,
                          dt_status (*visit)(const json_t *record, int line, void *context),
                          void *context) DT_MUST_CHECK;

/* The same for bytes in memory; messages use name as the path. */
dt_status dt_journal_scan_bytes(const char *name, const char *bytes, size_t size,
                                dt_status (*visit)(const json_t *record, int line, void *context),
                                void *context) DT_MUST_CHECK;

/* CRC-32C (Castagnoli: polynomial 0x1edc6f41, reflected) of the bytes; 0 of none. */
uint32_t dt_crc32c(const void *bytes, size_t size);

#endif
