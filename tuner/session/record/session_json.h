/* SPDX-License-Identifier: MIT */
/* session_json - a session as the store and programs have it: its entry, and what --json prints */
#ifndef DT_TUNER_SESSION_RECORD_SESSION_JSON_H
#define DT_TUNER_SESSION_RECORD_SESSION_JSON_H

#include "base/json.h"
#include "tuner/session/session.h"

/* The entry, new reference, or NULL when there is nothing to store. wall_ns: when it is made; 0:
 * the session is read back. */
json_t *dt_entry(const struct dt_session *session, enum dt_verdict verdict, int64_t wall_ns);

/* Adds what the entry and the record of the session have of the work: a network that is no preset,
 * and a foreign worker's space. */
void dt_entry_add_work(const struct dt_target *target, json_t *object);

/* The entry of a session that was killed, from its journal. *entry is a new reference, provisional;
 * NULL: the journal is not of a session, the session ended, or it measured no plan that could be
 * stored. DT_EIO, DT_ENOMEM. */
dt_status dt_revive(const char *path, json_t **entry) DT_MUST_CHECK;

/* The object of `tune --json` (docs/json.md), new reference. */
json_t *dt_session_json(const struct dt_session *session);

#endif
