/* SPDX-License-Identifier: MIT */
/* cuda-instances - what tools/cuda_table.py cannot read from objects; needs no GPU
 *
 *     cuda-instances                    the attention kernels: tile_q tile_kv stages warps head shared_bytes
 *     cuda-instances --occupancy        reads lines: architecture registers static_shared shared threads; answers each with
 *                                       the blocks a multiprocessor can have, by NVIDIA's cuda_occupancy.h
 */
#include "kernels/cuda/launch.h"

#include <cuda_occupancy.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". */
static struct cudaOccDeviceProp device_of(int architecture)
{
    struct cudaOccDeviceProp device = {.computeMajor = architecture / 10,
                                       .computeMinor = architecture % 10,
                                       .maxThreadsPerBlock = 1024,
                                       .maxThreadsPerMultiprocessor = 2048,
                                       .regsPerBlock = 65536,
                                       .regsPerMultiprocessor = 65536,
                                       .warpSize = 32,
                                       .sharedMemPerBlock = 48 * 1024,
                                       .numSms = 1,
                                       .reservedSharedMemPerBlock = 1024};
    device.sharedMemPerMultiprocessor = (architecture == 80 ? 164 : 228) * (size_t)1024;
    device.sharedMemPerBlockOptin = device.sharedMemPerMultiprocessor - 1024;
    return device;
}

static int answer_occupancy(void)
{
    int architecture, registers, fixed, shared, threads;
    while (scanf("%d %d %d %d %d", &architecture, &registers, &fixed, &shared, &threads) == 5) {
        struct cudaOccDeviceProp device = device_of(architecture);
        struct cudaOccFuncAttributes kernel = {.maxThreadsPerBlock = threads,
                                               .numRegs = registers,
                                               .sharedSizeBytes = (size_t)fixed,
                                               .partitionedGCConfig = PARTITIONED_GC_OFF,
                                               .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
                                               .maxDynamicSharedSizeBytes =
                                                   device.sharedMemPerBlockOptin,
                                               .numBlockBarriers = 1};
        struct cudaOccDeviceState state = {.cacheConfig = CACHE_PREFER_SHARED,
                                           .carveoutConfig = 100};
        struct cudaOccResult result;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads,
                                                    (size_t)shared) != CUDA_OCC_SUCCESS)
            return 1;
        printf("%d\n", result.activeBlocksPerMultiprocessor);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--occupancy") == 0)
        return answer_occupancy();
    struct dt_attention_instance it;
    for (int i = 0; dt_attention_instance(i, &it); i++)
        printf("%d %d %d %d %d %d\n", it.tile_q, it.tile_kv, it.stages, it.warps, it.head,
               it.shared_bytes);
    return 0;
}
