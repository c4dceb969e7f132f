/* SPDX-License-Identifier: MIT */
#include "search/bayes/memory.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_erf.h>
#include <math.h>

enum { PEAKS = 2 }; /* needed for a model */

dt_status dt_memory_init(struct dt_memory *memory, const struct dt_cloud *cloud,
                         const struct dt_process_priors *priors, int64_t capacity_bytes)
{
    *memory = (struct dt_memory){.capacity = capacity_bytes > 0 ? log((double)capacity_bytes) : NAN,
                                 .largest = -INFINITY};
    return dt_process_init(&memory->process, cloud, priors);
}

void dt_memory_fini(struct dt_memory *memory)
{
    dt_process_fini(&memory->process);
}

/* Log bytes above which a plan does not fit. */
static double limit(const struct dt_memory *memory)
{
    return isfinite(memory->capacity) ? memory->capacity : memory->largest;
}

dt_status dt_memory_ran(struct dt_memory *memory, int candidate, int64_t bytes)
{
    if (bytes <= 0)
        return DT_OK;
    memory->measured++;
    memory->largest = fmax(memory->largest, log((double)bytes));
    DT_TRY(dt_process_add(&memory->process, candidate, log((double)bytes), 0));
    /* Before the first fit the unit of the values would still be 1: two peaks give one. */
    return memory->measured <= PEAKS ? dt_process_scale(&memory->process) : DT_OK;
}

/* Mean and variance of a normal above a limit (Johnson, Kotz 1970, 13.7.1): with z = (limit - mean) / deviation and the
 * hazard h, mean + deviation h and variance (1 + z h - h^2). Divided by the belief it leaves the normal observed. */
dt_status dt_memory_overran(struct dt_memory *memory, int candidate, bool *learnt)
{
    *learnt = memory->measured >= PEAKS;
    if (!*learnt)
        return DT_OK;
    memory->failures++;
    double mean = dt_process_mean(&memory->process, candidate);
    double deviation = dt_process_deviation(&memory->process, candidate);
    double z = (limit(memory) - mean) / deviation, h = gsl_sf_hazard(z);
    double left = fmax(1 + z * h - h * h, 1e-6), above = mean + deviation * h;
    if (left > 1 - 1e-6) /* the model already expected it to be too large */
        return DT_OK;
    double variance = deviation * deviation * left / (1 - left);
    double value = mean + (above - mean) / (1 - left);
    return dt_process_add(&memory->process, candidate, value, variance);
}

double dt_memory_fits(const struct dt_memory *memory, int candidate)
{
    if (memory->measured < PEAKS || (memory->failures == 0 && !isfinite(memory->capacity)))
        return 1;
    double deviation = dt_process_deviation(&memory->process, candidate);
    return gsl_cdf_ugaussian_P((limit(memory) - dt_process_mean(&memory->process, candidate)) /
                               deviation);
}
