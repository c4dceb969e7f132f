/* SPDX-License-Identifier: MIT */
/* child - a program, to its end, and then that of everything it started */
#ifndef DT_WORKER_COMMAND_CHILD_H
#define DT_WORKER_COMMAND_CHILD_H

#include "base/text.h"
#include "kernels/nvml.h"
#include "worker/command/leftovers.h"
#include "worker/command/timing.h"
#include "worker/wire.h"

#include <stdbool.h>
#include <stdint.h>

/* The end of its output or of its messages has a phrase of a program that ran out of memory. */
bool dt_memory_named(const struct dt_child_output *output);

/* Processes that the kernel has killed so far since memory ran out (/proc/vmstat; DITTUNE_VMSTAT
 * names another file, for tests); -1: not known. */
int64_t dt_memory_kills(void);

/* wait_status is that of a program that was killed for memory: SIGKILL while the kernel killed
 * someone for it (kills: before it began), or exit code 137, by which a shell, a launcher or a
 * container tells that SIGKILL ended what it ran. */
bool dt_memory_killed(int wait_status, int64_t kills);

#define DT_HELD_GPUS 64

struct dt_held {
    int count; /* GPUs; 0: no NVML */
    struct dt_nvml_use before[DT_HELD_GPUS];
};

void dt_held_note(struct dt_held *held);

struct dt_child_rules {
    int64_t timeout_ns;
    const bool *accepted; /* [256] exit codes that are as good as 0 */
    const char *name;     /* name in sentences: "the command" */
};

/* Runs argv (NULL-ended, looked up in PATH) with an empty standard input, in a process group of
 * its own. After the timeout, or when the controller has ended, all processes below this one are
 * ended (leftovers.h). A heartbeat goes to the controller once a second. *output is what it
 * printed, with its time. DT_EUSAGE: no such program; DT_FAILED: its exit code is not accepted, or
 * it did not end in time;
 * DT_ENOMEM: the same, and memory was why; DT_EDEAD: the controller has ended. The caller frees
 * *output with dt_child_output_fini in any case. */
dt_status dt_child_run(char *const argv[], const struct dt_child_rules *rules, struct dt_wire *wire,
                       struct dt_child_output *output) DT_MUST_CHECK;
void dt_child_output_fini(struct dt_child_output *output);

/* Ends what it left behind, in *left, and waits for the memory that it held, in *say. DT_EDEAD, or
 * DT_FAILED for a process that does not end. */
dt_status dt_child_clear(struct dt_child_output *output, struct dt_wire *wire,
                         const struct dt_held *held, struct dt_leftovers *left,
                         struct dt_text *say) DT_MUST_CHECK;

/* Sends a heartbeat, if the last message was a second ago. wire: a struct dt_wire. DT_EDEAD: the
 * controller has ended. */
dt_status dt_child_beat(void *wire) DT_MUST_CHECK;

#define DT_CHILD_HOW 80

/* Starts argv with these as its standard output and error, and returns when it runs. name: in
 * sentences, as in the rules. DT_EUSAGE: no such program. */
dt_status dt_child_start(char *const argv[], const char *name, int out, int err,
                         pid_t *pid) DT_MUST_CHECK;

/* "exited with 3" */
void dt_child_how(int wait_status, char how[DT_CHILD_HOW]);

#endif
