/* SPDX-License-Identifier: MIT */
/* session - state of one rank of dittune-worker, and its requests
 *
 * Every rank executes every request: rank 0 reads it from the controller and sends it to the others. A request's
 * function works on its rank, agrees with the others (worker/links.h) after each stage that may fail, and on rank 0
 * makes the answer.
 *
 * To add a request: write its function and add a row to the table in worker/requests.c (and to docs/protocol.md).
 */
#ifndef DT_WORKER_SESSION_H
#define DT_WORKER_SESSION_H

#include "kernels/forward.h"
#include "worker/links.h"
#include "worker/seat.h"

#define DT_SESSION_RESIDENTS 16
#define DT_SESSION_TOKEN     8

/* A plan made resident. */
struct dt_loaded {
    int handle; /* 0: a free slot */
    struct dt_plan plan;
    struct dt_pass *pass;
};

struct dt_worker_session {
    struct dt_seat seat;
    struct dt_wire wire; /* to the controller; rank 0 only */
    struct dt_links links;
    const struct dt_compute *compute;
    struct dt_device *device;
    int64_t free_bytes;    /* free memory of the device before the weights */
    int64_t before_bytes;  /* free memory when the last plan was requested */
    struct dt_comm *host;  /* for host memory; owned until world exists */
    struct dt_comm *world; /* owned; for the memory that ranks compute on */
    void *tokens; /* device memory, [2, ranks] of 8 bytes: exchanged to start steps together */
    struct dt_workload workload;
    struct dt_weights *weights; /* from the first prepare on */
    struct dt_loaded residents[DT_SESSION_RESIDENTS];
    int handles; /* number of handles so far */
    bool over;   /* the controller sent quit */
    bool broken; /* a rank is lost in an exchange: no more requests */
    struct dt_phases phases;
};

/* Starts the group: answers hello on rank 0, connects the ranks, sends ready. DT_DONE: quit or the end of the input
 * came first. */
dt_status dt_session_start(struct dt_worker_session *session, int *argc,
                           char ***argv) DT_MUST_CHECK;
void dt_session_fini(struct dt_worker_session *session);

/* Executes one request and answers it. Errors are those of the wire or of a broken group. */
dt_status dt_session_serve(struct dt_worker_session *session, const json_t *request) DT_MUST_CHECK;

/* Sends {"op":"failed",...} with the sentence of the last dt_fail. */
dt_status dt_session_refuse(struct dt_worker_session *session, dt_status why) DT_MUST_CHECK;

/* Call it between steps: sends a heartbeat when nothing was sent for a second. DT_EDEAD when the controller has
 * ended. */
dt_status dt_session_beat(struct dt_worker_session *session) DT_MUST_CHECK;

/* The resident plan of a request's "handle". */
dt_status dt_session_find(struct dt_worker_session *session, const json_t *request,
                          struct dt_loaded **resident) DT_MUST_CHECK;

/* Aligns the ranks before a step: two barriers, since ranks may leave the first as far apart as they came. Work queued
 * on devices is aligned, too, by two small exchanges queued before it. */
dt_status dt_session_align(struct dt_worker_session *session) DT_MUST_CHECK;

/* dt_links_agree after work that exchanges data: a rank that failed has left the others' exchanges open, so the group
 * is broken. */
dt_status dt_session_settle(struct dt_worker_session *session, dt_status status, json_t *mine,
                            json_t **parts) DT_MUST_CHECK;

/* A new array of the ranks' `key`. */
json_t *dt_session_column(const json_t *parts, const char *key);

/* The requests: *answer is a new reference on rank 0, and unchanged elsewhere. */
dt_status dt_request_prepare(struct dt_worker_session *session, const json_t *request,
                             json_t **answer);
dt_status dt_request_run(struct dt_worker_session *session, const json_t *request, json_t **answer);
dt_status dt_request_peak(struct dt_worker_session *session, const json_t *request,
                          json_t **answer);
dt_status dt_request_exchange(struct dt_worker_session *session, const json_t *request,
                              json_t **answer);

#endif
