/* SPDX-License-Identifier: MIT */
#include "search/bayes/points/encoding.h"

#include <math.h>
#include <stdlib.h>

static void fill(const struct dt_axis *axis, float out[])
{
    const int last = axis->count - 1;
    bool ratio = axis->labels == NULL && axis->values[0] > 0 && last >= 2;
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

/* Exponent of two in a value; 0 for 0. */
static int exponent(int64_t value)
{
    int n = 0;
    for (; value != 0 && value % 2 == 0; value /= 2)
        n++;
    return n;
}

/* Writes the scaled exponents; false where they only repeat the order of the values. */
static bool fill_exponents(const struct dt_axis *axis, float out[])
{
    int least = 64, most = 0;
    bool rises = true;
    for (int i = 0; i < axis->count; i++) {
        int n = exponent(axis->values[i]);
        rises = rises && (i == 0 || n > exponent(axis->values[i - 1]));
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    for (int i = 0; i < axis->count && most > least; i++)
        out[i] = (float)(exponent(axis->values[i]) - least) / (float)(most - least);
    return !rises && most > least;
}

static float *add(struct dt_encoding *encoding, int axis, size_t count)
{
    float *coordinate = malloc(count * sizeof *coordinate);
    if (coordinate == NULL)
        return NULL;
    encoding->axis[encoding->dims] = axis;
    encoding->coordinate[encoding->dims++] = coordinate;
    return coordinate;
}

static dt_status add_axis(struct dt_encoding *encoding, int i, const struct dt_axis *axis)
{
    float *values = add(encoding, i, (size_t)axis->count);
    if (values == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for the coordinates of '%s'", axis->name);
    fill(axis, values);
    encoding->label[encoding->dims - 1] = axis->labels != NULL;
    if (axis->labels != NULL || axis->count < 3)
        return DT_OK;
    float *exponents = add(encoding, i, (size_t)axis->count);
    if (exponents == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for the coordinates of '%s'", axis->name);
    if (fill_exponents(axis, exponents))
        encoding->exponent[encoding->dims - 1] = true;
    else
        free(encoding->coordinate[--encoding->dims]);
    return DT_OK;
}

dt_status dt_encoding_init(struct dt_encoding *encoding, const struct dt_space *space)
{
    *encoding = (struct dt_encoding){0};
    dt_status status = DT_OK;
    for (int i = 0; i < dt_space_axes(space) && status == DT_OK; i++)
        if (dt_space_axis(space, i)->count > 1)
            status = add_axis(encoding, i, dt_space_axis(space, i));
    if (status < 0)
        dt_encoding_fini(encoding);
    return status;
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
