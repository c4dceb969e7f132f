/* SPDX-License-Identifier: MIT */
/* record - a session as JSON: for the store, for the journal's end, for --json */
#ifndef DT_TUNER_SESSION_RECORD_H
#define DT_TUNER_SESSION_RECORD_H

#include "tuner/session/session.h"

/* The object of `tune --json` (docs/json.md), new reference. */
json_t *dt_record_session(const struct dt_session *session);

/* The store's entry (docs/database.md), or NULL when there is nothing to store. */
json_t *dt_record_entry(const struct dt_session *session);

/* Starts and ends the session's journal; stores the entry. */
dt_status dt_record_begin(struct dt_session *session, const char *directory) DT_MUST_CHECK;
dt_status dt_record_end(struct dt_session *session, const char *directory) DT_MUST_CHECK;

#endif
