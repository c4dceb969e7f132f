/* SPDX-License-Identifier: MIT */
/* tuned_by - the worker of an engine or of a user's own that tuned a stored plan, so that a check of a store needs no --engine */
#ifndef DT_TUNER_CHECK_TUNED_BY_H
#define DT_TUNER_CHECK_TUNED_BY_H

#include "base/json.h"
#include "db/journal.h"
#include "db/stored.h"
#include "tuner/machine/machine.h"

#define DT_TUNED_WORDS 64

struct dt_tuned_by {
    char program[DT_PROGRAM_ROOM];
    const char *engine;                        /* as --engine; NULL: a program of the user's */
    const char *arguments[DT_TUNED_WORDS + 1]; /* after --, NULL-ended; borrowed from record */
    json_t *record;                            /* owned */
};

/* False: the session's journal is not in the store's folder, or the program is not on this machine any more. */
bool dt_tuned_by(const char *directory, const struct dt_stored_entry *entry,
                 struct dt_tuned_by *by);
void dt_tuned_by_fini(struct dt_tuned_by *by);

#endif
