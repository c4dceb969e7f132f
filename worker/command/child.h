/* SPDX-License-Identifier: MIT */
/* child - one run of a command, to its end and that of everything it started */
#ifndef DT_WORKER_COMMAND_CHILD_H
#define DT_WORKER_COMMAND_CHILD_H

#include "worker/command/leftovers.h"
#include "worker/command/timing.h"
#include "worker/wire.h"

struct dt_child_rules {
    int64_t timeout_ns;
    bool
        leave_nothing; /* a process that is left behind fails the run; else only one that disturbs others */
};

/* Runs argv (NULL-ended, looked up in PATH) with an empty standard input, in a process group of its own. All processes below this one
 * are ended (leftovers.h) when the command has ended, after the timeout, or when the controller has ended; *left: those that were there
 * when it had. A heartbeat goes to the controller once a second. *output is what it printed, with its time, which has no part
 * of that clean-up. DT_EUSAGE: no such program; DT_FAILED: it exited with another code than 0, did not end in time, or left behind what
 * the rules forbid; DT_ENOMEM: the first or second, and its output speaks of memory; DT_EDEAD: the controller has ended. The caller
 * frees *output with dt_child_output_fini in any case. */
dt_status dt_child_run(char *const argv[], const struct dt_child_rules *rules, struct dt_wire *wire,
                       struct dt_child_output *output, struct dt_leftovers *left) DT_MUST_CHECK;
void dt_child_output_fini(struct dt_child_output *output);

#endif
