/* SPDX-License-Identifier: MIT */
/* nccl - ranks on GPUs by NCCL
 *
 * A comm of the host carries what is not data (the communicators' ids, splits, gather, broadcast, barrier); NCCL carries the
 * rest, on a stream of its own beside the device's, of high priority. All exchanges of a rank are on that one stream in the
 * order in which they were posted, so that order must be the same on all ranks, over all comms.
 *
 * Communicators are made by a split, which is collective over NCCL's part of it too, and kept: a plan of the shape of an
 * earlier one finds them ready. Of those that no comm uses any more the 4 last used stay. Making one may take 120 seconds.
 * Every wait for NCCL has a deadline; an error of NCCL's is told as "communicator lost", and then all comms of the rank are
 * good for nothing but abort and free.
 *
 * alloc and release are collective over the comm's ranks, in one order.
 */
#ifndef DT_KERNELS_NCCL_H
#define DT_KERNELS_NCCL_H

#include "kernels/comm.h"

#ifdef DT_HAVE_NCCL
/* device is one of dt_compute_cuda, borrowed; host is taken over when this succeeds. Collective, and no communicator is made yet:
 * config is what exchanges on this comm itself are made with, at the first of them; may be NULL. DT_ELIB, DT_ENOMEM. */
dt_status dt_comm_nccl(struct dt_comm *host, struct dt_device *device,
                       const struct dt_comm_config *config, struct dt_comm **comm) DT_MUST_CHECK;

/* Whether each rank of host has a GPU of its own, as NCCL asks for: no two the same host and PCI device. Collective. */
dt_status dt_comm_nccl_fits(struct dt_comm *host, const struct dt_device *device,
                            bool *fits) DT_MUST_CHECK;

/* "2.28.9", of the library that is linked. */
const char *dt_comm_nccl_version(void);
#endif

#endif
