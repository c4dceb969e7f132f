/* SPDX-License-Identifier: MIT */
#include "worker/gpus/telemetry.h"
#include "base/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 100000000

static const char *const names[DT_TELEMETRY_VALUES] = {"sm_mhz", "memory_mhz", "power_mw",
                                                       "temperature_c", "utilization"};

static void look_at_device(struct dt_telemetry *telemetry)
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

static void *watch_devices(void *arg)
{
    struct dt_telemetry *telemetry = arg;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pthread_mutex_lock(&telemetry->mutex);
    do { /* one reading at least, however short the plan's steps are */
        pthread_mutex_unlock(&telemetry->mutex);
        look_at_device(telemetry);
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
    telemetry->runs = pthread_create(&telemetry->thread, NULL, watch_devices, telemetry) == 0;
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
    json_object_set_new(object, "reasons",
                        dt_gpu_reasons(telemetry->source.reason, telemetry->reasons));
    return object;
}

/* observe - `dittune-worker --observe`: reads GPUs while a worker of another engine uses them
 *
 * It speaks the protocol as a worker does, but knows other requests (docs/protocol.md, "An
 * observer"). NVML is all it needs: neither CUDA nor a context on a device. It runs as a separate
 * process, so that a crash or hang of the driver does no harm.
 */

#define WHAT         "the request"
#define DEVICES_MOST 64

struct gpu {
    const struct dt_nvml *nvml;
    struct dt_nvml_device *device;
    struct dt_telemetry telemetry;
};

struct observer {
    struct dt_nvml *nvml;
    struct gpu gpus[DEVICES_MOST];
    int count; /* number of those that are read now */
};

static void say_message(json_t *message)
{
    dt_auto_text text = {0};
    if (dt_json_text(message, &text) == DT_OK && puts(dt_text_at(&text)) >= 0)
        fflush(stdout);
    json_decref(message);
}

static void observe_look(void *of, struct dt_health *health)
{
    const struct gpu *gpu = of;
    struct dt_nvml_facts facts;
    dt_nvml_sample(gpu->nvml, gpu->device, &facts);
    *health = facts.health;
}

/* The devices of a request, by their PCI bus ids; one may be named several times. */
static dt_status find_devices(struct observer *observer, const json_t *request,
                              struct dt_nvml_device *devices[DEVICES_MOST], int *count)
{
    json_t *list, *pci;
    size_t i;
    DT_TRY(dt_json_array(request, WHAT, "devices", &list));
    if (json_array_size(list) > DEVICES_MOST)
        return dt_fail(DT_EUSAGE, "%zu devices, expected at most %d", json_array_size(list),
                       DEVICES_MOST);
    json_array_foreach(list, i, pci)
    {
        const char *id = json_string_value(pci);
        DT_TRY(dt_nvml_find(observer->nvml, id != NULL ? id : "", &devices[i]));
    }
    *count = (int)json_array_size(list);
    return DT_OK;
}

static dt_status answer_begin(struct observer *observer, const json_t *request, json_t **answer)
{
    struct dt_nvml_device *devices[DEVICES_MOST] = {NULL};
    int count = 0;
    if (observer->count > 0)
        return dt_fail(DT_EUSAGE, "devices are observed already");
    DT_TRY(find_devices(observer, request, devices, &count));
    for (int i = 0; i < count; i++) {
        struct gpu *gpu = &observer->gpus[i];
        gpu->nvml = observer->nvml;
        gpu->device = devices[i];
        dt_telemetry_start(&gpu->telemetry,
                           &(struct dt_telemetry_source){observe_look, dt_nvml_reason, gpu});
    }
    observer->count = count;
    *answer = json_pack("{s:s}", "op", "observing");
    return DT_OK;
}

static dt_status answer_end(struct observer *observer, const json_t *request, json_t **answer)
{
    json_t *list = json_array();
    (void)request;
    for (int i = 0; i < observer->count; i++) {
        dt_telemetry_stop(&observer->gpus[i].telemetry);
        json_array_append_new(list, dt_telemetry_json(&observer->gpus[i].telemetry));
    }
    observer->count = 0;
    *answer = json_pack("{s:s, s:o}", "op", "observed", "telemetry", list);
    return DT_OK;
}

static json_t *use_json(const struct dt_nvml_facts *facts)
{
    const struct dt_nvml_use *use = &facts->use;
    return json_pack("{s:o, s:o, s:o, s:o}", "memory_bytes", dt_gpu_number(use->memory_bytes),
                     "free_bytes", dt_gpu_number(use->free_bytes), "utilization",
                     dt_gpu_number(facts->health.utilization), "processes", dt_gpu_processes(use));
}

static dt_status answer_memory(struct observer *observer, const json_t *request, json_t **answer)
{
    struct dt_nvml_device *devices[DEVICES_MOST] = {NULL};
    int count = 0;
    DT_TRY(find_devices(observer, request, devices, &count));
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        struct dt_nvml_facts facts;
        dt_nvml_read(observer->nvml, devices[i], &facts);
        json_array_append_new(list, use_json(&facts));
    }
    *answer = json_pack("{s:s, s:o}", "op", "memory", "devices", list);
    return DT_OK;
}

static dt_status answer_hello(struct observer *observer, const json_t *request, json_t **answer)
{
    char driver[80];
    (void)request;
    DT_TRY(dt_nvml_open(&observer->nvml));
    dt_nvml_driver(observer->nvml, driver, sizeof driver);
    dt_text_mend(driver);
    say_message(json_pack("{s:s, s:i, s:s, s:s}", "op", "hello", "protocol", 2, "name", "observer",
                          "version", DT_VERSION));
    *answer = json_pack("{s:s, s:[{s:i, s:i, s:s, s:s, s:{s:s}}]}", "op", "ready", "ranks", "rank",
                        0, "pid", (int)getpid(), "host", dt_host_name(), "device", "cpu",
                        "versions", "driver", driver);
    return DT_OK;
}

static const struct row {
    const char *op;
    dt_status (*answer)(struct observer *observer, const json_t *request, json_t **answer);
} rows[] = {{"hello", answer_hello},
            {"observe", answer_begin},
            {"observed", answer_end},
            {"memory", answer_memory}};

static dt_status serve_request(struct observer *observer, const json_t *request, json_t **answer)
{
    const char *op = dt_json_text_at(request, "op");
    bool greeted = observer->nvml != NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op, op) == 0 && (rows[i].answer != answer_hello) == greeted)
            return rows[i].answer(observer, request, answer);
    return dt_fail(DT_EUSAGE, "an observer does not know '%.40s' here", op);
}

int dt_observe(void)
{
    static struct observer observer;
    dt_auto_free char *line = NULL;
    size_t room = 0;
    ssize_t size;
    bool over = false;
    while (!over && (size = getline(&line, &room, stdin)) >= 0) {
        json_auto_t *request = NULL;
        json_t *answer = NULL;
        dt_status status = dt_json_parse(line, (size_t)size, WHAT, &request);
        over = strcmp(dt_json_text_at(request, "op"), "quit") == 0;
        if (status == DT_OK && !over)
            status = serve_request(&observer, request, &answer);
        if (status != DT_OK)
            answer =
                json_pack("{s:s, s:s, s:s}", "op", "failed", "kind", "error", "say", dt_message());
        if (!over)
            say_message(answer);
    }
    for (int i = 0; i < observer.count; i++)
        dt_telemetry_stop(&observer.gpus[i].telemetry);
    dt_nvml_close(observer.nvml);
    return 0;
}
