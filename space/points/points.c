/* SPDX-License-Identifier: MIT */
/* A space whose points are given, not enumerated: sorted into the order of an enumeration. */
#include "space/diagram/diagram.h"
#include "space/space_int.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const struct dt_point *p = a, *q = b;
    for (int i = 0; i < DT_AXES_MAX; i++)
        if (p->index[i] != q->index[i])
            return p->index[i] < q->index[i] ? -1 : 1;
    return 0;
}

static dt_status check(const struct dt_space *space, const struct dt_point *point)
{
    for (int i = 0; i < space->axis_count; i++)
        if (point->index[i] < 0 || point->index[i] >= space->axes[i].count)
            return dt_fail(DT_EUSAGE, "a point's value %d of '%s' is none of its %d values",
                           point->index[i], space->axes[i].name, space->axes[i].count);
    return DT_OK;
}

/* Unused indices beyond the last axis are set to 0, so that equal points compare equal. */
static void copy(const struct dt_space *space, const struct dt_point *from, struct dt_point *to)
{
    *to = (struct dt_point){{0}};
    for (int i = 0; i < space->axis_count; i++)
        to->index[i] = from->index[i];
}

int64_t dt_points_sort(struct dt_point points[], int64_t n)
{
    int64_t kept = 0;
    qsort(points, (size_t)n, sizeof *points, compare);
    for (int64_t k = 0; k < n; k++)
        if (k == 0 || compare(&points[kept - 1], &points[k]) != 0)
            points[kept++] = points[k];
    return kept;
}

dt_status dt_space_seal_points(struct dt_space *space, const struct dt_point points[], int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        DT_TRY(check(space, &points[k]));
    struct dt_point *sorted = calloc((size_t)n + 1, sizeof *sorted);
    if (sorted == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a space of %lld plans", (long long)n);
    for (int64_t k = 0; k < n; k++)
        copy(space, &points[k], &sorted[k]);
    int64_t kept = dt_points_sort(sorted, n);
    dt_status status = dt_diagram_of(space->axis_count, sorted, kept, &space->diagram);
    free(sorted);
    DT_TRY(status);
    space->count = space->diagram->count;
    return dt_space_list(space);
}
