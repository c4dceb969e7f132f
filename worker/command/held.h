/* SPDX-License-Identifier: MIT */
/* held - memory of GPUs that is still held when all processes of a run have ended
 *
 * A driver frees the memory of an ended process a moment later, and a process out of reach (another container, a daemon of
 * the system) may hold it for longer: then the next plan would not fit. Read by NVML (kernels/nvml.h); without it nothing is held.
 *
 *     dt_held_note(&held);                       -- before a run
 *     dt_held_wait(&wait, &held, &say);          -- after the end of all that it started
 */
#ifndef DT_WORKER_COMMAND_HELD_H
#define DT_WORKER_COMMAND_HELD_H

#include "kernels/nvml.h"
#include "worker/command/leftovers.h"

#define DT_HELD_GPUS 64

struct dt_held {
    int count; /* GPUs; 0: no NVML */
    struct dt_nvml_use before[DT_HELD_GPUS];
};

void dt_held_note(struct dt_held *held);

/* Until the GPUs have as much free memory as before, but for what processes that were there before have taken since; at most five
 * seconds. *say: which GPU did not get it back, how much, and who is on it; unchanged when all did. The errors of tick. */
dt_status dt_held_wait(const struct dt_leftovers_wait *wait, const struct dt_held *held,
                       struct dt_text *say) DT_MUST_CHECK;

#endif
