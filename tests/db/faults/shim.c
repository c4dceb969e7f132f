/* SPDX-License-Identifier: MIT */
/* The calls are made by syscall(): nothing has to be looked up in libc. Which file a descriptor
 * stands for is asked of /proc each time, so neither a dup nor a fork is to be followed. Nothing
 * here allocates: malloc is replaced, too. */
#include "tests/db/faults/shim_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STORM 64

enum mode { COUNT, BEFORE, AFTER, FIRST, HALF, LAST, ZEROS, SHORT, ERROR, MEMORY };

static const struct {
    const char *word;
    enum mode mode;
    int error;
} modes[] = {
    {"before", BEFORE, 0},     {"after", AFTER, 0},       {"first", FIRST, 0},
    {"half", HALF, 0},         {"last", LAST, 0},         {"zeros", ZEROS, 0},
    {"short", SHORT, 0},       {"memory", MEMORY, 0},     {"EIO", ERROR, EIO},
    {"ENOSPC", ERROR, ENOSPC}, {"EDQUOT", ERROR, EDQUOT}, {"EROFS", ERROR, EROFS},
    {"EINTR", ERROR, EINTR},
};

static struct dt_fault_counters before_start, *counters = &before_start;
static char root[PATH_MAX];
static int log_fd = -1;
static struct {
    bool on, ever;
    long point;
    enum mode mode;
    int error;
    bool
        /* allocations count from the first call on a file of ours, to skip those of
         * libraries at their start */
        later;
    bool now; /* the call that is being made is a chosen one */
} armed;

/* ---- what becomes of a call ---- */

EXPORT struct dt_fault_counters *dt_fault_counters(void)
{
    return counters;
}

EXPORT void dt_fault_arm(const char *what)
{
    char word[16] = "", ever[16] = "";
    armed.on = false;
    if (what == NULL)
        return;
    memset(&armed, 0, sizeof armed);
    memset(counters, 0, sizeof *counters);
    if (sscanf(what, "%ld %15s %15s", &armed.point, word, ever) < 1)
        abort();
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].word, word) == 0) {
            armed.mode = modes[i].mode;
            armed.error = modes[i].error;
        }
    if (word[0] != '\0' && armed.mode == COUNT)
        abort();
    armed.ever = strcmp(ever, "ever") == 0;
    armed.on = true;
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static bool chosen(long n)
{
    if (armed.point == 0 || n < armed.point || (n > armed.point && !armed.ever))
        return false;
    if (armed.error == EINTR && counters->hits >= STORM)
        return false;
    counters->hits++;
    return true;
}

/* Counts a call; false when it is not to be made. */
bool shim_enter(char kind)
{
    armed.now = false;
    if (!armed.on)
        return true;
    int n = ++counters->calls;
    if (n <= DT_FAULT_CALLS)
        counters->kinds[n - 1] = kind;
    armed.now = armed.mode != MEMORY && chosen(n);
    if (armed.now && armed.mode == BEFORE)
        die();
    if (!armed.now || armed.mode != ERROR)
        return true;
    errno = armed.error;
    return false;
}

void shim_leave(void)
{
    if (armed.now && armed.mode != SHORT && armed.mode != ERROR) {
        int error = errno;
        die();
        errno = error;
    }
}

size_t shim_portion(size_t size)
{
    if (!armed.now || size == 0)
        return size;
    switch (armed.mode) {
    case FIRST:
        return 1;
    case HALF:
    case SHORT:
        return size > 1 ? size / 2 : 1;
    case LAST:
        return size > 1 ? size - 1 : 1;
    default:
        return size;
    }
}

/* ---- whose file it is ---- */

static bool below(const char *path)
{
    size_t size = strlen(root);
    return size > 0 && strncmp(path, root, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

static void path_of(int fd, char path[PATH_MAX])
{
    char link[64];
    int error = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = '\0';
    errno = error;
}

bool shim_ours(int fd)
{
    char path[PATH_MAX];
    if (root[0] == '\0' || fd < 0)
        return false;
    path_of(fd, path);
    return below(path);
}

/* The absolute path of name as openat takes it. */
bool shim_ours_at(int fd, const char *name, char path[PATH_MAX])
{
    char base[PATH_MAX] = "";
    if (root[0] == '\0')
        return false;
    if (name[0] != '/' && fd != AT_FDCWD)
        path_of(fd, base);
    else if (name[0] != '/' && getcwd(base, sizeof base) == NULL)
        return false;
    size_t size = strnlen(base, sizeof base), more = strlen(name);
    if (size + more + 2 > PATH_MAX)
        return false;
    memcpy(path, base, size);
    if (name[0] != '/')
        path[size++] = '/';
    memcpy(path + size, name, more + 1);
    return below(path);
}

/* ---- the log ---- */

void shim_note(const char *format, ...)
{
    char line[2 * PATH_MAX + 64];
    int error = errno;
    va_list args;
    if (log_fd < 0)
        return;
    va_start(args, format);
    int size = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (syscall(SYS_write, log_fd, line, (size_t)size) != size)
        abort();
    errno = error;
}

EXPORT void dt_fault_note(const char *text)
{
    shim_note("ack %s\n", text);
}

long shim_inode(int fd)
{
    struct stat info;
    return syscall(SYS_newfstatat, fd, "", &info, AT_EMPTY_PATH) == 0 ? (long)info.st_ino : -1;
}

void shim_note_bytes(int fd, long offset, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    char hex[4096];
    shim_note("write %ld %ld ", shim_inode(fd), offset);
    for (size_t i = 0; i < size;) {
        size_t n = 0;
        for (; i < size && n < sizeof hex - 2; i++) {
            hex[n++] = digits[bytes[i] >> 4];
            hex[n++] = digits[bytes[i] & 15];
        }
        shim_note("%.*s", (int)n, hex);
    }
    shim_note("\n");
}

__attribute__((constructor)) static void start(void)
{
    const char *folder = getenv("FAULT_ROOT"), *log = getenv("FAULT_LOG"),
               *file = getenv("FAULT_SHARED"), *what = getenv("FAULT");
    if (folder != NULL)
        snprintf(root, sizeof root, "%s", folder);
    if (log != NULL) {
        long low = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        log_fd = fcntl((int)low, F_DUPFD_CLOEXEC, 500);
        syscall(SYS_close, (int)low);
    }
    int fd = -1;
    if (file != NULL) {
        fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CREAT, 0600);
        if (fd < 0 || syscall(SYS_ftruncate, fd, sizeof *counters) != 0)
            abort();
    }
    void *view = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE,
                      MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    if (view == MAP_FAILED)
        abort();
    if (fd >= 0)
        syscall(SYS_close, fd);
    counters = view; /* a parent sees those of its children */
    dt_fault_arm(what);
    armed.later = true;
}

bool shim_zeros(void)
{
    return armed.now && armed.mode == ZEROS;
}

bool shim_logs(void)
{
    return log_fd >= 0;
}

static bool refused(void)
{
    if (!armed.on || (armed.later && counters->calls == 0))
        return false;
    counters->allocations++;
    return armed.mode == MEMORY && chosen(counters->allocations);
}

bool shim_may_allocate(void)
{
    if (!refused())
        return true;
    errno = ENOMEM;
    return false;
}

void shim_allocated(int n)
{
    if (armed.on)
        counters->live += n;
}
