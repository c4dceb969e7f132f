/* SPDX-License-Identifier: MIT */
/* memory - probability that a candidate fits the memory, learnt from trials
 *
 * A process on the logarithm of the peak bytes. A plan that ran out of memory has no peak, but its peak is above the
 * capacity: it is observed as a normal with the mean and variance of the process' prediction truncated at the capacity
 * (Tobin 1958's censored value, by assumed density: Opper 1998; Minka 2001), so that the model keeps its closed form.
 * An unknown capacity is taken as that of the largest plan that ran.
 */
#ifndef DT_SEARCH_BAYES_MEMORY_H
#define DT_SEARCH_BAYES_MEMORY_H

#include "search/bayes/process.h"

struct dt_memory {
    struct dt_process process;
    double capacity; /* log bytes; NAN: not known */
    double largest;  /* log bytes of a success */
    int measured;    /* successes with a peak */
    int failures;    /* plans that ran out of memory */
};

/* capacity_bytes 0: not known. cloud outlives it. DT_ENOMEM. */
dt_status dt_memory_init(struct dt_memory *memory, const struct dt_cloud *cloud,
                         const struct dt_process_priors *priors,
                         int64_t capacity_bytes) DT_MUST_CHECK;
void dt_memory_fini(struct dt_memory *memory);

/* Adds the peak bytes of a plan that ran. */
dt_status dt_memory_ran(struct dt_memory *memory, int candidate, int64_t bytes) DT_MUST_CHECK;

/* Adds a plan that did not fit. With fewer than two known peaks nothing is learnt (*learnt is false). */
dt_status dt_memory_overran(struct dt_memory *memory, int candidate, bool *learnt) DT_MUST_CHECK;

/* Probability that the candidate fits; 1 while sizes or the limit are unknown. */
double dt_memory_fits(const struct dt_memory *memory, int candidate);

#endif
