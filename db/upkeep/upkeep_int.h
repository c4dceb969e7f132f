/* SPDX-License-Identifier: MIT */
/* upkeep_int - shared by the parts of upkeep: choice between entries, files of a store */
#ifndef DT_DB_UPKEEP_UPKEEP_INT_H
#define DT_DB_UPKEEP_UPKEEP_INT_H

#include "db/upkeep/upkeep.h"

#include "db/best_int.h"

/* The best entry of each identity: an object from the canonical text of the identity to the
 * entry. All zero: there is none. */
struct dt_pick {
    json_t *entries; /* owned */
};

enum dt_offer {
    DT_OFFER_NEW,
    DT_OFFER_DECIDED, /* and the known one is provisional */
    DT_OFFER_MORE,    /* also provisional, and from more plans or sets */
    DT_OFFER_NEWER,
    DT_OFFER_SAME,
    DT_OFFER_PROVISIONAL,
    DT_OFFER_LESS,
    DT_OFFER_OLDER
};

/* Offers a copy without the fields that store and journal add. Up to NEWER: it was taken.
 * SAME: equal except for time, place and session. later: of two with one kind and time,
 * the second is taken. */
dt_status dt_pick_offer(struct dt_pick *pick, const json_t *entry, bool later,
                        enum dt_offer *offer) DT_MUST_CHECK;
/* *known is the entry of that identity, borrowed, or NULL. */
dt_status dt_pick_find(const struct dt_pick *pick, const json_t *entry,
                       json_t **known) DT_MUST_CHECK;
/* A new array, in the order of the first offers. */
json_t *dt_pick_array(const struct dt_pick *pick);
void dt_pick_fini(struct dt_pick *pick);

/* A shallow copy without the fields that store and journal add. */
json_t *dt_upkeep_bare(const json_t *entry);

/* "dit-s/2 [0123456789abcdef]": names an entry in sentences. */
dt_status dt_upkeep_name(const json_t *entry, struct dt_text *name) DT_MUST_CHECK;

/* DT_EUSAGE unless the entry's known fields have their types; the error message begins with
 * `what`. */
dt_status dt_upkeep_check(const json_t *entry, const char *what) DT_MUST_CHECK;

/* The CRC-32C of the canonical text of an entry without added fields. */
dt_status dt_upkeep_checksum(const json_t *entry, char hex[9]) DT_MUST_CHECK;

/* DT_EUSAGE when a checked entry has a "checksum", or else a "crc", that is not that of its
 * fields. */
dt_status dt_upkeep_seal(const json_t *entry, const char *what) DT_MUST_CHECK;

/* The next line of a text that has the form of an entry's; *at moves behind it. False: there is
 * none. */
bool dt_upkeep_line(const char **at, const char *stop, const char **line, size_t *size);

/* Reports the opening and this thread's error message. */
void dt_upkeep_say_error(struct dt_upkeep *upkeep, enum dt_tell kind, const char *opening);

#endif
