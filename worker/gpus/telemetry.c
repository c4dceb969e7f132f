/* SPDX-License-Identifier: MIT */
#include "worker/gpus/telemetry.h"

#include <time.h>

#define PERIOD_NS 100000000

static const char *const names[DT_TELEMETRY_VALUES] = {"sm_mhz", "memory_mhz", "power_mw",
                                                       "temperature_c", "utilization"};

static void look(struct dt_telemetry *telemetry)
{
    struct dt_health health;
    telemetry->source.read(telemetry->source.of, &health);
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
    do { /* one reading at least, however short the plan's steps are */
        pthread_mutex_unlock(&telemetry->mutex);
        look(telemetry);
        until.tv_nsec += PERIOD_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&telemetry->mutex);
        while (!telemetry->stop &&
               pthread_cond_timedwait(&telemetry->stopped, &telemetry->mutex, &until) == 0)
            ;
    } while (!telemetry->stop);
    pthread_mutex_unlock(&telemetry->mutex);
    return NULL;
}

void dt_telemetry_start(struct dt_telemetry *telemetry, const struct dt_telemetry_source *source)
{
    pthread_condattr_t clock;
    *telemetry = (struct dt_telemetry){.source = *source};
    if (source->read == NULL)
        return;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&telemetry->mutex, NULL);
    pthread_cond_init(&telemetry->stopped, &clock);
    pthread_condattr_destroy(&clock);
    telemetry->runs = pthread_create(&telemetry->thread, NULL, watch, telemetry) == 0;
    if (!telemetry->runs)
        telemetry->source.read = NULL;
}

void dt_telemetry_stop(struct dt_telemetry *telemetry)
{
    if (!telemetry->runs)
        return;
    pthread_mutex_lock(&telemetry->mutex);
    telemetry->stop = true;
    pthread_cond_signal(&telemetry->stopped);
    pthread_mutex_unlock(&telemetry->mutex);
    pthread_join(telemetry->thread, NULL);
    pthread_cond_destroy(&telemetry->stopped);
    pthread_mutex_destroy(&telemetry->mutex);
    telemetry->runs = false;
}

static json_t *reasons(const struct dt_telemetry *telemetry)
{
    json_t *list = json_array();
    const char *name;
    for (int i = 0; (name = telemetry->source.reason(i)) != NULL; i++)
        if ((telemetry->reasons >> i & 1) != 0)
            json_array_append_new(list, json_string(name));
    return list;
}

json_t *dt_telemetry_json(const struct dt_telemetry *telemetry)
{
    if (telemetry->source.read == NULL)
        return NULL;
    json_t *object = json_pack("{s:I}", "looks", (json_int_t)telemetry->looks);
    for (int i = 0; i < DT_TELEMETRY_VALUES; i++)
        if (telemetry->known[i] > 0)
            json_object_set_new(object, names[i],
                                json_pack("{s:I,s:I,s:I}", "least", (json_int_t)telemetry->least[i],
                                          "mean",
                                          (json_int_t)(telemetry->sums[i] / telemetry->known[i]),
                                          "most", (json_int_t)telemetry->most[i]));
    json_object_set_new(object, "reasons", reasons(telemetry));
    return object;
}
