/* SPDX-License-Identifier: MIT */
/* The row of a point is most of what an answer costs: it goes through the candidates in pieces that stay in the
 * first-level cache, in loops a compiler turns into vector instructions, with an exponential of seven terms. */
#include "search/bayes/kernel.h"

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
    double value, slope;
    dt_kernel_matern(dt_kernel_distance(kernel, cloud, a, b), &value, &slope);
    double mean = kernel->constant;
    if (cloud->belief != NULL)
        mean += kernel->slope * (double)cloud->belief[a] * (double)cloud->belief[b];
    return mean + kernel->signal * value;
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

static void squares(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a, int first,
                    int count, float r2[])
{
    memset(r2, 0, (size_t)count * sizeof *r2);
    for (int d = 0; d < cloud->dims; d++) {
        const float *row = cloud->x + (size_t)d * cloud->room, *x = row + first;
        const float at = row[a], inverse = (float)(1 / kernel->length[d]);
        const float square = inverse * inverse;
        if (cloud->label[d])
            for (int i = 0; i < count; i++)
                r2[i] += x[i] != at ? square : 0;
        else
            for (int i = 0; i < count; i++)
                r2[i] += (x[i] - at) * (x[i] - at) * square;
    }
}

void dt_kernel_row(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a, int first,
                   int count, float out[])
{
    const float signal = (float)kernel->signal, constant = (float)kernel->constant;
    for (int from = 0; from < count; from += PIECE) {
        int n = count - from < PIECE ? count - from : PIECE;
        float r2[PIECE], *piece = out + from;
        squares(kernel, cloud, a, first + from, n, r2);
        for (int i = 0; i < n; i++) {
            float u = (float)root5 * sqrtf(r2[i]);
            piece[i] = constant + signal * (1 + u + u * u * (1.0f / 3)) * decay(u);
        }
        if (cloud->belief == NULL)
            continue;
        const float *belief = cloud->belief + first + from;
        const float slope = (float)kernel->slope * cloud->belief[a];
        for (int i = 0; i < n; i++)
            piece[i] += slope * belief[i];
    }
}
