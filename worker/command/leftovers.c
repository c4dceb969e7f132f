/* SPDX-License-Identifier: MIT */
/* This process is a child subreaper (prctl(2)), so whatever a program leaves becomes its child
 * sooner or later: a loop over base/proc.h's walk and wait until no child is left misses none. A
 * process of another user cannot be signalled, and none is below an unprivileged worker. Processor
 * time is read by the process's own clock, which has nanoseconds where /proc has ticks. */
#include "worker/command/leftovers.h"
#include "base/clock.h"
#include "base/proc.h"
#include "base/read.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define DT_LEFTOVERS_CORES 0.05 /* a process that keeps more of a core busy disturbs the next run */

/* ports - who listens where, by /proc/net/tcp, /proc/net/tcp6 and the descriptors
 * of processes (proc(5)) */

#define LISTENING 0x0A /* state of a socket in /proc/net/tcp */

void dt_sockets_of(pid_t pid, struct dt_sockets *out)
{
    char path[64], link[320], name[64];
    out->count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DT_CLEANUP(dt_closedir_at) DIR *open_ones = opendir(path);
    for (struct dirent *entry; open_ones != NULL && out->count < DT_SOCKETS_MOST &&
                               (entry = readdir(open_ones)) != NULL;) {
        snprintf(link, sizeof link, "%s/%s", path, entry->d_name);
        ssize_t size = readlink(link, name, sizeof name - 1);
        name[size > 0 ? size : 0] = '\0';
        out->count += sscanf(name, "socket:[%lu]", &out->inodes[out->count]) == 1;
    }
}

/* Calls `listens` for each listening socket of a table, until it returns false. */
static void walk_sockets(const char *path,
                         bool (*listens)(int port, unsigned long inode, void *context),
                         void *context)
{
    char line[512];
    bool more = true;
    DT_CLEANUP(dt_fclose_at) FILE *file = fopen(path, "re");
    while (file != NULL && more && fgets(line, sizeof line, file) != NULL) {
        unsigned port, state;
        unsigned long inode;
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*d %*d %lu",
                   &port, &state, &inode) == 3 &&
            state == LISTENING)
            more = listens((int)port, inode, context);
    }
}

struct search {
    int port;
    struct dt_sockets *sockets;
};

static bool keep_socket(int port, unsigned long inode, void *context)
{
    struct search *search = context;
    if (port == search->port && search->sockets->count < DT_SOCKETS_MOST)
        search->sockets->inodes[search->sockets->count++] = inode;
    return true;
}

void dt_sockets_listening(int port, struct dt_sockets *out)
{
    struct search search = {port, out};
    out->count = 0;
    walk_sockets("/proc/net/tcp", keep_socket, &search);
    walk_sockets("/proc/net/tcp6", keep_socket, &search);
}

static bool find_port(int port, unsigned long inode, void *context)
{
    struct search *search = context;
    for (int i = 0; i < search->sockets->count; i++)
        if (search->sockets->inodes[i] == inode)
            search->port = port;
    return search->port == 0;
}

/* The TCP port on which one of a process's sockets listens, in its own network
 * name space; 0: none. */
static int sockets_port(pid_t pid)
{
    static const char *const tables[] = {"tcp", "tcp6"};
    struct dt_sockets sockets;
    dt_sockets_of(pid, &sockets);
    struct search search = {0, &sockets};
    for (int i = 0; i < 2 && search.port == 0 && sockets.count > 0; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, tables[i]);
        walk_sockets(path, find_port, &search);
    }
    return search.port;
}

#define SETTLE_NS   (DT_NS_PER_SECOND / 10)
#define TICK_NS     (2 * DT_NS_PER_SECOND / 1000)
#define KILL_NS     (20 * DT_NS_PER_SECOND / 1000) /* between two KILLs of all */
#define PATIENCE_NS (10 * DT_NS_PER_SECOND)
#define WATCHED     1024
#define LONG_NS     (10 * DT_NS_PER_SECOND) /* a life so long that its start says little */

void dt_leftovers_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

bool dt_leftovers_reap(struct dt_program_run *program)
{
    struct rusage usage;
    int wait_status;
    for (;;) {
        pid_t pid = wait4(-1, &wait_status, WNOHANG, &usage);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return pid == 0;
        int64_t bytes = (int64_t)usage.ru_maxrss * 1024;
        program->peak_bytes = bytes > program->peak_bytes ? bytes : program->peak_bytes;
        if (pid == program->pid) {
            program->ended = true;
            program->wait_status = wait_status;
        }
    }
}

/* ---- what is left, and what it does */

struct watched {
    struct dt_proc proc;
    int64_t first_ns; /* processor time at the first look */
    int looks, running;
    bool there;
};

struct watch {
    struct watched at[WATCHED];
    int count, below; /* below: all of them at the last walk */
};

/* Processor time of a process so far, all its threads; -1: it has ended. */
static int64_t processor_ns(pid_t pid)
{
    clockid_t id;
    struct timespec time;
    if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &time) != 0)
        return -1;
    return (int64_t)time.tv_sec * DT_NS_PER_SECOND + time.tv_nsec;
}

static void look_at(pid_t pid, void *context)
{
    struct watch *watch = context;
    struct watched *watched = NULL;
    struct dt_proc proc;
    if (!dt_proc_read(pid, &proc) || proc.state == 'Z')
        return;
    watch->below++;
    for (int i = 0; i < watch->count && watched == NULL; i++)
        if (watch->at[i].proc.pid == pid && watch->at[i].proc.start == proc.start)
            watched = &watch->at[i];
    if (watched == NULL) {
        if (watch->count == WATCHED)
            return;
        watched = &watch->at[watch->count++];
        *watched = (struct watched){.first_ns = processor_ns(pid)};
    }
    watched->proc = proc;
    watched->looks++;
    watched->running += proc.state == 'R';
    watched->there = true;
}

static void look_for_listeners(struct watch *watch)
{
    watch->below = 0;
    for (int i = 0; i < watch->count; i++)
        watch->at[i].there = false;
    dt_proc_below(getpid(), look_at, watch);
}

/* Nanoseconds since a process began. */
static int64_t age_ns(const struct dt_proc *proc)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    double began = (double)proc->start / (double)sysconf(_SC_CLK_TCK);
    return (int64_t)(((double)now.tv_sec - began) * 1e9) + now.tv_nsec;
}

/* Cores that a process keeps busy: while it was watched, over its life if that was long, and by how
 * often it could run, since on a busy machine it waits for a core. */
static double busy_cores(const struct watched *watched, int64_t watched_ns)
{
    int64_t used_ns = processor_ns(watched->proc.pid), lived_ns = age_ns(&watched->proc);
    double most = watched->looks >= 4 && 2 * watched->running > watched->looks
                      ? (double)watched->running / watched->looks
                      : 0;
    if (used_ns < 0)
        return most;
    double now = watched->first_ns >= 0 && watched_ns > 0
                     ? (double)(used_ns - watched->first_ns) / (double)watched_ns
                     : 0;
    double life = lived_ns > LONG_NS ? (double)used_ns / (double)lived_ns : 0;
    most = now > most ? now : most;
    return life > most ? life : most;
}

dt_status dt_leftovers_find(const struct dt_leftovers_wait *wait, struct dt_program_run *program,
                            struct dt_leftovers *found)
{
    static struct watch watch; /* one program at a time */
    int64_t began = dt_clock_machine_ns(), now = began;
    *found = (struct dt_leftovers){0};
    watch.count = 0;
    while (dt_leftovers_reap(program) && now < began + SETTLE_NS) {
        look_for_listeners(&watch);
        DT_TRY(wait->tick(wait->context));
        dt_clock_sleep_ns(TICK_NS);
        now = dt_clock_machine_ns();
    }
    look_for_listeners(&watch);
    found->count = watch.below;
    for (int i = 0, n = 0; i < watch.count; i++) {
        const struct watched *watched = &watch.at[i];
        if (!watched->there)
            continue;
        struct dt_leftover one = {.pid = watched->proc.pid,
                                  .port = sockets_port(watched->proc.pid),
                                  .cores = busy_cores(watched, now - began)};
        memcpy(one.name, watched->proc.name, sizeof one.name);
        bool harmful = one.port > 0 || one.cores > DT_LEFTOVERS_CORES;
        if (n < DT_LEFTOVERS_NAMED)
            found->named[n++] = one;
        else if (harmful) /* the last name gives way */
            found->named[n - 1] = one;
    }
    return DT_OK;
}

/* ---- their end */

static void send_one(pid_t pid, void *context)
{
    kill(pid, *(const int *)context);
}

static void send_all(int number)
{
    dt_proc_below(getpid(), send_one, &number);
}

static void find_running(pid_t pid, void *context)
{
    struct dt_proc *found = context, proc;
    if (found->pid == 0 && dt_proc_read(pid, &proc) && proc.state != 'Z')
        *found = proc;
}

static dt_status give_up(void)
{
    struct dt_proc stuck = {.pid = 0};
    dt_proc_below(getpid(), find_running, &stuck);
    return dt_fail(DT_FAILED,
                   "process %d (%s) of the run does not end; its state is %c. It may hold memory "
                   "and devices",
                   (int)stuck.pid, stuck.name, stuck.state != '\0' ? stuck.state : '?');
}

dt_status dt_leftovers_end(const struct dt_leftovers_wait *wait, struct dt_program_run *program)
{
    if (!dt_leftovers_reap(program))
        return DT_OK;
    int64_t began = dt_clock_machine_ns(), kill_at = began + wait->grace_ns, again = kill_at;
    dt_status status = DT_OK;
    if (wait->grace_ns > 0) {
        send_all(SIGTERM);
        send_all(SIGCONT);
    }
    while (dt_leftovers_reap(program)) {
        int64_t now = dt_clock_machine_ns();
        if (status == DT_OK && (status = wait->tick(wait->context)) < 0)
            again = kill_at = now;
        if (now >= again) {
            send_all(SIGKILL);
            again = now + KILL_NS;
        }
        if (now >= kill_at + PATIENCE_NS)
            return status < 0 ? status : give_up();
        dt_clock_sleep_ns(TICK_NS);
    }
    return status;
}

dt_status dt_leftovers_refuse(const struct dt_leftovers *found, bool any)
{
    for (int i = 0; i < found->count && i < DT_LEFTOVERS_NAMED; i++) {
        const struct dt_leftover *one = &found->named[i];
        if (one->port > 0)
            return dt_fail(DT_FAILED,
                           "it left process %d (%s) behind, which listened on port %d and would "
                           "answer for later plans; it was ended",
                           (int)one->pid, one->name, one->port);
        if (one->cores > DT_LEFTOVERS_CORES)
            return dt_fail(DT_FAILED,
                           "it left process %d (%s) behind, which kept %.2f of a core busy; it was "
                           "ended",
                           (int)one->pid, one->name, one->cores);
    }
    if (found->count > 0 && any)
        return dt_fail(DT_FAILED, "it left process %d (%s) behind (--leftovers fail); it was ended",
                       (int)found->named[0].pid, found->named[0].name);
    return DT_OK;
}

void dt_leftovers_names(const struct dt_leftovers *found, struct dt_text *out)
{
    for (int i = 0; i < found->count && i < DT_LEFTOVERS_NAMED; i++) {
        bool twice = false;
        for (int k = 0; k < i; k++)
            twice = twice || strcmp(found->named[k].name, found->named[i].name) == 0;
        if (!twice)
            dt_text_add(out, "%s%s", i > 0 ? ", " : "", found->named[i].name);
    }
}
