/* SPDX-License-Identifier: MIT */
/* process_int - declarations that the files of the process share */
#ifndef DT_SEARCH_BAYES_PROCESS_INT_H
#define DT_SEARCH_BAYES_PROCESS_INT_H

#include "search/bayes/process.h"

/* Standardised value of observation i, and its noise variance. */
double dt_process_target(const struct dt_process *process, int i);
double dt_process_noise(const struct dt_process *process, int i);

/* K + noise of all observations into matrix [n, n], lower triangle; mirrored when whole. */
void dt_process_matrix(const struct dt_process *process, double matrix[], int stride);

/* An axis of a fit, as tables over pairs of its values. */
struct dt_fit_axis {
    int first, end;    /* dimensions */
    int kinds;         /* different values */
    int32_t *kind;     /* [n] index of each observation's value */
    int32_t *of;       /* [kinds] an observation with that value */
    double *factor;    /* [kinds, kinds] 1 - share + share M(r) */
    double *by_odds;   /* [kinds, kinds] derivative of its logarithm by log(share / (1 - share)) */
    double *by_length; /* [end - first, kinds, kinds] by the log lengths */
};

/* Working data of a fit: n observations and scratch memory. Theta: log lengths, log signal, log(share / (1 - share)),
 * log noise. */
struct dt_fit {
    const struct dt_process *process;
    int n, axes;
    struct dt_fit_axis axis[DT_AXES_MAX];
    int32_t *chosen;           /* [n] indices of observations */
    double *z, *v, *f, *alpha; /* [n] */
    double *k, *product;       /* [n, n] */
};
dt_status dt_fit_init(struct dt_fit *fit, const struct dt_process *process,
                      struct dt_rng *rng) DT_MUST_CHECK;
void dt_fit_fini(struct dt_fit *fit);

/* Minus the log posterior density of theta, up to a constant; its gradient unless NULL. INFINITY where K cannot be
 * factored. */
double dt_fit_cost(struct dt_fit *fit, const double theta[], double gradient[]);
int dt_fit_parameters(const struct dt_process *process);

#endif
