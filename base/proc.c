/* SPDX-License-Identifier: MIT */
#include "base/proc.h"

#include "base/read.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEEPEST 64

struct walk {
    void (*visit)(pid_t pid, void *context);
    void *context;
};

/* "123 (name) S 1 ..": the name may hold anything, parentheses too. The start is the 22nd field. */
static bool parse(char *text, struct dt_proc *proc)
{
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    unsigned long long user, kernel, children_user, children_kernel;
    if (open == NULL || close == NULL || close < open ||
        sscanf(close + 1,
               " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %llu %llu %*s %*s %*s %*s "
               "%llu",
               &proc->state, &proc->parent, &user, &kernel, &children_user, &children_kernel,
               &proc->start) != 7)
        return false;
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
    return parse(text, proc);
}

static void walk_below(pid_t pid, const struct walk *walk, int depth);

/* The children of one thread, listed in a file. */
static void walk_children(const char *path, const struct walk *walk, int depth)
{
    FILE *file = fopen(path, "re");
    int child;
    while (file != NULL && fscanf(file, "%d", &child) == 1) {
        walk_below(child, walk, depth + 1);
        walk->visit(child, walk->context);
    }
    if (file != NULL)
        fclose(file);
}

static void walk_below(pid_t pid, const struct walk *walk, int depth)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = depth < DEEPEST ? opendir(path) : NULL;
    struct dirent *entry;
    while (threads != NULL && (entry = readdir(threads)) != NULL) {
        char children[64 + sizeof entry->d_name];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(children, sizeof children, "%.20s/%.20s/children", path, entry->d_name);
        walk_children(children, walk, depth);
    }
    if (threads != NULL)
        closedir(threads);
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
