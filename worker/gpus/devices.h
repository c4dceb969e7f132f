/* SPDX-License-Identifier: MIT */
/* devices - `dittune-worker-cuda --devices`: one JSON object about the GPUs of this machine and the
 * environment of their libraries
 *
 * It runs as a separate process, so that a crash or hang of the driver does no
 * harm (docs/protocol.md).
 */
#ifndef DT_WORKER_GPUS_DEVICES_H
#define DT_WORKER_GPUS_DEVICES_H

#include "base/text.h"

/* Appends the object. Without CUDA, a driver or a device, count is 0 and `why` gives
 * the reason. DT_ENOMEM. */
dt_status dt_devices_write(struct dt_text *out) DT_MUST_CHECK;
/* Prints the object and a newline on standard output; returns the exit code. */
int dt_devices_print(void);

#endif
