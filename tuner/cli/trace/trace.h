/* SPDX-License-Identifier: MIT */
/* trace - the parts of a step on each rank: as a file for Perfetto and chrome://tracing, and in figures
 *
 * The worker reports them (docs/protocol.md, `trace`). Ranks of a host share its clock; those of other hosts are placed by the
 * barrier that the step began with.
 */
#ifndef DT_TUNER_CLI_TRACE_TRACE_H
#define DT_TUNER_CLI_TRACE_TRACE_H

#include "tuner/measure/measure.h"

/* Writes the "Trace Event Format" (JSON, complete events, microseconds). DT_EUNSUP: the worker reports no parts, with its
 * reason. DT_EIO. */
dt_status dt_trace_write(const struct dt_result *result, const struct dt_target *target,
                         const char *path) DT_MUST_CHECK;

/* Medians of layers on the rank whose step was the longest, and the cores that each rank kept busy: lines of text, and an object
 * of `run --json`, a new reference; null where there is no trace. */
json_t *dt_trace_figures(const struct dt_result *result, struct dt_text *out);

#endif
