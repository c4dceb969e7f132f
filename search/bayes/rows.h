/* SPDX-License-Identifier: MIT */
/* rows - the time-critical sums of a Gaussian process, as loops over rows
 *
 * A matrix is row by row, `stride` values apart; of a symmetric one only the lower half is read and written. GSL's
 * reference BLAS takes several times as long, and the controller does not link OpenBLAS (cmake/dittune.cmake).
 */
#ifndef DT_SEARCH_BAYES_ROWS_H
#define DT_SEARCH_BAYES_ROWS_H

#include <stdbool.h>
#include <stddef.h>

/* out[columns] -= sum over k of weights[k] * rows[k][columns], k from 0 to count - 1. */
void dt_rows_subtract(const float weights[], const float rows[], size_t stride, int count,
                      float out[], int columns);

/* sum of a[i] b[i] */
double dt_rows_dot(const double a[], const double b[], int n);

/* K = L L' in place. false: K is not positive definite. */
bool dt_rows_factor(double k[], size_t stride, int n);

/* L becomes the inverse of L L'. */
void dt_rows_invert(double k[], size_t stride, int n);

/* x = L^-1 x, and L'^-1 x. */
void dt_rows_solve(const double l[], size_t stride, int n, double x[]);
void dt_rows_solve_transposed(const double l[], size_t stride, int n, double x[]);

#endif
