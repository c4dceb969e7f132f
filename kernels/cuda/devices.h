/* SPDX-License-Identifier: MIT */
/* devices - the GPUs of this machine: what the CUDA runtime says of them, what NVML adds, who is on them
 *
 * No context is made (but to learn free memory where NVML is missing), so asking does not use the device.
 *
 *     struct dt_cuda_machine *machine = malloc(sizeof *machine);
 *     dt_cuda_machine_read(machine);                  -- also without a GPU: machine->why
 */
#ifndef DT_KERNELS_CUDA_DEVICES_H
#define DT_KERNELS_CUDA_DEVICES_H

#include "kernels/cuda/nvml.h"

#define DT_CUDA_DEVICES_MOST 16

struct dt_cuda_card {
    char name[128], uuid[48], pci[32];
    int major, minor; /* compute capability */
    int multiprocessors;
    int64_t memory_bytes, free_bytes; /* free_bytes: DT_NVML_UNKNOWN when it cannot be learnt */
    int64_t shared_bytes, l2_bytes;   /* shared: most a block may ask for */
    struct dt_nvml_facts nvml;        /* all unknown without NVML */
};

struct dt_cuda_machine {
    int count;     /* of devices: what CUDA_VISIBLE_DEVICES leaves */
    char why[256]; /* one sentence when count is 0 */
    char driver[80];
    int cuda_driver, cuda; /* 13000: what the driver can do, what was built with; 0 unknown */
    char nccl[32], cudnn[32], cublaslt[32]; /* "" when not built with it */
    bool nvml;
    struct dt_cuda_card cards[DT_CUDA_DEVICES_MOST];
    int peers[DT_CUDA_DEVICES_MOST]
             [DT_CUDA_DEVICES_MOST]; /* 0 self, 1 direct access possible, -1 none */
    int links[DT_CUDA_DEVICES_MOST]
             [DT_CUDA_DEVICES_MOST]; /* enum dt_nvml_link, or DT_NVML_UNKNOWN */
};

/* Cannot fail: what is missing is said in *machine. */
void dt_cuda_machine_read(struct dt_cuda_machine *machine);

/* Who is on the GPU `index` of the CUDA runtime. NVML counts the process ids of the host: in a container with its own all are
 * other's, so own processes are told by the growth of `count`, not by their ids. */
struct dt_cuda_use {
    int64_t memory_bytes, free_bytes; /* DT_NVML_UNKNOWN when not known */
    int count;                        /* of processes, without `own`; DT_NVML_UNKNOWN */
    struct dt_nvml_process others[DT_NVML_PROCESSES];
};
/* own: process ids that do not count, own_count of them. For before a trial: a few calls, no context. DT_EUNSUP without NVML:
 * nothing is known then. */
dt_status dt_cuda_device_use(int index, const int64_t own[], int own_count,
                             struct dt_cuda_use *use) DT_MUST_CHECK;

#endif
