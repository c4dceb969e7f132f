/* SPDX-License-Identifier: MIT */
/* The output goes to a file in memory (memfd_create(2)), which nobody must drain while this process waits for a request of the
 * controller. Whose a port is follows from /proc/net/tcp and the descriptors of processes. */
#include "worker/command/server.h"

#include "base/clock.h"
#include "base/figures.h"
#include "base/proc.h"
#include "base/read.h"
#include "worker/command/child.h"
#include "worker/command/memory.h"
#include "worker/command/ports.h"
#include "worker/command/quote.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPT_NS  (5 * DT_NS_PER_SECOND)  /* of an answer to --ready */
#define PAUSE_NS    (DT_NS_PER_SECOND / 20) /* between two of them */
#define DEATH_NS    (DT_NS_PER_SECOND / 2)  /* from a cut connection to the end of its process */
#define GRACE_NS    (3 * DT_NS_PER_SECOND)  /* from TERM to KILL: engines shut their ranks down */
#define LOG_MOST    ((off_t)4 << 20)
#define LOG_KEPT    65536
#define PORTS_TRIED 100

/* ---- job */

dt_status dt_server_job_read(const char *ready, const char *request, struct dt_server_job *job)
{
    snprintf(job->ready.method, sizeof job->ready.method, "GET");
    DT_TRY(dt_url_read(ready, "--ready", &job->ready.url));
    return dt_request_read(request, &job->ready.url, &job->request);
}

void dt_server_job_fini(struct dt_server_job *job)
{
    dt_request_fini(&job->ready);
    dt_request_fini(&job->request);
}

/* ---- ports */

/* A process below this one, or this one. */
static bool is_below(pid_t pid)
{
    struct dt_proc proc;
    for (int depth = 0; pid != getpid() && depth < 1000; depth++) {
        if (pid <= 1 || !dt_proc_read(pid, &proc))
            return false;
        pid = proc.parent;
    }
    return pid == getpid();
}

/* Marks those of the sockets that a process holds. */
static bool holds_any(pid_t pid, const struct dt_sockets *listeners, bool held[DT_SOCKETS_MOST])
{
    struct dt_sockets own;
    bool any = false;
    dt_sockets_of(pid, &own);
    for (int i = 0; i < listeners->count; i++)
        for (int k = 0; k < own.count; k++)
            if (own.inodes[k] == listeners->inodes[i])
                held[i] = any = true;
    return any;
}

/* Every listener is held by a process below this one; otherwise *other is a process that has one and is not, if it can be seen. */
static bool are_ours(const struct dt_sockets *listeners, pid_t *other)
{
    bool ours[DT_SOCKETS_MOST] = {false}, theirs[DT_SOCKETS_MOST] = {false};
    DIR *processes = opendir("/proc");
    *other = 0;
    for (struct dirent *entry; processes != NULL && (entry = readdir(processes)) != NULL;) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        bool below = pid > 0 && is_below(pid);
        if (pid > 0 && holds_any(pid, listeners, below ? ours : theirs) && !below)
            *other = pid;
    }
    if (processes != NULL)
        closedir(processes);
    for (int i = 0; i < listeners->count; i++)
        if (!ours[i])
            return false;
    return true;
}

/* "process 77 (python3)" */
static void name_owner(pid_t owner, char out[64])
{
    struct dt_proc proc;
    if (owner > 0 && dt_proc_read(owner, &proc))
        snprintf(out, 64, "process %d (%s)", (int)proc.pid, proc.name);
    else
        snprintf(out, 64, "a process of another user");
}

/* A port that the system gives; it is free on all addresses of IPv4. */
static int offered_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &size) == 0)
        port = ntohs(address.sin_port);
    if (fd >= 0)
        close(fd);
    return port;
}

/* Nothing listens there yet. */
static dt_status check_free(int port)
{
    struct dt_sockets found;
    pid_t other;
    char owner[64];
    dt_sockets_listening(port, &found);
    if (found.count == 0)
        return DT_OK;
    (void)are_ours(&found, &other);
    name_owner(other, owner);
    return dt_fail(
        DT_FAILED,
        "%s listens on port %d before the server is started: end it, or write {port} for "
        "a free one",
        owner, port);
}

static bool is_taken(int port)
{
    struct dt_sockets found;
    dt_sockets_listening(port, &found);
    return found.count > 0;
}

dt_status dt_server_port(const struct dt_server_job *job, int *port)
{
    const int fixed[] = {job->ready.url.port, job->request.url.port};
    int given = 0;
    for (int i = 0; i < 2; i++)
        if (fixed[i] > 0)
            DT_TRY(check_free(fixed[i]));
    for (int i = 0; i < PORTS_TRIED; i++) {
        given = offered_port();
        if (given > 0 && !is_taken(given))
            break;
    }
    *port = given;
    return given > 0 ? DT_OK : dt_fail(DT_ELIB, "no free port: %s", strerror(errno));
}

bool dt_server_port_taken(const struct dt_server *server)
{
    return is_taken(server->port);
}

/* What listens there belongs to the server. */
static dt_status check_ours(int port)
{
    struct dt_sockets found;
    pid_t other;
    char owner[64];
    dt_sockets_listening(port, &found);
    if (are_ours(&found, &other))
        return DT_OK;
    name_owner(other, owner);
    return dt_fail(DT_FAILED,
                   "port %d is answered by %s, which the server did not start: what answers would "
                   "not be the plan",
                   port, owner);
}

static dt_status check_owner(const struct dt_server *server, const struct dt_server_job *job)
{
    const int fixed[] = {job->ready.url.port, job->request.url.port};
    for (int i = 0; i < 2; i++)
        DT_TRY(check_ours(fixed[i] > 0 ? fixed[i] : server->port));
    return DT_OK;
}

/* ---- output */

/* The end of what the server printed since `from`. */
static void read_log(const struct dt_server *server, off_t from, struct dt_text *out)
{
    static char bytes[LOG_KEPT]; /* a process has one server at a time */
    struct stat info;
    if (fstat(server->log, &info) != 0)
        return;
    if (from > info.st_size || from < info.st_size - LOG_KEPT)
        from = info.st_size > LOG_KEPT ? info.st_size - LOG_KEPT : 0;
    ssize_t got = pread(server->log, bytes, (size_t)(info.st_size - from), from);
    for (ssize_t i = 0; i < got; i++)
        bytes[i] = bytes[i] == 0 ? ' ' : bytes[i];
    if (got > 0)
        dt_text_add_bytes(out, bytes, (size_t)got);
}

void dt_server_tend(struct dt_server *server)
{
    struct stat info;
    struct dt_text end = {0};
    if (server->run.pid == 0 || fstat(server->log, &info) != 0 || info.st_size < LOG_MOST)
        return;
    read_log(server, 0, &end);
    if (ftruncate(server->log, 0) == 0 && write(server->log, dt_text_at(&end), end.size) < 0)
        dt_text_clear(&end); /* its last lines are lost */
    dt_text_fini(&end);
}

/* ---- life */

/* While it starts or is asked. DT_FAILED: it has ended. A server may go to the background: then its first process ends well, and others
 * are left. */
static dt_status attend(void *context)
{
    struct dt_server *server = context;
    DT_TRY(dt_child_beat(server->wire));
    dt_server_tend(server);
    bool left = dt_leftovers_reap(&server->run);
    server->gone = server->run.ended && (server->run.wait_status != 0 || !left);
    return server->gone ? dt_fail(DT_FAILED, "the server has ended") : DT_OK;
}

/* A sentence about its end, or `what` if it runs, with the last lines of its output. */
static dt_status explain(struct dt_server *server, const char *what, const char *when,
                         struct dt_child_output *output)
{
    char tail[300], how[DT_CHILD_HOW];
    read_log(server, server->asked_at, &output->err);
    bool memory = dt_memory_phrase(&output->err) != NULL ||
                  dt_memory_phrase(&output->out) != NULL ||
                  (server->gone && dt_memory_killed(server->run.wait_status, server->kills));
    dt_text_clear(&output->out); /* the tail is that of the log */
    dt_timing_tail(output, tail, sizeof tail);
    dt_status status = memory ? DT_ENOMEM : DT_FAILED;
    if (server->gone) {
        dt_child_how(server->run.wait_status, how);
        return dt_fail(status, "the server %s %s%s%s", how, when,
                       tail[0] != 0 ? DT_QUOTES "; its output ends with: " : " and printed nothing",
                       tail);
    }
    return dt_fail(status, "%s%s%s", what,
                   tail[0] != 0 ? DT_QUOTES "; the server's output ends with: " : "", tail);
}

static dt_status await_ready(struct dt_server *server, const struct dt_server_job *job)
{
    int64_t until = dt_clock_ns() + job->start_ns;
    char last[200] = "nothing listened there";
    for (int64_t left_ns; (left_ns = until - dt_clock_ns()) > 0; dt_clock_sleep_ns(PAUSE_NS)) {
        struct dt_http_answer answer;
        const struct dt_http_wait wait = {left_ns < ATTEMPT_NS ? left_ns : ATTEMPT_NS, attend,
                                          server};
        dt_status status = attend(server);
        if (status < 0)
            return status;
        status = dt_http_ask(&job->ready, server->port, &wait, &answer);
        dt_http_answer_fini(&answer);
        if (status == DT_EDEAD || status == DT_FAILED || status == DT_ENOMEM)
            return status;
        if (status == DT_OK && answer.status / 100 == 2)
            return check_owner(server, job);
        snprintf(last, sizeof last, "%s", status < 0 ? dt_message() : "");
        if (status == DT_OK)
            snprintf(last, sizeof last, "the last answer was %d", answer.status);
    }
    return dt_fail(DT_ETIMEOUT,
                   "the server was not ready within %s (--start-timeout): on port %d, %s",
                   dt_figure_of((double)job->start_ns * 1e-9).text, server->port, last);
}

/* Why it is not ready: it has ended, or ran out of memory, or is still not ready. */
static dt_status explain_start(struct dt_server *server, dt_status status)
{
    struct dt_child_output output = {.wall_ns = 0};
    char what[400];
    snprintf(what, sizeof what, "%s", dt_message());
    dt_status why = explain(server, what, "before it was ready", &output);
    dt_text_fini(&output.out);
    dt_text_fini(&output.err);
    if (status != DT_ETIMEOUT || why == DT_ENOMEM)
        return why;
    return dt_fail(DT_ETIMEOUT, "%s", dt_message());
}

static dt_status spawn(struct dt_server *server, char *const argv[])
{
    server->log = memfd_create("output", MFD_CLOEXEC);
    if (server->log < 0 || fcntl(server->log, F_SETFL, O_APPEND) != 0)
        return dt_fail(DT_ELIB, "cannot keep the output of a server: %s", strerror(errno));
    return dt_child_start(argv, "the server", server->log, server->log, &server->run.pid);
}

dt_status dt_server_start(struct dt_server *server, char *const argv[],
                          const struct dt_server_job *job, struct dt_wire *wire)
{
    struct dt_error error = {DT_OK, ""};
    *server = (struct dt_server){
        .log = -1, .port = server->port, .wire = wire, .kills = dt_memory_kills()};
    dt_status status = spawn(server, argv);
    if (status == DT_OK)
        status = await_ready(server, job);
    if (status == DT_ETIMEOUT || server->gone)
        status = explain_start(server, status);
    if (dt_error_keep(&error, status) == DT_OK)
        return DT_OK;
    dt_error_keep(&error, dt_server_end(server));
    return dt_error_raise(&error);
}

/* A connection may be cut a moment before the process that held it has ended. */
static dt_status await_death(struct dt_server *server)
{
    int64_t until = dt_clock_machine_ns() + DEATH_NS;
    dt_status status = attend(server);
    while (status == DT_OK && dt_clock_machine_ns() < until) {
        dt_clock_sleep_ns(PAUSE_NS);
        status = attend(server);
    }
    return status == DT_FAILED ? DT_OK : status;
}

/* Why a request failed. */
static dt_status explain_answer(struct dt_server *server, dt_status status,
                                const struct dt_http_answer *answer, struct dt_child_output *output)
{
    char what[500], tail[200];
    snprintf(what, sizeof what, "%s", dt_message());
    if (status == DT_OK) {
        dt_timing_tail(output, tail, sizeof tail);
        snprintf(what, sizeof what, "the server answered %d%s%s", answer->status,
                 tail[0] != 0 ? DT_QUOTES ": " : "", tail);
    }
    if (status == DT_EIO)
        DT_TRY(await_death(server));
    return explain(server, what, "while it was asked", output);
}

dt_status dt_server_ask(struct dt_server *server, const struct dt_server_job *job,
                        struct dt_child_output *output)
{
    struct dt_http_answer answer = {.status = 0};
    struct stat info = {.st_size = 0};
    const struct dt_http_wait wait = {job->timeout_ns, attend, server};
    *output = (struct dt_child_output){.wall_ns = 0};
    dt_status status = attend(server);
    if (status == DT_OK) {
        (void)fstat(server->log, &info);
        server->asked_at = info.st_size;
        status = dt_http_ask(&job->request, server->port, &wait, &answer);
    }
    output->out = answer.body;
    output->wall_ns = answer.wall_ns;
    if (status == DT_EDEAD || status == DT_ENOMEM || (status == DT_OK && answer.status / 100 == 2))
        return status;
    if (status == DT_ETIMEOUT)
        return dt_fail(DT_ETIMEOUT, "the server did not answer the request within %s (--timeout)",
                       dt_figure_of((double)job->timeout_ns * 1e-9).text);
    return explain_answer(server, status, &answer, output);
}

/* ---- memory, and its end */

static void add_peak(pid_t pid, void *context)
{
    int64_t *most = context;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    int64_t kibibytes = dt_read_number(path, "VmHWM:");
    *most = kibibytes * 1024 > *most ? kibibytes * 1024 : *most;
}

int64_t dt_server_peak_bytes(const struct dt_server *server)
{
    int64_t most = server->run.peak_bytes;
    dt_proc_below(getpid(), add_peak, &most);
    return most;
}

dt_status dt_server_end(struct dt_server *server)
{
    const struct dt_leftovers_wait wait = {dt_child_beat, server->wire, GRACE_NS};
    dt_status status = server->run.pid > 0 ? dt_leftovers_end(&wait, &server->run) : DT_OK;
    if (server->log > 0)
        close(server->log);
    *server = (struct dt_server){.log = -1, .port = server->port};
    return status;
}
