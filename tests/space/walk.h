/* SPDX-License-Identifier: MIT */
/* walk - the whole product of a space's axes, feasible or not
 *
 *     struct dt_point point = {{0}};
 *     do
 *         look(&point);
 *     while (walk_on(space, &point));
 */
#ifndef DT_TESTS_SPACE_WALK_H
#define DT_TESTS_SPACE_WALK_H

#include "space/space.h"

/* The next point, last axis fastest; false after the last. */
static inline bool walk_on(const struct dt_space *space, struct dt_point *point)
{
    for (int i = dt_space_axes(space) - 1; i >= 0; i--) {
        if (++point->index[i] < dt_space_axis(space, i)->count)
            return true;
        point->index[i] = 0;
    }
    return false;
}

static inline void walk_values(const struct dt_space *space, const struct dt_point *point,
                               int64_t values[])
{
    for (int i = 0; i < dt_space_axes(space); i++)
        values[i] = dt_space_axis(space, i)->values[point->index[i]];
}

#endif
