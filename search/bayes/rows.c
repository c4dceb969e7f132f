/* SPDX-License-Identifier: MIT */
/* Sums run along rows, several at a time and in a fixed order, so that compilers can vectorise them. */
#include "search/bayes/rows.h"

#include <math.h>

enum { AT_ONCE = 4, LANES = 8 };

void dt_rows_subtract(const float weights[], const float rows[], size_t stride, int count,
                      float out[], int columns)
{
    int k = 0;
    for (; k + AT_ONCE <= count; k += AT_ONCE) {
        const float *a = rows + (size_t)k * stride, *b = a + stride, *c = b + stride,
                    *d = c + stride;
        const float wa = weights[k], wb = weights[k + 1], wc = weights[k + 2], wd = weights[k + 3];
        for (int i = 0; i < columns; i++)
            out[i] -= wa * a[i] + wb * b[i] + (wc * c[i] + wd * d[i]);
    }
    for (; k < count; k++) {
        const float *a = rows + (size_t)k * stride, w = weights[k];
        for (int i = 0; i < columns; i++)
            out[i] -= w * a[i];
    }
}

double dt_rows_dot(const double a[], const double b[], int n)
{
    double sums[LANES] = {0}, sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += a[i + lane] * b[i + lane];
    for (; i < n; i++)
        sum += a[i] * b[i];
    for (int lane = 0; lane < LANES; lane++)
        sum += sums[lane];
    return sum;
}

bool dt_rows_factor(double k[], size_t stride, int n)
{
    for (int i = 0; i < n; i++) {
        double *row = k + (size_t)i * stride;
        for (int j = 0; j < i; j++) {
            const double *other = k + (size_t)j * stride;
            row[j] = (row[j] - dt_rows_dot(row, other, j)) / other[j];
        }
        double square = row[i] - dt_rows_dot(row, row, i);
        if (!(square > 0))
            return false;
        row[i] = sqrt(square);
    }
    return true;
}

void dt_rows_solve(const double l[], size_t stride, int n, double x[])
{
    for (int i = 0; i < n; i++) {
        const double *row = l + (size_t)i * stride;
        x[i] = (x[i] - dt_rows_dot(row, x, i)) / row[i];
    }
}

/* to[n] += w from[n] */
static void add(double w, const double from[], double to[], int n)
{
    for (int i = 0; i < n; i++)
        to[i] += w * from[i];
}

void dt_rows_solve_transposed(const double l[], size_t stride, int n, double x[])
{
    for (int i = n - 1; i >= 0; i--) {
        const double *row = l + (size_t)i * stride;
        x[i] /= row[i];
        add(-x[i], row, x, i);
    }
}

/* First W = L^-1, each row from those above it; then W'W in place: each row of W adds its part before it is
 * overwritten. */
void dt_rows_invert(double k[], size_t stride, int n)
{
    for (int i = 0; i < n; i++) {
        double *row = k + (size_t)i * stride;
        const double own = 1 / row[i];
        for (int j = 0; j < i; j++) {
            const double *above = k + (size_t)j * stride;
            const double factor = row[j];
            row[j] = 0;
            add(factor, above, row, j + 1);
        }
        for (int j = 0; j < i; j++)
            row[j] *= -own;
        row[i] = own;
    }
    for (int i = 0; i < n; i++) {
        double *row = k + (size_t)i * stride;
        for (int j = 0; j < i; j++)
            add(row[j], row, k + (size_t)j * stride, j + 1);
        const double last = row[i];
        for (int j = 0; j <= i; j++)
            row[j] *= last;
    }
}
