/* SPDX-License-Identifier: MIT */
/* Minus the log posterior density of the hyper-parameters and its gradient (Rasmussen, Williams 2006, eq. 5.8 and 5.9),
 * with a normal prior on the logarithm of each, minimised by BFGS from several starts. Each logarithm is held inside
 * BOUND of its median: outside, the likelihood stays what it is at the edge and the prior leads back. */
#include "search/bayes/process_int.h"

#include <gsl/gsl_cblas.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <string.h>

#define BOUND 7.0 /* a factor of 1,100 */

enum { MOST = DT_DIMS_MAX + 2, STEPS = 40 };

int dt_fit_parameters(const struct dt_process *process)
{
    return process->cloud->dims + 2;
}

static struct dt_hyper prior_of(const struct dt_process *process, int parameter)
{
    const struct dt_process_priors *priors = &process->priors;
    if (parameter < process->cloud->dims)
        return priors->length;
    return parameter == process->cloud->dims ? priors->signal : priors->noise;
}

/* The kernel and the noise of theta; held[i]: parameter i is beyond its bound. */
static double read_theta(const struct dt_process *process, const double theta[],
                         struct dt_kernel *kernel, bool held[])
{
    double at[MOST] = {0};
    for (int i = 0; i < dt_fit_parameters(process); i++) {
        double middle = log(prior_of(process, i).median);
        at[i] = exp(fmin(fmax(theta[i], middle - BOUND), middle + BOUND));
        held[i] = fabs(theta[i] - middle) > BOUND;
    }
    const int dims = process->cloud->dims;
    *kernel = process->kernel;
    for (int d = 0; d < dims; d++)
        kernel->length[d] = at[d];
    kernel->signal = at[dims];
    return at[dims + 1];
}

/* K and, below the diagonal, what its derivatives need. r2 goes into k first. */
static void fill(struct dt_fit *fit, const struct dt_kernel *kernel, double noise)
{
    const struct dt_cloud *cloud = fit->process->cloud;
    const size_t n = (size_t)fit->n;
    for (size_t i = 0; i < n; i++) {
        double *k = fit->k + i * n;
        memset(k, 0, (i + 1) * sizeof *k);
        for (int d = 0; d < cloud->dims; d++) {
            const double *x = fit->x + (size_t)d * n, at = x[i];
            const double square = 1 / (kernel->length[d] * kernel->length[d]);
            for (size_t j = 0; j < i; j++) {
                double distance = x[j] - at;
                k[j] +=
                    cloud->label[d] ? (distance != 0 ? square : 0) : distance * distance * square;
            }
        }
        for (size_t j = 0; j <= i; j++) {
            dt_kernel_matern(k[j], &fit->matern[i * n + j], &fit->slope[i * n + j]);
            k[j] = kernel->constant + kernel->slope * fit->f[i] * fit->f[j] +
                   kernel->signal * fit->matern[i * n + j];
        }
        k[i] += noise + fit->v[i];
    }
}

/* log likelihood, negated; the factor into k, alpha = K^-1 z. */
static double likelihood(struct dt_fit *fit)
{
    const size_t n = (size_t)fit->n;
    gsl_matrix_view k = gsl_matrix_view_array(fit->k, n, n);
    if (gsl_linalg_cholesky_decomp1(&k.matrix) != 0)
        return INFINITY;
    memcpy(fit->alpha, fit->z, n * sizeof *fit->z);
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, fit->n, fit->k, fit->n,
                fit->alpha, 1);
    double cost = cblas_ddot(fit->n, fit->alpha, 1, fit->alpha, 1) / 2;
    cblas_dtrsv(CblasRowMajor, CblasLower, CblasTrans, CblasNonUnit, fit->n, fit->k, fit->n,
                fit->alpha, 1);
    for (size_t i = 0; i < n; i++)
        cost += log(fit->k[i * n + i]);
    return cost;
}

/* -1/2 tr((alpha alpha' - K^-1) dK / d theta), a parameter at a time; the factor in k becomes K^-1. */
static void slopes(struct dt_fit *fit, const struct dt_kernel *kernel, double noise,
                   double gradient[])
{
    const struct dt_cloud *cloud = fit->process->cloud;
    const size_t n = (size_t)fit->n;
    const int dims = cloud->dims;
    gsl_matrix_view k = gsl_matrix_view_array(fit->k, n, n);
    gsl_linalg_cholesky_invert(&k.matrix);
    memset(gradient, 0, (size_t)dt_fit_parameters(fit->process) * sizeof *gradient);
    for (size_t i = 0; i < n; i++) {
        double *weight = fit->slope + i * n;
        for (size_t j = 0; j <= i; j++) {
            double a = fit->alpha[i] * fit->alpha[j] - fit->k[i * n + j];
            double share = i == j ? 0.5 : 1;
            gradient[dims] -= share * a * kernel->signal * fit->matern[i * n + j];
            weight[j] *= a * kernel->signal;
        }
        gradient[dims + 1] -= 0.5 * (fit->alpha[i] * fit->alpha[i] - fit->k[i * n + i]) * noise;
        for (int d = 0; d < dims; d++) {
            const double *x = fit->x + (size_t)d * n, at = x[i];
            double sum = 0;
            for (size_t j = 0; j < i; j++) {
                double distance = x[j] - at;
                sum += weight[j] * (cloud->label[d] ? distance != 0 : distance * distance);
            }
            gradient[d] -= sum / (kernel->length[d] * kernel->length[d]);
        }
    }
}

double dt_fit_cost(struct dt_fit *fit, const double theta[], double gradient[])
{
    struct dt_kernel kernel;
    bool held[MOST];
    double noise = read_theta(fit->process, theta, &kernel, held);
    fill(fit, &kernel, noise);
    double cost = likelihood(fit);
    if (gradient != NULL && isfinite(cost))
        slopes(fit, &kernel, noise, gradient);
    for (int i = 0; i < dt_fit_parameters(fit->process); i++) {
        struct dt_hyper prior = prior_of(fit->process, i);
        double off = (theta[i] - log(prior.median)) / prior.spread;
        cost += off * off / 2;
        if (gradient != NULL)
            gradient[i] = (held[i] || !isfinite(cost) ? 0 : gradient[i]) + off / prior.spread;
    }
    return cost;
}

static double cost_at(const gsl_vector *theta, void *fit)
{
    return dt_fit_cost(fit, theta->data, NULL);
}

static void both_at(const gsl_vector *theta, void *fit, double *cost, gsl_vector *gradient)
{
    *cost = dt_fit_cost(fit, theta->data, gradient->data);
}

static void gradient_at(const gsl_vector *theta, void *fit, gsl_vector *gradient)
{
    (void)dt_fit_cost(fit, theta->data, gradient->data);
}

/* From theta downhill; theta is the best found, whose cost is returned. */
static double descend(struct dt_fit *fit, double theta[])
{
    const size_t n = (size_t)dt_fit_parameters(fit->process);
    gsl_multimin_function_fdf function = {cost_at, gradient_at, both_at, n, fit};
    gsl_multimin_fdfminimizer *minimiser =
        gsl_multimin_fdfminimizer_alloc(gsl_multimin_fdfminimizer_vector_bfgs2, n);
    if (minimiser == NULL)
        return dt_fit_cost(fit, theta, NULL);
    gsl_vector_view start = gsl_vector_view_array(theta, n);
    gsl_multimin_fdfminimizer_set(minimiser, &function, &start.vector, 0.3, 0.1);
    double before = gsl_multimin_fdfminimizer_minimum(minimiser);
    for (int step = 0; step < STEPS; step++) {
        if (gsl_multimin_fdfminimizer_iterate(minimiser) != 0)
            break;
        double cost = gsl_multimin_fdfminimizer_minimum(minimiser);
        if (gsl_multimin_test_gradient(minimiser->gradient, 1e-2) == GSL_SUCCESS ||
            (step > 4 && before - cost < 1e-3))
            break;
        before = cost;
    }
    gsl_vector_memcpy(&start.vector, gsl_multimin_fdfminimizer_x(minimiser));
    double cost = gsl_multimin_fdfminimizer_minimum(minimiser);
    gsl_multimin_fdfminimizer_free(minimiser);
    return cost;
}

/* Of dt_process_scale, the factors left alone. */
static void standardise(struct dt_process *process)
{
    double mean = 0, squares = 0;
    process->centre = 0;
    process->scale = 1;
    for (int i = 0; i < process->n; i++)
        mean += dt_process_target(process, i) / process->n;
    process->centre = mean;
    for (int i = 0; i < process->n; i++)
        squares += pow(dt_process_target(process, i), 2);
    double spread = process->n > 1 ? sqrt(squares / (process->n - 1)) : 0;
    process->scale = spread > 1e-9 ? spread : 1;
    if (process->cloud->belief != NULL)
        process->kernel.slope = process->priors.slope / (process->scale * process->scale);
}

dt_status dt_process_scale(struct dt_process *process)
{
    standardise(process);
    return dt_process_refactor(process);
}

dt_status dt_process_fit(struct dt_process *process, struct dt_rng *rng)
{
    const int n = dt_fit_parameters(process), dims = process->cloud->dims;
    struct dt_fit fit;
    standardise(process);
    DT_TRY(dt_fit_init(&fit, process, rng));
    double best[MOST] = {0}, least = INFINITY;
    for (int start = process->fitted > 0 ? -1 : 0; start < process->priors.starts; start++) {
        double theta[MOST] = {0};
        for (int i = 0; i < n; i++) {
            struct dt_hyper prior = prior_of(process, i);
            theta[i] = log(prior.median) + (start > 0 ? prior.spread * dt_rng_normal(rng) : 0);
            if (start < 0)
                theta[i] = log(i < dims    ? process->kernel.length[i]
                               : i == dims ? process->kernel.signal
                                           : process->noise);
        }
        double cost = descend(&fit, theta);
        if (cost < least) {
            least = cost;
            memcpy(best, theta, sizeof best);
        }
    }
    if (isfinite(least)) {
        bool held[MOST];
        process->noise = read_theta(process, best, &process->kernel, held);
    }
    process->fitted = process->n;
    dt_fit_fini(&fit);
    return dt_process_refactor(process);
}
