/* SPDX-License-Identifier: MIT */
/* target_int - what a worker's own target (foreign/) shares with that of the built-in network (target.c) */
#ifndef DT_TUNER_MEASURE_TARGET_INT_H
#define DT_TUNER_MEASURE_TARGET_INT_H

#include "space/dit/dit.h"
#include "tuner/measure/target.h"

/* Starts the worker once and reads its hello. */
dt_status dt_target_foreign(const struct dt_job *job, struct dt_target *target) DT_MUST_CHECK;

/* The default plan of a worker's own space, and its baseline. */
dt_status dt_target_own_plans(struct dt_target *target) DT_MUST_CHECK;

/* The number behind "name=" in a plan's text; 0 when it is not named, or plan is NULL. */
int dt_target_named(const char *plan, const char *name);

#endif
