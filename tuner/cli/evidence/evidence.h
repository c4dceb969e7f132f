/* SPDX-License-Identifier: MIT */
/* evidence - what the sessions in a store say of a plan
 *
 * A session is read back from its journal and judged again (tuner/session/replay.h); nothing is measured. Times of one
 * session are compared with each other only, since the machine may have changed between two.
 */
#ifndef DT_TUNER_CLI_EVIDENCE_EVIDENCE_H
#define DT_TUNER_CLI_EVIDENCE_EVIDENCE_H

#include "tuner/session/replay.h"

/* The newest session of the target's work on this machine, perhaps under another objective, batch or limit, in which the plan was
 * tried; without one, the newest of them. dt_replay_fini frees it. DT_OK with target NULL: there is none. */
dt_status dt_evidence_find(const char *directory, const struct dt_target *target,
                           const json_t *plan, struct dt_replay *replay) DT_MUST_CHECK;

/* The same where no worker is asked: the newest session of the engine ("xdit", "xdit:0.7.0") with the model, of any job and any
 * machine, in which the plan's text names a tried plan; *point is set to it. DT_OK with target NULL: there is none. */
dt_status dt_evidence_of_engine(const char *directory, const char *engine, const char *model,
                                const char *plan, struct dt_replay *replay,
                                struct dt_point *point) DT_MUST_CHECK;

/* A feasible plan: its time as predicted and as measured, against the measured plans that differ from it in one parameter
 * (or in how the ranks share the work), and against the default. As text, and a new reference to the fields of
 * `explain --json`. */
json_t *dt_evidence_plan(const struct dt_replay *replay, const struct dt_target *target,
                         const struct dt_point *point, struct dt_text *out);

#endif
