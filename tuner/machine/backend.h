/* SPDX-License-Identifier: MIT */
/* backend - what plans run on here: the cores, or the GPUs that `dittune-worker-cuda --devices` finds
 *
 * GPUs are used where there are any and nobody said otherwise (--backend). What keeps them from it, a missing worker, driver
 * or GPU, is one sentence, and plans run on cores.
 */
#ifndef DT_TUNER_MACHINE_BACKEND_H
#define DT_TUNER_MACHINE_BACKEND_H

#include "base/json.h"
#include "base/status.h"
#include "space/dit/dit.h"

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

/* From such an answer; for tests, and for whoever asked already. DT_EUNSUP with the reason when it names no GPU. Takes a
 * reference. */
dt_status dt_backend_from_json(json_t *devices, struct dt_backend *backend) DT_MUST_CHECK;

/* Whether others use one of the first `count` GPUs: DT_EDIRTY with a sentence. A process on it, or more than DT_DIRTY_SHARE of
 * its memory in use (and more than DT_DIRTY_BYTES: a driver keeps some for itself). */
#define DT_DIRTY_SHARE 0.05
#define DT_DIRTY_BYTES (INT64_C(1) << 30)
dt_status dt_backend_clean(const json_t *devices, int count) DT_MUST_CHECK;

/* After a trial was killed, with no group of ours running: waits until deadline_ns for the memory of the first `count` GPUs to come
 * back. DT_EDIRTY with a sentence when it does not: what is measured next would not be what it is alone. Asks a process each time. */
dt_status dt_backend_settle(const struct dt_backend *backend, int count,
                            int64_t deadline_ns) DT_MUST_CHECK;

/* Fields of a GPU machine's fingerprint (docs/machine.md). New references. */
json_t *dt_backend_hard(const struct dt_backend *backend);
json_t *dt_backend_limits(const struct dt_backend *backend);
/* Versions and settings: added to a description's soft fields. */
void dt_backend_soft(const struct dt_backend *backend, json_t *soft);

#endif
