/* SPDX-License-Identifier: MIT */
/* samples - what a worker reports of a plan's steps: one struct from its answers to
 * statistics, log and print
 *
 * A run is the answer to one request, or the sum of several:
 *
 *     dt_group_run(group, &steps, deadline, &run, &failure);
 *     dt_run_add(&result->report, &run, true);
 *     dt_run_fini(&run);
 *
 * The fields beside times are rows of samples.def; samples_json.h reads and writes them.
 */
#ifndef DT_TUNER_RUNNER_SAMPLES_H
#define DT_TUNER_RUNNER_SAMPLES_H

#include "base/record.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* A plan's output as its worker summarises it: of each rank that has the whole output, a norm and
 * projections of each row; a row is an image, or one half of guidance of an image. */
struct dt_outputs {
    int ranks, rows, projections; /* 0: the worker does not verify */
    double *norm;                 /* [ranks * rows], owned; NAN where the worker sent null */
    double *projection;           /* [ranks * rows * projections], owned; NAN as above */
};
void dt_outputs_fini(struct dt_outputs *outputs);
/* Appends the ranks of another replica. DT_FAILED: its shape is another. */
dt_status dt_outputs_join(struct dt_outputs *outputs, const struct dt_outputs *more) DT_MUST_CHECK;

/* A number that the worker may leave out. */
struct dt_amount {
    bool known;
    int64_t value;
};
double dt_amount_number(struct dt_amount amount); /* NAN: not known */

struct dt_amounts {
    int count;
    int64_t *at; /* owned; NULL: not known */
};
struct dt_phase_rows {
    int count;
    struct dt_phase_row *at; /* owned; NULL: not reported */
};
struct dt_range {
    bool known;
    int64_t least, mean, most;
};
struct dt_sentence {
    char text[256]; /* "": none */
};

/* Names of reasons for lowered clocks: lower case letters, digits and _. */
#define DT_REASONS_MOST 24
struct dt_reasons {
    int count;
    char at[DT_REASONS_MOST][41];
};
/* Adds those that are not there yet; what there is no room for is dropped. */
void dt_reasons_add(struct dt_reasons *reasons, const struct dt_reasons *more);

#define DT_REMARKS_MOST 16

#define DT_KIND_amount   struct dt_amount
#define DT_KIND_figure   struct dt_amount
#define DT_KIND_amounts  struct dt_amounts
#define DT_KIND_figures  struct dt_amounts
#define DT_KIND_rows     struct dt_phase_rows
#define DT_KIND_range    struct dt_range
#define DT_KIND_reasons  struct dt_reasons
#define DT_KIND_sentence struct dt_sentence
#include "base/record_structs.h"

#include "tuner/runner/samples.def"

bool dt_device_bytes_known(const struct dt_device_bytes *bytes);
/* Moves the lists that `bytes` lacks from `more`, and frees the others. */
void dt_device_bytes_fill(struct dt_device_bytes *bytes, struct dt_device_bytes *more);
/* Appends the lists of another replica; those that it lacks are dropped. */
dt_status dt_device_bytes_join(struct dt_device_bytes *bytes,
                               const struct dt_device_bytes *more) DT_MUST_CHECK;
void dt_device_bytes_fini(struct dt_device_bytes *bytes);

/* remarks may be NULL: none. Warning i is "2 of 13 runs failed and were repeated"; the note says
 * where a number was read. */
int dt_remarks_count(const struct dt_remarks *remarks);
void dt_remarks_text(const struct dt_remarks *remarks, int i, struct dt_text *out);
const char *dt_remarks_note(const struct dt_remarks *remarks);
/* Adds the counts of equal words. *sum: owned, NULL before the first; *more is
 * freed, and NULL then. */
void dt_remarks_add(struct dt_remarks **sum, struct dt_remarks **more);

struct dt_run {
    int steps, ranks;
    /* Each [steps * ranks], owned. The others are NULL when the worker gives none, and their values
     * 0 where a part of a sum has none. */
    long long *ns;
    long long *device_ns; /* by the devices' own clocks */
    long long *host_ns;   /* by the ranks' clocks, where ns are the devices' times */
    double *clock; /* rates in the worker's own unit; NAN where a part has none; NULL: none */
    /* where each step is of a run of a program: how many steps each of them
     * has, owned; NULL: one */
    int *starts;
    int start_count;
    struct dt_remarks *remarks; /* owned; NULL: none */
    struct dt_outputs output;   /* the last step's, when it was asked for; not summed */
    /* From the measured requests alone: */
    struct dt_phase_sums *phases;        /* owned; NULL: none */
    struct dt_rank_telemetry *telemetry; /* [ranks], owned; NULL: none */
    /* In a sum: steps before the first measured request, the steps of each, and of those up to the
     * last with telemetry the reasons for lowered clocks, of all ranks. */
    int warm_up_steps;
    int *requests; /* [request_count], owned */
    int request_count;
    struct dt_reasons *reasons; /* [reason_count], owned; NULL: no telemetry */
    int reason_count;
    int phase_steps; /* steps of the longest request that has phases */
};
/* Appends a run of as many ranks, which may lose its remarks, phases and telemetry. measured: it
 * counts as one measured request. Sums saturate, since a worker may report any number; means of
 * telemetry are weighted by their readings; figures of phases stay those of the longest run. */
dt_status dt_run_add(struct dt_run *sum, struct dt_run *more, bool measured) DT_MUST_CHECK;
/* The run of n replicas, whose ranks follow each other: of starts as many, and of each as many
 * steps, as every replica has; phases are those of the slowest. The parts may lose what they own.
 * DT_FAILED with "host_ns is not of all replicas": their answers do not fit together. */
dt_status dt_run_join(struct dt_run parts[], int n, struct dt_run *joined) DT_MUST_CHECK;
void dt_run_fini(struct dt_run *run);

#endif
