/* SPDX-License-Identifier: MIT */
#include "search/bayes/vote.h"

#include "base/array.h"

#include <stdlib.h>

static void set_kernel(struct dt_vote *vote, const struct dt_kernel *kernel)
{
    vote->kernel = *kernel;
    vote->kernel.signal = vote->kernel.share = 1;
    vote->kernel.constant = vote->kernel.slope = 0;
}

dt_status dt_vote_init(struct dt_vote *vote, const struct dt_cloud *cloud, double weight)
{
    *vote = (struct dt_vote){.cloud = cloud, .weight = weight};
    for (int d = 0; d < cloud->dims; d++)
        vote->kernel.length[d] = 1;
    set_kernel(vote, &vote->kernel);
    vote->good = calloc(cloud->room + 1, sizeof *vote->good);
    vote->all = calloc(cloud->room + 1, sizeof *vote->all);
    vote->row = calloc(cloud->room + 1, sizeof *vote->row);
    if (vote->good == NULL || vote->all == NULL || vote->row == NULL) {
        dt_vote_fini(vote);
        return dt_fail(DT_ENOMEM, "out of memory for a model of %d plans", cloud->count);
    }
    return DT_OK;
}

void dt_vote_fini(struct dt_vote *vote)
{
    free(vote->at);
    free(vote->works);
    free(vote->good);
    free(vote->all);
    free(vote->row);
    *vote = (struct dt_vote){0};
}

static void count(struct dt_vote *vote, int i, int first, int last)
{
    float *row = vote->row;
    dt_kernel_row(&vote->kernel, vote->cloud, vote->at[i], first, last - first, row);
    for (int k = first; k < last; k++) {
        vote->all[k] += row[k - first];
        vote->good[k] += vote->works[i] ? row[k - first] : 0;
    }
}

dt_status dt_vote_add(struct dt_vote *vote, int candidate, bool works)
{
    DT_TRY(DT_GROW(vote->at, vote->n, 1));
    DT_TRY(DT_GROW(vote->works, vote->n, 1));
    vote->at[vote->n] = candidate;
    vote->works[vote->n++] = works;
    vote->failures += !works;
    if (vote->failures == 1 && !works) /* votes are counted from the first failure on */
        dt_vote_refit(vote, &vote->kernel, 0, vote->cloud->count);
    else if (vote->failures > 0)
        count(vote, vote->n - 1, 0, vote->cloud->count);
    return DT_OK;
}

void dt_vote_refit(struct dt_vote *vote, const struct dt_kernel *kernel, int first, int last)
{
    set_kernel(vote, kernel);
    for (int k = first; k < last; k++)
        vote->good[k] = vote->all[k] = 0;
    for (int i = 0; i < vote->n && vote->failures > 0; i++)
        count(vote, i, first, last);
}

double dt_vote_works(const struct dt_vote *vote, int candidate)
{
    if (vote->failures == 0)
        return 1;
    double rate = (vote->n - vote->failures + 1.0) / (vote->n + 1.0);
    return ((double)vote->good[candidate] + vote->weight * rate) /
           ((double)vote->all[candidate] + vote->weight);
}
