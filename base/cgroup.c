/* SPDX-License-Identifier: MIT */
/* Each line of /proc/self/cgroup is "number:controllers:path"; version 2 has
 * no controllers there. */
#include "base/cgroup.h"
#include "base/read.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ROOM 1024
#define NONE (1LL << 60) /* version 1 writes a number near INT64_MAX where there is no limit */

/* The first number of a file, and the second; false where the file begins with no
 * number, as in "max 100000". */
static bool numbers_in(const char *folder, const char *name, double *first, double *second)
{
    char path[ROOM + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    DT_CLEANUP(dt_fclose_at) FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    int n = second != NULL ? fscanf(file, "%lf %lf", first, second) : fscanf(file, "%lf", first);
    return n == (second != NULL ? 2 : 1);
}

static void limit_cores(const char *folder, struct dt_cgroup_limits *limits)
{
    double time, period;
    if (!numbers_in(folder, "cpu.max", &time, &period) &&
        !(numbers_in(folder, "cpu.cfs_quota_us", &time, NULL) &&
          numbers_in(folder, "cpu.cfs_period_us", &period, NULL)))
        return;
    if (time > 0 && period > 0 && time / period < limits->cores) /* version 1: -1 is no quota */
        limits->cores = time / period;
}

static void limit_memory(const char *folder, struct dt_cgroup_limits *limits)
{
    double most, used;
    bool second = numbers_in(folder, "memory.max", &most, NULL);
    if (!second && !numbers_in(folder, "memory.limit_in_bytes", &most, NULL))
        return;
    if (!(most >= 0 && most < (double)NONE))
        return;
    if ((int64_t)most < limits->memory_bytes)
        limits->memory_bytes = (int64_t)most;
    if (!numbers_in(folder, second ? "memory.current" : "memory.usage_in_bytes", &used, NULL))
        return;
    int64_t left = most > used ? (int64_t)(most - used) : 0;
    if (left < limits->memory_left_bytes)
        limits->memory_left_bytes = left;
}

/* The group at `path` below the folder where its kind is mounted, and all groups above it. */
static void limit_by(const char *mounted, const char *path, struct dt_cgroup_limits *limits)
{
    char folder[ROOM];
    if (snprintf(folder, sizeof folder, "%s%s", mounted, path) >= (int)sizeof folder)
        return;
    for (size_t length = strlen(folder); length >= strlen(mounted); length--) {
        if (folder[length] != '\0' && folder[length] != '/')
            continue;
        folder[length] = '\0';
        limit_cores(folder, limits);
        limit_memory(folder, limits);
    }
}

static bool lists_controller(const char *controllers, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = controllers; (at = strstr(at, name)) != NULL; at += length)
        if ((at == controllers || at[-1] == ',') && (at[length] == '\0' || at[length] == ','))
            return true;
    return false;
}

static void limit_by_line(const char *root, const char *controllers, const char *path,
                          struct dt_cgroup_limits *limits)
{
    static const char *const kinds[] = {"cpu", "memory"};
    char mounted[ROOM];
    if (controllers[0] == '\0') {
        snprintf(mounted, sizeof mounted, "%s/sys/fs/cgroup", root);
        limit_by(mounted, path, limits);
        snprintf(mounted, sizeof mounted, "%s/sys/fs/cgroup/unified", root);
        limit_by(mounted, path, limits);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (lists_controller(controllers, kinds[i])) {
            snprintf(mounted, sizeof mounted, "%s/sys/fs/cgroup/%s", root, controllers);
            limit_by(mounted, path, limits);
            snprintf(mounted, sizeof mounted, "%s/sys/fs/cgroup/%s", root, kinds[i]);
            limit_by(mounted, path, limits);
        }
}

struct dt_cgroup_limits dt_cgroup_limits(const char *root)
{
    struct dt_cgroup_limits limits = {INFINITY, INT64_MAX, INT64_MAX};
    char line[ROOM];
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    DT_CLEANUP(dt_fclose_at) FILE *file = fopen(line, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *controllers = strchr(line, ':');
        char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        limit_by_line(root, controllers + 1, path, &limits);
    }
    return limits;
}
