/* SPDX-License-Identifier: MIT */
/* The devices of a foreign worker, which starts its ranks where it likes. What it announces decides between this machine's
 * cores and its GPUs; those are described by the controller's own means, so that entries of all workers compare. */
#include "tuner/machine/machine_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_PART 8 /* two counts of a device's memory differ by less than this part of it */

enum announced { CORES, NOTHING, OTHERS };

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

/* The device of every rank that names one is "cpu", or not. */
static enum announced devices_of(const json_t *ready)
{
    enum announced found = NOTHING;
    const json_t *rank;
    size_t i;
    json_array_foreach(json_object_get(ready, "ranks"), i, rank)
    {
        const char *device = text_of(rank, "device");
        if (strcmp(device, "cpu") != 0 && device[0] != '\0')
            return OTHERS;
        if (device[0] != '\0')
            found = CORES;
    }
    return found;
}

/* "2 x NVIDIA H200, 9.0, 160 GiB" by the list in ready, which must be complete; else "unknown". */
static void name_devices(const json_t *ready, char text[], size_t room)
{
    const json_t *list = json_object_get(ready, "devices"), *first = json_array_get(list, 0);
    json_int_t bytes = json_integer_value(json_object_get(first, "memory_bytes"));
    const char *name = text_of(first, "name"), *compute = text_of(first, "compute");
    if (name[0] == '\0' || compute[0] == '\0' || bytes <= 0) {
        snprintf(text, room, "unknown");
        return;
    }
    snprintf(text, room, "%zu x %.100s, %.20s, %lld GiB", json_array_size(list), name, compute,
             (long long)dt_machine_memory_gib(bytes));
    dt_group_clean(text);
}

static json_int_t bytes_of(const json_t *card)
{
    return json_integer_value(json_object_get(card, "memory_bytes"));
}

/* What the worker leaves open is no difference. Memory is counted in several ways: with and without a driver's own part. */
static bool same_card(const json_t *announced, const json_t *card)
{
    static const char *const texts[] = {"name", "compute"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = text_of(announced, texts[i]);
        if (text[0] != '\0' && strcmp(text, text_of(card, texts[i])) != 0)
            return false;
    }
    json_int_t mine = bytes_of(announced), found = bytes_of(card);
    return mine <= 0 || llabs(mine - found) <= found / MEMORY_PART;
}

/* DT_EUSAGE when the worker names devices that are not among those of this machine. */
static dt_status compare(const json_t *ready, const struct dt_backend *found)
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
    if (same)
        return DT_OK;
    char theirs[200], ours[200];
    name_devices(ready, theirs, sizeof theirs);
    name_devices(found->devices, ours, sizeof ours);
    if (strcmp(theirs, "unknown") == 0)
        snprintf(theirs, sizeof theirs, "%zu x %.100s", json_array_size(mine),
                 text_of(json_array_get(mine, 0), "name"));
    dt_group_clean(theirs);
    return dt_fail(DT_EUSAGE,
                   "the worker's ready: its 'devices' are %s, but the GPUs of this machine are %s: "
                   "CUDA_VISIBLE_DEVICES must be the same for both",
                   theirs, ours);
}

dt_status dt_machine_announced_gpus(const json_t *ready, struct dt_backend *found)
{
    if (devices_of(ready) == OTHERS && found->cuda)
        return compare(ready, found);
    dt_backend_fini(found);
    *found = (struct dt_backend){.cuda = false};
    return DT_OK;
}

json_t *dt_machine_announced_hard(const json_t *ready)
{
    enum announced announced = devices_of(ready);
    struct dt_backend backend = {.cuda = false};
    if (announced == CORES || dt_backend_choose(DT_BACKEND_AUTO, false, &backend) != DT_OK)
        backend = (struct dt_backend){.cuda = false};
    bool seen = announced == OTHERS && backend.cuda;
    bool doubt = announced == OTHERS ? !seen : backend.cuda || backend.expected;
    json_t *hard = dt_machine_hard(seen ? &backend : NULL);
    dt_backend_fini(&backend);
    if (doubt && hard != NULL) {
        char text[200];
        name_devices(ready, text, sizeof text);
        json_object_set_new(hard, "devices", json_string(text));
    }
    return hard;
}
