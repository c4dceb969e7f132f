/* SPDX-License-Identifier: MIT */
/* observe - `dittune-worker --observe`: reads GPUs while a worker of another engine uses them
 *
 * It speaks the protocol as a worker does, but knows other requests (docs/protocol.md, "An observer"). NVML is all it
 * needs: neither CUDA nor a context on a device. It runs as a separate process, so that a crash or hang of the driver
 * does no harm.
 */
#ifndef DT_WORKER_GPUS_OBSERVE_H
#define DT_WORKER_GPUS_OBSERVE_H

/* Answers requests until quit or the end of standard input; returns the exit code. */
int dt_observe(void);

#endif
