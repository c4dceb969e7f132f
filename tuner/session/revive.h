/* SPDX-License-Identifier: MIT */
/* revive - the entry of a session that was killed, from its journal */
#ifndef DT_TUNER_SESSION_REVIVE_H
#define DT_TUNER_SESSION_REVIVE_H

#include "base/json.h"
#include "base/status.h"

/* *entry is a new reference, provisional; NULL: the journal is none of a session, the session ended, or it measured no plan that
 * could be stored. DT_EIO, DT_ENOMEM. */
dt_status dt_revive(const char *path, json_t **entry) DT_MUST_CHECK;

#endif
