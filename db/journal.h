/* SPDX-License-Identifier: MIT */
/* journal - a session's log: one record a line, safe against a torn end
 *
 * A record is "\n" + compact JSON + "\n" (newline first, so a torn tail never spoils the next
 * record), one write() with O_APPEND and one fdatasync. dt_journal_add adds "v", "seq", "run",
 * "t_wall_ns", "t_mono_ns" and, last, "crc": CRC-32C (Castagnoli), eight hex digits, of the
 * bytes before `,"crc"`.
 */
#ifndef DT_DB_JOURNAL_H
#define DT_DB_JOURNAL_H

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

struct dt_journal;

/* Creates directory/runs/<id>.jsonl; id is time, pid and random. */
dt_status dt_journal_open(const char *directory, struct dt_journal **journal) DT_MUST_CHECK;
/* A file of any name, which is replaced when the journal is saved before it is
 * closed (base/replace.h). */
dt_status dt_journal_create(const char *path, struct dt_journal **journal) DT_MUST_CHECK;
/* DT_EIO; DT_FAILED: there is no record in it, or one could not be written. */
dt_status dt_journal_save(struct dt_journal *journal) DT_MUST_CHECK;
/* Borrowed: <id> of its name, and the path of its file. */
const char *dt_journal_id(const struct dt_journal *journal);
const char *dt_journal_path(const struct dt_journal *journal);
/* (optional) Called with each record that a journal of this program has written,
 * without its newlines. */
extern void (*dt_journal_added)(const char *record, size_t size);

/* kind: "session", "trial", "final", "best", "end", ...; record is borrowed,
 * its fields are kept. */
dt_status dt_journal_add(struct dt_journal *journal, const char *kind,
                         const json_t *record) DT_MUST_CHECK;
/* A file of dt_journal_create that was not saved is removed. NULL is fine. */
void dt_journal_close(struct dt_journal *journal);

/* A shallow copy of a record without the fields that dt_journal_add adds; NULL: memory is short. */
json_t *dt_journal_bare(const json_t *record);

/* Reads a journal, one record after the other:
 *
 *     struct dt_journal_reader reader = {.path = path};
 *     while (dt_journal_next(&reader))
 *         if (strcmp(reader.kind, "trial") == 0)
 *             reader.status = take(reader.record);
 *     DT_TRY(dt_journal_end(&reader));
 *
 * Damaged lines (a wrong crc, no JSON) are left out and counted. Set before the first record: */
struct dt_journal_reader {
    const char *path;  /* in messages, too */
    const char *bytes; /* read instead of the file; NULL: the file is read */
    size_t bytes_size; /* size of bytes */
    /* any program may have written the lines, one JSON object each: a crc must be right where there
     * is one, and the first damaged line ends the reading with DT_ECORRUPT */
    bool foreign;
    bool shows_damage; /* a damaged line is given, too, with record NULL */
    dt_status status;  /* DT_EIO, DT_ENOMEM; any but DT_OK, also the caller's, ends the reading */
    json_t *record;    /* the current one; the reader owns it */
    const char *kind;  /* the record's kind; "": none */
    int line, damaged; /* number of the current line, and of damaged ones so far */
    bool torn; /* the current line is damaged and the last one, as after a kill of its writer */
    struct dt_text name; /* the rest is the reader's own */
    struct dt_text text; /* bytes of the file that are not read yet */
    size_t at;
    int fd;
    bool open, last, over, ended;
};

/* The next record; false: there are no more, or an error ended the reading. */
bool dt_journal_next(struct dt_journal_reader *reader) DT_MUST_CHECK;
/* Ends the reading, at any time; returns its status. The counts can still be read. */
dt_status dt_journal_end(struct dt_journal_reader *reader) DT_MUST_CHECK;

/* CRC-32C (Castagnoli: polynomial 0x1edc6f41, reflected) of the bytes; 0 of none. */
uint32_t dt_crc32c(const void *bytes, size_t size);

#endif
