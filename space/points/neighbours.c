/* SPDX-License-Identifier: MIT */
/* Points that differ on one axis, and where values belong together, in what follows from it: a neighbour by an axis differs in no
 * axis before it, so none is found twice. */
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

/* The point with another value of an axis, and what goes with it: in a list of cases, another case; where axes do not exist any
 * more, their defaults. false: there is none. */
static bool move_to(const struct dt_space *space, const struct dt_point *point, int axis, int index,
                    struct dt_point *moved)
{
    bool exists = true;
    *moved = *point;
    moved->index[axis] = index;
    for (int i = 0; exists && i < space->rule_count; i++)
        if (space->rules[i].cases != NULL && (space->rules[i].axes >> axis & 1) != 0)
            exists = dt_cases_move(space->rules[i].cases, axis, index, moved);
    for (int i = axis + 1; i < space->axis_count; i++)
        if (!dt_point_has(space, moved, i))
            moved->index[i] = space->axes[i].fallback;
    return exists;
}

static void step(const struct dt_space *space, const struct dt_point *point, int axis,
                 struct found *found)
{
    for (int by = -1; by <= 1; by += 2)
        for (int i = point->index[axis] + by; i >= 0 && i < space->axes[axis].count; i += by) {
            struct dt_point moved;
            if (move_to(space, point, axis, i, &moved) && keep(space, &moved, found))
                break;
        }
}

static void exchange(const struct dt_space *space, const struct dt_point *point, int axis,
                     struct found *found)
{
    for (int i = 0; i < space->axes[axis].count; i++) {
        struct dt_point moved;
        if (i != point->index[axis] && move_to(space, point, axis, i, &moved))
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
