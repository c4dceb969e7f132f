/* SPDX-License-Identifier: MIT */
/* fake - ranks that are threads of one process, with a virtual clock and planted faults, for tests
 *
 * Exchanges move real data. Each rank has a virtual clock: a computation (note) advances it by
 * compute_ns; an exchange that the last partner posted at t is complete at t + delay_ns, and
 * waiting for it advances the clock to then. So tests see exactly how much of an exchange is hidden
 * behind a computation, on any machine.
 *
 *     dt_fake_new(4, &(struct dt_fake_options){.delay_ns = 5000000}, &fake);
 *     dt_fake_run(fake, body, arg, statuses);       -- body(dt_fake_comm(fake, rank), arg) on a thread a rank
 *     dt_fake_log(fake, 0)                          -- "post 0;attention 0;wait 0;..."
 *
 * Exchanges (alltoall, shift and exchange) are counted from 0 on each rank. When one fails, every
 * later wait of every rank fails, too, so no test hangs.
 */
#ifndef DT_TESTS_KERNELS_FAKE_RANKS_FAKE_H
#define DT_TESTS_KERNELS_FAKE_RANKS_FAKE_H

#include "kernels/comm.h"

#include <stdint.h>

enum dt_fake_fault {
    DT_FAKE_NONE,
    DT_FAKE_DROP,    /* the rank's data are lost: waits for them end in DT_ETIMEOUT */
    DT_FAKE_CORRUPT, /* one float sent to others is negated */
    DT_FAKE_ERROR    /* posting fails with DT_ELIB */
};

struct dt_fake_options {
    int64_t delay_ns, compute_ns;
    enum dt_fake_fault fault;
    int fault_rank, fault_exchange;
    int64_t fault_element; /* index among the floats sent to others, modulo their number */
};

struct dt_fake;

dt_status dt_fake_new(int ranks, const struct dt_fake_options *options,
                      struct dt_fake **fake) DT_MUST_CHECK;
void dt_fake_free(struct dt_fake *fake);

/* The comm of all ranks as `rank` sees it; borrowed. */
struct dt_comm *dt_fake_comm(struct dt_fake *fake, int rank);

/* Runs body on one thread per rank and waits for all; statuses[ranks] may be NULL. The
 * first error, or DT_OK. */
dt_status dt_fake_run(struct dt_fake *fake, dt_status (*body)(struct dt_comm *comm, void *arg),
                      void *arg, dt_status statuses[]) DT_MUST_CHECK;

const char *dt_fake_log(const struct dt_fake *fake, int rank); /* "" when nothing happened */
/* Log of posts: "<comm, 16 hex digits> <op> <bytes>;" each, with bytes only where they must
 * be equal on all ranks. */
const char *dt_fake_order(const struct dt_fake *fake, int rank);
int dt_fake_exchanges(const struct dt_fake *fake, int rank);      /* posted so far */
int64_t dt_fake_clock_ns(const struct dt_fake *fake, int rank);   /* virtual */
int64_t dt_fake_exposed_ns(const struct dt_fake *fake, int rank); /* part of it spent in waits */

#endif
