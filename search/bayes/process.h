/* SPDX-License-Identifier: MIT */
/* process - a Gaussian process over the candidates of a search
 *
 * Observed are values y_i at candidates, each with its own noise variance beside the floor that is learnt. What is
 * believed of every candidate, mean and variance, is always at hand: an observation adds a row to the Cholesky factor
 * L of K + noise and a row to V = L^-1 K(observed, candidates), which moves the means and variances of N candidates
 * in O(n N) (Rasmussen, Williams 2006, algorithm 2.1, kept between the answers). V is in single precision, n N floats.
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

/* What is believed of the hyper-parameters: the logarithm of each is normal. Values are standardised. */
struct dt_hyper {
    double median, spread;
};
struct dt_process_priors {
    struct dt_hyper length, signal, noise;
    struct dt_hyper share;  /* of share / (1 - share) */
    double constant, slope; /* prior variances of b0 and b1 (search/bayes/points/kernel.h) */
    int starts;             /* of a fit, beside the fit before */
    int points;             /* that a fit looks at, at most */
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

/* A value of the candidate, of that noise variance (0: only the floor). DT_ENOMEM, and nothing has changed. */
dt_status dt_process_add(struct dt_process *process, int candidate, double y,
                         double variance) DT_MUST_CHECK;

/* Takes the last observation back. */
void dt_process_pop(struct dt_process *process);

/* Standardises, finds the hyper-parameters of the greatest posterior density and starts the factors afresh. It looks
 * at no more than priors.points observations: the smallest half of them, and others drawn. */
dt_status dt_process_fit(struct dt_process *process, struct dt_rng *rng) DT_MUST_CHECK;

/* Standardises anew, the hyper-parameters as they are. */
dt_status dt_process_scale(struct dt_process *process) DT_MUST_CHECK;

/* The factors afresh, with the hyper-parameters as they are. */
dt_status dt_process_refactor(struct dt_process *process) DT_MUST_CHECK;

/* Mean and variance of the candidates first .. last - 1 from the factor: for those that are new in the cloud. */
dt_status dt_process_columns(struct dt_process *process, int first, int last) DT_MUST_CHECK;

/* Of the value without noise, in the unit of y. */
double dt_process_mean(const struct dt_process *process, int candidate);
double dt_process_deviation(const struct dt_process *process, int candidate);

/* Posterior covariance of two candidates' values, in the unit of y squared. */
double dt_process_covariance(const struct dt_process *process, int a, int b);

/* Log density of y at the candidate, noise of that variance and the floor included: what an answer says of the model. */
double dt_process_predicts(const struct dt_process *process, int candidate, double y,
                           double variance);

/* Log density of each observation given all the others (Rasmussen, Williams 2006, eq. 5.10 to 5.12). DT_ENOMEM. */
dt_status dt_process_leave_one_out(const struct dt_process *process,
                                   double density[]) DT_MUST_CHECK;

#endif
