/* SPDX-License-Identifier: MIT */
/* finals - from trials to a verdict: the shoot-out of the top candidates, then the final comparison */
#ifndef DT_TUNER_SESSION_FINALS_H
#define DT_TUNER_SESSION_FINALS_H

#include "tuner/session/session.h"

/* Sets entrants, rounds, best, ties and verdict of the session. found: a plan that looks faster than what an earlier comparison
 * found, which stays where the new one finds nothing better; NULL: there was none. */
dt_status dt_finals_run(struct dt_session *session, const struct dt_point *found) DT_MUST_CHECK;

/* The best plan tried since the last comparison began, where its trial's value is below so many times that of the comparison's winner;
 * NULL: there is none. */
const struct dt_result *dt_finals_promising(const struct dt_session *session, double times);

/* Until then trials leave the time for another shoot-out and comparison. */
int64_t dt_finals_latest(const struct dt_session *session);

/* Estimated seconds of eight rounds of the plans known so far and `more` like the default, from the trials. */
double dt_finals_seconds(const struct dt_session *session, int more);

/* The same for a shoot-out of plans like the default. */
double dt_finals_shootout_seconds(const struct dt_session *session);

#endif
