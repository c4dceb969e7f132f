/* SPDX-License-Identifier: MIT */
#include "kernels/cuda/devices.h"

#include "kernels/cuda/cuda_int.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>
#ifdef DT_HAVE_NCCL
#include <nccl.h>
#endif

static void read_versions(struct dt_cuda_machine *machine)
{
    size_t blas = cublasLtGetVersion(); /* 130100: major * 10000 + minor * 100 + patch */
    snprintf(machine->cublaslt, sizeof machine->cublaslt, "%zu.%zu.%zu", blas / 10000,
             blas / 100 % 100, blas % 100);
#ifdef DT_HAVE_NCCL
    int nccl = 0;
    if (ncclGetVersion(&nccl) == ncclSuccess) /* 22809, since 2.9 */
        snprintf(machine->nccl, sizeof machine->nccl, "%d.%d.%d", nccl / 10000, nccl / 100 % 100,
                 nccl % 100);
#endif
    for (int i = 0; i < DT_ATTENTIONS; i++)
        snprintf(machine->attention[i], sizeof machine->attention[i], "%s",
                 dt_cuda_attention_version(i));
    if (cudaDriverGetVersion(&machine->cuda_driver) != cudaSuccess)
        machine->cuda_driver = 0;
    if (cudaRuntimeGetVersion(&machine->cuda) != cudaSuccess)
        machine->cuda = 0;
}

/* In the form of NVML and nvidia-smi. */
static void write_uuid(const cudaUUID_t *uuid, char text[48])
{
    static const int group_ends[] = {4, 6, 8, 10};
    int at = snprintf(text, 48, "GPU-");
    for (int i = 0, g = 0; i < 16; i++) {
        if (g < 4 && i == group_ends[g]) {
            text[at++] = '-';
            g++;
        }
        at += snprintf(text + at, 48 - (size_t)at, "%02x", (unsigned)(unsigned char)uuid->bytes[i]);
    }
}

/* Without NVML free memory needs a context; this is the only function here that uses the device. */
static int64_t ask_free(int index)
{
    size_t bytes = 0, total = 0;
    if (cudaSetDevice(index) != cudaSuccess || cudaMemGetInfo(&bytes, &total) != cudaSuccess)
        return DT_NVML_UNKNOWN;
    return (int64_t)bytes;
}

static bool read_card(int index, const struct dt_nvml *nvml, struct dt_cuda_card *card,
                      struct dt_nvml_device **device)
{
    struct cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess ||
        cudaDeviceGetPCIBusId(card->pci, sizeof card->pci, index) != cudaSuccess)
        return false;
    snprintf(card->name, sizeof card->name, "%.*s", (int)sizeof card->name - 1, properties.name);
    write_uuid(&properties.uuid, card->uuid);
    card->major = properties.major;
    card->minor = properties.minor;
    card->multiprocessors = properties.multiProcessorCount;
    card->memory_bytes = (int64_t)properties.totalGlobalMem;
    card->shared_bytes = (int64_t)properties.sharedMemPerBlockOptin;
    card->l2_bytes = properties.l2CacheSize;
    *device = NULL;
    if (nvml != NULL && dt_nvml_find(nvml, card->pci, device) == DT_OK)
        dt_nvml_read(nvml, *device, &card->nvml);
    else
        dt_nvml_facts_clear(&card->nvml);
    card->free_bytes = card->nvml.use.free_bytes >= 0 ? card->nvml.use.free_bytes : ask_free(index);
    return true;
}

static void read_links(struct dt_cuda_machine *machine, const struct dt_nvml *nvml,
                       struct dt_nvml_device *const devices[])
{
    for (int a = 0; a < machine->count; a++)
        for (int b = 0; b < machine->count; b++) {
            enum dt_nvml_link link = DT_NVML_SELF;
            int can = 0;
            bool known = a == b || (nvml != NULL && devices[a] != NULL && devices[b] != NULL &&
                                    dt_nvml_link(nvml, devices[a], devices[b], &link));
            machine->links[a][b] = known ? (int)link : DT_NVML_UNKNOWN;
            if (a != b && cudaDeviceCanAccessPeer(&can, a, b) != cudaSuccess)
                can = 0;
            machine->peers[a][b] = a == b ? 0 : can == 1 ? 1 : -1;
        }
}

static void read_cards(struct dt_cuda_machine *machine, const struct dt_nvml *nvml)
{
    struct dt_nvml_device *devices[DT_CUDA_DEVICES_MOST];
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess && machine->cuda_driver == 0)
        snprintf(machine->why, sizeof machine->why, "CUDA: there is no driver (libcuda.so.1)");
    else if (error != cudaSuccess)
        snprintf(machine->why, sizeof machine->why, "CUDA: %s", cudaGetErrorString(error));
    else if (count == 0)
        snprintf(machine->why, sizeof machine->why, "CUDA: no device is visible");
    count = error == cudaSuccess && count < DT_CUDA_DEVICES_MOST ? count
            : error == cudaSuccess                               ? DT_CUDA_DEVICES_MOST
                                                                 : 0;
    for (int i = 0; i < count; i++)
        if (!read_card(i, nvml, &machine->cards[i], &devices[i])) {
            snprintf(machine->why, sizeof machine->why,
                     "CUDA: device %d does not say what it is: %s", i,
                     cudaGetErrorString(cudaGetLastError()));
            return;
        }
    machine->count = count;
    read_links(machine, nvml, devices);
}

void dt_cuda_machine_read(struct dt_cuda_machine *machine)
{
    struct dt_nvml *nvml = NULL;
    memset(machine, 0, sizeof *machine);
    machine->nvml = dt_nvml_open(&nvml) == DT_OK;
    if (machine->nvml)
        dt_nvml_driver(nvml, machine->driver, sizeof machine->driver);
    read_versions(machine);
    read_cards(machine, nvml);
    dt_nvml_close(nvml);
}
