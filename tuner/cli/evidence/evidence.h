/* SPDX-License-Identifier: MIT */
/* evidence - what the sessions in a store say of a plan
 *
 * A session is read back from its journal and judged again (tuner/session/replay.h); nothing is
 * measured. Times of one session are compared with each other only, since the machine may have
 * changed between two.
 */
#ifndef DT_TUNER_CLI_EVIDENCE_EVIDENCE_H
#define DT_TUNER_CLI_EVIDENCE_EVIDENCE_H

#include "tuner/session/replay.h"

/* The sessions looked for: those of a target's work on its machine, perhaps under another
 * objective, batch or limit; or, where no worker is asked, those of an engine ("xdit",
 * "xdit:0.7.0") with a model, of any job and any machine. */
struct dt_evidence {
    const struct dt_target *target; /* NULL: of the engine */
    const char *engine, *model;
    const json_t *plan; /* that a session should have tried; NULL: its text */
    const char *words;
};

/* The newest such session in which the plan was tried, and *point is that plan of its space;
 * of a target without one, the newest of them. dt_replay_fini frees it. DT_OK with target
 * NULL: there is none. */
dt_status dt_evidence_find(const char *directory, const struct dt_evidence *wanted,
                           struct dt_replay *replay, struct dt_point *point) DT_MUST_CHECK;

/* A feasible plan: its time as predicted and as measured, against the measured plans that differ
 * from it in one parameter (or in how the ranks share the work), and against the default. As text,
 * and a new reference to the fields of `explain --json`. */
json_t *dt_evidence_plan(const struct dt_replay *replay, const struct dt_target *target,
                         const struct dt_point *point, struct dt_text *out);

#endif
