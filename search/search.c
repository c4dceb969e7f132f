/* SPDX-License-Identifier: MIT */
/* Enforces the guarantees of all strategies: first the default and the known-good points, then the strategy's
 * proposals, no point twice and no infeasible one, until no point is left. */
#include "search/arm_int.h"
#include "search/seen.h"

#include <stdlib.h>
#include <string.h>

enum { REFUSALS = 64 }; /* consecutive old proposals before a point is drawn */

static const char *const outcomes[] = {
#define DT_OUTCOME(name, text, doc) text,
#include "search/outcome.def"
#undef DT_OUTCOME
};

const char *dt_outcome_text(enum dt_outcome outcome)
{
    return outcome >= 0 && outcome < DT_TRIAL_OUTCOMES ? outcomes[outcome] : "unknown outcome";
}

bool dt_outcome_may_pass(enum dt_outcome outcome)
{
    return outcome == DT_TRIAL_CRASHED || outcome == DT_TRIAL_HUNG ||
           outcome == DT_TRIAL_PROTOCOL || outcome == DT_TRIAL_FAILED;
}

dt_status dt_outcome_parse(const char *text, enum dt_outcome *outcome)
{
    for (int i = 0; i < DT_TRIAL_OUTCOMES; i++)
        if (strcmp(text, outcomes[i]) == 0) {
            *outcome = (enum dt_outcome)i;
            return DT_OK;
        }
    return dt_fail(DT_EUSAGE, "unknown outcome '%s'", text);
}

struct dt_search {
    const struct dt_space *space;
    struct dt_seen seen;
    struct dt_rng rng;
    struct dt_point *first; /* the default, then the known-good ones */
    int first_count, first_next;
    struct dt_arm arm;
    int pending; /* points asked for without an answer so far */
};

dt_status dt_search_check(const char *name)
{
    struct dt_arm arm;
    return dt_arm_parse(name, &arm);
}

static dt_status copy_first(struct dt_search *search, const struct dt_search_opts *opts)
{
    search->first = calloc((size_t)opts->known_count + 1, sizeof *search->first);
    if (search->first == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a search");
    if (opts->start != NULL)
        search->first[search->first_count++] = *opts->start;
    for (int i = 0; i < opts->known_count; i++)
        search->first[search->first_count++] = opts->known[i];
    return DT_OK;
}

static dt_status open_search(struct dt_search *search, const char *name,
                             const struct dt_search_opts *opts)
{
    struct dt_search_opts mine = *opts;
    search->space = opts->space;
    search->rng = dt_rng_at(opts->seed, "search");
    DT_TRY(dt_search_check(name));
    DT_TRY(dt_seen_init(&search->seen, opts->space));
    DT_TRY(copy_first(search, opts));
    mine.seen = &search->seen;
    return dt_arm_open(&search->arm, name, &mine);
}

dt_status dt_search_new(const char *name, const struct dt_search_opts *opts, struct dt_search **out)
{
    struct dt_search *search = calloc(1, sizeof *search);
    dt_status status = search != NULL
                           ? open_search(search, name, opts)
                           : dt_fail(DT_ENOMEM, "out of memory for the search '%.80s'", name);
    if (status < 0) {
        dt_search_free(search);
        return status;
    }
    *out = search;
    return DT_OK;
}

static bool is_new(const struct dt_search *search, const struct dt_point *point)
{
    return dt_space_feasible(search->space, point) && !dt_seen_has(&search->seen, point);
}

static dt_status propose(struct dt_search *search, struct dt_point *point)
{
    while (search->first_next < search->first_count) {
        *point = search->first[search->first_next++];
        if (is_new(search, point))
            return DT_OK;
    }
    for (int i = 0; i < REFUSALS; i++) {
        dt_status status = dt_arm_ask(&search->arm, point);
        if (status != DT_OK || is_new(search, point))
            return status;
    }
    return dt_seen_draw(&search->seen, &search->rng, point) ? DT_OK : DT_DONE;
}

dt_status dt_search_ask(struct dt_search *search, struct dt_point *point)
{
    struct dt_point proposed = {{0}};
    if (dt_seen_all(&search->seen))
        return DT_DONE;
    dt_status status = propose(search, &proposed);
    if (status != DT_OK)
        return status;
    if (!dt_seen_add(&search->seen, &proposed))
        return dt_fail(DT_ENOMEM, "out of memory for a search");
    search->pending++;
    *point = proposed;
    return DT_OK;
}

void dt_search_tell(struct dt_search *search, const struct dt_trial *trial)
{
    if (!dt_space_feasible(search->space, &trial->point))
        return;
    if (search->pending > 0 && dt_seen_has(&search->seen, &trial->point))
        search->pending--;
    dt_seen_add(&search->seen, &trial->point);
    dt_arm_tell(&search->arm, trial);
}

void dt_search_note(const struct dt_search *search, struct dt_text *out)
{
    if (dt_seen_all(&search->seen) && search->pending == 0)
        dt_text_add(out, "every plan was tried");
    else
        dt_arm_note(&search->arm, out);
}

void dt_search_reason(const struct dt_search *search, struct dt_text *out)
{
    if (search->arm.strategy->reason != NULL)
        search->arm.strategy->reason(search->arm.state, out);
}

struct dt_refits dt_search_refits(const struct dt_search *search)
{
    return dt_arm_refits(&search->arm);
}

void dt_search_free(struct dt_search *search)
{
    if (search == NULL)
        return;
    dt_arm_close(&search->arm);
    dt_seen_fini(&search->seen);
    free(search->first);
    free(search);
}
