/* SPDX-License-Identifier: MIT */
/* upkeep - what a store needs now and then: checks, merges, repairs
 *
 *     struct dt_upkeep upkeep = {.tell = print, .context = stdout};
 *     DT_TRY(dt_upkeep_verify(directory, &upkeep));
 *
 * Each thing that was found or done is told as one sentence; the counters say how many. Nothing is deleted but by
 * dt_upkeep_gc and dt_upkeep_remove: what is replaced keeps a name of its own.
 */
#ifndef DT_DB_UPKEEP_UPKEEP_H
#define DT_DB_UPKEEP_UPKEEP_H

#include "base/json.h"
#include "base/status.h"

enum dt_tell {
    DT_TELL_DONE,
    DT_TELL_NOTE,
    DT_TELL_BROKEN,
    DT_TELL_WARNING /* a note that must not be lost in a list */
};

struct dt_upkeep {
    void (*tell)(enum dt_tell kind, const char *sentence, void *context);
    void *context;
    /* (optional) Makes the provisional entry of a session that did not end, from its journal: a new reference, or NULL when there is
     * none to make. rebuild asks it where a journal has no result. */
    dt_status (*revive)(const char *path, json_t **entry);
    int done, notes, broken; /* sentences of each kind */
    int64_t bytes;           /* of what gc removes */
};

/* Says a sentence and counts it. */
void dt_upkeep_say(struct dt_upkeep *upkeep, enum dt_tell kind, const char *format, ...)
    DT_FORMAT(3, 4);

/* Reads best.json, best.json.1 and every journal whole: versions, checksums, each entry and its id, each record. What is
 * broken is told with its place; DT_ECORRUPT when anything is. */
dt_status dt_upkeep_verify(const char *directory, struct dt_upkeep *upkeep) DT_MUST_CHECK;

/* A new array of the entries of a store, without "id" and "crc". That best.json.1 had to be read is told, and
 * each line that is no entry, which is left out: upkeep->broken counts them. */
dt_status dt_upkeep_entries(const char *directory, struct dt_upkeep *upkeep,
                            json_t **entries) DT_MUST_CHECK;

/* Appends a file of these entries, for another store; in a format that any JSON program may re-indent. */
dt_status dt_upkeep_export(const json_t *entries, struct dt_text *text) DT_MUST_CHECK;

/* Writes a file that was not there. DT_EIO. */
dt_status dt_upkeep_write(const char *path, const struct dt_text *text) DT_MUST_CHECK;

/* The entries of such a file, or of any best.json, in any spelling. Of a best.json that another program laid out each "crc" that
 * cannot be compared is left out, and that is told. DT_EUSAGE; DT_ECORRUPT: a newer dittune wrote it. */
dt_status dt_upkeep_read(const char *path, struct dt_upkeep *upkeep,
                         json_t **entries) DT_MUST_CHECK;

/* Offers the store entries from elsewhere. Each is checked, and taken when there is none of its identity, or only a
 * provisional one while it is decided, or an older one of the same kind. What is taken is written to a journal first, so that
 * a rebuild finds it. A broken best.json is a warning when best.json.1 is good, DT_ECORRUPT when not. DT_ECORRUPT, too, when
 * some were no entries (the others are taken). */
dt_status dt_upkeep_take(const char *directory, const json_t *entries, const char *from,
                         struct dt_upkeep *upkeep) DT_MUST_CHECK;

/* Makes best.json anew from the results in all journals, revived ones included, by the rule of take; salvage: also from every line with a right
 * crc of best.json, best.json.1 and those that were set aside, and without the journals that cannot be read (DT_EIO else). The old
 * file is set aside. DT_ECORRUPT when there is nothing
 * to make it from, or a newer dittune wrote the old one. */
dt_status dt_upkeep_rebuild(const char *directory, bool salvage,
                            struct dt_upkeep *upkeep) DT_MUST_CHECK;

/* Removes (really) or only tells of the entries of these ids; their journals stay. DT_ECORRUPT: nothing is removed from a broken
 * store. */
dt_status dt_upkeep_remove(const char *directory, const uint64_t ids[], size_t count, bool really,
                           struct dt_upkeep *upkeep) DT_MUST_CHECK;

/* Removes (really) or only tells of files older than so many days: journals that no entry came from, and files that were
 * set aside. */
dt_status dt_upkeep_gc(const char *directory, int64_t days, bool really,
                       struct dt_upkeep *upkeep) DT_MUST_CHECK;

/* Writes a file of version 1 in this version; the old one is kept as best.json.v1. */
dt_status dt_upkeep_migrate(const char *directory, struct dt_upkeep *upkeep) DT_MUST_CHECK;

#endif
