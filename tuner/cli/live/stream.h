/* SPDX-License-Identifier: MIT */
/* stream - --json-stream: one JSON object a line on standard output while a command runs
 * (docs/json.md, Events)
 *
 * From dt_stream_open on, journals copy their records to it as they write them; the other events
 * are made here. When its reader ends, the command goes on without it.
 */
#ifndef DT_TUNER_CLI_LIVE_STREAM_H
#define DT_TUNER_CLI_LIVE_STREAM_H

#include "base/json.h"

void dt_stream_open(void);
bool dt_stream_is_open(void);

/* An event of this kind; steals fields. */
void dt_stream_event(const char *kind, json_t *fields);

/* The command's answer, for the last event; steals it. */
void dt_stream_keep(json_t *answer);

/* The event "result". code: the exit code; error: "" without one. False: a write has failed for
 * another reason than that the reader had ended. */
bool dt_stream_end(int code, const char *error) DT_MUST_CHECK;

#endif
