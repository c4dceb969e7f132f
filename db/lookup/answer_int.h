/* SPDX-License-Identifier: MIT */
/* answer_int - an answer and what it owns
 *
 * A checked answer of the exact tier stays beside the snapshot's entry (dt_snapshot_note) for whoever asks the same again: it
 * is then lent, and only what the clock changes is new.
 */
#ifndef DT_DB_LOOKUP_ANSWER_INT_H
#define DT_DB_LOOKUP_ANSWER_INT_H

#include "db/lookup/lookup_int.h"

struct dt_found {
    struct dt_answer answer; /* first: what callers see */
    bool lent;               /* all below belongs to another */
    char *reason, *refused;
    json_t *plan, *stale_reasons, *hint;
    int64_t stored_ns;
    bool aged; /* it is stale by its age, too */
};

/* Why stronger answers were not given: appended to. */
struct dt_refusals {
    struct dt_text text;
    int count;
};
void dt_refuse(struct dt_refusals *refusals, const struct dt_match *match, const char *why);

/* All new, DT_ENOMEM. fitted->plan is taken over in any case. */
dt_status dt_answer_of_entry(const struct dt_query *query, const struct dt_match *match,
                             const json_t *entry, struct dt_fitted *fitted,
                             const struct dt_refusals *refusals,
                             struct dt_found **found) DT_MUST_CHECK;
/* plan NULL: tier none. hint may be NULL. Both are taken over in any case. */
dt_status dt_answer_without(const struct dt_query *query, json_t *plan, json_t *hint,
                            const struct dt_refusals *refusals,
                            struct dt_found **found) DT_MUST_CHECK;
/* Another that borrows everything from found. NULL: out of memory. */
struct dt_found *dt_answer_lend(const struct dt_found *found, const struct dt_query *query);
void dt_found_free(struct dt_found *found);

/* Why a provisional entry is none that was decided: a sentence without subject. */
const char *dt_reason_provisional(const json_t *entry);

/* What the tier rests on, in words. */
void dt_reason_add(const struct dt_query *query, const struct dt_match *match, const json_t *entry,
                   const struct dt_fitted *fitted, struct dt_text *out);

#endif
