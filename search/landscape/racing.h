/* SPDX-License-Identifier: MIT */
/* racing - replays the rule of search/racing.h on recorded repetitions: time saved and best plans lost
 *
 * Plans come in a random order. Each is measured as long as the rule continues; a plan that was not dropped becomes the
 * incumbent when the median of its warm repetitions is the least so far. The best plan of an order is the one whose
 * median over all recorded warm repetitions is the least: it is lost when another plan is the final incumbent.
 */
#ifndef DT_SEARCH_LANDSCAPE_RACING_H
#define DT_SEARCH_LANDSCAPE_RACING_H

#include "search/landscape/landscape.h"

struct dt_raced {
    int orders, plans; /* plans of an order */
    int lost;          /* orders in which the best plan was lost */
    double worst;      /* largest ratio of final incumbent to best plan; 1: nothing lost */
    double all,
        spent;    /* time of all repetitions, and of those made: seconds, or the table's unit */
    double saved; /* share of that time */
    double repetitions; /* average number per plan */
    int64_t ended[4];   /* plans by enum dt_race_next */
};

/* Orders of at most `plans` plans with repetitions. DT_EUSAGE: the table has fewer than two of them. */
dt_status dt_race_replay(const struct dt_landscape *landscape, int orders, int plans, uint64_t seed,
                         struct dt_raced *raced) DT_MUST_CHECK;

void dt_raced_text(const struct dt_raced *raced, struct dt_text *out);

#endif
