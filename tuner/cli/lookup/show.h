/* SPDX-License-Identifier: MIT */
/* show - prints a look-up's answer for people */
#ifndef DT_TUNER_CLI_LOOKUP_SHOW_H
#define DT_TUNER_CLI_LOOKUP_SHOW_H

#include "base/text.h"
#include "db/lookup/lookup.h"
#include "tuner/cli/options.h"

/* The plan as one line, usable as --plan of other commands, then its evidence; of several
 * stores, the one it is from. */
void dt_show_answer(const struct dt_answer *answer, bool several, struct dt_text *out);

/* A warning for readers who see only the plan, one sentence; none for an exact answer. */
void dt_show_warning(const struct dt_answer *answer, struct dt_text *out);

/* The job of a key if it is of --command (docs/command.md), borrowed; NULL: it is not. */
const json_t *dt_command_job(const json_t *key);

/* Appends the command of such an entry with the plan's values, one line quoted for sh: that of the
 * options, or where none is given the stored one. DT_EUSAGE: it cannot be filled in. */
dt_status dt_command_fill(const struct dt_command_options *given, const json_t *entry,
                          const json_t *plan, struct dt_text *out) DT_MUST_CHECK;

#endif
