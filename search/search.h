/* SPDX-License-Identifier: MIT */
/* search - which point to try next
 *
 * A search is asked for points and told what came of them; it never runs anything. Whoever drives it may ask again
 * before the earlier answers are in, so one search can feed many workers:
 *
 *     while (dt_search_ask(search, &trial.point) == DT_OK) {
 *         run(&trial);
 *         dt_search_tell(search, &trial);
 *     }
 *
 * To add a strategy: write search/<name>.c that defines dt_strategy_<name>, and add a row to strategies.def.
 */
#ifndef DT_SEARCH_SEARCH_H
#define DT_SEARCH_SEARCH_H

#include "search/trial.h"

#include <stddef.h>

struct dt_search_opts {
    const struct dt_space
        *space; /* sealed, with at least one feasible point; outlives the search */
    uint64_t seed;
};

struct dt_strategy {
    const char *name, *doc;
    size_t state_size; /* the core allocates it, zeroed, and frees it */
    dt_status (*init)(void *state, const struct dt_search_opts *opts);
    /* Sets *point to a feasible point; DT_DONE when none is left; DT_WAIT when an earlier answer is needed first. */
    dt_status (*ask)(void *state, struct dt_point *point);
    /* (optional) Takes note of an answer, failures included; also for points nobody asked for (warm start, resume). */
    void (*tell)(void *state, const struct dt_trial *trial);
    void (*fini)(void *state); /* (optional) */
};

extern const struct dt_strategy *const dt_strategies[]; /* NULL-ended, rows of strategies.def */

struct dt_search;
/* DT_EUSAGE for an unknown name: lists the known ones. */
dt_status dt_search_new(const char *name, const struct dt_search_opts *opts,
                        struct dt_search **search) DT_MUST_CHECK;
dt_status dt_search_ask(struct dt_search *search, struct dt_point *point) DT_MUST_CHECK;
void dt_search_tell(struct dt_search *search, const struct dt_trial *trial);
void dt_search_free(struct dt_search *search);

#endif
