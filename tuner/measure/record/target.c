/* SPDX-License-Identifier: MIT */
#include "tuner/measure/record/result_json.h"

#include "space/json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CORES_MOST 65536
#define STEPS_MOST 1000000

/* NULL where the steps of an image are not known. */
static json_t *image_json(const struct dt_image_work *image)
{
    return image->told ? json_pack("{s:i, s:I, s:b, s:b}", "steps", image->steps, "text_and_vae_ns",
                                   (json_int_t)image->text_and_vae_ns, "given", image->given,
                                   "whole", image->whole)
                       : NULL;
}

json_t *dt_raw_target(const struct dt_target *target)
{
    bool breaks = target->broken[0] != '\0', told = target->least_fault > 0;
    return json_pack(
        "{s:s, s:s, s:s, s:b, s:i, s:i, s:f, s:f, s:f, s:I, s:o, s:o, s:o, s:o*, s:s*, s:s, s:s*, "
        "s:o*, s:o*}",
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
        breaks || told ? json_real(target->tolerance) : NULL, "least_fault",
        told ? json_real(target->least_fault) : NULL);
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
    DT_TRY(dt_json_bool(object, what, "whole", &image->whole));
    image->told = true;
    return DT_OK;
}

/* What was asked for, with its limit of memory. Records of landscapes, and older ones, have no key. */
static void read_key(const json_t *record, struct dt_target *target)
{
    json_t *key = json_object_get(record, "key");
    int64_t bytes = json_integer_value(json_object_get(key, "max_bytes"));
    if (!json_is_object(key))
        return;
    target->identity.key = json_incref(key);
    target->max_bytes = bytes > 0 ? bytes : 0;
}

/* Of a default plan that breaks a rule. */
static void read_broken(const json_t *record, struct dt_target *target)
{
    snprintf(target->broken, sizeof target->broken, "%s", dt_json_text_at(record, "broken"));
    dt_text_clean(target->broken);
    target->tolerance = json_number_value(json_object_get(record, "tolerance"));
    target->least_fault = json_number_value(json_object_get(record, "least_fault"));
}

static dt_status fill(const json_t *record, const char *what, struct dt_target *target)
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
    struct dt_target *target = calloc(1, sizeof *target);
    if (target == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = fill(record, what, target);
    if (status < 0) {
        dt_target_free(target);
        return status;
    }
    *out = target;
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
