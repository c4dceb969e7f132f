/* SPDX-License-Identifier: MIT */
/* devices - the GPUs of this machine, as `dittune-worker-cuda --devices` tells them (docs/protocol.md)
 *
 * The driver is asked in a process of its own. It may be missing, crash, hang or write nonsense: that is an answer, too, and
 * said in one sentence; nothing of it reaches this process, and nothing of it is left running.
 */
#ifndef DT_TUNER_MACHINE_DEVICES_H
#define DT_TUNER_MACHINE_DEVICES_H

#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

#define DT_DEVICES_PROGRAM_ROOM 4096

struct dt_devices_answer {
    char program[DT_DEVICES_PROGRAM_ROOM]; /* that was asked */
    bool missing;                          /* there is no such program */
    char cause[512];                       /* why there are no devices below; "" when there are */
    json_t *devices;                       /* the object, owned; NULL when cause says why */
};

/* Asks until deadline_ns (dt_clock_machine_ns). program NULL: $DITTUNE_WORKER_CUDA, else dittune-worker-cuda beside this program.
 * DT_EINTR and trouble of our own are the only errors. */
dt_status dt_machine_devices(const char *program, int64_t deadline_ns,
                             struct dt_devices_answer *answer) DT_MUST_CHECK;
void dt_devices_answer_fini(struct dt_devices_answer *answer);

#endif
