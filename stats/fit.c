/* SPDX-License-Identifier: MIT */
/* The line is fitted to t / f against 1 / f and x / f, where f is the previous round's line: the
 * noise of a time is proportional to it. Dividing by the measured times instead would favour times
 * that are small by chance, and a constant left side disables gsl_multifit_robust's own scale; so
 * only the first round does it. */
#include "stats/fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#define ROUNDS 8 /* the change is below rounding after three or four */

struct system {
    const double *x, *t;
    int n;
    double unit; /* the largest x, so that both columns have similar magnitude */
    gsl_matrix *columns, *covariance;
    gsl_vector *scaled, *line;
};

static void fill_system(struct system *system, const double f[])
{
    for (int i = 0; i < system->n; i++) {
        size_t row = (size_t)i;
        gsl_matrix_set(system->columns, row, 0, 1 / f[i]);
        gsl_matrix_set(system->columns, row, 1, system->x[i] / system->unit / f[i]);
        gsl_vector_set(system->scaled, row, system->t[i] / f[i]);
    }
}

/* The line's times; the measured time where the line is not positive (a poor start). */
static void draw_residuals(const struct system *system, double f[])
{
    double a = gsl_vector_get(system->line, 0), b = gsl_vector_get(system->line, 1);
    for (int i = 0; i < system->n; i++) {
        double value = a + b * system->x[i] / system->unit;
        f[i] = value > 0 ? value : system->t[i];
    }
}

/* The spread of the relative residuals; NAN when there is no solution. */
static double least_squares(struct system *system)
{
    double squares;
    gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc((size_t)system->n, 2);
    if (work == NULL)
        return NAN;
    int code = gsl_multifit_linear(system->columns, system->scaled, system->line,
                                   system->covariance, &squares, work);
    gsl_multifit_linear_free(work);
    return code == GSL_SUCCESS ? sqrt(squares / (system->n - 2)) : NAN;
}

static double m_estimate(struct system *system, const gsl_multifit_robust_type *type)
{
    gsl_multifit_robust_workspace *work = gsl_multifit_robust_alloc(type, (size_t)system->n, 2);
    if (work == NULL)
        return NAN;
    int code = gsl_multifit_robust(system->columns, system->scaled, system->line,
                                   system->covariance, work);
    double spread = gsl_multifit_robust_statistics(work).sigma;
    gsl_multifit_robust_free(work);
    return code == GSL_SUCCESS ? spread : NAN;
}

/* Once in thousands of fits the bisquare does not converge; Huber's weights, which
 * never reject a point, do. */
static double robust_squares(struct system *system)
{
    double spread = m_estimate(system, gsl_multifit_robust_bisquare);
    return isfinite(spread) ? spread : m_estimate(system, gsl_multifit_robust_huber);
}

static double solve_system(struct system *system, bool robust)
{
    double f[DT_FIT_MOST], spread = NAN;
    for (int i = 0; i < system->n; i++)
        f[i] = system->t[i];
    for (int round = 0; round < ROUNDS; round++) {
        fill_system(system, f);
        spread = robust && round > 0 ? robust_squares(system) : least_squares(system);
        draw_residuals(system, f);
    }
    return spread;
}

static void read_line(const struct system *system, double spread, struct dt_line *line)
{
    double unit = system->unit;
    line->spread = spread;
    line->a = gsl_vector_get(system->line, 0);
    line->b = gsl_vector_get(system->line, 1) / unit;
    line->a_error = sqrt(gsl_matrix_get(system->covariance, 0, 0));
    line->b_error = sqrt(gsl_matrix_get(system->covariance, 1, 1)) / unit;
    line->covariance = gsl_matrix_get(system->covariance, 0, 1) / unit;
    for (int i = 0; i < system->n; i++)
        line->residual[i] = system->t[i] / (line->a + line->b * system->x[i]) - 1;
}

static void fit_line(struct system *system, bool robust, struct dt_line *line)
{
    system->columns = gsl_matrix_alloc((size_t)system->n, 2);
    system->covariance = gsl_matrix_alloc(2, 2);
    system->scaled = gsl_vector_alloc((size_t)system->n);
    system->line = gsl_vector_alloc(2);
    double spread = NAN;
    if (system->columns != NULL && system->covariance != NULL && system->scaled != NULL &&
        system->line != NULL)
        spread = solve_system(system, robust);
    if (isfinite(spread))
        read_line(system, spread, line);
    else
        line->why = "the fit has no solution";
    gsl_matrix_free(system->columns);
    gsl_matrix_free(system->covariance);
    gsl_vector_free(system->scaled);
    gsl_vector_free(system->line);
}

static int count_different(const double x[], int n)
{
    int different = 0;
    for (int i = 0; i < n; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen = seen || x[k] == x[i];
        different += !seen;
    }
    return different;
}

/* Reason why these points have no line; NULL: none. few: the reason when too few x differ. */
static const char *fit_objection(const struct system *system, int least, const char *few)
{
    if (system->n > DT_FIT_MOST)
        return "too many points for a fit";
    if (count_different(system->x, system->n) < least)
        return few;
    for (int i = 0; i < system->n; i++)
        if (!(system->t[i] > 0 && isfinite(system->t[i]) && system->x[i] >= 0 &&
              isfinite(system->x[i])))
            return "a time is not a positive number";
    return NULL;
}

static struct dt_line line_of(struct system system, int least, const char *few, bool robust)
{
    struct dt_line line = {.n = system.n < DT_FIT_MOST ? system.n : DT_FIT_MOST,
                           .why = fit_objection(&system, least, few)};
    for (int i = 0; i < line.n; i++) {
        line.residual[i] = NAN;
        system.unit = fmax(system.unit, system.x[i]);
    }
    if (line.why == NULL)
        fit_line(&system, robust, &line);
    return line;
}

struct dt_line dt_stats_line(const double x[], const double seconds[], int n)
{
    return line_of((struct system){.x = x, .t = seconds, .n = n}, 3,
                   "a fit needs 3 different values or more", false);
}

struct dt_alpha_beta dt_stats_alpha_beta(const double bytes[], const double seconds[], int n)
{
    struct dt_alpha_beta fit = {0};
    fit.line = line_of((struct system){.x = bytes, .t = seconds, .n = n}, 4,
                       "a fit needs 4 message sizes or more", true);
    struct dt_line *line = &fit.line;
    if (line->why == NULL && !(line->b > 0))
        line->why = "the time does not grow with the message";
    if (line->why != NULL)
        return fit;
    fit.seconds = line->a;
    fit.seconds_error = line->a_error;
    fit.bytes_per_second = 1 / line->b;
    fit.bytes_per_second_error = line->b_error / line->b / line->b;
    return fit;
}

/* Fit with one parameter, t = t1 u: least squares of the relative errors. */
static double fit_alone(const double u[], const double t[], int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += t[i] / u[i];
    return sum / n;
}

/* Both parts of the time, a and b of the line, must not be negative; a negative one is set to 0. */
static void bound_serial(const double u[], const double t[], struct dt_amdahl *fit)
{
    struct dt_line *line = &fit->line;
    double ones[DT_FIT_MOST];
    fit->bounded = line->a < 0 ? -1 : line->b < 0 ? 1 : 0;
    fit->serial = fit->bounded < 0 ? 0 : fit->bounded > 0 ? 1 : line->a / (line->a + line->b);
    fit->seconds = line->a + line->b;
    if (fit->bounded == 0)
        return;
    for (int i = 0; i < line->n; i++)
        ones[i] = fit->bounded < 0 ? u[i] : 1;
    fit->seconds = fit_alone(ones, t, line->n);
    for (int i = 0; i < line->n; i++)
        line->residual[i] = t[i] / (fit->seconds * ones[i]) - 1;
}

struct dt_amdahl dt_stats_amdahl(const double ranks[], const double seconds[], int n)
{
    double u[DT_FIT_MOST];
    for (int i = 0; i < n && i < DT_FIT_MOST; i++)
        u[i] = ranks[i] >= 1 ? 1 / ranks[i] : NAN;
    struct dt_amdahl fit = {0};
    fit.line = line_of((struct system){.x = u, .t = seconds, .n = n}, 3,
                       "a fit needs 3 rank counts or more", false);
    const struct dt_line *line = &fit.line;
    if (line->why != NULL)
        return fit;
    /* s = a / (a + b): to first order, from the covariance of a and b */
    double sum = line->a + line->b, da = line->b / sum / sum, db = -line->a / sum / sum;
    double variance = da * da * line->a_error * line->a_error +
                      db * db * line->b_error * line->b_error + 2 * da * db * line->covariance;
    fit.serial_error = sqrt(fmax(variance, 0));
    bound_serial(u, seconds, &fit);
    return fit;
}
