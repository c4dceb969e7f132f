/* SPDX-License-Identifier: MIT */
/* Adapts a stored plan to a question. Every returned plan is checked against the rules of the
 * question: those of the built-in network at its size on this machine, or of a foreign worker as
 * stored in the query or the entry.
 *
 * A plan that did not use all offered devices is not spread over more: the session tried plans that
 * do, and chose none. Otherwise one degree is scaled: the first that satisfies all rules, in the
 * order in which the default rule assigns devices (space/dit/dit.h), reversed for fewer devices. A
 * foreign worker's degrees are unknown: its ranks are scaled alone first, then together with each
 * other number. */
#include "db/lookup/lookup_int.h"

#include "base/figures.h"
#include "space/dit/dit.h"
#include "space/json/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static dt_status value_read(const struct dt_axis *axis, const json_t *item, int64_t *value)
{
    dt_status status = dt_value_read(axis, item, value);
    if (status == DT_OK || status == DT_ENOMEM)
        return status;
    return dt_fail(DT_EINFEASIBLE, "its %s is of another kind than here", axis->name);
}

/* A parameter missing from the plan did not exist when it was stored, and has no effect at its
 * default. */
static dt_status plan_read(const struct dt_space *rules, const json_t *plan, int64_t values[])
{
    const char *name;
    json_t *item;
    if (json_object_size(plan) == 0)
        return dt_fail(DT_EINFEASIBLE, "it names no parameter");
    for (int i = 0; i < dt_space_axes(rules); i++) {
        const struct dt_axis *axis = dt_space_axis(rules, i);
        values[i] = axis->values[axis->fallback];
        item = json_object_get(plan, axis->name);
        if (item != NULL)
            DT_TRY(value_read(axis, item, &values[i]));
    }
    json_object_foreach((json_t *)plan, name, item)
    {
        if (dt_space_find(rules, name) < 0)
            return dt_fail(DT_EINFEASIBLE, "it names '%.80s', which is no parameter here", name);
    }
    return DT_OK;
}

static int64_t role_value(const struct dt_space *rules, enum dt_role role, const int64_t values[])
{
    int axis = dt_space_role(rules, role);
    return axis < 0 || dt_space_axis(rules, axis)->labels != NULL ? 1 : values[axis];
}

/* Devices of all ranks of all replicas; more than there can be where these do not multiply. */
static int64_t devices_of(const struct dt_space *rules, const int64_t values[])
{
    int64_t all;
    return __builtin_mul_overflow(role_value(rules, DT_ROLE_RANKS, values),
                                  role_value(rules, DT_ROLE_REPLICAS, values), &all)
               ? INT64_MAX
               : all;
}

/* A foreign worker's rules need not limit the number of devices. */
static bool fits_devices(const struct dt_space *rules, const struct dt_asked *asked,
                         const int64_t values[])
{
    return devices_of(rules, values) <= asked->devices;
}

/* The question's rules hold for these values. */
static bool plan_keeps(const struct dt_space *rules, const struct dt_asked *asked,
                       const int64_t values[])
{
    struct dt_point point;
    for (int i = 0; i < dt_space_axes(rules); i++) {
        point.index[i] = dt_axis_find(dt_space_axis(rules, i), values[i]);
        if (point.index[i] < 0)
            return false;
    }
    return fits_devices(rules, asked, values) && dt_space_feasible(rules, &point);
}

struct scale {
    const struct dt_space *rules;
    const struct dt_asked *asked;
    const int64_t *from; /* axis order */
    int ranks_axis;
    int64_t from_ranks, to_ranks;
};

/* The axes worth trying, in order; -1: the ranks alone. */
static int degrees_list(const struct scale *scale, int axes[DT_AXES_MAX + 1])
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

/* Threads follow a rank's share of the cores: at most the share, and all of it if they were all of
 * it before. */
static void threads_fit(const struct scale *scale, int64_t values[])
{
    int axis = dt_space_find(scale->rules, "threads");
    int64_t cores = 0, replicas = role_value(scale->rules, DT_ROLE_REPLICAS, scale->from);
    if (scale->asked->foreign || axis < 0 || !dt_space_constant(scale->rules, "cores", &cores))
        return;
    cores /= replicas > 1 ? replicas : 1;
    int64_t before = cores / scale->from_ranks, now = cores / scale->to_ranks;
    now = now > 1 ? now : 1;
    if (values[axis] > now || values[axis] >= before)
        values[axis] = now;
}

static bool degree_try(const struct scale *scale, int axis, int64_t values[])
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
    threads_fit(scale, values);
    return plan_keeps(scale->rules, scale->asked, values);
}

static void change_name(const struct scale *scale, int axis, const int64_t values[],
                        struct dt_fitted *fitted)
{
    dt_auto_text text = {0};
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
}

static bool rescale_to(const struct scale *scale, int64_t values[], struct dt_fitted *fitted)
{
    int64_t trial[DT_AXES_MAX];
    int axes[DT_AXES_MAX + 1], n = degrees_list(scale, axes);
    for (int i = 0; i < n; i++) {
        if (!degree_try(scale, axes[i], trial))
            continue;
        change_name(scale, axes[i], trial, fitted);
        memcpy(values, trial, (size_t)dt_space_axes(scale->rules) * sizeof values[0]);
        return true;
    }
    return false;
}

/* Several replicas that used all devices, or more than there are, become as many as fit the devices
 * and keep the rules: each stays as it was measured. */
static bool replicas_rescale(const struct dt_space *rules, const struct dt_match *match,
                             const struct dt_asked *asked, int64_t values[],
                             struct dt_fitted *fitted)
{
    int axis = dt_space_role(rules, DT_ROLE_REPLICAS);
    int64_t ranks = role_value(rules, DT_ROLE_RANKS, values), was, most;
    if (axis < 0 || values[axis] < 2 || ranks < 1 ||
        (fits_devices(rules, asked, values) && devices_of(rules, values) < match->devices))
        return false;
    was = values[axis];
    most = asked->devices / ranks;
    most = most < DT_REPLICAS_MOST ? most : DT_REPLICAS_MOST;
    values[axis] = most;
    while (values[axis] >= 1 && !plan_keeps(rules, asked, values))
        values[axis]--;
    if (values[axis] < 1 || values[axis] == was) {
        values[axis] = was;
        return false;
    }
    snprintf(fitted->changed, sizeof fitted->changed,
             "fitted to %d devices: replicas from %lld to %lld", asked->devices, (long long)was,
             (long long)values[axis]);
    fitted->refit = true;
    return true;
}

static void plan_rescale(const struct dt_space *rules, const struct dt_match *match,
                         const struct dt_asked *asked, int64_t values[], struct dt_fitted *fitted)
{
    if (replicas_rescale(rules, match, asked, values, fitted))
        return;
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
    if (!fits_devices(rules, asked, values))
        return;
    if (devices_of(rules, values) == asked->devices)
        snprintf(fitted->changed, sizeof fitted->changed, "used as it is");
    else
        snprintf(fitted->changed, sizeof fitted->changed, "used as it is, on %lld of %d devices",
                 (long long)devices_of(rules, values), asked->devices);
}

/* Factor from the measured step to the requested one, by operations and ranks. */
static double step_ratio(const struct dt_asked *asked, const struct dt_space *rules,
                         const json_t *entry, const int64_t values[])
{
    const json_t *key = json_object_get(entry, "key"), *plan = json_object_get(entry, "plan");
    int axis = dt_space_role(rules, DT_ROLE_RANKS);
    double ratio = 1;
    if (axis >= 0) {
        double was = json_number_value(json_object_get(plan, dt_space_axis(rules, axis)->name));
        double now = (double)role_value(rules, DT_ROLE_RANKS, values);
        ratio = was >= 1 && now >= 1 ? was / now : 1;
    }
    if (asked->foreign)
        return ratio;
    struct dt_workload then = asked->workload;
    json_int_t height = dt_json_integer_at(key, "height");
    json_int_t width = dt_json_integer_at(key, "width");
    json_int_t batch = dt_json_integer_at(plan, "batch");
    if (height < 1 || width < 1 || batch < 1 || height > 8192 || width > 8192 || batch > 65536)
        return HUGE_VAL;
    then.height = (int)height;
    then.width = (int)width;
    int now = (int)role_value(rules, DT_ROLE_BATCH, values);
    return ratio * dt_workload_flops(&asked->workload, now) / dt_workload_flops(&then, (int)batch);
}

/* A larger reserve than that of the entry must leave room for the plan. On cores all ranks share
 * the memory of their host. */
static dt_status reserve_check(const struct dt_asked *asked, const struct dt_space *rules,
                               const json_t *entry, const int64_t values[], int64_t bytes)
{
    const json_t *key = json_object_get(entry, "key");
    int64_t all = devices_of(rules, values), hosts = asked->hosts > 1 ? asked->hosts : 1;
    double held = (double)bytes * (asked->on_gpus ? 1 : (double)((all - 1) / hosts + 1));
    if (asked->reserve_bytes <= dt_json_integer_at(key, "reserve_bytes"))
        return DT_OK;
    if (bytes <= 0)
        return dt_fail(DT_EINFEASIBLE, "cannot check reserve_bytes: the entry has no peak_bytes");
    if (held <= (double)(asked->memory_bytes - asked->reserve_bytes))
        return DT_OK;
    return dt_fail(DT_EINFEASIBLE,
                   "it took %s, which with reserve_bytes, %lld (%s), is more than the %s of %s",
                   dt_figure_bytes_of((int64_t)held).text, (long long)asked->reserve_bytes,
                   dt_figure_bytes_of(asked->reserve_bytes).text,
                   dt_figure_bytes_of(asked->memory_bytes).text,
                   asked->on_gpus ? "a GPU" : "the machine");
}

/* Checks the limits by the entry's figures, scaled to the question; without figures it refuses. */
static dt_status limits_check(const struct dt_asked *asked, const struct dt_space *rules,
                              const json_t *entry, const int64_t values[])
{
    struct dt_measured figures;
    dt_record_read(&dt_record_measured, json_object_get(entry, "figures"), &figures);
    int64_t bytes = figures.peak_bytes; /* a limit of latency holds for the slowest replica */
    int64_t median = figures.slowest_ns > 0 ? figures.slowest_ns : figures.median_ns;
    if (asked->max_bytes > 0 && asked->foreign && bytes <= 0)
        return dt_fail(DT_EINFEASIBLE, "cannot check max_bytes: the entry has no "
                                       "peak_bytes");
    if (asked->max_bytes > 0 && bytes > asked->max_bytes)
        return dt_fail(DT_EINFEASIBLE,
                       "a rank took %lld bytes (%s), more than max_bytes, %lld (%s)",
                       (long long)bytes, dt_figure_bytes_of(bytes).text,
                       (long long)asked->max_bytes, dt_figure_bytes_of(asked->max_bytes).text);
    DT_TRY(reserve_check(asked, rules, entry, values, bytes));
    if (asked->max_latency_ns == 0)
        return DT_OK;
    if (median <= 0)
        return dt_fail(DT_EINFEASIBLE, "cannot check max_latency: the entry has "
                                       "no median_ns");
    double expected = (double)median * step_ratio(asked, rules, entry, values);
    if (expected > (double)asked->max_latency_ns)
        return dt_fail(DT_EINFEASIBLE, "a step takes about %s, longer than max_latency, %s",
                       dt_figure_of(expected * 1e-9).text,
                       dt_figure_of((double)asked->max_latency_ns * 1e-9).text);
    return DT_OK;
}

/* The rules to check by: the query's, else the entry's, to *own. */
static dt_status rules_find(const struct dt_asked *asked, const json_t *entry,
                            struct dt_space **own)
{
    const json_t *space = json_object_get(entry, "space");
    *own = NULL;
    if (asked->rules != NULL)
        return DT_OK;
    if (!json_is_object(space))
        return dt_fail(DT_EINFEASIBLE, "the entry holds no rules to check it by");
    dt_status status = dt_space_rules_from_json(space, "the entry's space", own);
    return status == DT_EUSAGE || status == DT_EUNSUP ? DT_EINFEASIBLE : status;
}

/* The entry's own default plan, asked for as it was measured, though it breaks a rule of its space
 * (db/entry.def). */
static bool is_measured_default(const struct dt_match *match, const json_t *entry)
{
    const json_t *fallback = json_object_get(entry, "default");
    return match->tier == DT_TIER_EXACT && json_object_get(fallback, "rule") != NULL &&
           json_equal(json_object_get(fallback, "plan"), json_object_get(entry, "plan"));
}

static dt_status plan_adapt(const struct dt_asked *asked, const struct dt_space *rules,
                            const struct dt_match *match, const json_t *entry,
                            struct dt_fitted *fitted)
{
    int64_t values[DT_AXES_MAX];
    DT_TRY(plan_read(rules, json_object_get(entry, "plan"), values));
    int axis = dt_space_role(rules, DT_ROLE_BATCH);
    if (match->batch > 0 && axis >= 0)
        values[axis] = match->batch;
    if (match->misses & DT_MISS_DEVICES)
        plan_rescale(rules, match, asked, values,
                     fitted); /* the checks below report the violation */
    if (!fits_devices(rules, asked, values))
        return dt_fail(DT_EINFEASIBLE,
                       "the stored plan needs %lld devices, you asked for %d (--devices %lld "
                       "uses it)",
                       (long long)devices_of(rules, values), asked->devices,
                       (long long)devices_of(rules, values));
    DT_TRY(limits_check(asked, rules, entry, values));
    bool as_it_is = is_measured_default(match, entry);
    struct dt_point point;
    if (!as_it_is)
        DT_TRY(dt_space_locate(rules, values, &point));
    fitted->plan =
        as_it_is ? json_deep_copy(json_object_get(entry, "plan")) : dt_point_json(rules, &point);
    return fitted->plan != NULL ? DT_OK : dt_no_memory(DT_LOOKING_UP);
}

/* The spaces differ: their parameters must be the same. */
static dt_status carried_check(const struct dt_asked *asked, const json_t *entry)
{
    const json_t *stored = json_object_get(entry, "space");
    DT_CLEANUP(dt_space_free_at) struct dt_space *was = NULL;
    if (asked->rules == NULL)
        return dt_fail(DT_EINFEASIBLE, "it was tuned in another space than the one with the id "
                                       "that was asked for");
    if (!json_is_object(stored) ||
        dt_space_rules_from_json(stored, "the entry's space", &was) != DT_OK)
        return dt_fail(DT_EINFEASIBLE, "it was tuned in another space, which is not stored");
    return dt_space_carries(was, asked->rules);
}

dt_status dt_plan_fit(const struct dt_asked *asked, const struct dt_match *match,
                      const json_t *entry, struct dt_fitted *fitted)
{
    DT_CLEANUP(dt_space_free_at) struct dt_space *own = NULL;
    struct dt_fitted result = {0};
    if (match->misses & DT_MISS_SPACE)
        DT_TRY(carried_check(asked, entry));
    DT_TRY(rules_find(asked, entry, &own));
    DT_TRY(plan_adapt(asked, own != NULL ? own : asked->rules, match, entry, &result));
    *fitted = result;
    return DT_OK;
}
