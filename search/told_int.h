/* SPDX-License-Identifier: MIT */
/* told - the answers so far, sorted, for strategies that use them */
#ifndef DT_SEARCH_TOLD_INT_H
#define DT_SEARCH_TOLD_INT_H

#include "search/trial.h"

struct dt_told_answer {
    struct dt_point point;
    double value; /* INFINITY: it failed */
};

struct dt_told {
    struct dt_told_answer *rows; /* best first; among equals the earlier one; failures last */
    int count;
};

/* The value of a trial; INFINITY when it failed. */
double dt_told_value(const struct dt_trial *trial);

/* A point told again gets its latest value. Drops the answer when memory runs out. */
void dt_told_add(struct dt_told *told, const struct dt_space *space, const struct dt_trial *trial);
void dt_told_fini(struct dt_told *told);

#endif
