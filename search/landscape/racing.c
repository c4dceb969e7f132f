/* SPDX-License-Identifier: MIT */
#include "search/landscape/racing.h"

#include "search/racing.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>

struct plan {
    const double *samples;
    int count;
    double truth; /* median of all warm repetitions */
};

static dt_status collect(const struct dt_landscape *landscape, struct plan **plans, int *count)
{
    struct plan *made = calloc((size_t)landscape->count + 1, sizeof *made);
    int n = 0;
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for the repetitions of %lld plans",
                       (long long)landscape->count);
    for (int64_t k = 0; k < landscape->count; k++) {
        const struct dt_entry *entry = &landscape->entries[k];
        const double *samples = &landscape->samples[entry->first];
        if (entry->count > 1 + DT_RACE_WARM && isfinite(entry->value))
            made[n++] = (struct plan){.samples = samples,
                                      .count = entry->count,
                                      .truth = dt_stats_median(samples + 1, entry->count - 1)};
    }
    *count = n;
    *plans = made;
    if (n < 2)
        return dt_fail(DT_EUSAGE, "the table has %d plans with repetitions to race, expected two",
                       n);
    return DT_OK;
}

/* Measures one plan; true when it was not dropped. */
static bool run(const struct plan *plan, const struct plan *best, struct dt_raced *raced)
{
    struct dt_race race = {.most = plan->count - 1};
    enum dt_race_next next;
    int n = 0, until = 0;
    if (best != NULL) {
        race.best = best->samples + 1;
        race.best_count = best->count - 1;
    }
    while ((next = dt_race_look(&race, plan->samples, n, &until)) == DT_RACE_MORE)
        n = until;
    for (int i = 0; i < plan->count; i++) {
        raced->all += plan->samples[i];
        raced->spent += i < n ? plan->samples[i] : 0;
    }
    raced->repetitions += n;
    raced->ended[next]++;
    return next == DT_RACE_ENOUGH;
}

/* Shuffles the first raced->plans (Durstenfeld 1964) and races them. */
static void race_order(struct plan plans[], int count, struct dt_rng *rng, struct dt_raced *raced)
{
    const struct plan *best = NULL;
    double truth = INFINITY;
    for (int i = 0; i < raced->plans; i++) {
        int k = i + (int)dt_rng_below(rng, (uint64_t)(count - i));
        struct plan drawn = plans[k];
        plans[k] = plans[i];
        plans[i] = drawn;
        truth = fmin(truth, drawn.truth);
        if (run(&plans[i], best, raced) && (best == NULL || drawn.truth < best->truth))
            best = &plans[i];
    }
    if (best == NULL) /* cannot happen: the first plan of an order is never dropped */
        return;
    raced->lost += best->truth > truth;
    raced->worst = fmax(raced->worst, best->truth / truth);
}

dt_status dt_race_replay(const struct dt_landscape *landscape, int orders, int plans, uint64_t seed,
                         struct dt_raced *raced)
{
    struct plan *list = NULL;
    int count = 0;
    dt_status status = collect(landscape, &list, &count);
    if (status == DT_OK) {
        struct dt_raced made = {.orders = orders, .plans = plans < count ? plans : count};
        struct dt_rng rng = dt_rng_at(seed, "orders");
        for (int i = 0; i < orders; i++)
            race_order(list, count, &rng, &made);
        made.repetitions /= (double)orders * made.plans;
        made.saved = 1 - made.spent / made.all;
        *raced = made;
    }
    free(list);
    return status;
}

void dt_raced_text(const struct dt_raced *raced, struct dt_text *out)
{
    dt_text_add(out, "racing             %d orders of %d plans\n", raced->orders, raced->plans);
    dt_text_add(out, "repetition time    %.1f %% saved, %.3g repetitions a plan\n",
                100 * raced->saved, raced->repetitions);
    dt_text_add(out, "best plan lost     in %d of %d orders, at most %.3g %% of its time\n",
                raced->lost, raced->orders, 100 * (raced->worst - 1));
}
