/* SPDX-License-Identifier: MIT */
/* memory - which candidates fit, learnt from how much those that ran took
 *
 * A process on the logarithm of the peak bytes. A plan that ran out of memory has no peak, only one above the capacity:
 * it is observed as the normal that has mean and variance of the process' own belief cut at the capacity (Tobin 1958's
 * censored value, by assumed density: Opper 1998; Minka 2001), so that the model keeps its closed form. Where nobody
 * said the capacity, it is that of the largest plan that ran.
 */
#ifndef DT_SEARCH_BAYES_MEMORY_H
#define DT_SEARCH_BAYES_MEMORY_H

#include "search/bayes/process.h"

struct dt_memory {
    struct dt_process process;
    double capacity; /* log bytes; NAN: not known */
    double largest;  /* log bytes of a success */
    int measured;    /* successes with a peak */
    int failures;    /* that it was told */
};

/* capacity_bytes 0: not known. cloud outlives it. DT_ENOMEM. */
dt_status dt_memory_init(struct dt_memory *memory, const struct dt_cloud *cloud,
                         const struct dt_process_priors *priors,
                         int64_t capacity_bytes) DT_MUST_CHECK;
void dt_memory_fini(struct dt_memory *memory);

/* A plan that ran, and what it took. */
dt_status dt_memory_ran(struct dt_memory *memory, int candidate, int64_t bytes) DT_MUST_CHECK;

/* One that did not fit. Nothing is learnt while fewer than two peaks are known: *learnt says so. */
dt_status dt_memory_overran(struct dt_memory *memory, int candidate, bool *learnt) DT_MUST_CHECK;

/* Chance that the candidate fits; 1 while nothing is known of sizes or of a limit. */
double dt_memory_fits(const struct dt_memory *memory, int candidate);

#endif
