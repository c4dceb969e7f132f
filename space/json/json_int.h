/* SPDX-License-Identifier: MIT */
/* json_int - declarations that the readers of a space, and the writers of explanations, share */
#ifndef DT_SPACE_JSON_JSON_INT_H
#define DT_SPACE_JSON_JSON_INT_H

#include "space/expr/decimal.h"
#include "space/json/json.h"
#include "space/space_int.h"

struct dt_reading {
    const char *what; /* first words of each error message */
    struct dt_axis axis;
    int64_t values[DT_VALUES_MAX];
    const char *labels[DT_VALUES_MAX];
};

/* Adds the axis of {"name", "values", ..} (name NULL), or of that name: its values, or an object that has them. */
dt_status dt_axis_read(struct dt_space *space, struct dt_reading *reading, const char *name,
                       const json_t *object) DT_MUST_CHECK;

/* Index of the value, or -1: it is none of the axis. */
int dt_axis_index(const struct dt_axis *axis, const json_t *value);
/* A number as a decimal; false: it is none, or has too many digits. */
bool dt_decimal_json(const json_t *value, struct dt_decimal *decimal);

/* Adds the rule that a list of cases is: [{"a": 1, "b": 2}, ..]. A case with a value that its axis does not have allows no plan. */
dt_status dt_cases_read(struct dt_space *space, const json_t *cases,
                        const char *what) DT_MUST_CHECK;

/* {"ranks": 2, ...} for values that need not be feasible. */
json_t *dt_values_json(const struct dt_space *space, const int64_t values[]);

/* The violations of values[], the cause first, as an array of {"rule","sentence","numbers","nearest": {axis: [values]}}
 * to *rows (new reference). */
dt_status dt_space_violations(const struct dt_space *space, const int64_t values[],
                              json_t **rows) DT_MUST_CHECK;
/* One of them as a sentence. */
void dt_violation_text(const json_t *violation, struct dt_text *out);

#endif
