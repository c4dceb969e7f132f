/* SPDX-License-Identifier: MIT */
/* The whole image of a foreign worker: its steps are in the worker's job, text encoder and VAE are given or measured. */
#include "tuner/measure/target_int.h"

#include <string.h>

#define STEPS_MOST 1000000

/* What `unit` of hello says that a step of this worker is. */
static const struct {
    const char *name, *doc;
} units[] = {{NULL, "step"},
             {"step", "denoising step"},
             {"image", "whole image"},
             {"run", "run"},
             {"request", "request"}};

const char *dt_target_step(const char *doc)
{
    for (size_t i = 0; doc != NULL && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(doc, units[i].doc) == 0)
            return units[i].doc;
    return NULL;
}

dt_status dt_target_image(const struct dt_wanted *wanted, struct dt_target *target)
{
    const json_t *told = json_object_get(target->worker.hello, "job"),
                 *measured = json_object_get(target->worker.ready, "text_and_vae_ns");
    const json_t *unit = json_object_get(target->worker.hello, "unit");
    const char *word = json_string_value(unit);
    target->image.step = unit == NULL ? units[0].doc : NULL; /* a step of what, it does not say */
    for (size_t i = 1; word != NULL && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(word, units[i].name) == 0)
            target->image.step = units[i].doc;
    if (target->image.step == NULL)
        return dt_fail(DT_EUSAGE,
                       "the worker's hello: 'unit' is none of step, image, run and request");
    target->image.starts = word != NULL && strcmp(word, "run") == 0;
    target->image.whole = word != NULL && strcmp(word, "image") == 0;
    target->image.request = word != NULL && strcmp(word, "request") == 0;
    json_int_t steps = json_integer_value(json_object_get(told, "steps"));
    if (measured != NULL && !json_is_null(measured) &&
        (!json_is_integer(measured) || json_integer_value(measured) <= 0))
        return dt_fail(DT_EUSAGE, "the worker's ready: 'text_and_vae_ns' is not a time above 0, an "
                                  "integer of nanoseconds");
    if (steps < 1 || steps > STEPS_MOST) {
        if (wanted->text_and_vae_ns > 0)
            return dt_fail(DT_EUSAGE,
                           "--text-and-vae has no effect: the worker %s does not tell the steps "
                           "of an image in its hello",
                           target->worker.program);
        return DT_OK;
    }
    if (target->image.whole && (wanted->text_and_vae_ns > 0 || json_integer_value(measured) > 0))
        return dt_fail(DT_EUSAGE, "%s has no effect: the worker %s measures whole images",
                       wanted->text_and_vae_ns > 0 ? "--text-and-vae"
                                                   : "'text_and_vae_ns' in ready",
                       target->worker.program);
    target->image.sampler_steps = target->image.whole ? 1 : (int)steps;
    target->image.steps = (int)steps;
    target->image.told = true;
    target->image.given = wanted->text_and_vae_ns > 0;
    target->image.text_and_vae_ns =
        target->image.given ? wanted->text_and_vae_ns : json_integer_value(measured);
    return DT_OK;
}

double dt_target_image_seconds(const struct dt_target *target, double step, int batch)
{
    return target->image.sampler_steps * step +
           (double)(batch * target->image.text_and_vae_ns) * 1e-9;
}
