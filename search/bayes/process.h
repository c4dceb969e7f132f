/* SPDX-License-Identifier: MIT */
/* process - a Gaussian process over the candidates of a search
 *
 * Values y_i are observed at candidates, each with its own noise variance plus a learnt floor. The posterior mean and
 * variance of every candidate is kept up to date: an observation adds a row to the Cholesky factor L of K + noise and a
 * row to V = L^-1 K(observed, candidates), which moves the means and variances of N candidates in O(n N) (Rasmussen,
 * Williams 2006, algorithm 2.1, kept between the answers). V is in single precision, n N floats.
 *
 *     dt_process_init(&process, &cloud, &priors);
 *     dt_process_add(&process, candidate, log(seconds), variance);
 *     dt_process_fit(&process, &rng);             -- lengths, signal, noise; rarely: O(n^3), O(n^2 N)
 *     dt_process_mean(&process, candidate);       -- log(seconds)
 */
#ifndef DT_SEARCH_BAYES_PROCESS_H
#define DT_SEARCH_BAYES_PROCESS_H

#include "base/rng.h"
#include "base/status.h"
#include "search/bayes/points/kernel.h"

#include <stdint.h>

#define DT_PROCESS_BLOCK 64 /* rows of V that are allocated together */

/* Priors of the hyper-parameters: the logarithm of each is normal. Values are standardised. */
struct dt_hyper {
    double median, spread;
};
struct dt_process_priors {
    struct dt_hyper length, signal, noise;
    struct dt_hyper share;  /* of share / (1 - share) */
    double constant, slope; /* prior variances of b0 and b1 (search/bayes/points/kernel.h) */
    int starts;             /* random starts of a fit, in addition to the previous fit */
    int points;             /* largest number of observations in a fit */
};

struct dt_process {
    const struct dt_cloud *cloud;
    struct dt_process_priors priors;
    struct dt_kernel kernel;
    double noise;         /* variance of the floor, standardised */
    double centre, scale; /* y = centre + belief + scale z */
    int n, room;
    int32_t *at;             /* [n] candidate */
    double *y, *y_variance;  /* [n] */
    double *factor;          /* [room, room] lower triangle: L */
    double *beta;            /* [n] L^-1 z */
    float **blocks;          /* V, [DT_PROCESS_BLOCK, cloud->room] each */
    int block_count;         /* allocated */
    double *mean, *variance; /* [cloud->room] of z */
    double *row;             /* [room] scratch */
    int fitted;              /* observations at the last fit; 0: none yet */
};

/* cloud outlives the process and does not grow beyond its room. DT_ENOMEM. */
dt_status dt_process_init(struct dt_process *process, const struct dt_cloud *cloud,
                          const struct dt_process_priors *priors) DT_MUST_CHECK;
void dt_process_fini(struct dt_process *process);

/* Adds a value of the candidate with its noise variance (0: only the floor). On DT_ENOMEM nothing has changed. */
dt_status dt_process_add(struct dt_process *process, int candidate, double y,
                         double variance) DT_MUST_CHECK;

/* Removes the last observation. */
void dt_process_pop(struct dt_process *process);

/* Standardises, maximises the posterior density of the hyper-parameters and recomputes the factors. Uses at most
 * priors.points observations: half of them the smallest, the others drawn. */
dt_status dt_process_fit(struct dt_process *process, struct dt_rng *rng) DT_MUST_CHECK;

/* Standardises again; keeps the hyper-parameters. */
dt_status dt_process_scale(struct dt_process *process) DT_MUST_CHECK;

/* Recomputes the factors; keeps the hyper-parameters. */
dt_status dt_process_refactor(struct dt_process *process) DT_MUST_CHECK;

/* Mean and variance of the candidates first .. last - 1 from the factor, for candidates that are new in the cloud. */
dt_status dt_process_columns(struct dt_process *process, int first, int last) DT_MUST_CHECK;

/* Posterior mean and deviation of the value without noise, in the unit of y. */
double dt_process_mean(const struct dt_process *process, int candidate);
double dt_process_deviation(const struct dt_process *process, int candidate);

/* Posterior covariance of two candidates' values, in the unit of y squared. */
double dt_process_covariance(const struct dt_process *process, int a, int b);

/* Log density of each observation given all the others (Rasmussen, Williams 2006, eq. 5.10 to 5.12). DT_ENOMEM. */
dt_status dt_process_leave_one_out(const struct dt_process *process,
                                   double density[]) DT_MUST_CHECK;

#endif
