/* SPDX-License-Identifier: MIT */
/* server - a program that answers requests, started once for a plan and asked again and again
 *
 *     server_port(&job, &server.port);                 -- what {port} stands for in argv
 *     server_start(&server, argv, &job, &wire);        -- ready: it answers at the URL of --ready
 *     server_ask(&server, &job, &output);              -- one request, its time and its answer
 *     server_end(&server);                             -- and with it all that runs below this process
 *
 * One at a time: what it started is found by being below this process (leftovers.h). Its output is
 * kept in memory, the last of it.
 */
#include "worker/command/serve.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/proc.h"
#include "base/read.h"
#include "space/json/json.h"
#include "worker/command/child.h"
#include "worker/command/quote.h"
#include "worker/command/run.h"

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

/* The output goes to a file in memory (memfd_create(2)), which nobody must drain while this process
 * waits for a request of the controller. Whose a port is follows from /proc/net/tcp and the
 * descriptors of processes. */

#define ATTEMPT_NS  (5 * DT_NS_PER_SECOND)  /* limit of an answer to --ready */
#define PAUSE_NS    (DT_NS_PER_SECOND / 20) /* between two of them */
#define DEATH_NS    (DT_NS_PER_SECOND / 2)  /* from a cut connection to the end of its process */
#define GRACE_NS    (3 * DT_NS_PER_SECOND)  /* from TERM to KILL: engines shut their ranks down */
#define LOG_MOST    ((off_t)4 << 20)
#define LOG_KEPT    65536
#define PORTS_TRIED 100

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

/* Every listener is held by a process below this one; otherwise *other is a process that has one
 * and is not, if it can be seen. */
static bool are_ours(const struct dt_sockets *listeners, pid_t *other)
{
    bool ours[DT_SOCKETS_MOST] = {false}, theirs[DT_SOCKETS_MOST] = {false};
    DT_CLEANUP(dt_closedir_at) DIR *processes = opendir("/proc");
    *other = 0;
    for (struct dirent *entry; processes != NULL && (entry = readdir(processes)) != NULL;) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        bool below = pid > 0 && is_below(pid);
        if (pid > 0 && holds_any(pid, listeners, below ? ours : theirs) && !below)
            *other = pid;
    }
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
    DT_CLEANUP(dt_close_at) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                   getsockname(fd, (struct sockaddr *)&address, &size) == 0
               ? ntohs(address.sin_port)
               : 0;
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

/* A free port. DT_FAILED names who listens on one that --ready or the request
 * names instead of {port}. */
static dt_status server_port(const struct dt_server_job *job, int *port)
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

/* Fails unless the listener at the port belongs to the server. */
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

/* Call once in a while between requests: keeps its output small. */
static void server_tend(struct dt_server *server)
{
    struct stat info;
    dt_auto_text end = {0};
    if (server->run.pid == 0 || fstat(server->log, &info) != 0 || info.st_size < LOG_MOST)
        return;
    read_log(server, 0, &end);
    if (ftruncate(server->log, 0) == 0 && write(server->log, dt_text_at(&end), end.size) < 0)
        dt_text_clear(&end); /* its last lines are lost */
}

/* ---- life */

/* While it starts or is asked. DT_FAILED: it has ended. A server may go to the background: then its
 * first process ends well, and others are left. */
static dt_status attend_server(void *context)
{
    struct dt_server *server = context;
    DT_TRY(dt_child_beat(server->wire));
    server_tend(server);
    bool left = dt_leftovers_reap(&server->run);
    server->gone = server->run.ended && (server->run.wait_status != 0 || !left);
    return server->gone ? dt_fail(DT_FAILED, "the server has ended") : DT_OK;
}

/* A sentence about its end, or `what` if it runs, with the last lines of its output. */
static dt_status explain_failure(struct dt_server *server, const char *what, const char *when,
                                 struct dt_child_output *output)
{
    char tail[300], how[DT_CHILD_HOW];
    read_log(server, server->asked_at, &output->err);
    bool memory = dt_memory_named(output) ||
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
        const struct dt_http_wait wait = {left_ns < ATTEMPT_NS ? left_ns : ATTEMPT_NS,
                                          attend_server, server};
        dt_status status = attend_server(server);
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
    dt_status why = explain_failure(server, dt_message(), "before it was ready", &output);
    dt_text_fini(&output.out);
    dt_text_fini(&output.err);
    if (status != DT_ETIMEOUT || why == DT_ENOMEM)
        return why;
    return dt_fail(DT_ETIMEOUT, "%s", dt_message());
}

static dt_status spawn_server(struct dt_server *server, char *const argv[])
{
    server->log = memfd_create("output", MFD_CLOEXEC);
    if (server->log < 0 || fcntl(server->log, F_SETFL, O_APPEND) != 0)
        return dt_fail(DT_ELIB, "cannot keep the output of a server: %s", strerror(errno));
    return dt_child_start(argv, "the server", server->log, server->log, &server->run.pid);
}

/* SIGTERM to all its processes, SIGKILL a little later. Nothing where none was started. */
static dt_status server_end(struct dt_server *server)
{
    const struct dt_leftovers_wait wait = {dt_child_beat, server->wire, GRACE_NS};
    dt_status status = server->run.pid > 0 ? dt_leftovers_end(&wait, &server->run) : DT_OK;
    if (server->log > 0)
        close(server->log);
    *server = (struct dt_server){.log = -1, .port = server->port};
    return status;
}

/* Starts argv and waits until it is ready; a heartbeat goes to the controller once a second.
 * DT_EUSAGE: no such program; DT_FAILED: it ended before, or another program answers on its port;
 * DT_ENOMEM: it ended, and its output speaks of memory; DT_ETIMEOUT: it was not ready in time;
 * DT_EDEAD: the controller has ended. After an error nothing runs any more. */
static dt_status server_start(struct dt_server *server, char *const argv[],
                              const struct dt_server_job *job, struct dt_wire *wire)
{
    struct dt_error error = {DT_OK, ""};
    *server = (struct dt_server){
        .log = -1, .port = server->port, .wire = wire, .kills = dt_memory_kills()};
    dt_status status = spawn_server(server, argv);
    if (status == DT_OK)
        status = await_ready(server, job);
    if (status == DT_ETIMEOUT || server->gone)
        status = explain_start(server, status);
    if (dt_error_keep(&error, status) == DT_OK)
        return DT_OK;
    dt_error_keep(&error, server_end(server));
    return dt_error_raise(&error);
}

/* A connection may be cut a moment before the process that held it has ended. */
static dt_status await_death(struct dt_server *server)
{
    int64_t until = dt_clock_machine_ns() + DEATH_NS;
    dt_status status = attend_server(server);
    while (status == DT_OK && dt_clock_machine_ns() < until) {
        dt_clock_sleep_ns(PAUSE_NS);
        status = attend_server(server);
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
    return explain_failure(server, what, "while it was asked", output);
}

/* One request. output->out is the body of the answer; the caller frees it in any case. DT_FAILED:
 * the status is not 2xx, the answer is no HTTP, the connection was cut, or the server has ended
 * (server->gone); DT_ENOMEM: one of these, and answer or output speak of memory; DT_ETIMEOUT;
 * DT_EDEAD: the controller has ended. */
static dt_status server_ask(struct dt_server *server, const struct dt_server_job *job,
                            struct dt_child_output *output)
{
    struct dt_http_answer answer = {.status = 0};
    struct stat info = {.st_size = 0};
    const struct dt_http_wait wait = {job->timeout_ns, attend_server, server};
    *output = (struct dt_child_output){.wall_ns = 0};
    dt_status status = attend_server(server);
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

#define DT_SERVE_READY "http://127.0.0.1:{port}/health"

#define STARTS_MOST 3 /* starts of a server whose port others take */

json_t *dt_each_rank(int64_t value, int ranks)
{
    json_t *row = json_array();
    for (int i = 0; i < ranks; i++)
        json_array_append_new(row, json_integer(value));
    return row;
}

json_t *dt_prepared(int handle, int ranks, int64_t peak_bytes, int64_t cold_ns)
{
    return json_pack("{s:s,s:i,s:o,s:i,s:o}", "op", "prepared", "handle", handle, "peak_bytes",
                     dt_each_rank(peak_bytes, ranks), "resident_bytes", 0, "cold_ns",
                     dt_each_rank(cold_ns, ranks));
}

static bool has_port(const struct dt_command_line *command)
{
    for (int i = 0; command->words[i] != NULL; i++)
        if (strstr(command->words[i], "{port}") != NULL)
            return true;
    return false;
}

static dt_status read_samples(const char *text, int64_t *samples)
{
    char *end;
    errno = 0;
    *samples = text != NULL ? strtoll(text, &end, 10) : 0;
    if (text != NULL && (*end != 0 || errno != 0 || *samples < 1))
        return dt_fail(DT_EUSAGE, "--requests '%s' is not a number above zero", text);
    return DT_OK;
}

dt_status dt_serve_init(struct dt_serve *serve, const struct dt_serve_options *options,
                        int64_t timeout_ns)
{
    struct dt_server_job *job = &serve->job;
    serve->server.log = -1;
    if (serve->timing->kind == 't' || serve->timing->file != NULL)
        return dt_fail(DT_EUSAGE,
                       "a server's time is read from its answer: --time wall, regex:EXPRESSION or "
                       "json:PATH");
    DT_TRY(read_samples(options->requests, &serve->samples));
    snprintf(job->ready.method, sizeof job->ready.method, "GET");
    DT_TRY(dt_url_read(options->ready != NULL ? options->ready : DT_SERVE_READY, "--ready",
                       &job->ready.url));
    DT_TRY(dt_request_read(options->request, &job->ready.url, &job->request));
    DT_TRY(dt_run_time("--start-timeout",
                       options->start_timeout != NULL ? options->start_timeout : "600",
                       &job->start_ns));
    job->timeout_ns = timeout_ns;
    if (!has_port(serve->command) && (job->ready.url.port == 0 || job->request.url.port == 0))
        return dt_fail(DT_EUSAGE,
                       "the server has no {port}, so it cannot know where to listen: give "
                       "it one, or name the port in --ready");
    return DT_OK;
}

dt_status dt_serve_describe(const struct dt_serve *serve, json_t *hello, json_t *job)
{
    char hash[17];
    dt_request_hash(&serve->job.request, hash);
    bool failed = json_object_set_new(job, "request", json_string(hash)) != 0 ||
                  json_object_set_new(hello, "unit", json_string("request")) != 0 ||
                  json_object_set_new(hello, "alone", json_true()) != 0;
    if (serve->samples > 0)
        failed |= json_object_set_new(hello, "samples", json_integer(serve->samples)) != 0;
    return failed ? dt_fail(DT_ENOMEM, "out of memory") : DT_OK;
}

bool dt_serve_up(const struct dt_serve *serve)
{
    return serve->server.run.pid > 0;
}

const char *dt_serve_kind(const struct dt_serve *serve, dt_status status)
{
    if (status == DT_ETIMEOUT)
        return "hung";
    return status == DT_FAILED && serve->server.gone ? "crashed" : NULL;
}

/* Starts the server of a plan, on another port where others took the one that was free
 * after it was chosen. */
static dt_status start_server(struct dt_serve *serve, const struct dt_point *point)
{
    dt_status status = DT_OK;
    int starts = 0;
    do {
        DT_CLEANUP(dt_line_free_at) char **argv = NULL;
        DT_TRY(server_port(&serve->job, &serve->server.port));
        serve->command->port = serve->server.port;
        DT_TRY(dt_line_fill(serve->command, serve->space, point, &argv));
        status = server_start(&serve->server, argv, &serve->job, serve->wire);
    } while (status == DT_FAILED && ++starts < STARTS_MOST && is_taken(serve->server.port));
    return status;
}

/* cold: of the first request, which is no inverse of a metric. */
static dt_status ask_server(struct dt_serve *serve, bool cold, int64_t *ns)
{
    struct dt_child_output output;
    DT_CLEANUP(dt_times_fini) struct dt_times times = {.count = 0};
    dt_status status = server_ask(&serve->server, &serve->job, &output);
    if (status == DT_OK)
        status = dt_timing_take(serve->timing, &output, dt_child_beat, serve->wire, &times);
    *ns = times.count > 0 ? times.ns[times.count - 1] : 0;
    if (cold && serve->timing->metric != NULL)
        *ns = output.wall_ns;
    dt_text_fini(&output.out);
    dt_text_fini(&output.err);
    return status;
}

/* The first request is the cold step. */
static dt_status serve_prepare(struct dt_serve *serve, const json_t *request, json_t **answer)
{
    json_t *values;
    struct dt_point point;
    int64_t cold_ns = 0;
    struct dt_error error = {DT_OK, ""};
    DT_TRY(dt_json_object(request, "the request", "plan", &values));
    DT_TRY(dt_point_from_json(serve->space, values, &point));
    if (dt_serve_up(serve))
        return dt_fail(DT_ENOMEM,
                       "the server of another plan is up; one at a time has the machine");
    DT_TRY(start_server(serve, &point));
    if (dt_error_keep(&error, ask_server(serve, true, &cold_ns)) < 0) {
        dt_error_keep(&error, server_end(&serve->server));
        return dt_error_raise(&error);
    }
    serve->handle++;
    serve->ranks = dt_plan_ranks(serve->space, &point);
    int64_t peak_bytes = serve->server.run.peak_bytes;
    dt_proc_below(getpid(), add_peak, &peak_bytes);
    *answer = dt_prepared(serve->handle, serve->ranks, peak_bytes, cold_ns);
    return DT_OK;
}

static dt_status check_handle(const struct dt_serve *serve, const json_t *request)
{
    int64_t handle;
    DT_TRY(dt_json_int(request, "the request", "handle", 1, INT32_MAX, &handle));
    if (handle != serve->handle || !dt_serve_up(serve))
        return dt_fail(DT_EPROTO, "no plan of handle %lld is resident", (long long)handle);
    return DT_OK;
}

static dt_status serve_run(struct dt_serve *serve, const json_t *request, json_t **answer)
{
    int64_t n, ns;
    DT_TRY(check_handle(serve, request));
    DT_TRY(dt_json_int(request, "the request", "n", 1, 1 << 20, &n));
    json_t *rows = json_array();
    *answer = json_pack("{s:s,s:i,s:o}", "op", "samples", "handle", serve->handle, "ns", rows);
    for (int64_t i = 0; i < n; i++) {
        DT_TRY(ask_server(serve, false, &ns));
        json_array_append_new(rows, dt_each_rank(ns, serve->ranks));
    }
    return DT_OK;
}

static dt_status serve_release(struct dt_serve *serve, const json_t *request, json_t **answer)
{
    DT_TRY(check_handle(serve, request));
    DT_TRY(server_end(&serve->server));
    *answer = json_pack("{s:s,s:i}", "op", "released", "handle", serve->handle);
    return DT_OK;
}

dt_status dt_serve_answer(struct dt_serve *serve, const json_t *request, json_t **answer)
{
    const char *op = dt_wire_op(request);
    return strcmp(op, "prepare") == 0 ? serve_prepare(serve, request, answer)
           : strcmp(op, "run") == 0   ? serve_run(serve, request, answer)
           : strcmp(op, "release") == 0
               ? serve_release(serve, request, answer)
               : dt_fail(DT_EPROTO,
                         "unknown request '%.40s'; this worker knows prepare, run and release", op);
}

void dt_serve_tend(struct dt_serve *serve)
{
    server_tend(&serve->server);
}

void dt_serve_fini(struct dt_serve *serve)
{
    dt_status status = dt_serve_up(serve) ? server_end(&serve->server) : DT_OK;
    (void)status; /* the controller ends the rest */
    dt_request_fini(&serve->job.ready);
    dt_request_fini(&serve->job.request);
}
