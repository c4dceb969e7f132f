/* SPDX-License-Identifier: MIT */
/* trials - runs plans one at a time and keeps the results: first the known plans, then those of the search */
#ifndef DT_TUNER_SESSION_TRIALS_H
#define DT_TUNER_SESSION_TRIALS_H

#include "tuner/session/session.h"

#define DT_FIRST_MOST 3 /* default, baseline, --against */

/* Default, baseline, --against. Plans with temporary failures (dt_outcome_may_pass) are tried again after them. */
/* On several hosts: measures the links, and says what they are. */
dt_status dt_trials_links(struct dt_session *session) DT_MUST_CHECK;
dt_status dt_trials_known(struct dt_session *session) DT_MUST_CHECK;

/* These plans in the order in which they are tried; returns their number. */
int dt_trials_first(const struct dt_session *session, const struct dt_point *first[DT_FIRST_MOST]);

/* The default, the baseline or --against. */
bool dt_trials_is_known(const struct dt_session *session, const struct dt_point *point);

/* When the search ended early: retries its plans with such failures once, if there are at most three. */
dt_status dt_trials_strays(struct dt_session *session) DT_MUST_CHECK;

/* Plans that were tried while others kept the cores busy are tried again, the most promising first, while there is time for trials and
 * a little beyond: load hits plans unequally, and those that it dropped may be the best. */
dt_status dt_trials_disturbed(struct dt_session *session) DT_MUST_CHECK;

/* The most promising plan of those whose trials a visit of the incumbent undid (visits.h), if there is one. */
dt_status dt_trials_undone(struct dt_session *session) DT_MUST_CHECK;

/* It was tried fewer than three times. */
bool dt_trials_may_try(const struct dt_session *session, const struct dt_point *point);

/* The last attempt of the known plans, before the final comparison: they get half of the remaining time. */
dt_status dt_trials_last(struct dt_session *session) DT_MUST_CHECK;

/* One trial of at most this share of the time, into the session's list. racing: it ends when the plan is slower than the
 * best so far. */
dt_status dt_trials_try(struct dt_session *session, const struct dt_point *point, bool racing,
                        double share) DT_MUST_CHECK;

#endif
