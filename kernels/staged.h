/* SPDX-License-Identifier: MIT */
/* staged - the memory of a device exchanged through the host's
 *
 * Any comm of the host and any device make a comm of that device: a post waits for the device, copies to the host and posts
 * there; wait copies back. It needs nothing of the devices, so several ranks may share one, and it hides nothing: for
 * correctness, where there is no NCCL or not a GPU for each rank. Its exchanges cannot be recorded.
 */
#ifndef DT_KERNELS_STAGED_H
#define DT_KERNELS_STAGED_H

#include "kernels/comm.h"

/* host is taken over when this succeeds, device is borrowed. DT_ENOMEM. */
dt_status dt_comm_staged(struct dt_comm *host, struct dt_device *device,
                         struct dt_comm **comm) DT_MUST_CHECK;

#endif
