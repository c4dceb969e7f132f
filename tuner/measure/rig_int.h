/* SPDX-License-Identifier: MIT */
/* rig_int - shared by preparing a plan (rig.c), verifying its output (verify.c) and observing its GPUs (observe.c) */
#ifndef DT_TUNER_MEASURE_RIG_INT_H
#define DT_TUNER_MEASURE_RIG_INT_H

#include "tuner/measure/rig.h"

/* The class of a point's group: the environment-only parameters, one "NAME=value" a line, and the ranks; plans that the worker
 * switches in place share one. */
void dt_rig_environment(const struct dt_space *space, const struct dt_point *point,
                        struct dt_text *out);
int dt_rig_ranks(const struct dt_target *target, const struct dt_point *point);

/* Memory of one device, or of all cores, that groups share; 0: unknown. */
int64_t dt_rig_memory_limit(const struct dt_target *target);

/* Of that memory: each GPU has one rank of a group, the cores' memory has all of them. */
double dt_rig_memory(const struct dt_target *target, int ranks, int64_t peak_bytes);

/* Prepares without verification; DT_FAILED with *failure when the worker fails. */
dt_status dt_rig_prepare_raw(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                             struct dt_group **group, struct dt_prepared *prepared,
                             struct dt_failure *failure) DT_MUST_CHECK;

/* The same in a group of its own that computes as the target's reference says and is stopped again. */
dt_status dt_rig_prepare_apart(struct dt_rig *rig, const struct dt_point *point,
                               int64_t deadline_ns, struct dt_prepared *prepared,
                               struct dt_failure *failure) DT_MUST_CHECK;

/* The reference of the point's batch, made at the first request; failed, with its cause, when it cannot be made: plans
 * are then not verified, and the report says so. */
dt_status dt_verify_reference(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                              const struct dt_reference **reference) DT_MUST_CHECK;

/* Sets the resident's error to the largest so far, and its outcome when this output is not finite or differs by more than
 * the tolerance. when: after "the output" in that sentence, such as "", or " after 16 steps". */
void dt_verify_judge(struct dt_rig *rig, const struct dt_outputs *output, const char *when,
                     struct dt_resident *resident);

/* Sets the resident's errors of whole images, which are only told: rounding grows over many steps, so two images of one right plan
 * may differ by any amount. image: the plan's; may be empty. */
void dt_verify_image(struct dt_rig *rig, const struct dt_outputs *image,
                     struct dt_resident *resident);

/* Largest relative error allowed to the plan of a point. */
double dt_verify_tolerance(const struct dt_rig *rig, const struct dt_point *point);

/* Sets where the ranks of a group are started (rig_hosts.c). DT_FAILED: fewer hosts are left than its plans need. */
dt_status dt_rig_hosts_place(const struct dt_rig *rig, struct dt_launch *launch,
                             struct dt_failure *failure) DT_MUST_CHECK;
/* How the start of a group ended. While no group on several hosts (or on the only one) was ready, a failure asks each host: DT_EUSAGE
 * names one that starts no rank. */
dt_status dt_rig_hosts_met(struct dt_rig *rig, const struct dt_launch *launch,
                           dt_status started) DT_MUST_CHECK;
/* DT_EUSAGE when the hosts of its ranks differ, and may not. */
dt_status dt_rig_hosts_check(const struct dt_rig *rig, const struct dt_group *group) DT_MUST_CHECK;

/* The GPUs of a foreign worker, as the controller reads them (observe.c): a run gets telemetry, and a prepared plan memory,
 * where the worker tells none. */
dt_status dt_rig_observe_begin(struct dt_rig *rig, const struct dt_group *group,
                               int ranks) DT_MUST_CHECK;
dt_status dt_rig_observe_end(struct dt_rig *rig, struct dt_run *run) DT_MUST_CHECK;
dt_status dt_rig_observe_memory(struct dt_rig *rig, const struct dt_group *group,
                                struct dt_prepared *prepared) DT_MUST_CHECK;

#endif
