/* SPDX-License-Identifier: MIT */
/* stored - the fields of an entry of the store (db/entry.def), and the verdict of its session
 *
 *     struct dt_stored_entry entry;
 *     dt_record_read(&dt_record_stored_entry, json, &entry);    -- borrows from json
 *
 * Fields unknown to this version are in the JSON only: to change an entry,
 * change a copy of the JSON.
 */
#ifndef DT_DB_STORED_H
#define DT_DB_STORED_H

#include "base/record.h"

#define DT_KIND_key     json_t *
#define DT_KIND_hard    json_t *
#define DT_KIND_soft    json_t *
#define DT_KIND_plan    json_t *     /* an object of numbers, words and true or false */
#define DT_KIND_journal const char * /* a file's name, never a path */
#define DT_KIND_network json_t *
#define DT_KIND_space   json_t *
extern const struct dt_kind dt_kind_key, dt_kind_hard, dt_kind_soft, dt_kind_plan, dt_kind_journal,
    dt_kind_network, dt_kind_space;

#define DT_TOP_MOST    3  /* best plans */
#define DT_PARETO_MOST 32 /* most plans of the front; the fastest stay */

#include "base/record_structs.h"

#include "db/entry.def"

/* The verdict of a session: DT_VERDICT_NONE, DT_VERDICT_FASTER, ... (db/verdict.def) */
enum dt_verdict {
#define DT_VERDICT(name, text, why) DT_VERDICT_##name,
#include "db/verdict.def"
#undef DT_VERDICT
    DT_VERDICTS
};
const char *dt_verdict_text(enum dt_verdict verdict);
/* The verdict of a text that a session wrote; DT_VERDICT_NONE: there is none, or this
 * version does not know it. */
enum dt_verdict dt_verdict_of(const char *text);
/* A clause that says why it decided nothing, so that it replaces no entry that
 * did; NULL: it decided. */
const char *dt_verdict_why(enum dt_verdict verdict);
bool dt_verdict_provisional(enum dt_verdict verdict);

/* Which of two entries of one question has the better evidence, whoever writes, merges or rebuilds
 * a store: above 0 the first, below 0 the second. A decided one; of two that are provisional, of
 * one space, and measured with the same versions, where no check has judged one the one of more
 * plans, then of more sets of fresh processes. 0: neither, and the newer one stays. */
int dt_stored_evidence(const struct dt_stored_entry *one, const struct dt_stored_entry *other);

/* A field of a hard fingerprint that older stores lack, so that it is compared only where both
 * sides have it: the processor's family, model and stepping. */
#define DT_HARD_CPU "cpu"
bool dt_stored_same_hard(const json_t *one, const json_t *other);
/* Each field of part, which may lack some, is that of hard. */
bool dt_stored_has_hard(const json_t *hard, const json_t *part);

/* Nanoseconds of a whole batch of images whose step takes step_ns; without text encoder and VAE
 * where they are not known. */
int64_t dt_image_ns(const struct dt_image_time *image, int64_t step_ns, int batch);

#endif
