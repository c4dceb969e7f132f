/* SPDX-License-Identifier: MIT */
/* Two sessions that run at once disturb each other. A command that measures takes this lock, flock(2) on a file that
 * all users of the machine share, and holds it until its process ends. Nothing is written to the file: the holder is
 * read from /proc, so read permission suffices. */
#include "tuner/machine/machine.h"

#include "base/clock.h"
#include "base/text.h"
#include "tuner/runner/runner.h"

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

static const char *lock_path(void)
{
    const char *given = getenv("DITTUNE_LOCK");
    if (given != NULL && given[0] != '\0')
        return given;
    return access("/dev/shm", W_OK | X_OK) == 0 ? USUAL : WITHOUT_SHM;
}

/* Opens the file for reading, which works for files of other users, too. First without O_CREAT, which a sticky folder
 * refuses for such files (fs.protected_regular). -1 with errno. */
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

/* The process that holds the lock; 0 when it is not visible from here (another container). Lines of /proc/locks: "7:
 * FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF", device numbers in hexadecimal. */
static int holder(int fd)
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

/* Empties the word that follows --command where --private is among the words, each of which ends with NUL. */
static void hide_command(char words[], size_t size)
{
    bool hidden = memmem(words, size, "\0--private", sizeof "\0--private") != NULL;
    static const char option[] = "\0--command"; /* a word or = follows */
    char *at = hidden ? memmem(words, size, option, sizeof option - 1) : NULL;
    if (at != NULL)
        for (at += sizeof option; at < words + size && *at != '\0'; at++)
            *at = '.';
}

/* "pid 4711 (dittune --budget 2h)" */
static void describe(int pid, struct dt_text *out)
{
    char path[64], words[WORDS_READ + 1] = "";
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *file = pid > 0 ? fopen(path, "re") : NULL;
    size_t size = file != NULL ? fread(words, 1, WORDS_READ, file) : 0;
    if (file != NULL)
        fclose(file);
    hide_command(words, size);
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
    if (size == 0)
        return;
    dt_text_add(out, " (");
    dt_text_add(out, "%s", name);
    dt_text_add(out, ")");
}

static dt_status busy(int fd)
{
    struct dt_text who = {0};
    describe(holder(fd), &who);
    dt_status status = dt_fail(DT_EBUSY, "%s is measuring on this machine, and --no-wait was given",
                               dt_text_at(&who));
    dt_text_fini(&who);
    return status;
}

static dt_status interrupted(void)
{
    return dt_fail(dt_group_interrupted == SIGTERM ? DT_ETERM : DT_EINTR,
                   "interrupted while waiting");
}

/* Prints the message once for each process that holds the lock. */
static void say_waiting(int fd, void (*note)(const char *sentence), int *last)
{
    struct dt_text who = {0};
    int pid = holder(fd);
    if (pid == *last)
        return;
    *last = pid;
    describe(pid, &who);
    dt_text_add(&who, " is measuring: waiting; --no-wait does not wait");
    note(dt_text_at(&who));
    dt_text_fini(&who);
}

static void say_unlocked(const char *path, void (*note)(const char *sentence))
{
    struct dt_text text = {0};
    dt_text_add(&text,
                "warning: cannot open the measuring lock %s (%s): another session may measure at "
                "the same time",
                path, strerror(errno));
    note(dt_text_at(&text));
    dt_text_fini(&text);
}

dt_status dt_lock_measuring(bool wait, void (*note)(const char *sentence), bool *waited)
{
    const char *path = lock_path();
    int last = -1;
    *waited = false;
    if (strcmp(path, "none") == 0)
        return DT_OK;
    int fd = open_lock(path); /* stays open until the process ends */
    if (fd < 0) {
        say_unlocked(path, note);
        return DT_OK;
    }
    for (int looks = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; looks++) {
        /* a process killed during a fork leaves the lock to its child, which releases it at once */
        bool leaves = looks < LOOKS && holder(fd) == 0;
        if ((!wait && !leaves) || dt_group_interrupted != 0) {
            dt_status status = dt_group_interrupted != 0 ? interrupted() : busy(fd);
            close(fd);
            return status;
        }
        *waited = wait;
        if (wait)
            say_waiting(fd, note, &last);
        dt_clock_sleep_ns(LOOK_NS);
    }
    return DT_OK;
}
