/* SPDX-License-Identifier: MIT */
/* encoding - points as coordinates that distances make sense in
 *
 * Every axis with more than one value is a dimension. Positive numbers, of which there are three or more, stand at their
 * logarithm, other numbers at their rank; both are scaled to [0, 1]. Labels stand at their number, and only equal or
 * different matters (Hamming distance, as in Optuna and SMAC3).
 *
 * Numbers also differ in what they are multiples of: vector lengths, banks and cache lines are powers of two, and 48 may
 * have more to do with 16 than with 47. Where the exponent of two of the values (that of 48 is 4) does not rise with
 * them, it is a second dimension of the axis.
 */
#ifndef DT_SEARCH_BAYES_POINTS_ENCODING_H
#define DT_SEARCH_BAYES_POINTS_ENCODING_H

#include "space/space.h"

#define DT_DIMS_MAX (2 * DT_AXES_MAX)

struct dt_encoding {
    int dims;
    int axis[DT_DIMS_MAX];
    bool label[DT_DIMS_MAX];
    bool exponent[DT_DIMS_MAX];     /* of two, in the values; the dimension before has the values */
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
