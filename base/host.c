/* SPDX-License-Identifier: MIT */
/* The topology is loaded once and kept for the life of the process; hwloc's own messages are silenced, since a
 * container without /sys is a valid machine (each processor of the affinity mask then counts as one core). */
#include "base/host.h"

#include "base/rng.h"

#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static hwloc_topology_t topology;
static hwloc_cpuset_t cores[4096];
static int core_count = 1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* One cpuset per core: the allowed processors under each core object, or each allowed processor. */
static void list_cores(hwloc_const_cpuset_t allowed)
{
    int n = 0;
    hwloc_obj_type_t type =
        hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    hwloc_obj_t object = NULL;
    while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != NULL && n < 4096) {
        hwloc_cpuset_t set = hwloc_bitmap_alloc();
        hwloc_bitmap_and(set, object->cpuset, allowed);
        if (hwloc_bitmap_iszero(set))
            hwloc_bitmap_free(set);
        else
            cores[n++] = set;
    }
    core_count = n;
}

static void load(void)
{
    setenv("HWLOC_HIDE_ERRORS", "2", 0);
    hwloc_cpuset_t allowed = hwloc_bitmap_alloc();
    if (hwloc_topology_init(&topology) == 0 && hwloc_topology_load(topology) == 0) {
        if (hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_PROCESS) != 0)
            hwloc_bitmap_copy(allowed, hwloc_topology_get_allowed_cpuset(topology));
        list_cores(allowed);
    }
    hwloc_bitmap_free(allowed);
    if (core_count < 1)
        core_count = 1;
}

int dt_host_cores(void)
{
    pthread_once(&once, load);
    return core_count;
}

/* The first number after `key` in a file of "key number" lines; -1 when there is none. */
static int64_t number_in(const char *path, const char *key)
{
    char line[256];
    int64_t value = -1;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    while (value < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) {
            char *end;
            long long number = strtoll(line + strlen(key), &end, 10);
            if (end != line + strlen(key))
                value = number;
        }
    fclose(file);
    return value;
}

static int64_t cgroup_left(void)
{
    int64_t most = number_in("/sys/fs/cgroup/memory.max", "");
    int64_t used = number_in("/sys/fs/cgroup/memory.current", "");
    if (most < 0 || used < 0)
        return INT64_MAX;
    return most > used ? most - used : 0;
}

int64_t dt_host_memory_available(void)
{
    int64_t kib = number_in("/proc/meminfo", "MemAvailable:");
    int64_t machine = kib >= 0 ? kib * 1024 : dt_host_memory_total();
    int64_t group = cgroup_left();
    return machine < group ? machine : group;
}

int64_t dt_host_memory_limit(void)
{
    int64_t most = number_in("/sys/fs/cgroup/memory.max", ""), total = dt_host_memory_total();
    return most > 0 && most < total ? most : total;
}

int64_t dt_host_memory_total(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
}

const char *dt_host_name(void)
{
    static char name[256];
    if (name[0] == '\0' && (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0'))
        snprintf(name, sizeof name, "unknown");
    return name;
}

/* The text after `key` and white space in the first line that begins with them. */
static const char *text_in(const char *path, const char *key, char text[], size_t room)
{
    char line[1024];
    FILE *file = fopen(path, "re");
    snprintf(text, room, "unknown");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) {
            const char *value = line + strlen(key) + strspn(line + strlen(key), " \t");
            snprintf(text, room, "%.*s", (int)strcspn(value, "\n"), value);
            break;
        }
    if (file != NULL)
        fclose(file);
    return text;
}

const char *dt_host_kernel(void)
{
    static char text[128];
    return text[0] != '\0' ? text : text_in("/proc/sys/kernel/osrelease", "", text, sizeof text);
}

const char *dt_host_boot(void)
{
    static char text[64];
    return text[0] != '\0' ? text
                           : text_in("/proc/sys/kernel/random/boot_id", "", text, sizeof text);
}

const char *dt_host_processors(void)
{
    static char text[512];
    return text_in("/proc/self/status", "Cpus_allowed_list:", text, sizeof text);
}

static char cpu[128];

static void read_cpu(void)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && cpu[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL)
            snprintf(cpu, sizeof cpu, "%.*s", (int)strcspn(colon + 1, "\n") - 1, colon + 2);
    }
    if (file != NULL)
        fclose(file);
    if (cpu[0] == '\0')
        snprintf(cpu, sizeof cpu, "unknown");
}

const char *dt_host_cpu(void)
{
    static pthread_once_t read_once = PTHREAD_ONCE_INIT;
    pthread_once(&read_once, read_cpu);
    return cpu;
}

bool dt_host_has_bfloat16(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

uint64_t dt_host_topology(void)
{
    char shape[1024] = "";
    size_t size = 0;
    pthread_once(&once, load);
    int depth = topology != NULL ? hwloc_topology_get_depth(topology) : 0;
    for (int d = 0; d < depth && size < sizeof shape - 64; d++)
        size += (size_t)snprintf(shape + size, sizeof shape - size, "%s:%u ",
                                 hwloc_obj_type_string(hwloc_get_depth_type(topology, d)),
                                 hwloc_get_nbobjs_by_depth(topology, d));
    return dt_rng_stream(shape);
}

void dt_host_unbind(int pid)
{
    cpu_set_t set;
    if (sched_getaffinity(pid, sizeof set, &set) == 0)
        sched_setaffinity(0, sizeof set, &set);
}

dt_status dt_host_bind(int rank, int ranks, int room, int mine[], int *n)
{
    int all = dt_host_cores();
    int first = ranks <= all ? (int)((int64_t)rank * all / ranks) : rank % all;
    int last = ranks <= all ? (int)((int64_t)(rank + 1) * all / ranks) : first + 1;
    int count = 0;
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    for (int i = first; i < last; i++) {
        if (cores[i] != NULL)
            hwloc_bitmap_or(set, set, cores[i]);
        if (count < room)
            mine[count++] = i;
    }
    int rc = hwloc_bitmap_iszero(set) ? 0 : hwloc_set_cpubind(topology, set, HWLOC_CPUBIND_PROCESS);
    hwloc_bitmap_free(set);
    *n = count;
    return rc == 0 ? DT_OK
                   : dt_fail(DT_ELIB, "cannot bind rank %d of %d to cores %d to %d", rank, ranks,
                             first, last - 1);
}

dt_status dt_host_bind_thread(int core)
{
    if (core < 0 || core >= dt_host_cores() || cores[core] == NULL)
        return DT_OK;
    if (hwloc_set_cpubind(topology, cores[core], HWLOC_CPUBIND_THREAD) != 0)
        return dt_fail(DT_ELIB, "cannot bind a thread to core %d", core);
    return DT_OK;
}

const char *dt_host_hwloc_version(void)
{
    static char version[32];
    unsigned v = hwloc_get_api_version();
    snprintf(version, sizeof version, "%u.%u.%u", v >> 16, (v >> 8) & 255, v & 255);
    return version;
}
