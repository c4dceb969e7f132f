/* SPDX-License-Identifier: MIT */
/* stores - the folders of a list of stores: $DITTUNE_STORE, --db, dittune_db_open
 *
 * Folders are separated by colons, as in $PATH. The first is where sessions write; look-ups ask all
 * of them (db/snapshot.h). An empty one is the user's data folder, so that ":/opt/plans" puts the
 * plans of an image behind the user's own.
 */
#ifndef DT_DB_STORES_H
#define DT_DB_STORES_H

#include "base/status.h"

#define DT_STORES_MOST 16

/* Not to be copied: the folders are in its room. */
struct dt_stores {
    int count; /* 1 at least */
    const char *at[DT_STORES_MOST];
    char room[8192];
};

/* list NULL: $DITTUNE_STORE; NULL or "": the user's data folder, $XDG_DATA_HOME/dittune, else
 * ~/.local/share/dittune, where home (NULL: none) is that of a user without $HOME. A folder that is
 * listed twice counts once. DT_EUSAGE: no home, or too many folders. */
dt_status dt_stores_read(const char *list, const char *home,
                         struct dt_stores *stores) DT_MUST_CHECK;

#endif
