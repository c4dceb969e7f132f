/* SPDX-License-Identifier: MIT */
/* NVML of a fake machine, as libnvidia-ml-fake.so: DITTUNE_NVML names it. Memory and processes are those of the box, so a
 * process that was left behind is seen; everything else has a value of its own, or that of the file nvml=FILE in DITTUNE_FAKE_CUDA, a
 * line `NAME DEVICE VALUE` each, read at every call: a test that writes it throttles the device under way.
 *
 * Names: sm_mhz memory_mhz sm_mhz_max memory_mhz_max application_mhz temperature_c power_mw power_limit_mw
 * power_limit_default_mw utilization ecc mig persistence pcie_generation pcie_width reasons nvlinks foreign_pid foreign_bytes */
#include "tests/fake_cuda/fake_cuda_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT = 7 };

struct device {
    int index;
};

static struct device devices[FAKE_DEVICES];

/* The file's value, else the given one. */
static long long value(const char *name, const struct device *device, long long otherwise)
{
    char line[128], read_name[64];
    int index;
    long long read_value, found = otherwise;
    FILE *file = fake_settings.nvml[0] != 0 ? fopen(fake_settings.nvml, "re") : NULL;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%63s %d %lld", read_name, &index, &read_value) == 3 &&
            strcmp(read_name, name) == 0 && index == device->index)
            found = read_value;
    if (file != NULL)
        fclose(file);
    return found;
}

int nvmlInit_v2(void)
{
    fake_settings_read(getenv("DITTUNE_FAKE_CUDA"), &fake_settings);
    fake_box = fake_box_open(fake_settings.box);
    for (int i = 0; i < FAKE_DEVICES; i++)
        devices[i].index = i;
    return SUCCESS;
}

int nvmlShutdown(void)
{
    fake_box_close(fake_box);
    return SUCCESS;
}

const char *nvmlErrorString(int code)
{
    return code == SUCCESS ? "Success" : "Fake error";
}

int nvmlSystemGetDriverVersion(char *version, unsigned room)
{
    snprintf(version, room, "580.95");
    return SUCCESS;
}

/* 0000:18:00.0, with four or eight digits of a domain */
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct device **device)
{
    unsigned domain, bus;
    if (sscanf(pci, "%x:%x:", &domain, &bus) != 2 || bus < 0x18 ||
        bus >= 0x18 + (unsigned)fake_settings.devices)
        return NOT_FOUND;
    *device = &devices[bus - 0x18];
    return SUCCESS;
}

struct memory {
    unsigned long long total, unused, used;
};

int nvmlDeviceGetMemoryInfo(const struct device *device, struct memory *memory)
{
    long long used = fake_box_used(fake_box, device->index, 0) + value("foreign_bytes", device, 0);
    memory->total = (unsigned long long)fake_settings.memory;
    memory->used = (unsigned long long)used;
    memory->unused = memory->total - memory->used;
    return SUCCESS;
}

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance[2];
};

int nvmlDeviceGetComputeRunningProcesses_v3(const struct device *device, unsigned *count,
                                            struct process *processes)
{
    unsigned room = *count, found = 0;
    long long foreign = value("foreign_pid", device, 0);
    (void)fake_box_used(fake_box, device->index, 0); /* forgets who is gone */
    for (int i = -1; i < 64; i++) {
        struct process one = {
            (unsigned)foreign, (unsigned long long)value("foreign_bytes", device, 0), {0, 0}};
        if (i >= 0) {
            struct fake_share *share = &fake_box->use[device->index][i];
            one.pid = (unsigned)atomic_load(&share->pid);
            one.bytes = (unsigned long long)atomic_load(&share->bytes);
        }
        if (one.pid == 0)
            continue;
        if (found < room)
            processes[found] = one;
        found++;
    }
    *count = found;
    return found <= room ? SUCCESS : INSUFFICIENT;
}

int nvmlDeviceGetCurrentClocksEventReasons(const struct device *device, unsigned long long *bits)
{
    *bits = (unsigned long long)value("reasons", device, 0);
    return SUCCESS;
}

int nvmlDeviceGetTopologyCommonAncestor(const struct device *a, const struct device *b,
                                        unsigned *level)
{
    *level = a == b ? 0 : 30;
    return SUCCESS;
}

int nvmlDeviceGetP2PStatus(const struct device *a, const struct device *b, unsigned index,
                           unsigned *status)
{
    (void)index;
    *status = a != b && fake_settings.peers ? 0 : 1;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkState(const struct device *device, unsigned link, unsigned *up)
{
    *up = link < (unsigned)value("nvlinks", device, 18);
    return SUCCESS;
}

static int give(const char *name, const struct device *device, long long otherwise, unsigned *out)
{
    long long found = value(name, device, otherwise);
    *out = (unsigned)found;
    return found >= 0 ? SUCCESS : NOT_SUPPORTED; /* below 0: this device does not say */
}

/* Clocks: 1 is that of the multiprocessors, 2 that of memory. */
int nvmlDeviceGetClockInfo(const struct device *device, unsigned clock, unsigned *out)
{
    return clock == 2 ? give("memory_mhz", device, 3201, out) : give("sm_mhz", device, 1980, out);
}

int nvmlDeviceGetMaxClockInfo(const struct device *device, unsigned clock, unsigned *out)
{
    return clock == 2 ? give("memory_mhz_max", device, 3201, out)
                      : give("sm_mhz_max", device, 1980, out);
}

int nvmlDeviceGetApplicationsClock(const struct device *device, unsigned clock, unsigned *out)
{
    return clock == 2 ? NOT_SUPPORTED : give("application_mhz", device, -1, out);
}

int nvmlDeviceGetTemperature(const struct device *device, unsigned sensor, unsigned *out)
{
    return sensor != 0 ? INVALID_ARGUMENT : give("temperature_c", device, 40, out);
}

int nvmlDeviceGetPowerUsage(const struct device *device, unsigned *out)
{
    return give("power_mw", device, 300000, out);
}

int nvmlDeviceGetEnforcedPowerLimit(const struct device *device, unsigned *out)
{
    return give("power_limit_mw", device, 700000, out);
}

int nvmlDeviceGetPowerManagementDefaultLimit(const struct device *device, unsigned *out)
{
    return give("power_limit_default_mw", device, 700000, out);
}

int nvmlDeviceGetUtilizationRates(const struct device *device, unsigned out[2])
{
    out[1] = 0;
    return give("utilization", device, 0, out);
}

int nvmlDeviceGetEccMode(const struct device *device, unsigned *now, unsigned *pending)
{
    *pending = 1;
    return give("ecc", device, 1, now);
}

int nvmlDeviceGetMigMode(const struct device *device, unsigned *now, unsigned *pending)
{
    *pending = 0;
    return give("mig", device, 0, now);
}

int nvmlDeviceGetPersistenceMode(const struct device *device, unsigned *out)
{
    return give("persistence", device, 1, out);
}

int nvmlDeviceGetCurrPcieLinkGeneration(const struct device *device, unsigned *out)
{
    return give("pcie_generation", device, 5, out);
}

int nvmlDeviceGetMaxPcieLinkGeneration(const struct device *device, unsigned *out)
{
    (void)device;
    *out = 5;
    return SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkWidth(const struct device *device, unsigned *out)
{
    return give("pcie_width", device, 16, out);
}

int nvmlDeviceGetMaxPcieLinkWidth(const struct device *device, unsigned *out)
{
    (void)device;
    *out = 16;
    return SUCCESS;
}
