/* SPDX-License-Identifier: MIT */
/* Which plans share a group of processes, and what groups need: memory, and the time to load one. */
#include "tuner/measure/rig_int.h"

#include "base/host.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

/* Lines of an axis that sets several variables, or none of them. */
static void list_variables(const struct dt_axis *axis, int64_t value, struct dt_text *out)
{
    for (const char *name = axis->variable; value != 0 && *name != '\0';) {
        size_t size = strcspn(name, ",");
        dt_text_add(out, "%.*s=%lld\n", (int)size, name, (long long)(value * axis->unit));
        name += size + (name[size] == ',');
    }
}

void dt_rig_environment(const struct dt_space *space, const struct dt_point *point,
                        struct dt_text *out)
{
    for (int a = 0; a < dt_space_axes(space); a++) {
        const struct dt_axis *axis = dt_space_axis(space, a);
        if (!dt_axis_starts(axis) || !dt_point_has(space, point, a))
            continue;
        const char *name = axis->variable != NULL ? axis->variable : axis->name;
        if (axis->unit > 0 && axis->variable != NULL)
            list_variables(axis, axis->values[point->index[a]], out);
        else {
            dt_text_add(out, "%s=", name);
            dt_axis_plain(axis, axis->values[point->index[a]], out);
            dt_text_add(out, "\n");
        }
    }
}

int dt_rig_ranks(const struct dt_target *target, const struct dt_point *point)
{
    int ranks = dt_target_ranks(target, point);
    return ranks < target->worker.switched ? target->worker.switched : ranks;
}

bool dt_rig_same_group(const struct dt_target *target, const struct dt_point *a,
                       const struct dt_point *b)
{
    struct dt_text one = {0}, other = {0};
    dt_rig_environment(target->space, a, &one);
    dt_rig_environment(target->space, b, &other);
    bool same = dt_rig_ranks(target, a) == dt_rig_ranks(target, b) &&
                strcmp(dt_text_at(&one), dt_text_at(&other)) == 0;
    dt_text_fini(&one);
    dt_text_fini(&other);
    return same;
}

uint64_t dt_rig_class(const void *target, const struct dt_point *point)
{
    const struct dt_target *mine = target;
    struct dt_text text = {0};
    dt_text_add(&text, "ranks=%d\n", dt_rig_ranks(mine, point));
    dt_rig_environment(mine->space, point, &text);
    uint64_t class = dt_rng_stream(dt_text_at(&text));
    dt_text_fini(&text);
    return class;
}

int64_t dt_rig_memory_limit(const struct dt_target *target)
{
    const struct dt_backend *gpus = dt_target_gpus(target);
    if (gpus != NULL)
        return gpus->gpus.memory_bytes;
    return json_object_get(target->identity.hard, "devices") == NULL ? dt_host_memory_limit() : 0;
}

double dt_rig_memory(const struct dt_target *target, int ranks, int64_t peak_bytes)
{
    return (double)peak_bytes * (dt_target_gpus(target) != NULL ? 1 : ranks);
}

/* Memory of one group for each rank count of the space; *count: how many there are. */
static double memory_of_ranks(const struct dt_rig *rig, int *count)
{
    const struct dt_target *target = rig->target;
    int role = dt_space_role(target->space, DT_ROLE_RANKS);
    int values = role >= 0 ? dt_space_axis(target->space, role)->count : 1;
    struct dt_point point = target->fallback;
    double memory = 0;
    bool switched = false;
    *count = 0;
    for (int i = 0; i < values; i++) {
        if (role >= 0)
            point.index[role] = (int32_t)i;
        int ranks = dt_rig_ranks(target, &point);
        bool again = ranks == target->worker.switched && switched;
        if (again ||
            (target->limited && dt_target_ranks(target, &point) > target->hardware.devices))
            continue;
        switched = switched || ranks == target->worker.switched;
        memory += dt_rig_memory(target, ranks, rig->peak_bytes);
        (*count)++;
    }
    return memory;
}

struct dt_rig_classes dt_rig_classes(const struct dt_rig *rig)
{
    const struct dt_space *space = rig->target->space;
    double limit = (double)dt_rig_memory_limit(rig->target), environments = 1;
    int ranks;
    double memory = memory_of_ranks(rig, &ranks);
    for (int a = 0; a < dt_space_axes(space); a++)
        if (dt_axis_starts(dt_space_axis(space, a)))
            environments *= dt_space_axis(space, a)->count;
    double room = limit > 0 && memory > 0 ? floor(limit * ranks / memory) : DT_RIG_GROUPS;
    return (struct dt_rig_classes){.count = environments * ranks,
                                   .stay = environments * ranks <= DT_RIG_GROUPS &&
                                           (!(limit > 0) || environments * memory <= limit),
                                   .room = (int)fmin(fmax(room, 1), DT_RIG_GROUPS)};
}

/* Seconds of a group's start and first prepare. */
static double first_seconds(const struct dt_rig_costs *costs)
{
    return costs->loads > 0 ? (double)costs->load_ns * 1e-9 / costs->loads : 0;
}

static double start_seconds(const struct dt_rig_costs *costs)
{
    return costs->started > 0 ? (double)costs->start_ns * 1e-9 / costs->started : 0;
}

double dt_rig_prepare_seconds(const struct dt_rig *rig)
{
    const struct dt_rig_costs *costs = &rig->costs;
    return costs->prepared > 0 ? (double)costs->prepare_ns * 1e-9 / costs->prepared
                               : fmax(0, first_seconds(costs) - start_seconds(costs));
}

double dt_rig_load_seconds(const struct dt_rig *rig)
{
    const struct dt_rig_costs *costs = &rig->costs;
    return costs->prepared > 0
               ? fmax(start_seconds(costs), first_seconds(costs) - dt_rig_prepare_seconds(rig))
               : start_seconds(costs);
}

double dt_rig_setup_seconds(const struct dt_rig *rig)
{
    const struct dt_rig_costs *costs = &rig->costs;
    double beyond = dt_rig_load_seconds(rig) - start_seconds(costs);
    return (double)costs->setup_ns * 1e-9 + beyond * (costs->loads - costs->reference_loads);
}
