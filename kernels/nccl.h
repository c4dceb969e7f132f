/* SPDX-License-Identifier: MIT */
/* nccl - ranks on GPUs by NCCL
 *
 * A comm of the host carries control messages (the communicators' ids, splits, gather, broadcast,
 * barrier); NCCL carries the data, on a stream of its own with high priority. All exchanges of a
 * rank are on that one stream in the order in which they were posted, so that order must be the
 * same on all ranks, over all comms. With NCCL_LAUNCH_ORDER_IMPLICIT=1 in the environment (NCCL
 * 2.26 or later) each communicator has a stream of its own, so that exchanges of several do not
 * wait for each other; the order must be the same all the same.
 *
 * Communicators are created by a split, which is collective for NCCL, too, and cached for later
 * plans with the same splits. Of the unused ones the 4 most recently used are kept. Making one may
 * take 120 seconds. An error of NCCL is reported as "communicator lost"; all comms of the rank can
 * then only be aborted and freed.
 *
 * The communicators block, so that a post costs no thread. Every wait for NCCL has a deadline all
 * the same: making and ending communicators happens on threads of its own (DT_ETIMEOUT), and a post
 * that does not return within 60 s ends the process with a sentence and exit code 1.
 *
 * alloc and release are collective over the comm's ranks, in one order.
 */
#ifndef DT_KERNELS_NCCL_H
#define DT_KERNELS_NCCL_H

#include "kernels/comm.h"

#ifdef DT_HAVE_NCCL
/* device is one of dt_compute_cuda, borrowed; host is owned on success. Collective, and creates no
 * communicator yet. DT_ELIB, DT_ENOMEM. */
dt_status dt_comm_nccl(struct dt_comm *host, struct dt_device *device,
                       struct dt_comm **comm) DT_MUST_CHECK;

/* "2.28.9", of the library that is linked. */
const char *dt_comm_nccl_version(void);
#endif

#endif
