/* SPDX-License-Identifier: MIT */
/* visits - the incumbent is measured again while a session searches, as the machine may become slower or faster
 *
 * Plans are dropped when they are slower than the incumbent, whose samples may be minutes old. So it is visited every few trials, and soon
 * after each drop. When it takes longer than before, beyond noise, the trials since the last good visit are undone: their plans are tried
 * again, beside the incumbent as it is now. From then on trials have the slowdown, by which their values are divided. When the
 * incumbent is as fast as before again, the promising ones of the slow time are tried again, as load hits plans unequally.
 */
#ifndef DT_TUNER_SESSION_VISITS_H
#define DT_TUNER_SESSION_VISITS_H

#include "tuner/session/session.h"

/* Makes a visit when one is due, and tries undone plans again. Visits take a tenth of the time at most. */
dt_status dt_visits_make(struct dt_session *session) DT_MUST_CHECK;

/* Times as long as its trial says that the incumbent takes now. */
double dt_visits_times(const struct dt_session *session, const struct dt_result *incumbent);

#endif
