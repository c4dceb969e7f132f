/* SPDX-License-Identifier: MIT */
/* score - predictions of plans held against a table of measured times: winners,
 * errors, intervals, memory
 *
 * The rows of one table, device, model and metric are a group. Its anchor is the row of fewest
 * devices, of several the plan that the rule of thumb prefers: the anchor's measured time over its
 * predicted one scales the group's predictions. A pair is the rows of a group with the same number
 * of devices: random choice, the rule of thumb and the prediction each choose a plan of them.
 */
#ifndef DT_TUNER_CLI_PLANNED_SCORE_H
#define DT_TUNER_CLI_PLANNED_SCORE_H

#include "tuner/cli/options.h"
#include "tuner/cli/planned/measured.h"

/* Plans of a pair: the one measured best, the one predicted best, the one that the
 * rule of thumb prefers. */
struct dt_scored_pair {
    const struct dt_measured_row *first, *best, *picked, *ruled;
    int plans;
    double regret, rule, random; /* from measured times, less 1; random: the mean's */
};

struct dt_scores {
    int pairs, right, worse;     /* regret within 3 %; above the rule's */
    double regret, rule, random; /* sums over the pairs */
    double errors
        [DT_MEASURED_ROWS]; /* ascending: predicted over measured time, less 1, without the sign */
    int count, within_30, covered;
    int ratios, ratios_covered, told,
        told_right; /* pairs of plans of as many devices; of them, one told faster */
    int memories, memories_right, false_fits;
};

/* Sets `judged` of every row, with the constants in use (model/predict_constants.h). */
void dt_measured_predict(struct dt_timings *table);

/* False: an earlier row is of the pair of row i, or it has one plan only. */
bool dt_measured_pair(const struct dt_timings *table, int i, struct dt_scored_pair *pair);

bool dt_measured_covered(const struct dt_measured_row *row);

/* Adds the rows of the table with that name to *scores; NULL: all rows. */
void dt_measured_score(const struct dt_timings *table, const char *name, struct dt_scores *scores);

/* The error that a share of the rows is within; NAN: there are no rows. */
double dt_scores_error(const struct dt_scores *scores, double share);

/* Prints the scores of a CSV file. DT_EUSAGE: it is not as expected, or has no
 * rows to score; DT_EIO. */
dt_status dt_score_table(const struct dt_options *options, const char *path) DT_MUST_CHECK;

#endif
