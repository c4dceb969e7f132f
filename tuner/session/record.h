/* SPDX-License-Identifier: MIT */
/* record - a session as JSON: for the store, for the journal's end, for --json */
#ifndef DT_TUNER_SESSION_RECORD_H
#define DT_TUNER_SESSION_RECORD_H

#include "tuner/session/session.h"

/* The default's value over the entrant's, above 1 is a gain: ratio, interval, pairs; null without a comparison. */
json_t *dt_record_gain(const struct dt_entrant *entrant);

/* Stores what is known so far as provisional, for the case that the session is killed: when a better plan was found that the
 * store would lack for more than a minute if it were not stored for the next wait_ns. That it cannot be stored ends nothing. */
void dt_record_now(struct dt_session *session, int64_t wait_ns);

#endif
