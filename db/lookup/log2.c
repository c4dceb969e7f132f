/* SPDX-License-Identifier: MIT */
/* 2 artanh((m - 1) / (m + 1)) = ln m, with m within a factor sqrt(2) of 1; frexp is in the C library itself. */
#include "db/lookup/lookup_int.h"

#include <math.h>

double dt_lookup_log2(double x)
{
    int exponent;
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    double z = (m - 1) / (m + 1), sum = 0;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * z * z + 1.0 / k;
    return exponent + 2.8853900817779268 * z * sum; /* 2 / ln 2 */
}
