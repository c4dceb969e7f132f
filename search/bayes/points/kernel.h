/* SPDX-License-Identifier: MIT */
/* kernel - covariance of two points
 *
 *     k(a, b) = constant + slope f(a) f(b) + signal product over axes of (1 - share + share M(r))
 *     M(r) = (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r),   r^2 = sum over the axis' dimensions of (distance / length)^2
 *
 * Matern-5/2 on each axis, with a length for each dimension (Rasmussen, Williams 2006, eq. 4.17 and 5.1); the distance
 * in a dimension of labels is 0 or 1. Multiplied out, the product is a sum over all sets of axes: effects of single
 * axes, of pairs and so on, each further one worth share / (1 - share) of the last (Durrande, Ginsbourger, Roustant,
 * Carraro 2013, ANOVA kernels). So the effect of one axis is learnt from all points, not only from near ones; share 1
 * is the plain product. The constant and the slope are the variances of b0 and b1 in a mean b0 + b1 f with normal
 * priors (eq. 2.40), where f is the prior's value of a point.
 */
#ifndef DT_SEARCH_BAYES_POINTS_KERNEL_H
#define DT_SEARCH_BAYES_POINTS_KERNEL_H

#include "search/bayes/points/encoding.h"

#include <stddef.h>

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

/* The dimension after the last of the axis that begins with dimension d. */
static inline int dt_kernel_axis_end(const struct dt_cloud *cloud, int d)
{
    do
        d++;
    while (d < cloud->dims && cloud->joined[d]);
    return d;
}

/* Sum of (distance / length)^2 over all dimensions. */
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
