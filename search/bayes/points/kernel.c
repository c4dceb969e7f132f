/* SPDX-License-Identifier: MIT */
/* The row of a point is most of what an answer costs: it goes through the candidates in pieces that stay in the
 * first-level cache, in loops a compiler turns into vector instructions, with an exponential of seven terms. */
#include "search/bayes/points/kernel.h"

#include <math.h>
#include <string.h>

#define PIECE 1024

static const double root5 = 2.23606797749978969641;

void dt_kernel_matern(double r2, double *value, double *slope)
{
    double u = root5 * sqrt(r2), e = exp(-u);
    *value = (1 + u + u * u / 3) * e;
    *slope = 5.0 / 3 * (1 + u) * e;
}

double dt_kernel_distance(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a,
                          int b)
{
    double r2 = 0;
    for (int d = 0; d < cloud->dims; d++) {
        const float *x = cloud->x + (size_t)d * cloud->room;
        r2 += dt_kernel_square(cloud, kernel, d, (double)x[a] - (double)x[b]);
    }
    return r2;
}

double dt_kernel_at(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a, int b)
{
    double product = 1;
    for (int d = 0, end; d < cloud->dims; d = end) {
        double r2 = 0, value, slope;
        end = dt_kernel_axis_end(cloud, d);
        for (int i = d; i < end; i++) {
            const float *x = cloud->x + (size_t)i * cloud->room;
            r2 += dt_kernel_square(cloud, kernel, i, (double)x[a] - (double)x[b]);
        }
        dt_kernel_matern(r2, &value, &slope);
        product *= 1 - kernel->share + kernel->share * value;
    }
    double mean = kernel->constant;
    if (cloud->belief != NULL)
        mean += kernel->slope * (double)cloud->belief[a] * (double)cloud->belief[b];
    return mean + kernel->signal * product;
}

/* exp(-x), 0 <= x, to 3e-7: 2^n by the exponent bits, 2^f by its Taylor terms for |f| <= 1/2. */
static inline float decay(float x)
{
    float t = -1.44269504f * (x < 80 ? x : 80);
    float n = (t - 0.5f);
    int32_t whole = (int32_t)n; /* towards zero: n is negative */
    float f = (t - (float)whole) * 0.693147181f;
    float p =
        1 +
        f * (1 + f * (0.5f + f * (0.166666667f + f * (0.0416666667f +
                                                      f * (0.00833333333f + f * 0.00138888889f)))));
    int32_t bits = (whole + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* Adds square where the coordinates differ, or square times the difference squared. */
static void add_squares(const float x[], float at, float square, bool label, int count, float r2[])
{
    if (label)
        for (int i = 0; i < count; i++)
            r2[i] += x[i] != at ? square : 0;
    else
        for (int i = 0; i < count; i++)
            r2[i] += (x[i] - at) * (x[i] - at) * square;
}

/* The product over the axes, times signal. */
static void products(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a, int from,
                     int count, float out[])
{
    const float share = (float)kernel->share, rest = (float)(1 - kernel->share);
    float r2[PIECE];
    for (int i = 0; i < count; i++)
        out[i] = (float)kernel->signal;
    for (int d = 0, end; d < cloud->dims; d = end) {
        end = dt_kernel_axis_end(cloud, d);
        memset(r2, 0, sizeof r2);
        for (int i = d; i < end; i++) {
            const float *x = cloud->x + (size_t)i * cloud->room;
            const float inverse = (float)(1 / kernel->length[i]);
            add_squares(x + from, x[a], inverse * inverse, cloud->label[i], count, r2);
        }
        for (int i = 0; i < count; i++) {
            float u = (float)root5 * sqrtf(r2[i]);
            out[i] *= rest + share * (1 + u + u * u * (1.0f / 3)) * decay(u);
        }
    }
}

void dt_kernel_row(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a, int first,
                   int count, float out[])
{
    const float constant = (float)kernel->constant;
    for (int from = 0; from < count; from += PIECE) {
        int n = count - from < PIECE ? count - from : PIECE;
        float *piece = out + from;
        products(kernel, cloud, a, first + from, n, piece);
        const float *belief = cloud->belief != NULL ? cloud->belief + first + from : NULL;
        const float slope = belief != NULL ? (float)kernel->slope * cloud->belief[a] : 0;
        for (int i = 0; i < n; i++)
            piece[i] += constant + (belief != NULL ? slope * belief[i] : 0);
    }
}
