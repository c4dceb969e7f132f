/* SPDX-License-Identifier: MIT */
/* best - one version of best.json as lines, an entry a line, and a new version made of them
 *
 *     {"format":"dittune-best","version":{"major":2,"minor":0},"incompat":[],"compat":[],"entries":[
 *     {"id":...,"crc":...},
 *     {"id":...,"crc":...}
 *     ],"checksum":"<CRC-32C of all bytes before ,"checksum">"}
 *
 * The whole is one JSON value, but only its header and footer are parsed when it is loaded. Lines
 * that are not replaced are copied byte for byte, so unknown fields are preserved.
 *
 * A newer minor version, or a word in "compat", may be read; a newer major version, or a word in
 * "incompat", may not; none of them may be written by this version.
 *
 * A line is {"id":"<16 hex>",fields...,"crc":"<8 hex>"}: id is a hash of the identity (key and
 * fingerprint.hard) at a fixed place, so that a reader finds a line without parsing it; crc is the
 * CRC-32C of the bytes before `,"crc"`, so that a line of a damaged file can be recovered.
 */
#ifndef DT_DB_BEST_INT_H
#define DT_DB_BEST_INT_H

#include "base/json.h"

#define DT_BEST_MAX_BYTES   (64 * 1024 * 1024)
#define DT_BEST_MAX_ENTRIES 65536

enum dt_best_state {
    DT_BEST_ABSENT, /* no file */
    DT_BEST_GOOD,
    DT_BEST_READONLY, /* newer minor version: may be read, not written */
    DT_BEST_NEWER,    /* newer major version: must not be read */
    DT_BEST_BROKEN
};

struct dt_best_line {
    size_t at, size; /* without comma and line feed */
    uint64_t id;
};

struct dt_best {
    enum dt_best_state state;
    struct dt_text text;   /* owned; bytes of the file */
    size_t header, footer; /* the header is text[0, header), the footer from there to the end */
    struct dt_best_line *lines; /* owned; in the order of the file; of GOOD and READONLY */
    size_t count;
    uint32_t *slots; /* owned; a hash table of line numbers + 1, by id */
    size_t mask;
};

/* Reads directory/name. DT_OK in any state; for READONLY, NEWER and BROKEN dt_message() has a
 * sentence. DT_EIO, DT_ENOMEM when the state is unknown. */
dt_status dt_best_load(int directory, const char *path, const char *name,
                       struct dt_best *best) DT_MUST_CHECK;

/* Parses best->text, which is already set; error messages begin with `what`. */
dt_status dt_best_parse(const char *what, struct dt_best *best) DT_MUST_CHECK;
void dt_best_fini(struct dt_best *best);

/* Its entries may be read. */
bool dt_best_readable(const struct dt_best *best);

/* The first line with that id, and the next one with the same id as line i; -1: none. */
long dt_best_find(const struct dt_best *best, uint64_t id);
long dt_best_next(const struct dt_best *best, long i);

/* Appends a file with these entries (checked objects): each replaces the line with its key and hard
 * fingerprint, or is appended. A second line with that identity is removed. The entries must have
 * distinct identities. Where the file would be too long, the largest of them lose their "space".
 * DT_EUSAGE when it would exceed the limits of readers all the same; DT_ECORRUPT when a line that
 * may have to be replaced cannot be read. */
dt_status dt_best_put(const struct dt_best *best, const json_t *entries,
                      struct dt_text *text) DT_MUST_CHECK;

/* Appends the file without the lines that are marked. */
dt_status dt_best_drop(const struct dt_best *best, const bool drop[],
                       struct dt_text *text) DT_MUST_CHECK;

/* The state of root, a file's version and words; DT_EUSAGE when they are missing, or the version is
 * below 2. */
dt_status dt_best_version(const json_t *root, const char *what,
                          enum dt_best_state *state) DT_MUST_CHECK;

/* ---- one entry and its line */

#define DT_ENTRY_MAX_DEPTH  16
#define DT_ENTRY_MAX_STRING 4096 /* bytes, in key and fingerprint */
#define DT_ENTRY_LEAST      42   /* bytes of a line: id and crc */

/* DT_EUSAGE unless entry has the objects "key", "fingerprint" {"hard"} and "plan", and is within
 * the limits; the error message begins with `what`. */
dt_status dt_entry_check(const json_t *entry, const char *what) DT_MUST_CHECK;

/* The entry has this key and fingerprint.hard. */
bool dt_entry_match(const json_t *entry, const json_t *key, const json_t *hard);

/* The id of a checked entry. */
dt_status dt_entry_id(const json_t *entry, uint64_t *id) DT_MUST_CHECK;

/* Appends the line of a checked entry; an existing "id" and "crc" are replaced. DT_EUSAGE when
 * readers would refuse it. */
dt_status dt_entry_write(const json_t *entry, struct dt_text *text) DT_MUST_CHECK;

/* The bytes have the form of a line; *id is its id. */
bool dt_entry_is_line(const char *line, size_t size, uint64_t *id);

/* The line's crc is right. */
bool dt_entry_is_whole(const char *line, size_t size);

/* Parses a line and checks the entry; the error message begins with `what`. DT_EUSAGE,
 * DT_ENOMEM. */
dt_status dt_entry_read(const char *line, size_t size, const char *what,
                        json_t **entry) DT_MUST_CHECK;

#endif
