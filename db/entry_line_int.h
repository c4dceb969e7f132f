/* SPDX-License-Identifier: MIT */
/* entry_line - one entry of best.json: its required fields and its line
 *
 *     {"id":"<16 hex>",fields...,"crc":"<8 hex>"}
 *
 * id is a hash of the identity (key and fingerprint.hard) at a fixed place, so that a reader finds a line without
 * parsing it; crc is the CRC-32C of the bytes before `,"crc"`, so that a line of a damaged file can be recovered.
 */
#ifndef DT_DB_ENTRY_LINE_INT_H
#define DT_DB_ENTRY_LINE_INT_H

#include "base/json.h"

#define DT_ENTRY_MAX_DEPTH  16
#define DT_ENTRY_MAX_STRING 4096 /* bytes, in key and fingerprint */
#define DT_ENTRY_LEAST      42   /* bytes of a line: id and crc */

/* DT_EUSAGE unless entry has the objects "key", "fingerprint" {"hard"} and "plan", and is within the limits; the error message begins with `what`. */
dt_status dt_entry_check(const json_t *entry, const char *what) DT_MUST_CHECK;

/* The entry has this key and fingerprint.hard. */
dt_status dt_entry_match(const json_t *entry, const json_t *key, const json_t *hard,
                         bool *match) DT_MUST_CHECK;

/* The id of a checked entry. */
dt_status dt_entry_id(const json_t *entry, uint64_t *id) DT_MUST_CHECK;

/* Appends the line of a checked entry; an existing "id" and "crc" are replaced. DT_EUSAGE when readers would refuse
 * it. */
dt_status dt_entry_write(const json_t *entry, struct dt_text *text) DT_MUST_CHECK;

/* The bytes have the form of a line; *id is its id. */
bool dt_entry_is_line(const char *line, size_t size, uint64_t *id);

/* The line's crc is right. */
bool dt_entry_is_whole(const char *line, size_t size);

/* Parses a line and checks the entry; the error message begins with `what`. DT_EUSAGE, DT_ENOMEM. */
dt_status dt_entry_read(const char *line, size_t size, const char *what,
                        json_t **entry) DT_MUST_CHECK;

#endif
