/* SPDX-License-Identifier: MIT */
/* Draws, and designs that fill the space. A coordinate in [0, 1) chooses among the feasible values of an axis, weighted
 * by the number of feasible points below each, so evenly spread coordinates give evenly spread points. */
#include "space/diagram/diagram.h"
#include "space/space_int.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sobol's sequence in Gray-code order (Antonov, Saleev 1979) with the direction numbers of Joe and Kuo (2008, file
 * new-joe-kuo-6.21201) and a random digital shift, which keeps the strata of the sequence and makes each point uniform. */

/* For the coordinates from the second on: the degree of a primitive polynomial, its inner coefficients, and the first
 * direction numbers. */
static const struct {
    uint8_t degree, inner, first[7];
} sobol_rows[DT_AXES_MAX - 1] = {
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
    {7, 7, {1, 1, 3, 13, 7, 35, 63}},
    {7, 8, {1, 3, 5, 9, 1, 25, 53}},
    {7, 14, {1, 3, 1, 13, 9, 35, 107}},
    {7, 19, {1, 3, 1, 5, 27, 61, 31}},
    {7, 21, {1, 1, 5, 11, 19, 41, 61}},
    {7, 28, {1, 3, 5, 3, 3, 13, 69}},
    {7, 31, {1, 1, 7, 13, 1, 19, 1}},
    {7, 32, {1, 3, 7, 5, 13, 19, 59}},
    {7, 37, {1, 1, 3, 9, 25, 29, 41}},
    {7, 41, {1, 3, 5, 13, 23, 1, 55}},
    {7, 42, {1, 3, 7, 3, 13, 59, 17}},
};

static void directions(int coordinate, uint32_t out[32])
{
    if (coordinate == 0) {
        for (int i = 0; i < 32; i++)
            out[i] = UINT32_C(1) << (31 - i);
        return;
    }
    int degree = sobol_rows[coordinate - 1].degree, inner = sobol_rows[coordinate - 1].inner;
    for (int i = 0; i < 32; i++) {
        if (i < degree) {
            out[i] = (uint32_t)sobol_rows[coordinate - 1].first[i] << (31 - i);
            continue;
        }
        out[i] = out[i - degree] ^ (out[i - degree] >> degree);
        for (int k = 1; k < degree; k++)
            if (inner >> (degree - 1 - k) & 1)
                out[i] ^= out[i - k];
    }
}

void dt_sobol_init(struct dt_sobol *sobol, uint64_t seed)
{
    sobol->index = 0;
    for (int i = 0; i < DT_AXES_MAX; i++) {
        directions(i, sobol->direction[i]);
        sobol->state[i] = (uint32_t)dt_rng_hash(seed, dt_rng_stream("sobol shift"), (uint64_t)i);
    }
}

void dt_sobol_next(struct dt_sobol *sobol, double coordinates[DT_AXES_MAX])
{
    for (int i = 0; i < DT_AXES_MAX; i++)
        coordinates[i] = (double)sobol->state[i] / 4294967296.0;
    int bit = 0;
    while (bit < 31 && (sobol->index >> bit & 1) != 0)
        bit++;
    sobol->index++;
    for (int i = 0; i < DT_AXES_MAX; i++)
        sobol->state[i] ^= sobol->direction[i][bit];
}

/* Set of points by hash: open addressing, at most half full. */
struct seen {
    const struct dt_space *space;
    const struct dt_point *points;
    int *slots; /* index of a point, plus one */
    uint64_t mask;
};

static const char drawing[] = "while drawing plans";

/* Rejection sampling from a diagram of some of the rules. After far more tries than expected it returns the known
 * point, since a caller always gets one. */
static void draw_relaxed(const struct dt_space *space, struct dt_rng *rng, struct dt_point *point)
{
    for (int64_t tries = (int64_t)(100 / space->relaxation.share); tries > 0; tries--) {
        dt_diagram_draw(space->diagram, rng, point);
        if (dt_space_passes(space, point))
            return;
    }
    *point = space->relaxation.known;
}

void dt_space_draw(const struct dt_space *space, struct dt_rng *rng, struct dt_point *point)
{
    assert(space->count != 0);
    if (space->relaxation.used)
        draw_relaxed(space, rng, point);
    else if (space->count > 0)
        dt_space_at(space, (int64_t)dt_rng_below(rng, (uint64_t)space->count), point);
    else
        dt_diagram_draw(space->diagram, rng, point);
}

double dt_space_tries(const struct dt_space *space)
{
    return space->relaxation.used ? 1 / space->relaxation.share : 1;
}

dt_status dt_space_probe(struct dt_space *space)
{
    struct dt_rng rng = dt_rng_at(0, "probe");
    struct dt_point point;
    int64_t tries = 0, found = 0, most = 1 << 20, cost = 1;
    for (int i = 0; i < space->rule_count; i++)
        if (!space->relaxation.kept[i])
            cost += 1 + (int64_t)strlen(space->rules[i].text) / 16;
    most = most * 4 / cost > 1 << 12 ? most * 4 / cost : 1 << 12;
    while (found < 256 && tries < most && space->diagram->weight > 0) {
        dt_diagram_draw(space->diagram, &rng, &point);
        tries++;
        if (dt_space_passes(space, &point)) {
            space->relaxation.known = point;
            found++;
        }
    }
    if (space->diagram->weight == 0)
        space->count = 0;
    if (found == 0 && space->count != 0)
        return dt_fail(DT_EUNSUP,
                       "the space is too large to enumerate, and none of %lld plans drawn from it "
                       "is feasible: name fewer values, or split the rules into simpler ones",
                       (long long)tries);
    space->relaxation.share = found > 0 ? (double)found / (double)tries : 0;
    return DT_OK;
}

/* Axes with one value use no coordinate, so that the first ones, which are spread best, are used where there is a
 * choice. */
static bool at_coordinates(const struct dt_space *space, const double coordinates[],
                           struct dt_point *point)
{
    double spread[DT_AXES_MAX] = {0};
    int used = 0;
    for (int i = 0; i < space->diagram->layer_count; i++)
        if (space->axes[space->diagram->layers[i].axis].count > 1)
            spread[i] = coordinates[used++];
    dt_diagram_at_coordinates(space->diagram, spread, point);
    return dt_space_passes(space, point);
}

static uint64_t hash(const struct seen *seen, const struct dt_point *point)
{
    uint64_t key = 0;
    for (int i = 0; i < seen->space->axis_count; i++)
        key = dt_rng_hash(key, 0, (uint64_t)point->index[i]);
    return key;
}

static dt_status seen_init(struct seen *seen, const struct dt_space *space,
                           const struct dt_point points[], int n)
{
    uint64_t room = 16;
    while (room < 2 * (uint64_t)n)
        room *= 2;
    *seen = (struct seen){.space = space, .points = points, .mask = room - 1};
    seen->slots = calloc(room, sizeof *seen->slots);
    return seen->slots != NULL ? DT_OK : dt_no_memory(drawing);
}

/* false: an equal point exists already. */
static bool add(struct seen *seen, int k)
{
    uint64_t at = hash(seen, &seen->points[k]) & seen->mask;
    for (; seen->slots[at] != 0; at = (at + 1) & seen->mask)
        if (dt_point_equal(seen->space, &seen->points[seen->slots[at] - 1], &seen->points[k]))
            return false;
    seen->slots[at] = k + 1;
    return true;
}

/* Replaces duplicates by uniform draws. Where the points are not counted, many consecutive draws without a new point
 * mean that none is left. */
static int fill(struct seen *seen, struct dt_rng *rng, int from, int n, struct dt_point points[])
{
    const double tests = 2e5, misses = fmin(1000, 1 + tests / dt_space_tries(seen->space));
    for (int missed = 0; from < n && (missed < misses || dt_space_listed(seen->space));) {
        dt_space_draw(seen->space, rng, &points[from]);
        bool found = add(seen, from);
        missed = found ? 0 : missed + 1;
        from += found;
    }
    return from;
}

/* When most of a small space is requested: the first *n of all points in random order. */
static dt_status shuffle(const struct dt_space *space, struct dt_rng *rng, int *n,
                         struct dt_point points[])
{
    int count = (int)space->count;
    int *order = calloc((size_t)count + 1, sizeof *order);
    if (order == NULL)
        return dt_no_memory(drawing);
    for (int i = 0; i < count; i++)
        order[i] = i;
    *n = *n < count ? *n : count;
    for (int i = 0; i < *n; i++) {
        int k = i + (int)dt_rng_below(rng, (uint64_t)(count - i)), other = order[k];
        order[k] = order[i];
        dt_space_at(space, other, &points[i]);
    }
    free(order);
    return DT_OK;
}

static bool is_small(const struct dt_space *space, int n)
{
    return dt_space_listed(space) && space->count <= 2 * (int64_t)n;
}

dt_status dt_space_sobol(const struct dt_space *space, uint64_t seed, int *n,
                         struct dt_point points[])
{
    struct dt_rng rng = dt_rng_at(seed, "sobol");
    struct dt_sobol sobol;
    struct seen seen;
    double coordinates[DT_AXES_MAX] = {0};
    int found = 0;
    if (is_small(space, *n))
        return shuffle(space, &rng, n, points);
    DT_TRY(seen_init(&seen, space, points, *n));
    dt_sobol_init(&sobol, seed);
    for (int64_t i = 0; found < *n && i < 4 * (int64_t)*n; i++) {
        dt_sobol_next(&sobol, coordinates);
        if (at_coordinates(space, coordinates, &points[found]))
            found += add(&seen, found);
    }
    *n = fill(&seen, &rng, found, *n, points);
    free(seen.slots);
    return DT_OK;
}

dt_status dt_space_lhs(const struct dt_space *space, struct dt_rng *rng, int *n,
                       struct dt_point points[])
{
    struct seen seen = {0};
    int found = 0;
    if (is_small(space, *n))
        return shuffle(space, rng, n, points);
    size_t rows = (size_t)*n, width = (size_t)space->axis_count;
    int *strata = calloc(rows * width + 1, sizeof *strata);
    dt_status status = strata != NULL ? seen_init(&seen, space, points, *n) : dt_no_memory(drawing);
    for (size_t a = 0; status == DT_OK && a < width; a++) {
        for (size_t i = 0; i < rows; i++) {
            size_t k = (size_t)dt_rng_below(rng, i + 1);
            strata[i * width + a] = strata[k * width + a];
            strata[k * width + a] = (int)i;
        }
    }
    for (size_t i = 0; status == DT_OK && i < rows; i++) {
        double coordinates[DT_AXES_MAX] = {0};
        for (size_t a = 0; a < width; a++)
            coordinates[a] = (strata[i * width + a] + dt_rng_uniform(rng)) / (double)rows;
        if (at_coordinates(space, coordinates, &points[found]))
            found += add(&seen, found);
    }
    if (status == DT_OK)
        *n = fill(&seen, rng, found, *n, points);
    free(seen.slots);
    free(strata);
    return status;
}
