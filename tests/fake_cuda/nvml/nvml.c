/* SPDX-License-Identifier: MIT */
/* The fake NVML, libnvidia-ml-fake.so: DITTUNE_NVML names it. Written from nvml.h's signatures; it
 * shares nothing with kernels/nvml.c.
 *
 * DITTUNE_FAKE_CUDA describes the machine (fake_cuda.h). Memory and processes are those of the
 * box, so a process that was left behind is seen. All else has a value of its own, or one of the
 * file nvml=FILE in DITTUNE_FAKE_CUDA: lines NAME DEVICE VALUE, where DEVICE is a number or *
 * for each, and the last line that fits counts. The file is read at every call, so a test that
 * writes it changes a device under way. -1 means that the device does not have it, as a part of
 * a device that is cut by MIG.
 *
 *     init * CODE                       nvmlInit_v2 returns CODE
 *     process DEVICE PID BYTES          one more process on the device; BYTES -1: not permitted
 *     crowd DEVICE N                    N more processes that fit in no array
 *     process_error DEVICE CODE         who is on the device is not said
 *     reasons DEVICE BITS               why clocks are lower
 *     nvlinks, nvlinks_up DEVICE BITS   how many there are, which of them are up
 *     ancestor * LEVEL                  what connects two devices, an nvmlGpuTopologyLevel_t
 *     NAME DEVICE VALUE                 the other names stand below, each with its own value
 *
 * With OLD it is the library of an older driver: functions have the names they had before, and some
 * are missing. With LISTED its devices can be listed, as those of a real one; without, only what
 * knows a device's PCI bus id finds it. */
#include "tests/fake_cuda/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    SUCCESS = 0,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9
};
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0, P2P_NVLINK = 2, P2P_NOT_SUPPORTED = 5 };

#define BUS    0x18    /* of the first device, as the fake CUDA has it */
#define HIDDEN (~0ULL) /* NVML_VALUE_NOT_AVAILABLE */

#ifdef OLD
#define nvmlInit_v2                             nvmlInit
#define nvmlDeviceGetHandleByPciBusId_v2        nvmlDeviceGetHandleByPciBusId
#define nvmlDeviceGetEnforcedPowerLimit         nvmlDeviceGetPowerManagementLimit
#define nvmlDeviceGetCurrentClocksEventReasons  nvmlDeviceGetCurrentClocksThrottleReasons
#define nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetComputeRunningProcesses_v2
#endif

struct device {
    int index;
};

struct memory {
    unsigned long long total, free, used;
};

struct utilization {
    unsigned gpu, memory;
};

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

static struct device devices[FAKE_DEVICES];

/* ---- the file of values */

struct entry {
    long long value, second;
};

static FILE *open_values(void)
{
    return fake_settings.nvml[0] != 0 ? fopen(fake_settings.nvml, "re") : NULL;
}

/* The next line of that name and device. */
static bool next_entry(FILE *file, const char *name, const struct device *device,
                       struct entry *entry)
{
    char line[128], read_name[64], which[8], *end;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        entry->second = 0;
        if (sscanf(line, "%63s %7s %lli %lli", read_name, which, &entry->value, &entry->second) <
                3 ||
            strcmp(read_name, name) != 0)
            continue;
        if (strcmp(which, "*") == 0 || (strtol(which, &end, 10) == device->index && end != which))
            return true;
    }
    return false;
}

/* The file's value, else the given one. */
static long long value(const char *name, const struct device *device, long long otherwise)
{
    struct entry entry;
    FILE *file = open_values();
    while (next_entry(file, name, device, &entry))
        otherwise = entry.value;
    if (file != NULL)
        fclose(file);
    return otherwise;
}

static int give(const char *name, const struct device *device, long long otherwise, unsigned *out)
{
    long long found = value(name, device, otherwise);
    *out = (unsigned)found;
    return found >= 0 ? SUCCESS : NOT_SUPPORTED;
}

/* ---- the library and its devices */

int nvmlInit_v2(void)
{
    fake_settings_read(getenv("DITTUNE_FAKE_CUDA"), &fake_settings);
    fake_box = fake_box_open(fake_settings.box);
    for (int i = 0; i < FAKE_DEVICES; i++)
        devices[i].index = i;
    return (int)value("init", &devices[0], SUCCESS);
}

int nvmlShutdown(void)
{
    munmap(fake_box, sizeof *fake_box);
    return SUCCESS;
}

const char *nvmlErrorString(int code)
{
    return code == SUCCESS             ? "Success"
           : code == DRIVER_NOT_LOADED ? "Driver Not Loaded"
                                       : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    static const char text[] = "580.95.05";
    if (length < sizeof text)
        return INSUFFICIENT_SIZE;
    memcpy(version, text, sizeof text);
    return SUCCESS;
}

/* 0000:18:00.0, with four or eight digits of a domain */
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct device **device)
{
    unsigned domain, bus;
    if (sscanf(pci, "%x:%x:", &domain, &bus) != 2 || bus < BUS ||
        bus >= BUS + (unsigned)fake_settings.devices)
        return NOT_FOUND;
    *device = &devices[bus - BUS];
    return SUCCESS;
}

#ifdef LISTED
struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32];
};

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)fake_settings.devices;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device)
{
    if (index >= (unsigned)fake_settings.devices)
        return INVALID_ARGUMENT;
    *device = &devices[index];
    return SUCCESS;
}

int nvmlDeviceGetName(const struct device *device, char *name, unsigned length)
{
    (void)device;
    snprintf(name, length, "NVIDIA H200");
    return SUCCESS;
}

int nvmlDeviceGetUUID(const struct device *device, char *uuid, unsigned length)
{
    snprintf(uuid, length, "GPU-%d", device->index);
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(const struct device *device, struct pci *pci)
{
    *pci = (struct pci){.bus = BUS + (unsigned)device->index};
    return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(const struct device *device, int *major, int *minor)
{
    (void)device;
    *major = 9;
    *minor = 0;
    return SUCCESS;
}
#endif

/* ---- memory and processes */

/* How many processes of the file are on the device, and the bytes of those that have some. */
static unsigned read_processes(const struct device *device, unsigned room,
                               struct process *processes, unsigned long long *bytes)
{
    struct entry entry;
    unsigned found = 0;
    FILE *file = open_values();
    *bytes = 0;
    while (next_entry(file, "process", device, &entry)) {
        unsigned long long its = entry.second < 0 ? HIDDEN : (unsigned long long)entry.second;
        if (found < room)
            processes[found] = (struct process){(unsigned)entry.value, its, ~0U, ~0U};
        found++;
        *bytes += its != HIDDEN ? its : 0;
    }
    if (file != NULL)
        fclose(file);
    return found;
}

int nvmlDeviceGetMemoryInfo(const struct device *device, struct memory *memory)
{
    unsigned long long foreign;
    (void)read_processes(device, 0, NULL, &foreign);
    long long total = value("memory_bytes", device, fake_settings.memory);
    long long used = fake_box_used(fake_box, device->index, 0) + (long long)foreign;
    long long unused = value("free_bytes", device, total - used);
    *memory = (struct memory){(unsigned long long)total, (unsigned long long)unused,
                              (unsigned long long)(total - unused)};
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(const struct device *device, unsigned *count,
                                            struct process *processes)
{
    unsigned long long bytes;
    unsigned room = *count, found = read_processes(device, room, processes, &bytes);
    int error = (int)value("process_error", device, SUCCESS);
    if (error != SUCCESS)
        return error;
    (void)fake_box_used(fake_box, device->index, 0); /* forgets who is gone */
    for (int i = 0; i < 64; i++) {
        struct fake_share *share = &fake_box->use[device->index][i];
        struct process one = {(unsigned)atomic_load(&share->pid),
                              (unsigned long long)atomic_load(&share->bytes), ~0U, ~0U};
        if (one.pid == 0)
            continue;
        if (found < room)
            processes[found] = one;
        found++;
    }
    *count = found + (unsigned)value("crowd", device, 0);
    return *count <= room ? SUCCESS : INSUFFICIENT_SIZE;
}

/* ---- clocks, power, temperature */

int nvmlDeviceGetClockInfo(const struct device *device, int type, unsigned *mhz)
{
    return type == CLOCK_SM       ? give("sm_mhz", device, 1980, mhz)
           : type == CLOCK_MEMORY ? give("memory_mhz", device, 3201, mhz)
                                  : INVALID_ARGUMENT;
}

int nvmlDeviceGetMaxClockInfo(const struct device *device, int type, unsigned *mhz)
{
    return type == CLOCK_SM       ? give("sm_mhz_max", device, 1980, mhz)
           : type == CLOCK_MEMORY ? give("memory_mhz_max", device, 3201, mhz)
                                  : INVALID_ARGUMENT;
}

#ifndef OLD
int nvmlDeviceGetApplicationsClock(const struct device *device, int type, unsigned *mhz)
{
    return type == CLOCK_SM ? give("application_mhz", device, -1, mhz) : NOT_SUPPORTED;
}
#endif

int nvmlDeviceGetTemperature(const struct device *device, int sensor, unsigned *celsius)
{
    return sensor == SENSOR_GPU ? give("temperature_c", device, 40, celsius) : INVALID_ARGUMENT;
}

int nvmlDeviceGetUtilizationRates(const struct device *device, struct utilization *out)
{
    out->memory = 11;
    return give("utilization", device, 0, &out->gpu);
}

int nvmlDeviceGetCurrentClocksEventReasons(const struct device *device, unsigned long long *bits)
{
    *bits = (unsigned long long)value("reasons", device, 0);
    return SUCCESS;
}

int nvmlDeviceGetEccMode(const struct device *device, unsigned *now, unsigned *pending)
{
    int code = give("ecc", device, 1, now);
    return code != SUCCESS ? code : give("ecc_pending", device, *now, pending);
}

int nvmlDeviceGetMigMode(const struct device *device, unsigned *now, unsigned *pending)
{
    int code = give("mig", device, 0, now);
    return code != SUCCESS ? code : give("mig_pending", device, *now, pending);
}

#define VALUE(function, name, otherwise)                                                           \
    int function(const struct device *device, unsigned *out)                                       \
    {                                                                                              \
        return give(name, device, otherwise, out);                                                 \
    }

VALUE(nvmlDeviceGetPowerUsage, "power_mw", 300000)
VALUE(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw", 700000)
VALUE(nvmlDeviceGetPowerManagementDefaultLimit, "power_limit_default_mw", 700000)
VALUE(nvmlDeviceGetPersistenceMode, "persistence", 1)
VALUE(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation", 5)
VALUE(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max", 5)
VALUE(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", 16)
VALUE(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max", 16)

/* ---- links */

int nvmlDeviceGetNvLinkState(const struct device *device, unsigned link, unsigned *up)
{
    if (link >= (unsigned)value("nvlinks", device, 18))
        return NOT_SUPPORTED;
    *up = (unsigned)(value("nvlinks_up", device, -1) >> link) & 1;
    return SUCCESS;
}

int nvmlDeviceGetTopologyCommonAncestor(const struct device *a, const struct device *b,
                                        unsigned *level)
{
    *level = a == b ? 0 : (unsigned)value("ancestor", a, 30); /* NVML_TOPOLOGY_HOSTBRIDGE */
    return SUCCESS;
}

#ifndef OLD
int nvmlDeviceGetP2PStatus(const struct device *a, const struct device *b, int index, int *status)
{
    bool linked = a != b && index == P2P_NVLINK && fake_settings.peers;
    *status = linked ? 0 : P2P_NOT_SUPPORTED;
    return SUCCESS;
}
#endif
