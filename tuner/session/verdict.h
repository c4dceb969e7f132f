/* SPDX-License-Identifier: MIT */
/* verdict - decides from a session's samples: plans to compare, the best plan, and the verdict
 *
 * Nothing here runs a plan or reads a clock: a session that is read back from its journal gets the same verdict.
 */
#ifndef DT_TUNER_SESSION_VERDICT_H
#define DT_TUNER_SESSION_VERDICT_H

#include "tuner/measure/measure.h"
#include "tuner/session/session.h"

#define DT_CANDIDATES 3 /* of a shoot-out */

/* Lists the best eligible trials other than the default, best first; returns their number. */
int dt_verdict_candidates(const struct dt_session *session,
                          const struct dt_result *top[DT_CANDIDATES]);

/* The winner of a shoot-out, -1: none. entrants: the default, then the candidates. Sets the ties. */
int dt_verdict_choose(struct dt_session *session, const struct dt_entrant entrants[], int n);

/* Best and verdict of the session from the entrants of its final comparison. */
void dt_verdict_decide(struct dt_session *session);

/* Begins a further comparison: what the last one found is kept as session->earlier. */
void dt_verdict_again(struct dt_session *session);
/* Of the two the later one counts, unless the earlier one found a faster plan and the later one none, or one that is slower than it. */
void dt_verdict_settle(struct dt_session *session);
void dt_verdict_drop(struct dt_session_finals *finals); /* frees its entrants */

/* Appends why the comparison with the challenger says nothing, though it has enough sets; nothing: it does. */
void dt_verdict_unresolved(const struct dt_session *session, struct dt_text *out);

/* Sets a provisional result when there was no final comparison. */
void dt_verdict_end(struct dt_session *session);

/* The entrant runs the default plan. */
bool dt_verdict_default(const struct dt_session *session, const struct dt_entrant *entrant);

/* The failure shows that the plan cannot run here: a wrong answer; or no trial of it ran, and the failure is permanent
 * (out of memory: twice), or is what the rule said that a default plan breaks. */
bool dt_verdict_cannot_run(const struct dt_session *session, const struct dt_result *result);

#endif
