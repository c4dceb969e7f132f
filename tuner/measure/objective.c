/* SPDX-License-Identifier: MIT */
#include "tuner/measure/objective.h"

#include <stddef.h>
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

static const struct dt_objective objectives[] = {
    {"latency", "s/step", "seconds a ", "time", latency, show_latency, 1},
    {"throughput", "images/s", "images a second", "time", per_image, show_throughput, 0},
    {"cost", "device-s/image", "device-seconds an image", "device time", device_seconds, show_cost,
     0},
};

dt_status dt_objective_find(const char *name, const struct dt_objective **objective)
{
    for (size_t i = 0; i < sizeof objectives / sizeof objectives[0]; i++)
        if (strcmp(objectives[i].name, name) == 0) {
            *objective = &objectives[i];
            return DT_OK;
        }
    return dt_fail(DT_EUSAGE, "unknown objective '%s': latency, throughput or cost", name);
}
