/* SPDX-License-Identifier: MIT */
/* samples_json - runs and their parts as JSON
 *
 * The answers of workers and the records of journals name the parts of a run alike
 * (docs/protocol.md, docs/json.md) and are read here with the same limits: neither is trusted.
 * Unknown fields are dropped. Writing gives new references, NULL for what is not known. To add a
 * field, add a row to samples.def.
 */
#ifndef DT_TUNER_RUNNER_SAMPLES_JSON_H
#define DT_TUNER_RUNNER_SAMPLES_JSON_H

#include "tuner/runner/samples.h"

#define DT_STEP_NS_MOST (24 * INT64_C(3600000000000)) /* the longest step: a day */

/* The part of a run that could not be read. */
struct dt_run_fault {
    const char *field;
    size_t step;
    bool size; /* the number of rows, or of the ranks of one */
};
struct dt_run_form {
    const json_t *remarks; /* the object with them; NULL: none */
    bool starts;           /* each step is of a start */
    bool gaps;             /* null stands for a step without clocks */
};
/* Reads `ns` (1 ns to a day), and `clock` (above 0), `device_ns`, `host_ns` (0 to 2^53), `starts`
 * (which add up to the steps), `telemetry`, `phases` and the remarks where they are there and not
 * null. *run is empty, to be freed also after a failure.
 * DT_FAILED: *fault tells what is malformed, and the caller writes the sentence. Fields of phases
 * that have another shape are left out. */
dt_status dt_run_read(const json_t *object, const struct dt_run_form *form, struct dt_run *run,
                      struct dt_run_fault *fault) DT_MUST_CHECK;
/* The rows of steps x ranks times from least on; false: they are malformed. NULL in
 * *ns: memory is short. */
bool dt_times_read(const json_t *rows, size_t steps, size_t ranks, int64_t least, long long **ns,
                   struct dt_run_fault *fault);
json_t *dt_times_json(const long long *ns, int steps, int ranks);
json_t *dt_clock_json(const struct dt_run *run);
json_t *dt_phases_json(const struct dt_phase_sums *phases);

/* Integers of 1 or more that add up to the total: [*n], owned by the caller; false: they do not. */
bool dt_counts_read(const json_t *list, int total, int **counts, int *n);

/* One object a rank; false: malformed. */
bool dt_telemetry_read(const json_t *list, int ranks, struct dt_rank_telemetry **telemetry);
json_t *dt_telemetry_json(const struct dt_rank_telemetry *telemetry, int ranks);
extern const struct dt_kind dt_kind_reasons;

/* The lists that are there, one integer a rank, and with them the prediction; false: malformed. */
bool dt_device_bytes_read(const json_t *object, int ranks, struct dt_device_bytes *bytes);
json_t *dt_device_bytes_json(const struct dt_device_bytes *bytes);

/* False: malformed. NULL where there is none. */
bool dt_remarks_read(const json_t *object, struct dt_remarks **remarks);
json_t *dt_remarks_json(const struct dt_remarks *remarks);
json_t *dt_remarks_sentences(const struct dt_remarks *remarks); /* NULL: none */

#endif
