/* SPDX-License-Identifier: MIT */
/* resume - goes on with a session of the same work that was killed, interrupted, or had too little time
 *
 * Its trials are read from its journal, judged again, and copied into the new session's journal: the new one is then complete, and may
 * be resumed itself. The time that it spent counts. A trial that had begun and not ended is run again once; a plan that was running
 * when a session ended twice is left out.
 */
#ifndef DT_TUNER_SESSION_RESUME_H
#define DT_TUNER_SESSION_RESUME_H

#include "tuner/session/session.h"

/* Takes over the trials of the session that dt_session_resume found; nothing without one. By dt_session_run. */
dt_status dt_resume_trials(struct dt_session *session) DT_MUST_CHECK;

/* Measures the default plan again, briefly, and notes what it took before and takes now. The result is kept in the journal only.
 * Nothing without a session that is resumed, or when there is no time for it or nothing left to measure. */
dt_status dt_resume_recheck(struct dt_session *session) DT_MUST_CHECK;

#endif
