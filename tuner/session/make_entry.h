/* SPDX-License-Identifier: MIT */
/* make_entry - the store's entry of a session (docs/database.md) */
#ifndef DT_TUNER_SESSION_MAKE_ENTRY_H
#define DT_TUNER_SESSION_MAKE_ENTRY_H

#include "tuner/session/session.h"

/* Sets session->fingerprint, starting the worker when its versions are not cached. A worker that does not start is no error
 * here: the session reports it, and its fingerprint lacks the worker's versions. */
void dt_entry_machine(struct dt_session *session);

/* The same with the time of now, and owning its JSON values. */
struct dt_fingerprint dt_entry_fingerprint(const struct dt_session *session);

/* Of the whole image; not known where the steps are not. source is static. */
struct dt_image_time dt_entry_image(const struct dt_target *target);

/* Adds data for readers without the worker or the model file: "space" of a foreign worker, "network" from a file. */
void dt_entry_add_work(const struct dt_target *target, json_t *object);

/* The entry, new reference, or NULL when there is nothing to store. */
json_t *dt_entry(const struct dt_session *session);

/* Keeps the figures of a shoot-out's plans, whose samples are freed when it ends. */
void dt_entry_keep_shots(struct dt_session *session, const struct dt_entrant entrants[], int n);

#endif
