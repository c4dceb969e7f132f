/* SPDX-License-Identifier: MIT */
/* The devices of a foreign worker, which starts its ranks where it likes. What it announces decides between this machine's
 * cores and its GPUs; those are described by the controller's own means, so that entries of all workers compare. */
#include "tuner/machine/machine_int.h"

#include <stdio.h>
#include <string.h>

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
