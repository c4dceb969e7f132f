/* SPDX-License-Identifier: MIT */
/* fault - a comm with one planted fault
 *
 * Wraps another comm, and every comm split from it, and on one rank makes one exchange faulty (an
 * alltoall or a shift among two ranks or more, counted from 1 over all these comms):
 *
 *     flip:rank=1:exchange=5:element=100    negates one received float
 *     crash:rank=1:exchange=5               raises SIGSEGV
 *     exit:rank=1:exchange=5                leaves the process with code 3
 *     hang:rank=1:exchange=5                spins for ever
 *     error:rank=1:exchange=5               returns DT_ELIB
 *
 * To add a fault: one function and one row in fault.c.
 */
#ifndef DT_TESTS_KERNELS_FAKE_RANKS_FAULT_H
#define DT_TESTS_KERNELS_FAKE_RANKS_FAULT_H

#include "kernels/comm.h"

/* Owns inner on success. DT_EUSAGE names the error in spec. */
dt_status dt_comm_fault(struct dt_comm *inner, const char *spec,
                        struct dt_comm **comm) DT_MUST_CHECK;

#endif
