/* SPDX-License-Identifier: MIT */
/* requests - the controller's requests, JSON objects in and out (docs/protocol.md)
 *
 * Every rank executes every request: rank 0 reads it from the controller and sends it to the
 * others. A request's function works on its rank, agrees with the others (worker/links.h) after
 * each stage that may fail, and on rank 0 makes the answer.
 *
 * To add a request: write its function and add a row to the table in worker/requests.c (and
 * to docs/protocol.md).
 */
#ifndef DT_WORKER_REQUESTS_H
#define DT_WORKER_REQUESTS_H

#include "worker/rank.h"

/* Executes one request and answers it. Errors are those of the wire or of a broken group. */
dt_status dt_rank_serve(struct dt_rank *self, const json_t *request) DT_MUST_CHECK;

/* The resident plan of a request's "handle". */
dt_status dt_rank_find(struct dt_rank *self, const json_t *request,
                       struct dt_loaded **resident) DT_MUST_CHECK;

/* dt_links_agree after work that exchanges data: a rank that failed has left the others' exchanges
 * open, so the group is broken. */
dt_status dt_rank_settle(struct dt_rank *self, dt_status status, json_t *mine,
                         json_t **parts) DT_MUST_CHECK;

/* Norm and projections of the output of the plan's last step, as `verify` of the request asks.
 * Collective. *verify stays NULL when not asked for, and on ranks other than 0. */
dt_status dt_rank_verify(struct dt_rank *self, const json_t *request,
                         const struct dt_loaded *resident, json_t **verify) DT_MUST_CHECK;

/* A new array of the ranks' `key`. */
json_t *dt_rank_column(const json_t *parts, const char *key);

/* The requests: *answer is a new reference on rank 0, and unchanged elsewhere. */
dt_status dt_request_run(struct dt_rank *self, const json_t *request, json_t **answer);

dt_status dt_request_trace(struct dt_rank *self, const json_t *request, json_t **answer);
dt_status dt_request_exchange(struct dt_rank *self, const json_t *request, json_t **answer);

#endif
