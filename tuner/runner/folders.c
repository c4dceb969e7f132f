/* SPDX-License-Identifier: MIT */
#include "tuner/runner/folders.h"

#include "base/host.h"
#include "base/proc.h"
#include "base/rng.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARENT_MOST 200 /* letters; the name takes at most 55 */

/* One number for boot and pid namespace, which give a pid its meaning. */
static unsigned folder_place(void)
{
    struct stat space = {.st_ino = 0};
    char text[128];
    if (stat("/proc/self/ns/pid", &space) != 0)
        space.st_ino = 0;
    snprintf(text, sizeof text, "%.80s %llu", dt_host_boot(), (unsigned long long)space.st_ino);
    return (unsigned)(dt_rng_stream(text) & 0xffffffff);
}

dt_status dt_folder_make(const char *parent, char folder[DT_FOLDER_ROOM])
{
    struct dt_proc self = {.start = 0};
    folder[0] = '\0';
    if (strlen(parent) > PARENT_MOST)
        return dt_fail(DT_EUSAGE,
                       "the path of the folder for temporary files has %zu letters, at most %d "
                       "will do: set TMPDIR to a shorter one, as /tmp",
                       strlen(parent), PARENT_MOST);
    dt_proc_read(getpid(), &self);
    snprintf(folder, DT_FOLDER_ROOM, "%s/dittune-%d-%llu-%08x-XXXXXX", parent, (int)getpid(),
             self.start, folder_place());
    if (mkdtemp(folder) != NULL)
        return DT_OK;
    folder[0] = '\0';
    return dt_fail(DT_EIO,
                   "cannot make a folder for temporary files in %s: %s; set TMPDIR to a folder "
                   "that can be written",
                   parent, strerror(errno));
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    remove(path); /* a failure must not keep the rest from being removed */
    return 0;
}

void dt_folder_remove(const char *folder)
{
    if (folder[0] != '\0')
        nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* The name has our form, and the process in it has ended. */
static bool is_dead(const char *name, unsigned here)
{
    int pid, end = 0;
    unsigned there;
    unsigned long long start;
    struct dt_proc proc;
    if (sscanf(name, "dittune-%d-%llu-%8x-%n", &pid, &start, &there, &end) != 3 || end == 0 ||
        strlen(name + end) != 6 || there != here || pid < 1)
        return false;
    return !dt_proc_read(pid, &proc) || proc.start != start;
}

void dt_folders_sweep(const char *parent)
{
    struct dt_proc self;
    DIR *folder = dt_proc_read(getpid(), &self) ? opendir(parent) : NULL;
    unsigned here = folder_place();
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char path[PARENT_MOST + sizeof entry->d_name + 2];
        struct stat info;
        if (strlen(parent) > PARENT_MOST || !is_dead(entry->d_name, here) ||
            fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISDIR(info.st_mode) || info.st_uid != geteuid())
            continue;
        snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);
        dt_folder_remove(path);
    }
    if (folder != NULL)
        closedir(folder);
}
