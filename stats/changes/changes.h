/* SPDX-License-Identifier: MIT */
/* changes - finds steps and drifts in a history
 *
 * A series of a few to some thousand points in the order of time is cut into stretches, each level
 * or a straight line. A series of exchangeable points (one level, any noise) is cut or called
 * drifting once in a hundred at most, at any length: every finding is tested against 4999 random
 * orders of the same points. Ranks are compared, and a stretch has three points at least, so a
 * single outlier is no step. The orders are the same on every run, and so is the result.
 *
 *     struct dt_changes changes;
 *     status = dt_stats_changes(log_seconds, n, &changes);
 *     for (int i = 0; i < changes.count; i++)
 *         exp(changes.change[i].after - changes.change[i].before); // as a ratio, for logarithms
 */
#ifndef DT_STATS_CHANGES_CHANGES_H
#define DT_STATS_CHANGES_CHANGES_H

#include "base/status.h"

#include <stdbool.h>

#define DT_CHANGES_LEAST   11 /* points: with ten, no order is rare enough */
#define DT_CHANGES_STRETCH 3  /* points of a stretch, at least */
#define DT_CHANGES_MAX     64

struct dt_change {
    int at;               /* index of the first point after it */
    int earliest, latest; /* 95 % range of `at`, given that there is one step here */
    double before, after; /* level on either side; for a line, its end */
    bool may_be_line; /* a straight line through both stretches explains the points about as well */
};

struct dt_stretch {
    int from, count;
    double level; /* median; for a line, its value in the middle */
    double slope; /* per point; 0: level */
};

struct dt_changes {
    int count; /* number of changes; there is one more stretch */
    struct dt_change change[DT_CHANGES_MAX];
    struct dt_stretch stretch[DT_CHANGES_MAX + 1];
    bool more; /* there are more changes than fit: the rest is not cut */
};

/* Finite points in any unit. Fewer than DT_CHANGES_LEAST are one level stretch. DT_ENOMEM. */
dt_status dt_stats_changes(const double x[], int n, struct dt_changes *changes) DT_MUST_CHECK;

#endif
