/* SPDX-License-Identifier: MIT */
/* target_int - the two kinds of target: the built-in network (target.c), on cores or GPUs (target_device.c), and a worker's
 * own (foreign/target.c) */
#ifndef DT_TUNER_MEASURE_TARGET_INT_H
#define DT_TUNER_MEASURE_TARGET_INT_H

#include "space/dit/dit.h"
#include "tuner/measure/target.h"

/* The network to tune. */
struct dt_target_choice {
    struct dt_network network;
    enum dt_dtype dtype;
    int size; /* pixels; 0: the network's */
};

/* Chooses back end, cores, devices, program and how ranks are started. */
dt_status dt_target_place(const struct dt_job *job, struct dt_target *target) DT_MUST_CHECK;

/* After a foreign worker's ready: its ranks run on the GPUs that dt_target_place found, or not. */
dt_status dt_target_watch(struct dt_target *target) DT_MUST_CHECK;

/* Chooses by the job, and by the device where the job leaves it open. */
dt_status dt_target_choose(const struct dt_job *job, const struct dt_target *target,
                           struct dt_target_choice *choice) DT_MUST_CHECK;

/* Fills the device's limits of plans; the caller sets the rest. */
void dt_target_limits(const struct dt_target *target, enum dt_dtype dtype,
                      struct dt_limits *limits);

/* Starts the worker once and reads its hello. */
dt_status dt_target_foreign(const struct dt_job *job, struct dt_target *target) DT_MUST_CHECK;

/* The default plan of a worker's own space, and its baseline. */
dt_status dt_target_own_plans(struct dt_target *target) DT_MUST_CHECK;

/* Steps, text encoder and VAE of an image, by hello, ready and the command line; DT_EUSAGE. */
dt_status dt_target_image(const struct dt_wanted *wanted, struct dt_target *target) DT_MUST_CHECK;

/* The number behind "name=" in a plan's text; 0 when it is not named, or plan is NULL. */
int dt_target_named(const char *plan, const char *name);

#endif
