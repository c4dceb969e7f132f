/* SPDX-License-Identifier: MIT */
/* Runs a comparison like the final one of a session, judged by check's own rule: decided rivals are skipped, and the
 * time goes to the undecided ones. */
#include "tuner/check/check.h"

#include "base/clock.h"
#include "base/figures.h"
#include "search/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STOP_SECONDS 0.6 /* to stop the groups */

/* Number of entrants between the tuned plan and the twin. */
static int rivals_of(const struct dt_check_entry *entry)
{
    return entry->count - 1 - entry->twin;
}

/* The rival to beat: the default, or the baseline where the default is the tuned plan, failed or is excluded. */
static int first_of(const struct dt_check_entry *entry)
{
    static const enum dt_entrant_role roles[] = {DT_ENTRANT_DEFAULT, DT_ENTRANT_BASELINE};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < rivals_of(entry); i++)
            if (entry->entrants[i + 1].role == roles[k] && !entry->judge.rivals[i].out)
                return i;
    return -1;
}

static double median_of(const double values[], int rounds)
{
    double known[DT_ROUNDS_MOST];
    int n = 0;
    for (int k = 0; k < rounds; k++)
        if (isfinite(values[k]))
            known[n++] = values[k];
    return dt_stats_median(known, n);
}

/* Excludes a rival that is better only because it breaks the entry's latency limit. Needs enough sets. */
static bool breaks_limit(const struct dt_check_entry *entry, int i, const struct dt_sets *sets)
{
    int rounds = dt_sets_rounds(sets);
    double limit = (double)entry->job.max_latency_ns * 1e-9;
    return limit > 0 && dt_sets_quiet(sets) >= DT_SETS_LEAST &&
           median_of(entry->entrants[i].visits, rounds) > limit &&
           median_of(entry->values[i], rounds) < median_of(entry->values[0], rounds);
}

/* A default plan that breaks a rule, and whose output shows it. */
static bool is_wrong(const struct dt_check_entry *entry, int i)
{
    const struct dt_entrant *entrant = &entry->entrants[i];
    return dt_target_wrong(entry->target, &entrant->point, entrant->result.verified_error);
}

static void take_values(struct dt_check_entry *entry, const struct dt_sets *sets)
{
    int rounds = dt_sets_rounds(sets);
    const struct dt_target *target = entry->target;
    for (int i = 0; i < entry->count; i++) {
        const struct dt_entrant *entrant = &entry->entrants[i];
        for (int k = 0; k < DT_ROUNDS_MOST; k++)
            entry->values[i][k] =
                k < rounds ? target->objective->value(entrant->visits[k], entrant->result.batch,
                                                      entrant->result.devices)
                           : NAN;
    }
    for (int i = 0; i < entry->judge.count; i++) {
        struct dt_check_rival *rival = &entry->judge.rivals[i];
        bool failed = entry->entrants[i + 1].out;
        rival->aside = !failed && (breaks_limit(entry, i + 1, sets) || is_wrong(entry, i + 1));
        rival->out = failed || rival->aside;
    }
    entry->judge.first = first_of(entry);
    if (entry->twin && entry->entrants[entry->count - 1].out)
        entry->judge.twin = NULL;
}

static bool decide(void *context, struct dt_entrant entrants[], int n, const struct dt_sets *sets)
{
    struct dt_check_entry *entry = context;
    (void)n;
    take_values(entry, sets);
    bool decided = dt_check_look(&entry->judge, sets);
    for (int i = 0; i < entry->judge.count; i++)
        entrants[i + 1].decided = dt_check_decided(&entry->judge, i);
    return decided;
}

static void start_judge(struct dt_check_entry *entry, double lose_alpha)
{
    struct dt_check_judge *judge = &entry->judge;
    *judge = (struct dt_check_judge){.threshold = entry->opts->threshold,
                                     .lose_alpha = lose_alpha,
                                     .tuned = entry->values[0],
                                     .twin = entry->twin ? entry->values[entry->count - 1] : NULL,
                                     .count = rivals_of(entry),
                                     .first = -1,
                                     .margin = NAN,
                                     .limit = entry->opts->threshold,
                                     .cv = NAN};
    for (int i = 0; i < judge->count; i++)
        judge->rivals[i] = (struct dt_check_rival){.values = entry->values[i + 1],
                                                   .ratio = {.ratio = NAN, .interval = {NAN, NAN}},
                                                   .cv = NAN};
    judge->first = first_of(entry);
}

static dt_status compare(struct dt_check_entry *entry, double lose_alpha, int64_t deadline_ns)
{
    struct dt_rig rig;
    struct dt_compare how = {.deadline_ns = deadline_ns - (int64_t)(STOP_SECONDS * 1e9),
                             .sets = entry->opts->until_decided ? DT_SETS_MOST : DT_SETS_USUAL,
                             .seed = (uint64_t)entry->seed,
                             .decide = decide,
                             .judge = entry};
    start_judge(entry, lose_alpha);
    dt_rig_init(&rig, entry->target, (uint64_t)entry->job.seed);
    rig.end_ns = deadline_ns;
    dt_status status = dt_compare_run(&rig, entry->entrants, entry->count, &how, &entry->sets);
    dt_rig_fini(&rig, DT_NS_PER_SECOND);
    take_values(entry, &entry->sets);
    dt_check_end(&entry->judge, &entry->sets);
    return status;
}

static bool anyone_ran(const struct dt_check_entry *entry)
{
    for (int i = 0; i < rivals_of(entry); i++)
        if (!entry->entrants[i + 1].out)
            return true;
    return false;
}

/* The tuned plan failed: it loses when another plan ran. */
static void judge_failure(struct dt_check_entry *entry, bool late)
{
    const struct dt_result *result = &entry->entrants[0].result;
    const char *what = dt_outcome_text(result->outcome);
    if (result->outcome == DT_TRIAL_HUNG) {
        /* A stalled machine looks like a hanging plan, so the plan is not replaced for that. */
        entry->verdict = DT_CHECK_NOT_CHECKED;
        snprintf(entry->reason, sizeof entry->reason, "%s%s",
                 late ? "the budget ended before it ran" : "the tuned plan hung: ",
                 late ? "" : result->cause);
    } else if (result->outcome == DT_TRIAL_INFEASIBLE) {
        entry->verdict = DT_CHECK_UNSUPPORTED;
        snprintf(entry->reason, sizeof entry->reason, "%s", result->cause);
    } else if (!anyone_ran(entry)) {
        entry->verdict = DT_CHECK_NOT_CHECKED;
        snprintf(entry->reason, sizeof entry->reason, "no plan ran; the tuned one: %s: %s", what,
                 result->cause);
    } else if (dt_compare_may_pass(result->outcome) &&
               entry->entrants[0].failures < DT_ATTEMPTS_FIRST) {
        entry->verdict = DT_CHECK_NOT_CHECKED;
        snprintf(entry->reason, sizeof entry->reason,
                 "the budget ended before another attempt of the tuned plan: %s: %s", what,
                 result->cause);
    } else {
        entry->verdict = DT_CHECK_LOSES;
        entry->fell = true;
        snprintf(entry->reason, sizeof entry->reason, "the tuned plan failed, others ran: %s: %s",
                 what, result->cause);
    }
}

/* Names the rival with the largest lead. */
static void name_winner(struct dt_check_entry *entry)
{
    const struct dt_check_judge *judge = &entry->judge;
    int worst = -1;
    for (int i = 0; i < judge->count; i++)
        if (judge->rivals[i].verdict == DT_CHECK_LOSES &&
            (worst < 0 || judge->rivals[i].ratio.ratio > judge->rivals[worst].ratio.ratio))
            worst = i;
    if (worst < 0)
        return;
    const struct dt_ratio *ratio = &judge->rivals[worst].ratio;
    snprintf(entry->reason, sizeof entry->reason,
             "the %s plan is better: it ran %.3f times as fast as the tuned one [%.3f, %.3f], %d "
             "pairs in %d sets",
             dt_entrant_role_text(entry->entrants[worst + 1].role), ratio->ratio,
             ratio->interval.low, ratio->interval.high, ratio->pairs, ratio->sets);
}

static bool noisy(const struct dt_check_judge *judge, double *cv)
{
    *cv = judge->cv;
    for (int i = 0; i < judge->count; i++)
        if (!judge->rivals[i].out && judge->rivals[i].verdict == DT_CHECK_INCONCLUSIVE &&
            !(*cv >= judge->rivals[i].cv))
            *cv = judge->rivals[i].cv;
    return *cv > DT_CHECK_CV_MOST;
}

/* A plan may beat all others and still break its stored latency limit. */
static void judge_limit(struct dt_check_entry *entry)
{
    const struct dt_result *result = &entry->entrants[0].result;
    double limit = (double)entry->job.max_latency_ns * 1e-9;
    if (limit > 0 && dt_sets_quiet(&entry->sets) >= DT_SETS_LEAST &&
        result->summary.interval.low > limit * (1 + entry->judge.threshold)) {
        entry->verdict = DT_CHECK_LOSES;
        snprintf(entry->reason, sizeof entry->reason, "it takes %s, and the entry allows %s",
                 dt_figure_of(result->summary.median).text, dt_figure_of(limit).text);
    }
}

/* All rivals that ran are excluded. */
static bool unopposed(const struct dt_check_judge *judge)
{
    bool aside = false;
    for (int i = 0; i < judge->count; i++) {
        if (!judge->rivals[i].out)
            return false;
        aside = aside || judge->rivals[i].aside;
    }
    return aside;
}

/* "; in 3 more other programs (stress) were busy on the cores" */
static void add_disturbed(struct dt_check_entry *entry)
{
    int disturbed = entry->sets.count - dt_sets_quiet(&entry->sets);
    size_t size = strlen(entry->reason);
    const char *name = entry->sets.disturber;
    if (disturbed > 0)
        snprintf(entry->reason + size, sizeof entry->reason - size,
                 "; in %d more other programs%s%s%s were busy on the cores", disturbed,
                 name[0] != '\0' ? " (" : "", name, name[0] != '\0' ? ")" : "");
}

static void judge_rounds(struct dt_check_entry *entry)
{
    double cv;
    entry->verdict = dt_check_verdict(&entry->judge);
    if (entry->judge.count == 0 && dt_sets_quiet(&entry->sets) >= DT_SETS_LEAST)
        snprintf(entry->reason, sizeof entry->reason,
                 "it is the default plan, it runs, and no other is known");
    else if (unopposed(&entry->judge))
        snprintf(entry->reason, sizeof entry->reason,
                 "it runs, and every other plan that does takes longer than the entry allows");
    else if (entry->judge.count == 0 || (entry->verdict == DT_CHECK_INCONCLUSIVE &&
                                         dt_sets_quiet(&entry->sets) < DT_SETS_LEAST)) {
        entry->verdict = DT_CHECK_NOT_CHECKED;
        snprintf(
            entry->reason, sizeof entry->reason,
            "the budget ended after %d sets of fresh processes, and fewer than %d decide nothing",
            dt_sets_quiet(&entry->sets), DT_SETS_LEAST);
        add_disturbed(entry);
    } else if (entry->verdict == DT_CHECK_NOT_CHECKED)
        snprintf(entry->reason, sizeof entry->reason, "none of the other plans ran: %s",
                 entry->entrants[1].result.cause);
    else if (entry->verdict == DT_CHECK_LOSES)
        name_winner(entry);
    else if (entry->verdict == DT_CHECK_INCONCLUSIVE && noisy(&entry->judge, &cv))
        snprintf(entry->reason, sizeof entry->reason,
                 "too noisy to judge: the visits of a plan spread by %.1f %%, more than %.0f %%",
                 100 * cv, 100 * DT_CHECK_CV_MOST);
    else if (entry->verdict == DT_CHECK_INCONCLUSIVE)
        snprintf(entry->reason, sizeof entry->reason,
                 "%d sets of fresh processes do not tell whether it is slower by more than %s",
                 entry->sets.count, dt_figure_percent(entry->judge.threshold).text);
}

/* --require-resolution: what could not be told apart is no result. */
static void judge_resolution(struct dt_check_entry *entry)
{
    double most = entry->opts->resolution, margin = entry->judge.margin;
    bool judged = entry->verdict == DT_CHECK_WINS || entry->verdict == DT_CHECK_TIES;
    if (!(most > 0) || !judged || margin <= most)
        return;
    entry->verdict = DT_CHECK_INCONCLUSIVE;
    if (isnan(margin))
        snprintf(entry->reason, sizeof entry->reason,
                 "the noise floor is not known, and --require-resolution asks for %.3g %%",
                 100 * most);
    else
        snprintf(entry->reason, sizeof entry->reason,
                 "differences below %.3g %% are lost in the noise here, and --require-resolution "
                 "asks for %.3g %%",
                 100 * margin, 100 * most);
}

dt_status dt_check_measure(struct dt_check_entry *entry, double lose_alpha, int64_t deadline_ns)
{
    entry->seed = dt_clock_wall_ns();
    DT_TRY(compare(entry, lose_alpha, deadline_ns));
    if (entry->entrants[0].out)
        judge_failure(entry, dt_clock_ns() + (int64_t)(STOP_SECONDS * 1e9) >= deadline_ns);
    else
        judge_rounds(entry);
    if (!entry->entrants[0].out)
        judge_limit(entry);
    judge_resolution(entry);
    dt_text_clean(entry->reason);
    for (int i = 0; i < entry->count; i++)
        dt_text_clean(entry->entrants[i].result.cause);
    return DT_OK;
}
