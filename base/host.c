/* SPDX-License-Identifier: MIT */
#include "base/host.h"

#include "base/cgroup.h"
#include "base/read.h"
#include "base/topology.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int quota_cores; /* INT32_MAX: none */
static pthread_once_t quota_once = PTHREAD_ONCE_INIT;

static void read_quota(void)
{
    double cores = dt_cgroup_limits("").cores;
    quota_cores = !(cores < INT32_MAX) ? INT32_MAX : cores < 1 ? 1 : (int)(cores + 1e-6);
}

int dt_host_cores_visible(void)
{
    return dt_topology_cores();
}

int dt_host_cores(void)
{
    pthread_once(&quota_once, read_quota);
    int visible = dt_topology_cores();
    return quota_cores < visible ? quota_cores : visible;
}

int64_t dt_host_memory_available(void)
{
    int64_t kib = dt_read_number("/proc/meminfo", "MemAvailable:");
    int64_t machine = kib >= 0 ? kib * 1024 : dt_host_memory_total();
    int64_t group = dt_cgroup_limits("").memory_left_bytes;
    return machine < group ? machine : group;
}

int64_t dt_host_memory_limit(void)
{
    int64_t most = dt_cgroup_limits("").memory_bytes, total = dt_host_memory_total();
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
    return dt_topology_hash();
}

void dt_host_unbind(int pid)
{
    cpu_set_t set;
    if (sched_getaffinity(pid, sizeof set, &set) == 0)
        sched_setaffinity(0, sizeof set, &set);
}

/* Within a quota no core is the group's own: binding to the first ones would put all containers of a machine on them. */
static bool may_bind(void)
{
    return dt_host_cores() == dt_topology_cores();
}

dt_status dt_host_bind(int rank, int ranks, int room, int mine[], int *n)
{
    int all = dt_host_cores();
    int first = ranks <= all ? (int)((int64_t)rank * all / ranks) : rank % all;
    int last = ranks <= all ? (int)((int64_t)(rank + 1) * all / ranks) : first + 1;
    int count = 0;
    for (int i = first; i < last && count < room; i++)
        mine[count++] = i;
    *n = count;
    if (may_bind() && !dt_topology_bind(first, last, false))
        return dt_fail(DT_ELIB, "cannot bind rank %d of %d to cores %d to %d", rank, ranks, first,
                       last - 1);
    return DT_OK;
}

dt_status dt_host_bind_thread(int core)
{
    if (core >= 0 && core < dt_host_cores() && may_bind() &&
        !dt_topology_bind(core, core + 1, true))
        return dt_fail(DT_ELIB, "cannot bind a thread to core %d", core);
    return DT_OK;
}

const char *dt_host_hwloc_version(void)
{
    return dt_topology_version();
}

static bool is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

bool dt_host_program(const char *name, char path[], size_t room)
{
    const char *folders = getenv("PATH");
    if (strchr(name, '/') != NULL) {
        snprintf(path, room, "%s", name);
        return is_program(path);
    }
    while (folders != NULL) {
        size_t size = strcspn(folders, ":");
        snprintf(path, room, "%.*s/%s", size > 0 ? (int)size : 1, size > 0 ? folders : ".", name);
        if (is_program(path))
            return true;
        folders = folders[size] != '\0' ? folders + size + 1 : NULL;
    }
    return false;
}
