/* SPDX-License-Identifier: MIT */
/* NVML is opened once per process and stays open, so that a sample is cheap. */
#include "kernels/cuda/cuda_int.h"
#include "kernels/nvml.h"

#include <pthread.h>

static struct dt_nvml *nvml; /* NULL: there is none */

static void start(void)
{
    if (dt_nvml_open(&nvml) != DT_OK) {
        dt_nvml_close(nvml);
        nvml = NULL;
    }
}

void dt_cuda_health(struct dt_device *device, struct dt_health *health)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct dt_cuda *cuda = (const struct dt_cuda *)(const void *)device;
    struct dt_nvml_device *there = NULL;
    struct dt_nvml_facts facts;
    pthread_once(&once, start);
    dt_nvml_facts_clear(&facts);
    if (nvml != NULL && dt_nvml_find(nvml, cuda->pci, &there) == DT_OK)
        dt_nvml_sample(nvml, there, &facts);
    *health = facts.health;
}
