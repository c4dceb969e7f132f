/* SPDX-License-Identifier: MIT */
#include "stats/front.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const struct dt_front_point *p = a, *q = b;
    if (p->value != q->value)
        return p->value < q->value ? -1 : 1;
    if (p->bytes != q->bytes)
        return p->bytes < q->bytes ? -1 : 1;
    return (p->index > q->index) - (p->index < q->index);
}

int dt_front(struct dt_front_point points[], int n)
{
    int finite = 0, kept = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(points[i].value))
            points[finite++] = points[i];
    qsort(points, (size_t)finite, sizeof points[0], by_value);
    for (int i = 0; i < finite; i++)
        if (kept == 0 || points[i].bytes < points[kept - 1].bytes)
            points[kept++] = points[i];
    return kept;
}
