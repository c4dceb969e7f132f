/* SPDX-License-Identifier: MIT */
/* The parts of changes that its files and its tests share. */
#ifndef DT_STATS_CHANGES_CHANGES_INT_H
#define DT_STATS_CHANGES_CHANGES_INT_H

#include "stats/changes/changes.h"

/* Points and what they are held against: the same in random orders, each within its part. */
struct dt_order {
    const double *x;
    double *shuffled; /* room for as many */
    int n;
    const int *cuts; /* where parts begin but the first; NULL for one part */
    int parts;
};

/* Of one part: the largest difference of two sides; of a piece in the middle and the rest; *from, *to (may be NULL): where.
 * Then of any number of parts the sum of slopes (of one sign: upwards), and of one the largest step beside a straight line. */
double dt_split(const struct dt_order *order, int *at);
double dt_arc(const struct dt_order *order, int *from, int *to);
double dt_slopes(const struct dt_order *order);
double dt_step_beside_line(const struct dt_order *order, int *at);

enum dt_change_test { DT_CHANGE_SPLIT, DT_CHANGE_ARC, DT_CHANGE_SLOPES, DT_CHANGE_BESIDE_LINE };

/* The statistic is this large, or larger, in at most `alpha` of the orders. */
bool dt_order_rare(const struct dt_order *order, enum dt_change_test test, double alpha);

/* Most likely place of one step in x, points from DT_CHANGES_STRETCH on either side; *earliest and *latest may be NULL.
 * 0 when n is too small or memory short. */
int dt_place(const double x[], int n, int *earliest, int *latest);

/* x moved to within 2.5 deviations of fit, a deviation by the median absolute one: an outlier is one point of many. */
void dt_draw_in(const double x[], const double fit[], int n, double drawn[]);
void dt_draw_in_to_median(const double x[], int n, double drawn[]);

#endif
