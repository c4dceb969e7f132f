/* SPDX-License-Identifier: MIT */
/* trials - plans run one at a time, and kept: the plans everything is judged by, then what the search asks for */
#ifndef DT_TUNER_SESSION_TRIALS_H
#define DT_TUNER_SESSION_TRIALS_H

#include "tuner/session/session.h"

/* Shares of the time: trials end at 60 %, the shoot-out at 75 %, the final comparison at the end less the time to
 * stop the last groups. */
#define DT_TRIALS_SHARE 0.60

/* Default, baseline, --against. One that failed in a way that may pass (dt_outcome_may_pass) is tried again after them. */
dt_status dt_trials_known(struct dt_session *session) DT_MUST_CHECK;

/* Of a search that ended before its time: its plans that failed in such a way, once more, when they are three at most. */
dt_status dt_trials_strays(struct dt_session *session) DT_MUST_CHECK;

/* The last attempt of the known plans, before the final comparison: half of the time that is left is theirs. */
dt_status dt_trials_last(struct dt_session *session) DT_MUST_CHECK;

/* One trial of at most this share of the time, into the session's list. racing: it ends when the plan is slower than the
 * best so far. */
dt_status dt_trials_try(struct dt_session *session, const struct dt_point *point, bool racing,
                        double share) DT_MUST_CHECK;

#endif
