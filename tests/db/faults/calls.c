/* SPDX-License-Identifier: MIT */
/* The replaced calls. Their letters: o open, c close, r read, w write, s fsync, d fdatasync, n
 * rename, l link, u unlink, m mkdir, t ftruncate, i what only asks. Files opened by fopen and
 * folders read are not seen. */
#include "tests/db/faults/shim_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *old);

static int open_at(int fd, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX];
    if (!shim_ours_at(fd, name, path))
        return (int)syscall(SYS_openat, fd, name, flags, mode);
    if (!shim_enter('o'))
        return -1;
    struct stat info;
    bool fresh = (flags & O_CREAT) != 0 &&
                 syscall(SYS_newfstatat, AT_FDCWD, path, &info, AT_SYMLINK_NOFOLLOW) != 0;
    int got = (int)syscall(SYS_openat, fd, name, flags, mode);
    if (got >= 0 && fresh)
        shim_note("create %ld %s\n", shim_inode(got), path);
    else if (got >= 0 && (flags & O_TRUNC) != 0)
        shim_note("truncate %ld 0\n", shim_inode(got));
    shim_leave();
    return got;
}

#define MODE(mode, flags)                                                                          \
    mode_t mode = 0;                                                                               \
    if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {                                                  \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode = (mode_t)va_arg(args, int);                                                          \
        va_end(args);                                                                              \
    }

EXPORT int open(const char *name, int flags, ...)
{
    MODE(mode, flags)
    return open_at(AT_FDCWD, name, flags, mode);
}

EXPORT int openat(int fd, const char *name, int flags, ...)
{
    MODE(mode, flags)
    return open_at(fd, name, flags, mode);
}

EXPORT int close(int fd)
{
    bool counted = shim_ours(fd), made = !counted || shim_enter('c');
    int error = errno;
    int rc = (int)syscall(SYS_close, fd);
    if (!made) {
        errno = error;
        return -1;
    }
    if (counted)
        shim_leave();
    return rc;
}

EXPORT ssize_t read(int fd, void *bytes, size_t size)
{
    bool counted = shim_ours(fd);
    if (counted && !shim_enter('r'))
        return -1;
    ssize_t got = syscall(SYS_read, fd, bytes, size);
    if (counted)
        shim_leave();
    return got;
}

static ssize_t put(int fd, const void *bytes, size_t size, off_t at, bool anywhere)
{
    static const char zeros[1 << 16];
    struct stat info = {0};
    if (!shim_enter('w'))
        return -1;
    size = shim_portion(size);
    if (shim_zeros()) {
        bytes = zeros;
        size = size < sizeof zeros ? size : sizeof zeros;
    }
    long where = at;
    if (shim_logs() && anywhere) {
        int flags = fcntl(fd, F_GETFL);
        where = syscall(SYS_lseek, fd, 0, SEEK_CUR);
        if ((flags & O_APPEND) != 0 && syscall(SYS_newfstatat, fd, "", &info, AT_EMPTY_PATH) == 0)
            where = info.st_size;
    }
    ssize_t done =
        anywhere ? syscall(SYS_write, fd, bytes, size) : syscall(SYS_pwrite64, fd, bytes, size, at);
    if (done > 0 && shim_logs())
        shim_note_bytes(fd, where, bytes, (size_t)done);
    shim_leave();
    return done;
}

EXPORT ssize_t write(int fd, const void *bytes, size_t size)
{
    return shim_ours(fd) ? put(fd, bytes, size, 0, true) : syscall(SYS_write, fd, bytes, size);
}

EXPORT ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    return shim_ours(fd) ? put(fd, bytes, size, at, false)
                         : syscall(SYS_pwrite64, fd, bytes, size, at);
}

static int sync_one(int fd, char kind, long number)
{
    if (!shim_ours(fd))
        return (int)syscall(number, fd);
    if (!shim_enter(kind))
        return -1;
    int rc = (int)syscall(number, fd);
    if (rc == 0)
        shim_note("sync %ld\n", shim_inode(fd));
    shim_leave();
    return rc;
}

EXPORT int fsync(int fd)
{
    return sync_one(fd, 's', SYS_fsync);
}

EXPORT int fdatasync(int fd)
{
    return sync_one(fd, 'd', SYS_fdatasync);
}

EXPORT int ftruncate(int fd, off_t size)
{
    if (!shim_ours(fd))
        return (int)syscall(SYS_ftruncate, fd, size);
    if (!shim_enter('t'))
        return -1;
    int rc = (int)syscall(SYS_ftruncate, fd, size);
    if (rc == 0)
        shim_note("truncate %ld %ld\n", shim_inode(fd), (long)size);
    shim_leave();
    return rc;
}

EXPORT int renameat2(int from, const char *old, int to, const char *fresh, unsigned flags)
{
    char source[PATH_MAX], target[PATH_MAX];
    if (!shim_ours_at(from, old, source) || !shim_ours_at(to, fresh, target))
        return (int)syscall(SYS_renameat2, from, old, to, fresh, flags);
    if (!shim_enter('n'))
        return -1;
    int rc = (int)syscall(SYS_renameat2, from, old, to, fresh, flags);
    if (rc == 0)
        shim_note("rename %s\t%s\n", source, target);
    shim_leave();
    return rc;
}

EXPORT int renameat(int from, const char *old, int to, const char *fresh)
{
    return renameat2(from, old, to, fresh, 0);
}

EXPORT int rename(const char *old, const char *fresh)
{
    return renameat2(AT_FDCWD, old, AT_FDCWD, fresh, 0);
}

EXPORT int linkat(int from, const char *old, int to, const char *fresh, int flags)
{
    char source[PATH_MAX], target[PATH_MAX];
    if (!shim_ours_at(from, old, source) || !shim_ours_at(to, fresh, target))
        return (int)syscall(SYS_linkat, from, old, to, fresh, flags);
    if (!shim_enter('l'))
        return -1;
    int rc = (int)syscall(SYS_linkat, from, old, to, fresh, flags);
    if (rc == 0)
        shim_note("link %s\t%s\n", source, target);
    shim_leave();
    return rc;
}

EXPORT int link(const char *old, const char *fresh)
{
    return linkat(AT_FDCWD, old, AT_FDCWD, fresh, 0);
}

EXPORT int unlinkat(int fd, const char *name, int flags)
{
    char path[PATH_MAX];
    if (!shim_ours_at(fd, name, path))
        return (int)syscall(SYS_unlinkat, fd, name, flags);
    if (!shim_enter('u'))
        return -1;
    int rc = (int)syscall(SYS_unlinkat, fd, name, flags);
    if (rc == 0)
        shim_note("unlink %s\n", path);
    shim_leave();
    return rc;
}

EXPORT int unlink(const char *name)
{
    return unlinkat(AT_FDCWD, name, 0);
}

EXPORT int mkdirat(int fd, const char *name, mode_t mode)
{
    char path[PATH_MAX];
    if (!shim_ours_at(fd, name, path))
        return (int)syscall(SYS_mkdirat, fd, name, mode);
    if (!shim_enter('m'))
        return -1;
    int rc = (int)syscall(SYS_mkdirat, fd, name, mode);
    if (rc == 0)
        shim_note("mkdir %s\n", path);
    shim_leave();
    return rc;
}

EXPORT int mkdir(const char *name, mode_t mode)
{
    return mkdirat(AT_FDCWD, name, mode);
}

/* ---- what only asks ---- */

static bool asks(bool counted)
{
    return !counted || shim_enter('i');
}

static int asked(bool counted, long rc)
{
    if (counted)
        shim_leave();
    return (int)rc;
}

EXPORT int fstat(int fd, struct stat *info)
{
    bool counted = shim_ours(fd);
    return asks(counted) ? asked(counted, syscall(SYS_newfstatat, fd, "", info, AT_EMPTY_PATH))
                         : -1;
}

EXPORT int fstatat(int fd, const char *name, struct stat *info, int flags)
{
    char path[PATH_MAX];
    bool counted = shim_ours_at(fd, name, path);
    return asks(counted) ? asked(counted, syscall(SYS_newfstatat, fd, name, info, flags)) : -1;
}

EXPORT int stat(const char *name, struct stat *info)
{
    return fstatat(AT_FDCWD, name, info, 0);
}

EXPORT int access(const char *name, int mode)
{
    char path[PATH_MAX];
    bool counted = shim_ours_at(AT_FDCWD, name, path);
    return asks(counted) ? asked(counted, syscall(SYS_faccessat, AT_FDCWD, name, mode)) : -1;
}

EXPORT int flock(int fd, int operation)
{
    bool counted = shim_ours(fd);
    return asks(counted) ? asked(counted, syscall(SYS_flock, fd, operation)) : -1;
}

EXPORT int fstatfs(int fd, struct statfs *info)
{
    bool counted = shim_ours(fd);
    return asks(counted) ? asked(counted, syscall(SYS_fstatfs, fd, info)) : -1;
}

EXPORT int statfs(const char *name, struct statfs *info)
{
    char path[PATH_MAX];
    bool counted = shim_ours_at(AT_FDCWD, name, path);
    return asks(counted) ? asked(counted, syscall(SYS_statfs, name, info)) : -1;
}

/* ---- memory ---- */

EXPORT void *malloc(size_t size)
{
    void *made = shim_may_allocate() ? __libc_malloc(size) : NULL;
    shim_allocated(made != NULL);
    return made;
}

EXPORT void *calloc(size_t n, size_t size)
{
    void *made = shim_may_allocate() ? __libc_calloc(n, size) : NULL;
    shim_allocated(made != NULL);
    return made;
}

EXPORT void *realloc(void *old, size_t size)
{
    void *made = shim_may_allocate() ? __libc_realloc(old, size) : NULL;
    shim_allocated(made != NULL && old == NULL);
    return made;
}

EXPORT void free(void *old)
{
    shim_allocated(-(old != NULL));
    __libc_free(old);
}
