/* SPDX-License-Identifier: MIT */
/* NVML's names, constants and structures: nvml.h of driver 580 (not part of the toolkit), declared
 * here as far as used. The symbols with _v2, _v3 are the versions that nvml.h maps its names to;
 * older names are tried for older drivers. */
#include "kernels/nvml.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INSUFFICIENT_SIZE = 7 };
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2 };
enum { SENSOR_GPU = 0, P2P_READ = 0, P2P_NVLINK = 2, NVLINKS_MOST = 18 };

struct memory {
    unsigned long long total, free, used;
};

struct process { /* nvmlProcessInfo_t of the calls _v2 and _v3 */
    unsigned pid;
    unsigned long long bytes;
    unsigned instance[2];
};

struct pci { /* nvmlPciInfo_t of the call _v3 */
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32];
};

/* Signatures: value(device, *), of(device, argument, *), pair(device, *, *), utilization
 * is a structure of two. */
enum kind { VALUE, OF, PAIR, STRUCT_OF_TWO };

struct row {
    const char *symbol, *older;
    enum kind kind;
    unsigned argument;
    size_t offset, second;
    bool changes; /* while a plan runs */
};

#define AT(field) offsetof(struct dt_nvml_facts, field)
#define NONE      SIZE_MAX

static const struct row rows[] = {
    {"nvmlDeviceGetClockInfo", NULL, OF, CLOCK_SM, AT(health.sm_mhz), NONE, true},
    {"nvmlDeviceGetClockInfo", NULL, OF, CLOCK_MEMORY, AT(health.memory_mhz), NONE, true},
    {"nvmlDeviceGetMaxClockInfo", NULL, OF, CLOCK_SM, AT(sm_mhz_max), NONE, false},
    {"nvmlDeviceGetMaxClockInfo", NULL, OF, CLOCK_MEMORY, AT(memory_mhz_max), NONE, false},
    {"nvmlDeviceGetApplicationsClock", NULL, OF, CLOCK_SM, AT(application_mhz), NONE, false},
    {"nvmlDeviceGetTemperature", NULL, OF, SENSOR_GPU, AT(health.temperature_c), NONE, true},
    {"nvmlDeviceGetPowerUsage", NULL, VALUE, 0, AT(health.power_mw), NONE, true},
    {"nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit", VALUE, 0,
     AT(power_limit_mw), NONE, false},
    {"nvmlDeviceGetPowerManagementDefaultLimit", NULL, VALUE, 0, AT(power_limit_default_mw), NONE,
     false},
    {"nvmlDeviceGetUtilizationRates", NULL, STRUCT_OF_TWO, 0, AT(health.utilization), NONE, true},
    {"nvmlDeviceGetEccMode", NULL, PAIR, 0, AT(ecc), AT(ecc_pending), false},
    {"nvmlDeviceGetMigMode", NULL, PAIR, 0, AT(mig), AT(mig_pending), false},
    {"nvmlDeviceGetPersistenceMode", NULL, VALUE, 0, AT(persistence), NONE, false},
    {"nvmlDeviceGetCurrPcieLinkGeneration", NULL, VALUE, 0, AT(pcie.generation), NONE, false},
    {"nvmlDeviceGetMaxPcieLinkGeneration", NULL, VALUE, 0, AT(pcie.generation_max), NONE, false},
    {"nvmlDeviceGetCurrPcieLinkWidth", NULL, VALUE, 0, AT(pcie.width), NONE, false},
    {"nvmlDeviceGetMaxPcieLinkWidth", NULL, VALUE, 0, AT(pcie.width_max), NONE, false},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* nvmlClocksEventReason...: bit i. */
static const char *const reasons[] = {"gpu_idle",    "applications_clocks", "sw_power_cap",
                                      "hw_slowdown", "sync_boost",          "sw_thermal",
                                      "hw_thermal",  "hw_power_brake",      "display_clocks"};

struct dt_nvml {
    void *library, *row[ROWS];
    int (*shutdown)(void);
    int (*driver)(char *version, unsigned room);
    int (*find)(const char *pci, struct dt_nvml_device **device);
    int (*memory)(struct dt_nvml_device *device, struct memory *memory);
    int (*processes)(struct dt_nvml_device *device, unsigned *count, struct process *processes);
    int (*reasons)(struct dt_nvml_device *device, unsigned long long *bits);
    int (*ancestor)(struct dt_nvml_device *a, struct dt_nvml_device *b, unsigned *level);
    int (*peer)(struct dt_nvml_device *a, struct dt_nvml_device *b, unsigned index,
                unsigned *status);
    int (*nvlink)(struct dt_nvml_device *device, unsigned link, unsigned *up);
    struct listing {
        int (*cuda)(int *version);
        int (*count)(unsigned *count);
        int (*at)(unsigned i, struct dt_nvml_device **device);
        int (*name)(struct dt_nvml_device *device, char *text, unsigned room);
        int (*uuid)(struct dt_nvml_device *device, char *text, unsigned room);
        int (*pci)(struct dt_nvml_device *device, struct pci *pci);
        int (*compute)(struct dt_nvml_device *device, int *major, int *minor);
    } list;
};

static void *find_symbol(void *library, const char *name, const char *older)
{
    void *found = dlsym(library, name);
    return found != NULL || older == NULL ? found : dlsym(library, older);
}

/* ISO C has no cast from void * to a function pointer; POSIX requires this form for dlsym. */
#define FUNCTION(nvml, field, name, older)                                                         \
    (*(void **)&(nvml)->field = find_symbol((nvml)->library, name, older))

static void find_symbols(struct dt_nvml *nvml)
{
    FUNCTION(nvml, shutdown, "nvmlShutdown", NULL);
    FUNCTION(nvml, driver, "nvmlSystemGetDriverVersion", NULL);
    FUNCTION(nvml, find, "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId");
    FUNCTION(nvml, memory, "nvmlDeviceGetMemoryInfo", NULL);
    FUNCTION(nvml, processes, "nvmlDeviceGetComputeRunningProcesses_v3",
             "nvmlDeviceGetComputeRunningProcesses_v2");
    FUNCTION(nvml, reasons, "nvmlDeviceGetCurrentClocksEventReasons",
             "nvmlDeviceGetCurrentClocksThrottleReasons");
    FUNCTION(nvml, ancestor, "nvmlDeviceGetTopologyCommonAncestor", NULL);
    FUNCTION(nvml, peer, "nvmlDeviceGetP2PStatus", NULL);
    FUNCTION(nvml, nvlink, "nvmlDeviceGetNvLinkState", NULL);
    FUNCTION(nvml, list.cuda, "nvmlSystemGetCudaDriverVersion_v2",
             "nvmlSystemGetCudaDriverVersion");
    FUNCTION(nvml, list.count, "nvmlDeviceGetCount_v2", NULL);
    FUNCTION(nvml, list.at, "nvmlDeviceGetHandleByIndex_v2", NULL);
    FUNCTION(nvml, list.name, "nvmlDeviceGetName", NULL);
    FUNCTION(nvml, list.uuid, "nvmlDeviceGetUUID", NULL);
    FUNCTION(nvml, list.pci, "nvmlDeviceGetPciInfo_v3", NULL);
    FUNCTION(nvml, list.compute, "nvmlDeviceGetCudaComputeCapability", NULL);
    for (int i = 0; i < ROWS; i++)
        nvml->row[i] = find_symbol(nvml->library, rows[i].symbol, rows[i].older);
}

static dt_status start_nvml(const struct dt_nvml *nvml)
{
    int (*init)(void) = NULL;
    const char *(*text)(int code) = NULL;
    *(void **)&init = find_symbol(nvml->library, "nvmlInit_v2", "nvmlInit");
    *(void **)&text = find_symbol(nvml->library, "nvmlErrorString", NULL);
    int code = init != NULL ? init() : -1;
    if (code != SUCCESS)
        return dt_fail(DT_EUNSUP, "NVML: %s",
                       init == NULL   ? "the library has no nvmlInit_v2"
                       : text != NULL ? text(code)
                                      : "it does not start");
    return DT_OK;
}

dt_status dt_nvml_open(struct dt_nvml **nvml)
{
    const char *path = getenv("DITTUNE_NVML");
    struct dt_nvml *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    made->library = dlopen(path != NULL ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    dt_status status =
        made->library != NULL ? start_nvml(made) : dt_fail(DT_EUNSUP, "NVML: %s", dlerror());
    if (status == DT_OK) {
        find_symbols(made);
        *nvml = made;
        return DT_OK;
    }
    if (made->library != NULL)
        dlclose(made->library);
    free(made);
    return status;
}

void dt_nvml_close(struct dt_nvml *nvml)
{
    if (nvml == NULL)
        return;
    if (nvml->shutdown != NULL)
        nvml->shutdown();
    dlclose(nvml->library);
    free(nvml);
}

void dt_nvml_driver(const struct dt_nvml *nvml, char version[], size_t room)
{
    version[0] = '\0';
    if (nvml->driver != NULL && nvml->driver(version, (unsigned)room) != SUCCESS)
        version[0] = '\0';
    version[room - 1] = '\0';
}

dt_status dt_nvml_find(const struct dt_nvml *nvml, const char *pci, struct dt_nvml_device **device)
{
    if (nvml->find == NULL || nvml->find(pci, device) != SUCCESS)
        return dt_fail(DT_EUNSUP, "NVML does not know the device at %s", pci);
    return DT_OK;
}

int dt_nvml_count(const struct dt_nvml *nvml)
{
    unsigned count = 0;
    if (nvml->list.count == NULL || nvml->list.count(&count) != SUCCESS || count > INT_MAX)
        return 0;
    return (int)count;
}

int dt_nvml_cuda(const struct dt_nvml *nvml)
{
    int version = 0;
    return nvml->list.cuda != NULL && nvml->list.cuda(&version) == SUCCESS ? version : 0;
}

dt_status dt_nvml_at(const struct dt_nvml *nvml, int i, struct dt_nvml_device **device,
                     struct dt_nvml_name *name)
{
    const struct listing *list = &nvml->list;
    struct dt_nvml_device *found = NULL;
    struct dt_nvml_name made = {.name = ""};
    struct pci pci;
    if (list->at == NULL || list->name == NULL || list->uuid == NULL || list->pci == NULL ||
        list->compute == NULL || list->at((unsigned)i, &found) != SUCCESS ||
        list->name(found, made.name, sizeof made.name) != SUCCESS ||
        list->uuid(found, made.uuid, sizeof made.uuid) != SUCCESS ||
        list->pci(found, &pci) != SUCCESS ||
        list->compute(found, &made.major, &made.minor) != SUCCESS)
        return dt_fail(DT_EUNSUP, "NVML: device %d does not say what it is", i);
    made.name[sizeof made.name - 1] = made.uuid[sizeof made.uuid - 1] = '\0';
    snprintf(made.pci, sizeof made.pci, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
    *device = found;
    *name = made;
    return DT_OK;
}

static void keep_fact(struct dt_nvml_facts *facts, size_t offset, unsigned value)
{
    if (offset != NONE)
        *(int64_t *)(void *)((char *)facts + offset) = value;
}

static void read_row(const struct dt_nvml *nvml, int i, struct dt_nvml_device *device,
                     struct dt_nvml_facts *facts)
{
    const struct row *row = &rows[i];
    unsigned two[2] = {0, 0};
    int code = -1;
    if (nvml->row[i] == NULL)
        return;
    if (row->kind == VALUE || row->kind == STRUCT_OF_TWO) {
        int (*call)(struct dt_nvml_device *, unsigned *) = NULL;
        *(void **)&call = nvml->row[i];
        code = call(device, two);
    } else if (row->kind == OF) {
        int (*call)(struct dt_nvml_device *, unsigned, unsigned *) = NULL;
        *(void **)&call = nvml->row[i];
        code = call(device, row->argument, two);
    } else {
        int (*call)(struct dt_nvml_device *, unsigned *, unsigned *) = NULL;
        *(void **)&call = nvml->row[i];
        code = call(device, &two[0], &two[1]);
    }
    if (code != SUCCESS)
        return;
    keep_fact(facts, row->offset, two[0]);
    keep_fact(facts, row->second, two[1]);
}

void dt_nvml_facts_clear(struct dt_nvml_facts *facts)
{
    memset(facts, DT_NVML_UNKNOWN, sizeof *facts); /* -1: all bits of every value */
}

void dt_nvml_sample(const struct dt_nvml *nvml, struct dt_nvml_device *device,
                    struct dt_nvml_facts *facts)
{
    unsigned long long bits = 0;
    dt_nvml_facts_clear(facts);
    for (int i = 0; i < ROWS; i++)
        if (rows[i].changes)
            read_row(nvml, i, device, facts);
    if (nvml->reasons != NULL && nvml->reasons(device, &bits) == SUCCESS)
        facts->health.reasons = (int64_t)(bits & INT64_MAX);
}

static void read_use(const struct dt_nvml *nvml, struct dt_nvml_device *device,
                     struct dt_nvml_use *use)
{
    struct memory memory;
    struct process processes[DT_NVML_PROCESSES];
    unsigned count = DT_NVML_PROCESSES;
    if (nvml->memory != NULL && nvml->memory(device, &memory) == SUCCESS) {
        use->memory_bytes = (int64_t)memory.total;
        use->free_bytes = (int64_t)memory.free;
    }
    memset(processes, 0, sizeof processes);
    int code = nvml->processes != NULL ? nvml->processes(device, &count, processes) : -1;
    if (code != SUCCESS && code != INSUFFICIENT_SIZE)
        return;
    /* Too many for the array: none is written, but the count matters. */
    use->count = count < DT_NVML_PROCESSES ? (int)count : DT_NVML_PROCESSES;
    for (int i = 0; i < use->count; i++) {
        bool told = code == SUCCESS && processes[i].bytes <= INT64_MAX;
        use->processes[i].pid = code == SUCCESS ? processes[i].pid : 0;
        use->processes[i].bytes = told ? (int64_t)processes[i].bytes : DT_NVML_UNKNOWN;
    }
}

void dt_nvml_read(const struct dt_nvml *nvml, struct dt_nvml_device *device,
                  struct dt_nvml_facts *facts)
{
    dt_nvml_sample(nvml, device, facts);
    for (int i = 0; i < ROWS; i++)
        if (!rows[i].changes)
            read_row(nvml, i, device, facts);
    read_use(nvml, device, &facts->use);
    for (unsigned link = 0; nvml->nvlink != NULL && link < NVLINKS_MOST; link++) {
        unsigned up = 0;
        if (nvml->nvlink(device, link, &up) != SUCCESS)
            break;
        facts->nvlinks = (facts->nvlinks < 0 ? 0 : facts->nvlinks) + (up == 1);
    }
}

/* nvmlGpuTopologyLevel_t goes in tens: internal, single, multiple, host bridge, node, system. */
bool dt_nvml_link(const struct dt_nvml *nvml, struct dt_nvml_device *a, struct dt_nvml_device *b,
                  enum dt_nvml_link *link)
{
    static const enum dt_nvml_link levels[] = {DT_NVML_PIX, DT_NVML_PIX,  DT_NVML_PXB,
                                               DT_NVML_PHB, DT_NVML_NODE, DT_NVML_SYS};
    unsigned status = 1, level = 0;
    if (a == b) {
        *link = DT_NVML_SELF;
        return true;
    }
    if (nvml->peer != NULL && nvml->peer(a, b, P2P_NVLINK, &status) == SUCCESS && status == 0) {
        *link = DT_NVML_NVLINK;
        return true;
    }
    if (nvml->ancestor == NULL || nvml->ancestor(a, b, &level) != SUCCESS || level > 50)
        return false;
    *link = levels[level / 10];
    return true;
}

bool dt_nvml_reaches(const struct dt_nvml *nvml, struct dt_nvml_device *a, struct dt_nvml_device *b)
{
    unsigned status = 1;
    return nvml->peer != NULL && nvml->peer(a, b, P2P_READ, &status) == SUCCESS && status == 0;
}

const char *dt_nvml_reason(int i)
{
    return i >= 0 && (size_t)i < sizeof reasons / sizeof reasons[0] ? reasons[i] : NULL;
}
