/* SPDX-License-Identifier: MIT */
/* said - the shapes of what a worker may say of its devices (docs/protocol.md); strangers say it too, so all is checked
 *
 * Each returns false when it is not as it should be, and has then set nothing. Only what is known is taken over.
 */
#ifndef DT_TUNER_RUNNER_SAID_H
#define DT_TUNER_RUNNER_SAID_H

#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>

/* Rows of integers from 0 on: [steps * ranks], to be freed; NULL when out of memory. */
bool dt_said_ns(const json_t *rows, size_t steps, size_t ranks, long long **ns);

/* A list of one object a rank, {"looks", "sm_mhz": {"least", "mean", "most"}, .., "reasons": [names]}; new reference. */
bool dt_said_telemetry(const json_t *list, size_t ranks, json_t **telemetry);

/* Of an answer to prepare: the lists of one integer a rank that it has of before_bytes, taken_bytes, free_bytes and total_bytes,
 * and resident_bytes; new reference, NULL when it has none of the lists. */
bool dt_said_memory(const json_t *answer, size_t ranks, json_t **memory);

#endif
