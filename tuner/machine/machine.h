/* SPDX-License-Identifier: MIT */
/* machine - this machine: its back end, description, lock, and problems
 *
 * The description has the facts about a machine that a stored plan depends on (docs/machine.md):
 * {"format":"dittune-machine","version":{..},"hard":{..},"soft":{..},"info":{..},"limits":{..}}:
 * hard fields must be equal for an exact answer, soft ones make it stale, info is for people. Only
 * a worker knows the versions of MPI and BLAS, so one is started once; its answer is cached for the
 * user until the machine reboots, or worker, libraries, cores or dittune change. Sessions, look-ups
 * and `dittune machine` all use this description.
 */
#ifndef DT_TUNER_MACHINE_MACHINE_H
#define DT_TUNER_MACHINE_MACHINE_H

#include "base/json.h"
#include "base/text.h"
#include "model/dtype.h"
#include "space/dit/dit.h"
#include "tuner/runner/runner.h"

#include <stdbool.h>
#include <stdint.h>

#define DT_PROGRAM_ROOM 4096

/* ---- back end: the cores, or the GPUs that `dittune-worker-cuda --devices` finds. GPUs are used
 * by default where there are any (--backend overrides it). Without a worker, driver or GPU plans
 * run on cores, and one sentence gives the reason. */

enum dt_backend_kind { DT_BACKEND_AUTO, DT_BACKEND_CPU, DT_BACKEND_CUDA };

/* "auto", "cpu", "cuda"; DT_EUSAGE with a sentence for another name. */
dt_status dt_backend_find(const char *name, enum dt_backend_kind *kind) DT_MUST_CHECK;

struct dt_backend {
    bool cuda;
    char program[4096];  /* the worker of that back end; "" on cores */
    char why[600];       /* on cores: why no GPU is used; "" when none was requested */
    bool expected;       /* a driver, or $DITTUNE_WORKER_CUDA, suggests a GPU */
    json_t *devices;     /* the worker's list of GPUs, owned; NULL on cores */
    struct dt_gpus gpus; /* facts for the rules */
    int compute;         /* the lowest capability, as 90 for 9.0 */
    /* others on the GPUs are no error; a foreign worker's, too, whose back end is the cores */
    bool shared;
};

/* foreign: not our worker, which chooses its devices itself: the back end is the cores.
 * DT_EUNSUP: DT_BACKEND_CUDA, and no GPU can be used; DT_EINTR. The worker has twenty
 * seconds to list its GPUs. */
dt_status dt_backend_choose(enum dt_backend_kind kind, bool foreign,
                            struct dt_backend *backend) DT_MUST_CHECK;
void dt_backend_fini(struct dt_backend *backend);

/* The GPUs that foreign workers may use: as dt_backend_choose, and where the built-in worker for
 * GPUs is missing or cannot run, those that the driver lists (dittune-worker --devices).
 * backend->cuda is false where there are none. DT_EINTR. */
dt_status dt_backend_find_gpus(struct dt_backend *backend) DT_MUST_CHECK;

/* DT_EDIRTY with a sentence when others use one of the first `count` GPUs. A GPU is in use when it
 * has a process, or more than DT_DIRTY_SHARE of its memory is in use (and more than DT_DIRTY_BYTES,
 * since a driver reserves some). */
#define DT_DIRTY_SHARE 0.05
#define DT_DIRTY_BYTES (INT64_C(1) << 30)
dt_status dt_backend_clean(const struct dt_backend *backend, int count) DT_MUST_CHECK;

/* After a killed trial, when none of our groups runs: waits until deadline_ns for the memory of the
 * first `count` GPUs to be freed. DT_EDIRTY with a sentence when it is not, since later
 * measurements would be disturbed. Starts a process for each query. */
dt_status dt_backend_settle(const struct dt_backend *backend, int count,
                            int64_t deadline_ns) DT_MUST_CHECK;

/* ---- description */

struct dt_machine_worker {
    struct dt_program program;
    bool foreign;                     /* it has a workload of its own */
    const struct dt_backend *backend; /* borrowed; NULL: cores */
};

/* The worker's path on cores: the given one (NULL: none), else $DITTUNE_WORKER, else
 * dittune-worker beside this program. A name without '/' that PATH does not have is looked for
 * beside this program, too. */
dt_status dt_machine_program(const char *named, char program[DT_PROGRAM_ROOM]) DT_MUST_CHECK;

/* The worker of an engine: dittune-worker-ENGINE beside this program, else beside the name
 * that it was called by, else in PATH. DT_EUSAGE with a sentence that says how to install
 * it, or name a program. */
dt_status dt_machine_engine(const char *engine, char program[DT_PROGRAM_ROOM]) DT_MUST_CHECK;

/* The description, new reference, from the cache when it is fresh (and renew is false), else by
 * starting the worker, which must be ready by deadline_ns (dt_clock_ns). DT_EUSAGE: no such
 * program; DT_FAILED: it was not ready in time. A cache that cannot be written is no error. */
dt_status dt_machine_read(const struct dt_machine_worker *worker, bool renew, int64_t deadline_ns,
                          json_t **description) DT_MUST_CHECK;

/* The description for the given foreign worker, or (path NULL) for ours on that back end. Also
 * returns the errors of dt_backend_choose. */
dt_status dt_machine_here(struct dt_program named, enum dt_backend_kind kind, bool renew,
                          int64_t deadline_ns, json_t **description) DT_MUST_CHECK;

/* The description from a worker's hello and ready. They may be NULL: then versions are missing, and
 * the description must not be cached. */
json_t *dt_machine_describe(const json_t *hello, const json_t *ready,
                            const struct dt_machine_worker *worker);
void dt_machine_keep(const struct dt_machine_worker *worker, const json_t *description);

/* The hard fields, new reference; an entry also has dtype, engine and mode. backend NULL: cores. */
json_t *dt_machine_hard(const struct dt_backend *backend);

/* The hard fields by the devices that a foreign worker announces in ready: the cores, or the GPUs
 * that the controller finds. Where it finds none, or the worker announces no device on a machine
 * with GPUs, those of the cores and "devices": as the worker names them, or "unknown"
 * (docs/machine.md). New reference. */
json_t *dt_machine_announced_hard(const json_t *ready);

/* The GPUs of this machine, as found before a foreign worker was started, are kept when its ready
 * says that its ranks run on devices; otherwise *found is emptied. DT_EUSAGE with a sentence when
 * ready describes other devices, more of them, or another driver. What is on another host is not
 * compared: *found is emptied. */
dt_status dt_machine_announced_gpus(const json_t *ready, struct dt_backend *found) DT_MUST_CHECK;
/* The memory of the smallest of the devices that ready describes; 0: it does not say. */
int64_t dt_machine_announced_memory(const json_t *ready);

/* The built-in worker, as compiled, computes in this data type on this processor. */
bool dt_machine_runs(enum dt_dtype dtype);

/* ---- observer: the GPUs of this machine, read while a foreign worker uses them (observer.c)
 *
 * Readings come from `dittune-worker-cuda --observe`, a process of its own (docs/protocol.md). It
 * is started by the first question; when it fails, nothing is observed from then on: a plan is
 * measured all the same.
 *
 *     dt_observer_begin(observer, group, ranks);
 *     ...                                                  -- the group runs its steps
 *     dt_observer_end(observer, &telemetry, &ranks);
 *
 * Which GPU is a rank's: ready's `uuid` of the rank, else N of its device "cuda:N", else the rank's
 * number. The only errors are DT_EINTR and those of this process. */

struct dt_observer;

/* gpus: borrowed. NULL when memory runs out. */
struct dt_observer *dt_observer_new(const struct dt_backend *gpus);
void dt_observer_free(struct dt_observer *observer); /* NULL is fine */

dt_status dt_observer_begin(struct dt_observer *observer, const struct dt_group *group,
                            int ranks) DT_MUST_CHECK;
/* Since begin: [*ranks], owned by the caller; NULL and 0: nothing was observed. */
dt_status dt_observer_end(struct dt_observer *observer, struct dt_rank_telemetry **telemetry,
                          int *ranks) DT_MUST_CHECK;

/* Memory of the ranks' GPUs now, owned by the caller: free and total bytes, and those
 * taken where the driver knows the ranks' processes. *memory is empty, and stays so when
 * nothing was observed. */
dt_status dt_observer_memory(struct dt_observer *observer, const struct dt_group *group, int ranks,
                             struct dt_device_bytes *memory) DT_MUST_CHECK;

/* Our own processes while the GPUs are looked at: they may compute, they
 * wait, or there are none. */
enum dt_gpu_company { DT_GPUS_COMPUTE, DT_GPUS_WAIT, DT_GPUS_FREE };

struct dt_gpu_use {
    double count;  /* GPUs that others use; NAN: not watched */
    char name[17]; /* a program that uses it; "": not known */
};

/* Looks at the GPUs: at processes that are not below this one; where none of ours computes at how
 * busy they are, as other containers' processes are not listed; and where there are none of ours at
 * memory. *use gets what is more. */
dt_status dt_observer_others(struct dt_observer *observer, enum dt_gpu_company company,
                             struct dt_gpu_use *use) DT_MUST_CHECK;

/* ---- lock: one measurement at a time on a machine (lock.c) */

/* Takes the lock $DITTUNE_LOCK ("none": no lock; of a folder: one for each GPU in it, by UUID, or
 * one for the machine), else /dev/shm/dittune.lock, else /tmp/dittune.lock. While another process
 * holds it: notes which one and waits (*waited is set), for at most patience_ns, after which
 * DT_EBUSY has that sentence. DT_EINTR when a signal ended the wait. A lock that cannot be opened,
 * or locked, is only noted. note gets whole sentences. */
dt_status dt_lock_measuring(int64_t patience_ns, void (*note)(const char *sentence),
                            bool *waited) DT_MUST_CHECK;

/* ---- doctor: what keeps plans from running on this machine's GPUs, or makes them slower than they
 * could be (docs/doctor.md)
 *
 *     dt_doctor_facts(NULL, deadline_ns, &facts);                 -- or a file's
 *     dt_doctor_judge(facts, &findings);
 */

/* note: information. warning: plans run, but slower, or their times are less reliable. busy:
 * others use the device.
 * error: plans cannot run on the GPUs. */
enum dt_severity { DT_NOTE, DT_WARNING, DT_BUSY, DT_ERROR };

/* {"worker":{..}, "devices":{..} or null, "host":{..}}: of this machine, new reference.
 * deadline_ns is for the worker. */
dt_status dt_doctor_facts(const char *program, int64_t deadline_ns, json_t **facts) DT_MUST_CHECK;

/* Applies one rule about the host, such as "loaded" or "core-quota"; true if it warns, and
 * *what gets the sentence. */
bool dt_doctor_warns(const char *rule, struct dt_text *what);

/* [{"rule", "severity", "device", "what", "mend"}], the worst first, new reference. */
dt_status dt_doctor_judge(const json_t *facts, json_t **findings) DT_MUST_CHECK;
json_t *dt_doctor_names(void); /* the names of all rules, new reference */
enum dt_severity dt_doctor_worst(const json_t *findings); /* DT_NOTE when there are none */

/* For people: the machine in one or two lines, then one paragraph per finding. */
void dt_doctor_report(const json_t *facts, const json_t *findings, struct dt_text *out);

#endif
