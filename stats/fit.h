/* SPDX-License-Identifier: MIT */
/* fit - straight lines through times: cost of an exchange, time against ranks, time against batch
 *
 * All three models are lines, t = a + b x, fitted so that relative errors are small: a small
 * message that takes 5 us counts as much as a large one that takes 5 ms. Errors are standard errors
 * from the residuals of n - 2 degrees of freedom; a residual is relative, measured / fitted - 1.
 * Where the points do not determine a line there is a reason instead of a fit.
 */
#ifndef DT_STATS_FIT_H
#define DT_STATS_FIT_H

#define DT_FIT_MOST 64 /* points */

struct dt_line {
    int n;                        /* points */
    const char *why;              /* reason why there is no fit; NULL: there is one */
    double a, a_error;            /* seconds */
    double b, b_error;            /* seconds per unit of x */
    double covariance;            /* covariance of a and b */
    double spread;                /* standard deviation of the relative residuals */
    double residual[DT_FIT_MOST]; /* [n] */
};

/* Least squares; 3 different x or more. Used for time against batch. */
struct dt_line dt_stats_line(const double x[], const double seconds[], int n);

/* t = alpha + bytes / beta (Hockney 1994), by bisquare M-estimation (Beaton, Tukey 1974; errors
 * after Street, Carroll, Ruppert 1988): one disturbed size has no influence. 4 different sizes or
 * more; no fit when time does not grow with size. */
struct dt_alpha_beta {
    struct dt_line line;                             /* holds `why` and the residuals */
    double seconds, seconds_error;                   /* alpha: of an empty exchange */
    double bytes_per_second, bytes_per_second_error; /* beta; the error is to first order */
};
struct dt_alpha_beta dt_stats_alpha_beta(const double bytes[], const double seconds[], int n);

/* t(N) = t1 (s + (1 - s) / N), 0 <= s <= 1 (Amdahl 1967); 3 different rank counts or more. At a
 * bound of s the other parameter is fitted alone, and the error of s is that of the unbounded fit.
 * Not valid beyond the largest N. */
struct dt_amdahl {
    struct dt_line line;         /* in 1 / N; holds `why` and the residuals of the bounded fit */
    double serial, serial_error; /* s */
    double seconds;              /* t1, fitted */
    int bounded;                 /* -1: s is fixed at 0; 1: at 1; 0: free */
};
struct dt_amdahl dt_stats_amdahl(const double ranks[], const double seconds[], int n);

#endif
