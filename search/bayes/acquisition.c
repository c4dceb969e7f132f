/* SPDX-License-Identifier: MIT */
#include "search/bayes/acquisition.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_erf.h>
#include <math.h>

#define HALF_LOG_TWO_PI 0.918938533204672741780

/* For u = -z > 0: phi(u) - u Q(u) = phi(u) (1 - u / h(u)), where h = phi / Q is the hazard. The difference loses u^2
 * units of the last place; beyond FAR it is 1 / u^2 - 3 / u^4 to the same precision. */
#define FAR 1e3

double dt_log_improvement(double z)
{
    if (z > -1)
        return log(exp(-z * z / 2 - HALF_LOG_TWO_PI) + z * gsl_cdf_ugaussian_P(z));
    double u = -z;
    if (u > FAR)
        return -z * z / 2 - HALF_LOG_TWO_PI - 2 * log(u) + log1p(-3 / (u * u));
    return -z * z / 2 - HALF_LOG_TWO_PI + log1p(-u / gsl_sf_hazard(u));
}

/* Q(u) >= u phi(u) / (1 + u^2) gives phi(u) / (1 + u^2) (Gordon 1941); above zero phi(z) + z. */
double dt_log_improvement_bound(double z)
{
    if (z < 0)
        return -z * z / 2 - HALF_LOG_TWO_PI - log1p(z * z);
    return log(0.39894228040143268 + z);
}

double dt_log_sum(double a, double b)
{
    double most = fmax(a, b);
    return most == -INFINITY ? most : most + log1p(exp(fmin(a, b) - most));
}
