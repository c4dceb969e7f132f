/* SPDX-License-Identifier: MIT */
/* doubts - why the figures of a session decide nothing (dt_session_doubt), and how much time a decision takes
 *
 * Nothing here runs a plan or reads a clock: a session that is read back from its journal gets the same doubts.
 */
#ifndef DT_TUNER_SESSION_DOUBTS_H
#define DT_TUNER_SESSION_DOUBTS_H

#include "tuner/session/session.h"

/* Sets clock.need_seconds once, from what trials, starts and preparations took so far: where a decided answer needs more than this session
 * has, or, when it has ended, where it lacked time. */
void dt_doubts_budget(struct dt_session *session);

/* A further set would have fitted into the budget: something else than time ended the final comparison. */
bool dt_doubts_time_left(const struct dt_session *session);

#endif
