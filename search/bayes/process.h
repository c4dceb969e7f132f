/* SPDX-License-Identifier: MIT */
/* process - a Gaussian process over the candidates of a search
 *
 * Values y_i are observed at candidates, each with its own noise variance plus a learnt floor. The
 * posterior mean and variance of every candidate is kept up to date: an observation adds a row to
 * the Cholesky factor L of K + noise and a row to V = L^-1 K(observed, candidates), which moves the
 * means and variances of N candidates in O(n N) (Rasmussen, Williams 2006, algorithm 2.1, kept
 * between the answers). V is in single precision, n N floats.
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
#include "space/space.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DT_DIMS_MAX (2 * DT_AXES_MAX)

/* Points in columns: coordinate d of point i is x[d * room + i]. */
struct dt_cloud {
    int dims, count;
    size_t room;
    float *x;
    float *belief; /* [room] f, in the unit of the values; NULL: 0 everywhere */
    bool label[DT_DIMS_MAX];
    bool joined[DT_DIMS_MAX]; /* the previous dimension is on the same axis */
};

struct dt_kernel {
    double length[DT_DIMS_MAX];
    double share;
    double signal, constant, slope; /* variances */
};

/* (distance / length)^2 in dimension d. */
static inline double dt_kernel_square(const struct dt_cloud *cloud, const struct dt_kernel *kernel,
                                      int d, double difference)
{
    double distance = cloud->label[d] ? (difference != 0) : difference;
    return distance * distance / (kernel->length[d] * kernel->length[d]);
}

/* Sum of (distance / length)^2 over all dimensions. */
double dt_kernel_distance(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a,
                          int b);

/* Between two points of the cloud, in double precision. */
double dt_kernel_at(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a, int b);

/* Between point a and the points first .. first + count - 1, to about 1e-6 of signal. */
void dt_kernel_row(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a, int first,
                   int count, float out[]);

/* out[columns] -= sum over k of weights[k] * rows[k][columns], k from 0 to count - 1. */
void dt_rows_subtract(const float weights[], const float rows[], size_t stride, int count,
                      float out[], int columns);

/* K = L L' in place. false: K is not positive definite. */
bool dt_rows_factor(double k[], size_t stride, int n);

/* L becomes the inverse of L L'. */
void dt_rows_invert(double k[], size_t stride, int n);

/* x = L^-1 x, and L'^-1 x. */
void dt_rows_solve(const double l[], size_t stride, int n, double x[]);
void dt_rows_solve_transposed(const double l[], size_t stride, int n, double x[]);

/* Priors of the hyper-parameters: the logarithm of each is normal. Values are standardised. */
struct dt_hyper {
    double median, spread;
};
struct dt_process_priors {
    struct dt_hyper length, signal, noise;
    struct dt_hyper share;  /* prior of share / (1 - share) */
    double constant, slope; /* prior variances of b0 and b1 (struct dt_kernel) */
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

/* Adds a value of the candidate with its noise variance (0: only the floor). On DT_ENOMEM
 * nothing has changed. */
dt_status dt_process_add(struct dt_process *process, int candidate, double y,
                         double variance) DT_MUST_CHECK;

/* Removes the last observation. */
void dt_process_pop(struct dt_process *process);

/* Standardises, maximises the posterior density of the hyper-parameters and recomputes the factors.
 * Uses at most priors.points observations: half of them the smallest, the others drawn. */
dt_status dt_process_fit(struct dt_process *process, struct dt_rng *rng) DT_MUST_CHECK;

/* Standardises again; keeps the hyper-parameters. */
dt_status dt_process_scale(struct dt_process *process) DT_MUST_CHECK;

/* Recomputes the factors; keeps the hyper-parameters. */
dt_status dt_process_refactor(struct dt_process *process) DT_MUST_CHECK;

/* Mean and variance of the candidates first .. last - 1 from the factor, for candidates that
 * are new in the cloud. */
dt_status dt_process_columns(struct dt_process *process, int first, int last) DT_MUST_CHECK;

/* Posterior mean and deviation of the value without noise, in the unit of y. */
double dt_process_mean(const struct dt_process *process, int candidate);
double dt_process_deviation(const struct dt_process *process, int candidate);

/* Posterior covariance of two candidates' values, in the unit of y squared. */
double dt_process_covariance(const struct dt_process *process, int a, int b);

/* Log density of each observation given all the others (Rasmussen, Williams 2006, eq. 5.10
 * to 5.12). DT_ENOMEM. */
dt_status dt_process_leave_one_out(const struct dt_process *process,
                                   double density[]) DT_MUST_CHECK;

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

/* Working data of a fit: n observations and scratch memory. Theta: log lengths, log signal,
 * log(share / (1 - share)), log noise. */
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

/* Minus the log posterior density of theta, up to a constant; its gradient unless NULL. INFINITY
 * where K cannot be factored. */
double dt_fit_cost(struct dt_fit *fit, const double theta[], double gradient[]);
int dt_fit_parameters(const struct dt_process *process);

#endif
