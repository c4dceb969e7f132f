/* SPDX-License-Identifier: MIT */
/* job - the work that plans are tuned or run for, as one typed value
 *
 * The command line (tuner/cli/options_job.h), a stored entry (tuner/check/) and tests each make one; dt_target_new turns it into a
 * space and the program that runs a plan. Nothing below the commands knows an option. Texts are borrowed.
 */
#ifndef DT_TUNER_MEASURE_JOB_H
#define DT_TUNER_MEASURE_JOB_H

#include "model/dtype.h"
#include "model/network.h"
#include "tuner/machine/machine.h"
#include "tuner/measure/objective.h"

#include <stdbool.h>
#include <stdint.h>

#define DT_LIST_MAX 64

struct dt_ints {
    int count; /* 0: not given */
    int values[DT_LIST_MAX];
};

/* What `run` measures its plan at, one after the other. */
struct dt_sweep {
    bool ranks; /* the values are rank counts; otherwise batches */
    struct dt_ints values;
};

struct dt_job {
    const char *
        worker; /* program of a foreign worker, which decides its own work; NULL: the built-in network */
    struct dt_network network; /* name "": the one that is usual on the device */
    enum dt_dtype dtype;
    bool has_dtype; /* false: the one that is usual for the network on the device */
    int size;       /* pixels along a side of the image; 0: the network's, or the usual one */
    const char *weights, *input; /* files; NULL: random numbers */
    const struct dt_objective *objective;
    struct dt_ints batches;
    const char *plan; /* to be run, whatever its batch and ranks; NULL: a space is searched */
    enum dt_backend_kind backend;
    bool shared_devices;    /* others on the GPUs are no error */
    int devices;            /* most ranks of a plan; 0: as many as there are */
    bool oversubscribe;     /* plans of more ranks than devices are feasible, too */
    int64_t max_bytes;      /* most that a rank may take; 0: no limit */
    int64_t max_latency_ns; /* most that a step may take; 0: no limit */
    int64_t seed;
    int64_t budget_ns; /* a foreign worker has at most this long to get ready; 0: no limit */
};

#endif
