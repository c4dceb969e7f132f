/* SPDX-License-Identifier: MIT */
/* json_int - declarations that the readers of a space, and the writers of explanations, share */
#ifndef DT_SPACE_JSON_JSON_INT_H
#define DT_SPACE_JSON_JSON_INT_H

#include "space/json/json.h"
#include "space/space_int.h"

/* {"ranks": 2, ...} for values that need not be feasible. */
json_t *dt_values_json(const struct dt_space *space, const int64_t values[]);

/* The violations of values[], the cause first, as an array of
 * {"rule","sentence","numbers","nearest": {axis: [values]}} to *rows (new reference). */
dt_status dt_space_violations(const struct dt_space *space, const int64_t values[],
                              json_t **rows) DT_MUST_CHECK;

/* One of them as a sentence. */
void dt_violation_text(const json_t *violation, struct dt_text *out);

/* A file of Kernel Tuner (T1: "ConfigurationSpace") in our form: {"parameters", "rules"}.
 * Lists, ranges and simple comprehensions are read, nothing is run as Python. DT_EUSAGE:
 * anything else, with one sentence. */
dt_status dt_t1_read(const json_t *file, const char *what, json_t **root) DT_MUST_CHECK;

#endif
