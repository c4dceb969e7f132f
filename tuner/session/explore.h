/* SPDX-License-Identifier: MIT */
/* explore - the search's part of a session: its inputs, its trials, and why it stopped */
#ifndef DT_TUNER_SESSION_EXPLORE_H
#define DT_TUNER_SESSION_EXPLORE_H

#include "tuner/session/session.h"

/* Where starts take long: notes, once, how many groups of plans trials and the final comparison start. Before the first trial this is known
 * of a worker that took long to say hello. */
void dt_explore_starts(struct dt_session *session);

/* Runs trials until the search stops or the time for trials is over. The known trials are done before. */
dt_status dt_explore(struct dt_session *session) DT_MUST_CHECK;

/* Goes on with it, by trials that are expected to end until then. Nothing when it stopped. */
dt_status dt_explore_more(struct dt_session *session, int64_t until_ns) DT_MUST_CHECK;

#endif
