/* SPDX-License-Identifier: MIT */
/* staged - exchanges device memory through host memory
 *
 * Any comm of the host and any device make a comm of that device: a post waits for the device,
 * copies to the host and posts there; wait copies back. It has no requirements on the devices, so
 * several ranks may share one, and hides no time: meant for correctness where there is no NCCL or
 * not a GPU for each rank. Its exchanges cannot be recorded.
 */
#ifndef DT_KERNELS_STAGED_H
#define DT_KERNELS_STAGED_H

#include "kernels/comm.h"

/* Owns host on success; device is borrowed. DT_ENOMEM. */
dt_status dt_comm_staged(struct dt_comm *host, struct dt_device *device,
                         struct dt_comm **comm) DT_MUST_CHECK;

#endif
