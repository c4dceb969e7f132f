/* SPDX-License-Identifier: MIT */
#include "search/bayes/encoding.h"

#include <math.h>
#include <stdlib.h>

#define RATIO 4 /* from the smallest value to the largest, where ratios begin to count */

static void fill(const struct dt_axis *axis, float out[])
{
    const int last = axis->count - 1;
    bool ratio = axis->labels == NULL && axis->values[0] > 0 &&
                 (double)axis->values[last] >= RATIO * (double)axis->values[0];
    for (int i = 0; i <= last; i++) {
        if (axis->labels != NULL)
            out[i] = (float)i;
        else if (ratio)
            out[i] = (float)(log((double)axis->values[i] / (double)axis->values[0]) /
                             log((double)axis->values[last] / (double)axis->values[0]));
        else
            out[i] = (float)i / (float)last;
    }
}

dt_status dt_encoding_init(struct dt_encoding *encoding, const struct dt_space *space)
{
    *encoding = (struct dt_encoding){0};
    for (int i = 0; i < dt_space_axes(space); i++) {
        const struct dt_axis *axis = dt_space_axis(space, i);
        if (axis->count < 2)
            continue;
        float *coordinate = malloc((size_t)axis->count * sizeof *coordinate);
        if (coordinate == NULL) {
            dt_encoding_fini(encoding);
            return dt_fail(DT_ENOMEM, "out of memory for the coordinates of '%s'", axis->name);
        }
        fill(axis, coordinate);
        encoding->axis[encoding->dims] = i;
        encoding->label[encoding->dims] = axis->labels != NULL;
        encoding->coordinate[encoding->dims++] = coordinate;
    }
    return DT_OK;
}

void dt_encoding_fini(struct dt_encoding *encoding)
{
    for (int d = 0; d < encoding->dims; d++)
        free(encoding->coordinate[d]);
    *encoding = (struct dt_encoding){0};
}

void dt_encoding_at(const struct dt_encoding *encoding, const struct dt_point *point, float out[],
                    size_t stride)
{
    for (int d = 0; d < encoding->dims; d++)
        out[(size_t)d * stride] = encoding->coordinate[d][point->index[encoding->axis[d]]];
}
