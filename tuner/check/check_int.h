/* SPDX-License-Identifier: MIT */
/* check_int - shared by the parts of a check. All that is JSON is in record.c: entries of the store
 * are read and changed, and records of journals written and read. */
#ifndef DT_TUNER_CHECK_CHECK_INT_H
#define DT_TUNER_CHECK_CHECK_INT_H

#include "tuner/check/check.h"
#include "tuner/check/timeline.h"

/* Sets the verdict, and its reason in a sentence. DT_OK. */
dt_status dt_check_settle(struct dt_check_entry *entry, enum dt_check_verdict verdict,
                          const char *format, ...) DT_FORMAT(3, 4);

/* The command line that tunes this entry again, starting from the stored results; empty where its
 * network is not a preset, or its worker unknown, and not given, or where its image is not square,
 * since the line would tune something else. */
void dt_check_retune(struct dt_check_entry *entry, struct dt_text *out);

/* ---- entries */

/* Adds the entries of dt_check_select, in the order of the store. */
dt_status dt_check_items_read(const struct dt_check_opts *opts,
                              struct dt_check_list *list) DT_MUST_CHECK;
void dt_check_key_read(const json_t *key, const json_t *hard, struct dt_check_key *read);
/* The name of a field of the first document that the other has not, or otherwise; "": only the
 * other has more. NULL: they are equal. Of keys, and of hard fingerprints. */
const char *dt_check_differs(const json_t *document, const json_t *other);
/* The worker that the journal of the entry's session has. False: it has none, or one that
 * cannot be started again. */
bool dt_tuned_by_read(const char *directory, const struct dt_stored_entry *entry,
                      struct dt_tuned_by *by);
void dt_tuned_by_fini(struct dt_tuned_by *by);
/* Sets entry->today. */
dt_status dt_check_today(struct dt_check_entry *entry, int64_t deadline_ns) DT_MUST_CHECK;
/* Makes this change in the store, unless another program has stored a plan meanwhile, and sets
 * entry->written. now: what DT_CHECK_REPLACED says of the entry; its plans are consumed. */
dt_status dt_check_put(struct dt_check_entry *entry, enum dt_check_change change,
                       const struct dt_stored_entry *now) DT_MUST_CHECK;
/* The role of the plan that the stored gain is told over: default or documented. */
enum dt_entrant_role dt_check_opponent(const struct dt_check_entry *entry);
void dt_check_json_fini(struct dt_check_entry *entry);

/* ---- records */

/* The check record (docs/check.md). */
dt_status dt_checked_make(const struct dt_check_entry *entry, const char *retune,
                          struct dt_checked *checked) DT_MUST_CHECK;
void dt_checked_fini(struct dt_checked *checked);

/* ---- moments */

/* Called with the entry of each moment, where stored is set for an entry in the store, and the
 * moment; both own what they hold, and are freed by the callee. */
typedef void dt_moment_taker(void *context, struct dt_entry_timeline *of, struct dt_moment *moment);

/* Journals from the newest to the oldest, then the entries; checks: of journals that are no
 * session's, and no entries. */
dt_status dt_moments_read(const char *directory, bool checks, struct dt_timelines *lines,
                          dt_moment_taker *take, void *context) DT_MUST_CHECK;
void dt_moment_fini(struct dt_moment *moment);
void dt_timeline_fini(struct dt_entry_timeline *line);
/* Appends the fields that differ, separated by commas, as in "plan ranks 2 -> 4"; what: "" or "plan
 * ". Nothing where either is NULL. */
void dt_moment_add_news(const json_t *then, const json_t *now, const char *what,
                        struct dt_text *out);

#endif
