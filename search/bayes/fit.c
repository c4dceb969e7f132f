/* SPDX-License-Identifier: MIT */
/* Minus the log posterior density of the hyper-parameters and its gradient (Rasmussen, Williams 2006, eq. 5.8 and 5.9),
 * with a normal prior on the logarithm of each, minimised by BFGS from several starts. Each logarithm is clamped within
 * BOUND of its median: outside, the likelihood keeps its value at the bound and the prior pulls back. */
#include "search/bayes/process_int.h"
#include "search/bayes/rows.h"

#include <gsl/gsl_multimin.h>
#include <math.h>
#include <string.h>

#define BOUND 7.0 /* a factor of 1,100 */

enum { MOST = DT_DIMS_MAX + 3, STEPS = 40 };

int dt_fit_parameters(const struct dt_process *process)
{
    return process->cloud->dims + 3;
}

static struct dt_hyper prior_of(const struct dt_process *process, int parameter)
{
    const struct dt_process_priors *priors = &process->priors;
    const int dims = process->cloud->dims;
    if (parameter < dims)
        return priors->length;
    return parameter == dims       ? priors->signal
           : parameter == dims + 1 ? priors->share
                                   : priors->noise;
}

/* Sets kernel and noise from theta; held[i]: parameter i is clamped at its bound. */
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
    kernel->share = at[dims + 1] / (1 + at[dims + 1]);
    return at[dims + 2];
}

static void fill_tables(const struct dt_fit *fit, const struct dt_fit_axis *axis,
                        const struct dt_kernel *kernel)
{
    const struct dt_cloud *cloud = fit->process->cloud;
    const int kinds = axis->kinds;
    const double share = kernel->share;
    for (int pair = 0; pair < kinds * kinds; pair++) {
        double r2 = 0, value, slope, square[2] = {0};
        for (int d = axis->first; d < axis->end; d++) {
            const float *x = cloud->x + (size_t)d * cloud->room;
            int a = fit->chosen[axis->of[pair / kinds]], b = fit->chosen[axis->of[pair % kinds]];
            square[d - axis->first] = dt_kernel_square(
                cloud, kernel, d, (double)x[fit->process->at[a]] - (double)x[fit->process->at[b]]);
            r2 += square[d - axis->first];
        }
        dt_kernel_matern(r2, &value, &slope);
        double factor = 1 - share + share * value;
        axis->factor[pair] = factor;
        axis->by_odds[pair] = share * (1 - share) * (value - 1) / factor;
        for (int d = 0; d < axis->end - axis->first; d++)
            axis->by_length[d * kinds * kinds + pair] = share * slope * square[d] / factor;
    }
}

/* K and the product over the axes, below the diagonal and on it. */
static void fill(struct dt_fit *fit, const struct dt_kernel *kernel, double noise)
{
    const size_t n = (size_t)fit->n;
    for (size_t i = 0; i < n * n; i++)
        fit->product[i] = kernel->signal;
    for (int a = 0; a < fit->axes; a++) {
        const struct dt_fit_axis *axis = &fit->axis[a];
        fill_tables(fit, axis, kernel);
        for (size_t i = 0; i < n; i++) {
            const double *factor = axis->factor + (size_t)(axis->kind[i] * axis->kinds);
            for (size_t j = 0; j < i; j++)
                fit->product[i * n + j] *= factor[axis->kind[j]];
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++)
            fit->k[i * n + j] =
                kernel->constant + kernel->slope * fit->f[i] * fit->f[j] + fit->product[i * n + j];
        fit->k[i * n + i] += noise + fit->v[i];
    }
}

/* log likelihood, negated; the factor into k, alpha = K^-1 z. */
static double likelihood(struct dt_fit *fit)
{
    const size_t n = (size_t)fit->n;
    if (!dt_rows_factor(fit->k, n, fit->n))
        return INFINITY;
    memcpy(fit->alpha, fit->z, n * sizeof *fit->z);
    dt_rows_solve(fit->k, n, fit->n, fit->alpha);
    double cost = dt_rows_dot(fit->alpha, fit->alpha, fit->n) / 2;
    dt_rows_solve_transposed(fit->k, n, fit->n, fit->alpha);
    for (size_t i = 0; i < n; i++)
        cost += log(fit->k[i * n + i]);
    return cost;
}

/* Sum over pairs of observations of weight times the axis' table. */
static double sum_pairs(const struct dt_fit *fit, const struct dt_fit_axis *axis,
                        const double table[])
{
    const size_t n = (size_t)fit->n;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double *row = table + (size_t)(axis->kind[i] * axis->kinds);
        const double *weight = fit->product + i * n;
        for (size_t j = 0; j < i; j++)
            sum += weight[j] * row[axis->kind[j]];
    }
    return sum;
}

/* -1/2 tr((alpha alpha' - K^-1) dK / d theta), a parameter at a time; the factor in k becomes K^-1, and the products
 * become the weights of the derivatives of their logarithms. */
static void slopes(struct dt_fit *fit, double noise, double gradient[])
{
    const size_t n = (size_t)fit->n;
    const int dims = fit->process->cloud->dims;
    dt_rows_invert(fit->k, n, fit->n);
    memset(gradient, 0, (size_t)dt_fit_parameters(fit->process) * sizeof *gradient);
    for (size_t i = 0; i < n; i++) {
        double *weight = fit->product + i * n;
        for (size_t j = 0; j <= i; j++) {
            weight[j] *= fit->alpha[i] * fit->alpha[j] - fit->k[i * n + j];
            gradient[dims] -= (i == j ? 0.5 : 1) * weight[j];
        }
        gradient[dims + 2] -= 0.5 * (fit->alpha[i] * fit->alpha[i] - fit->k[i * n + i]) * noise;
    }
    for (int a = 0; a < fit->axes; a++) {
        const struct dt_fit_axis *axis = &fit->axis[a];
        gradient[dims + 1] -= sum_pairs(fit, axis, axis->by_odds);
        for (int d = axis->first; d < axis->end; d++)
            gradient[d] -= sum_pairs(fit, axis,
                                     axis->by_length +
                                         (size_t)((d - axis->first) * axis->kinds * axis->kinds));
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
        slopes(fit, noise, gradient);
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

/* Minimises from theta; sets theta to the best found and returns its cost. */
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

/* Like dt_process_scale, but leaves the factors unchanged. */
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

/* Current value of parameter i. */
static double before(const struct dt_process *process, int i)
{
    const struct dt_kernel *kernel = &process->kernel;
    const int dims = process->cloud->dims;
    if (i < dims)
        return log(kernel->length[i]);
    return log(i == dims       ? kernel->signal
               : i == dims + 1 ? kernel->share / (1 - kernel->share)
                               : process->noise);
}

dt_status dt_process_fit(struct dt_process *process, struct dt_rng *rng)
{
    const int n = dt_fit_parameters(process);
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
                theta[i] = before(process, i);
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
