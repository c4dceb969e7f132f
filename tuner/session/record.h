/* SPDX-License-Identifier: MIT */
/* record - a session as JSON: for the store, for the journal's end, for --json */
#ifndef DT_TUNER_SESSION_RECORD_H
#define DT_TUNER_SESSION_RECORD_H

#include "tuner/session/session.h"

/* The object of `tune --json` (docs/json.md), new reference. */
json_t *dt_record_session(const struct dt_session *session);

/* Stores the results so far as provisional, in case the session is killed: if a better plan would otherwise be missing
 * from the store for more than a minute, given that the next call is in wait_ns. A failure to store does not end the
 * session. */
void dt_record_now(struct dt_session *session, int64_t wait_ns);

#endif
