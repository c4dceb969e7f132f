/* SPDX-License-Identifier: MIT */
/* serve - the requests of the protocol for plans of --server: a plan is a server that runs, a
 * step is a request to it
 *
 *     dt_serve_init(&serve, &options, &command, space);
 *     dt_serve_answer(&serve, request, &answer);     -- prepare, run, release
 *     dt_serve_tend(&serve);                         -- once a second between them
 *     dt_serve_fini(&serve);                         -- ends the server
 *
 * One plan at a time: servers take memory, and often cores, while they wait.
 */
#ifndef DT_WORKER_COMMAND_SERVE_H
#define DT_WORKER_COMMAND_SERVE_H

#include "worker/command/http.h"
#include "worker/command/leftovers.h"
#include "worker/command/timing.h"
#include "worker/command/words.h"
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

/* Texts of options; NULL: not given. */
struct dt_serve_options {
    const char *ready, *request, *requests, *start_timeout;
};

struct dt_serve {
    struct dt_command_line *command; /* borrowed, like the next three */
    const struct dt_space *space;
    const struct dt_timing *timing;
    struct dt_wire *wire;
    struct dt_server_job job;
    int64_t samples; /* timed requests of a start, at most; 0: not limited */
    struct dt_server server;
    int handle, ranks; /* the last plan's */
};

/* The command, with {port} or a port in --ready, the request and the times. timeout_ns: of a
 * request. DT_EUSAGE, DT_EIO. Borrows the pointers of *serve, which the caller has set. */
dt_status dt_serve_init(struct dt_serve *serve, const struct dt_serve_options *options,
                        int64_t timeout_ns) DT_MUST_CHECK;

/* The fields of hello that tell what a step is, and that of the job that tells the request. */
dt_status dt_serve_describe(const struct dt_serve *serve, json_t *hello, json_t *job) DT_MUST_CHECK;

/* A plan is up. */
bool dt_serve_up(const struct dt_serve *serve);

/* Answers prepare, run or release. Errors as above, of which dt_serve_kind is
 * the protocol's word. */
dt_status dt_serve_answer(struct dt_serve *serve, const json_t *request,
                          json_t **answer) DT_MUST_CHECK;

/* "hung", "crashed"; NULL: none of these. */
const char *dt_serve_kind(const struct dt_serve *serve, dt_status status);

void dt_serve_tend(struct dt_serve *serve);
void dt_serve_fini(struct dt_serve *serve);

/* [value, ..], one for each rank: a command, or a server, reports one time for all. */
json_t *dt_each_rank(int64_t value, int ranks);

/* The answer to prepare. */
json_t *dt_prepared(int handle, int ranks, int64_t peak_bytes, int64_t cold_ns);

#endif
