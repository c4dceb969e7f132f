/* SPDX-License-Identifier: MIT */
/* answer_int - an answer with the objects it owns
 *
 * A checked answer of the exact tier is cached beside the snapshot's entry (dt_snapshot_note): the next equal query
 * borrows it, and only fields that depend on the clock are new.
 */
#ifndef DT_DB_LOOKUP_ANSWER_INT_H
#define DT_DB_LOOKUP_ANSWER_INT_H

#include "db/lookup/lookup_int.h"

struct dt_found {
    struct dt_answer answer; /* first: what callers see */
    bool lent;               /* the fields below are borrowed */
    char *reason, *refused;
    json_t *plan, *stale_reasons, *hint;
    int64_t stored_ns;
    bool aged; /* also stale by age */
};

/* Reasons why stronger answers were refused, appended one by one. */
struct dt_refusals {
    struct dt_text text;
    int count;
};
void dt_refuse(struct dt_refusals *refusals, const struct dt_match *match, const char *why);

/* All new, DT_ENOMEM. Always owns fitted->plan. */
dt_status dt_answer_of_entry(const struct dt_query *query, const struct dt_match *match,
                             const json_t *entry, struct dt_fitted *fitted,
                             const struct dt_refusals *refusals,
                             struct dt_found **found) DT_MUST_CHECK;
/* plan NULL: tier none. hint may be NULL. Always owns both. */
dt_status dt_answer_without(const struct dt_query *query, json_t *plan, json_t *hint,
                            const struct dt_refusals *refusals,
                            struct dt_found **found) DT_MUST_CHECK;
/* The first match whose plan can be used, else an answer without an entry. */
dt_status dt_answer_from(const struct dt_snapshot *snapshot, const struct dt_query *query,
                         const struct dt_matches *matches, struct dt_refusals *refusals,
                         struct dt_found **found) DT_MUST_CHECK;
/* An answer from the entries tuned on the query's engine. query->asked is that question. only: an answer without an
 * entry when none has the job that was asked for; otherwise *found stays as it is. DT_EUSAGE: several could answer, and
 * differ in what was not asked for; the sentence has the values. */
dt_status dt_lookup_tuned(const struct dt_snapshot *snapshot, const struct dt_query *query,
                          bool only, struct dt_found **found) DT_MUST_CHECK;
/* A copy that borrows everything from found. NULL: out of memory. */
struct dt_found *dt_answer_lend(const struct dt_found *found, const struct dt_query *query);
void dt_found_free(struct dt_found *found);

/* Why the entry is provisional: a sentence without subject. */
const char *dt_reason_provisional(enum dt_verdict verdict);

/* Appends the basis of the tier, in words. */
void dt_reason_add(const struct dt_query *query, const struct dt_match *match, const json_t *entry,
                   const struct dt_fitted *fitted, struct dt_text *out);

#endif
