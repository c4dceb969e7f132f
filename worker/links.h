/* SPDX-License-Identifier: MIT */
/* links - JSON messages from rank 0 to the other ranks between requests, and agreement of all ranks
 *
 * A socket from rank 0 to every other rank: a parked rank sleeps in poll, which no blocking call of
 * MPI does, and the failure of one rank reaches the others even if the communicator is stuck.
 *
 *     dt_links_send(&links, request);                         -- rank 0; the others: dt_links_receive
 *     status = dt_links_agree(&links, status, mine, &parts);  -- everyone returns the same status
 */
#ifndef DT_WORKER_LINKS_H
#define DT_WORKER_LINKS_H

#include "kernels/comm.h"
#include "worker/wire.h"

#include <stdbool.h>

struct dt_links {
    int rank, size;
    /* owned; rank 0: one per rank, the first unused; others: one, to rank 0 */
    struct dt_wire *wires;
};

/* Connects everyone, with a deadline. one_host: over a Unix socket, else TCP.
 * Collective over world. */
dt_status dt_links_open(struct dt_links *links, struct dt_comm *world, bool one_host) DT_MUST_CHECK;
void dt_links_close(struct dt_links *links);

dt_status dt_links_send(struct dt_links *links, const json_t *message) DT_MUST_CHECK;
/* DT_EDEAD when rank 0 has ended. */
dt_status dt_links_receive(struct dt_links *links, json_t **message) DT_MUST_CHECK;

/* Every rank hands in its status (the sentence of a failure is dt_message) and `mine`, a new
 * reference or NULL. All return the same status and sentence: those of the first rank with a
 * failure of its own (a time-out may be caused by another rank's failure). On rank 0, *parts (may
 * be NULL) is a new array of every rank's `mine` when all is well. */
dt_status dt_links_agree(struct dt_links *links, dt_status status, json_t *mine,
                         json_t **parts) DT_MUST_CHECK;

#endif
