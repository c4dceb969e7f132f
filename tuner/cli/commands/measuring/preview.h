/* SPDX-License-Identifier: MIT */
/* preview - tune --dry-run: what a session would try first, by which search, and what it needs */
#ifndef DT_TUNER_CLI_COMMANDS_MEASURING_PREVIEW_H
#define DT_TUNER_CLI_COMMANDS_MEASURING_PREVIEW_H

#include "tuner/cli/options.h"
#include "tuner/session/session.h"

/* Prints it, or with --json appends an object to results. The session is not begun; runs and writes nothing. */
dt_status dt_preview(const struct dt_options *options, struct dt_session *session,
                     json_t *results) DT_MUST_CHECK;

#endif
