/* SPDX-License-Identifier: MIT */
/* Draws, and points of given coordinates. A coordinate in [0, 1) chooses among the feasible
 * values of an axis, weighted by the number of feasible points below each, so evenly spread
 * coordinates give evenly spread points. */
#include "space/diagram/diagram.h"
#include "space/space_int.h"

#include <assert.h>
#include <string.h>

/* Rejection sampling from a diagram of some of the rules. After far more tries than expected it
 * returns the known point, since a caller always gets one. */
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

/* Axes with one value use no coordinate, so that the first ones, which are spread best, are used
 * where there is a choice. */
bool dt_space_at_coordinates(const struct dt_space *space, const double coordinates[DT_AXES_MAX],
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
