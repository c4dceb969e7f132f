/* SPDX-License-Identifier: MIT */
/* child - one run of a command, to its end */
#ifndef DT_WORKER_COMMAND_CHILD_H
#define DT_WORKER_COMMAND_CHILD_H

#include "worker/command/timing.h"
#include "worker/wire.h"

/* Runs argv (NULL-ended, looked up in PATH) with an empty standard input, in a process group of its own, which is killed when the
 * command has ended, after timeout_ns, or when the controller has ended. A heartbeat goes to the controller once a second.
 * *output is what it printed; peak_bytes: of the largest of its processes. DT_EUSAGE: no such program; DT_FAILED: it exited with
 * another code than 0, or did not end in time; DT_ENOMEM: the same, and its output speaks of memory; DT_EDEAD: the
 * controller has ended. The caller frees *output with dt_child_output_fini in any case. */
dt_status dt_child_run(char *const argv[], int64_t timeout_ns, struct dt_wire *wire,
                       struct dt_child_output *output, int64_t *peak_bytes) DT_MUST_CHECK;
void dt_child_output_fini(struct dt_child_output *output);

#endif
