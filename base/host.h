/* SPDX-License-Identifier: MIT */
/* host - the machine under this process: cores, memory, name; binding to cores
 *
 * Cores are the physical cores in this process's affinity mask (topology.h), numbered 0..n-1 in
 * machine order, but no more than its control groups give it processor time for (cgroup.h): a quota
 * of 2.5 cores is 2 cores, one of half a core is 1. libdittune does not link this file.
 */
#ifndef DT_BASE_HOST_H
#define DT_BASE_HOST_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cores this process may use, read once, before any binding; at least 1. */
int dt_host_cores(void);

/* The same without the quota (topology.c, like the hash and the version below): above dt_host_cores
 * where control groups give less time than that of the cores in the mask. */
int dt_host_cores_visible(void);

/* Bytes a new program may allocate: the smaller of MemAvailable and what its
 * control groups leave. */
int64_t dt_host_memory_available(void);
int64_t dt_host_memory_total(void);
/* Upper bound of a program's memory here: the machine's total, or the limit
 * of its control groups. */
int64_t dt_host_memory_limit(void);

/* Host name and processor model; "unknown" when they cannot be read. Static storage. */
const char *dt_host_name(void);
const char *dt_host_cpu(void);
/* Which processor it is, where virtual machines name several generations alike: family, model and
 * stepping of x86 ("25.17.1"), implementer, part and revision of ARM ("0x41.0xd0c.1"); "" when they
 * cannot be read. Static storage. */
const char *dt_host_cpu_id(void);

/* The kernel's release, the id of this boot, and the processors this process may run on ("0-3,8");
 * "unknown" when they cannot be read. Static storage. */
const char *dt_host_kernel(void);
const char *dt_host_boot(void);
const char *dt_host_processors(void);

/* The processor has bfloat16 instructions (AVX-512 BF16; processors with AMX have it, too). */
bool dt_host_has_bfloat16(void);

/* One hash of the topology's shape (sockets, NUMA nodes, caches, cores; without hwloc: the number
 * of processors), the same on machines of the same make. */
uint64_t dt_host_topology(void);

/* The path of a program: the name itself where it has a '/', else looked up in PATH as execvp does.
 * False: no file that can be run. */
bool dt_host_program(const char *name, char path[], size_t room);

/* Widens this process's affinity mask to that of process `pid`, if the kernel permits. Call
 * before dt_host_cores. */
void dt_host_unbind(int pid);

/* Binds the whole process to its share: part `rank` of `ranks` equal parts of the cores, or one
 * core (rank modulo cores) when there are more ranks than cores. Writes the core numbers to
 * cores[0..*n-1] (at most room). Under a quota the numbers are counted out in the same way and
 * nothing is bound: the kernel chooses the cores. Must run before the first OpenMP region. DT_ELIB
 * when the kernel refuses. */
dt_status dt_host_bind(int rank, int ranks, int room, int cores[], int *n) DT_MUST_CHECK;

/* Binds the calling thread to core number `core`. */
dt_status dt_host_bind_thread(int core) DT_MUST_CHECK;

/* hwloc's version, such as "2.9.0"; "none" in a build without it. Static storage. */
const char *dt_host_hwloc_version(void);

#endif
