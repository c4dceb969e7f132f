/* SPDX-License-Identifier: MIT */
/* job - the work that plans are tuned or run for, as one typed value
 *
 * The command line (tuner/cli/options_job.h), a stored entry (tuner/check/) and tests each make
 * one; dt_target_new turns it into a space and the program that runs a plan. Nothing below the
 * commands knows an option. Texts are borrowed.
 */
#ifndef DT_TUNER_MEASURE_JOB_H
#define DT_TUNER_MEASURE_JOB_H

#include "model/dtype.h"
#include "model/network.h"
#include "model/task.h"
#include "tuner/machine/machine.h"
#include "tuner/measure/objective.h"
#include "tuner/runner/hosts.h"

#include <stdbool.h>
#include <stdint.h>

#define DT_LIST_MAX 64

#define DT_START_NS INT64_C(600000000000)

struct dt_ints {
    int count; /* 0: not given */
    int values[DT_LIST_MAX];
};

/* Values at which `run` measures its plan, one after the other. */
struct dt_sweep {
    bool ranks; /* the values are rank counts; otherwise batches */
    struct dt_ints values;
};

/* The user's wishes for a foreign worker. For the built-in network only the task's steps and
 * text_and_vae_ns count. */
struct dt_wanted {
    const char *engine; /* that the worker must run; NULL: any */
    struct dt_task task;
    double max_error;        /* 0: not given */
    int64_t text_and_vae_ns; /* time of an image besides its steps; 0: not given */
    const char *space;       /* file that narrows the worker's values; NULL: none */
    /* the space of an entry, which may have been narrowed so; borrowed; NULL: none */
    const json_t *stored_space;
    bool lossy; /* parameters of the role lossy may leave their defaults */
    /* DT_SIPHASH_KEY bytes, borrowed: the text of a command is replaced by its hash with this
     * key; NULL: it is kept */
    const unsigned char *secret;
    bool stored; /* by an entry's key, which also has what a worker does not obey */
};

/* Another machine, whose plans can be listed and explained, but not run. */
struct dt_described {
    int cores;           /* or GPUs */
    struct dt_gpus gpus; /* count 0: cores */
    int64_t memory_bytes;
    bool bfloat16;
};

/* Plans of the built-in space beyond the usual ones. */
struct dt_more {
    bool oversubscribe; /* more ranks than devices */
    /* variables that NCCL reads when a process starts: a group of processes for each of their
     * values */
    bool nccl;
    bool lossy;                         /* settings that change the output beyond rounding */
    double max_error;                   /* limit for plans with such settings; 0: not limited */
    const struct dt_described *machine; /* borrowed by dt_target_new; NULL: this one */
    const struct dt_hosts *hosts;       /* borrowed by dt_target_new; NULL: this machine alone */
    bool mixed_hosts;                   /* they may differ in their processors or GPUs */
};

struct dt_job {
    /* a foreign worker, with its own workload; none: the built-in network */
    struct dt_program worker;
    struct dt_wanted wanted; /* for a foreign worker */
    int64_t start_ns; /* a foreign worker has at most this long to get ready; 0: DT_START_NS */
    struct dt_network network; /* name "": the device's default */
    enum dt_dtype dtype;
    bool has_dtype; /* false: the network's default on the device */
    int size;       /* pixels along a side of the image; 0: the network's, or the default */
    const char *weights, *input; /* files; NULL: random numbers */
    const struct dt_objective *objective;
    struct dt_ints batches;
    const char *plan; /* the plan to run, with any batch and ranks; NULL: search */
    enum dt_backend_kind backend;
    bool shared_devices; /* others on the GPUs are no error */
    int devices;         /* most ranks of a plan; 0: all devices */
    struct dt_more more;
    int64_t max_bytes; /* limit of a rank's memory; 0: none */
    /* bytes of each device, or of the machine, that the server also holds; 0: none */
    int64_t reserve_bytes;
    int64_t max_latency_ns; /* limit of a step's time; 0: none */
    int64_t seed;
    int64_t budget_ns; /* a foreign worker has at most this long to get ready; 0: no limit */
};

#endif
