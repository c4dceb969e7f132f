/* SPDX-License-Identifier: MIT */
/* fake_int - the ranks of a fake and what travels between them, as its comm and its life cycle share them */
#ifndef DT_KERNELS_COMM_FAKE_INT_H
#define DT_KERNELS_COMM_FAKE_INT_H

#include "base/text.h"
#include "kernels/fake.h"

#include <pthread.h>
#include <stdbool.h>

struct dt_fake_message {
    struct dt_fake_message *next;
    uint64_t comm, call;
    int from, to;      /* world ranks */
    int64_t posted_ns; /* virtual */
    bool lost;
    size_t bytes;
    char data[];
};

struct dt_fake_rank {
    struct dt_comm *world;
    int64_t clock_ns, exposed_ns;
    int exchanges;
    struct dt_text log;
};

struct dt_fake {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct dt_fake_message *messages;
    bool broken; /* an exchange failed: nobody waits any more */
    struct dt_fake_options options;
    int count;
    struct dt_fake_rank ranks[];
};

extern const struct dt_comm_ops dt_comm_fake_ops;

/* The comm `id` of the `size` world ranks members[], as its member `rank` sees it. */
dt_status dt_fake_member(struct dt_fake *fake, uint64_t id, int size, int rank, const int members[],
                         struct dt_comm **out) DT_MUST_CHECK;

#endif
