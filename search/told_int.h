/* SPDX-License-Identifier: MIT */
/* told - the answers so far, for strategies that look back at them */
#ifndef DT_SEARCH_TOLD_INT_H
#define DT_SEARCH_TOLD_INT_H

#include "search/trial.h"

struct dt_told_answer {
    struct dt_point point;
    double value; /* INFINITY: it failed */
};

struct dt_told {
    struct dt_told_answer *rows; /* best first; of equals the earlier told; failures last */
    int count;
};

/* The value of a trial; INFINITY when it failed. */
double dt_told_value(const struct dt_trial *trial);

/* A point told again has its latest value. Forgets the answer when memory is short. */
void dt_told_add(struct dt_told *told, const struct dt_space *space, const struct dt_trial *trial);
void dt_told_fini(struct dt_told *told);

#endif
