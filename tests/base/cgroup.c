/* SPDX-License-Identifier: MIT */
/* Trees of /proc and /sys as the kernel's documentation describes them, planted in a folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cgroup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[64];

static int begin(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/dittune-cgroup-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int end(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

/* A file below the root with its folders. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(full, 0777);
        *at = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void nothing_is_no_limit(void **state)
{
    (void)state;
    struct dt_cgroup_limits limits = dt_cgroup_limits(root);
    assert_true(isinf(limits.cores));
    assert_true(limits.memory_bytes == INT64_MAX && limits.memory_left_bytes == INT64_MAX);
    put("/proc/self/cgroup", "0::/user.slice\n");
    put("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/user.slice/memory.max", "max\n");
    put("/sys/fs/cgroup/user.slice/memory.current", "4096\n");
    limits = dt_cgroup_limits(root);
    assert_true(isinf(limits.cores));
    assert_true(limits.memory_bytes == INT64_MAX && limits.memory_left_bytes == INT64_MAX);
}

/* Each group is limited by those above it: the smallest counts, of cores and
 * memory each by itself. */
static void second_version_with_groups_above(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/kubepods.slice/pod1/box\n");
    put("/sys/fs/cgroup/kubepods.slice/cpu.max", "800000 100000\n");
    put("/sys/fs/cgroup/kubepods.slice/memory.max", "8000\n");
    put("/sys/fs/cgroup/kubepods.slice/memory.current", "7990\n");
    put("/sys/fs/cgroup/kubepods.slice/pod1/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/kubepods.slice/pod1/memory.max", "max\n");
    put("/sys/fs/cgroup/kubepods.slice/pod1/box/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/kubepods.slice/pod1/box/memory.max", "4000\n");
    put("/sys/fs/cgroup/kubepods.slice/pod1/box/memory.current", "1000\n");
    struct dt_cgroup_limits limits = dt_cgroup_limits(root);
    assert_true(limits.cores == 1.5);
    assert_int_equal(limits.memory_bytes, 4000);
    assert_int_equal(limits.memory_left_bytes, 10);
}

/* In a container /proc names the group as the host does, and what is mounted
 * is the group itself. */
static void container_of_either_version(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/system.slice/docker-1234.scope\n");
    put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    put("/sys/fs/cgroup/memory.max", "123456789\n");
    struct dt_cgroup_limits limits = dt_cgroup_limits(root);
    assert_true(limits.cores == 0.5);
    assert_int_equal(limits.memory_bytes, 123456789);
    put("/proc/self/cgroup", "12:pids:/docker/1\n7:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n");
    put("/sys/fs/cgroup/cpu.max", "");
    put("/sys/fs/cgroup/memory.max", "");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n");
    limits = dt_cgroup_limits(root);
    assert_true(limits.cores == 2.0);
    assert_int_equal(limits.memory_bytes, 1000);
    assert_int_equal(limits.memory_left_bytes, 0); /* used beyond the limit */
}

/* Without limits version 1 has -1 and a number near INT64_MAX; cpu may be mounted by a name of its
 * own. cpuacct is not cpu. */
static void first_version(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "9:cpuset:/\n3:memory:/a\n2:cpuacct:/a\n1:cpu,cpuacct:/a/b\n0::/a\n");
    put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1\n");
    struct dt_cgroup_limits limits = dt_cgroup_limits(root);
    assert_true(isinf(limits.cores));
    assert_true(limits.memory_bytes == INT64_MAX && limits.memory_left_bytes == INT64_MAX);
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "25000\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "10000\n");
    assert_true(dt_cgroup_limits(root).cores == 2.5);
}

static void damaged_files_are_no_limit(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "\n::\nnonsense\n0:\n0::/x\n");
    put("/sys/fs/cgroup/x/cpu.max", "100000 0\n");
    put("/sys/fs/cgroup/x/memory.max", "lots\n");
    struct dt_cgroup_limits limits = dt_cgroup_limits(root);
    assert_true(isinf(limits.cores) && limits.memory_bytes == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_no_limit, begin, end),
        cmocka_unit_test_setup_teardown(second_version_with_groups_above, begin, end),
        cmocka_unit_test_setup_teardown(container_of_either_version, begin, end),
        cmocka_unit_test_setup_teardown(first_version, begin, end),
        cmocka_unit_test_setup_teardown(damaged_files_are_no_limit, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
