/* SPDX-License-Identifier: MIT */
/* Descendants are found through /proc/<pid>/task/<tid>/children, walked from the supervisor down; whoever loses its parent
 * becomes a child of the supervisor, so a loop until no child is left misses no one. */
#include "tuner/process/supervisor.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 20   /* while it kills */
#define REST_MS 1000 /* while all is well: samples are being taken */
#define DEEPEST 64

struct ward {
    pid_t program;
    int control, status;
    int ended; /* readable when the program has ended (pidfd_open), or -1 */
    bool reported;
    int64_t kill_at; /* 0: not asked to end; otherwise KILL from then on */
};

static void signal_below(pid_t pid, int number, int depth);

/* Signals the children of one thread, listed in a file. */
static void signal_children(const char *path, int number, int depth)
{
    FILE *file = fopen(path, "re");
    int child;
    while (file != NULL && fscanf(file, "%d", &child) == 1) {
        signal_below(child, number, depth + 1);
        kill(child, number);
    }
    if (file != NULL)
        fclose(file);
}

static void signal_below(pid_t pid, int number, int depth)
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
        signal_children(children, number, depth);
    }
    if (threads != NULL)
        closedir(threads);
}

/* Reaps what ended and reports the program's end. False when no child is left. */
static bool reap(struct ward *ward)
{
    for (;;) {
        int wait_status;
        pid_t pid = waitpid(-1, &wait_status, WNOHANG);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return pid == 0;
        if (pid == ward->program && !ward->reported) {
            ward->reported =
                write(ward->status, &wait_status, sizeof wait_status) == sizeof wait_status;
            ward->reported = true;
            ward->kill_at =
                ward->kill_at != 0 ? ward->kill_at : 1; /* what it left behind goes too */
        }
    }
}

/* A request is the grace in nanoseconds; the end of the pipe is a request without grace. */
static void listen_to(struct ward *ward)
{
    int64_t grace = 0;
    struct pollfd pollers[2] = {{.fd = ward->control, .events = POLLIN},
                                {.fd = ward->reported ? -1 : ward->ended, .events = POLLIN}};
    if (poll(pollers, 2, ward->kill_at != 0 ? TICK_MS : REST_MS) <= 0 || pollers[0].revents == 0)
        return;
    if (read(ward->control, &grace, sizeof grace) != (ssize_t)sizeof grace) {
        ward->kill_at = 1;
        close(ward->control);
        ward->control = -1;
        return;
    }
    signal_below(getpid(), SIGTERM, 0);
    signal_below(getpid(), SIGCONT, 0);
    ward->kill_at = dt_clock_machine_ns() + grace;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    remove(path); /* what cannot be removed is no reason to leave the rest */
    return 0;
}

static void watch(struct ward *ward, const char folders[DT_SUPERVISOR_FOLDERS][256])
{
    while (reap(ward)) {
        if (ward->kill_at != 0 && dt_clock_machine_ns() >= ward->kill_at)
            signal_below(getpid(), SIGKILL, 0);
        if (ward->control >= 0)
            listen_to(ward);
        else
            dt_clock_sleep_ns(TICK_MS * 1000000LL);
    }
    for (int i = 0; i < DT_SUPERVISOR_FOLDERS; i++)
        if (folders[i][0] != '\0')
            nftw(folders[i], remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

static void run_program(const char *path, char *const argv[], char *const envp[])
{
    struct rlimit none = {0, 0};
    sigset_t empty;
    sigemptyset(&empty);
    sigprocmask(SIG_SETMASK, &empty, NULL);
    for (int number = 1; number < 32; number++)
        signal(number, SIG_DFL);
    setrlimit(RLIMIT_CORE, &none);
    execve(path, argv, envp);
    dprintf(STDERR_FILENO, "cannot execute %s: %s\n", path, strerror(errno));
    _exit(127);
}

/* Closes the descriptors first to last, both included; one by one where the kernel has no close_range (before 5.9). */
static void close_from_to(unsigned first, unsigned last)
{
    if (first > last || close_range(first, last, 0) == 0)
        return;
    DIR *open_ones = opendir("/proc/self/fd");
    for (struct dirent *entry; open_ones != NULL && (entry = readdir(open_ones)) != NULL;) {
        int fd = atoi(entry->d_name);
        if ((unsigned)fd >= first && (unsigned)fd <= last && fd != dirfd(open_ones))
            close(fd);
    }
    if (open_ones != NULL)
        closedir(open_ones);
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Keeps the three standard descriptors and these, and closes all others, so that no pipe of another group stays open here. */
static void close_others(int keep[], size_t n)
{
    unsigned first = 3;
    qsort(keep, n, sizeof keep[0], ascending);
    for (size_t i = 0; i < n; i++) {
        if (keep[i] < (int)first)
            continue;
        close_from_to(first, (unsigned)keep[i] - 1);
        first = (unsigned)keep[i] + 1;
    }
    close_from_to(first, UINT_MAX);
}

struct pipes {
    int in[2], out[2], err[2], control[2], status[2];
};

static void supervise(const char *path, char *const argv[], char *const envp[],
                      const char folders[DT_SUPERVISOR_FOLDERS][256], const struct pipes *pipes)
{
    struct ward ward = {.control = pipes->control[0], .status = pipes->status[1]};
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    ward.program = fork();
    if (ward.program == 0) {
        dup2(pipes->in[0], STDIN_FILENO);
        dup2(pipes->out[1], STDOUT_FILENO);
        dup2(pipes->err[1], STDERR_FILENO);
        close_others((int[]){-1}, 1);
        run_program(path, argv, envp);
    }
    ward.ended = (int)syscall(SYS_pidfd_open, ward.program, 0);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    close_others((int[]){ward.control, ward.status, ward.ended}, 3);
    watch(&ward, folders);
}

static bool open_pipes(struct pipes *pipes)
{
    int(*each[])[2] = {&pipes->in, &pipes->out, &pipes->err, &pipes->control, &pipes->status};
    for (int i = 0; i < 5; i++)
        if (pipe2(*each[i], O_CLOEXEC) != 0) {
            while (i-- > 0) {
                close((*each[i])[0]);
                close((*each[i])[1]);
            }
            return false;
        }
    return true;
}

dt_status dt_supervisor_start(const char *path, char *const argv[], char *const envp[],
                              const char folders[DT_SUPERVISOR_FOLDERS][256],
                              struct dt_supervised *out)
{
    struct pipes pipes;
    if (!open_pipes(&pipes))
        return dt_fail(DT_ELIB, "cannot make pipes for a worker: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        supervise(path, argv, envp, folders, &pipes);
    close(pipes.in[0]);
    close(pipes.out[1]);
    close(pipes.err[1]);
    close(pipes.control[0]);
    close(pipes.status[1]);
    *out = (struct dt_supervised){.pid = pid,
                                  .control = pipes.control[1],
                                  .status = pipes.status[0],
                                  .to = pipes.in[1],
                                  .from = pipes.out[0],
                                  .messages = pipes.err[0]};
    if (pid < 0) {
        dt_supervisor_stop(out, 0);
        return dt_fail(DT_ELIB, "cannot fork: %s", strerror(errno));
    }
    return DT_OK;
}

bool dt_supervisor_ended(struct dt_supervised *supervised, int *wait_status)
{
    struct pollfd poller = {.fd = supervised->status, .events = POLLIN};
    return poll(&poller, 1, 0) == 1 && read(supervised->status, wait_status, sizeof *wait_status) ==
                                           (ssize_t)sizeof *wait_status;
}

void dt_supervisor_stop(struct dt_supervised *supervised, int64_t grace_ns)
{
    int wait_status;
    bool asked = supervised->pid > 0 && grace_ns > 0 &&
                 write(supervised->control, &grace_ns, sizeof grace_ns) == (ssize_t)sizeof grace_ns;
    if (!asked)
        close(supervised->control); /* the end of the pipe: no grace */
    close(supervised->to);
    close(supervised->from);
    close(supervised->messages);
    while (supervised->pid > 0 && waitpid(supervised->pid, &wait_status, 0) < 0 && errno == EINTR)
        ;
    close(supervised->status);
    if (asked)
        close(supervised->control);
    supervised->pid = 0;
}
