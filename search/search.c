/* SPDX-License-Identifier: MIT */
#include "search/search.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define DT_STRATEGY(name) extern const struct dt_strategy dt_strategy_##name;
#include "search/strategies.def"
#undef DT_STRATEGY

const struct dt_strategy *const dt_strategies[] = {
#define DT_STRATEGY(name) &dt_strategy_##name,
#include "search/strategies.def"
#undef DT_STRATEGY
    NULL};

static const char *const outcomes[] = {
#define DT_OUTCOME(name, text, doc) text,
#include "search/outcome.def"
#undef DT_OUTCOME
};

const char *dt_outcome_text(enum dt_outcome outcome)
{
    return outcome >= 0 && outcome < DT_TRIAL_OUTCOMES ? outcomes[outcome] : "unknown outcome";
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
    const struct dt_strategy *strategy;
    void *state;
};

static dt_status unknown(const char *name)
{
    struct dt_text names = {0};
    for (int i = 0; dt_strategies[i] != NULL; i++)
        dt_text_add(&names, "%s%s", i > 0 ? ", " : "", dt_strategies[i]->name);
    dt_status status =
        dt_fail(DT_EUSAGE, "unknown search '%s': choose one of %s", name, dt_text_at(&names));
    dt_text_fini(&names);
    return status;
}

dt_status dt_search_new(const char *name, const struct dt_search_opts *opts, struct dt_search **out)
{
    const struct dt_strategy *strategy = NULL;
    for (int i = 0; dt_strategies[i] != NULL; i++)
        if (strcmp(dt_strategies[i]->name, name) == 0)
            strategy = dt_strategies[i];
    if (strategy == NULL)
        return unknown(name);
    struct dt_search *search = calloc(1, sizeof *search);
    void *state = calloc(1, strategy->state_size);
    dt_status status = search != NULL && state != NULL
                           ? strategy->init(state, opts)
                           : dt_fail(DT_ENOMEM, "out of memory for the search '%s'", name);
    if (status < 0) {
        free(state);
        free(search);
        return status;
    }
    *search = (struct dt_search){.strategy = strategy, .state = state};
    *out = search;
    return DT_OK;
}

dt_status dt_search_ask(struct dt_search *search, struct dt_point *point)
{
    return search->strategy->ask(search->state, point);
}

void dt_search_tell(struct dt_search *search, const struct dt_trial *trial)
{
    if (search->strategy->tell != NULL)
        search->strategy->tell(search->state, trial);
}

void dt_search_free(struct dt_search *search)
{
    if (search == NULL)
        return;
    if (search->strategy->fini != NULL)
        search->strategy->fini(search->state);
    free(search->state);
    free(search);
}
