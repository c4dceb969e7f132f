/* SPDX-License-Identifier: MIT */
/* Builds space and identity of a target from a foreign worker's hello. */
#include "tuner/measure/target_int.h"

#include "base/clock.h"
#include "db/lookup/key.h"
#include "tuner/runner/runner.h"

#include <stdio.h>
#include <string.h>

#define HELLO_SECONDS 20

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

/* The default point of a worker's own space, and the same with the fewest ranks. */
static dt_status foreign_plans(struct dt_target *target)
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
    target->baseline = target->fallback;
    int ranks = dt_space_role(target->space, DT_ROLE_RANKS);
    struct dt_point one = target->fallback;
    if (ranks >= 0) {
        one.index[ranks] = 0;
        if (dt_space_feasible(target->space, &one))
            target->baseline = one;
    }
    return DT_OK;
}

static void copy_field(const json_t *object, const char *key, const char *fallback, char out[],
                       size_t room)
{
    const char *text = json_string_value(json_object_get(object, key));
    snprintf(out, room, "%s", text != NULL ? text : fallback);
    dt_group_clean(out);
}

/* The announced parts of a hello: parameters, constants and rules. */
static json_t *announced(const json_t *hello)
{
    static const char *const names[] = {"parameters", "constants", "rules"};
    json_t *object = json_object();
    for (int i = 0; i < 3; i++)
        if (dt_json_has(hello, names[i]))
            json_object_set(object, names[i], json_object_get(hello, names[i]));
    return object;
}

static dt_status make_key(const struct dt_job *job, const char *name, const char *workload,
                          struct dt_target *target)
{
    char space[DT_KEY_ID_SIZE];
    DT_TRY(dt_key_space(target->worker.announced, space));
    const struct dt_key key = {.worker = name,
                               .program = workload,
                               .space = space,
                               .devices = target->hardware.devices,
                               .max_bytes = job->max_bytes,
                               .max_latency_ns = job->max_latency_ns};
    return dt_key_json(&key, &target->identity.key);
}

/* Adds our rule to the hello: no plan has more ranks than there are devices. Removes the worker's own count of
 * plans. */
static json_t *limited(const json_t *hello, const char *ranks, int devices)
{
    json_t *copy = dt_json_copy(hello), *rules = json_array();
    json_t *rule = json_pack(
        "{s:o, s:o}", "if", json_sprintf("%s <= %d", ranks, devices), "say",
        json_sprintf("%s must be at most the number of devices, %d (--devices)", ranks, devices));
    bool made = copy != NULL && rules != NULL && rule != NULL &&
                (json_object_get(hello, "rules") == NULL ||
                 json_array_extend(rules, json_object_get(hello, "rules")) == 0) &&
                json_array_append(rules, rule) == 0 && json_object_set(copy, "rules", rules) == 0;
    json_decref(rule);
    json_decref(rules);
    if (made)
        json_object_del(copy, "valid");
    else
        json_decref(copy);
    return made ? copy : NULL;
}

/* Allows the ranks named in a plan's text when the number of devices was not given. */
static void allow_named(const struct dt_job *job, const char *ranks, struct dt_target *target)
{
    int named = dt_target_named(job->plan, ranks);
    if (job->devices == 0 && named > target->hardware.devices)
        target->hardware.devices = named;
}

static dt_status read_space(const struct dt_job *job, const json_t *hello, struct dt_target *target)
{
    static const char what[] = "the worker's hello";
    struct dt_space *axes = NULL;
    json_t *own = NULL;
    DT_TRY(dt_space_axes_from_json(hello, what, &axes));
    int role = dt_space_role(axes, DT_ROLE_RANKS);
    const json_t *rules = json_object_get(hello, "rules");
    dt_status status = DT_OK;
    if (role >= 0 && (rules == NULL || json_is_array(rules))) {
        const struct dt_axis *ranks = dt_space_axis(axes, role);
        allow_named(job, ranks->name, target);
        target->limited = ranks->values[ranks->count - 1] > target->hardware.devices;
        own = target->limited ? limited(hello, ranks->name, target->hardware.devices) : NULL;
        if (target->limited && own == NULL)
            status = dt_fail(DT_ENOMEM, "out of memory");
    }
    dt_space_free(axes);
    if (status == DT_OK)
        status = dt_space_from_json(own != NULL ? own : hello, what, &target->space);
    json_decref(own);
    return status;
}

/* Time for a worker to get ready: twenty seconds, or the budget if shorter. */
static int64_t hello_ns(const struct dt_job *job)
{
    int64_t most = HELLO_SECONDS * DT_NS_PER_SECOND;
    return job->budget_ns > 0 && job->budget_ns < most ? job->budget_ns : most;
}

dt_status dt_target_foreign(const struct dt_job *job, struct dt_target *target)
{
    struct dt_launch launch = {
        .program = target->worker.program, .arguments = target->worker.arguments, .ranks = 1};
    struct dt_failure failure;
    struct dt_group *group = NULL;
    dt_status status =
        dt_group_start(&launch, NULL, dt_clock_ns() + hello_ns(job), &group, &failure);
    if (status == DT_FAILED)
        return dt_fail(DT_FAILED, "the worker %s did not start: %s", target->worker.program,
                       failure.cause);
    DT_TRY(status);
    const json_t *hello = dt_group_hello(group);
    char name[64], workload[128];
    copy_field(hello, "engine", "foreign", target->identity.engine, sizeof target->identity.engine);
    copy_field(hello, "mode", "eager", target->identity.mode, sizeof target->identity.mode);
    copy_field(hello, "name", "worker", name, sizeof name);
    copy_field(hello, "workload", "its own workload", workload, sizeof workload);
    const char *by = json_string_value(json_object_get(hello, "launch"));
    target->worker.by_mpirun = by != NULL && strcmp(by, "mpirun") == 0;
    target->foreign = true;
    target->image.sampler_steps = 1;
    snprintf(target->identity.title, sizeof target->identity.title, "%s: %s", name, workload);
    target->worker.hello = json_incref((json_t *)hello);
    target->worker.ready = json_incref((json_t *)dt_group_ready(group));
    target->worker.announced = announced(hello);
    if (json_object_get(hello, "parameters") == NULL)
        status =
            dt_fail(DT_EUSAGE,
                    "the worker %s announces no parameters in its hello: there is nothing to tune",
                    target->worker.program);
    else
        status = read_space(job, hello, target);
    if (status == DT_OK)
        status = foreign_plans(target);
    if (status == DT_OK)
        status = make_key(job, name, workload, target);
    dt_group_stop(group, DT_NS_PER_SECOND);
    return status;
}
