/* SPDX-License-Identifier: MIT */
/* devices - `dittune-worker-cuda --devices`: one JSON object about the GPUs of this machine and what their libraries are told
 *
 * It is asked of a process of its own: a driver that crashes or hangs takes nothing with it (docs/protocol.md).
 */
#ifndef DT_WORKER_DEVICES_H
#define DT_WORKER_DEVICES_H

#include "base/json.h"

/* A new reference. Without CUDA, a driver or a device, count is 0 and why a sentence. DT_ENOMEM. */
dt_status dt_devices_json(json_t **devices) DT_MUST_CHECK;
/* The program's answer: the object and a newline on standard output. The exit code. */
int dt_devices_print(void);

#endif
