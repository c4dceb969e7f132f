/* SPDX-License-Identifier: MIT */
/* show - prints a look-up's answer for people */
#ifndef DT_TUNER_CLI_LOOKUP_SHOW_H
#define DT_TUNER_CLI_LOOKUP_SHOW_H

#include "base/text.h"
#include "db/lookup/lookup.h"

/* The plan as one line, usable as --plan of other commands, then its evidence. */
void dt_show_answer(const struct dt_answer *answer, struct dt_text *out);

/* A warning for readers who see only the plan, one sentence; none for an exact answer. */
void dt_show_warning(const struct dt_answer *answer, struct dt_text *out);

#endif
