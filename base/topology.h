/* SPDX-License-Identifier: MIT */
/* topology - the cores under this process (host.h), and binding to them
 *
 * By hwloc where it was built in (DT_HAVE_HWLOC): a core is a physical core with a processor in
 * this process's affinity mask. Without it each processor of the mask is a core. Cores are numbered
 * 0..n-1 in machine order. host.h is what callers want.
 */
#ifndef DT_BASE_TOPOLOGY_H
#define DT_BASE_TOPOLOGY_H

#include <stdbool.h>

/* Binds the process, or the calling thread, to cores first..last-1. True if none of them is known
 * or the kernel bound it. */
bool dt_topology_bind(int first, int last, bool thread);

#endif
