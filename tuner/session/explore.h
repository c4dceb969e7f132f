/* SPDX-License-Identifier: MIT */
/* explore - the search's part of a session: what it is told before it starts, what it asks for, why it stopped */
#ifndef DT_TUNER_SESSION_EXPLORE_H
#define DT_TUNER_SESSION_EXPLORE_H

#include "tuner/session/session.h"

/* Until the search has no more to ask for, or the time for trials is over. The known trials are done. */
dt_status dt_explore(struct dt_session *session) DT_MUST_CHECK;

#endif
