/* SPDX-License-Identifier: MIT */
#include "search/bayes/candidates.h"

#include <math.h>
#include <stdlib.h>

/* Maps points to coordinates with meaningful distances.
 *
 * Every axis with more than one value is a dimension. The coordinate of positive numbers, if there
 * are three or more, is their logarithm, of other numbers their rank; both are scaled to [0, 1].
 * Labels have their number, and only equality matters (Hamming distance, as in Optuna and SMAC3).
 *
 * Divisibility matters, too: vector lengths, banks and cache lines are powers of two, and 48 may
 * behave more like 16 than like 47. Where the exponent of two of the values (that of 48 is 4) does
 * not rise with them, it is a second dimension of the axis.
 */

static void axis_fill(const struct dt_axis *axis, float out[])
{
    const int last = axis->count - 1;
    bool ratio = axis->labels == NULL && axis->values[0] > 0 && last >= 2;
    for (int i = 0; i <= last; i++) {
        if (axis->labels != NULL)
            out[i] = (float)i;
        else if (ratio)
            out[i] = (float)(log((double)axis->values[i] / (double)axis->values[0]) /
                             log((double)axis->values[last] / (double)axis->values[0]));
        else
            out[i] = (float)i / (float)last;
    }
}

/* Exponent of two in a value; 0 for 0. */
static int two_exponent(int64_t value)
{
    int n = 0;
    for (; value != 0 && value % 2 == 0; value /= 2)
        n++;
    return n;
}

/* Writes the scaled exponents; false where they only repeat the order of the values. */
static bool fill_exponents(const struct dt_axis *axis, float out[])
{
    int least = 64, most = 0;
    bool rises = true;
    for (int i = 0; i < axis->count; i++) {
        int n = two_exponent(axis->values[i]);
        rises = rises && (i == 0 || n > two_exponent(axis->values[i - 1]));
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    for (int i = 0; i < axis->count && most > least; i++)
        out[i] = (float)(two_exponent(axis->values[i]) - least) / (float)(most - least);
    return !rises && most > least;
}

static dt_status dimension_add(struct dt_candidates *candidates, int i)
{
    const struct dt_axis *axis = dt_space_axis(candidates->space, i);
    float *coordinate = malloc((size_t)axis->count * sizeof *coordinate);
    if (coordinate == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for the coordinates of '%s'", axis->name);
    candidates->axis[candidates->cloud.dims] = i;
    candidates->coordinate[candidates->cloud.dims++] = coordinate;
    return DT_OK;
}

static dt_status encode_axis(struct dt_candidates *candidates, int i)
{
    const struct dt_axis *axis = dt_space_axis(candidates->space, i);
    struct dt_cloud *cloud = &candidates->cloud;
    int d = cloud->dims;
    DT_TRY(dimension_add(candidates, i));
    axis_fill(axis, candidates->coordinate[d]);
    cloud->label[d++] = axis->labels != NULL;
    if (axis->labels != NULL || axis->count < 3)
        return DT_OK;
    DT_TRY(dimension_add(candidates, i));
    cloud->joined[d] = fill_exponents(axis, candidates->coordinate[d]);
    if (!cloud->joined[d])
        free(candidates->coordinate[--cloud->dims]);
    return DT_OK;
}

enum {
    POOL = 20000, /* draws */
    MORE = 4096,  /* room for points told but not drawn, and for neighbours of the best */
    AROUND = 512, /* neighbours of one point */
    TESTS =
        /* limit of points tested for the draws of a pool, where not every draw is feasible */
    500000
};

/* Number of draws within that limit. */
static int affordable_draws(const struct dt_space *space, int draws)
{
    return (int)fmin(draws, fmax(64, TESTS / dt_space_tries(space)));
}

static void candidate_place(struct dt_candidates *candidates, int k)
{
    const struct dt_cloud *cloud = &candidates->cloud;
    struct dt_point point;
    dt_candidates_at(candidates, k, &point);
    for (int d = 0; d < cloud->dims; d++)
        cloud->x[(size_t)d * cloud->room + (size_t)k] =
            candidates->coordinate[d][point.index[candidates->axis[d]]];
}

static dt_status candidates_allocate(struct dt_candidates *candidates, size_t room)
{
    struct dt_cloud *cloud = &candidates->cloud;
    for (int i = 0; i < dt_space_axes(candidates->space); i++)
        if (dt_space_axis(candidates->space, i)->count > 1)
            DT_TRY(encode_axis(candidates, i));
    cloud->room = room;
    cloud->x = calloc(room * (size_t)cloud->dims + 1, sizeof *cloud->x);
    candidates->seen = calloc(room + 1, sizeof *candidates->seen);
    if (!candidates->whole)
        candidates->points = calloc(room + 1, sizeof *candidates->points);
    if (cloud->x == NULL || candidates->seen == NULL ||
        (!candidates->whole && candidates->points == NULL))
        return dt_fail(DT_ENOMEM, "out of memory for %zu candidates", room);
    return DT_OK;
}

/* Fills the pool with uniform draws, which may contain duplicates. */
static void fill_pool(struct dt_candidates *candidates, int count, struct dt_rng *rng)
{
    for (int k = 0; k < count; k++) {
        dt_space_draw(candidates->space, rng, &candidates->points[k]);
        candidate_place(candidates, k);
    }
    candidates->cloud.count = count;
}

/* Stores the point in the next unseen slot from k on; returns the slot after it. */
static int pool_replace(struct dt_candidates *candidates, int k, const struct dt_point *point)
{
    while (k < candidates->cloud.count && candidates->seen[k])
        k++;
    if (k == candidates->cloud.count)
        return k;
    candidates->points[k] = *point;
    candidate_place(candidates, k);
    return k + 1;
}

static int candidates_find(const struct dt_candidates *candidates, const struct dt_point *point)
{
    if (candidates->whole)
        return (int)dt_space_index(candidates->space, point);
    for (int k = 0; k < candidates->cloud.count; k++)
        if (dt_point_equal(candidates->space, point, &candidates->points[k]))
            return k;
    return -1;
}

void dt_candidates_renew(struct dt_candidates *candidates, const struct dt_point centres[], int n,
                         struct dt_rng *rng)
{
    struct dt_point around[AROUND], point;
    int k = 0;
    for (int c = 0; c < n && !candidates->whole; c++) {
        int found = dt_space_neighbours(candidates->space, &centres[c], around, AROUND);
        for (int i = 0; i < found && i < AROUND && k < candidates->cloud.count / 4; i++)
            if (candidates_find(candidates, &around[i]) < 0)
                k = pool_replace(candidates, k, &around[i]);
    }
    int draws = affordable_draws(candidates->space, candidates->cloud.count);
    for (int i = 0; !candidates->whole && k < candidates->cloud.count && i < draws; i++) {
        dt_space_draw(candidates->space, rng, &point);
        k = pool_replace(candidates, k, &point);
    }
}

void dt_candidates_surround(struct dt_candidates *candidates, const struct dt_point *point)
{
    struct dt_point around[AROUND];
    const struct dt_cloud *cloud = &candidates->cloud;
    if (candidates->whole)
        return;
    int found = dt_space_neighbours(candidates->space, point, around, AROUND);
    for (int i = 0; i < found && i < AROUND && (size_t)cloud->count + MORE / 2 < cloud->room; i++)
        (void)dt_candidates_add(candidates, &around[i]);
}

dt_status dt_candidates_init(struct dt_candidates *candidates, const struct dt_space *space,
                             int most, struct dt_rng *rng)
{
    bool whole = dt_space_listed(space) && dt_space_count(space) <= most;
    int count =
        whole ? (int)dt_space_count(space) : affordable_draws(space, most < POOL ? most : POOL);
    *candidates = (struct dt_candidates){.space = space, .whole = whole};
    dt_status status = candidates_allocate(candidates, (size_t)(whole ? count : count + MORE));
    if (status < 0) {
        dt_candidates_fini(candidates);
        return status;
    }
    if (!whole) {
        fill_pool(candidates, count, rng);
        return DT_OK;
    }
    candidates->cloud.count = count;
    for (int k = 0; k < count; k++)
        candidate_place(candidates, k);
    return DT_OK;
}

int dt_candidates_add(struct dt_candidates *candidates, const struct dt_point *point)
{
    int k = candidates_find(candidates, point);
    if (k >= 0 || candidates->whole || (size_t)candidates->cloud.count == candidates->cloud.room)
        return k;
    k = candidates->cloud.count++;
    candidates->points[k] = *point;
    candidate_place(candidates, k);
    return k;
}

void dt_candidates_fini(struct dt_candidates *candidates)
{
    for (int d = 0; d < candidates->cloud.dims; d++)
        free(candidates->coordinate[d]);
    free(candidates->cloud.x);
    free(candidates->seen);
    free(candidates->points);
    *candidates = (struct dt_candidates){0};
}

void dt_candidates_at(const struct dt_candidates *candidates, int k, struct dt_point *point)
{
    if (candidates->whole)
        dt_space_at(candidates->space, k, point);
    else
        *point = candidates->points[k];
}

#define ALIKE 1e-3 /* squared distances in standard deviations */

double dt_candidates_nearest(const struct dt_candidates *candidates, const struct dt_kernel *kernel,
                             int k)
{
    double least = INFINITY;
    for (int i = 0; i < candidates->cloud.count; i++)
        if (candidates->seen[i])
            least = fmin(least, dt_kernel_distance(kernel, &candidates->cloud, i, k));
    return least;
}

/* A uniform unseen candidate: by rejection, or by counting when few are left. */
static int unseen_draw(const struct dt_candidates *candidates, struct dt_rng *rng)
{
    const int count = candidates->cloud.count;
    for (int i = 0; i < 32; i++) {
        int k = (int)dt_rng_below(rng, (uint64_t)count);
        if (!candidates->seen[k])
            return k;
    }
    int left = 0;
    for (int k = 0; k < count; k++)
        left += !candidates->seen[k];
    if (left == 0)
        return -1;
    int chosen = (int)dt_rng_below(rng, (uint64_t)left);
    for (int k = 0;; k++)
        if (!candidates->seen[k] && chosen-- == 0)
            return k;
}

/* Mean of a coordinate over the candidates, and its standard deviation. */
static double cloud_middle(const struct dt_cloud *cloud, int d, double *deviation)
{
    const float *x = cloud->x + (size_t)d * cloud->room;
    double sum = 0, squares = 0;
    for (int i = 0; i < cloud->count; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    double mean = sum / cloud->count;
    *deviation = sqrt(fmax(squares / cloud->count - mean * mean, 0));
    return mean;
}

struct dt_kernel dt_design_kernel(const struct dt_candidates *candidates)
{
    struct dt_kernel kernel = {.signal = 1};
    for (int d = 0; d < candidates->cloud.dims; d++) {
        (void)cloud_middle(&candidates->cloud, d, &kernel.length[d]);
        if (!(kernel.length[d] > 0) || candidates->cloud.label[d])
            kernel.length[d] = 1;
        if (candidates->cloud.joined[d])
            kernel.length[d] *= 2;
    }
    return kernel;
}

/* A random one among those equally central within ALIKE: an axis of two values has no middle. */
static int central_candidate(const struct dt_candidates *candidates, const struct dt_kernel *kernel,
                             struct dt_rng *rng)
{
    const struct dt_cloud *cloud = &candidates->cloud;
    double mean[DT_DIMS_MAX] = {0}, deviation, least = INFINITY;
    int best = 0;
    for (int d = 0; d < cloud->dims; d++)
        mean[d] = cloud_middle(cloud, d, &deviation);
    for (int k = 0; k < cloud->count; k++) {
        double r2 = ALIKE * dt_rng_uniform(rng);
        for (int d = 0; d < cloud->dims; d++)
            if (!cloud->label[d])
                r2 += dt_kernel_square(cloud, kernel, d,
                                       (double)cloud->x[(size_t)d * cloud->room + (size_t)k] -
                                           mean[d]);
        if (r2 < least) {
            least = r2;
            best = k;
        }
    }
    return best;
}

int dt_design_next(const struct dt_candidates *candidates, const struct dt_kernel *kernel,
                   int draws, struct dt_rng *rng)
{
    int best = -1, seen = 0;
    double most = -1;
    for (int k = 0; k < candidates->cloud.count && seen == 0; k++)
        seen += candidates->seen[k];
    if (seen == 0)
        return central_candidate(candidates, kernel, rng);
    for (int i = 0; i < draws; i++) {
        int k = unseen_draw(candidates, rng);
        double distance = k < 0 || draws == 1 ? 0 : dt_candidates_nearest(candidates, kernel, k);
        if (k >= 0 && distance > most) {
            best = k;
            most = distance;
        }
    }
    return best;
}
