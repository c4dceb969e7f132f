/* SPDX-License-Identifier: MIT */
/* objective - what "better" means: one row each in objective.c; smaller values are
 * better inside the program
 *
 * "max:NAME" maximises a number that a command prints: its worker reports the inverse as a time.
 */
#ifndef DT_TUNER_MEASURE_OBJECTIVE_H
#define DT_TUNER_MEASURE_OBJECTIVE_H

#include "base/status.h"

#include <stdbool.h>

struct dt_objective {
    const char *name, *unit,
        *doc;          /* doc is followed by the meaning of a step where one_batch is set */
    const char *spent; /* by a step, on an image: that of a mix of works adds up */
    /* Smaller is better. step: seconds of one denoising step; images: of a step of all replicas;
     * devices: held by the plan. */
    double (*value)(double step, int images, int devices);
    bool inverse;       /* people read 1 over the value */
    bool whole_image;   /* counts all denoising steps of an image, and the images of all replicas */
    bool one_batch;     /* only plans of equal batch compare */
    const char *metric; /* whose inverse is the time; NULL: times are times */
};

/* The figure people read. steps: denoising steps of an image. */
double dt_objective_shown(const struct dt_objective *objective, double step, int images,
                          int devices, int steps);

/* DT_EUSAGE for an unknown name: lists the known ones. One of "max:NAME" lives as
 * long as the process. */
dt_status dt_objective_find(const char *name, const struct dt_objective **objective) DT_MUST_CHECK;

#endif
