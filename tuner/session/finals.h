/* SPDX-License-Identifier: MIT */
/* finals - from trials to a verdict: the shoot-out of the top candidates, then the final comparison */
#ifndef DT_TUNER_SESSION_FINALS_H
#define DT_TUNER_SESSION_FINALS_H

#include "tuner/session/session.h"
#include "tuner/trial/noise.h"

/* Sets entrants, rounds, best, ties and verdict of the session. */
dt_status dt_finals_run(struct dt_session *session) DT_MUST_CHECK;

/* Seconds that eight rounds of the plans known so far and `more` like the default will about take, from the trials. */
double dt_finals_seconds(const struct dt_session *session, int more);

/* The result is ok and keeps --max-latency. */
bool dt_session_eligible(const struct dt_session *session, const struct dt_result *result);

/* What the default's twin says in the final comparison, pairs 0 without one: the margin within which all is a tie. */
struct dt_noise dt_session_noise(const struct dt_session *session);
/* Why there is no twin, or what is wrong with the noise; nothing when all is well. */
void dt_session_noise_note(const struct dt_session *session, struct dt_text *out);

#endif
