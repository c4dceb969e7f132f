/* SPDX-License-Identifier: MIT */
/* An order of the axes that keeps few of them open (bound, and used by an undecided rule). Greedy; ties go to the order
 * in which the axes were declared. */
#include "space/diagram/diagram.h"

#include <math.h>

struct sets {
    const struct dt_space *space;
    const uint32_t *rules;
    int rule_count;
};

/* log2 of the combinations of the open axes once those in the mask are bound. */
static double width(const struct sets *sets, uint32_t bound)
{
    uint32_t open = 0;
    double sum = 0;
    for (int i = 0; i < sets->rule_count; i++)
        if ((sets->rules[i] & ~bound) != 0)
            open |= sets->rules[i] & bound;
    for (int i = 0; i < sets->space->axis_count; i++)
        if (open >> i & 1)
            sum += log2(sets->space->axes[i].count);
    return sum;
}

/* Cost of binding this axis: the open combinations before it times its values, plus those after it. */
static double step(const struct sets *sets, uint32_t bound, int axis)
{
    double before = width(sets, bound) + log2(sets->space->axes[axis].count);
    return fmax(before, width(sets, bound | UINT32_C(1) << axis) + 1);
}

static double greedy(const struct sets *sets, int first, int order[])
{
    uint32_t bound = 0;
    double sum = 0;
    for (int n = 0; n < sets->space->axis_count; n++) {
        int best = -1;
        double least = INFINITY;
        for (int i = 0; i < sets->space->axis_count; i++) {
            double cost = bound >> i & 1 ? INFINITY : step(sets, bound, i);
            if (cost < least - 1e-9) {
                least = cost;
                best = i;
            }
        }
        if (n == 0) {
            least = step(sets, bound, first);
            best = first;
        }
        order[n] = best;
        bound |= UINT32_C(1) << best;
        sum += exp2(least);
    }
    return sum;
}

void dt_diagram_order(const struct dt_space *space, const uint32_t rules[], int n, int order[])
{
    const struct sets sets = {.space = space, .rules = rules, .rule_count = n};
    double least = INFINITY;
    for (int first = 0; first < space->axis_count; first++) {
        int tried[DT_AXES_MAX];
        double cost = greedy(&sets, first, tried);
        if (cost >= least * (1 - 1e-9))
            continue;
        least = cost;
        for (int i = 0; i < space->axis_count; i++)
            order[i] = tried[i];
    }
}
