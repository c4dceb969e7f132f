/* SPDX-License-Identifier: MIT */
/* Points that differ on one axis. */
#include "space/space_int.h"

struct found {
    struct dt_point *out;
    int count, room;
};

static bool keep(const struct dt_space *space, const struct dt_point *point, struct found *found)
{
    if (!dt_space_feasible(space, point))
        return false;
    if (found->count < found->room)
        found->out[found->count] = *point;
    found->count++;
    return true;
}

static void step(const struct dt_space *space, const struct dt_point *point, int axis,
                 struct found *found)
{
    struct dt_point moved = *point;
    do
        moved.index[axis]--;
    while (moved.index[axis] >= 0 && !keep(space, &moved, found));
    moved = *point;
    do
        moved.index[axis]++;
    while (moved.index[axis] < space->axes[axis].count && !keep(space, &moved, found));
}

static void exchange(const struct dt_space *space, const struct dt_point *point, int axis,
                     struct found *found)
{
    struct dt_point moved = *point;
    for (int i = 0; i < space->axes[axis].count; i++) {
        moved.index[axis] = i;
        if (i != point->index[axis])
            keep(space, &moved, found);
    }
}

int dt_space_neighbours(const struct dt_space *space, const struct dt_point *point,
                        enum dt_move move, struct dt_point out[], int room)
{
    struct found found = {.out = out, .room = room};
    for (int axis = 0; axis < space->axis_count; axis++) {
        if (move == DT_STEP)
            step(space, point, axis, &found);
        else
            exchange(space, point, axis, &found);
    }
    return found.count;
}
