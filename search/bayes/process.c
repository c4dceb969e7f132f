/* SPDX-License-Identifier: MIT */
#include "search/bayes/process.h"
#include "base/array.h"

#include <gsl/gsl_multimin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* kernel - covariance of two points
 *
 *     k(a, b) = constant + slope f(a) f(b) + signal product over axes of (1 - share + share M(r))
 *     M(r) = (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r),   r^2 = sum over the axis' dimensions of (distance / length)^2
 *
 * Matern-5/2 on each axis, with a length for each dimension (Rasmussen, Williams 2006, eq. 4.17 and
 * 5.1); the distance in a dimension of labels is 0 or 1. Multiplied out, the product is a sum over
 * all sets of axes: effects of single axes, of pairs and so on, each further one worth share / (1 -
 * share) of the last (Durrande, Ginsbourger, Roustant, Carraro 2013, ANOVA kernels). So the effect
 * of one axis is learnt from all points, not only from near ones; share 1 is the plain product. The
 * constant and the slope are the variances of b0 and b1 in a mean b0 + b1 f with normal priors (eq.
 * 2.40), where f is the prior's value of a point.
 */

/* The dimension after the last of the axis that begins with dimension d. */
static inline int axis_end(const struct dt_cloud *cloud, int d)
{
    do
        d++;
    while (d < cloud->dims && cloud->joined[d]);
    return d;
}

/* The row of a point is most of what an answer costs: it goes through the candidates in pieces that
 * stay in the first-level cache, in loops a compiler turns into vector instructions, with an
 * exponential of seven terms. */

#define PIECE 1024

static const double root5 = 2.23606797749978969641;

/* M(r) and (5/3) (1 + sqrt(5) r) exp(-sqrt(5) r), which is -2 dM / d(r^2). */
static void kernel_matern(double r2, double *value, double *slope)
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
        end = axis_end(cloud, d);
        for (int i = d; i < end; i++) {
            const float *x = cloud->x + (size_t)i * cloud->room;
            r2 += dt_kernel_square(cloud, kernel, i, (double)x[a] - (double)x[b]);
        }
        kernel_matern(r2, &value, &slope);
        product *= 1 - kernel->share + kernel->share * value;
    }
    double mean = kernel->constant;
    if (cloud->belief != NULL)
        mean += kernel->slope * (double)cloud->belief[a] * (double)cloud->belief[b];
    return mean + kernel->signal * product;
}

/* exp(-x), 0 <= x, to 3e-7: 2^n by the exponent bits, 2^f by its Taylor terms for |f| <= 1/2. */
static inline float kernel_decay(float x)
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
static void kernel_products(const struct dt_kernel *kernel, const struct dt_cloud *cloud, int a,
                            int from, int count, float out[])
{
    const float share = (float)kernel->share, rest = (float)(1 - kernel->share);
    float r2[PIECE];
    for (int i = 0; i < count; i++)
        out[i] = (float)kernel->signal;
    for (int d = 0, end; d < cloud->dims; d = end) {
        end = axis_end(cloud, d);
        memset(r2, 0, sizeof r2);
        for (int i = d; i < end; i++) {
            const float *x = cloud->x + (size_t)i * cloud->room;
            const float inverse = (float)(1 / kernel->length[i]);
            add_squares(x + from, x[a], inverse * inverse, cloud->label[i], count, r2);
        }
        for (int i = 0; i < count; i++) {
            float u = (float)root5 * sqrtf(r2[i]);
            out[i] *= rest + share * (1 + u + u * u * (1.0f / 3)) * kernel_decay(u);
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
        kernel_products(kernel, cloud, a, first + from, n, piece);
        const float *belief = cloud->belief != NULL ? cloud->belief + first + from : NULL;
        const float slope = belief != NULL ? (float)kernel->slope * cloud->belief[a] : 0;
        for (int i = 0; i < n; i++)
            piece[i] += constant + (belief != NULL ? slope * belief[i] : 0);
    }
}

/* rows - the time-critical sums of a Gaussian process, as loops over rows
 *
 * A matrix is row by row, `stride` values apart; of a symmetric one only the lower half is read and
 * written. GSL's reference BLAS takes several times as long, and the controller does not link
 * OpenBLAS (cmake/dittune.cmake).
 */

/* Sums run along rows, several at a time and in a fixed order, so that
 * compilers can vectorise them. */

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

/* sum of a[i] b[i] */
static double rows_dot(const double a[], const double b[], int n)
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
            row[j] = (row[j] - rows_dot(row, other, j)) / other[j];
        }
        double square = row[i] - rows_dot(row, row, i);
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
        x[i] = (x[i] - rows_dot(row, x, i)) / row[i];
    }
}

/* to[n] += w from[n] */
static void add_scaled(double w, const double from[], double to[], int n)
{
    for (int i = 0; i < n; i++)
        to[i] += w * from[i];
}

void dt_rows_solve_transposed(const double l[], size_t stride, int n, double x[])
{
    for (int i = n - 1; i >= 0; i--) {
        const double *row = l + (size_t)i * stride;
        x[i] /= row[i];
        add_scaled(-x[i], row, x, i);
    }
}

/* First W = L^-1, each row from those above it; then W'W in place: each row of W adds its part
 * before it is overwritten. */
void dt_rows_invert(double k[], size_t stride, int n)
{
    for (int i = 0; i < n; i++) {
        double *row = k + (size_t)i * stride;
        const double own = 1 / row[i];
        for (int j = 0; j < i; j++) {
            const double *above = k + (size_t)j * stride;
            const double factor = row[j];
            row[j] = 0;
            add_scaled(factor, above, row, j + 1);
        }
        for (int j = 0; j < i; j++)
            row[j] *= -own;
        row[i] = own;
    }
    for (int i = 0; i < n; i++) {
        double *row = k + (size_t)i * stride;
        for (int j = 0; j < i; j++)
            add_scaled(row[j], row, k + (size_t)j * stride, j + 1);
        const double last = row[i];
        for (int j = 0; j <= i; j++)
            row[j] *= last;
    }
}

#define DT_PROCESS_BLOCK 64 /* rows of V that are allocated together */

dt_status dt_process_init(struct dt_process *process, const struct dt_cloud *cloud,
                          const struct dt_process_priors *priors)
{
    *process = (struct dt_process){
        .cloud = cloud, .priors = *priors, .noise = priors->noise.median, .scale = 1};
    process->kernel.signal = priors->signal.median;
    process->kernel.constant = priors->constant;
    process->kernel.share = priors->share.median / (1 + priors->share.median);
    process->kernel.slope = cloud->belief != NULL ? priors->slope : 0;
    for (int d = 0; d < cloud->dims; d++)
        process->kernel.length[d] = priors->length.median;
    process->mean = malloc((cloud->room + 1) * sizeof *process->mean);
    process->variance = malloc((cloud->room + 1) * sizeof *process->variance);
    if (process->mean == NULL || process->variance == NULL) {
        dt_process_fini(process);
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d plans", cloud->count);
    }
    return dt_process_columns(process, 0, cloud->count);
}

void dt_process_fini(struct dt_process *process)
{
    for (int b = 0; b < process->block_count; b++)
        free(process->blocks[b]);
    free(process->blocks);
    free(process->at);
    free(process->y);
    free(process->y_variance);
    free(process->factor);
    free(process->beta);
    free(process->row);
    free(process->mean);
    free(process->variance);
    *process = (struct dt_process){0};
}

static double candidate_belief(const struct dt_process *process, int candidate)
{
    return process->cloud->belief != NULL ? (double)process->cloud->belief[candidate] : 0;
}

/* Standardised value of observation i, and its noise variance. */
static double process_target(const struct dt_process *process, int i)
{
    return (process->y[i] - process->centre - candidate_belief(process, process->at[i])) /
           process->scale;
}

static double process_noise(const struct dt_process *process, int i)
{
    return process->noise + process->y_variance[i] / (process->scale * process->scale);
}

static dt_status grow_rows(struct dt_process *process)
{
    if (process->n < process->room)
        return DT_OK;
    int room = process->room > 0 ? 2 * process->room : 2 * DT_PROCESS_BLOCK;
    size_t size = (size_t)room;
    DT_TRY(DT_RESIZE(process->at, room));
    DT_TRY(DT_RESIZE(process->y, room));
    DT_TRY(DT_RESIZE(process->y_variance, room));
    DT_TRY(DT_RESIZE(process->beta, room));
    DT_TRY(DT_RESIZE(process->row, room));
    double *factor = malloc(size * size * sizeof *factor);
    if (factor == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d answers", process->n + 1);
    for (int i = 0; i < process->n; i++)
        memcpy(factor + (size_t)i * size, process->factor + (size_t)i * (size_t)process->room,
               (size_t)process->n * sizeof *factor);
    free(process->factor);
    process->factor = factor;
    process->room = room;
    return DT_OK;
}

static dt_status grow_blocks(struct dt_process *process)
{
    if (process->n < process->block_count * DT_PROCESS_BLOCK)
        return DT_OK;
    DT_TRY(DT_GROW(process->blocks, process->block_count, 1));
    float *block = malloc(process->cloud->room * DT_PROCESS_BLOCK * sizeof *block);
    if (block == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d answers", process->n + 1);
    process->blocks[process->block_count++] = block;
    return DT_OK;
}

static float *v_row(const struct dt_process *process, int i)
{
    return process->blocks[i / DT_PROCESS_BLOCK] +
           (size_t)(i % DT_PROCESS_BLOCK) * process->cloud->room;
}

/* v -= V' l, v and V over all candidates. */
static void subtract_rows(const struct dt_process *process, const double l[], float v[])
{
    const int columns = process->cloud->count;
    for (int from = 0; from < process->n; from += DT_PROCESS_BLOCK) {
        int rows = process->n - from < DT_PROCESS_BLOCK ? process->n - from : DT_PROCESS_BLOCK;
        float part[DT_PROCESS_BLOCK];
        for (int i = 0; i < rows; i++)
            part[i] = (float)l[from + i];
        dt_rows_subtract(part, v_row(process, from), process->cloud->room, rows, v, columns);
    }
}

dt_status dt_process_add(struct dt_process *process, int candidate, double y, double variance)
{
    DT_TRY(grow_rows(process));
    DT_TRY(grow_blocks(process));
    const struct dt_cloud *cloud = process->cloud;
    const int n = process->n;
    double *l = process->factor + (size_t)n * (size_t)process->room;
    process->at[n] = candidate;
    process->y[n] = y;
    process->y_variance[n] = variance;
    for (int i = 0; i < n; i++)
        l[i] = dt_kernel_at(&process->kernel, cloud, candidate, process->at[i]);
    dt_rows_solve(process->factor, (size_t)process->room, n, l);
    double noise = process_noise(process, n);
    double own =
        dt_kernel_at(&process->kernel, cloud, candidate, candidate) + noise - rows_dot(l, l, n);
    l[n] = sqrt(fmax(own, noise)); /* in exact arithmetic it is never below the noise */
    process->beta[n] = (process_target(process, n) - rows_dot(l, process->beta, n)) / l[n];
    float *v = v_row(process, n);
    dt_kernel_row(&process->kernel, cloud, candidate, 0, cloud->count, v);
    subtract_rows(process, l, v);
    const float inverse = (float)(1 / l[n]);
    const double beta = process->beta[n];
    for (int i = 0; i < cloud->count; i++) {
        v[i] *= inverse;
        process->mean[i] += beta * (double)v[i];
        process->variance[i] -= (double)v[i] * (double)v[i];
    }
    process->n++;
    return DT_OK;
}

void dt_process_pop(struct dt_process *process)
{
    const float *v = v_row(process, --process->n);
    const double beta = process->beta[process->n];
    for (int i = 0; i < process->cloud->count; i++) {
        process->mean[i] -= beta * (double)v[i];
        process->variance[i] += (double)v[i] * (double)v[i];
    }
}

double dt_process_mean(const struct dt_process *process, int candidate)
{
    return process->centre + process->scale * process->mean[candidate] +
           candidate_belief(process, candidate);
}

/* Rounding in single precision may give a negative variance. */
double dt_process_deviation(const struct dt_process *process, int candidate)
{
    double least = 1e-6 * process->kernel.signal;
    return process->scale * sqrt(fmax(process->variance[candidate], least));
}

double dt_process_covariance(const struct dt_process *process, int a, int b)
{
    double sum = dt_kernel_at(&process->kernel, process->cloud, a, b);
    for (int i = 0; i < process->n; i++) {
        const float *v = v_row(process, i);
        sum -= (double)v[a] * (double)v[b];
    }
    return process->scale * process->scale * sum;
}

/* Recomputes the factors, one block of rows of V at a time, in pieces of columns that fit
 * the first-level cache. */

#define LOG_TWO_PI 1.83787706640934548356

enum { BLOCK = DT_PROCESS_BLOCK, COLUMNS = 128 };

/* K + noise of all observations into matrix [n, n], lower triangle. */
static void process_matrix(const struct dt_process *process, double matrix[], int stride)
{
    for (int i = 0; i < process->n; i++) {
        double *row = matrix + (size_t)i * (size_t)stride;
        for (int j = 0; j <= i; j++)
            row[j] = dt_kernel_at(&process->kernel, process->cloud, process->at[i], process->at[j]);
        row[i] += process_noise(process, i);
    }
}

/* part[rows, columns] = L[from.., first..] in single precision. */
static void copy_part(const struct dt_process *process, int from, int first, int rows, int columns,
                      float part[])
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            part[i * BLOCK + j] =
                (float)process
                    ->factor[(size_t)(from + i) * (size_t)process->room + (size_t)(first + j)];
}

/* out[rows, columns] -= part[rows, BLOCK] V[BLOCK, columns] */
static void subtract_block(const struct dt_process *process, const float part[], int rows,
                           const float v[], float out[], int columns)
{
    const size_t stride = process->cloud->room;
    for (int first = 0; first < columns; first += COLUMNS)
        for (int i = 0; i < rows; i++)
            dt_rows_subtract(part + i * BLOCK, v + first, stride, BLOCK,
                             out + (size_t)i * stride + first,
                             columns - first < COLUMNS ? columns - first : COLUMNS);
}

/* out[rows, columns] = part^-1 out, part a lower triangle. */
static void solve_part(const struct dt_process *process, const float part[], int rows, float out[],
                       int columns)
{
    const size_t stride = process->cloud->room;
    for (int first = 0; first < columns; first += COLUMNS) {
        const int some = columns - first < COLUMNS ? columns - first : COLUMNS;
        for (int i = 0; i < rows; i++) {
            float *row = out + (size_t)i * stride + first;
            const float inverse = 1 / part[i * BLOCK + i];
            dt_rows_subtract(part + i * BLOCK, out + first, stride, i, row, some);
            for (int k = 0; k < some; k++)
                row[k] *= inverse;
        }
    }
}

/* Rows from .. of V, columns first .. : V_b = L_bb^-1 (K_b - sum of L_ba V_a over
 * the blocks a before). */
static void solve_block(const struct dt_process *process, int from, int first, int columns)
{
    const struct dt_cloud *cloud = process->cloud;
    const int rows = process->n - from < BLOCK ? process->n - from : BLOCK;
    float *block = process->blocks[from / BLOCK] + first, part[BLOCK * BLOCK];
    for (int i = 0; i < rows; i++)
        dt_kernel_row(&process->kernel, cloud, process->at[from + i], first, columns,
                      block + (size_t)i * cloud->room);
    for (int before = 0; before < from; before += BLOCK) {
        copy_part(process, from, before, rows, BLOCK, part);
        subtract_block(process, part, rows, process->blocks[before / BLOCK] + first, block,
                       columns);
    }
    copy_part(process, from, from, rows, rows, part);
    solve_part(process, part, rows, block, columns);
    for (int i = 0; i < rows; i++) {
        const float *v = block + (size_t)i * cloud->room;
        const double beta = process->beta[from + i];
        double *mean = process->mean + first, *variance = process->variance + first;
        for (int k = 0; k < columns; k++) {
            mean[k] += beta * (double)v[k];
            variance[k] -= (double)v[k] * (double)v[k];
        }
    }
}

dt_status dt_process_columns(struct dt_process *process, int first, int last)
{
    const struct dt_kernel *kernel = &process->kernel;
    for (int i = first; i < last; i++) {
        double f = process->cloud->belief != NULL ? (double)process->cloud->belief[i] : 0;
        process->mean[i] = 0;
        process->variance[i] = kernel->constant + kernel->slope * f * f + kernel->signal;
    }
    if (last > first)
        for (int from = 0; from < process->n; from += BLOCK)
            solve_block(process, from, first, last - first);
    return DT_OK;
}

dt_status dt_process_refactor(struct dt_process *process)
{
    const int n = process->n;
    if (n > 0) {
        process_matrix(process, process->factor, process->room);
        if (!dt_rows_factor(process->factor, (size_t)process->room, n))
            return dt_fail(DT_ELIB, "a model of %d answers cannot be factored", n);
        for (int i = 0; i < n; i++)
            process->beta[i] = process_target(process, i);
        dt_rows_solve(process->factor, (size_t)process->room, n, process->beta);
    }
    return dt_process_columns(process, 0, process->cloud->count);
}

dt_status dt_process_leave_one_out(const struct dt_process *process, double density[])
{
    const int n = process->n;
    dt_auto_free double *inverse = malloc(((size_t)n * (size_t)n + 1) * sizeof *inverse);
    dt_auto_free double *alpha = malloc(((size_t)n + 1) * sizeof *alpha);
    if (inverse == NULL || alpha == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d answers", n);
    for (int i = 0; i < n; i++) {
        alpha[i] = process->beta[i];
        for (int j = 0; j <= i; j++)
            inverse[(size_t)i * (size_t)n + (size_t)j] =
                process->factor[(size_t)i * (size_t)process->room + (size_t)j];
    }
    if (n > 0) {
        dt_rows_solve_transposed(process->factor, (size_t)process->room, n, alpha);
        dt_rows_invert(inverse, (size_t)n, n);
    }
    for (int i = 0; i < n; i++) {
        double variance = 1 / inverse[(size_t)i * (size_t)n + (size_t)i];
        double off = alpha[i] * variance;
        density[i] =
            -0.5 * (LOG_TWO_PI + log(variance) + off * off / variance) - log(process->scale);
    }
    return DT_OK;
}

/* Selects the observations of a fit and prepares its tables. */

struct ranked {
    double y;
    int32_t i;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->y != y->y)
        return x->y < y->y ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

/* Half of the selection are the smallest values, since the search goes there; the others are
 * drawn from the rest. */
static dt_status choose_start(struct dt_fit *fit, struct dt_rng *rng)
{
    const struct dt_process *process = fit->process;
    dt_auto_free struct ranked *ranked = calloc((size_t)process->n + 1, sizeof *ranked);
    if (ranked == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d answers", process->n);
    for (int i = 0; i < process->n; i++)
        ranked[i] = (struct ranked){process->y[i], i};
    if (fit->n < process->n) {
        qsort(ranked, (size_t)process->n, sizeof *ranked, by_value);
        for (int k = fit->n / 2; k < fit->n; k++) {
            int other = k + (int)dt_rng_below(rng, (uint64_t)(process->n - k));
            struct ranked kept = ranked[k];
            ranked[k] = ranked[other];
            ranked[other] = kept;
        }
    }
    for (int k = 0; k < fit->n; k++)
        fit->chosen[k] = ranked[k].i;
    return DT_OK;
}

static float fit_coordinate(const struct dt_fit *fit, int d, int i)
{
    const struct dt_cloud *cloud = fit->process->cloud;
    return cloud->x[(size_t)d * cloud->room + (size_t)fit->process->at[fit->chosen[i]]];
}

/* Lists the distinct values of the axis in the fit; values with equal coordinates count as one. */
static void sort_values(const struct dt_fit *fit, struct dt_fit_axis *axis)
{
    for (int i = 0; i < fit->n; i++) {
        int like = 0;
        bool same = false;
        for (; like < axis->kinds && !same; like += !same) {
            same = true;
            for (int d = axis->first; d < axis->end && same; d++)
                same = !(fabsf(fit_coordinate(fit, d, i) - fit_coordinate(fit, d, axis->of[like])) >
                         0);
        }
        axis->kind[i] = like;
        if (!same)
            axis->of[axis->kinds++] = i;
    }
}

/* Sets up the axes; *size is the memory for their tables. */
static void sort_axes(struct dt_fit *fit, size_t *size)
{
    const struct dt_cloud *cloud = fit->process->cloud;
    *size = 0;
    for (int d = 0, end; d < cloud->dims; d = end) {
        end = axis_end(cloud, d);
        struct dt_fit_axis *axis = &fit->axis[fit->axes];
        int32_t *ints = fit->chosen + (size_t)fit->n * (1 + 2 * (size_t)fit->axes++);
        *axis = (struct dt_fit_axis){.first = d, .end = end, .kind = ints, .of = ints + fit->n};
        sort_values(fit, axis);
        *size += (size_t)(axis->kinds * axis->kinds) * (size_t)(2 + end - d);
    }
}

static void lay_out(struct dt_fit *fit, double *tables)
{
    for (int a = 0; a < fit->axes; a++) {
        struct dt_fit_axis *axis = &fit->axis[a];
        size_t square = (size_t)(axis->kinds * axis->kinds);
        axis->factor = tables;
        axis->by_odds = tables + square;
        axis->by_length = tables + 2 * square;
        tables += square * (size_t)(2 + axis->end - axis->first);
    }
}

dt_status dt_fit_init(struct dt_fit *fit, const struct dt_process *process, struct dt_rng *rng)
{
    const struct dt_cloud *cloud = process->cloud;
    int most = process->priors.points;
    int n = process->n < most ? process->n : most;
    size_t size = (size_t)n, square = size * size, tables = 0;
    *fit = (struct dt_fit){.process = process, .n = n};
    fit->chosen = calloc(size * (1 + 2 * (size_t)cloud->dims) + 1, sizeof *fit->chosen);
    dt_status status = fit->chosen != NULL ? choose_start(fit, rng) : DT_ENOMEM;
    if (status == DT_OK) {
        sort_axes(fit, &tables);
        fit->z = malloc((size * 4 + 2 * square + tables + 1) * sizeof *fit->z);
    }
    if (fit->chosen == NULL || fit->z == NULL) {
        dt_fit_fini(fit);
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d answers", n);
    }
    fit->v = fit->z + size;
    fit->f = fit->v + size;
    fit->alpha = fit->f + size;
    fit->k = fit->alpha + size;
    fit->product = fit->k + square;
    lay_out(fit, fit->product + square);
    for (int i = 0; i < n; i++) {
        int from = fit->chosen[i];
        fit->f[i] = cloud->belief != NULL ? (double)cloud->belief[process->at[from]] : 0;
        fit->z[i] = process_target(process, from);
        fit->v[i] = process->y_variance[from] / (process->scale * process->scale);
    }
    return DT_OK;
}

void dt_fit_fini(struct dt_fit *fit)
{
    free(fit->chosen);
    free(fit->z);
    *fit = (struct dt_fit){0};
}

/* Minus the log posterior density of the hyper-parameters and its gradient (Rasmussen, Williams
 * 2006, eq. 5.8 and 5.9), with a normal prior on the logarithm of each, minimised by BFGS from
 * several starts. Each logarithm is clamped within BOUND of its median: outside, the likelihood
 * keeps its value at the bound and the prior pulls back. */

#define BOUND 7.0 /* a factor of 1,100 */

enum { MOST = DT_DIMS_MAX + 3, STEPS = 40 };

int dt_fit_parameters(const struct dt_process *process)
{
    return process->cloud->dims + 3;
}

static struct dt_hyper prior_of(const struct dt_process *process, int parameter)
{
    const struct dt_process_priors *priors = &process->priors;
    const int dims = process->cloud->dims;
    if (parameter < dims)
        return priors->length;
    return parameter == dims       ? priors->signal
           : parameter == dims + 1 ? priors->share
                                   : priors->noise;
}

/* Sets kernel and noise from theta; held[i]: parameter i is clamped at its bound. */
static double read_theta(const struct dt_process *process, const double theta[],
                         struct dt_kernel *kernel, bool held[])
{
    double at[MOST] = {0};
    for (int i = 0; i < dt_fit_parameters(process); i++) {
        double middle = log(prior_of(process, i).median);
        at[i] = exp(fmin(fmax(theta[i], middle - BOUND), middle + BOUND));
        held[i] = fabs(theta[i] - middle) > BOUND;
    }
    const int dims = process->cloud->dims;
    *kernel = process->kernel;
    for (int d = 0; d < dims; d++)
        kernel->length[d] = at[d];
    kernel->signal = at[dims];
    kernel->share = at[dims + 1] / (1 + at[dims + 1]);
    return at[dims + 2];
}

static void fill_tables(const struct dt_fit *fit, const struct dt_fit_axis *axis,
                        const struct dt_kernel *kernel)
{
    const struct dt_cloud *cloud = fit->process->cloud;
    const int kinds = axis->kinds;
    const double share = kernel->share;
    for (int pair = 0; pair < kinds * kinds; pair++) {
        double r2 = 0, value, slope, square[2] = {0};
        for (int d = axis->first; d < axis->end; d++) {
            const float *x = cloud->x + (size_t)d * cloud->room;
            int a = fit->chosen[axis->of[pair / kinds]], b = fit->chosen[axis->of[pair % kinds]];
            square[d - axis->first] = dt_kernel_square(
                cloud, kernel, d, (double)x[fit->process->at[a]] - (double)x[fit->process->at[b]]);
            r2 += square[d - axis->first];
        }
        kernel_matern(r2, &value, &slope);
        double factor = 1 - share + share * value;
        axis->factor[pair] = factor;
        axis->by_odds[pair] = share * (1 - share) * (value - 1) / factor;
        for (int d = 0; d < axis->end - axis->first; d++)
            axis->by_length[d * kinds * kinds + pair] = share * slope * square[d] / factor;
    }
}

/* K and the product over the axes, below the diagonal and on it. */
static void fill_kernel(struct dt_fit *fit, const struct dt_kernel *kernel, double noise)
{
    const size_t n = (size_t)fit->n;
    for (size_t i = 0; i < n * n; i++)
        fit->product[i] = kernel->signal;
    for (int a = 0; a < fit->axes; a++) {
        const struct dt_fit_axis *axis = &fit->axis[a];
        fill_tables(fit, axis, kernel);
        for (size_t i = 0; i < n; i++) {
            const double *factor = axis->factor + (size_t)(axis->kind[i] * axis->kinds);
            for (size_t j = 0; j < i; j++)
                fit->product[i * n + j] *= factor[axis->kind[j]];
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++)
            fit->k[i * n + j] =
                kernel->constant + kernel->slope * fit->f[i] * fit->f[j] + fit->product[i * n + j];
        fit->k[i * n + i] += noise + fit->v[i];
    }
}

/* log likelihood, negated; the factor into k, alpha = K^-1 z. */
static double fit_likelihood(struct dt_fit *fit)
{
    const size_t n = (size_t)fit->n;
    if (!dt_rows_factor(fit->k, n, fit->n))
        return INFINITY;
    memcpy(fit->alpha, fit->z, n * sizeof *fit->z);
    dt_rows_solve(fit->k, n, fit->n, fit->alpha);
    double cost = rows_dot(fit->alpha, fit->alpha, fit->n) / 2;
    dt_rows_solve_transposed(fit->k, n, fit->n, fit->alpha);
    for (size_t i = 0; i < n; i++)
        cost += log(fit->k[i * n + i]);
    return cost;
}

/* Sum over pairs of observations of weight times the axis' table. */
static double sum_pairs(const struct dt_fit *fit, const struct dt_fit_axis *axis,
                        const double table[])
{
    const size_t n = (size_t)fit->n;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double *row = table + (size_t)(axis->kind[i] * axis->kinds);
        const double *weight = fit->product + i * n;
        for (size_t j = 0; j < i; j++)
            sum += weight[j] * row[axis->kind[j]];
    }
    return sum;
}

/* -1/2 tr((alpha alpha' - K^-1) dK / d theta), a parameter at a time; the factor in k becomes K^-1,
 * and the products become the weights of the derivatives of their logarithms. */
static void likelihood_slopes(struct dt_fit *fit, double noise, double gradient[])
{
    const size_t n = (size_t)fit->n;
    const int dims = fit->process->cloud->dims;
    dt_rows_invert(fit->k, n, fit->n);
    memset(gradient, 0, (size_t)dt_fit_parameters(fit->process) * sizeof *gradient);
    for (size_t i = 0; i < n; i++) {
        double *weight = fit->product + i * n;
        for (size_t j = 0; j <= i; j++) {
            weight[j] *= fit->alpha[i] * fit->alpha[j] - fit->k[i * n + j];
            gradient[dims] -= (i == j ? 0.5 : 1) * weight[j];
        }
        gradient[dims + 2] -= 0.5 * (fit->alpha[i] * fit->alpha[i] - fit->k[i * n + i]) * noise;
    }
    for (int a = 0; a < fit->axes; a++) {
        const struct dt_fit_axis *axis = &fit->axis[a];
        gradient[dims + 1] -= sum_pairs(fit, axis, axis->by_odds);
        for (int d = axis->first; d < axis->end; d++)
            gradient[d] -= sum_pairs(fit, axis,
                                     axis->by_length +
                                         (size_t)((d - axis->first) * axis->kinds * axis->kinds));
    }
}

double dt_fit_cost(struct dt_fit *fit, const double theta[], double gradient[])
{
    struct dt_kernel kernel;
    bool held[MOST];
    double noise = read_theta(fit->process, theta, &kernel, held);
    fill_kernel(fit, &kernel, noise);
    double cost = fit_likelihood(fit);
    if (gradient != NULL && isfinite(cost))
        likelihood_slopes(fit, noise, gradient);
    for (int i = 0; i < dt_fit_parameters(fit->process); i++) {
        struct dt_hyper prior = prior_of(fit->process, i);
        double off = (theta[i] - log(prior.median)) / prior.spread;
        cost += off * off / 2;
        if (gradient != NULL)
            gradient[i] = (held[i] || !isfinite(cost) ? 0 : gradient[i]) + off / prior.spread;
    }
    return cost;
}

static double cost_at(const gsl_vector *theta, void *fit)
{
    return dt_fit_cost(fit, theta->data, NULL);
}

static void both_at(const gsl_vector *theta, void *fit, double *cost, gsl_vector *gradient)
{
    *cost = dt_fit_cost(fit, theta->data, gradient->data);
}

static void gradient_at(const gsl_vector *theta, void *fit, gsl_vector *gradient)
{
    (void)dt_fit_cost(fit, theta->data, gradient->data);
}

/* Minimises from theta; sets theta to the best found and returns its cost. */
static double descend_likelihood(struct dt_fit *fit, double theta[])
{
    const size_t n = (size_t)dt_fit_parameters(fit->process);
    gsl_multimin_function_fdf function = {cost_at, gradient_at, both_at, n, fit};
    gsl_multimin_fdfminimizer *minimiser =
        gsl_multimin_fdfminimizer_alloc(gsl_multimin_fdfminimizer_vector_bfgs2, n);
    if (minimiser == NULL)
        return dt_fit_cost(fit, theta, NULL);
    gsl_vector_view start = gsl_vector_view_array(theta, n);
    gsl_multimin_fdfminimizer_set(minimiser, &function, &start.vector, 0.3, 0.1);
    double before = gsl_multimin_fdfminimizer_minimum(minimiser);
    for (int step = 0; step < STEPS; step++) {
        if (gsl_multimin_fdfminimizer_iterate(minimiser) != 0)
            break;
        double cost = gsl_multimin_fdfminimizer_minimum(minimiser);
        if (gsl_multimin_test_gradient(minimiser->gradient, 1e-2) == GSL_SUCCESS ||
            (step > 4 && before - cost < 1e-3))
            break;
        before = cost;
    }
    gsl_vector_memcpy(&start.vector, gsl_multimin_fdfminimizer_x(minimiser));
    double cost = gsl_multimin_fdfminimizer_minimum(minimiser);
    gsl_multimin_fdfminimizer_free(minimiser);
    return cost;
}

/* Like dt_process_scale, but leaves the factors unchanged. */
static void standardise_values(struct dt_process *process)
{
    double mean = 0, squares = 0;
    process->centre = 0;
    process->scale = 1;
    for (int i = 0; i < process->n; i++)
        mean += process_target(process, i) / process->n;
    process->centre = mean;
    for (int i = 0; i < process->n; i++)
        squares += pow(process_target(process, i), 2);
    double spread = process->n > 1 ? sqrt(squares / (process->n - 1)) : 0;
    process->scale = spread > 1e-9 ? spread : 1;
    if (process->cloud->belief != NULL)
        process->kernel.slope = process->priors.slope / (process->scale * process->scale);
}

dt_status dt_process_scale(struct dt_process *process)
{
    standardise_values(process);
    return dt_process_refactor(process);
}

/* Current value of parameter i. */
static double prior_mean(const struct dt_process *process, int i)
{
    const struct dt_kernel *kernel = &process->kernel;
    const int dims = process->cloud->dims;
    if (i < dims)
        return log(kernel->length[i]);
    return log(i == dims       ? kernel->signal
               : i == dims + 1 ? kernel->share / (1 - kernel->share)
                               : process->noise);
}

dt_status dt_process_fit(struct dt_process *process, struct dt_rng *rng)
{
    const int n = dt_fit_parameters(process);
    struct dt_fit fit;
    standardise_values(process);
    DT_TRY(dt_fit_init(&fit, process, rng));
    double best[MOST] = {0}, least = INFINITY;
    for (int start = process->fitted > 0 ? -1 : 0; start < process->priors.starts; start++) {
        double theta[MOST] = {0};
        for (int i = 0; i < n; i++) {
            struct dt_hyper prior = prior_of(process, i);
            theta[i] = log(prior.median) + (start > 0 ? prior.spread * dt_rng_normal(rng) : 0);
            if (start < 0)
                theta[i] = prior_mean(process, i);
        }
        double cost = descend_likelihood(&fit, theta);
        if (cost < least) {
            least = cost;
            memcpy(best, theta, sizeof best);
        }
    }
    if (isfinite(least)) {
        bool held[MOST];
        process->noise = read_theta(process, best, &process->kernel, held);
    }
    process->fitted = process->n;
    dt_fit_fini(&fit);
    return dt_process_refactor(process);
}
