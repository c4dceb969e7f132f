/* SPDX-License-Identifier: MIT */
/* best - one version of best.json as a tree, and back to text
 *
 *     {"format":"dittune-best","version":{"major":1,"minor":0},"incompat":[],"compat":[],
 *      "checksum":"<CRC-32C of the canonical entries>","entries":[...]}
 *
 * A newer minor version, or a word in "compat", may be read; a newer major version, or a word in "incompat", may not;
 * none of them may be written by this version.
 */
#ifndef DT_DB_BEST_INT_H
#define DT_DB_BEST_INT_H

#include "base/json.h"

enum dt_best_state {
    DT_BEST_ABSENT, /* no file */
    DT_BEST_GOOD,
    DT_BEST_READONLY, /* of a newer minor version: fine to read, not ours to write */
    DT_BEST_NEWER,    /* not ours to read */
    DT_BEST_BROKEN
};

struct dt_best {
    enum dt_best_state state;
    json_t *root;        /* owned; of GOOD and READONLY */
    struct dt_text text; /* owned; the bytes of the file */
};

/* Reads directory/name. DT_OK whatever the state; the sentence of READONLY, NEWER and BROKEN is in dt_message().
 * DT_EIO, DT_ENOMEM when it cannot tell. */
dt_status dt_best_load(int directory, const char *path, const char *name,
                       struct dt_best *best) DT_MUST_CHECK;
void dt_best_fini(struct dt_best *best);

/* A tree without entries, or NULL. */
json_t *dt_best_new(void);

/* Gives root a fresh checksum and replaces text by its file, one entry a line. What the loader would refuse (too large,
 * too deep) is refused here: DT_EUSAGE. */
dt_status dt_best_text(json_t *root, struct dt_text *text) DT_MUST_CHECK;

/* Whether the entry's key and fingerprint.hard are these. */
dt_status dt_best_match(const json_t *entry, const json_t *key, const json_t *hard,
                        bool *match) DT_MUST_CHECK;

/* DT_EUSAGE unless entry has the objects "key", "fingerprint" {"hard"} and "plan". */
dt_status dt_best_check_entry(const json_t *entry) DT_MUST_CHECK;

#endif
