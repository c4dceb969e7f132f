/* SPDX-License-Identifier: MIT */
/* encoding - maps points to coordinates with meaningful distances
 *
 * Every axis with more than one value is a dimension. The coordinate of positive numbers, if there are three or more,
 * is their logarithm, of other numbers their rank; both are scaled to [0, 1]. Labels have their number, and only
 * equality matters (Hamming distance, as in Optuna and SMAC3).
 *
 * Divisibility matters, too: vector lengths, banks and cache lines are powers of two, and 48 may behave more like 16
 * than like 47. Where the exponent of two of the values (that of 48 is 4) does not rise with them, it is a second
 * dimension of the axis.
 */
#ifndef DT_SEARCH_BAYES_POINTS_ENCODING_H
#define DT_SEARCH_BAYES_POINTS_ENCODING_H

#include "space/space.h"

#define DT_DIMS_MAX (2 * DT_AXES_MAX)

struct dt_encoding {
    int dims;
    int axis[DT_DIMS_MAX];
    bool label[DT_DIMS_MAX];
    /* holds exponents of two; the previous dimension has the values */
    bool exponent[DT_DIMS_MAX];
    float *coordinate[DT_DIMS_MAX]; /* [values of the axis]; owned */
};

/* DT_ENOMEM. */
dt_status dt_encoding_init(struct dt_encoding *encoding,
                           const struct dt_space *space) DT_MUST_CHECK;
void dt_encoding_fini(struct dt_encoding *encoding);

/* Writes coordinate d to out[d * stride]. */
void dt_encoding_at(const struct dt_encoding *encoding, const struct dt_point *point, float out[],
                    size_t stride);

#endif
