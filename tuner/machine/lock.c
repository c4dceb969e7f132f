/* SPDX-License-Identifier: MIT */
/* Two sessions that run at once disturb each other. A command that measures takes this lock,
 * flock(2) on a file that all users of the machine share, and holds it until its process ends.
 * Nothing is written to the file: the holder is read from /proc, so read permission suffices. */
#include "tuner/machine/machine.h"

#include "base/clock.h"
#include "base/figures.h"
#include "base/json.h"
#include "base/read.h"
#include "base/text.h"
#include "tuner/runner/runner.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define USUAL       "/dev/shm/dittune.lock"
#define WITHOUT_SHM "/tmp/dittune.lock"
#define LOOK_NS     (DT_NS_PER_SECOND / 5)
#define LOOKS       5   /* before a lock with an invisible holder counts as busy */
#define WORDS_MOST  120 /* bytes shown of a command line */
#define WORDS_READ  65536

enum { LOCKS_MOST = 64, NAME_ROOM = 80 }; /* GPUs that have locks of their own */

static const char *lock_path(void)
{
    const char *given = getenv("DITTUNE_LOCK");
    if (given != NULL && given[0] != '\0')
        return given;
    return access("/dev/shm", W_OK | X_OK) == 0 ? USUAL : WITHOUT_SHM;
}

/* Opens the file for reading, which works for files of other users, too. First without O_CREAT,
 * which a sticky folder refuses for such files (fs.protected_regular). -1 with errno. */
static int open_lock(const char *path)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    struct stat info;
    int fd = open(path, flags);
    if (fd < 0 && errno == ENOENT) {
        fd = open(path, flags | O_CREAT | O_EXCL, 0644);
        if (fd >= 0 && fchmod(fd, 0644) != 0) /* whatever the umask says */
            errno = 0;
        if (fd < 0 && errno == EEXIST)
            fd = open(path, flags);
    }
    if (fd >= 0 && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

/* The process that holds the lock; 0 when it is not visible from here (another container).
 * Lines of /proc/locks: "7:
 * FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF", device numbers in hexadecimal. */
static int lock_holder(int fd)
{
    struct stat info;
    FILE *file = fopen("/proc/locks", "re");
    char line[256];
    int found = 0;
    while (file != NULL && found == 0 && fstat(fd, &info) == 0 &&
           fgets(line, sizeof line, file) != NULL) {
        int pid;
        unsigned int major, minor;
        unsigned long long inode;
        if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%llu", &pid, &major, &minor, &inode) == 4 &&
            major == major(info.st_dev) && minor == minor(info.st_dev) && inode == info.st_ino)
            found = pid;
    }
    if (file != NULL)
        fclose(file);
    return found > 0 ? found : 0;
}

/* Empties the commands among the words, each of which ends with NUL, where --private is there, or
 * may be behind what was read. */
static void hide_commands(char words[], size_t size)
{
    static const char *const options[] = {"--command", "--server", "--prepare", "--cleanup"};
    if (size < WORDS_READ && memmem(words, size, "\0--private", sizeof "\0--private") == NULL)
        return;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        for (char *at = words; at < words + size; at += strlen(at) + 1) {
            size_t name = strlen(options[i]);
            if (strncmp(at, options[i], name) != 0 || (at[name] != '\0' && at[name] != '='))
                continue;
            for (at += name + 1; at < words + size && *at != '\0'; at++)
                *at = '.';
            if (at >= words + size) /* the command line ends within an option, or was cut there */
                break;
        }
}

/* "pid 4711 (dittune --budget 2h)" */
static void describe_process(int pid, struct dt_text *out)
{
    char path[64], words[WORDS_READ + 1] = "";
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    size_t size = pid > 0 ? dt_read_head(path, words, sizeof words) : 0;
    hide_commands(words, size);
    size = size < WORDS_MOST ? size : WORDS_MOST;
    if (pid == 0) {
        dt_text_add(out, "another process");
        return;
    }
    dt_text_add(out, "pid %d", pid);
    while (size > 0 && words[size - 1] == '\0')
        size--;
    for (size_t i = 0; i < size; i++)
        words[i] = words[i] == '\0' ? ' ' : words[i];
    words[size] = '\0';
    dt_text_clean(words);
    const char *blank = strchr(words, ' '), *name = words;
    for (const char *at = words; *at != '\0' && at != blank; at++)
        name = *at == '/' ? at + 1 : name;
    if (size > 0)
        dt_text_add(out, " (%s)", name);
}

/* A program of another user's that is no dittune: it may never end, so who
 * reads of it should know. */
static bool is_strange(int pid)
{
    char path[64], name[32] = "";
    struct stat info;
    snprintf(path, sizeof path, "/proc/%d", pid);
    if (pid == 0 || stat(path, &info) != 0 || info.st_uid == geteuid())
        return false;
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    return dt_read_head(path, name, sizeof name) > 0 && strncmp(name, "dittune", 7) != 0;
}

/* "pid 4711 (dittune --budget 2h) is measuring" */
static void describe_holder(const char *path, int pid, struct dt_text *out)
{
    describe_process(pid, out);
    if (is_strange(pid))
        dt_text_add(out, ", which is another user's and no dittune, holds the measuring lock %s",
                    path);
    else
        dt_text_add(out, " is measuring");
}

/* A lock that was asked for. */
struct lock {
    const char *path;
    int fd;
    int noted; /* the holder that was noted last; -1: none */
};

static dt_status busy_status(const struct lock *lock, int64_t patience_ns)
{
    dt_auto_text who = {0};
    describe_holder(lock->path, lock_holder(lock->fd), &who);
    dt_text_add(&who, patience_ns > 0 ? " still, after a --wait of "
                                      : " on this machine, and --no-wait was given");
    if (patience_ns > 0)
        dt_figure_time((double)patience_ns * 1e-9, &who);
    return dt_fail(DT_EBUSY, "%s", dt_text_at(&who));
}

/* Prints the message once for each process that holds the lock. */
static void say_waiting(struct lock *lock, void (*note)(const char *sentence))
{
    dt_auto_text who = {0};
    int pid = lock_holder(lock->fd);
    if (pid == lock->noted)
        return;
    lock->noted = pid;
    describe_holder(lock->path, pid, &who);
    dt_text_add(&who, ": waiting; --no-wait does not wait");
    note(dt_text_at(&who));
}

static void say_unlocked(const char *verb, const char *path, void (*note)(const char *sentence))
{
    dt_auto_text text = {0};
    dt_text_add(&text,
                "warning: cannot %s the measuring lock %s (%s): another session may measure at "
                "the same time",
                verb, path, strerror(errno));
    note(dt_text_at(&text));
}

/* False: another process has it. Where it cannot be locked at all (ENOLCK, EOPNOTSUPP, EINVAL of
 * some file systems), nobody holds it. */
static bool try_lock(const struct lock *lock, void (*note)(const char *sentence))
{
    int failed;
    do {
        failed = flock(lock->fd, LOCK_EX | LOCK_NB);
    } while (failed != 0 && errno == EINTR);
    if (failed != 0 && errno != EWOULDBLOCK)
        say_unlocked("lock", lock->path, note);
    return failed == 0 || errno != EWOULDBLOCK;
}

/* Stays open until the process ends. */
static dt_status take_lock(const char *path, int64_t patience_ns,
                           void (*note)(const char *sentence), bool *waited)
{
    struct lock lock = {.path = path, .fd = open_lock(path), .noted = -1};
    int64_t begin_ns = dt_clock_ns();
    if (lock.fd < 0) {
        say_unlocked("open", path, note);
        return DT_OK;
    }
    for (int looks = 0; !try_lock(&lock, note); looks++) {
        /* a process killed during a fork leaves the lock to its child, which releases it at once */
        bool leaves = looks < LOOKS && lock_holder(lock.fd) == 0;
        bool late = dt_clock_ns() - begin_ns >= patience_ns && !leaves;
        if (late || dt_group_interrupted != 0) {
            dt_status ended = dt_group_interrupted == SIGTERM ? DT_ETERM : DT_EINTR;
            dt_status status = dt_group_interrupted != 0
                                   ? dt_fail(ended, "interrupted while waiting")
                                   : busy_status(&lock, patience_ns);
            close(lock.fd);
            return status;
        }
        if (patience_ns > 0) {
            *waited = true;
            say_waiting(&lock, note);
        }
        dt_clock_sleep_ns(LOOK_NS);
    }
    return DT_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The names of what is measured on, sorted, so that two sessions take their locks in one order: the
 * GPUs, else this machine until it reboots, which its containers name alike. */
static dt_status name_devices(char names[][NAME_ROOM], int *count)
{
    DT_CLEANUP(dt_backend_fini) struct dt_backend gpus = {.cuda = false};
    DT_TRY(dt_backend_find_gpus(&gpus));
    const json_t *cards = json_object_get(gpus.devices, "devices");
    *count = 0;
    for (size_t i = 0; i < json_array_size(cards) && *count < LOCKS_MOST; i++) {
        const char *uuid = dt_json_text_at(json_array_get(cards, i), "uuid");
        if (uuid[0] != '\0')
            snprintf(names[(*count)++], NAME_ROOM, "%s", uuid);
    }
    if (*count == 0 &&
        dt_read_head("/proc/sys/kernel/random/boot_id", names[(*count)++], NAME_ROOM) == 0)
        snprintf(names[0], NAME_ROOM, "machine");
    for (int i = 0; i < *count; i++)
        for (char *at = names[i]; *at != '\0'; at++)
            if (!isalnum((unsigned char)*at) && *at != '-')
                *at = *at == '\n' ? '\0' : '_';
    qsort(names, (size_t)*count, NAME_ROOM, by_name);
    return DT_OK;
}

static dt_status lock_devices(const char *folder, int64_t patience_ns,
                              void (*note)(const char *sentence), bool *waited)
{
    char names[LOCKS_MOST][NAME_ROOM];
    int count = 0;
    DT_TRY(name_devices(names, &count));
    for (int i = 0; i < count; i++) {
        dt_auto_text path = {0};
        dt_text_add(&path, "%s/dittune-%s.lock", folder, names[i]);
        DT_TRY(take_lock(dt_text_at(&path), patience_ns, note, waited));
    }
    return DT_OK;
}

dt_status dt_lock_measuring(int64_t patience_ns, void (*note)(const char *sentence), bool *waited)
{
    const char *path = lock_path();
    struct stat info;
    *waited = false;
    if (strcmp(path, "none") == 0)
        return DT_OK;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return lock_devices(path, patience_ns, note, waited);
    return take_lock(path, patience_ns, note, waited);
}
