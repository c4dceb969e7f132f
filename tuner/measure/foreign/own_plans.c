/* SPDX-License-Identifier: MIT */
/* The two plans of a worker's own space that every other is compared with: its default, and the one of the fewest ranks. */
#include "tuner/measure/target_int.h"

#include <stdio.h>

/* More ranks than there are devices: the same with the most ranks that are feasible, as the user gives no more devices. */
static bool locate_fewer(const struct dt_target *target, int ranks, int64_t values[],
                         struct dt_point *point)
{
    const struct dt_space *space = target->space;
    if (!target->limited || values[ranks] <= target->hardware.devices)
        return false;
    for (int i = dt_space_axis(space, ranks)->count; i-- > 0;) {
        values[ranks] = dt_space_axis(space, ranks)->values[i];
        if (dt_space_locate(space, values, point) == DT_OK)
            return true;
    }
    return false;
}

/* No other plan takes the default's place: one that breaks a rule is the default as it is. */
static void find_default(struct dt_target *target, int ranks, int64_t values[])
{
    const struct dt_space *space = target->space;
    if (dt_space_locate(space, values, &target->fallback) == DT_OK)
        return;
    snprintf(target->broken, sizeof target->broken, "%s", dt_message());
    dt_text_mend(target->broken);
    if (ranks >= 0 && locate_fewer(target, ranks, values, &target->fallback)) {
        target->broken[0] = '\0';
        return;
    }
    for (int i = 0; i < dt_space_axes(space); i++)
        target->fallback.index[i] = dt_space_axis(space, i)->fallback;
}

static int differences(const struct dt_space *space, const struct dt_point *a,
                       const struct dt_point *b)
{
    int n = 0;
    for (int i = 0; i < dt_space_axes(space); i++)
        n += a->index[i] != b->index[i];
    return n;
}

/* A feasible plan to begin with. */
static struct dt_point any_plan(const struct dt_target *target)
{
    struct dt_rng rng = dt_rng_at(0, "fallback");
    struct dt_point point = target->fallback;
    if (target->broken[0] == '\0')
        return point;
    if (dt_space_listed(target->space))
        dt_space_at(target->space, 0, &point);
    else
        dt_space_draw(target->space, &rng, &point);
    return point;
}

/* The default with the fewest ranks. Where its degrees need more ranks, or it breaks a rule: of the plans with the fewest, the one
 * that differs least from it. */
static struct dt_point find_baseline(const struct dt_target *target, int ranks)
{
    const struct dt_space *space = target->space;
    struct dt_point found = any_plan(target), one = target->fallback;
    if (ranks >= 0)
        one.index[ranks] = 0;
    if (dt_space_feasible(space, &one))
        return one;
    for (int64_t k = 0; dt_space_listed(space) && k < dt_space_count(space); k++) {
        dt_space_at(space, k, &one);
        int more = ranks < 0 ? 0 : one.index[ranks] - found.index[ranks];
        bool nearer = differences(space, &one, &target->fallback) <
                      differences(space, &found, &target->fallback);
        if (more < 0 || (more == 0 && nearer))
            found = one;
    }
    return found;
}

dt_status dt_target_own_plans(struct dt_target *target)
{
    int64_t values[DT_AXES_MAX];
    int ranks = dt_space_role(target->space, DT_ROLE_RANKS);
    if (dt_space_count(target->space) == 0)
        return DT_OK;
    DT_TRY(dt_space_parse(target->space, "", values));
    find_default(target, ranks, values);
    target->baseline = find_baseline(target, ranks);
    return DT_OK;
}
