/* SPDX-License-Identifier: MIT */
/* cgroup - limits of the control groups of this process (Linux control groups, versions 1 and 2)
 *
 *     struct dt_cgroup_limits limits = dt_cgroup_limits("");
 *
 * A group is also limited by every group above it, so the smallest limit counts. In a container
 * the group is often the root of what is mounted, whatever /proc/self/cgroup names it: that root
 * is always read, too.
 * Sources: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/, scheduler/sched-bwc.rst.
 */
#ifndef DT_BASE_CGROUP_H
#define DT_BASE_CGROUP_H

#include <stdint.h>

struct dt_cgroup_limits {
    double cores;              /* processor time per time, as in 1.5; INFINITY: no quota */
    int64_t memory_bytes;      /* INT64_MAX: no limit */
    int64_t memory_left_bytes; /* until the first limit is met; INT64_MAX: no limit */
};

/* root is put before /proc and /sys: "" for this machine. What cannot be read is no limit. */
struct dt_cgroup_limits dt_cgroup_limits(const char *root);

#endif
