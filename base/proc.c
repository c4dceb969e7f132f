/* SPDX-License-Identifier: MIT */
#include "base/proc.h"

#include "base/read.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEEPEST       64
#define KERNEL_THREAD 0x00200000 /* PF_KTHREAD of include/linux/sched.h */

struct walk {
    void (*visit)(pid_t pid, void *context);
    void *context;
};

/* "123 (name) S 1 ..": the name may hold anything, parentheses too. The start is the 22nd field. */
static bool parse_stat(char *text, struct dt_proc *proc)
{
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    unsigned long flags;
    unsigned long long user, kernel, children_user, children_kernel;
    if (open == NULL || close == NULL || close < open ||
        sscanf(close + 1,
               " %c %d %*s %*s %*s %*s %lu %*s %*s %*s %*s %llu %llu %llu %llu %*s %*s %*s %*s "
               "%llu",
               &proc->state, &proc->parent, &flags, &user, &kernel, &children_user,
               &children_kernel, &proc->start) != 8)
        return false;
    proc->kernel = (flags & KERNEL_THREAD) != 0;
    proc->ticks = user + kernel;
    proc->children_ticks = children_user + children_kernel;
    *close = '\0';
    snprintf(proc->name, sizeof proc->name, "%.16s", open + 1);
    for (char *c = proc->name; *c != '\0'; c++)
        *c = isprint((unsigned char)*c) ? *c : '?';
    return true;
}

bool dt_proc_read(pid_t pid, struct dt_proc *proc)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    (void)dt_read_head(path, text, sizeof text);
    proc->pid = pid;
    return parse_stat(text, proc);
}

static void walk_below(pid_t pid, const struct walk *walk, int depth);

/* Calls use with the path of the file `name` of each thread of the process. */
static void each_thread(pid_t pid, const char *name, void (*use)(const char *path, void *context),
                        void *context)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%d/task", (int)pid);
    DT_CLEANUP(dt_closedir_at) DIR *threads = opendir(folder);
    struct dirent *entry;
    while (threads != NULL && (entry = readdir(threads)) != NULL) {
        char path[128];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%.20s/%s", folder, entry->d_name, name);
        use(path, context);
    }
}

struct branch {
    const struct walk *walk;
    int depth;
};

/* The children of one thread, listed in a file. */
static void walk_children(const char *path, void *context)
{
    const struct branch *branch = context;
    DT_CLEANUP(dt_fclose_at) FILE *file = fopen(path, "re");
    int child;
    while (file != NULL && fscanf(file, "%d", &child) == 1) {
        walk_below(child, branch->walk, branch->depth + 1);
        branch->walk->visit(child, branch->walk->context);
    }
}

static void walk_below(pid_t pid, const struct walk *walk, int depth)
{
    if (depth < DEEPEST)
        each_thread(pid, "children", walk_children, &(struct branch){walk, depth});
}

void dt_proc_below(pid_t pid, void (*visit)(pid_t pid, void *context), void *context)
{
    walk_below(pid, &(struct walk){visit, context}, 0);
}

static void add_storage(pid_t pid, void *context)
{
    int64_t *sum = context;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
    int64_t bytes = dt_read_number(path, "read_bytes:");
    if (bytes >= 0)
        *sum = (*sum > 0 ? *sum : 0) + bytes;
}

int64_t dt_proc_storage_bytes(void)
{
    int64_t sum = -1;
    add_storage(getpid(), &sum);
    dt_proc_below(getpid(), add_storage, &sum);
    return sum;
}

static void add_thread(const char *path, void *context)
{
    struct dt_proc_time *sum = context;
    char text[128];
    long long ran, waited;
    (void)dt_read_head(path, text, sizeof text);
    if (sscanf(text, "%lld %lld", &ran, &waited) == 2) {
        sum->ran_ns += ran;
        sum->waited_ns += waited;
    }
}

static void add_time(pid_t pid, void *context)
{
    each_thread(pid, "schedstat", add_thread, context);
}

struct dt_proc_time dt_proc_time_below(pid_t pid)
{
    struct dt_proc_time sum = {0, 0};
    dt_proc_below(pid, add_time, &sum);
    return sum;
}
