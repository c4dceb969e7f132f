/* SPDX-License-Identifier: MIT */
/* The devices of a foreign worker, which starts its ranks where it likes. What it announces decides
 * between this machine's cores and its GPUs; those are described by the controller's own means, so
 * that entries of all workers compare. */
#include "tuner/machine/machine_int.h"

#include "base/figures.h"
#include "base/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MEMORY_PART 8 /* two counts of a device's memory differ by less than this part of it */

enum announced { CORES, NOTHING, OTHERS };

/* The device of every rank that names one is "cpu", or not. */
static enum announced announced_devices(const json_t *ready)
{
    enum announced found = NOTHING;
    const json_t *rank;
    size_t i;
    json_array_foreach(json_object_get(ready, "ranks"), i, rank)
    {
        const char *device = dt_json_text_at(rank, "device");
        if (strcmp(device, "cpu") != 0 && device[0] != '\0')
            return OTHERS;
        if (device[0] != '\0')
            found = CORES;
    }
    return found;
}

/* A GPU of the list by its UUID; NULL: there is none, or the device does not say it. */
static const json_t *find_uuid(const json_t *cards, const json_t *device)
{
    const char *uuid = dt_json_text_at(device, "uuid");
    const json_t *card;
    size_t i;
    json_array_foreach(cards, i, card)
    {
        if (uuid[0] != '\0' && strcasecmp(dt_json_text_at(card, "uuid"), uuid) == 0)
            return card;
    }
    return NULL;
}

bool dt_machine_is_here(const json_t *rank)
{
    const char *host = dt_json_text_at(rank, "host"), *here = dt_host_name();
    size_t size = strcspn(host, ".");
    return size == 0 || (size == strcspn(here, ".") && strncasecmp(host, here, size) == 0);
}

/* A rank is on another host, and no device is one of this machine's. A container has its own name,
 * but the machine's GPUs. */
static bool devices_elsewhere(const json_t *ready, const json_t *cards)
{
    const json_t *rank, *device;
    size_t i;
    json_array_foreach(json_object_get(ready, "devices"), i, device)
    {
        if (find_uuid(cards, device) != NULL)
            return false;
    }
    json_array_foreach(json_object_get(ready, "ranks"), i, rank)
    {
        if (!dt_machine_is_here(rank))
            return true;
    }
    return false;
}

/* "2 x NVIDIA H200, 9.0, 160 GiB" by the list in ready, which must be complete; else "unknown". */
static void name_devices(const json_t *ready, char text[], size_t room)
{
    const json_t *list = json_object_get(ready, "devices"), *first = json_array_get(list, 0);
    json_int_t bytes = dt_json_integer_at(first, "memory_bytes");
    const char *name = dt_json_text_at(first, "name"), *compute = dt_json_text_at(first, "compute");
    if (name[0] == '\0' || compute[0] == '\0' || bytes <= 0) {
        snprintf(text, room, "unknown");
        return;
    }
    snprintf(text, room, "%zu x %.100s, %.20s, %s", json_array_size(list), name, compute,
             dt_figure_bytes_of(dt_machine_memory_gib(bytes) << 30).text);
    dt_group_clean(text);
}

/* Fields that the worker leaves open are no difference. Memory is counted in several ways: with and
 * without a driver's own part. */
static bool same_card(const json_t *announced, const json_t *card)
{
    static const char *const texts[] = {"name", "compute"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = dt_json_text_at(announced, texts[i]);
        if (text[0] != '\0' && strcmp(text, dt_json_text_at(card, texts[i])) != 0)
            return false;
    }
    json_int_t mine = dt_json_integer_at(announced, "memory_bytes"),
               found = dt_json_integer_at(card, "memory_bytes");
    return mine <= 0 || llabs(mine - found) <= found / MEMORY_PART;
}

/* DT_EUSAGE when what a device has is not what the driver of this machine says of all: its own
 * UUID, or its driver. */
static dt_status compare_names(const json_t *device, const struct dt_backend *found)
{
    const json_t *cards = json_object_get(found->devices, "devices");
    const json_t *first = json_array_get(cards, 0);
    bool known =
        dt_json_text_at(first, "uuid")[0] != '\0' && !json_is_true(json_object_get(first, "mig"));
    char uuid[64], driver[80];
    snprintf(uuid, sizeof uuid, "%s", dt_json_text_at(device, "uuid"));
    snprintf(driver, sizeof driver, "%s", dt_json_text_at(device, "driver"));
    dt_group_clean(uuid);
    dt_group_clean(driver);
    if (known && uuid[0] != '\0' && find_uuid(cards, device) == NULL)
        return dt_fail(DT_EUSAGE,
                       "the worker's ready: its 'devices' have %s, which is none of the GPUs that "
                       "this machine has: CUDA_VISIBLE_DEVICES must be the same for both",
                       uuid);
    const char *ours = dt_json_text_at(found->devices, "driver");
    if (driver[0] != '\0' && ours[0] != '\0' && strcmp(driver, ours) != 0)
        return dt_fail(DT_EUSAGE,
                       "the worker's ready: the driver of its 'devices' is %s, but that of this "
                       "machine is %s",
                       driver, ours);
    return DT_OK;
}

/* DT_EUSAGE when the worker names devices that are not among those of this machine. */
static dt_status compare_devices(const json_t *ready, const struct dt_backend *found)
{
    const json_t *mine = json_object_get(ready, "devices"), *announced, *card;
    const json_t *cards = json_object_get(found->devices, "devices");
    size_t i, k, same = json_array_size(mine) <= json_array_size(cards);
    json_array_foreach(mine, i, announced)
    {
        bool any = false;
        json_array_foreach(cards, k, card)
        {
            any = any || same_card(announced, card);
        }
        same = same && any;
    }
    for (i = 0; same && i < json_array_size(mine); i++)
        DT_TRY(compare_names(json_array_get(mine, i), found));
    if (same)
        return DT_OK;
    char theirs[200], ours[200];
    name_devices(ready, theirs, sizeof theirs);
    name_devices(found->devices, ours, sizeof ours);
    if (strcmp(theirs, "unknown") == 0)
        snprintf(theirs, sizeof theirs, "%zu x %.100s", json_array_size(mine),
                 dt_json_text_at(json_array_get(mine, 0), "name"));
    dt_group_clean(theirs);
    return dt_fail(DT_EUSAGE,
                   "the worker's ready: its 'devices' are %s, but the GPUs of this machine are %s: "
                   "CUDA_VISIBLE_DEVICES must be the same for both",
                   theirs, ours);
}

dt_status dt_machine_announced_gpus(const json_t *ready, struct dt_backend *found)
{
    const json_t *cards = json_object_get(found->devices, "devices");
    if (announced_devices(ready) == OTHERS && found->cuda && !devices_elsewhere(ready, cards))
        return compare_devices(ready, found);
    dt_backend_fini(found);
    *found = (struct dt_backend){.cuda = false};
    return DT_OK;
}

json_t *dt_machine_announced_hard(const json_t *ready)
{
    enum announced announced = announced_devices(ready);
    DT_CLEANUP(dt_backend_fini) struct dt_backend backend = {.cuda = false};
    if (announced == CORES || dt_backend_find_gpus(&backend) != DT_OK)
        backend = (struct dt_backend){.cuda = false};
    bool seen = announced == OTHERS && backend.cuda &&
                !devices_elsewhere(ready, json_object_get(backend.devices, "devices"));
    bool doubt = announced == OTHERS ? !seen : backend.cuda || backend.expected;
    json_t *hard = dt_machine_hard(seen ? &backend : NULL);
    if (doubt && hard != NULL) {
        char text[200];
        name_devices(ready, text, sizeof text);
        json_object_set_new(hard, "devices", json_string(text));
    }
    return hard;
}

int64_t dt_machine_announced_memory(const json_t *ready)
{
    const json_t *device;
    int64_t least = 0;
    size_t i;
    json_array_foreach(json_object_get(ready, "devices"), i, device)
    {
        int64_t bytes = dt_json_integer_at(device, "memory_bytes");
        if (bytes > 0 && (least == 0 || bytes < least))
            least = bytes;
    }
    return least;
}
