/* SPDX-License-Identifier: MIT */
#include "worker/telemetry.h"

#include <time.h>

#define PERIOD_NS 100000000

const char *const dt_telemetry_names[DT_TELEMETRY_VALUES] = {"sm_mhz", "memory_mhz", "power_mw",
                                                             "temperature_c", "utilization"};

static void look(struct dt_telemetry *telemetry)
{
    struct dt_health health;
    telemetry->device->compute->health.read(telemetry->device, &health);
    const int64_t values[DT_TELEMETRY_VALUES] = {health.sm_mhz, health.memory_mhz, health.power_mw,
                                                 health.temperature_c, health.utilization};
    telemetry->looks++;
    if (health.reasons > 0)
        telemetry->reasons |= health.reasons;
    for (int i = 0; i < DT_TELEMETRY_VALUES; i++) {
        if (values[i] < 0)
            continue;
        bool first = telemetry->known[i]++ == 0;
        telemetry->sums[i] += values[i];
        if (first || values[i] < telemetry->least[i])
            telemetry->least[i] = values[i];
        if (first || values[i] > telemetry->most[i])
            telemetry->most[i] = values[i];
    }
}

static void *watch(void *arg)
{
    struct dt_telemetry *telemetry = arg;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pthread_mutex_lock(&telemetry->mutex);
    while (!telemetry->stop) {
        pthread_mutex_unlock(&telemetry->mutex);
        look(telemetry);
        until.tv_nsec += PERIOD_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&telemetry->mutex);
        while (!telemetry->stop &&
               pthread_cond_timedwait(&telemetry->stopped, &telemetry->mutex, &until) == 0)
            ;
    }
    pthread_mutex_unlock(&telemetry->mutex);
    return NULL;
}

void dt_telemetry_start(struct dt_telemetry *telemetry, struct dt_device *device)
{
    pthread_condattr_t clock;
    *telemetry = (struct dt_telemetry){.device = device};
    if (device->compute->health.read == NULL) {
        telemetry->device = NULL;
        return;
    }
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&telemetry->mutex, NULL);
    pthread_cond_init(&telemetry->stopped, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_create(&telemetry->thread, NULL, watch, telemetry) != 0)
        telemetry->device = NULL;
}

void dt_telemetry_stop(struct dt_telemetry *telemetry)
{
    if (telemetry->device == NULL)
        return;
    pthread_mutex_lock(&telemetry->mutex);
    telemetry->stop = true;
    pthread_cond_signal(&telemetry->stopped);
    pthread_mutex_unlock(&telemetry->mutex);
    pthread_join(telemetry->thread, NULL);
    pthread_cond_destroy(&telemetry->stopped);
    pthread_mutex_destroy(&telemetry->mutex);
}
