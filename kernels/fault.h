/* SPDX-License-Identifier: MIT */
/* fault - a comm that does one thing wrong, for tests
 *
 * Wraps another comm, and every comm split from it, and on one rank spoils one exchange (an alltoall or a shift among
 * two ranks or more, counted from 1 over all these comms):
 *
 *     flip:rank=1:exchange=5:element=100    negates one float of what was received
 *     crash:rank=1:exchange=5               raises SIGSEGV
 *     exit:rank=1:exchange=5                leaves the process with code 3
 *     hang:rank=1:exchange=5                spins for ever
 *     error:rank=1:exchange=5               returns DT_ELIB
 *
 * To add a fault: one function and one row in kernels/comm/fault.c.
 */
#ifndef DT_KERNELS_FAULT_H
#define DT_KERNELS_FAULT_H

#include "kernels/comm.h"

/* inner is taken over when this succeeds. DT_EUSAGE names what is wrong with spec. */
dt_status dt_comm_fault(struct dt_comm *inner, const char *spec,
                        struct dt_comm **comm) DT_MUST_CHECK;

#endif
