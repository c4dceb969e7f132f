/* SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "search/told_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double dt_told_value(const struct dt_trial *trial)
{
    return isfinite(trial->value) ? trial->value : INFINITY;
}

static void forget(struct dt_told *told, const struct dt_space *space, const struct dt_point *point)
{
    for (int i = 0; i < told->count; i++) {
        if (!dt_point_equal(space, &told->rows[i].point, point))
            continue;
        told->count--;
        memmove(told->rows + i, told->rows + i + 1, (size_t)(told->count - i) * sizeof *told->rows);
        return;
    }
}

void dt_told_add(struct dt_told *told, const struct dt_space *space, const struct dt_trial *trial)
{
    forget(told, space, &trial->point);
    if (DT_GROW(told->rows, told->count, 1) < 0)
        return;
    const struct dt_told_answer row = {.point = trial->point, .value = dt_told_value(trial)};
    int at = told->count++;
    for (; at > 0 && told->rows[at - 1].value > row.value; at--)
        told->rows[at] = told->rows[at - 1];
    told->rows[at] = row;
}

void dt_told_fini(struct dt_told *told)
{
    free(told->rows);
    *told = (struct dt_told){0};
}
