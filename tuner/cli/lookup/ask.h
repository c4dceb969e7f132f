/* SPDX-License-Identifier: MIT */
/* ask - the command line as a query of the store (db/lookup/lookup.h) */
#ifndef DT_TUNER_CLI_LOOKUP_ASK_H
#define DT_TUNER_CLI_LOOKUP_ASK_H

#include "db/lookup/lookup.h"
#include "tuner/cli/options.h"

/* Sealed. The machine is that of --machine, else the cached description, else asked of the
 * worker: only then, or with
 * --worker, is one started; never for the job of an engine. */
dt_status dt_ask(const struct dt_options *options, struct dt_query **query) DT_MUST_CHECK;

/* The question is about the plans tuned on an engine, and cannot be one about
 * the built-in network. */
bool dt_ask_is_engine(const struct dt_options *options);

/* Appends the command line, quoted for sh, that looks up the entry a session with these options
 * stored for the target: by the engine, or, where that has no call for the best plan (NULL:
 * none), by the worker. */
struct dt_target;
struct dt_point;
void dt_ask_line(const struct dt_options *options, const struct dt_target *target,
                 const struct dt_point *best, struct dt_text *out);

#endif
