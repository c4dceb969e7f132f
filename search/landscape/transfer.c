/* SPDX-License-Identifier: MIT */
#include "search/landscape/transfer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool same(const struct dt_original *a, const struct dt_original *b)
{
    if (a->text != NULL || b->text != NULL)
        return a->text != NULL && b->text != NULL && strcmp(a->text, b->text) == 0;
    return a->number == b->number;
}

static struct dt_original value_of(const struct dt_axis *axis, int i)
{
    if (axis->labels != NULL)
        return (struct dt_original){.number = NAN, .text = axis->labels[i]};
    return (struct dt_original){.number = dt_axis_number(axis, axis->values[i])};
}

/* For each value of an axis its index in the source's axis, or -1. */
static int32_t *match(const struct dt_axis *axis, const struct dt_original *originals,
                      const struct dt_landscape *source, int its)
{
    int32_t *indices = malloc((size_t)axis->count * sizeof *indices);
    for (int i = 0; indices != NULL && i < axis->count; i++) {
        struct dt_original mine = originals != NULL ? originals[i] : value_of(axis, i);
        indices[i] = -1;
        for (int k = 0; k < dt_space_axis(source->space, its)->count; k++)
            if (same(&mine, &source->originals[its][k]))
                indices[i] = k;
    }
    return indices;
}

/* A parameter with one value may be missing on one side. */
dt_status dt_transfer_init(struct dt_transfer *transfer, const struct dt_space *space,
                           const struct dt_original *const originals[],
                           const struct dt_landscape *source)
{
    *transfer = (struct dt_transfer){.space = space, .source = source};
    for (int i = 0; i < dt_space_axes(space); i++) {
        const struct dt_axis *axis = dt_space_axis(space, i);
        int its = dt_space_find(source->space, axis->name);
        transfer->theirs[i] = its;
        if (its < 0 && axis->count > 1)
            return dt_fail(DT_EUSAGE, "the prior has no parameter '%s'", axis->name);
        if (its < 0)
            continue;
        transfer->indices[i] = match(axis, originals != NULL ? originals[i] : NULL, source, its);
        if (transfer->indices[i] == NULL)
            return dt_fail(DT_ENOMEM, "out of memory for a prior");
    }
    for (int i = 0; i < dt_space_axes(source->space); i++) {
        const struct dt_axis *axis = dt_space_axis(source->space, i);
        if (axis->count > 1 && dt_space_find(space, axis->name) < 0)
            return dt_fail(DT_EUSAGE, "the prior's parameter '%s' is not known here", axis->name);
    }
    return DT_OK;
}

void dt_transfer_fini(struct dt_transfer *transfer)
{
    for (int i = 0; i < DT_AXES_MAX; i++) {
        free(transfer->indices[i]);
        transfer->indices[i] = NULL;
    }
}

double dt_transfer_value(const struct dt_transfer *transfer, const struct dt_point *point)
{
    struct dt_point there = {{0}};
    for (int i = 0; i < dt_space_axes(transfer->space); i++) {
        if (transfer->theirs[i] < 0)
            continue;
        int32_t index = transfer->indices[i][point->index[i]];
        if (index < 0)
            return NAN;
        there.index[transfer->theirs[i]] = index;
    }
    int64_t k = dt_space_index(transfer->source->space, &there);
    if (k < 0)
        return NAN;
    double value = transfer->source->entries[k].value;
    return isnan(value) ? INFINITY : value;
}

bool dt_transfer_back(const struct dt_transfer *transfer, int axis, const struct dt_point *there,
                      int32_t *index)
{
    int its = transfer->theirs[axis], count = dt_space_axis(transfer->space, axis)->count;
    for (int i = 0; i < count; i++)
        if (its < 0 || transfer->indices[axis][i] == there->index[its]) {
            *index = i;
            return true;
        }
    return false;
}
