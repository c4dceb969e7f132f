/* SPDX-License-Identifier: MIT */
/* The reference is the session's, not the device's nominal clock: samples must be comparable with those of the other
 * plans, and they are on a machine that always runs at 80 %. */
#include "tuner/measure/throttle.h"

#include "base/array.h"
#include "tuner/measure/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SHARE 0.95 /* of the reference */

void dt_clocks_fini(struct dt_clocks *clocks)
{
    free(clocks->rate);
    *clocks = (struct dt_clocks){0};
}

/* Median clock of a rank over the steps from `from` on; NAN where the worker reported none. column: room for the
 * steps. */
static double median_clock(const struct dt_result *result, int rank, int from, double column[])
{
    int n = 0;
    for (int i = from; i < result->report.steps; i++) {
        double clock = result->report.clock[(size_t)i * (size_t)result->ranks + (size_t)rank];
        if (isfinite(clock))
            column[n++] = clock;
    }
    return dt_stats_median(column, n);
}

/* References of all ranks of the result: known ones, and its own medians for the others. */
static dt_status references(const struct dt_clocks *known, const struct dt_result *result, int from,
                            double **out)
{
    double *rate = calloc((size_t)result->ranks + (size_t)result->report.steps, sizeof *rate);
    if (rate == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    for (int r = 0; r < result->ranks; r++)
        rate[r] = known != NULL && r < known->ranks && isfinite(known->rate[r])
                      ? known->rate[r]
                      : median_clock(result, r, from, rate + result->ranks);
    *out = rate;
    return DT_OK;
}

dt_status dt_clocks_learn(struct dt_clocks *clocks, const struct dt_result *trial)
{
    double *rate = NULL;
    if (trial->report.clock == NULL || trial->report.steps <= trial->report.warm_up_steps)
        return DT_OK;
    DT_TRY(references(clocks, trial, trial->report.warm_up_steps, &rate));
    int most = clocks->ranks > trial->ranks ? clocks->ranks : trial->ranks;
    dt_status status = DT_RESIZE(clocks->rate, most);
    if (status == DT_OK) {
        memcpy(clocks->rate, rate, (size_t)trial->ranks * sizeof *rate);
        clocks->ranks = most;
    }
    free(rate);
    return status;
}

dt_status dt_throttle_mark(struct dt_result *result, int least)
{
    const struct dt_worker_report *report = &result->report;
    struct dt_throttling *throttling = &result->throttling;
    double *rate = NULL;
    free(throttling->marks);
    throttling->marks = NULL;
    throttling->count = 0;
    throttling->all = false;
    if (report->clock == NULL || least >= report->steps)
        return DT_OK;
    DT_TRY(references(throttling->clocks, result, least, &rate));
    throttling->marks = calloc((size_t)report->steps, sizeof *throttling->marks);
    for (int i = least; throttling->marks != NULL && i < report->steps; i++) {
        const double *clock = report->clock + (size_t)i * (size_t)result->ranks;
        for (int r = 0; r < result->ranks; r++)
            throttling->marks[i] = throttling->marks[i] || clock[r] < LEAST_SHARE * rate[r];
        throttling->count += throttling->marks[i];
    }
    throttling->all = throttling->count == report->steps - least;
    free(rate);
    return throttling->marks != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

bool dt_throttle_drops(const struct dt_throttling *throttling, int step)
{
    return throttling->marks != NULL && throttling->marks[step] && !throttling->all;
}

void dt_kept_fini(struct dt_kept *kept)
{
    free(kept->ns);
    free(kept->index);
    *kept = (struct dt_kept){0};
}

dt_status dt_throttle_keep(const struct dt_result *result, int from, struct dt_kept *out)
{
    size_t ranks = (size_t)result->ranks, most = (size_t)(result->report.steps - from);
    struct dt_kept kept = {.ns = calloc(most * ranks + 1, sizeof *kept.ns),
                           .index = calloc(most + 1, sizeof *kept.index)};
    if (kept.ns == NULL || kept.index == NULL) {
        dt_kept_fini(&kept);
        return dt_fail(DT_ENOMEM, "out of memory");
    }
    for (int i = from; i < result->report.steps; i++) {
        if (dt_throttle_drops(&result->throttling, i))
            continue;
        memcpy(kept.ns + (size_t)kept.n * ranks, result->report.ns + (size_t)i * ranks,
               ranks * sizeof *kept.ns);
        kept.index[kept.n++] = i;
    }
    *out = kept;
    return DT_OK;
}
