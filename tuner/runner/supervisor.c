/* SPDX-License-Identifier: MIT */
/* Descendants are found through /proc (proc.h), walked from the supervisor down; an orphan becomes
 * a child of the supervisor, so a loop until no child is left misses none. */
#include "tuner/runner/supervisor.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/proc.h"
#include "tuner/runner/pause.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS     20   /* while killing */
#define REST_MS     1000 /* otherwise, since samples may be taken */
#define NOTE        (-1)
#define NOTED_MOST  1024
#define PATIENCE_NS (10 * DT_NS_PER_SECOND) /* freeing much memory takes time */
#define SHORT_NS    DT_NS_PER_SECOND        /* after another group was given up */

extern char **environ;

struct ward {
    pid_t ranks[DT_SUPERVISOR_RANKS]; /* the program's processes; 0: it has ended */
    int count, running;
    struct dt_ended end;
    int control, status;
    int children; /* readable when a child has ended (signalfd) */
    bool reported;
    int64_t kill_at; /* time from which KILL is sent; 0: not requested */
    pid_t noted[NOTED_MOST];
    int noted_count;
};

/* Signals one descendant, and notes its pid; 0 only notes. */
struct knock {
    struct ward *ward;
    int number;
};

static void ward_note(struct ward *ward, pid_t pid)
{
    for (int i = 0; i < ward->noted_count; i++)
        if (ward->noted[i] == pid)
            return;
    if (ward->noted_count < NOTED_MOST)
        ward->noted[ward->noted_count++] = pid;
}

static void knock_at(pid_t pid, void *context)
{
    const struct knock *knock = context;
    ward_note(knock->ward, pid);
    kill(pid, knock->number);
}

static void signal_all(struct ward *ward, int number)
{
    dt_proc_below(getpid(), knock_at, &(struct knock){ward, number});
}

/* When several ended, a signal counts first, then an exit code: a rank that loses another
 * one exits with a code. */
static int status_gravity(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 2 : wait_status != 0;
}

static void take_end(struct ward *ward, pid_t pid, int wait_status)
{
    for (int i = 0; i < ward->count; i++) {
        if (ward->ranks[i] != pid)
            continue;
        ward->ranks[i] = 0;
        ward->running--;
        if (status_gravity(wait_status) > status_gravity(ward->end.status))
            ward->end = (struct dt_ended){i, wait_status};
    }
}

/* The program has ended when all its processes have, or one has failed. */
static void ward_report(struct ward *ward)
{
    if (ward->reported || (ward->running > 0 && ward->end.status == 0))
        return;
    ssize_t put = write(ward->status, &ward->end, sizeof ward->end);
    (void)put; /* a dead controller needs no report */
    ward->reported = true;
    ward->kill_at = ward->kill_at != 0 ? ward->kill_at : 1; /* also ends processes it left behind */
}

/* Reaps what ended and reports the program's end. False when no child is left. */
static bool ward_reap(struct ward *ward)
{
    int wait_status;
    for (;;) {
        pid_t pid = waitpid(-1, &wait_status, WNOHANG);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0) {
            ward_report(ward);
            return pid == 0;
        }
        take_end(ward, pid, wait_status);
    }
}

/* A request is the grace in nanoseconds, or NOTE; the end of the pipe is a
 * request without grace. */
static void listen_to(struct ward *ward)
{
    int64_t request = 0;
    struct pollfd pollers[2] = {{.fd = ward->control, .events = POLLIN},
                                {.fd = ward->children, .events = POLLIN}};
    struct signalfd_siginfo ended;
    int ready = poll(pollers, 2, ward->kill_at != 0 ? TICK_MS : REST_MS);
    if (ready > 0 && pollers[1].revents != 0 &&
        read(ward->children, &ended, sizeof ended) != (ssize_t)sizeof ended) {
        close(ward->children);
        ward->children = -1; /* the period of poll is enough */
    }
    if (ready <= 0 || pollers[0].revents == 0)
        return;
    if (read(ward->control, &request, sizeof request) != (ssize_t)sizeof request) {
        ward->kill_at = 1;
        close(ward->control);
        ward->control = -1;
        return;
    }
    if (request == NOTE) {
        signal_all(ward, 0);
        return;
    }
    signal_all(ward, SIGTERM);
    signal_all(ward, SIGCONT);
    ward->kill_at = dt_clock_machine_ns() + request;
}

/* libomp registers each process in a file, which a killed process leaves behind. */
static void remove_registered(const struct ward *ward)
{
    struct dt_proc proc;
    struct stat info;
    for (int i = 0; i < ward->noted_count; i++) {
        char path[64];
        snprintf(path, sizeof path, "/dev/shm/__KMP_REGISTERED_LIB_%d_%d", (int)ward->noted[i],
                 (int)getuid());
        if (!dt_proc_read(ward->noted[i], &proc) && lstat(path, &info) == 0 &&
            S_ISREG(info.st_mode) && info.st_uid == geteuid())
            unlink(path);
    }
}

static void ward_watch(struct ward *ward, const char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM])
{
    while (ward_reap(ward)) {
        if (ward->kill_at != 0 && dt_clock_machine_ns() >= ward->kill_at)
            signal_all(ward, SIGKILL);
        if (ward->control >= 0)
            listen_to(ward);
        else
            dt_clock_sleep_ns(TICK_MS * 1000000LL);
    }
    remove_registered(ward);
    for (int i = 0; i < DT_SUPERVISOR_FOLDERS; i++)
        dt_folder_remove(folders[i]);
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

/* Weak: a C library may lack it (glibc before 2.34, musl). */
extern int close_range(unsigned first, unsigned last, int flags) __attribute__((weak));

/* Closes the descriptors first to last, both included; one by one where the kernel has no
 * close_range (before 5.9). */
static void close_from_to(unsigned first, unsigned last)
{
    if (first > last || (close_range != NULL && close_range(first, last, 0) == 0))
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

/* Keeps the three standard descriptors and these, and closes all others, so that no pipe of another
 * group stays open here. */
static void close_others(int keep[], size_t n)
{
    unsigned first = 3;
    qsort(keep, n, sizeof keep[0], dt_ascending_int);
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

/* Only rank 0 has the pipes of the protocol. */
static void become_rank(const struct dt_supervisor_program *program, int rank,
                        const struct pipes *pipes)
{
    char number[16];
    environ = (char **)program->envp;
    snprintf(number, sizeof number, "%d", rank);
    if (rank > 0 && (setenv("RANK", number, 1) != 0 || setenv("LOCAL_RANK", number, 1) != 0))
        _exit(127);
    dup2(rank == 0 ? pipes->in[0] : open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(rank == 0 ? pipes->out[1] : pipes->err[1], STDOUT_FILENO);
    dup2(pipes->err[1], STDERR_FILENO);
    close_others((int[]){-1}, 1);
    run_program(program->path, program->argv, environ);
}

static void start_ranks(struct ward *ward, const struct dt_supervisor_program *program,
                        const struct pipes *pipes)
{
    pid_t own = getpid();
    ward->count = ward->running = program->ranks;
    for (int i = 0; i < program->ranks; i++) {
        pid_t pid = fork();
        if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != own))
            _exit(127);
        if (pid == 0)
            become_rank(program, i, pipes);
        ward->ranks[i] = pid;
        if (pid < 0)
            take_end(ward, pid, W_EXITCODE(127, 0));
        else
            ward_note(ward, pid);
    }
}

static void supervise_program(const struct dt_supervisor_program *program,
                              const char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM],
                              const struct pipes *pipes)
{
    struct ward ward = {.control = pipes->control[0], .status = pipes->status[1]};
    sigset_t child;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGCONT); /* so that a stopped supervisor reads the end of its pipe */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    ward.children = signalfd(-1, &child, SFD_CLOEXEC);
    int bound[1], n;
    if (program->parts > 1 && dt_host_bind(program->part, program->parts, 1, bound, &n) != DT_OK)
        _exit(127);
    start_ranks(&ward, program, pipes);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    close_others((int[]){ward.control, ward.status, ward.children}, 3);
    ward_watch(&ward, folders);
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

dt_status dt_supervisor_start(const struct dt_supervisor_program *program,
                              const char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM],
                              struct dt_supervised *out)
{
    struct pipes pipes;
    if (!open_pipes(&pipes))
        return dt_fail(DT_ELIB, "cannot make pipes for a worker: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        supervise_program(program, folders, &pipes);
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
                                  .messages = pipes.err[0],
                                  .patience_ns = PATIENCE_NS};
    memcpy(out->folders, folders, sizeof out->folders);
    if (pid < 0) {
        dt_supervisor_stop(out, 0);
        return dt_fail(DT_ELIB, "cannot fork: %s", strerror(errno));
    }
    return DT_OK;
}

bool dt_supervisor_ended(struct dt_supervised *supervised, struct dt_ended *ended)
{
    struct pollfd poller = {.fd = supervised->status, .events = POLLIN};
    return poll(&poller, 1, 0) == 1 &&
           read(supervised->status, ended, sizeof *ended) == (ssize_t)sizeof *ended;
}

void dt_supervisor_note(struct dt_supervised *supervised)
{
    const int64_t request = NOTE;
    ssize_t put = write(supervised->control, &request, sizeof request);
    (void)put; /* a dead supervisor notes nothing */
}

/* The first descendant that still runs. */
static void find_running(pid_t pid, void *context)
{
    struct dt_proc *found = context, proc;
    if (found->pid == 0 && dt_proc_read(pid, &proc) && proc.state != 'Z')
        *found = proc;
}

static void kill_one(pid_t pid, void *context)
{
    (void)context;
    kill(pid, SIGKILL);
}

/* Reports the process that keeps a group from ending: its supervisor, or a descendant. */
static void report_stuck(const struct dt_supervised *supervised)
{
    struct dt_proc own = {.pid = 0}, below = {.pid = 0};
    dt_proc_below(supervised->pid, kill_one, NULL);
    bool known = dt_proc_read(supervised->pid, &own);
    dt_proc_below(supervised->pid, find_running, &below);
    const struct dt_proc *stuck =
        below.pid == 0 || (known && strchr("DTt", own.state) != NULL) ? &own : &below;
    fprintf(stderr,
            "%sdittune: warning: process %d (%s) of a worker group does not end; its state is "
            "%c%s. It is left behind, and may hold memory and devices\n",
            isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "", (int)stuck->pid, stuck->name,
            stuck->state,
            stuck->state == 'D' ? ": it waits for a device or a file system"
            : stuck->state == 'T' || stuck->state == 't' ? ": it is stopped"
                                                         : "");
}

/* Waits for the end of the supervisor; false when it did not end in time. */
static bool await_supervisor(const struct dt_supervised *supervised, int64_t patience_ns)
{
    struct dt_pause pause = dt_pause_begin();
    int64_t until = pause.looked_ns + patience_ns;
    for (;;) {
        int wait_status = 0;
        pid_t pid = waitpid(supervised->pid, &wait_status, WNOHANG);
        if (pid == supervised->pid || (pid < 0 && errno != EINTR)) {
            bool well = pid > 0 && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
            for (int i = 0; i < DT_SUPERVISOR_FOLDERS && !well; i++)
                dt_folder_remove(supervised->folders[i]);
            return true;
        }
        dt_pause_look(&pause);
        if (pause.looked_ns - pause.paused_ns >= until)
            return false;
        dt_clock_sleep_ns(DT_NS_PER_SECOND / 1000);
    }
}

void dt_supervisor_stop(struct dt_supervised *supervised, int64_t grace_ns)
{
    static bool gave_up;
    bool asked = supervised->pid > 0 && grace_ns > 0 &&
                 write(supervised->control, &grace_ns, sizeof grace_ns) == (ssize_t)sizeof grace_ns;
    if (!asked)
        close(supervised->control); /* the end of the pipe: no grace */
    close(supervised->to);
    close(supervised->from);
    close(supervised->messages);
    if (supervised->pid > 0) {
        kill(supervised->pid, SIGCONT); /* it may be stopped */
        int64_t patience_ns = gave_up ? SHORT_NS : supervised->patience_ns;
        if (!await_supervisor(supervised, grace_ns + patience_ns)) {
            report_stuck(supervised);
            gave_up = true;
        }
    }
    close(supervised->status);
    if (asked)
        close(supervised->control);
    supervised->pid = 0;
}
