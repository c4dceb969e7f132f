/* SPDX-License-Identifier: MIT */
/* cards - the GPUs of this machine, and processes on them, as the driver describes them
 *
 * No context is created, so queries do not use the device. With CUDA kernels/cuda/devices.h says
 * more of each; NVML alone is enough for a worker of another engine, which has a CUDA of its own.
 *
 *     struct dt_cuda_machine *machine = malloc(sizeof *machine);
 *     dt_cards_read(machine);                         -- also without a GPU: machine->why
 */
#ifndef DT_KERNELS_CARDS_H
#define DT_KERNELS_CARDS_H

#include "kernels/nvml.h"
#include "model/plan.h"

#define DT_CUDA_DEVICES_MOST 16

struct dt_cuda_card {
    char name[128], uuid[48], pci[32];
    int major, minor; /* compute capability */
    /* DT_NVML_UNKNOWN without CUDA: the last three. shared: most that a block may ask for */
    int64_t memory_bytes, free_bytes;
    int64_t multiprocessors, shared_bytes, l2_bytes;
    struct dt_nvml_facts nvml; /* all unknown without NVML */
};

struct dt_cuda_machine {
    int count;     /* devices visible under CUDA_VISIBLE_DEVICES */
    char why[256]; /* one sentence when count is 0 */
    char driver[80];
    int cuda_driver, cuda; /* 13000: supported by the driver, and of the build; 0 unknown */
    char nccl[32], cublaslt[32], attention[DT_ATTENTIONS][32]; /* "" when not built with it */
    bool nvml;
    struct dt_cuda_card cards[DT_CUDA_DEVICES_MOST];
    int peers[DT_CUDA_DEVICES_MOST]
             [DT_CUDA_DEVICES_MOST]; /* 0 self, 1 direct access possible, -1 none */
    int links[DT_CUDA_DEVICES_MOST]
             [DT_CUDA_DEVICES_MOST]; /* enum dt_nvml_link, or DT_NVML_UNKNOWN */
};

/* By NVML alone: those that CUDA_VISIBLE_DEVICES leaves, in the order of the
 * PCI bus. Cannot fail. */
void dt_cards_read(struct dt_cuda_machine *machine);

#endif
