/* SPDX-License-Identifier: MIT */
#include "search/bayes/cost.h"

#include <gsl/gsl_linalg.h>
#include <math.h>
#include <string.h>

#define RIDGE 0.1 /* in trials, as a share of a coefficient's scale */

enum { SETUP, RATE, SWITCHING, TERMS };

void dt_cost_init(struct dt_trial_cost *cost, const struct dt_space *space, double budget)
{
    *cost = (struct dt_trial_cost){.space = space, .budget = budget, .least = INFINITY};
}

/* A trial of the point starts a new worker group. */
static bool switches(const struct dt_trial_cost *cost, const struct dt_point *point)
{
    for (int i = 0; i < dt_space_axes(cost->space) && cost->told; i++) {
        const struct dt_axis *axis = dt_space_axis(cost->space, i);
        if ((axis->role == DT_ROLE_RANKS || dt_axis_starts(axis)) &&
            cost->before.index[i] != point->index[i])
            return true;
    }
    return !cost->told;
}

/* Ridge regression; a negative coefficient is left out and the others are fitted again. */
static void fit(struct dt_trial_cost *cost)
{
    bool out[TERMS] = {false};
    for (int round = 0; round < TERMS; round++) {
        double a[TERMS * TERMS], b[TERMS], x[TERMS];
        int worst = -1;
        for (int i = 0; i < TERMS; i++) {
            for (int j = 0; j < TERMS; j++)
                a[i * TERMS + j] = out[i] || out[j] ? 0 : cost->squares[i][j];
            double scale = i == SETUP ? 0 : cost->squares[i][i] / cost->n;
            a[i * TERMS + i] += out[i] ? 1 : RIDGE * scale + 1e-9 * (1 + cost->squares[i][i]);
            b[i] = out[i] ? 0 : cost->moments[i];
        }
        gsl_matrix_view left = gsl_matrix_view_array(a, TERMS, TERMS);
        gsl_vector_view right = gsl_vector_view_array(b, TERMS),
                        at = gsl_vector_view_array(x, TERMS);
        if (gsl_linalg_cholesky_decomp1(&left.matrix) != 0 ||
            gsl_linalg_cholesky_solve(&left.matrix, &right.vector, &at.vector) != 0)
            return;
        for (int i = 0; i < TERMS; i++)
            if (x[i] < 0 && (worst < 0 || x[i] < x[worst]))
                worst = i;
        memcpy(cost->line, x, sizeof x);
        if (worst < 0)
            return;
        out[worst] = true;
        cost->line[worst] = 0;
    }
}

void dt_cost_add(struct dt_trial_cost *cost, const struct dt_trial *trial)
{
    if (!(trial->cost > 0))
        return;
    cost->spent += trial->cost;
    if (isfinite(trial->value)) {
        const double term[TERMS] = {1, trial->value, switches(cost, &trial->point)};
        for (int i = 0; i < TERMS; i++) {
            for (int j = 0; j < TERMS; j++)
                cost->squares[i][j] += term[i] * term[j];
            cost->moments[i] += term[i] * trial->cost;
        }
        cost->n++;
        cost->least = fmin(cost->least, trial->cost);
        fit(cost);
    }
    cost->before = trial->point;
    cost->told = true;
}

double dt_cost_seconds(const struct dt_trial_cost *cost, const struct dt_point *point, double value)
{
    if (cost->n == 0)
        return 1;
    double seconds = cost->line[SETUP] + cost->line[RATE] * value +
                     cost->line[SWITCHING] * switches(cost, point);
    return fmax(seconds, cost->least / 2);
}

double dt_cost_exponent(const struct dt_trial_cost *cost)
{
    return cost->budget > 0 && cost->n > 0 ? fmax(0, 1 - cost->spent / cost->budget) : 0;
}
