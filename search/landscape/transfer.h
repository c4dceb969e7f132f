/* SPDX-License-Identifier: MIT */
/* transfer - maps the plans of a recorded table to those of another space, by parameter names and the values in the files */
#ifndef DT_SEARCH_LANDSCAPE_TRANSFER_H
#define DT_SEARCH_LANDSCAPE_TRANSFER_H

#include "search/landscape/landscape.h"

struct dt_transfer {
    const struct dt_space *space;
    const struct dt_landscape *source;
    int theirs[DT_AXES_MAX];       /* axis of the source, -1: it has none */
    int32_t *indices[DT_AXES_MAX]; /* of each value of an axis in the source's, or -1; owned */
};

/* Landscape and space outlive it. originals: the original values of each axis; NULL: the space's own numbers and
 * labels. Free it also after an error. DT_EUSAGE: a parameter of several values is missing on one side. */
dt_status dt_transfer_init(struct dt_transfer *transfer, const struct dt_space *space,
                           const struct dt_original *const originals[],
                           const struct dt_landscape *source) DT_MUST_CHECK;
void dt_transfer_fini(struct dt_transfer *transfer);

/* The source's value: NAN where it has none, INFINITY where it failed. */
double dt_transfer_value(const struct dt_transfer *transfer, const struct dt_point *point);

/* The reverse mapping for one axis: the index of the source plan's value; false: the axis does not have it. A parameter
 * that the source does not have takes its only value. */
bool dt_transfer_back(const struct dt_transfer *transfer, int axis, const struct dt_point *there,
                      int32_t *index);

#endif
