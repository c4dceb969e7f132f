/* SPDX-License-Identifier: MIT */
/* Fits a plan to another count of devices. A plan that did not use all offered devices is not spread over more: the
 * session tried plans that do, and chose none. Otherwise one degree is scaled: the first that satisfies all rules, in
 * the order in which the default rule assigns devices (space/dit/dit.h), reversed for fewer devices. A foreign worker's
 * degrees are unknown: its ranks are scaled alone first, then together with each other number. */
#include "db/lookup/lookup_int.h"

#include <stdio.h>
#include <string.h>

struct scale {
    const struct dt_space *rules;
    const struct dt_asked *asked;
    const int64_t *from; /* axis order */
    int ranks_axis;
    int64_t from_ranks, to_ranks;
};

/* The axes worth trying, in order; -1: the ranks alone. */
static int degrees(const struct scale *scale, int axes[DT_AXES_MAX + 1])
{
    int n = 0;
    if (!scale->asked->foreign) {
        bool more = scale->to_ranks > scale->from_ranks;
        for (int i = 0; i < DT_DEGREES; i++) {
            int degree = dt_degrees_grown[more ? i : DT_DEGREES - 1 - i];
            axes[n++] = dt_space_find(scale->rules, dt_params[dt_degrees[degree].param].name);
        }
        return n;
    }
    axes[n++] = -1;
    for (int i = 0; i < dt_space_axes(scale->rules); i++) {
        const struct dt_axis *axis = dt_space_axis(scale->rules, i);
        if (i != scale->ranks_axis && axis->labels == NULL &&
            (axis->role == DT_ROLE_PLAIN || axis->role == DT_ROLE_LAYOUT))
            axes[n++] = i;
    }
    return n;
}

/* Threads follow a rank's share of the cores: at most the share, and all of it if they were all of it before. */
static void fit_threads(const struct scale *scale, int64_t values[])
{
    int axis = dt_space_find(scale->rules, "threads");
    int64_t cores = 0;
    if (scale->asked->foreign || axis < 0 || !dt_space_constant(scale->rules, "cores", &cores))
        return;
    int64_t before = cores / scale->from_ranks, now = cores / scale->to_ranks;
    now = now > 1 ? now : 1;
    if (values[axis] > now || values[axis] >= before)
        values[axis] = now;
}

static bool try_degree(const struct scale *scale, int axis, int64_t values[])
{
    memcpy(values, scale->from, (size_t)dt_space_axes(scale->rules) * sizeof values[0]);
    values[scale->ranks_axis] = scale->to_ranks;
    if (axis >= 0) {
        int64_t product;
        if (__builtin_mul_overflow(values[axis], scale->to_ranks, &product) || product <= 0 ||
            product % scale->from_ranks != 0)
            return false;
        values[axis] = product / scale->from_ranks;
    }
    fit_threads(scale, values);
    return dt_plan_keeps(scale->rules, scale->asked, values);
}

static void say(const struct scale *scale, int axis, const int64_t values[],
                struct dt_fitted *fitted)
{
    struct dt_text text = {0};
    dt_text_add(&text, "fitted to %lld rank%s", (long long)scale->to_ranks,
                scale->to_ranks == 1 ? "" : "s");
    for (int i = 0; i < dt_space_axes(scale->rules); i++)
        if (values[i] != scale->from[i] && i != scale->ranks_axis)
            dt_text_add(&text,
                        i == axis ? ": %s scaled from %lld to %lld" : ", %s from %lld to %lld",
                        dt_space_axis(scale->rules, i)->name, (long long)scale->from[i],
                        (long long)values[i]);
    snprintf(fitted->changed, sizeof fitted->changed, "%s", dt_text_at(&text));
    fitted->refit = true;
    dt_text_fini(&text);
}

static bool rescale_to(const struct scale *scale, int64_t values[], struct dt_fitted *fitted)
{
    int64_t trial[DT_AXES_MAX];
    int axes[DT_AXES_MAX + 1], n = degrees(scale, axes);
    for (int i = 0; i < n; i++) {
        if (!try_degree(scale, axes[i], trial))
            continue;
        say(scale, axes[i], trial, fitted);
        memcpy(values, trial, (size_t)dt_space_axes(scale->rules) * sizeof values[0]);
        return true;
    }
    return false;
}

static void as_it_is(const struct scale *scale, struct dt_fitted *fitted)
{
    if (scale->from_ranks == scale->asked->devices)
        snprintf(fitted->changed, sizeof fitted->changed, "used as it is");
    else
        snprintf(fitted->changed, sizeof fitted->changed, "used as it is, on %lld of %d devices",
                 (long long)scale->from_ranks, scale->asked->devices);
}

void dt_plan_rescale(const struct dt_space *rules, const struct dt_match *match,
                     const struct dt_asked *asked, int64_t values[], struct dt_fitted *fitted)
{
    struct scale scale = {
        .rules = rules, .asked = asked, .ranks_axis = dt_space_role(rules, DT_ROLE_RANKS)};
    int64_t from[DT_AXES_MAX];
    if (scale.ranks_axis < 0 || dt_space_axis(rules, scale.ranks_axis)->labels != NULL)
        return;
    memcpy(from, values, (size_t)dt_space_axes(rules) * sizeof from[0]);
    scale.from = from;
    scale.from_ranks = values[scale.ranks_axis];
    bool fits = scale.from_ranks <= asked->devices, all = scale.from_ranks >= match->devices;
    int64_t least = fits ? scale.from_ranks + 1 : 1;
    if (scale.from_ranks >= 1 && (!fits || all))
        for (scale.to_ranks = asked->devices; scale.to_ranks >= least; scale.to_ranks--)
            if (rescale_to(&scale, values, fitted))
                return;
    if (fits)
        as_it_is(&scale, fitted);
}
