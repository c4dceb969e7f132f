/* SPDX-License-Identifier: MIT */
/* devices - the GPUs of this machine, as listed by `dittune-worker-cuda --devices` (docs/protocol.md)
 *
 * A separate process queries the driver. When it is missing, crashes, hangs or writes nonsense, the result is one
 * sentence with the cause; this process is not affected, and nothing is left running.
 */
#ifndef DT_TUNER_MACHINE_DEVICES_H
#define DT_TUNER_MACHINE_DEVICES_H

#include "tuner/machine/machine.h"

#include <stdbool.h>
#include <stdint.h>

struct dt_devices_answer {
    char program[DT_PROGRAM_ROOM]; /* the program that was run */
    bool missing;                  /* there is no such program */
    char cause[512];               /* why devices is NULL; "" otherwise */
    json_t *devices;               /* the object, owned; NULL when cause says why */
};

/* Waits for an answer until deadline_ns (dt_clock_machine_ns). program NULL: $DITTUNE_WORKER_CUDA, else
 * dittune-worker-cuda beside this program. The only errors are DT_EINTR and failures of this process. */
dt_status dt_machine_devices(const char *program, int64_t deadline_ns,
                             struct dt_devices_answer *answer) DT_MUST_CHECK;
void dt_devices_answer_fini(struct dt_devices_answer *answer);

#endif
