/* SPDX-License-Identifier: MIT */
/* CUDA_VISIBLE_DEVICES as CUDA reads it (CUDA C++ Programming Guide, environment variables):
 * numbers or UUIDs, which may be cut short, up to the first that is no device. CUDA's own order
 * begins with the fastest device unless CUDA_DEVICE_ORDER is PCI_BUS_ID, so on a machine with GPUs
 * of several makes the numbers may differ. */
#include "kernels/cards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCI_MOST 64 /* devices of a machine, visible or not */

struct found {
    int count;
    struct dt_nvml_device *devices[PCI_MOST];
    struct dt_nvml_name names[PCI_MOST];
};

static void find_cards(const struct dt_nvml *nvml, struct found *found, char why[], size_t room)
{
    int count = dt_nvml_count(nvml);
    for (found->count = 0; found->count < count && found->count < PCI_MOST; found->count++) {
        int i = found->count;
        if (dt_nvml_at(nvml, i, &found->devices[i], &found->names[i]) != DT_OK) {
            snprintf(why, room, "%s", dt_message());
            return;
        }
    }
    if (count == 0)
        snprintf(why, room, "NVML: there is no device");
}

/* The place of the device that begins at *text, which moves behind it; -1: it is none. */
static int place_of(const struct found *found, const char **text)
{
    size_t size = strcspn(*text, ",");
    const char *word = *text;
    char *end;
    *text += size + (word[size] == ',');
    long place = strtol(word, &end, 10);
    if (end == word + size && size > 0)
        return place >= 0 && place < found->count ? (int)place : -1;
    for (int i = 0; i < found->count; i++)
        if (strncmp(word, "GPU-", 4) == 0 && strncmp(found->names[i].uuid, word, size) == 0)
            return i;
    return -1;
}

/* Places of the visible devices, in their order. */
static int list_visible(const struct found *found, int places[DT_CUDA_DEVICES_MOST])
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    int count = 0;
    for (int i = 0; text == NULL && i < found->count && count < DT_CUDA_DEVICES_MOST; i++)
        places[count++] = i;
    while (text != NULL && *text != '\0' && count < DT_CUDA_DEVICES_MOST) {
        int place = place_of(found, &text);
        if (place < 0)
            break;
        places[count++] = place;
    }
    return count;
}

static void read_card(const struct dt_nvml *nvml, struct dt_nvml_device *device,
                      const struct dt_nvml_name *name, struct dt_cuda_card *card)
{
    snprintf(card->name, sizeof card->name, "%s", name->name);
    snprintf(card->uuid, sizeof card->uuid, "%.*s", (int)sizeof card->uuid - 1, name->uuid);
    snprintf(card->pci, sizeof card->pci, "%s", name->pci);
    card->major = name->major;
    card->minor = name->minor;
    dt_nvml_read(nvml, device, &card->nvml);
    card->memory_bytes = card->nvml.use.memory_bytes;
    card->free_bytes = card->nvml.use.free_bytes;
    card->multiprocessors = card->shared_bytes = card->l2_bytes = DT_NVML_UNKNOWN;
}

static void read_links(const struct dt_nvml *nvml, struct dt_nvml_device *const devices[],
                       struct dt_cuda_machine *machine)
{
    for (int a = 0; a < machine->count; a++)
        for (int b = 0; b < machine->count; b++) {
            enum dt_nvml_link link = DT_NVML_SELF;
            bool known = dt_nvml_link(nvml, devices[a], devices[b], &link);
            machine->links[a][b] = known ? (int)link : DT_NVML_UNKNOWN;
            machine->peers[a][b] = a == b                                          ? 0
                                   : dt_nvml_reaches(nvml, devices[a], devices[b]) ? 1
                                                                                   : -1;
        }
}

static void read_machine(const struct dt_nvml *nvml, struct found *found,
                         struct dt_cuda_machine *machine)
{
    struct dt_nvml_device *devices[DT_CUDA_DEVICES_MOST];
    int places[DT_CUDA_DEVICES_MOST] = {0};
    dt_nvml_driver(nvml, machine->driver, sizeof machine->driver);
    machine->cuda_driver = dt_nvml_cuda(nvml);
    find_cards(nvml, found, machine->why, sizeof machine->why);
    machine->count = machine->why[0] == '\0' ? list_visible(found, places) : 0;
    if (machine->count == 0 && machine->why[0] == '\0')
        snprintf(machine->why, sizeof machine->why, "NVML: CUDA_VISIBLE_DEVICES leaves no device");
    for (int i = 0; i < machine->count; i++) {
        devices[i] = found->devices[places[i]];
        read_card(nvml, devices[i], &found->names[places[i]], &machine->cards[i]);
        if (machine->cards[i].nvml.mig == 1) { /* CUDA sees the parts, and NVML lists the whole */
            snprintf(machine->why, sizeof machine->why, "NVML: device %d is cut by MIG", places[i]);
            machine->count = 0;
        }
    }
    read_links(nvml, devices, machine);
}

void dt_cards_read(struct dt_cuda_machine *machine)
{
    struct dt_nvml *nvml = NULL;
    dt_auto_free struct found *found = calloc(1, sizeof *found);
    memset(machine, 0, sizeof *machine);
    machine->nvml = dt_nvml_open(&nvml) == DT_OK;
    if (!machine->nvml)
        snprintf(machine->why, sizeof machine->why, "%s", dt_message());
    else if (found == NULL)
        snprintf(machine->why, sizeof machine->why, "out of memory");
    else
        read_machine(nvml, found, machine);
    dt_nvml_close(nvml);
}
