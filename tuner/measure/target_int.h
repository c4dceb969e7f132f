/* SPDX-License-Identifier: MIT */
/* target_int - what a worker's own target (foreign/) shares with that of the built-in network
 * (target.c), and a target's documents (record/target.c) */
#ifndef DT_TUNER_MEASURE_TARGET_INT_H
#define DT_TUNER_MEASURE_TARGET_INT_H

#include "model/workload.h"
#include "space/dit/dit.h"
#include "tuner/measure/target.h"

/* Starts the worker once and reads its hello. */
dt_status dt_target_foreign(const struct dt_job *job, struct dt_target *target) DT_MUST_CHECK;

/* The default plan of a worker's own space, its baseline, and the plan of
 * "documented" in its hello. */
dt_status dt_target_own_plans(struct dt_target *target) DT_MUST_CHECK;

/* Plans of one host with several devices may have replicas: the rate of all of them counts. */
bool dt_target_has_replicas(const struct dt_target *target);

/* The number behind "name=" in a plan's text; 0 when it is not named, or plan is NULL. */
int dt_target_named(const char *plan, const char *name);

/* The documents of the built-in network: its key, and the workloads of its worker. batches: those
 * of the space, in ascending order. */
dt_status dt_target_write_job(struct dt_target *target, const struct dt_job *job,
                              const struct dt_workload *workload,
                              const struct dt_ints *batches) DT_MUST_CHECK;
/* The hardware, and with it the engine and the objective. */
void dt_target_write_hard(struct dt_target *target);
void dt_target_free_documents(struct dt_target *target);
/* The document of the hardware lists devices. */
bool dt_target_names_devices(const struct dt_target *target);

/* dt_group_prepare of a point of the rig's target, with its verification. */
struct dt_rig;
dt_status dt_rig_group_prepare(const struct dt_rig *rig, struct dt_group *group,
                               const struct dt_point *point, int64_t deadline_ns,
                               struct dt_prepared *prepared,
                               struct dt_failure *failure) DT_MUST_CHECK;

#endif
