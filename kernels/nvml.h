/* SPDX-License-Identifier: MIT */
/* nvml - facts of a GPU from its driver: clocks, power, temperature, memory, processes. Read only.
 *
 * libnvidia-ml is opened at run time (DITTUNE_NVML names another file, for tests): it comes with
 * the driver, not with the toolkit. Each of its functions is optional; values that are missing,
 * unsupported (MIG) or not permitted are DT_NVML_UNKNOWN.
 *
 *     dt_nvml_open(&nvml);
 *     dt_nvml_find(nvml, "0000:18:00.0", &device);
 *     dt_nvml_read(nvml, device, &facts);
 *
 * To add a fact: a field here and a row in nvml.c.
 */
#ifndef DT_KERNELS_NVML_H
#define DT_KERNELS_NVML_H

#include "base/status.h"
#include "kernels/compute.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DT_NVML_UNKNOWN   (-1)
#define DT_NVML_PROCESSES 32

struct dt_nvml;
struct dt_nvml_device; /* owned by the library; never freed */

struct dt_nvml_process {
    int64_t pid;
    int64_t bytes; /* DT_NVML_UNKNOWN where the driver does not say */
};

struct dt_nvml_use {
    int64_t memory_bytes, free_bytes;
    int count; /* processes with CUDA on the device, at most DT_NVML_PROCESSES; DT_NVML_UNKNOWN */
    struct dt_nvml_process processes[DT_NVML_PROCESSES];
};

struct dt_nvml_pcie {
    int64_t generation, generation_max, width, width_max;
};

/* Any value may be DT_NVML_UNKNOWN. Modes: 0 off, 1 on. */
struct dt_nvml_facts {
    /* the facts that change while a plan runs; reasons: see dt_nvml_reason */
    struct dt_health health;
    int64_t sm_mhz_max, memory_mhz_max;
    int64_t application_mhz; /* application clocks that were set */
    int64_t power_limit_mw, power_limit_default_mw;
    int64_t ecc, ecc_pending, mig, mig_pending, persistence;
    struct dt_nvml_pcie pcie;
    int64_t nvlinks; /* active ones */
    struct dt_nvml_use use;
};

enum dt_nvml_link {
    DT_NVML_SELF,
    DT_NVML_NVLINK,
    DT_NVML_PIX,
    DT_NVML_PXB,
    DT_NVML_PHB,
    DT_NVML_NODE,
    DT_NVML_SYS
};

/* DT_EUNSUP with the reason: no library, no driver. The caller closes. */
dt_status dt_nvml_open(struct dt_nvml **nvml) DT_MUST_CHECK;
void dt_nvml_close(struct dt_nvml *nvml); /* NULL is fine */

/* "580.95.05"; "": unknown. */
void dt_nvml_driver(const struct dt_nvml *nvml, char version[], size_t room);

/* The device of a PCI bus id ("0000:18:00.0", as cudaDeviceGetPCIBusId writes it). DT_EUNSUP. */
dt_status dt_nvml_find(const struct dt_nvml *nvml, const char *pci,
                       struct dt_nvml_device **device) DT_MUST_CHECK;

/* A device as it is named. */
struct dt_nvml_name {
    char name[96], uuid[96], pci[32]; /* "NVIDIA H200", "GPU-..", "0000:18:00.0" */
    int major, minor;                 /* compute capability */
};

/* Number of devices, and the one at place i in the order of the PCI bus; DT_EUNSUP. */
int dt_nvml_count(const struct dt_nvml *nvml);
dt_status dt_nvml_at(const struct dt_nvml *nvml, int i, struct dt_nvml_device **device,
                     struct dt_nvml_name *name) DT_MUST_CHECK;
/* The CUDA that the driver can run, 13000; 0: unknown. */
int dt_nvml_cuda(const struct dt_nvml *nvml);

/* Sets all facts to unknown. */
void dt_nvml_facts_clear(struct dt_nvml_facts *facts);
/* Reads all facts: about 30 calls, a millisecond or more. */
void dt_nvml_read(const struct dt_nvml *nvml, struct dt_nvml_device *device,
                  struct dt_nvml_facts *facts);
/* Reads only health; all else is unknown. */
void dt_nvml_sample(const struct dt_nvml *nvml, struct dt_nvml_device *device,
                    struct dt_nvml_facts *facts);

/* Closest connection of two devices. False: unknown. */
bool dt_nvml_link(const struct dt_nvml *nvml, struct dt_nvml_device *a, struct dt_nvml_device *b,
                  enum dt_nvml_link *link);
/* a can read the memory of b directly. */
bool dt_nvml_reaches(const struct dt_nvml *nvml, struct dt_nvml_device *a,
                     struct dt_nvml_device *b);

/* The name of bit i of reasons ("sw_power_cap"); NULL past the last. */
const char *dt_nvml_reason(int i);

#endif
