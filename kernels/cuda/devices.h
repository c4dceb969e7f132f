/* SPDX-License-Identifier: MIT */
/* devices - the GPUs of this machine: facts from the CUDA runtime and NVML, and processes on them
 *
 * No context is created (except to read free memory where NVML is missing), so queries
 * do not use the device.
 *
 *     struct dt_cuda_machine *machine = malloc(sizeof *machine);
 *     dt_cuda_machine_read(machine);                  -- also without a GPU: machine->why
 */
#ifndef DT_KERNELS_CUDA_DEVICES_H
#define DT_KERNELS_CUDA_DEVICES_H

#include "kernels/cards.h"

/* By CUDA and NVML. Cannot fail: *machine records missing parts. */
void dt_cuda_machine_read(struct dt_cuda_machine *machine);

#endif
