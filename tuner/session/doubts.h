/* SPDX-License-Identifier: MIT */
/* doubts - why the figures of a session decide nothing (dt_session_doubt), and how much time a decision takes
 *
 * Nothing here runs a plan or reads a clock: a session that is read back from its journal gets the same doubts.
 */
#ifndef DT_TUNER_SESSION_DOUBTS_H
#define DT_TUNER_SESSION_DOUBTS_H

#include "tuner/session/session.h"

/* Estimated seconds of a session whose final comparison has the sets to decide, from what trials, starts and preparations
 * took; 0: unknown. Where no plan ran it is a lower bound. */
double dt_doubts_budget(const struct dt_session *session);

/* Appends ": a decided answer needs about 12 min at this pace: give it --budget 12m"; nothing when the budget is longer. */
void dt_doubts_need(const struct dt_session *session, struct dt_text *out);

#endif
