/* SPDX-License-Identifier: MIT */
/* server - a program that answers requests, started once for a plan and asked again and again
 *
 *     dt_server_port(&job, &server.port);                 -- what {port} stands for in argv
 *     dt_server_start(&server, argv, &job, &wire);        -- ready: it answers at the URL of --ready
 *     dt_server_ask(&server, &job, &output);              -- one request, its time and its answer
 *     dt_server_end(&server);                             -- and with it all that runs below this process
 *
 * One at a time: what it started is found by being below this process (leftovers.h). Its output is kept in memory, the last of it.
 */
#ifndef DT_WORKER_COMMAND_SERVER_H
#define DT_WORKER_COMMAND_SERVER_H

#include "worker/command/http.h"
#include "worker/command/leftovers.h"
#include "worker/command/timing.h"
#include "worker/wire.h"

struct dt_server_job {
    struct dt_http_request ready; /* a GET; its answer's status is 2xx when the server is ready */
    struct dt_http_request request;
    int64_t start_ns, timeout_ns; /* until it is ready; of a request */
};

struct dt_server {
    struct dt_program_run run; /* pid 0: none is started */
    bool gone;                 /* it has ended, and nothing that it started runs */
    int log;                   /* its standard output and error */
    int64_t asked_at;          /* bytes of it before the last request */
    int64_t kills;             /* dt_memory_kills before it began */
    int port;                  /* that {port} stands for */
    struct dt_wire *wire;
};

/* Reads the URL of --ready and the file of --request. DT_EUSAGE, DT_EIO. The caller frees *job in any case. */
dt_status dt_server_job_read(const char *ready, const char *request,
                             struct dt_server_job *job) DT_MUST_CHECK;
void dt_server_job_fini(struct dt_server_job *job);

/* A free port. DT_FAILED names who listens on one that --ready or the request names instead of {port}. */
dt_status dt_server_port(const struct dt_server_job *job, int *port) DT_MUST_CHECK;

/* Starts argv and waits until it is ready; a heartbeat goes to the controller once a second. DT_EUSAGE: no such program; DT_FAILED: it
 * ended before, or another program answers on its port; DT_ENOMEM: it ended, and its output speaks of memory; DT_ETIMEOUT:
 * it was not ready in time; DT_EDEAD: the controller has ended. After an error nothing runs any more. */
dt_status dt_server_start(struct dt_server *server, char *const argv[],
                          const struct dt_server_job *job, struct dt_wire *wire) DT_MUST_CHECK;

/* Its port was taken by another program after it was chosen: another start on another port may go well. */
bool dt_server_port_taken(const struct dt_server *server);

/* One request. output->out is the body of the answer; the caller frees it in any case. DT_FAILED: the status is not 2xx, the answer is
 * no HTTP, the connection was cut, or the server has ended (server->gone); DT_ENOMEM: one of these, and answer or output speak
 * of memory; DT_ETIMEOUT; DT_EDEAD: the controller has ended. */
dt_status dt_server_ask(struct dt_server *server, const struct dt_server_job *job,
                        struct dt_child_output *output) DT_MUST_CHECK;

/* Of the largest of its processes so far. */
int64_t dt_server_peak_bytes(const struct dt_server *server);

/* Call once in a while between requests: keeps its output small. */
void dt_server_tend(struct dt_server *server);

/* SIGTERM to all its processes, SIGKILL a little later. Nothing where none was started. */
dt_status dt_server_end(struct dt_server *server) DT_MUST_CHECK;

#endif
