/* SPDX-License-Identifier: MIT */
#include "tuner/measure/compare/entrant.h"

#include "base/array.h"
#include "base/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const role_texts[] = {
#define DT_ENTRANT_ROLE(name, text) [name] = (text),
#include "tuner/measure/compare/role.def"
#undef DT_ENTRANT_ROLE
};

const char *dt_entrant_role_text(enum dt_entrant_role role)
{
    return role_texts[role];
}

dt_status dt_entrant_role_find(const char *what, const char *text, enum dt_entrant_role *role)
{
    for (int i = 0; i < DT_ENTRANT_ROLES; i++)
        if (strcmp(role_texts[i], text) == 0) {
            *role = (enum dt_entrant_role)i;
            return DT_OK;
        }
    return dt_fail(DT_EUSAGE, "%s: the role '%.40s' is unknown", what, text);
}

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

bool dt_compared_is_final(const struct dt_compared *compared)
{
    return strcmp(compared->name, DT_FINAL_COMPARISON) == 0;
}

bool dt_entrant_twin(const struct dt_entrant *entrant)
{
    return entrant->role == DT_ENTRANT_TWIN;
}

double dt_visit_seconds(const struct dt_result *result, int from, int steps)
{
    double seconds[DT_VISIT_STEPS];
    dt_stats_over_ranks(result->report.ns + (size_t)from * (size_t)result->ranks, steps,
                        result->ranks, dt_result_parts(result), seconds, NULL);
    return dt_stats_median(seconds, steps);
}

/* Index of the documented plan where it is compared beside the default; 0: it is not. */
static int documented_of(const struct dt_entrant entrants[], int n)
{
    for (int i = 1; i < n; i++)
        if (entrants[i].role == DT_ENTRANT_DOCUMENTED)
            return i;
    return 0;
}

/* The entrants as numbers; values: room for each, NAN where there was no visit. */
static void take_numbers(const struct dt_target *target, const struct dt_entrant entrants[], int n,
                         double values[][DT_ROUNDS_MOST], struct dt_judged judged[])
{
    for (int i = 0; i < n; i++) {
        const struct dt_entrant *entrant = &entrants[i];
        for (int k = 0; k < DT_ROUNDS_MOST; k++)
            values[i][k] = target->objective->value(
                entrant->visits[k], dt_result_images(&entrant->result), entrant->result.devices);
        judged[i] = (struct dt_judged){
            .values = values[i],
            .out = entrant->out,
            .decisive = entrant->decisive,
            .rival = entrant->role == DT_ENTRANT_CANDIDATE ? documented_of(entrants, n) : 0,
            .twin = dt_entrant_twin(entrant),
            .ratio = entrant->ratio};
    }
}

struct dt_ratio dt_entrants_ratio(const struct dt_target *target,
                                  const struct dt_entrant entrants[], const int pair[2], int n,
                                  const struct dt_sets *sets)
{
    double values[DT_ENTRANTS][DT_ROUNDS_MOST];
    struct dt_judged judged[DT_ENTRANTS];
    if (pair[0] == 0)
        return entrants[pair[1]].ratio;
    take_numbers(target, entrants, n, values, judged);
    return dt_judge_ratio_through(values[0], values[pair[0]], values[pair[1]], sets,
                                  dt_stats_set_level(dt_sets_quiet(sets)));
}

/* Judges after a set, the final one when `last`; true: decided. */
bool dt_entrants_judge(const struct dt_target *target, struct dt_entrant entrants[], int n,
                       const struct dt_sets *sets, bool last)
{
    double values[DT_ENTRANTS][DT_ROUNDS_MOST];
    struct dt_judged judged[DT_ENTRANTS];
    bool decided = false;
    take_numbers(target, entrants, n, values, judged);
    if (last)
        dt_judge_set_end(judged, n, sets);
    else
        decided = dt_judge_set_look(judged, n, sets);
    for (int i = 0; i < n; i++)
        entrants[i].ratio = judged[i].ratio;
    return decided;
}

/* Writes the median visit of each set of fresh processes, of disturbed ones only where there are no
 * others; returns the number of sets with visits. */
static int seconds_of_sets(const struct dt_entrant *entrant, const struct dt_sets *sets,
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
    int n = seconds_of_sets(entrant, sets, seconds);
    DT_TRY(take_visits(entrant, dt_sets_rounds(sets), level));
    if (n == 0)
        return DT_OK;
    DT_TRY(DT_RESIZE(result->samples.process_seconds, n));
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
    struct dt_sets so_far = *sets;
    so_far.count = 0;
    for (int i = 0; i < n; i++)
        out[i] = entrants[i].out;
    while (so_far.count < sets->count && !decided) {
        for (int i = 0; i < n; i++)
            entrants[i].out = out[i] && so_far.count >= entrants[i].out_set;
        so_far.count++;
        decided = dt_entrants_judge(target, entrants, n, &so_far, false);
    }
    for (int i = 0; i < n; i++)
        entrants[i].out = out[i];
    dt_entrants_judge(target, entrants, n, &so_far, true);
    *sets = so_far;
    for (int i = 0; i < n; i++)
        DT_TRY(dt_entrant_finish(&entrants[i], sets));
    return DT_OK;
}

/* ---- noise */

/* The spread of the visits is taken from the median absolute deviation: a single spike
 * among tens of visits does not affect a median of ratios, so it must not make a machine
 * count as too noisy, either. */

static double visit_spread(const struct dt_entrant *entrant)
{
    const struct dt_summary *summary = &entrant->result.summary;
    return entrant->result.samples.n > 0 ? summary->mad / summary->median : NAN;
}

struct dt_noise dt_noise_none(void)
{
    return (struct dt_noise){.ratio = NAN, .interval = {NAN, NAN}, .margin = NAN, .cv = NAN};
}

struct dt_noise dt_noise_of(const struct dt_entrant *first, const struct dt_entrant *twin)
{
    const struct dt_ratio *ratio = &twin->ratio;
    if (isnan(dt_judge_margin(ratio)))
        return dt_noise_none();
    struct dt_noise noise = {.pairs = ratio->pairs,
                             .sets = ratio->sets,
                             .ratio = ratio->ratio,
                             .interval = ratio->interval,
                             .margin = dt_judge_margin(ratio),
                             .cv = fmax(visit_spread(first), visit_spread(twin)),
                             .differs = ratio->interval.low > 1 || ratio->interval.high < 1};
    noise.noisy = noise.margin > DT_NOISE_MOST || noise.cv > DT_NOISE_MOST;
    return noise;
}

void dt_noise_note(const struct dt_noise *noise, struct dt_text *out)
{
    if (noise->margin > DT_NOISE_LOST)
        dt_text_add(out, "the machine is not quiet: even a factor of two is lost in the noise");
    else if (noise->margin > DT_NOISE_MOST)
        dt_text_add(out,
                    "the machine is not quiet: differences below %.1f %% are lost in the noise",
                    100 * noise->margin);
    else if (noise->noisy)
        dt_text_add(
            out, "the machine is not quiet: the visits of one and the same plan spread by %.1f %%",
            100 * noise->cv);
    if (noise->differs && dt_figure_tells(noise->interval.low, noise->interval.high))
        dt_text_add(out,
                    "%sthe same plan differed from itself, its second copy ran %.3f to %.3f times "
                    "as long: place or order have an effect",
                    noise->noisy ? "; " : "", noise->interval.low, noise->interval.high);
}

/* ---- levels */

/* With sets s, copies c and visits k of them, y = start_s + residency_sc + visit_sck. Mean squares
 * between sets, between the copies of a set and within copies have the expectations
 *
 *     within  = v          copies = v + n r          sets = v + n r + 2 n t
 *
 * of the variances v of visits, r of residencies and t of starts, for n visits a copy (its
 * mean where they differ). */

struct sums {
    int sets, visits;
    double within, copies; /* sums of squares */
    double means[DT_SETS_MOST];
};

/* Mean of the logarithms of the rounds first to last; how many there are; adds
 * their squares about it. */
static double log_mean(const double visits[], int first, int last, int *n, double *squares)
{
    double sum = 0, mean;
    *n = 0;
    for (int k = first; k < last; k++)
        if (isfinite(visits[k])) {
            sum += log(visits[k]);
            ++*n;
        }
    mean = sum / *n;
    for (int k = first; k < last; k++)
        if (isfinite(visits[k]))
            *squares += (log(visits[k]) - mean) * (log(visits[k]) - mean);
    return mean;
}

static void level_add_set(const struct dt_entrant copies[2], int first, int last, struct sums *sums)
{
    double means[2], within = 0;
    int n[2];
    for (int c = 0; c < 2; c++)
        means[c] = log_mean(copies[c].visits, first, last, &n[c], &within);
    if (n[0] < 2 || n[1] < 2)
        return;
    sums->within += within;
    sums->visits += n[0] + n[1];
    sums->copies += (means[0] - means[1]) * (means[0] - means[1]) / 2;
    sums->means[sums->sets++] = (means[0] + means[1]) / 2;
}

struct dt_levels dt_levels(const struct dt_entrant copies[2], const struct dt_sets *sets)
{
    struct sums sums = {0};
    for (int s = 0, first = 0; s < sets->count; first += sets->rounds[s++])
        level_add_set(copies, first, first + sets->rounds[s], &sums);
    struct dt_levels levels = {.sets = sums.sets, .visit = NAN, .residency = NAN, .start = NAN};
    if (sums.sets < 2)
        return levels;
    double n = (double)sums.visits / (2 * sums.sets), all = dt_stats_mean(sums.means, sums.sets);
    double visit = sums.within / (sums.visits - 2 * sums.sets);
    double copy = sums.copies / sums.sets; /* variance of a residency's mean: r + v / n */
    double set = 0;                        /* variance of a set's mean: t + (r + v / n) / 2 */
    for (int s = 0; s < sums.sets; s++)
        set += (sums.means[s] - all) * (sums.means[s] - all) / (sums.sets - 1);
    levels.visit = sqrt(visit);
    levels.residency = sqrt(fmax(0, copy - visit / n));
    levels.start = sqrt(fmax(0, set - copy / 2));
    return levels;
}
