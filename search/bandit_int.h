/* SPDX-License-Identifier: MIT */
/* bandit - chooses the arm to pull next by area-under-curve credit
 *
 * An arm's credit is the area under the curve of its successes among the last `window` answers: over its own answers t
 * = 1, 2, .. n, oldest first, the sum of t where it succeeded by the sum of all t. A bonus of explore sqrt(2 log2(all)
 * / n) favours arms that were seldom pulled (Fialho et al. 2010). Outstanding answers count as pulls.
 */
#ifndef DT_SEARCH_BANDIT_INT_H
#define DT_SEARCH_BANDIT_INT_H

#include "base/status.h"

#include <stdbool.h>

struct dt_event {
    int arm;
    bool success;
};

struct dt_bandit {
    struct dt_event *events; /* [window], oldest first */
    int count, window;
};

/* Counts of an arm in the window; area: sum of t over its successes. */
struct dt_uses {
    int count, successes;
    double area;
};

dt_status dt_bandit_init(struct dt_bandit *bandit, int window) DT_MUST_CHECK;
void dt_bandit_fini(struct dt_bandit *bandit);
void dt_bandit_tell(struct dt_bandit *bandit, int arm, bool success);
struct dt_uses dt_bandit_uses(const struct dt_bandit *bandit, int arm);

/* pending: pulls of the arm without an answer yet; all_pending: of all arms. INFINITY for an arm never pulled. */
double dt_bandit_score(const struct dt_bandit *bandit, int arm, int pending, int all_pending,
                       double explore);

#endif
