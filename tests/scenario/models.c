/* SPDX-License-Identifier: MIT */
/* The true time of a plan's step: one row a model, found by the field that the scenario has. */
#include "tests/scenario/scenario.h"

#include <math.h>
#include <string.h>

#define NONE (-1.0) /* there is no such plan */

static json_t *whole_numbers(int first, int last)
{
    json_t *values = json_array();
    for (int i = first; i <= last; i++)
        json_array_append_new(values, json_integer(i));
    return values;
}

/* ---- "ns": a list */

static json_t *list_parameters(const struct scenario *scenario)
{
    int plans = (int)json_array_size(json_object_get(scenario->root, "ns"));
    return json_pack("[{s:s, s:o, s:i}]", "name", "plan", "values", whole_numbers(0, plans - 1),
                     "default", 0);
}

static double list_ns(const struct scenario *scenario, const json_t *plan)
{
    const json_t *at = json_object_get(plan, "plan"), *ns = json_object_get(scenario->root, "ns");
    json_int_t k = at != NULL ? json_integer_value(at) : 0;
    const json_t *found = k >= 0 ? json_array_get(ns, (size_t)k) : NULL;
    return json_is_number(found) ? json_number_value(found) : NONE;
}

/* ---- "axes": away from the best place the time grows */

static const char *role_of(const char *name)
{
    static const char *const roles[] = {"batch", "ranks", "threads", "lossy"};
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (strcmp(roles[i], name) == 0)
            return name;
    return "plain";
}

static json_t *axes_parameters(const struct scenario *scenario)
{
    json_t *rows = json_array(), *values;
    const char *name;
    json_object_foreach(json_object_get(scenario->root, "axes"), name, values)
    {
        json_array_append_new(rows,
                              json_pack("{s:s, s:s, s:O, s:O}", "name", name, "role", role_of(name),
                                        "values", values, "default", json_array_get(values, 0)));
    }
    return rows;
}

static int place_of(const json_t *values, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(values); i++)
        if (json_equal(json_array_get(values, i), value))
            return (int)i;
    return -1;
}

static double axes_ns(const struct scenario *scenario, const json_t *plan)
{
    const json_t *root = scenario->root, *wrong = json_object_get(root, "wrong"), *value;
    const json_t *best = json_object_get(root, "best"), *weights = json_object_get(root, "weights");
    double away = 0;
    const char *name;
    json_object_foreach((json_t *)wrong, name, value)
    {
        if (json_equal(json_object_get(plan, name), value))
            return NONE;
    }
    json_object_foreach((json_t *)best, name, value)
    {
        const json_t *axis = json_object_get(json_object_get(root, "axes"), name);
        int at = place_of(axis, json_object_get(plan, name));
        if (at < 0)
            return NONE;
        away += number_of(weights, name, 0) * fabs(at - json_number_value(value));
    }
    return number_of(root, "base", 1e6) * (1 + away);
}

/* ---- "a", "b", "s": (a + b batch) (s + (1 - s) / ranks) seconds, in the
 * place of dittune-worker */

static json_t *law_parameters(const struct scenario *scenario)
{
    (void)scenario;
    return NULL;
}

static double law_ns(const struct scenario *scenario, const json_t *plan)
{
    double a = number_of(scenario->root, "a", 0), b = number_of(scenario->root, "b", 0);
    double s = number_of(scenario->root, "s", 0), ranks = number_of(plan, "ranks", 1);
    return 1e9 * (a + b * number_of(plan, "batch", 1)) * (s + (1 - s) / ranks);
}

/* ---- "device": what a device's clock says, too */

static json_t *device_parameters(const struct scenario *scenario)
{
    (void)scenario;
    return json_pack("[{s:s, s:s, s:[i], s:i}]", "name", "ranks", "role", "ranks", "values", 2,
                     "default", 2);
}

static double device_ns(const struct scenario *scenario, const json_t *plan)
{
    (void)plan;
    return number_of(json_object_get(scenario->root, "device"), "host_ns", 1e6);
}

static const struct model models[] = {
    {"ns", "self", list_parameters, list_ns},
    {"axes", "self", axes_parameters, axes_ns},
    {"a", "mpirun", law_parameters, law_ns},
    {"device", "self", device_parameters, device_ns},
};

const struct model *model_of(const json_t *root)
{
    const struct model *found = NULL;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (json_object_get(root, models[i].field) != NULL) {
            if (found != NULL)
                die("the scenario has two time models:", models[i].field);
            found = &models[i];
        }
    if (found == NULL)
        die("the scenario has no", "time model");
    return found;
}

/* ---- what every model may have beside */

static json_t *batch_parameter(const json_t *batches)
{
    json_t *values = json_array(), *factor;
    const char *images;
    json_object_foreach((json_t *)batches, images, factor)
    {
        json_int_t n = 0;
        sscanf(images, "%" JSON_INTEGER_FORMAT, &n);
        json_array_append_new(values, json_integer(n));
    }
    return json_pack("{s:s, s:s, s:O, s:o}", "name", "batch", "role", "batch", "default",
                     json_array_get(values, json_array_size(values) - 1), "values", values);
}

json_t *scenario_parameters(const struct scenario *scenario)
{
    json_t *literal = json_object_get(scenario->root, "parameters");
    const json_t *batches = json_object_get(scenario->root, "batches");
    if (literal != NULL)
        return json_is_null(literal) ? NULL : json_incref(literal);
    json_t *rows = scenario->model->parameters(scenario);
    if (scenario->threads > 0)
        json_array_append_new(rows,
                              json_pack("{s:s, s:o, s:i}", "name", "threads", "values",
                                        whole_numbers(1, (int)scenario->threads), "default", 1));
    if (batches != NULL)
        json_array_append_new(rows, batch_parameter(batches));
    return rows;
}

double scenario_ns(const struct scenario *scenario, const json_t *plan)
{
    const json_t *planted = plan_field(scenario, plan, "ns");
    const json_t *batches = json_object_get(scenario->root, "batches");
    double ns = planted != NULL ? json_number_value(planted) : scenario->model->ns(scenario, plan);
    char images[32];
    snprintf(images, sizeof images, "%.0f", number_of(plan, "batch", 1));
    return ns * number_of(batches, images, 1);
}
