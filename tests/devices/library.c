/* SPDX-License-Identifier: MIT */
/* A libnvidia-ml with two planted devices, written from nvml.h's signatures and sharing nothing with kernels/cuda/nvml.c. The second
 * is cut by MIG: it has no utilization and tells nobody who is on it. With OLD it is a driver of before the names changed; nothing
 * newer is exported, and the first device has 40 processes, more than fit. */
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

struct device {
    const char *pci;
    int mig;
};
static struct device devices[2] = {{"0000:18:00.0", 0}, {"0000:19:00.0", 1}};

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

#define PLANT(name, value)                                                                         \
    int name(struct device *device, unsigned *out);                                                \
    int name(struct device *device, unsigned *out)                                                 \
    {                                                                                              \
        (void)device;                                                                              \
        *out = value;                                                                              \
        return SUCCESS;                                                                            \
    }

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlSystemGetDriverVersion(char *version, unsigned length);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct device **device);
int nvmlDeviceGetClockInfo(struct device *device, int type, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(struct device *device, int type, unsigned *mhz);
int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius);
int nvmlDeviceGetUtilizationRates(struct device *device, struct utilization *utilization);
int nvmlDeviceGetEccMode(struct device *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetMigMode(struct device *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *memory);
int nvmlDeviceGetNvLinkState(struct device *device, unsigned link, unsigned *active);
int nvmlDeviceGetTopologyCommonAncestor(struct device *a, struct device *b, unsigned *level);

#ifdef BROKEN
int nvmlInit_v2(void)
{
    return 9; /* NVML_ERROR_DRIVER_NOT_LOADED */
}
#else
int nvmlInit_v2(void)
{
    return SUCCESS;
}
#endif

int nvmlShutdown(void)
{
    return SUCCESS;
}

const char *nvmlErrorString(int code)
{
    return code == 9 ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    if (length < 10)
        return INSUFFICIENT_SIZE;
    strcpy(version, "580.95.05");
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct device **device)
{
    for (int i = 0; i < 2; i++)
        if (strcmp(pci, devices[i].pci) == 0) {
            *device = &devices[i];
            return SUCCESS;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetClockInfo(struct device *device, int type, unsigned *mhz)
{
    (void)device;
    *mhz = type == 1 ? 1755 : type == 2 ? 3201 : 0; /* NVML_CLOCK_SM, NVML_CLOCK_MEM */
    return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(struct device *device, int type, unsigned *mhz)
{
    (void)device;
    *mhz = type == 1 ? 1980 : type == 2 ? 3202 : 0;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(struct device *device, int sensor, unsigned *celsius)
{
    (void)device;
    *celsius = sensor == 0 ? 61 : 0;
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(struct device *device, struct utilization *utilization)
{
    utilization->gpu = 37;
    utilization->memory = 11;
    return device->mig ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetEccMode(struct device *device, unsigned *current, unsigned *pending)
{
    (void)device;
    *current = 1;
    *pending = 0;
    return SUCCESS;
}

int nvmlDeviceGetMigMode(struct device *device, unsigned *current, unsigned *pending)
{
    *current = *pending = (unsigned)device->mig;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *memory)
{
    (void)device;
    *memory = (struct memory){150754820096ULL, 140000000000ULL, 10754820096ULL};
    return SUCCESS;
}

int nvmlDeviceGetNvLinkState(struct device *device, unsigned link, unsigned *active)
{
    (void)device;
    *active = link % 2; /* half of 18 are up */
    return link < 18 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetTopologyCommonAncestor(struct device *a, struct device *b, unsigned *level)
{
    *level = a == b ? 0 : 40; /* NVML_TOPOLOGY_NODE */
    return SUCCESS;
}

PLANT(nvmlDeviceGetPowerUsage, 455000)
PLANT(nvmlDeviceGetPowerManagementDefaultLimit, 700000)
PLANT(nvmlDeviceGetPersistenceMode, 1)
PLANT(nvmlDeviceGetCurrPcieLinkGeneration, 4)
PLANT(nvmlDeviceGetMaxPcieLinkGeneration, 5)
PLANT(nvmlDeviceGetCurrPcieLinkWidth, 8)
PLANT(nvmlDeviceGetMaxPcieLinkWidth, 16)

#ifdef OLD
PLANT(nvmlDeviceGetPowerManagementLimit, 500000)

int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *device, unsigned long long *bits);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *device, unsigned long long *bits)
{
    (void)device;
    *bits = 0x88; /* hw_slowdown, hw_power_brake */
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v2(struct device *device, unsigned *count,
                                            struct process *processes);
int nvmlDeviceGetComputeRunningProcesses_v2(struct device *device, unsigned *count,
                                            struct process *processes)
{
    (void)device, (void)processes;
    *count = 40;
    return INSUFFICIENT_SIZE;
}
#else
PLANT(nvmlDeviceGetEnforcedPowerLimit, 600000)

int nvmlDeviceGetCurrentClocksEventReasons(struct device *device, unsigned long long *bits);
int nvmlDeviceGetCurrentClocksEventReasons(struct device *device, unsigned long long *bits)
{
    (void)device;
    *bits = 0x24; /* sw_power_cap, sw_thermal */
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct device *device, unsigned *count,
                                            struct process *processes);
int nvmlDeviceGetComputeRunningProcesses_v3(struct device *device, unsigned *count,
                                            struct process *processes)
{
    if (device->mig)
        return NO_PERMISSION;
    if (*count < 2)
        return INSUFFICIENT_SIZE;
    *count = 2;
    processes[0] = (struct process){4321, 8000000000ULL, ~0U, ~0U};
    processes[1] = (struct process){99, ~0ULL, ~0U, ~0U}; /* NVML_VALUE_NOT_AVAILABLE */
    return SUCCESS;
}

int nvmlDeviceGetP2PStatus(struct device *a, struct device *b, int index, int *status);
int nvmlDeviceGetP2PStatus(struct device *a, struct device *b, int index, int *status)
{
    (void)a, (void)b;
    *status = index == 2 ? 0 : 5; /* NVML_P2P_CAPS_INDEX_NVLINK */
    return SUCCESS;
}
#endif
