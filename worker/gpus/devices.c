/* SPDX-License-Identifier: MIT */
#include "worker/gpus/devices.h"
#include "worker/gpus/telemetry.h"

#include "base/json.h"
#include "base/read.h"

#ifdef DT_HAVE_CUDA
#include "kernels/cuda/devices.h"
#else
#include "kernels/cards.h"
#endif

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INFINIBAND "/sys/class/infiniband"

extern char **environ;

/* Variables of CUDA, NCCL, cuDNN and cuBLAS, and PyTorch's variables for NCCL. */
static json_t *environment_json(void)
{
    static const char *const prefixes[] = {"NCCL_",   "CUDA_",   "CUDNN_",
                                           "CUBLAS_", "NVIDIA_", "TORCH_NCCL_"};
    json_t *object = json_object();
    for (char **p = environ; *p != NULL; p++)
        for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
            char name[128], value[512];
            const char *is = strchr(*p, '=');
            if (is == NULL || strncmp(*p, prefixes[i], strlen(prefixes[i])) != 0 ||
                (size_t)(is - *p) >= sizeof name)
                continue;
            snprintf(name, sizeof name, "%.*s", (int)(is - *p), *p);
            snprintf(value, sizeof value, "%s", is + 1);
            dt_text_mend(name);
            dt_text_mend(value);
            json_object_set_new(object, name, json_string(value));
        }
    return object;
}

/* /sys/class/infiniband/mlx5_0/ports/1/state says "4: ACTIVE". */
static bool is_active(const char *device)
{
    char path[512], state[64] = "";
    for (int port = 1; port <= 4 && strstr(state, "ACTIVE") == NULL; port++) {
        snprintf(path, sizeof path, INFINIBAND "/%.200s/ports/%d/state", device, port);
        if (dt_read_head(path, state, sizeof state) == 0)
            break;
    }
    return strstr(state, "ACTIVE") != NULL;
}

static json_t *infiniband_json(void)
{
    json_t *names = json_array();
    bool active = false;
    DT_CLEANUP(dt_closedir_at) DIR *folder = opendir(INFINIBAND);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.') {
            json_array_append_new(names, json_string(entry->d_name));
            active = active || is_active(entry->d_name);
        }
    return json_pack("{s:o, s:b}", "devices", names, "active", active);
}

json_t *dt_gpu_number(int64_t value)
{
    return value >= 0 ? json_integer(value) : json_null();
}

static json_t *mode_json(int64_t value)
{
    return value >= 0 ? json_boolean(value != 0) : json_null();
}

json_t *dt_gpu_reasons(const char *(*reason)(int i), int64_t bits)
{
    const char *name;
    json_t *array = json_array();
    for (int i = 0; (name = reason(i)) != NULL; i++)
        if ((bits >> i & 1) != 0)
            json_array_append_new(array, json_string(name));
    return array;
}

json_t *dt_gpu_processes(const struct dt_nvml_use *use)
{
    json_t *array = json_array();
    for (int i = 0; i < use->count; i++)
        json_array_append_new(array,
                              json_pack("{s:I, s:o}", "pid", (json_int_t)use->processes[i].pid,
                                        "bytes", dt_gpu_number(use->processes[i].bytes)));
    return array;
}

static json_t *pcie_json(const struct dt_nvml_facts *facts)
{
    if (facts->pcie.generation < 0 && facts->pcie.width < 0)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o}", "generation", dt_gpu_number(facts->pcie.generation),
                     "generation_max", dt_gpu_number(facts->pcie.generation_max), "width",
                     dt_gpu_number(facts->pcie.width), "width_max",
                     dt_gpu_number(facts->pcie.width_max));
}

/* Adds NVML's facts to a device's object. */
static void add_facts(json_t *object, const struct dt_nvml_facts *facts)
{
    const struct {
        const char *key;
        json_t *value;
    } fields[] = {
        {"sm_mhz", dt_gpu_number(facts->health.sm_mhz)},
        {"sm_mhz_max", dt_gpu_number(facts->sm_mhz_max)},
        {"application_mhz", dt_gpu_number(facts->application_mhz)},
        {"memory_mhz", dt_gpu_number(facts->health.memory_mhz)},
        {"memory_mhz_max", dt_gpu_number(facts->memory_mhz_max)},
        {"power_mw", dt_gpu_number(facts->health.power_mw)},
        {"power_limit_mw", dt_gpu_number(facts->power_limit_mw)},
        {"power_limit_default_mw", dt_gpu_number(facts->power_limit_default_mw)},
        {"temperature_c", dt_gpu_number(facts->health.temperature_c)},
        {"utilization", dt_gpu_number(facts->health.utilization)},
        {"ecc", mode_json(facts->ecc)},
        {"ecc_pending", mode_json(facts->ecc_pending)},
        {"mig", mode_json(facts->mig)},
        {"mig_pending", mode_json(facts->mig_pending)},
        {"persistence", mode_json(facts->persistence)},
        {"reasons", facts->health.reasons >= 0
                        ? dt_gpu_reasons(dt_nvml_reason, facts->health.reasons)
                        : json_null()},
        {"processes", facts->use.count >= 0 ? dt_gpu_processes(&facts->use) : json_null()},
        {"nvlinks", dt_gpu_number(facts->nvlinks)},
        {"pcie", pcie_json(facts)},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        json_object_set_new(object, fields[i].key, fields[i].value);
}

static json_t *card_json(int index, const struct dt_cuda_card *card)
{
    char compute[16], name[sizeof card->name];
    snprintf(compute, sizeof compute, "%d.%d", card->major, card->minor);
    snprintf(name, sizeof name, "%s", card->name);
    dt_text_mend(name);
    json_t *object = json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "index", index, "name", name, "uuid",
        card->uuid, "pci", card->pci, "compute", compute, "multiprocessors",
        dt_gpu_number(card->multiprocessors), "memory_bytes", dt_gpu_number(card->memory_bytes),
        "free_bytes", dt_gpu_number(card->free_bytes), "shared_bytes",
        dt_gpu_number(card->shared_bytes), "l2_bytes", dt_gpu_number(card->l2_bytes));
    add_facts(object, &card->nvml);
    return object;
}

static void add_matrices(json_t *object, const struct dt_cuda_machine *machine)
{
    static const char *const names[] = {"self", "nvlink", "pix", "pxb", "phb", "node", "sys"};
    json_t *peers = json_array(), *links = json_array();
    for (int a = 0; a < machine->count; a++) {
        json_t *peer_row = json_array(), *link_row = json_array();
        for (int b = 0; b < machine->count; b++) {
            int link = machine->links[a][b];
            json_array_append_new(peer_row, json_integer(machine->peers[a][b]));
            json_array_append_new(link_row, link >= 0 ? json_string(names[link]) : json_null());
        }
        json_array_append_new(peers, peer_row);
        json_array_append_new(links, link_row);
    }
    json_object_set_new(object, "peers", peers);
    json_object_set_new(object, "links", links);
}

static json_t *machine_json(const struct dt_cuda_machine *machine)
{
    json_t *cards = json_array();
    json_t *object = json_pack(
        "{s:s, s:i, s:s, s:s, s:i, s:i, s:s, s:s, s:b}", "op", "devices", "count", machine->count,
        "why", machine->why, "driver", machine->driver, "cuda_driver", machine->cuda_driver, "cuda",
        machine->cuda, "nccl", machine->nccl, "cublaslt", machine->cublaslt, "nvml", machine->nvml);
    for (int i = DT_ATTENTION_OWN + 1; i < DT_ATTENTIONS; i++)
        json_object_set_new(object, dt_attention_texts[i], json_string(machine->attention[i]));
    for (int i = 0; i < machine->count; i++)
        json_array_append_new(cards, card_json(i, &machine->cards[i]));
    json_object_set_new(object, "devices", cards);
    add_matrices(object, machine);
    return object;
}

static json_t *describe_devices(void)
{
    dt_auto_free struct dt_cuda_machine *machine = malloc(sizeof *machine);
    if (machine == NULL)
        return NULL;
#ifdef DT_HAVE_CUDA
    dt_cuda_machine_read(machine);
#else
    dt_cards_read(machine);
#endif
    return machine_json(machine);
}

dt_status dt_devices_write(struct dt_text *out)
{
    json_t *object = describe_devices();
    dt_status status = DT_OK;
    if (object == NULL || json_object_set_new(object, "environment", environment_json()) != 0 ||
        json_object_set_new(object, "infiniband", infiniband_json()) != 0)
        status = dt_fail(DT_ENOMEM, "out of memory");
    if (status == DT_OK)
        status = dt_json_text(object, out);
    json_decref(object);
    return status;
}

int dt_devices_print(void)
{
    dt_auto_text text = {0};
    dt_status status = dt_devices_write(&text);
    bool written = status == DT_OK && puts(dt_text_at(&text)) >= 0 && fflush(stdout) == 0;
    return status != DT_OK ? 1 : written ? 0 : 74;
}
