/* SPDX-License-Identifier: MIT */
/* The topology is loaded once and kept for the life of the process; hwloc's own messages are
 * silenced, since a container without /sys is a valid machine (each processor of the affinity mask
 * then counts as one core). */
#include "base/topology.h"
#include "base/host.h"

#include "base/read.h"
#include "base/rng.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#if defined(DT_HAVE_HWLOC)
#include <hwloc.h>
#else
#include <dirent.h>
#include <sched.h>
#include <unistd.h>
#endif

#define MOST 4096

static int core_count = 1;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void topology_load(void);

int dt_host_cores_visible(void)
{
    pthread_once(&once, topology_load);
    return core_count;
}

#if defined(DT_HAVE_HWLOC)
static hwloc_topology_t topology;
static hwloc_cpuset_t cores[MOST];

/* One cpuset per core: the allowed processors under each core object, or each allowed processor. */
static void list_cores(hwloc_const_cpuset_t allowed)
{
    int n = 0;
    hwloc_obj_type_t type =
        hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    hwloc_obj_t object = NULL;
    while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != NULL && n < MOST) {
        hwloc_cpuset_t set = hwloc_bitmap_alloc();
        hwloc_bitmap_and(set, object->cpuset, allowed);
        if (hwloc_bitmap_iszero(set))
            hwloc_bitmap_free(set);
        else
            cores[n++] = set;
    }
    core_count = n;
}

static void topology_load(void)
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

bool dt_topology_bind(int first, int last, bool thread)
{
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    for (int i = first; i < last && i < dt_host_cores_visible(); i++)
        if (cores[i] != NULL)
            hwloc_bitmap_or(set, set, cores[i]);
    int flag = thread ? HWLOC_CPUBIND_THREAD : HWLOC_CPUBIND_PROCESS;
    bool bound = hwloc_bitmap_iszero(set) || hwloc_set_cpubind(topology, set, flag) == 0;
    hwloc_bitmap_free(set);
    return bound;
}

uint64_t dt_host_topology(void)
{
    char shape[1024] = "";
    size_t size = 0;
    pthread_once(&once, topology_load);
    int depth = topology != NULL ? hwloc_topology_get_depth(topology) : 0;
    for (int d = 0; d < depth && size < sizeof shape - 64; d++)
        size += (size_t)snprintf(shape + size, sizeof shape - size, "%s:%u ",
                                 hwloc_obj_type_string(hwloc_get_depth_type(topology, d)),
                                 hwloc_get_nbobjs_by_depth(topology, d));
    return dt_rng_stream(shape);
}

const char *dt_host_hwloc_version(void)
{
    static char version[32];
    unsigned v = hwloc_get_api_version();
    snprintf(version, sizeof version, "%u.%u.%u", v >> 16, (v >> 8) & 255, v & 255);
    return version;
}
#else
static int processors[MOST]; /* processors of core i */

static void topology_load(void)
{
    cpu_set_t *mask = CPU_ALLOC(MOST);
    size_t size = CPU_ALLOC_SIZE(MOST);
    int n = 0;
    if (mask != NULL && sched_getaffinity(0, size, mask) == 0)
        for (int i = 0; i < MOST; i++)
            if (CPU_ISSET_S((size_t)i, size, mask))
                processors[n++] = i;
    CPU_FREE(mask);
    core_count = n > 0 ? n : 1;
}

/* Every thread that the process has: sched_setaffinity binds one. */
static bool bind_threads(size_t size, const cpu_set_t *mask)
{
    bool bound = true;
    DT_CLEANUP(dt_closedir_at) DIR *threads = opendir("/proc/self/task");
    if (threads == NULL)
        return sched_setaffinity(0, size, mask) == 0;
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;)
        if (entry->d_name[0] != '.')
            bound = sched_setaffinity((pid_t)atoi(entry->d_name), size, mask) == 0 && bound;
    return bound;
}

bool dt_topology_bind(int first, int last, bool thread)
{
    cpu_set_t *mask = CPU_ALLOC(MOST);
    size_t size = CPU_ALLOC_SIZE(MOST);
    if (mask == NULL)
        return false;
    CPU_ZERO_S(size, mask);
    for (int i = first; i < last && i < dt_host_cores_visible(); i++)
        CPU_SET_S((size_t)processors[i], size, mask);
    bool bound = CPU_COUNT_S(size, mask) == 0 ||
                 (thread ? sched_setaffinity(0, size, mask) == 0 : bind_threads(size, mask));
    CPU_FREE(mask);
    return bound;
}

uint64_t dt_host_topology(void)
{
    char shape[64];
    snprintf(shape, sizeof shape, "processors:%ld ", sysconf(_SC_NPROCESSORS_CONF));
    return dt_rng_stream(shape);
}

const char *dt_host_hwloc_version(void)
{
    return "none";
}
#endif
