/* SPDX-License-Identifier: MIT */
/* kernel - how much two points have to do with each other
 *
 *     k(a, b) = constant + slope f(a) f(b) + signal M(r),   r^2 = sum over dimensions of (distance / length)^2
 *     M(r) = (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r)
 *
 * Matern-5/2 with a length for each dimension (Rasmussen, Williams 2006, eq. 4.17 and 5.1); the distance in a
 * dimension of labels is 0 or 1. The constant and the slope stand for a mean b0 + b1 f with normal priors on b0 and
 * b1 (eq. 2.40), f being what is believed of a point beforehand.
 */
#ifndef DT_SEARCH_BAYES_KERNEL_H
#define DT_SEARCH_BAYES_KERNEL_H

#include "search/bayes/points/encoding.h"

#include <stddef.h>

/* Points in columns: coordinate d of point i is x[d * room + i]. */
struct dt_cloud {
    int dims, count;
    size_t room;
    float *x;
    float *belief; /* [room] f, of the unit of the values; NULL: 0 everywhere */
    bool label[DT_DIMS_MAX];
};

struct dt_kernel {
    double length[DT_DIMS_MAX];
    double signal, constant, slope; /* variances */
};

/* (distance / length)^2 in dimension d. */
static inline double dt_kernel_square(const struct dt_cloud *cloud, const struct dt_kernel *kernel,
                                      int d, double difference)
{
    double distance = cloud->label[d] ? (difference != 0) : difference;
    return distance * distance / (kernel->length[d] * kernel->length[d]);
}

/* r^2 of two points. */
double dt_kernel_distance(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a,
                          int b);

/* Between two points of the cloud, in double precision. */
double dt_kernel_at(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a, int b);

/* Between point a and the points first .. first + count - 1, to about 1e-6 of signal. */
void dt_kernel_row(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a, int first,
                   int count, float out[]);

/* M(r) and (5/3) (1 + sqrt(5) r) exp(-sqrt(5) r), which is -2 dM / d(r^2). */
void dt_kernel_matern(double r2, double *value, double *slope);

#endif
