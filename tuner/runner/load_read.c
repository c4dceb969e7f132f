/* SPDX-License-Identifier: MIT */
/* The functions of load.h that read the system, in a file of their own: tests have
 * others in their place. */
#include "base/array.h"
#include "base/cgroup.h"
#include "base/clock.h"
#include "base/proc.h"
#include "tuner/runner/load.h"

#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEEPEST 64
#define PATH    4600

static double ticks_per_second(void)
{
    long rate = sysconf(_SC_CLK_TCK);
    return rate > 0 ? 1.0 / (double)rate : 0.01;
}

/* "cpu3 user nice system idle iowait irq softirq steal ..": of the cores in the mask. */
static bool read_cores(struct dt_load_reading *reading)
{
    char line[512];
    cpu_set_t mask;
    FILE *file = fopen("/proc/stat", "re");
    int found = 0;
    if (file == NULL || sched_getaffinity(0, sizeof mask, &mask) != 0)
        CPU_ZERO(&mask);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned long long user, nice, kernel, idle, wait, irq, soft, stolen = 0;
        int core;
        if (sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &core, &user, &nice,
                   &kernel, &idle, &wait, &irq, &soft, &stolen) < 8 ||
            core < 0 || core >= CPU_SETSIZE || !CPU_ISSET((size_t)core, &mask))
            continue;
        reading->busy += (double)(user + nice + kernel + irq + soft) * ticks_per_second();
        reading->stolen += (double)stolen * ticks_per_second();
        found++;
    }
    if (file != NULL)
        fclose(file);
    return found > 0;
}

/* Lines "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" and "full ..": totals in microseconds.
 * false: no such file. */
static bool read_waits(const char *path, struct dt_load_waits *waits)
{
    char line[256], kind[8];
    unsigned long long total;
    FILE *file = fopen(path, "re");
    *waits = (struct dt_load_waits){NAN, NAN};
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%7s avg10=%*s avg60=%*s avg300=%*s total=%llu", kind, &total) == 2)
            *(strcmp(kind, "some") == 0 ? &waits->some : &waits->all) = (double)total * 1e-6;
    if (file != NULL)
        fclose(file);
    return !isnan(waits->some);
}

/* The line "0::/path" of /proc/self/cgroup is the control group of version 2; "/"
 * is a container's own. */
static void find_group(const char *root, char path[PATH])
{
    char line[4096];
    snprintf(path, PATH, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    path[0] = '\0';
    while (file != NULL && path[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::/", 4) == 0)
            snprintf(path, PATH, "%s/sys/fs/cgroup%s/cpu.pressure", root, line + 3);
    }
    if (file != NULL)
        fclose(file);
}

struct dt_load_waits dt_load_waits(const char *root)
{
    char path[PATH];
    struct dt_load_waits waits = {NAN, NAN};
    find_group(root, path);
    if (path[0] == '\0' || !read_waits(path, &waits)) {
        snprintf(path, sizeof path, "%s/proc/pressure/cpu", root);
        read_waits(path, &waits);
        waits.all = NAN;
    }
    if (isfinite(dt_cgroup_limits(root).cores))
        waits.all = NAN;
    return waits;
}

struct table {
    struct dt_proc *at;
    int count;
};

/* Its own, and of children that have ended. */
static double seconds_of(const struct dt_proc *process)
{
    return (double)process->ticks * ticks_per_second() +
           (double)process->children_ticks * ticks_per_second();
}

static bool read_table(struct table *table)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0)
            continue;
        if (DT_GROW(table->at, table->count, 1) != DT_OK)
            break;
        table->count += dt_proc_read(pid, &table->at[table->count]);
    }
    if (folder != NULL)
        closedir(folder);
    return folder != NULL;
}

static int by_pid(const void *a, const void *b)
{
    const struct dt_proc *one = a, *other = b;
    return (one->pid > other->pid) - (one->pid < other->pid);
}

static const struct dt_proc *table_find(const struct table *table, pid_t pid)
{
    const struct dt_proc wanted = {.pid = pid};
    return bsearch(&wanted, table->at, (size_t)table->count, sizeof wanted, by_pid);
}

/* Descends from this process. */
static bool is_ours(const struct table *table, const struct dt_proc *process)
{
    pid_t pid = process->pid;
    for (int depth = 0; depth < DEEPEST && pid > 1; depth++) {
        if (pid == getpid())
            return true;
        const struct dt_proc *parent = table_find(table, pid);
        pid = parent != NULL ? parent->parent : 0;
    }
    return false;
}

/* The busiest so far; the least busy makes room. */
static void remember_process(struct dt_load_reading *reading, const struct dt_proc *process)
{
    int at = reading->count;
    if (at == DT_LOAD_PROGRAMS)
        for (int i = at = 0; i < reading->count; i++)
            at = reading->programs[i].seconds < reading->programs[at].seconds ? i : at;
    else
        reading->count++;
    if (at == reading->count - 1 || reading->programs[at].seconds < seconds_of(process)) {
        reading->programs[at].pid = process->pid;
        reading->programs[at].seconds = seconds_of(process);
        memcpy(reading->programs[at].name, process->name, sizeof process->name);
    }
}

void dt_load_read(struct dt_load_reading *reading)
{
    struct table table = {0};
    memset(reading, 0, sizeof *reading);
    if (!dt_load_wanted())
        return;
    bool listed = read_table(&table);
    if (table.count > 1)
        qsort(table.at, (size_t)table.count, sizeof *table.at, by_pid);
    reading->at = (double)dt_clock_machine_ns() * 1e-9;
    reading->waits = dt_load_waits("");
    reading->known = read_cores(reading) && listed;
    for (int i = 0; i < table.count; i++) {
        const struct dt_proc *process = &table.at[i];
        if (is_ours(&table, process))
            reading->ours += seconds_of(process);
        else if (!process->kernel) /* it works for others, whoever they are */
            remember_process(reading, process);
    }
    free(table.at);
}
