/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/proc.h"
#include "tuner/machine/machine_int.h"
#include "tuner/runner/samples_json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASK_SECONDS 20
#define IDLE_MOST   10 /* per cent that a GPU without work may be busy */
#define DEEPEST     64

struct dt_observer {
    const struct dt_backend *gpus;
    struct dt_group *group; /* the process; NULL: it does not run */
    bool off;               /* it failed, or is not wanted */
    bool begun;
    int ranks; /* ranks of the observed group */
};

struct dt_observer *dt_observer_new(const struct dt_backend *gpus)
{
    struct dt_observer *observer = calloc(1, sizeof *observer);
    if (observer != NULL)
        observer->gpus = gpus;
    return observer;
}

static void observer_stop(struct dt_observer *observer)
{
    dt_group_stop(observer->group, DT_NS_PER_SECOND);
    observer->group = NULL;
    observer->off = true;
    observer->begun = false;
}

void dt_observer_free(struct dt_observer *observer)
{
    if (observer != NULL)
        observer_stop(observer);
    free(observer);
}

static dt_status observer_start(struct dt_observer *observer)
{
    static const char *const arguments[] = {"--observe", NULL};
    const struct dt_launch launch = {.program = observer->gpus->program,
                                     .arguments = arguments,
                                     .by = DT_LAUNCH_SELF,
                                     .ranks = 1,
                                     .unrecorded = true};
    struct dt_failure failure;
    return dt_group_start(&launch, NULL, dt_clock_ns() + ASK_SECONDS * DT_NS_PER_SECOND,
                          &observer->group, &failure);
}

/* Takes the request. *answer stays NULL when there is none: the observer is then off. */
static dt_status observer_ask(struct dt_observer *observer, json_t *request, const char *want,
                              json_t **answer)
{
    struct dt_failure failure;
    dt_status status = observer->off || request == NULL ? DT_FAILED : DT_OK;
    if (status == DT_OK && observer->group == NULL)
        status = observer_start(observer);
    if (status == DT_OK)
        status = dt_group_call(observer->group, request, want,
                               dt_clock_ns() + ASK_SECONDS * DT_NS_PER_SECOND, answer, &failure);
    json_decref(request);
    if (status == DT_FAILED || status == DT_EUSAGE) {
        observer_stop(observer);
        return DT_OK;
    }
    return status;
}

/* The place of a rank's GPU in the list; -1: unknown, or of another host. */
static int place_of(const json_t *cards, const json_t *rank, int number)
{
    const char *uuid = dt_json_text_at(rank, "uuid"), *device = dt_json_text_at(rank, "device");
    int count = (int)json_array_size(cards), place = number;
    for (int i = 0; uuid[0] != '\0' && i < count; i++)
        if (strcmp(dt_json_text_at(json_array_get(cards, (size_t)i), "uuid"), uuid) == 0)
            return i;
    if (strncmp(device, "cuda:", 5) == 0)
        place = (int)strtol(device + 5, NULL, 10);
    return place >= 0 && place < count && dt_machine_is_here(rank) ? place : -1;
}

/* {"op", "devices": the PCI bus id of each rank's GPU}; NULL when one is not known. */
static json_t *request_for(const struct dt_observer *observer, const char *op,
                           const struct dt_group *group, int ranks)
{
    const json_t *cards = json_object_get(observer->gpus->devices, "devices");
    const json_t *ranks_ready = json_object_get(dt_group_ready(group), "ranks");
    json_auto_t *list = json_array();
    for (int i = 0; i < ranks; i++) {
        int place = place_of(cards, json_array_get(ranks_ready, (size_t)i), i);
        const char *pci =
            place < 0 ? "" : dt_json_text_at(json_array_get(cards, (size_t)place), "pci");
        if (pci[0] == '\0')
            return NULL;
        json_array_append_new(list, json_string(pci));
    }
    return json_pack("{s:s, s:O}", "op", op, "devices", list);
}

dt_status dt_observer_begin(struct dt_observer *observer, const struct dt_group *group, int ranks)
{
    json_auto_t *answer = NULL;
    observer->ranks = ranks;
    DT_TRY(observer_ask(observer, request_for(observer, "observe", group, ranks), "observing",
                        &answer));
    observer->begun = answer != NULL;
    return DT_OK;
}

dt_status dt_observer_end(struct dt_observer *observer, struct dt_rank_telemetry **telemetry,
                          int *ranks)
{
    json_auto_t *answer = NULL;
    *telemetry = NULL;
    *ranks = 0;
    if (!observer->begun)
        return DT_OK;
    observer->begun = false;
    DT_TRY(observer_ask(observer, json_pack("{s:s}", "op", "observed"), "observed", &answer));
    if (dt_telemetry_read(json_object_get(answer, "telemetry"), observer->ranks, telemetry))
        *ranks = observer->ranks;
    return DT_OK;
}

/* Bytes of the processes of rank `number` on its GPU: of all ranks' processes there but those of
 * others that share it.
 * -1: the driver names none. */
static json_int_t bytes_taken(const struct dt_group *group, const json_t *devices,
                              const json_t *asked, int number)
{
    const json_t *mine = json_array_get(asked, (size_t)number), *process;
    const json_t *card = json_array_get(devices, (size_t)number);
    json_int_t sum = -1;
    size_t i;
    json_array_foreach(json_object_get(card, "processes"), i, process)
    {
        const json_t *bytes = json_object_get(process, "bytes");
        int owner = dt_group_rank_of(group, dt_json_integer_at(process, "pid"));
        bool other = owner != number && json_equal(json_array_get(asked, (size_t)owner), mine);
        if (owner >= 0 && !other && json_is_integer(bytes))
            sum = (sum > 0 ? sum : 0) + json_integer_value(bytes);
    }
    return sum;
}

/* The lists of all ranks that have every value. */
static void memory_of(const struct dt_group *group, const json_t *devices, const json_t *asked,
                      struct dt_device_bytes *memory)
{
    static const char *const keys[] = {NULL, "free_bytes", "memory_bytes"};
    struct dt_amounts *const lists[] = {&memory->taken, &memory->free, &memory->total};
    int ranks = (int)json_array_size(asked);
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        int64_t *list = calloc((size_t)ranks + 1, sizeof *list);
        for (int i = 0; list != NULL && i < ranks; i++) {
            const json_t *device = json_array_get(devices, (size_t)i),
                         *value = keys[k] != NULL ? json_object_get(device, keys[k]) : NULL;
            list[i] = keys[k] == NULL          ? bytes_taken(group, devices, asked, i)
                      : json_is_integer(value) ? json_integer_value(value)
                                               : -1;
            if (list[i] < 0) {
                free(list);
                list = NULL;
            }
        }
        *lists[k] = (struct dt_amounts){list != NULL ? ranks : 0, list};
    }
}

dt_status dt_observer_memory(struct dt_observer *observer, const struct dt_group *group, int ranks,
                             struct dt_device_bytes *memory)
{
    json_auto_t *answer = NULL;
    json_t *request = request_for(observer, "memory", group, ranks);
    json_auto_t *asked = json_incref(json_object_get(request, "devices"));
    DT_TRY(observer_ask(observer, request, "memory", &answer));
    const json_t *devices = json_object_get(answer, "devices");
    if (json_array_size(devices) == (size_t)ranks)
        memory_of(group, devices, asked, memory);
    return DT_OK;
}

/* A program that does not descend from this one; false: it does, or its pid is one
 * of another container. */
static bool is_foreign(pid_t pid, char name[17])
{
    struct dt_proc process, above;
    if (!dt_proc_read(pid, &process))
        return false;
    above = process;
    for (int depth = 0; depth < DEEPEST && above.pid > 1 && above.pid != getpid(); depth++)
        if (!dt_proc_read(above.parent, &above))
            return false;
    if (above.pid != getpid())
        memcpy(name, process.name, sizeof process.name);
    return above.pid != getpid();
}

/* before: as the GPU was when the command began. */
static bool others_use(const json_t *card, const json_t *before, enum dt_gpu_company company,
                       char name[17])
{
    const json_t *processes = json_object_get(card, "processes"), *process;
    const json_t *then = json_object_get(before, "free_bytes");
    const json_t *now = json_object_get(card, "free_bytes"); /* null: the driver does not tell */
    size_t i;
    json_array_foreach(processes, i, process)
    {
        if (is_foreign((pid_t)dt_json_integer_at(process, "pid"), name))
            return true;
    }
    if (company == DT_GPUS_FREE &&
        (i > 0 || (json_is_integer(then) && json_is_integer(now) &&
                   json_integer_value(then) - json_integer_value(now) > DT_DIRTY_BYTES)))
        return true;
    return company != DT_GPUS_COMPUTE && dt_json_integer_at(card, "utilization") > IDLE_MOST;
}

dt_status dt_observer_others(struct dt_observer *observer, enum dt_gpu_company company,
                             struct dt_gpu_use *use)
{
    const json_t *cards = json_object_get(observer->gpus->devices, "devices");
    json_auto_t *answer = NULL;
    json_t *list = json_array();
    char name[17] = "";
    double count = 0;
    for (size_t i = 0; i < json_array_size(cards); i++)
        json_array_append_new(list, json_string(dt_json_text_at(json_array_get(cards, i), "pci")));
    DT_TRY(observer_ask(observer, json_pack("{s:s, s:o}", "op", "memory", "devices", list),
                        "memory", &answer));
    const json_t *now = json_object_get(answer, "devices");
    for (size_t i = 0; i < json_array_size(now); i++)
        count += others_use(json_array_get(now, i), json_array_get(cards, i), company, name);
    if (answer != NULL && !(use->count >= count)) {
        use->count = count;
        memcpy(use->name, name, sizeof name);
    }
    return DT_OK;
}
