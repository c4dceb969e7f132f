/* SPDX-License-Identifier: MIT */
#include "db/lookup/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAJOR = 1, HOSTS_MAX = 64, CORES_MAX = 65536, GPUS_MAX = 4096, GIB_MAX = 1 << 24 };

static dt_status format_check(const json_t *root, const char *what)
{
    const char *format;
    json_t *version;
    int64_t major;
    DT_TRY(dt_json_string(root, what, "format", &format));
    if (strcmp(format, "dittune-machine") != 0)
        return dt_fail(DT_EUSAGE, "%s: 'format' is '%.80s', expected 'dittune-machine'", what,
                       format);
    DT_TRY(dt_json_object(root, what, "version", &version));
    DT_TRY(dt_json_int(version, what, "major", 1, INT64_MAX, &major));
    if (major > MAJOR)
        return dt_fail(DT_EUSAGE, "%s was written by a newer dittune (version %lld, known: %d)",
                       what, (long long)major, MAJOR);
    return DT_OK;
}

/* A missing capability counts as absent. */
static dt_status gpus_read(const json_t *limits, const char *what, struct dt_machine *machine)
{
    struct dt_gpus *gpus = &machine->gpus;
    int64_t nccl = 0;
    if (dt_json_has(limits, "shared_bytes"))
        DT_TRY(dt_json_int(limits, what, "shared_bytes", 1, INT64_MAX / 2, &gpus->shared_bytes));
    if (dt_json_has(limits, "nccl"))
        DT_TRY(dt_json_int(limits, what, "nccl", 0, 1 << 24, &nccl));
    for (int i = DT_ATTENTION_OWN + 1; i < DT_ATTENTIONS; i++)
        if (dt_json_has(limits, dt_attention_texts[i]))
            DT_TRY(dt_json_bool(limits, what, dt_attention_texts[i], &gpus->attention[i]));
    if (dt_json_has(limits, "capture"))
        DT_TRY(dt_json_bool(limits, what, "capture", &gpus->capture));
    gpus->nccl = (int)nccl;
    gpus->bfloat16 = machine->bfloat16;
    gpus->memory_bytes = machine->memory_bytes;
    return DT_OK;
}

static dt_status limits_read(const json_t *root, const char *what, struct dt_machine *machine)
{
    json_t *limits;
    if (!dt_json_has(root, "limits"))
        return DT_OK;
    DT_TRY(dt_json_object(root, what, "limits", &limits));
    if (dt_json_has(limits, "memory_bytes"))
        DT_TRY(dt_json_int(limits, what, "memory_bytes", 1, INT64_MAX / 2, &machine->memory_bytes));
    if (dt_json_has(limits, "bfloat16"))
        DT_TRY(dt_json_bool(limits, what, "bfloat16", &machine->bfloat16));
    return machine->gpus.count > 0 ? gpus_read(limits, what, machine) : DT_OK;
}

/* Converts "9.0" to 90; 0 when it is missing. */
static int device_capability(const json_t *hard)
{
    int major = 0, minor = 0;
    if (sscanf(dt_json_text_at(hard, "compute"), "%2d.%1d", &major, &minor) != 2)
        return 0;
    return 10 * major + minor;
}

static dt_status hosts_read(const json_t *hard, const char *what, struct dt_machine *machine)
{
    int64_t hosts, slots;
    DT_TRY(dt_json_int(hard, what, "hosts", 1, HOSTS_MAX, &hosts));
    DT_TRY(dt_json_int(hard, what, "slots", hosts, CORES_MAX, &slots));
    machine->hosts = (int)hosts;
    machine->cores = (int)slots;
    if (machine->gpus.count > 0)
        machine->gpus.count = (int)slots;
    return DT_OK;
}

/* The four fields must be there: without one of them the machine could not be
 * distinguished from another. */
static dt_status hard_read(const json_t *root, const char *what, struct dt_machine *machine)
{
    const char *text;
    int64_t cores, gib;
    json_t *hard;
    DT_TRY(dt_json_object(root, what, "hard", &hard));
    DT_TRY(dt_json_string(hard, what, "device", &text));
    DT_TRY(dt_json_string(hard, what, "topology", &text));
    bool gpus = dt_json_has(hard, "gpus");
    DT_TRY(gpus ? dt_json_int(hard, what, "gpus", 1, GPUS_MAX, &cores)
                : dt_json_int(hard, what, "cores", 1, CORES_MAX, &cores));
    DT_TRY(dt_json_int(hard, what, "memory_gib", 1, GIB_MAX, &gib));
    machine->cores = (int)cores;
    machine->memory_bytes = gib << 30;
    if (gpus)
        machine->gpus = (struct dt_gpus){
            .count = (int)cores, .memory_bytes = gib << 30, .capability = device_capability(hard)};
    machine->hard = json_incref(hard);
    return dt_json_has(hard, "hosts") ? hosts_read(hard, what, machine) : DT_OK;
}

static dt_status machine_fill(const json_t *root, const char *what, struct dt_machine *machine)
{
    json_t *soft = NULL;
    DT_TRY(format_check(root, what));
    DT_TRY(hard_read(root, what, machine));
    if (dt_json_has(root, "soft"))
        DT_TRY(dt_json_object(root, what, "soft", &soft));
    machine->soft = soft != NULL ? json_incref(soft) : json_object();
    if (machine->soft == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading %s", what);
    return limits_read(root, what, machine);
}

dt_status dt_machine_from_json(const json_t *root, const char *what, struct dt_machine **machine)
{
    if (!json_is_object(root))
        return dt_fail(DT_EUSAGE, "%s is not a JSON object", what);
    struct dt_machine *filled = calloc(1, sizeof *filled);
    if (filled == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading %s", what);
    dt_status status = machine_fill(root, what, filled);
    if (status != DT_OK) {
        dt_machine_free(filled);
        return status;
    }
    *machine = filled;
    return DT_OK;
}

dt_status dt_machine_parse(const char *text, size_t size, const char *what,
                           struct dt_machine **machine)
{
    json_auto_t *root = NULL;
    DT_TRY(dt_json_parse(text, size, what, &root));
    return dt_machine_from_json(root, what, machine);
}

dt_status dt_machine_load(const char *path, struct dt_machine **machine)
{
    json_auto_t *root = NULL;
    char what[512];
    snprintf(what, sizeof what, "the machine description %.400s", path);
    DT_TRY(dt_json_read(path, "the machine description", &root));
    return dt_machine_from_json(root, what, machine);
}

void dt_machine_free(struct dt_machine *machine)
{
    if (machine == NULL)
        return;
    json_decref(machine->hard);
    json_decref(machine->soft);
    free(machine);
}
