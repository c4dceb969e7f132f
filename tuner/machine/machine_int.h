/* SPDX-License-Identifier: MIT */
/* machine_int - shared by the files that describe the machine: machine.c, announced.c, backend.c, cache.c, engine.c, environment.c,
 * observer.c */
#ifndef DT_TUNER_MACHINE_MACHINE_INT_H
#define DT_TUNER_MACHINE_MACHINE_INT_H

#include "tuner/machine/machine.h"

/* Memory in a form that is equal on machines of one make: the kernel's MemTotal, rounded up to a whole GiB of the grid
 * 1, 1.25, 1.5, 1.75 times a power of two. */
int64_t dt_machine_memory_gib(int64_t bytes);

/* The path of a program in the folder of this one; "" when that is not known. */
void dt_machine_beside(const char *name, char program[DT_PROGRAM_ROOM]);

/* Variables that reach the worker and change the behaviour of its libraries: {NAME: value}, new reference. */
json_t *dt_machine_environment(bool foreign);

/* The valid cached description of this machine and worker, new reference; NULL: none. */
json_t *dt_machine_cached(const struct dt_machine_worker *worker);

/* A rank of a worker's ready is on this host, or does not name one. */
bool dt_machine_is_here(const json_t *rank);

/* Fields of a GPU machine's fingerprint (docs/machine.md). New references. */
json_t *dt_backend_hard(const struct dt_backend *backend);
json_t *dt_backend_limits(const struct dt_backend *backend);
/* Versions and settings: added to a description's soft fields. */
void dt_backend_soft(const struct dt_backend *backend, json_t *soft);

#endif
