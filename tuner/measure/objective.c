/* SPDX-License-Identifier: MIT */
#include "tuner/measure/objective.h"

#include "base/figures.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static double latency(double step, int batch, int devices)
{
    (void)batch;
    (void)devices;
    return step;
}

static double per_image(double step, int batch, int devices)
{
    (void)devices;
    return step / batch;
}

static double device_seconds(double step, int batch, int devices)
{
    return step * devices / batch;
}

static double show_latency(double step, int batch, int devices, int steps)
{
    (void)steps;
    return latency(step, batch, devices);
}

static double show_throughput(double step, int batch, int devices, int steps)
{
    return 1.0 / (per_image(step, batch, devices) * steps);
}

static double show_cost(double step, int batch, int devices, int steps)
{
    return device_seconds(step, batch, devices) * steps;
}

static double show_inverse(double step, int batch, int devices, int steps)
{
    (void)steps;
    return 1 / latency(step, batch, devices);
}

static const struct dt_objective objectives[] = {
    {"latency", "s/step", "time of a ", "time", latency, show_latency, 1, NULL},
    {"throughput", "images/s", "images a second", "time", per_image, show_throughput, 0, NULL},
    {"cost", "device-s/image", "device-seconds an image", "device time", device_seconds, show_cost,
     0, NULL},
};

/* Of a metric that is maximised, made when it is first named. */
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
        made->objective = (struct dt_objective){made->name, metric,       metric, metric,
                                                latency,    show_inverse, 1,      metric};
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
