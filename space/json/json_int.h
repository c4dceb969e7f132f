/* SPDX-License-Identifier: MIT */
/* json_int - declarations that the readers of a space share */
#ifndef DT_SPACE_JSON_JSON_INT_H
#define DT_SPACE_JSON_JSON_INT_H

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

#endif
