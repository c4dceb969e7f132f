/* SPDX-License-Identifier: MIT */
/* show - an answer of the store for people */
#ifndef DT_TUNER_CLI_LOOKUP_SHOW_H
#define DT_TUNER_CLI_LOOKUP_SHOW_H

#include "base/text.h"
#include "db/lookup/lookup.h"

/* The plan as one line, which other commands take as --plan, then what it rests on. */
void dt_show_answer(const struct dt_answer *answer, struct dt_text *out);

/* What a reader must know who only sees the plan, one sentence; nothing for a plan that was measured for what was asked. */
void dt_show_warning(const struct dt_answer *answer, struct dt_text *out);

#endif
