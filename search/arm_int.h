/* SPDX-License-Identifier: MIT */
/* arm - a strategy with its settings and state, opened from the user's text
 *
 * The search has one; a strategy that uses others (stages) has more.
 */
#ifndef DT_SEARCH_ARM_INT_H
#define DT_SEARCH_ARM_INT_H

#include "search/search.h"

struct dt_arm {
    const struct dt_strategy *strategy; /* NULL: not open */
    void *state;
    double knobs[DT_KNOBS_MAX]; /* the state may point here: do not move an open arm */
};

/* arm_parse, and the strategy's init; opts->seen is set. DT_EUSAGE, DT_ENOMEM, errors of init. */
dt_status dt_arm_open(struct dt_arm *arm, const char *text,
                      const struct dt_search_opts *opts) DT_MUST_CHECK;
void dt_arm_close(struct dt_arm *arm);

/* The strategy for a space without stages: exhaustive where all its plans fit the room (trials;
 * 0: unknown), else bayes, or tpe where there are so many answers that a model's linear algebra
 * costs more than it finds. */
const char *dt_arm_fitting(const struct dt_space *space, double room);

dt_status dt_arm_ask(struct dt_arm *arm, struct dt_point *point) DT_MUST_CHECK;
int64_t dt_arm_ahead(const struct dt_arm *arm);
void dt_arm_tell(struct dt_arm *arm, const struct dt_trial *trial);
void dt_arm_note(const struct dt_arm *arm, struct dt_text *out);
struct dt_refits dt_arm_refits(const struct dt_arm *arm);
struct dt_chance dt_arm_chance(const struct dt_arm *arm);

#endif
