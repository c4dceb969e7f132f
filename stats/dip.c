/* SPDX-License-Identifier: MIT */
/* The dip: the largest distance between the empirical distribution and the nearest unimodal one. A unimodal
 * distribution is convex before its mode and concave after it. The interval that holds the mode is narrowed between the
 * greatest convex minorant and the least concave majorant of what lies inside, until their distance is at most the
 * misfit already found outside (Hartigan, Hartigan, Annals of Statistics 13, 1985). Heights are in samples. */
#include "stats/stats_int.h"

#include <math.h>
#include <stdlib.h>

/* For the distinct values in ascending order: samples below and up to each, and the two hulls there. */
struct steps {
    int n;
    double *value, *below, *upto, *minorant, *majorant;
    int *vertex; /* of the current hull */
};

/* Vertices of the convex (side 1) or concave (side -1) hull of (value, height) over low..high; returns their number. */
static int vertices(const struct steps *steps, const double height[], int low, int high, int side)
{
    const double *x = steps->value;
    int n = 0;
    for (int i = low; i <= high; i++) {
        for (; n > 1; n--) {
            int a = steps->vertex[n - 2], b = steps->vertex[n - 1];
            double turn =
                (height[b] - height[a]) * (x[i] - x[b]) - (height[i] - height[b]) * (x[b] - x[a]);
            if (side * turn < 0)
                break;
        }
        steps->vertex[n++] = i;
    }
    return n;
}

/* Height of the hull at every value; returns its number of vertices. */
static int draw(const struct steps *steps, int low, int high, int side, double hull[])
{
    const double *x = steps->value, *height = side > 0 ? steps->below : steps->upto;
    int n = vertices(steps, height, low, high, side);
    for (int piece = 0; piece + 1 < n; piece++) {
        int a = steps->vertex[piece], b = steps->vertex[piece + 1];
        for (int i = a; i <= b; i++)
            hull[i] = height[a] + (height[b] - height[a]) * (x[i] - x[a]) / (x[b] - x[a]);
    }
    if (n == 1)
        hull[low] = height[low];
    return n;
}

static int vertex_before(const struct steps *steps, int n, int at)
{
    int found = steps->vertex[0];
    for (int k = 0; k < n && steps->vertex[k] <= at; k++)
        found = steps->vertex[k];
    return found;
}

static int vertex_after(const struct steps *steps, int n, int at)
{
    int k = 0;
    while (k + 1 < n && steps->vertex[k] < at)
        k++;
    return steps->vertex[k];
}

static int widest(const struct steps *steps, int low, int high, double *distance)
{
    int at = low;
    for (int i = low; i <= high; i++)
        if (steps->majorant[i] - steps->minorant[i] > steps->majorant[at] - steps->minorant[at])
            at = i;
    *distance = steps->majorant[at] - steps->minorant[at];
    return at;
}

/* Twice the dip, in samples. The inner interval includes its ends: a step at the mode adds no misfit. */
static double narrow(const struct steps *steps)
{
    int low = 0, high = steps->n - 1;
    for (double twice = 1;;) {
        double distance;
        draw(steps, low, high, 1, steps->minorant);
        int n = draw(steps, low, high, -1, steps->majorant);
        int at = widest(steps, low, high, &distance);
        int right = vertex_after(steps, n, at);
        n = vertices(steps, steps->below, low, high, 1);
        int left = vertex_before(steps, n, at);
        if (distance <= twice)
            return twice;
        for (int i = low; i < left; i++)
            twice = fmax(twice, steps->upto[i] - steps->minorant[i]);
        for (int i = high; i > right; i--)
            twice = fmax(twice, steps->majorant[i] - steps->below[i]);
        if (left == low && right == high)
            return twice;
        low = left;
        high = right;
    }
}

double dt_dip(const double sorted[], int n)
{
    size_t room = n > 0 ? (size_t)n : 1;
    double *memory = n >= DT_SERIES_LEAST ? malloc(5 * room * sizeof *memory) : NULL;
    int *vertex = malloc(room * sizeof *vertex);
    double result = NAN;
    if (memory != NULL && vertex != NULL) {
        struct steps steps = {.value = memory,
                              .below = memory + room,
                              .upto = memory + 2 * room,
                              .minorant = memory + 3 * room,
                              .majorant = memory + 4 * room,
                              .vertex = vertex};
        for (int i = 0; i < n; i++) {
            if (i == 0 || sorted[i] > sorted[i - 1]) {
                steps.value[steps.n] = sorted[i];
                steps.below[steps.n++] = i;
            }
            steps.upto[steps.n - 1] = i + 1;
        }
        result = steps.n > 1 ? narrow(&steps) / (2 * sqrt(n)) : 0;
    }
    free(memory);
    free(vertex);
    return result;
}
