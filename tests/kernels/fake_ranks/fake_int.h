/* SPDX-License-Identifier: MIT */
/* fake_int - the ranks and messages of a fake, shared by its files */
#ifndef DT_TESTS_KERNELS_FAKE_RANKS_FAKE_INT_H
#define DT_TESTS_KERNELS_FAKE_RANKS_FAKE_INT_H

#include "base/text.h"
#include "tests/kernels/fake_ranks/fake.h"

#include <pthread.h>
#include <stdbool.h>

struct dt_fake_message {
    struct dt_fake_message *next;
    uint64_t comm, call;
    int from, to;      /* world ranks */
    int index;         /* index among the messages of this call between the two */
    int64_t posted_ns; /* virtual */
    bool lost;
    size_t bytes;
    char data[];
};

struct dt_fake_rank {
    struct dt_comm *world;
    int64_t clock_ns, exposed_ns;
    int exchanges;
    struct dt_text log, order;
};

/* Outstanding receives of a posted exchange; owned by the seat until the wait. */
struct dt_fake_pending {
    struct dt_fake_pending *next;
    uint64_t call;
    int number; /* number of the exchange on this rank */
    int count;
    struct dt_message recvs[];
};

/* One rank's view of a comm. */
struct dt_fake_seat {
    struct dt_fake *fake;
    uint64_t id, calls;
    struct dt_fake_pending *pending;
    int self;      /* world rank */
    int members[]; /* world ranks */
};

struct dt_fake {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct dt_fake_message *messages;
    bool broken; /* an exchange failed: no rank waits any more */
    struct dt_fake_options options;
    int count;
    struct dt_fake_rank ranks[];
};

extern const struct dt_comm_ops dt_comm_fake_ops;

/* put adds the i-th message of a call between two ranks; take waits for it, for at most ten
 * minutes. DT_ETIMEOUT when it was lost, or an exchange or a rank failed elsewhere. */
dt_status dt_fake_put(const struct dt_fake_seat *seat, uint64_t call, int index,
                      const struct dt_message *piece) DT_MUST_CHECK;
dt_status dt_fake_take(const struct dt_fake_seat *seat, uint64_t call, int index, int from,
                       struct dt_fake_message **out) DT_MUST_CHECK;

/* The exchanges of the table. */
dt_status dt_fake_alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                           struct dt_request *request) DT_MUST_CHECK;
dt_status dt_fake_shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                        struct dt_request *request) DT_MUST_CHECK;
dt_status dt_fake_exchange(struct dt_comm *comm, const struct dt_pieces *pieces,
                           struct dt_request *request) DT_MUST_CHECK;
dt_status dt_fake_wait(struct dt_comm *comm, struct dt_request *request) DT_MUST_CHECK;

/* The comm `id` of the `size` world ranks members[], as its member `rank` sees it. */
dt_status dt_fake_member(struct dt_fake *fake, uint64_t id, int size, int rank, const int members[],
                         struct dt_comm **out) DT_MUST_CHECK;

#endif
