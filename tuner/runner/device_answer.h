/* SPDX-License-Identifier: MIT */
/* device_answer - validates the device part of a worker's answers (docs/protocol.md): workers are not trusted
 *
 * Each returns false when the part is malformed, and has then set nothing. Unknown fields are dropped.
 */
#ifndef DT_TUNER_RUNNER_DEVICE_ANSWER_H
#define DT_TUNER_RUNNER_DEVICE_ANSWER_H

#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>

/* Rows of integers from 0 on: [steps * ranks], to be freed; NULL when out of memory. */
bool dt_device_answer_ns(const json_t *rows, size_t steps, size_t ranks, long long **ns);

/* A list of one object a rank, {"looks", "sm_mhz": {"least", "mean", "most"}, .., "reasons": [names]}; new reference. */
bool dt_device_answer_telemetry(const json_t *list, size_t ranks, json_t **telemetry);

/* Of an answer to prepare: the lists of one integer a rank that it has of before_bytes, taken_bytes, free_bytes and total_bytes,
 * and resident_bytes; new reference, NULL when it has none of the lists. */
bool dt_device_answer_memory(const json_t *answer, size_t ranks, json_t **memory);

#endif
