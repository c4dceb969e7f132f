/* SPDX-License-Identifier: MIT */
/* machine - what a stored plan has to know of the machine it was measured on (docs/machine.md)
 *
 * {"format":"dittune-machine","version":{..},"hard":{..},"soft":{..},"info":{..},"limits":{..}}: hard fields must be equal
 * for an exact answer, soft ones make it stale, info is for people. Only a worker knows the versions of MPI and BLAS, so one is
 * started once; what it said is kept in the user's cache until the machine was booted, or worker, libraries, cores or
 * dittune changed. Sessions, look-ups and `dittune machine` all get it here.
 */
#ifndef DT_TUNER_MACHINE_MACHINE_H
#define DT_TUNER_MACHINE_MACHINE_H

#include "base/json.h"
#include "model/dtype.h"
#include "tuner/machine/backend.h"

#define DT_PROGRAM_ROOM 4096

struct dt_machine_worker {
    const char *program;
    bool foreign;                     /* it tunes a workload of its own */
    const struct dt_backend *backend; /* borrowed; NULL: cores */
};

/* The worker's path on cores: the one that was named (NULL: none), else $DITTUNE_WORKER, else dittune-worker beside this
 * program. */
dt_status dt_machine_program(const char *named, char program[DT_PROGRAM_ROOM]) DT_MUST_CHECK;

/* The description, new reference, from the cache when it is fresh (and renew is false), else by starting the worker, which
 * has until deadline_ns (dt_clock_ns) to get ready. DT_EUSAGE: no such program; DT_FAILED: it did not get ready. A cache that
 * cannot be written is no error. */
dt_status dt_machine_read(const struct dt_machine_worker *worker, bool renew, int64_t deadline_ns,
                          json_t **description) DT_MUST_CHECK;

/* The same for the foreign worker that was named (NULL: none), or for ours on that back end. Also the errors of
 * dt_backend_choose. */
dt_status dt_machine_here(const char *named, enum dt_backend_kind kind, bool renew,
                          int64_t deadline_ns, json_t **description) DT_MUST_CHECK;

/* The same from what a worker said already, which may be NULL: its versions are then missing, and it is not to be kept. */
json_t *dt_machine_describe(const json_t *hello, const json_t *ready,
                            const struct dt_machine_worker *worker);
void dt_machine_keep(const struct dt_machine_worker *worker, const json_t *description);

/* hard of the description, new reference; an entry's has dtype, engine and mode besides. backend NULL: cores. */
json_t *dt_machine_hard(const struct dt_backend *backend);

/* Memory as machines of one make agree on it: what the kernel left of it, rounded up to a whole GiB of the grid 1, 1.25, 1.5,
 * 1.75 times a power of two. */
int64_t dt_machine_memory_gib(int64_t bytes);

/* The built-in worker computes in it on this processor, as it was built. */
bool dt_machine_runs(enum dt_dtype dtype);

/* Variables that reach the worker and change how its libraries behave: {NAME: value}, new reference. */
json_t *dt_machine_environment(bool foreign);

/* The cached description of this very machine and worker; NULL: there is none. New reference. */
json_t *dt_machine_cached(const struct dt_machine_worker *worker);

#endif
