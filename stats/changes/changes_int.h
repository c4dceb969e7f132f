/* SPDX-License-Identifier: MIT */
/* changes_int - shared by the files of changes and their tests */
#ifndef DT_STATS_CHANGES_CHANGES_INT_H
#define DT_STATS_CHANGES_CHANGES_INT_H

#include "stats/changes/changes.h"

/* Points, and their random permutations for the tests; each point stays within its part. */
struct dt_order {
    const double *x;
    double *shuffled; /* room for as many */
    int n;
    const int *cuts; /* starts of all parts but the first; NULL for one part */
    int parts;
};

/* Test statistics. Of one part: the largest difference between two sides (split), and between
 * a piece in the middle and the rest (arc); *from, *to (may be NULL) are its ends. Of any
 * number of parts: the sum of slopes (of one sign: upwards). Of one part: the largest step
 * beside a straight line. */
double dt_split(const struct dt_order *order, int *at);

enum dt_change_test { DT_CHANGE_SPLIT, DT_CHANGE_ARC, DT_CHANGE_SLOPES, DT_CHANGE_BESIDE_LINE };

/* The statistic reaches its observed value in at most `alpha` of the orders. */
bool dt_order_rare(const struct dt_order *order, enum dt_change_test test, double alpha);

/* Most likely position of one step in x, at least DT_CHANGES_STRETCH points from either end;
 * *earliest and *latest may be NULL. 0 when n is too small or memory runs out. */
int dt_place(const double x[], int n, int *earliest, int *latest);

#endif
