/* SPDX-License-Identifier: MIT */
#include "tuner/measure/compare/entrant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void dt_entrant_fini(struct dt_entrant *entrant)
{
    dt_result_fini(&entrant->result);
}

bool dt_entrant_faster(const struct dt_entrant *entrant)
{
    return dt_judge_faster(&entrant->ratio);
}

bool dt_entrant_slower(const struct dt_entrant *entrant)
{
    return dt_judge_slower(&entrant->ratio);
}

bool dt_entrant_twin(const struct dt_entrant *entrant)
{
    return entrant->role == DT_ENTRANT_TWIN;
}

double dt_visit_seconds(const struct dt_result *result, int from, int steps)
{
    double seconds[DT_VISIT_STEPS];
    dt_stats_over_ranks(result->report.ns + (size_t)from * (size_t)result->ranks, steps,
                        result->ranks, seconds, NULL);
    return dt_stats_median(seconds, steps);
}

/* The entrants as numbers; values: room for each, NAN where there was no visit. */
static void look_at(const struct dt_target *target, const struct dt_entrant entrants[], int n,
                    double values[][DT_ROUNDS_MOST], struct dt_judged judged[])
{
    for (int i = 0; i < n; i++) {
        const struct dt_entrant *entrant = &entrants[i];
        for (int k = 0; k < DT_ROUNDS_MOST; k++)
            values[i][k] = target->objective->value(entrant->visits[k], entrant->result.batch,
                                                    entrant->result.devices);
        judged[i] = (struct dt_judged){.values = values[i],
                                       .out = entrant->out,
                                       .decisive = entrant->decisive,
                                       .twin = dt_entrant_twin(entrant),
                                       .ratio = entrant->ratio};
    }
}

/* Judges after a set, the final one when `last`; true: decided. */
bool dt_entrants_judge(const struct dt_target *target, struct dt_entrant entrants[], int n,
                       const struct dt_sets *sets, bool last)
{
    double values[DT_ENTRANTS][DT_ROUNDS_MOST];
    struct dt_judged judged[DT_ENTRANTS];
    bool decided = false;
    look_at(target, entrants, n, values, judged);
    if (last)
        dt_judge_set_end(judged, n, sets);
    else
        decided = dt_judge_set_look(judged, n, sets);
    for (int i = 0; i < n; i++)
        entrants[i].ratio = judged[i].ratio;
    return decided;
}

/* Writes the median visit of each set of fresh processes, of disturbed ones only where there are no others; returns the number of sets with visits. */
static int set_seconds(const struct dt_entrant *entrant, const struct dt_sets *sets,
                       double seconds[DT_SETS_MOST])
{
    int n = 0, quiet = dt_sets_quiet(sets);
    for (int s = 0, first = 0; s < sets->count; first += sets->rounds[s++]) {
        double visits[DT_SET_ROUNDS];
        int count = 0;
        if (quiet > 0 && dt_sets_disturbed(sets, s))
            continue;
        for (int k = first; k < first + sets->rounds[s]; k++)
            if (isfinite(entrant->visits[k]))
                visits[count++] = entrant->visits[k];
        if (count > 0)
            seconds[n++] = dt_stats_median(visits, count);
    }
    return n;
}

/* The published samples are the visits, not their steps: steps in a row are not independent. */
static dt_status take_visits(struct dt_entrant *entrant, int rounds, double level)
{
    struct dt_result *result = &entrant->result;
    if (result->report.steps == 0)
        return DT_OK;
    DT_TRY(dt_result_finish(result, level, false, 0));
    int n = 0;
    for (int k = 0; k < rounds; k++)
        if (isfinite(entrant->visits[k]))
            result->samples.seconds[n++] = entrant->visits[k];
    if (n > 0) {
        result->samples.n = n;
        result->summary = dt_stats_summary(result->samples.seconds, n, level);
    }
    return DT_OK;
}

/* The interval of the time is over the sets. */
dt_status dt_entrant_finish(struct dt_entrant *entrant, const struct dt_sets *sets)
{
    struct dt_result *result = &entrant->result;
    double seconds[DT_SETS_MOST], level = dt_stats_set_level(dt_sets_quiet(sets));
    int n = set_seconds(entrant, sets, seconds);
    DT_TRY(take_visits(entrant, dt_sets_rounds(sets), level));
    if (n == 0)
        return DT_OK;
    free(result->samples.process_seconds);
    result->samples.process_seconds = malloc((size_t)n * sizeof *result->samples.process_seconds);
    if (result->samples.process_seconds == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    memcpy(result->samples.process_seconds, seconds, (size_t)n * sizeof *seconds);
    result->samples.processes = dt_stats_processes(seconds, n, level);
    result->summary.median = result->samples.processes.median;
    if (n < DT_SETS_LEAST)
        result->samples.processes.interval = (struct dt_interval){NAN, NAN};
    result->summary.interval = result->samples.processes.interval;
    result->summary.unreliable = false; /* that concerns neighbouring samples of one start */
    return DT_OK;
}

dt_status dt_entrants_rejudge(const struct dt_target *target, struct dt_entrant entrants[], int n,
                              struct dt_sets *sets)
{
    bool out[DT_ENTRANTS] = {false}, decided = false;
    struct dt_sets made = *sets;
    made.count = 0;
    for (int i = 0; i < n; i++)
        out[i] = entrants[i].out;
    while (made.count < sets->count && !decided) {
        for (int i = 0; i < n; i++)
            entrants[i].out = out[i] && made.count >= entrants[i].out_set;
        made.rounds[made.count] = sets->rounds[made.count];
        made.others[made.count] = sets->others[made.count];
        made.count++;
        decided = dt_entrants_judge(target, entrants, n, &made, false);
    }
    for (int i = 0; i < n; i++)
        entrants[i].out = out[i];
    dt_entrants_judge(target, entrants, n, &made, true);
    *sets = made;
    for (int i = 0; i < n; i++)
        DT_TRY(dt_entrant_finish(&entrants[i], sets));
    return DT_OK;
}
