/* SPDX-License-Identifier: MIT */
/* The documents of a target: what it asks for, the hardware, its workloads and plans; and a
 * target's record in a journal. */
#include "base/clock.h"
#include "db/lookup/key.h"
#include "model/workload_json.h"
#include "space/json/json.h"
#include "tuner/machine/machine.h"
#include "tuner/measure/record/result_json.h"
#include "tuner/measure/rig.h"
#include "tuner/measure/target_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MACHINE_NS (20 * DT_NS_PER_SECOND) /* for a worker to tell its versions */

void dt_hosts_describe(const struct dt_hosts *hosts, json_t *hard)
{
    json_object_set_new(hard, "hosts", json_integer(hosts->count));
    json_object_set_new(hard, "slots", json_integer(dt_hosts_slots(hosts)));
}

void dt_target_write_hard(struct dt_target *target)
{
    if (target->hardware.described != NULL)
        return; /* nothing is stored of another machine's space */
    target->identity.hard = target->foreign ? dt_machine_announced_hard(target->worker.ready)
                                            : dt_machine_hard(&target->hardware.backend);
    if (target->hardware.hosts.count > 0)
        dt_hosts_describe(&target->hardware.hosts, target->identity.hard);
    json_object_set_new(target->identity.hard, "dtype", json_string(target->identity.dtype));
    json_object_set_new(target->identity.hard, "engine", json_string(target->identity.engine));
    json_object_set_new(target->identity.hard, "mode", json_string(target->identity.mode));
    if (target->objective != NULL)
        json_object_set_new(target->identity.key, "objective",
                            json_string(target->objective->name));
}

const char *dt_target_hardware(const struct dt_target *target)
{
    const json_t *list = json_object_get(target->hardware.backend.devices, "devices");
    return json_string_value(json_object_get(json_array_get(list, 0), "name"));
}

void dt_target_free_documents(struct dt_target *target)
{
    json_decref(target->workload);
    json_decref(target->reference);
    json_decref(target->image.step_kinds);
    json_decref(target->identity.key);
    json_decref(target->identity.hard);
    json_decref(target->worker.wanted);
    json_decref(target->worker.hello);
    json_decref(target->worker.ready);
    json_decref(target->worker.started);
    json_decref(target->worker.announced);
}

bool dt_target_names_devices(const struct dt_target *target)
{
    return json_object_get(target->identity.hard, "devices") != NULL;
}

dt_status dt_target_write_job(struct dt_target *target, const struct dt_job *job,
                              const struct dt_workload *workload, const struct dt_ints *sorted)
{
    target->workload = dt_workload_to_json(workload);
    if (workload->dtype != DT_FLOAT32) {
        target->reference = dt_workload_to_json(workload);
        json_object_set_new(target->reference, "dtype", json_string(dt_dtype_text(DT_FLOAT32)));
    }
    const struct dt_key key = {.workload = workload,
                               .batches = sorted->values,
                               .batch_count = sorted->count,
                               .devices = target->hardware.devices,
                               .max_bytes = job->max_bytes,
                               .reserve_bytes = job->reserve_bytes,
                               .max_latency_ns = job->max_latency_ns,
                               .lossy = job->more.lossy};
    return dt_key_json(&key, &target->identity.key);
}

dt_status dt_target_stored(const struct dt_target *target, const json_t *plan,
                           struct dt_point *point)
{
    struct dt_point read = {{0}};
    if (target->broken[0] != '\0' && dt_point_read(target->space, plan, &read) == DT_OK &&
        dt_target_breaks(target, &read)) {
        *point = read;
        return DT_OK;
    }
    return dt_point_from_json(target->space, plan, point);
}

json_t *dt_target_machine(const struct dt_target *target, int64_t deadline_ns, bool cached)
{
    struct dt_machine_worker worker = {{target->worker.program, target->worker.arguments},
                                       target->foreign,
                                       &target->hardware.backend};
    int64_t most = dt_clock_ns() + MACHINE_NS;
    json_t *machine = NULL;
    if (target->worker.ready != NULL) {
        machine = dt_machine_describe(target->worker.hello, target->worker.ready, &worker);
        if (cached)
            dt_machine_keep(&worker, machine);
    } else if (dt_machine_read(&worker, false, deadline_ns < most ? deadline_ns : most, &machine) <
               0)
        machine = dt_machine_describe(NULL, NULL, &worker);
    return machine;
}

dt_status dt_rig_group_prepare(const struct dt_rig *rig, struct dt_group *group,
                               const struct dt_point *point, int64_t deadline_ns,
                               struct dt_prepared *prepared, struct dt_failure *failure)
{
    json_auto_t *plan = dt_point_json(rig->target->space, point);
    int replicas = dt_space_role(rig->target->space, DT_ROLE_REPLICAS);
    if (replicas >= 0) /* each replica has the plan without them */
        json_object_del(plan, dt_space_axis(rig->target->space, replicas)->name);
    return dt_group_prepare(group, plan, &rig->verify, deadline_ns, prepared, failure);
}

/* ---- as journals have it */

#define CORES_MOST      65536
#define STEPS_MOST      1000000
#define STEP_KINDS_MOST 64
#define STEP_SAYS_MOST  200

/* NULL where the steps of an image are not known. */
static json_t *image_json(const struct dt_image_work *image)
{
    return image->known
               ? json_pack("{s:i, s:I, s:b, s:b, s:O*}", "steps", image->steps, "text_and_vae_ns",
                           (json_int_t)image->text_and_vae_ns, "given", image->given, "whole",
                           image->is_image, "step_kinds", image->step_kinds)
               : NULL;
}

/* NULL where there is no such plan. */
static json_t *documented_json(const struct dt_target *target)
{
    const struct dt_documented *documented = &target->documented;
    return documented->known
               ? json_pack("{s:o, s:s, s:s, s:s}", "plan",
                           dt_point_json(target->space, &documented->point), "source",
                           documented->source, "date", documented->date, "says", documented->says)
               : NULL;
}

/* NULL where nothing is held back. */
static json_t *reserve_json(const struct dt_reserve *reserve)
{
    return reserve->bytes > 0
               ? json_pack("{s:I, s:I, s:b}", "bytes", (json_int_t)reserve->bytes, "total_bytes",
                           (json_int_t)reserve->total, "shared", reserve->shared)
               : NULL;
}

json_t *dt_raw_target(const struct dt_target *target)
{
    bool breaks = target->broken[0] != '\0', planted = target->least_fault > 0;
    return json_pack(
        "{s:s, s:s, s:s, s:b, s:i, s:i, s:f, s:f, s:f, s:I, s:o, s:o, s:o, s:o*, s:s*, s:s, s:s*, "
        "s:o*, s:o*, s:o*, s:o*}",
        "title", target->identity.title, "unit", target->hardware.unit, "objective",
        target->objective->name, "foreign", target->foreign, "cores", target->hardware.cores,
        "sampler_steps", target->image.sampler_steps, "image_flops", target->image.flops,
        "image_attention_flops", target->image.attention_flops, "image_rest_bytes",
        target->image.rest_bytes, "plans", (json_int_t)target->plans, "parameters",
        dt_space_axes_json(target->space), "default",
        dt_point_json(target->space, &target->fallback), "baseline",
        dt_point_json(target->space, &target->baseline), "image", image_json(&target->image),
        "step", target->image.step, "reference", dt_target_reference(target), "broken",
        breaks ? target->broken : NULL, "tolerance",
        breaks || planted ? json_real(target->tolerance) : NULL, "least_fault",
        planted ? json_real(target->least_fault) : NULL, "documented", documented_json(target),
        "reserve", reserve_json(&target->reserve));
}

static dt_status read_number(const json_t *record, const char *what, const char *key, int most,
                             int *out)
{
    int64_t value;
    DT_TRY(dt_json_int(record, what, key, 1, most, &value));
    *out = (int)value;
    return DT_OK;
}

/* Fields missing from older records are 0. */
static dt_status read_amounts(const json_t *record, const char *what, struct dt_target *target)
{
    DT_TRY(dt_json_real(record, what, "image_flops", &target->image.flops));
    if (dt_json_has(record, "image_attention_flops"))
        DT_TRY(dt_json_real(record, what, "image_attention_flops", &target->image.attention_flops));
    if (dt_json_has(record, "image_rest_bytes"))
        DT_TRY(dt_json_real(record, what, "image_rest_bytes", &target->image.rest_bytes));
    return DT_OK;
}

dt_status dt_raw_step_kinds(json_t *list, const char *what, json_t **step_kinds)
{
    const json_t *item;
    size_t i;
    bool right = json_is_array(list) && json_array_size(list) > 0 &&
                 json_array_size(list) <= STEP_KINDS_MOST;
    if (list == NULL)
        return DT_OK;
    json_array_foreach(list, i, item)
    {
        const json_t *count = json_object_get(item, "count"), *say = json_object_get(item, "say");
        right = right && json_is_integer(count) && json_integer_value(count) >= 1 &&
                json_integer_value(count) <= 1 << 20 && json_string_length(say) > 0 &&
                json_string_length(say) <= STEP_SAYS_MOST;
    }
    if (!right)
        return dt_fail(DT_EUSAGE,
                       "%s: its kinds of steps are not 1 to %d objects with 'count', an integer "
                       "from 1 to %d, and 'say', a text of 1 to %d bytes",
                       what, STEP_KINDS_MOST, 1 << 20, STEP_SAYS_MOST);
    *step_kinds = json_incref(list);
    return DT_OK;
}

/* The whole image, where its steps were known. */
static dt_status read_image(const json_t *record, const char *what, struct dt_image_work *image)
{
    json_t *object;
    image->step = dt_target_step(json_string_value(json_object_get(record, "step")));
    if (!dt_json_has(record, "image"))
        return DT_OK;
    DT_TRY(dt_json_object(record, what, "image", &object));
    DT_TRY(read_number(object, what, "steps", STEPS_MOST, &image->steps));
    DT_TRY(dt_json_int(object, what, "text_and_vae_ns", 0, INT64_MAX, &image->text_and_vae_ns));
    DT_TRY(dt_json_bool(object, what, "given", &image->given));
    DT_TRY(dt_json_bool(object, what, "whole", &image->is_image));
    image->known = true;
    return dt_raw_step_kinds(json_object_get(object, "step_kinds"), what, &image->step_kinds);
}

/* Reads the request, with its limit of memory. Records of landscapes, and
 * older ones, have no key. */
static void read_key(const json_t *record, struct dt_target *target)
{
    json_t *key = json_object_get(record, "key");
    int64_t bytes = json_integer_value(json_object_get(key, "max_bytes"));
    if (!json_is_object(key))
        return;
    target->identity.key = json_incref(key);
    target->max_bytes = bytes > 0 ? bytes : 0;
}

static dt_status read_reserve(const json_t *record, const char *what, struct dt_reserve *reserve)
{
    json_t *object;
    if (!dt_json_has(record, "reserve"))
        return DT_OK;
    DT_TRY(dt_json_object(record, what, "reserve", &object));
    DT_TRY(dt_json_int(object, what, "bytes", 1, INT64_MAX / 2, &reserve->bytes));
    DT_TRY(dt_json_int(object, what, "total_bytes", 1, INT64_MAX / 2, &reserve->total));
    return dt_json_bool(object, what, "shared", &reserve->shared);
}

/* Reads the rule that a default plan breaks. */
static void read_broken(const json_t *record, struct dt_target *target)
{
    snprintf(target->broken, sizeof target->broken, "%s", dt_json_text_at(record, "broken"));
    dt_text_clean(target->broken);
    target->tolerance = json_number_value(json_object_get(record, "tolerance"));
    target->least_fault = json_number_value(json_object_get(record, "least_fault"));
}

static dt_status read_documented(const json_t *record, const char *what, struct dt_target *target)
{
    struct dt_documented *documented = &target->documented;
    json_t *object, *plan;
    if (!dt_json_has(record, "documented"))
        return DT_OK;
    DT_TRY(dt_json_object(record, what, "documented", &object));
    DT_TRY(dt_json_object(object, what, "plan", &plan));
    DT_TRY(dt_point_read(target->space, plan, &documented->point));
    dt_documented_words(object, documented);
    documented->known = true;
    return DT_OK;
}

static dt_status read_target_fields(const json_t *record, const char *what,
                                    struct dt_target *target)
{
    const char *title, *objective;
    json_t *fallback, *baseline;
    DT_TRY(dt_json_string(record, what, "title", &title));
    DT_TRY(dt_json_string(record, what, "objective", &objective));
    DT_TRY(dt_json_bool(record, what, "foreign", &target->foreign));
    DT_TRY(read_number(record, what, "cores", CORES_MOST, &target->hardware.cores));
    DT_TRY(read_number(record, what, "sampler_steps", STEPS_MOST, &target->image.sampler_steps));
    DT_TRY(read_amounts(record, what, target));
    DT_TRY(read_image(record, what, &target->image));
    DT_TRY(dt_json_int(record, what, "plans", -1, INT64_MAX, &target->plans));
    DT_TRY(dt_json_object(record, what, "default", &fallback));
    DT_TRY(dt_json_object(record, what, "baseline", &baseline));
    const char *unit = json_string_value(json_object_get(record, "unit")); /* older ones lack it */
    target->hardware.unit = unit != NULL && strcmp(unit, "GPU") == 0 ? "GPU" : "core";
    DT_TRY(dt_objective_find(objective, &target->objective));
    DT_TRY(dt_space_axes_from_json(record, what, &target->space));
    DT_TRY(dt_point_read(target->space, fallback, &target->fallback));
    DT_TRY(dt_point_read(target->space, baseline, &target->baseline));
    DT_TRY(read_documented(record, what, target));
    DT_TRY(read_reserve(record, what, &target->reserve));
    snprintf(target->identity.title, sizeof target->identity.title, "%s", title);
    read_key(record, target);
    read_broken(record, target);
    snprintf(target->identity.reference, sizeof target->identity.reference, "%s",
             dt_json_text_at(record, "reference"));
    dt_text_clean(target->identity.reference);
    return DT_OK;
}

dt_status dt_raw_read_target(const json_t *record, const char *what, struct dt_target **out)
{
    struct dt_target *target DT_CLEANUP(dt_target_free_at) = calloc(1, sizeof *target);
    if (target == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    DT_TRY(read_target_fields(record, what, target));
    *out = target;
    target = NULL;
    return DT_OK;
}

json_t *dt_raw_points(const struct dt_space *space, const struct dt_point points[], int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, dt_point_json(space, &points[i]));
    return list;
}

int dt_raw_read_points(const json_t *list, const struct dt_space *space, struct dt_point points[],
                       int room)
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(list) && n < room; i++)
        n += dt_point_read(space, json_array_get(list, i), &points[n]) == DT_OK;
    return n;
}
