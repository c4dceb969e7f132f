/* SPDX-License-Identifier: MIT */
/* known - plans that other sessions found best, to be tried early */
#ifndef DT_TUNER_SESSION_KNOWN_H
#define DT_TUNER_SESSION_KNOWN_H

#include "tuner/session/session.h"

/* Sets known and known_count of the session from the store: the same work, perhaps under another objective, limit or
 * batch, with other devices or on another machine; what is nearest first, and only what is feasible here. Empty if the
 * store is unreadable: saving the session reports the error. */
void dt_known_read(struct dt_session *session, const char *directory);

#endif
