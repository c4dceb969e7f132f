/* SPDX-License-Identifier: MIT */
/* images - outputs compared, and plans named, in the tests of whole passes */
#ifndef DT_TESTS_KERNELS_IMAGES_H
#define DT_TESTS_KERNELS_IMAGES_H

#include "model/plan.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

/* ||a - b|| / ||b|| of the worst image. */
static inline double image_error(const float *a, const float *b, int images, int64_t size)
{
    double worst = 0.0;
    for (int i = 0; i < images; i++) {
        double apart = 0.0, norm = 0.0;
        for (int64_t e = i * size; e < (i + 1) * size; e++) {
            apart += ((double)a[e] - (double)b[e]) * ((double)a[e] - (double)b[e]);
            norm += (double)b[e] * (double)b[e];
        }
        double error = sqrt(apart / norm);
        worst = error > worst || isnan(error) ? error : worst;
    }
    return worst;
}

static inline const char *plan_text(const struct dt_plan *plan, char text[512])
{
    size_t used = 0;
    for (int i = 0; i < dt_param_count && used < 512; i++)
        used += (size_t)snprintf(text + used, 512 - used, "%s=%d ", dt_params[i].name,
                                 dt_plan_get(plan, i));
    return text;
}

#endif
