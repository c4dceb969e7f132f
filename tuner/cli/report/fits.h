/* SPDX-License-Identifier: MIT */
/* fits - lines fitted to measurements, as JSON and as a line of text each (docs/measuring.md, docs/json.md)
 *
 * Every fit comes with standard errors, the residual of each point, and its degrees of freedom; where the points do not
 * determine a line its numbers are null and "reason" says why. New references.
 */
#ifndef DT_TUNER_CLI_REPORT_FITS_H
#define DT_TUNER_CLI_REPORT_FITS_H

#include "base/json.h"
#include "base/text.h"

/* Latency and bandwidth of each of a result's exchanges (NULL: none). */
json_t *dt_fits_exchanges(const json_t *exchanges);

/* Amdahl's law through the times of one workload at several rank counts. */
json_t *dt_fits_ranks(const double ranks[], const double seconds[], int n);

/* A step's time against its batch. */
json_t *dt_fits_batch(const double batches[], const double seconds[], int n);

/* Prints an object {"exchanges":[..], "ranks":{..}, "batch":{..}}; each field may be missing. Each fit is a formula with
 * its errors, then a sentence that says the same in words with the largest and the typical residual. */
void dt_fits_text(const json_t *fits, struct dt_text *out);

#endif
