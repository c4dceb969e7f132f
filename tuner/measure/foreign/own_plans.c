/* SPDX-License-Identifier: MIT */
/* The two plans of a worker's own space that every other is compared with: its default, and the one of the fewest ranks. */
#include "tuner/measure/target_int.h"

/* The default point, or the same with the most feasible ranks. */
static bool locate_default(const struct dt_space *space, int64_t values[], struct dt_point *point)
{
    int ranks = dt_space_role(space, DT_ROLE_RANKS);
    if (dt_space_locate(space, values, point) == DT_OK)
        return true;
    for (int i = ranks < 0 ? 0 : dt_space_axis(space, ranks)->count; i-- > 0;) {
        values[ranks] = dt_space_axis(space, ranks)->values[i];
        if (dt_space_locate(space, values, point) == DT_OK)
            return true;
    }
    return false;
}

static int differences(const struct dt_space *space, const struct dt_point *a,
                       const struct dt_point *b)
{
    int n = 0;
    for (int i = 0; i < dt_space_axes(space); i++)
        n += a->index[i] != b->index[i];
    return n;
}

/* The default with the fewest ranks. Where its degrees need more ranks: of the plans with the fewest, the one that differs
 * least from it. */
static struct dt_point find_baseline(const struct dt_target *target, int ranks)
{
    const struct dt_space *space = target->space;
    struct dt_point found = target->fallback, one = target->fallback;
    if (ranks < 0)
        return found;
    one.index[ranks] = 0;
    if (dt_space_feasible(space, &one))
        return one;
    for (int64_t k = 0; dt_space_listed(space) && k < dt_space_count(space); k++) {
        dt_space_at(space, k, &one);
        bool fewer = one.index[ranks] < found.index[ranks];
        bool nearer = one.index[ranks] == found.index[ranks] &&
                      differences(space, &one, &target->fallback) <
                          differences(space, &found, &target->fallback);
        if (fewer || nearer)
            found = one;
    }
    return found;
}

dt_status dt_target_own_plans(struct dt_target *target)
{
    int64_t values[DT_AXES_MAX];
    if (dt_space_count(target->space) == 0)
        return DT_OK;
    DT_TRY(dt_space_parse(target->space, "", values));
    struct dt_rng rng = dt_rng_at(0, "fallback");
    if (!locate_default(target->space, values, &target->fallback)) {
        if (dt_space_listed(target->space))
            dt_space_at(target->space, 0, &target->fallback);
        else
            dt_space_draw(target->space, &rng, &target->fallback);
    }
    target->baseline = find_baseline(target, dt_space_role(target->space, DT_ROLE_RANKS));
    return DT_OK;
}
