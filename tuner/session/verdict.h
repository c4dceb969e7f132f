/* SPDX-License-Identifier: MIT */
/* verdict - what the samples of a session say: who is compared, who is best, and how sure that is
 *
 * Nothing here runs a plan or reads a clock: a session that was read back from its journal comes to the same verdict.
 */
#ifndef DT_TUNER_SESSION_VERDICT_H
#define DT_TUNER_SESSION_VERDICT_H

#include "tuner/measure/compare/noise.h"
#include "tuner/session/session.h"

#define DT_CANDIDATES 3 /* of a shoot-out */

/* The best eligible trials that are not the default, best first; how many. */
int dt_verdict_candidates(const struct dt_session *session,
                          const struct dt_result *top[DT_CANDIDATES]);

/* The winner of a shoot-out, -1: none. entrants: the default, then the candidates. Sets the ties. */
int dt_verdict_choose(struct dt_session *session, const struct dt_entrant entrants[], int n);

/* Best and verdict of the session from the entrants of its final comparison. */
void dt_verdict_decide(struct dt_session *session);

/* Without a final comparison what is known is provisional. */
void dt_verdict_end(struct dt_session *session);

/* The entrant runs the default plan. */
bool dt_verdict_default(const struct dt_session *session, const struct dt_entrant *entrant);

/* The worker had no memory for it, which another program may have held; not: it takes more than --max-bytes. */
bool dt_session_refused(const struct dt_session *session, const struct dt_result *result);

/* The failure shows that the plan cannot run here: a wrong answer; or no trial of it ran, and it would fail alike again (without
 * memory: it did, twice). */
bool dt_verdict_cannot_run(const struct dt_session *session, const struct dt_result *result);

/* The result is ok and keeps --max-latency. */
bool dt_session_eligible(const struct dt_session *session, const struct dt_result *result);

/* The best eligible trial so far; NULL: none. */
const struct dt_result *dt_session_leader(const struct dt_session *session);

/* Enough sets of fresh processes (or, in journals without sets, rounds) for a verdict. */
bool dt_session_enough(const struct dt_session *session);

/* What is stored may be replaced by any decided result: there was no final comparison, or it decided nothing. */
bool dt_session_provisional(const struct dt_session *session);

/* Of the objective, smaller is better; NAN: there is none. */
double dt_session_value(const struct dt_session *session, const struct dt_result *result);

/* What the default's twin says in the final comparison, pairs 0 without one: the margin within which all is a tie. */
struct dt_noise dt_session_noise(const struct dt_session *session);
/* Why there is no twin, or what is wrong with the noise; nothing when all is well. */
void dt_session_noise_note(const struct dt_session *session, struct dt_text *out);

#endif
