/* SPDX-License-Identifier: MIT */
/* trials - the first part of a session: the plans everything is judged by, then what the search asks for */
#ifndef DT_TUNER_SESSION_TRIALS_H
#define DT_TUNER_SESSION_TRIALS_H

#include "tuner/session/session.h"

/* Shares of the time: trials end at 60 %, the shoot-out at 75 %, the final comparison at the end less the time to
 * stop the last groups. */
#define DT_TRIALS_SHARE 0.60

/* Default, baseline, --against. */
dt_status dt_trials_known(struct dt_session *session) DT_MUST_CHECK;

/* Until the search has no more to ask for, or the time for trials is over. */
dt_status dt_trials_search(struct dt_session *session) DT_MUST_CHECK;

#endif
