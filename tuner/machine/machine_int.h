/* SPDX-License-Identifier: MIT */
/* machine_int - shared by the files that describe the machine */
#ifndef DT_TUNER_MACHINE_MACHINE_INT_H
#define DT_TUNER_MACHINE_MACHINE_INT_H

#include "tuner/machine/machine.h"

/* Memory in a form that is equal on machines of one make: the kernel's MemTotal, rounded up to a
 * whole GiB of the grid 1, 1.25, 1.5, 1.75 times a power of two. */
int64_t dt_machine_memory_gib(int64_t bytes);

/* The path of a program in the folder of this one; "" when that is not known. */
void dt_machine_beside(const char *name, char program[DT_PROGRAM_ROOM]);

/* Variables that reach the worker and change the behaviour of its libraries: {NAME:
 * value}, new reference. */
json_t *dt_machine_environment(bool foreign);

/* A rank of a worker's ready is on this host, or does not name one. */
bool dt_machine_is_here(const json_t *rank);

/* Fields of a GPU machine's fingerprint (docs/machine.md). New references. */
json_t *dt_backend_hard(const struct dt_backend *backend);
json_t *dt_backend_limits(const struct dt_backend *backend);
/* Versions and settings: added to a description's soft fields. */
void dt_backend_soft(const struct dt_backend *backend, json_t *soft);

/* ---- the GPUs of this machine, as listed by `dittune-worker-cuda --devices` (docs/protocol.md)
 *
 * A separate process queries the driver. When it is missing, crashes, hangs or writes
 * nonsense, the result is one sentence with the cause; this process is not affected, and
 * nothing is left running. */

struct dt_devices_answer {
    char program[DT_PROGRAM_ROOM]; /* the program that was run */
    bool missing;                  /* there is no such program */
    char cause[512];               /* why devices is NULL; "" otherwise */
    json_t *devices;               /* the object, owned; NULL when cause says why */
};

/* Waits for an answer until deadline_ns (dt_clock_machine_ns). program NULL:
 * $DITTUNE_WORKER_CUDA, else dittune-worker-cuda beside this program. The only errors are
 * DT_EINTR and failures of this process. */
dt_status dt_machine_devices(const char *program, int64_t deadline_ns,
                             struct dt_devices_answer *answer) DT_MUST_CHECK;
void dt_devices_answer_fini(struct dt_devices_answer *answer);

#endif
