/* SPDX-License-Identifier: MIT */
/* upkeep - maintenance of a store: checks, merges, repairs
 *
 *     struct dt_upkeep upkeep = {.tell = print, .context = stdout};
 *     DT_TRY(dt_upkeep_verify(directory, &upkeep));
 *
 * Each finding and action is reported as one sentence and counted. Only dt_upkeep_gc and
 * dt_upkeep_remove delete anything: replaced files are renamed.
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
    /* (optional) Makes the provisional entry of a session that did not end, from its journal: a new
     * reference, or NULL. rebuild calls it for journals without a result. */
    dt_status (*revive)(const char *path, json_t **entry);
    int done, notes, broken; /* sentences of each kind */
    int64_t bytes;           /* size of the files that gc removes */
};

/* Reports a sentence and counts it. */
void dt_upkeep_say(struct dt_upkeep *upkeep, enum dt_tell kind, const char *format, ...)
    DT_FORMAT(3, 4);

/* Reads best.json, best.json.1 and every journal whole: versions, checksums, each entry and its id,
 * each record. Damage is reported with its place; DT_ECORRUPT when there is any. */
dt_status dt_upkeep_verify(const char *directory, struct dt_upkeep *upkeep) DT_MUST_CHECK;

/* A new array of the entries of a store, without "id" and "crc". Reports when best.json.1 had to be
 * read, and each line that is no entry, which is left out: upkeep->broken counts them. */
dt_status dt_upkeep_entries(const char *directory, struct dt_upkeep *upkeep,
                            json_t **entries) DT_MUST_CHECK;

/* Appends an export of these entries for another store; JSON programs may re-indent it. */
dt_status dt_upkeep_export(const json_t *entries, struct dt_text *text) DT_MUST_CHECK;

/* The entries of such a file, or of any best.json, in any layout. In a best.json that another
 * program laid out, each "crc" that cannot be compared is dropped, with a report. DT_EUSAGE;
 * DT_ECORRUPT: a newer dittune wrote it. */
dt_status dt_upkeep_read(const char *path, struct dt_upkeep *upkeep,
                         json_t **entries) DT_MUST_CHECK;

/* Offers the store entries from elsewhere. Each is checked, and merged when the store has none of
 * its identity, or only a provisional one while it is decided, or an older one of the same kind.
 * Merged entries are written to a journal first, so that a rebuild finds them. A broken best.json
 * is a warning when best.json.1 is good, DT_ECORRUPT when not. DT_ECORRUPT, too, when some were no
 * entries (the others are taken). */
dt_status dt_upkeep_take(const char *directory, const json_t *entries, const char *from,
                         struct dt_upkeep *upkeep) DT_MUST_CHECK;

/* Rebuilds best.json from the results in all journals, revived ones included, by the rule of take;
 * salvage: also from every line with a right crc in best.json, best.json.1 and renamed bad files,
 * and without unreadable journals (otherwise DT_EIO). The old file is renamed. DT_ECORRUPT when
 * there are no results, or a newer dittune wrote the old file. */
dt_status dt_upkeep_rebuild(const char *directory, bool salvage,
                            struct dt_upkeep *upkeep) DT_MUST_CHECK;

/* Removes (really) or only lists the entries with these ids; their journals stay. DT_ECORRUPT:
 * nothing is removed from a damaged store. */
dt_status dt_upkeep_remove(const char *directory, const uint64_t ids[], size_t count, bool really,
                           struct dt_upkeep *upkeep) DT_MUST_CHECK;

/* Removes (really) or only lists files older than `days`: journals without an entry,
 * and renamed bad files. */
dt_status dt_upkeep_gc(const char *directory, int64_t days, bool really,
                       struct dt_upkeep *upkeep) DT_MUST_CHECK;

#endif
