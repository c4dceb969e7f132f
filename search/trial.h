/* SPDX-License-Identifier: MIT */
/* trial - one plan run in a session, as used by search and store. Failures are data. */
#ifndef DT_SEARCH_TRIAL_H
#define DT_SEARCH_TRIAL_H

#include "space/space.h"

#include <stdint.h>

enum dt_outcome {
#define DT_OUTCOME(name, text, doc) name,
#include "search/outcome.def"
    DT_TRIAL_OUTCOMES
};
const char *dt_outcome_text(enum dt_outcome outcome);

/* The failure may be temporary: a crash, a hang, a breach of the protocol, an error. Out of memory,
 * infeasible and wrong answers usually repeat. */
bool dt_outcome_may_pass(enum dt_outcome outcome);
dt_status dt_outcome_parse(const char *text, enum dt_outcome *outcome) DT_MUST_CHECK;

struct dt_trial {
    struct dt_point point;
    enum dt_outcome outcome;
    double value;       /* the objective, smaller is better; NAN when there is none */
    double low, high;   /* its interval; NAN when there is none */
    double variance;    /* variance of log value, from its samples; 0 unknown */
    double seconds;     /* median step */
    int64_t peak_bytes; /* the largest rank's; 0 unknown */
    double cost;        /* seconds the trial took */
    char cause[256];    /* why it failed; "" when it did not */
};

#endif
