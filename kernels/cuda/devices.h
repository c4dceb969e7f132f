/* SPDX-License-Identifier: MIT */
/* devices - the GPUs of this machine: facts from the CUDA runtime and NVML, and processes on them
 *
 * No context is created (except to read free memory where NVML is missing), so queries do not use the device.
 *
 *     struct dt_cuda_machine *machine = malloc(sizeof *machine);
 *     dt_cuda_machine_read(machine);                  -- also without a GPU: machine->why
 */
#ifndef DT_KERNELS_CUDA_DEVICES_H
#define DT_KERNELS_CUDA_DEVICES_H

#include "kernels/nvml.h"

#define DT_CUDA_DEVICES_MOST 16

struct dt_cuda_card {
    char name[128], uuid[48], pci[32];
    int major, minor; /* compute capability */
    int multiprocessors;
    int64_t memory_bytes, free_bytes; /* free_bytes may be DT_NVML_UNKNOWN */
    int64_t shared_bytes, l2_bytes;   /* shared: most a block may ask for */
    struct dt_nvml_facts nvml;        /* all unknown without NVML */
};

struct dt_cuda_machine {
    int count;     /* devices visible under CUDA_VISIBLE_DEVICES */
    char why[256]; /* one sentence when count is 0 */
    char driver[80];
    int cuda_driver, cuda; /* 13000: supported by the driver, and of the build; 0 unknown */
    char nccl[32], cudnn[32], cublaslt[32]; /* "" when not built with it */
    bool nvml;
    struct dt_cuda_card cards[DT_CUDA_DEVICES_MOST];
    int peers[DT_CUDA_DEVICES_MOST]
             [DT_CUDA_DEVICES_MOST]; /* 0 self, 1 direct access possible, -1 none */
    int links[DT_CUDA_DEVICES_MOST]
             [DT_CUDA_DEVICES_MOST]; /* enum dt_nvml_link, or DT_NVML_UNKNOWN */
};

/* Cannot fail: *machine records missing parts. */
void dt_cuda_machine_read(struct dt_cuda_machine *machine);

#endif
