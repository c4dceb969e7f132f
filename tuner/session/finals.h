/* SPDX-License-Identifier: MIT */
/* finals - from trials to a verdict: the shoot-out of the top candidates, then the final comparison */
#ifndef DT_TUNER_SESSION_FINALS_H
#define DT_TUNER_SESSION_FINALS_H

#include "tuner/session/session.h"

/* Sets entrants, rounds, best, ties and verdict of the session. */
dt_status dt_finals_run(struct dt_session *session) DT_MUST_CHECK;

/* Estimated seconds of eight rounds of the plans known so far and `more` like the default, from the trials. */
double dt_finals_seconds(const struct dt_session *session, int more);

/* The same for a shoot-out of plans like the default. */
double dt_finals_shootout_seconds(const struct dt_session *session);

#endif
