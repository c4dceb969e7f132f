/* SPDX-License-Identifier: MIT */
/* encoding - points as coordinates that distances make sense in
 *
 * Every axis with more than one value is a dimension. Numbers whose ratios count (all positive, the largest at least
 * four times the smallest) stand at their logarithm, other numbers at their rank; both are scaled to [0, 1]. Labels
 * stand at their number, and only equal or different matters (Hamming distance, as in Optuna and SMAC3).
 */
#ifndef DT_SEARCH_BAYES_ENCODING_H
#define DT_SEARCH_BAYES_ENCODING_H

#include "space/space.h"

struct dt_encoding {
    int dims;
    int axis[DT_AXES_MAX];
    bool label[DT_AXES_MAX];
    float *coordinate[DT_AXES_MAX]; /* [values of the axis]; owned */
};

/* DT_ENOMEM. */
dt_status dt_encoding_init(struct dt_encoding *encoding,
                           const struct dt_space *space) DT_MUST_CHECK;
void dt_encoding_fini(struct dt_encoding *encoding);

/* Writes coordinate d to out[d * stride]. */
void dt_encoding_at(const struct dt_encoding *encoding, const struct dt_point *point, float out[],
                    size_t stride);

#endif
