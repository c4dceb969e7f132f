/* SPDX-License-Identifier: MIT */
/* acquisition - expected improvement of a candidate */
#ifndef DT_SEARCH_BAYES_ACQUISITION_H
#define DT_SEARCH_BAYES_ACQUISITION_H

/* log(phi(z) + z Phi(z)): the logarithm of the expected improvement in units of the deviation, where z is (best - mean)
 * / deviation (Ament et al. 2023, eq. 9, with the Mills ratio in place of erfcx). Accurate to 1e-9 for every z; far
 * below zero it is -z^2 / 2 - log(sqrt(2 pi) z^2). */
double dt_log_improvement(double z);

/* A cheap upper bound of dt_log_improvement. */
double dt_log_improvement_bound(double z);

/* log(exp(a) + exp(b)). */
double dt_log_sum(double a, double b);

#endif
