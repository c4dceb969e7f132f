/* SPDX-License-Identifier: MIT */
/* racing - what the rule of search/racing.h saves on recorded repetitions, and what it loses
 *
 * Plans come in a random order. Each is measured as long as the rule says; one that was not dropped becomes the incumbent
 * when the median of its warm repetitions is the least so far. The best plan of an order is the one whose median over all
 * recorded warm repetitions is the least: it is lost when another is the incumbent in the end.
 */
#ifndef DT_SEARCH_LANDSCAPE_RACING_H
#define DT_SEARCH_LANDSCAPE_RACING_H

#include "search/landscape/landscape.h"

struct dt_raced {
    int orders, plans; /* plans of an order */
    int lost;          /* orders of which the best plan is not the last incumbent */
    double worst;      /* the last incumbent against the best, at most: 1 when nothing is lost */
    double all,
        spent; /* seconds (or the table's unit) of repetitions: all of them, those that were made */
    double repetitions; /* made a plan, on average */
    int64_t ended[4];   /* plans by enum dt_race_next */
};

/* Orders of at most `plans` plans with repetitions. DT_EUSAGE: the table has fewer than two of them. */
dt_status dt_race_replay(const struct dt_landscape *landscape, int orders, int plans, uint64_t seed,
                         struct dt_raced *raced) DT_MUST_CHECK;

json_t *dt_raced_json(const struct dt_raced *raced); /* new reference */
void dt_raced_text(const struct dt_raced *raced, struct dt_text *out);

#endif
