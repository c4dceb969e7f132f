/* SPDX-License-Identifier: MIT */
#include "base/host.h"

#include "base/cgroup.h"
#include "base/read.h"
#include "base/topology.h"

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

int dt_host_cores(void)
{
    pthread_once(&quota_once, read_quota);
    int visible = dt_host_cores_visible();
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

static const char *text_in(const char *path, const char *key, char text[], size_t room)
{
    if (!dt_read_line(path, key, text, room))
        snprintf(text, room, "unknown");
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

static char cpu[128], cpu_id[64];

static void read_cpu_id(const char *const names[3])
{
    char parts[3][16];
    for (int i = 0; i < 3; i++)
        if (!dt_read_line("/proc/cpuinfo", names[i], parts[i], sizeof parts[i]))
            return;
    snprintf(cpu_id, sizeof cpu_id, "%s.%s.%s", parts[0], parts[1], parts[2]);
}

static void read_cpu(void)
{
    (void)text_in("/proc/cpuinfo", "model name\t:", cpu, sizeof cpu);
    read_cpu_id((const char *[]){"cpu family\t:", "model\t\t:", "stepping\t:"});
    if (cpu_id[0] == '\0')
        read_cpu_id((const char *[]){"CPU implementer\t:", "CPU part\t:", "CPU revision\t:"});
}

static pthread_once_t cpu_once = PTHREAD_ONCE_INIT;

const char *dt_host_cpu(void)
{
    pthread_once(&cpu_once, read_cpu);
    return cpu;
}

const char *dt_host_cpu_id(void)
{
    pthread_once(&cpu_once, read_cpu);
    return cpu_id;
}

bool dt_host_has_bfloat16(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

void dt_host_unbind(int pid)
{
    cpu_set_t set;
    if (sched_getaffinity(pid, sizeof set, &set) == 0)
        sched_setaffinity(0, sizeof set, &set);
}

/* Within a quota no core is the group's own: binding to the first ones would put all containers
 * of a machine on them. */
static bool may_bind(void)
{
    return dt_host_cores() == dt_host_cores_visible();
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
