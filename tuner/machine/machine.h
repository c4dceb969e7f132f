/* SPDX-License-Identifier: MIT */
/* machine - this machine: what plans run on, its description, its lock, and what is wrong with it
 *
 * The description is what a stored plan has to know of the machine it was measured on (docs/machine.md):
 * {"format":"dittune-machine","version":{..},"hard":{..},"soft":{..},"info":{..},"limits":{..}}: hard fields must be equal
 * for an exact answer, soft ones make it stale, info is for people. Only a worker knows the versions of MPI and BLAS, so one is
 * started once; what it said is kept in the user's cache until the machine was booted, or worker, libraries, cores or
 * dittune changed. Sessions, look-ups and `dittune machine` all get it here.
 */
#ifndef DT_TUNER_MACHINE_MACHINE_H
#define DT_TUNER_MACHINE_MACHINE_H

#include "base/json.h"
#include "base/text.h"
#include "model/dtype.h"
#include "space/dit/dit.h"

#include <stdbool.h>
#include <stdint.h>

#define DT_PROGRAM_ROOM 4096

/* ---- back end: the cores, or the GPUs that `dittune-worker-cuda --devices` finds. GPUs are used where there are any and nobody
 * said otherwise (--backend). What keeps them from it, a missing worker, driver or GPU, is one sentence, and plans run on cores. */

enum dt_backend_kind { DT_BACKEND_AUTO, DT_BACKEND_CPU, DT_BACKEND_CUDA };

/* "auto", "cpu", "cuda"; DT_EUSAGE with a sentence for another name. */
dt_status dt_backend_find(const char *name, enum dt_backend_kind *kind) DT_MUST_CHECK;

struct dt_backend {
    bool cuda;
    char program[4096];  /* the worker of that back end; "" on cores */
    char why[600];       /* on cores: why no GPU is used; "" when nobody asked for one */
    bool expected;       /* a driver, or $DITTUNE_WORKER_CUDA, speaks for a GPU */
    json_t *devices;     /* what the worker said of its GPUs, owned; NULL on cores */
    struct dt_gpus gpus; /* what rules ask of them */
    int compute;         /* the lowest capability, as 90 for 9.0 */
    bool shared;         /* others on the GPUs are no error */
};

/* foreign: the worker is not ours, and its plans run where it likes: cores. DT_EUNSUP: DT_BACKEND_CUDA, and no GPU can be used;
 * DT_EINTR. The worker has twenty seconds to list its GPUs. */
dt_status dt_backend_choose(enum dt_backend_kind kind, bool foreign,
                            struct dt_backend *backend) DT_MUST_CHECK;
void dt_backend_fini(struct dt_backend *backend);

/* Whether others use one of the first `count` GPUs: DT_EDIRTY with a sentence. A process on it, or more than DT_DIRTY_SHARE of
 * its memory in use (and more than DT_DIRTY_BYTES: a driver keeps some for itself). */
#define DT_DIRTY_SHARE 0.05
#define DT_DIRTY_BYTES (INT64_C(1) << 30)
dt_status dt_backend_clean(const json_t *devices, int count) DT_MUST_CHECK;

/* After a trial was killed, with no group of ours running: waits until deadline_ns for the memory of the first `count` GPUs to come
 * back. DT_EDIRTY with a sentence when it does not: what is measured next would not be what it is alone. Asks a process each time. */
dt_status dt_backend_settle(const struct dt_backend *backend, int count,
                            int64_t deadline_ns) DT_MUST_CHECK;

/* ---- description */

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

/* The built-in worker computes in it on this processor, as it was built. */
bool dt_machine_runs(enum dt_dtype dtype);

/* ---- lock: one measurement at a time on a machine (lock.c) */

/* Takes the lock of $DITTUNE_LOCK ("none": there is none), else of /dev/shm/dittune.lock, else of /tmp/dittune.lock. While
 * another process holds it: notes who and waits (*waited is set), or DT_EBUSY with that sentence when wait is false. DT_EINTR
 * when a signal ended the wait. A lock that cannot be opened is noted, and no error. note is given whole sentences. */
dt_status dt_lock_measuring(bool wait, void (*note)(const char *sentence),
                            bool *waited) DT_MUST_CHECK;

/* ---- doctor: what keeps plans from running on this machine's GPUs, or makes them slower than they could be (docs/doctor.md)
 *
 *     dt_doctor_facts(NULL, deadline_ns, &facts);                 -- or a file's
 *     dt_doctor_judge(facts, &findings);
 */

/* note: good to know. warning: plans run, but slower, or their times are worth less. busy: others use the device. error: plans
 * cannot run on the GPUs. */
enum dt_severity { DT_NOTE, DT_WARNING, DT_BUSY, DT_ERROR };

/* {"worker":{..}, "devices":{..} or null, "host":{..}}: of this machine, new reference. deadline_ns is for the worker. */
dt_status dt_doctor_facts(const char *program, int64_t deadline_ns, json_t **facts) DT_MUST_CHECK;

/* The rule "loaded" alone: more processes want to run than there are cores; then *what says so. */
bool dt_doctor_loaded(struct dt_text *what);

/* [{"rule", "severity", "device", "what", "mend"}], the worst first, new reference. */
dt_status dt_doctor_judge(const json_t *facts, json_t **findings) DT_MUST_CHECK;
json_t *dt_doctor_names(void);                            /* of all rules, new reference */
enum dt_severity dt_doctor_worst(const json_t *findings); /* DT_NOTE when there are none */

/* For people: the machine in a line or two, then a finding a paragraph. */
void dt_doctor_report(const json_t *facts, const json_t *findings, struct dt_text *out);

#endif
