/* SPDX-License-Identifier: MIT */
/* libnvml-listed.so, an NVML that lists devices: DITTUNE_NVML names it. Written from nvml.h's
 * signatures; it shares nothing with kernels/nvml.c. Three GPUs on the buses 18, 19 and 2a, of
 * which 0 and 1 reach each other directly; the third is another make. $LISTED_PID is a process on
 * the first, $LISTED_MIG the device that is cut by MIG. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 3, GIB = 1 << 30 };

static const struct device {
    const char *name, *uuid, *pci;
    unsigned bus;
    int major, minor;
} devices[DEVICES] = {
    {"NVIDIA H200", "GPU-aa00", "0000:18:00.0", 0x18, 9, 0},
    {"NVIDIA H200", "GPU-aa11", "0000:19:00.0", 0x19, 9, 0},
    {"NVIDIA L4", "GPU-bb22", "0000:2a:00.0", 0x2a, 8, 9},
};

struct memory {
    unsigned long long total, free, used;
};

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance[2];
};

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32];
};

static int copy(const char *text, char *out, unsigned room)
{
    snprintf(out, room, "%s", text);
    return strlen(text) < room ? 0 : 7;
}

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlSystemGetDriverVersion(char *text, unsigned room)
{
    return copy("580.95.05", text, room);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 13000;
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = DEVICES;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, const struct device **device)
{
    *device = &devices[i < DEVICES ? i : 0];
    return i < DEVICES ? 0 : 2;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, const struct device **device)
{
    for (int i = 0; i < DEVICES; i++)
        if (strcmp(devices[i].pci, pci) == 0) {
            *device = &devices[i];
            return 0;
        }
    return 6;
}

int nvmlDeviceGetName(const struct device *device, char *text, unsigned room)
{
    return copy(device->name, text, room);
}

int nvmlDeviceGetUUID(const struct device *device, char *text, unsigned room)
{
    return copy(device->uuid, text, room);
}

int nvmlDeviceGetPciInfo_v3(const struct device *device, struct pci *pci)
{
    *pci = (struct pci){.bus = device->bus};
    snprintf(pci->text, sizeof pci->text, "0000%s", device->pci);
    return 0;
}

int nvmlDeviceGetCudaComputeCapability(const struct device *device, int *major, int *minor)
{
    *major = device->major;
    *minor = device->minor;
    return 0;
}

int nvmlDeviceGetMemoryInfo(const struct device *device, struct memory *memory)
{
    unsigned long long total = (device->major == 9 ? 141ULL : 23) * GIB;
    *memory = (struct memory){total, total, 0};
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(const struct device *device, unsigned *count,
                                            struct process *processes)
{
    const char *pid = getenv("LISTED_PID");
    *count = pid != NULL && device == devices;
    if (*count > 0)
        processes[0] = (struct process){.pid = (unsigned)atoi(pid), .bytes = GIB};
    return 0;
}

int nvmlDeviceGetMigMode(const struct device *device, unsigned *now, unsigned *pending)
{
    const char *cut = getenv("LISTED_MIG");
    *now = *pending = cut != NULL && device == &devices[atoi(cut)];
    return 0;
}

int nvmlDeviceGetClockInfo(const struct device *device, int type, unsigned *mhz)
{
    *mhz = type == 1 ? 1000 + device->bus : 3201;
    return 0;
}

/* Index 0 is reading, 2 NVLink; 0 is yes. */
int nvmlDeviceGetP2PStatus(const struct device *a, const struct device *b, unsigned index,
                           unsigned *status)
{
    *status = index <= 2 && a->major == b->major ? 0 : 1;
    return 0;
}

int nvmlDeviceGetTopologyCommonAncestor(const struct device *a, const struct device *b,
                                        unsigned *level)
{
    *level = a == b ? 0 : 50;
    return 0;
}
