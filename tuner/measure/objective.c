/* SPDX-License-Identifier: MIT */
#include "tuner/measure/objective.h"

#include "base/figures.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static double latency_value(double step, int images, int devices)
{
    (void)images;
    (void)devices;
    return step;
}

static double per_image(double step, int images, int devices)
{
    (void)devices;
    return step / images;
}

static double device_seconds(double step, int images, int devices)
{
    return step * devices / images;
}

double dt_objective_shown(const struct dt_objective *objective, double step, int images,
                          int devices, int steps)
{
    double value = objective->value(step, images, devices) * (objective->whole_image ? steps : 1);
    return objective->inverse ? 1 / value : value;
}

static const struct dt_objective objectives[] = {
    {"latency", "s/step", "time of a ", "time", latency_value, .one_batch = true},
    {"throughput", "images/s", "images a second", "time", per_image, .inverse = true,
     .whole_image = true},
    {"cost", "device-s/image", "device-seconds an image", "device time", device_seconds,
     .whole_image = true},
};

/* Finds the objective of a metric that is maximised, or makes it when it is first named. */
static dt_status find_metric(const char *name, const struct dt_objective **objective)
{
    static struct made {
        struct dt_objective objective;
        struct made *next;
        char name[];
    } * first;
    struct made *made = first;
    while (made != NULL && strcmp(made->name, name) != 0)
        made = made->next;
    if (made == NULL) {
        made = calloc(1, sizeof *made + strlen(name) + 1);
        if (made == NULL)
            return dt_fail(DT_ENOMEM, "out of memory");
        strcpy(made->name, name);
        const char *metric = dt_figure_metric(made->name);
        made->objective = (struct dt_objective){
            made->name,        metric,          metric, metric, latency_value, .inverse = true,
            .one_batch = true, .metric = metric};
        made->next = first;
        first = made;
    }
    *objective = &made->objective;
    return DT_OK;
}

dt_status dt_objective_find(const char *name, const struct dt_objective **objective)
{
    if (dt_figure_metric(name) != NULL && dt_figure_metric(name)[0] != '\0')
        return find_metric(name, objective);
    for (size_t i = 0; i < sizeof objectives / sizeof objectives[0]; i++)
        if (strcmp(objectives[i].name, name) == 0) {
            *objective = &objectives[i];
            return DT_OK;
        }
    return dt_fail(DT_EUSAGE, "unknown objective '%s': latency, throughput, cost or max:METRIC",
                   name);
}
