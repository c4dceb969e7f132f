/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include "base/clock.h"
#include "base/figures.h"
#include "search/racing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- trials */

/* limit of the first trial, as a share of the time; if it hangs the session goes on */
#define FIRST_SHARE   0.35
#define SLOWEST_TIMES 4 /* a trial may take so many times as long as the slowest that ran */
#define LEAST_NS      (5 * DT_NS_PER_SECOND) /* the least limit of a trial */
#define AGAIN_SHARE   0.12                   /* limit of a further attempt */
/* up to this many failed plans of the search are retried; more suggest a permanent cause */
#define STRAYS 3
/* share of the time after which default and baseline begin no further look */
#define KNOWN_SHARE   0.08
#define RACING_SHARE  0.04 /* the same for all other plans */
#define HALF_WIDTH    0.01
#define LINKS_SHARE   0.05 /* share of the time, to measure the links between hosts */
#define LINKS_SECONDS 10   /* or so long, for the start of two groups, */
#define LINKS_MOST    0.25 /* but at most this share */
/* seconds of warm-up in a session's first trial, at most this share of the time */
#define SOAK_SECONDS       3
#define SOAK_SHARE         0.02
#define DISTURBED_ATTEMPTS 3
#define DISTURBED_SHARE    0.68 /* share of the time: until then disturbed trials are made again */
#define SETTLE_SECONDS     5    /* time for the memory of a killed trial to be freed */

/* Cores kept busy, in the mean: before any plan ran, a plan that computes so much is cut off, not
 * hung. Later it is hung: it had four times the time of the slowest trial. */
#define COMPUTING 0.1

/* The prior's value of the plan over the default's; NAN: it has none. */
static double predicted_ratio(const struct dt_tuning *tuning, const struct dt_point *point)
{
    const struct dt_prior *prior = dt_belief_prior(&tuning->search.belief);
    double ratio = prior != NULL ? prior->value(prior->context, point) /
                                       prior->value(prior->context, &tuning->target->fallback)
                                 : NAN;
    return isfinite(ratio) && ratio > 0 ? ratio : NAN;
}

/* Longest a trial may take while its worker is silent: its share of the time, but enough for what
 * the slowest one needed, or for more where more is predicted. */
static int64_t trial_deadline(const struct dt_tuning *tuning, const struct dt_point *point,
                              double share)
{
    int64_t all = tuning->clock.deadline_ns - tuning->clock.began_ns;
    int64_t most = (int64_t)((double)all * share);
    int64_t seen =
        (int64_t)(SLOWEST_TIMES * dt_belief_slower(&tuning->search.belief, tuning->session, point) *
                  (double)tuning->session->slowest_ns);
    int64_t least = seen > LEAST_NS ? seen : LEAST_NS;
    int64_t deadline = dt_clock_ns() + (most > least ? most : least);
    return deadline < tuning->clock.search_deadline_ns ? deadline
                                                       : tuning->clock.search_deadline_ns;
}

/* How far heartbeats extend a trial: the first one to the end of the time for trials, as nothing
 * can be decided without it; any other to half of it, so that a hung worker that goes on sending
 * them does not take all. */
static int64_t extended_deadline(const struct dt_tuning *tuning)
{
    int64_t now = dt_clock_ns(), end = tuning->clock.search_deadline_ns;
    return tuning->session->count == 0 ? end : now + (end - now) / 2;
}

static dt_status look_at_hosts(struct dt_tuning *tuning)
{
    char lost[256];
    if (tuning->rig.hosts.left.count < 2)
        return DT_OK;
    dt_rig_fresh(&tuning->rig, DT_NS_PER_SECOND);
    DT_TRY(dt_rig_hosts_look(&tuning->rig, lost, sizeof lost));
    if (lost[0] != '\0')
        dt_tuning_note(tuning,
                       "host %s did not answer twice and is left out: plans that need more than "
                       "%d host%s are not run any more",
                       lost, tuning->rig.hosts.left.count,
                       tuning->rig.hosts.left.count == 1 ? "" : "s");
    return DT_OK;
}

/* The driver frees the GPU memory of a killed worker after a while. Parked groups keep theirs,
 * so they are stopped. */
static dt_status settle_memory(struct dt_tuning *tuning, enum dt_outcome outcome)
{
    const struct dt_backend *gpus = dt_target_gpus(tuning->target);
    bool killed = outcome == DT_TRIAL_CRASHED || outcome == DT_TRIAL_HUNG;
    if (killed)
        DT_TRY(look_at_hosts(tuning));
    if (!killed || gpus == NULL || gpus->shared)
        return DT_OK;
    dt_rig_fresh(&tuning->rig, DT_NS_PER_SECOND);
    return dt_backend_settle(gpus, gpus->gpus.count,
                             dt_clock_ns() + SETTLE_SECONDS * DT_NS_PER_SECOND);
}

/* Once a session, what the worker read as the first time: a wrong unit shows. */
static void note_read(const struct dt_tuning *tuning, const struct dt_result *result)
{
    const char *read = dt_remarks_note(result->report.remarks);
    for (int i = 0; i < tuning->session->count; i++)
        if (dt_remarks_note(tuning->session->trials[i].report.remarks)[0] != '\0')
            return;
    if (read[0] != '\0')
        dt_tuning_note(tuning, "%s", read);
}

dt_status dt_tuning_references(struct dt_tuning *tuning)
{
    const struct dt_session *session = tuning->session;
    for (int i = 0; i < tuning->rig.reference_count; i++) {
        const struct dt_reference *reference = &tuning->rig.references[i];
        struct dt_log_record record = {.kind = DT_LOG_UNVERIFIED,
                                       .unverified = {.batch = reference->batch}};
        bool known = reference->failure.outcome == DT_TRIAL_OK;
        for (int k = 0; k < session->unverified_count; k++)
            known = known || session->unverified[k].batch == reference->batch;
        snprintf(record.unverified.cause, sizeof record.unverified.cause, "%.190s",
                 reference->failure.cause);
        if (!known)
            DT_TRY(dt_log_add(tuning->log, &record));
    }
    return DT_OK;
}

dt_status dt_tuning_plan(struct dt_tuning *tuning, enum dt_log_kind kind,
                         const struct dt_point *point)
{
    return dt_log_add(tuning->log, &(struct dt_log_record){.kind = kind, .plan = *point});
}

dt_status dt_tuning_result(struct dt_tuning *tuning, enum dt_log_kind kind,
                           struct dt_result *result)
{
    struct dt_log_record record = {.kind = kind, .role = DT_ENTRANT_ROLES, .result = *result};
    dt_status status = dt_log_add(tuning->log, &record);
    *result = record.result;
    return status == DT_OK ? dt_tuning_references(tuning) : status;
}

static dt_status record_trial(struct dt_tuning *tuning, struct dt_result *result)
{
    const struct dt_session *session = tuning->session;
    int64_t paused_ns = dt_clock_skipped_ns() - tuning->clock.paused_ns;
    note_read(tuning, result);
    DT_TRY(dt_tuning_result(tuning, DT_LOG_TRIAL, result));
    const struct dt_result *trial = &session->trials[session->count - 1];
    if (dt_session_leader(session) == trial && tuning->store.unstored_ns == 0)
        tuning->store.unstored_ns = dt_clock_ns();
    if (tuning->watch != NULL)
        tuning->watch->ended(tuning->watch->context, session, trial);
    if (paused_ns > 0)
        dt_tuning_note(tuning,
                       "the session was stopped for %s: its deadlines are moved, steps in "
                       "which it was stopped are run again",
                       dt_figure_span_of((double)paused_ns * 1e-9).text);
    tuning->clock.paused_ns += paused_ns;
    return settle_memory(tuning, trial->outcome);
}

/* The ceilings of the report's roofline, once: not on GPUs, whose memory must stay as the plans of
 * the group find it, nor of a worker whose operations are not known. */
static bool wants_peak(const struct dt_target *target)
{
    return target->image.flops > 0 && !target->hardware.backend.cuda;
}

/* The trial's time ended before anything showed that it hangs: before its request's own limit;
 * while it computed, and no plan has run so far; or where each step is a run of a program, which
 * has a limit of its own (--timeout). */
static bool share_ended(const struct dt_session *session, const struct dt_result *result)
{
    return result->share_ended || session->target->image.starts ||
           (session->slowest_ns == 0 && result->busy > COMPUTING);
}

dt_status dt_trials_try(struct dt_tuning *tuning, const struct dt_point *point, bool racing,
                        double share)
{
    int64_t all = tuning->clock.deadline_ns - tuning->clock.began_ns;
    double rest = racing ? RACING_SHARE : KNOWN_SHARE;
    struct dt_measure how = {.deadline_ns = trial_deadline(tuning, point, share),
                             .until_ns = extended_deadline(tuning),
                             .rest_ns = dt_clock_ns() + (int64_t)(rest * (double)all),
                             .half_width = HALF_WIDTH,
                             .incumbent = racing ? dt_session_leader(tuning->session) : NULL};
    how.incumbent_times = dt_visits_times(tuning, how.incumbent);
    if (tuning->session->count ==
        0) { /* a slow start of the machine must not count against a plan */
        how.warm_seconds = fmin(SOAK_SECONDS, SOAK_SHARE * (double)all * 1e-9);
        how.peak = wants_peak(tuning->target);
    }
    DT_CLEANUP(dt_result_fini) struct dt_result result = {.outcome = DT_TRIAL_OK};
    if (racing)
        dt_store_now(tuning, how.deadline_ns - dt_clock_ns());
    if (tuning->watch != NULL)
        tuning->watch->begins(tuning->watch->context, point);
    DT_TRY(dt_tuning_plan(tuning, DT_LOG_BEGIN, point));
    dt_status status = dt_measure_plan(&tuning->rig, point, &how, &result);
    if (result.outcome == DT_TRIAL_HUNG && result.early) {
        result.outcome = DT_TRIAL_INTERRUPTED;
    } else if (result.outcome == DT_TRIAL_HUNG && dt_clock_ns() >= how.deadline_ns &&
               share_ended(tuning->session, &result)) {
        result.outcome = DT_TRIAL_INTERRUPTED;
        if (result.facts.cost_seconds < 0.5)
            snprintf(result.cause, sizeof result.cause, "no time was left for it");
        else
            snprintf(result.cause, sizeof result.cause,
                     "the trial's share of the budget, %s, ended",
                     dt_figure_span_of(result.facts.cost_seconds).text);
    }
    if (result.outcome == DT_TRIAL_HUNG && dt_clock_ns() >= tuning->clock.search_deadline_ns) {
        result.outcome = DT_TRIAL_INTERRUPTED;
        snprintf(result.cause, sizeof result.cause, "the time for trials ended first");
    }
    result.facts.predicted = predicted_ratio(tuning, point);
    result.facts.slowdown = tuning->pace.level > 0 ? tuning->pace.level : NAN;
    return status >= 0 ? record_trial(tuning, &result) : status;
}

/* The failure may be temporary. After out of memory the plan is tried again when the
 * search is over, since other users of the memory may have ended. A plan above --max-bytes
 * or --reserve is not. */
static bool may_pass(const struct dt_session *session, const struct dt_result *trial, bool late)
{
    bool cut_off = trial->outcome == DT_TRIAL_INTERRUPTED && !late &&
                   !session->target->image.starts; /* whose next attempt would have less time */
    return cut_off || dt_outcome_may_pass(trial->outcome) ||
           (late && dt_session_lacks_memory(session, trial));
}

/* Retries the known plans with temporary failures, while there is time for trials. */
static dt_status retry_known(struct dt_tuning *tuning, bool late)
{
    const struct dt_point *known[DT_FIRST_MOST];
    int n = dt_trials_first(tuning->session, known);
    for (int i = 0; i < n && dt_clock_ns() < tuning->clock.search_deadline_ns; i++) {
        const struct dt_result *trial = dt_session_trial(tuning->session, known[i]);
        if (trial != NULL && may_pass(tuning->session, trial, late))
            DT_TRY(dt_trials_try(tuning, known[i], false, AGAIN_SHARE));
    }
    return DT_OK;
}

static void add_link(const struct dt_host_link *link, const char *where, struct dt_text *out)
{
    if (!link->known)
        return;
    dt_text_add(out, "%s%s ", out->size > 0 ? "; " : "", where);
    dt_figure_time(link->seconds, out);
    dt_text_add(out, " and ");
    dt_figure_add(link->bytes_per_second * 1e-9, out);
    dt_text_add(out, " GB/s");
}

dt_status dt_trials_links(struct dt_tuning *tuning)
{
    struct dt_log_record record = {.kind = DT_LOG_LINKS};
    struct dt_link_speeds *links = &record.links;
    dt_auto_text text = {0};
    int64_t all = tuning->clock.deadline_ns - tuning->clock.began_ns;
    if (tuning->target->hardware.hosts.count < 2)
        return DT_OK;
    double limit = fmax(LINKS_SHARE, fmin(LINKS_SECONDS * 1e9 / (double)all, LINKS_MOST));
    DT_TRY(dt_rig_hosts_links(&tuning->rig, dt_clock_ns() + (int64_t)(limit * (double)all),
                              &links->inside, &links->across));
    add_link(&links->inside, "on one host", &text);
    add_link(&links->across, "between hosts", &text);
    dt_tuning_note(tuning, "links: %s", text.size > 0 ? dt_text_at(&text) : "not measured");
    return dt_log_add(tuning->log, &record);
}

dt_status dt_trials_known(struct dt_tuning *tuning)
{
    const struct dt_point *known[DT_FIRST_MOST];
    int n = dt_trials_first(tuning->session, known);
    if (tuning->target->broken[0] != '\0')
        dt_tuning_note(tuning,
                       "the default plan breaks a rule of its space, and is measured as it is: %s",
                       tuning->target->broken);
    for (int i = 0; i < n; i++) {
        if (dt_session_trial(tuning->session, known[i]) ==
            NULL) /* trials of the session that this one resumes */
            DT_TRY(dt_trials_try(tuning, known[i], false, i == 0 ? FIRST_SHARE : FIRST_SHARE / 2));
        if (i == 1 || n == 1)
            dt_store_now(tuning, INT64_MAX);
    }
    DT_TRY(retry_known(tuning, false));
    dt_auto_text need = {0};
    dt_tuning_estimate(tuning);
    dt_need_text(tuning->session, tuning->clock.need_seconds, "", &need);
    if (need.size > 0)
        dt_tuning_note(tuning, "%s", dt_text_at(&need));
    return DT_OK;
}

dt_status dt_trials_strays(struct dt_tuning *tuning)
{
    struct dt_point strays[STRAYS];
    int n = 0;
    for (int i = 0; i < tuning->session->count; i++) {
        const struct dt_result *trial = &tuning->session->trials[i];
        if (!dt_session_counts(tuning->session, i) || !dt_outcome_may_pass(trial->outcome) ||
            dt_trials_is_known(tuning->session, &trial->point))
            continue;
        if (n == STRAYS)
            return DT_OK;
        strays[n++] = trial->point;
    }
    for (int i = 0; i < n && dt_clock_ns() < tuning->clock.search_deadline_ns; i++)
        DT_TRY(dt_trials_try(tuning, &strays[i], true, AGAIN_SHARE));
    return DT_OK;
}

bool dt_trials_may_try(const struct dt_session *session, const struct dt_point *point)
{
    int attempts = 0;
    for (int i = 0; i < session->count; i++)
        attempts += dt_point_equal(session->target->space, &session->trials[i].point, point);
    return attempts < DISTURBED_ATTEMPTS;
}

/* The fastest plan whose trial was disturbed or undone, and that was tried fewer than three times;
 * -1: none. undone: only of those. */
static int most_promising(const struct dt_session *session, bool undone)
{
    int best = -1;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        bool disturbed = dt_result_disturbed(trial) && !undone;
        if (dt_session_counts(session, i) && (disturbed || trial->undone) && trial->samples.n > 0 &&
            (best < 0 || trial->summary.median < session->trials[best].summary.median) &&
            dt_trials_may_try(session, &trial->point))
            best = i;
    }
    return best;
}

static dt_status try_promising(struct dt_tuning *tuning, int at)
{
    struct dt_point point = tuning->session->trials[at].point;
    return dt_trials_try(tuning, &point, !dt_trials_is_known(tuning->session, &point), AGAIN_SHARE);
}

dt_status dt_trials_undone(struct dt_tuning *tuning)
{
    int at = most_promising(tuning->session, true);
    return at >= 0 && dt_clock_ns() < tuning->clock.search_deadline_ns ? try_promising(tuning, at)
                                                                       : DT_OK;
}

dt_status dt_trials_disturbed(struct dt_tuning *tuning)
{
    int64_t all = tuning->clock.deadline_ns - tuning->clock.began_ns;
    int64_t end = tuning->clock.began_ns + (int64_t)(DISTURBED_SHARE * (double)all);
    int at = most_promising(tuning->session, false);
    if (at >= 0 && tuning->clock.search_deadline_ns < end)
        tuning->clock.search_deadline_ns = end;
    for (; at >= 0 && dt_clock_ns() < tuning->clock.search_deadline_ns;
         at = most_promising(tuning->session, false))
        DT_TRY(try_promising(tuning, at));
    return DT_OK;
}

dt_status dt_trials_last(struct dt_tuning *tuning)
{
    int64_t now = dt_clock_ns();
    tuning->clock.search_deadline_ns = now + (tuning->clock.deadline_ns - now) / 2;
    return retry_known(tuning, true);
}

/* ---- visits of the incumbent */

/* A slow phase between two visits is not seen: it lasts VISIT_SECONDS, or VISIT_SHARE of the
 * budget, and one trial at most. */

#define VISIT_TRIALS     8    /* between two visits, when none of them was dropped */
#define VISIT_SECONDS    20   /* between two visits, */
#define VISIT_SHARE      0.02 /* or this share of the budget */
#define COST_SHARE       0.1  /* share of visits in the time */
#define SLOW_SHARE       0.25 /* while the machine is slower */
#define LEVEL_MARGIN     0.1  /* share of noise: a smaller change is none */
#define VISIT_HALF_WIDTH 0.05
#define RESUME_SHARE                                                                               \
    0.03 /* share of the whole time, and two of the slowest trials: the first visit of a session that goes on */

double dt_visits_times(const struct dt_tuning *tuning, const struct dt_result *incumbent)
{
    double level = tuning->pace.level > 0 ? tuning->pace.level : 1;
    return incumbent != NULL ? level / dt_result_slowdown(incumbent) : 1;
}

/* The best trial before the last visit: at what level later ones were made is not known yet. */
static const struct dt_result *anchor_of(const struct dt_tuning *tuning)
{
    const struct dt_result *best = NULL;
    for (int i = 0; i < tuning->pace.since && i < tuning->session->count; i++) {
        const struct dt_result *trial = &tuning->session->trials[i];
        if (dt_session_counts(tuning->session, i) && dt_session_eligible(tuning->session, trial) &&
            (best == NULL ||
             dt_session_value(tuning->session, trial) < dt_session_value(tuning->session, best)))
            best = trial;
    }
    return best;
}

static bool any_drop(const struct dt_tuning *tuning)
{
    for (int i = tuning->pace.since; i < tuning->session->count; i++)
        if (tuning->session->trials[i].outcome == DT_TRIAL_SLOW)
            return true;
    return false;
}

static bool visit_is_due(const struct dt_tuning *tuning, const struct dt_result *anchor)
{
    const struct dt_tuning_pace *pace = &tuning->pace;
    bool slow = pace->level > 1 + LEVEL_MARGIN;
    double all = (double)(tuning->clock.deadline_ns - tuning->clock.began_ns) * 1e-9;
    double passed = (double)(dt_clock_ns() - pace->at_ns) * 1e-9;
    double left = (double)(tuning->clock.search_deadline_ns - dt_clock_ns()) * 1e-9;
    if (anchor == NULL || tuning->session->count == pace->since)
        return false;
    bool stay = dt_rig_classes(&tuning->rig).stay;
    double cost = pace->cost_seconds > 0 ? pace->cost_seconds
                                         : dt_session_trial_seconds(anchor->summary.median) +
                                               (stay ? 0 : dt_rig_load_seconds(&tuning->rig));
    return left > 2 * cost && passed >= cost / (slow ? SLOW_SHARE : COST_SHARE) &&
           (slow || passed >= fmin(VISIT_SECONDS, VISIT_SHARE * all)) &&
           (slow || any_drop(tuning) || tuning->session->count - pace->since >= VISIT_TRIALS);
}

/* Beyond noise: the intervals are apart, and the medians by more than the margin. times: by which
 * those of `before` are longer. */
static bool is_other_pace(const struct dt_summary *before, const struct dt_summary *now,
                          double times)
{
    bool apart = times * before->interval.low > now->interval.high ||
                 now->interval.low > times * before->interval.high;
    return apart && fabs(log(now->median / (times * before->median))) > log1p(LEVEL_MARGIN);
}

/* Undoes the trials since the visit before, and, of those made while the machine was slower, what
 * may be better than the incumbent. */
static dt_status undo_trials(struct dt_tuning *tuning, const struct dt_result *anchor, bool slower,
                             int *count)
{
    double most = DT_RACE_HOPELESS * dt_session_value(tuning->session, anchor);
    for (int i = slower ? tuning->pace.since : tuning->pace.from; i < tuning->session->count; i++) {
        const struct dt_result *trial = &tuning->session->trials[i];
        if (!dt_session_counts(tuning->session, i) || trial == anchor || trial->samples.n == 0 ||
            !dt_trials_may_try(tuning->session, &trial->point) ||
            dt_trials_is_known(tuning->session, &trial->point) ||
            (i < tuning->pace.since && !(dt_session_value(tuning->session, trial) <= most)))
            continue;
        ++*count;
        DT_TRY(dt_tuning_plan(tuning, DT_LOG_UNDONE, &trial->point));
    }
    return DT_OK;
}

/* Compares the visit with the incumbent's trial; a change begins a new level. */
static dt_status take_visit(struct dt_tuning *tuning, const struct dt_result *anchor,
                            const struct dt_result *visit)
{
    struct dt_tuning_pace *pace = &tuning->pace;
    double times = dt_visits_times(tuning, anchor), old = times * dt_result_slowdown(anchor);
    int undone = 0;
    if (visit->outcome != DT_TRIAL_OK || visit->samples.n == 0)
        return DT_OK;
    if (is_other_pace(&anchor->summary, &visit->summary, times)) {
        double level = dt_result_slowdown(anchor) * visit->summary.median / anchor->summary.median;
        bool slower = level > old;
        DT_TRY(undo_trials(tuning, anchor, slower, &undone));
        pace->level = level;
        pace->from = slower ? pace->since : tuning->session->count;
        dt_tuning_note(tuning,
                       "this machine is %.2f times as %s as %s, by its best plan so far: %d plan%s "
                       "tried since %s tried again",
                       fmax(level / old, old / level), slower ? "slow" : "fast",
                       tuning->search.running == NULL ? "in the session that goes on"
                                                      : "at the visit before",
                       undone, undone == 1 ? "" : "s", undone == 1 ? "is" : "are");
    }
    pace->since = tuning->session->count;
    return DT_OK;
}

static dt_status visit_incumbent(struct dt_tuning *tuning, const struct dt_result *anchor,
                                 int64_t end)
{
    int64_t now = dt_clock_ns();
    struct dt_measure how = {.deadline_ns = end,
                             .until_ns = now + (end - now) / 2,
                             .rest_ns = now,
                             .half_width = VISIT_HALF_WIDTH};
    DT_CLEANUP(dt_result_fini) struct dt_result result = {.outcome = DT_TRIAL_OK};
    DT_TRY(dt_measure_plan(&tuning->rig, &anchor->point, &how, &result));
    DT_TRY(take_visit(tuning, anchor, &result));
    DT_TRY(dt_tuning_result(tuning, DT_LOG_VISIT, &result));
    tuning->pace.at_ns = dt_clock_ns();
    tuning->pace.cost_seconds = result.facts.cost_seconds;
    return DT_OK;
}

dt_status dt_visits_resume(struct dt_tuning *tuning)
{
    const struct dt_result *anchor = anchor_of(tuning);
    int64_t all = tuning->clock.deadline_ns - tuning->clock.began_ns, now = dt_clock_ns();
    int64_t most = 2 * tuning->session->slowest_ns + (int64_t)(RESUME_SHARE * (double)all);
    if (anchor == NULL || tuning->clock.search_deadline_ns - now < 2 * most)
        return DT_OK;
    tuning->pace.from = 0;
    DT_TRY(visit_incumbent(tuning, anchor, now + most));
    tuning->pace.from = tuning->session->count;
    return DT_OK;
}

dt_status dt_visits_make(struct dt_tuning *tuning)
{
    int tried;
    do {
        const struct dt_result *anchor = anchor_of(tuning);
        if (visit_is_due(tuning, anchor))
            DT_TRY(visit_incumbent(tuning, anchor, tuning->clock.search_deadline_ns));
        tried = tuning->session->count;
        DT_TRY(dt_trials_undone(tuning));
    } while (tuning->session->count > tried);
    return DT_OK;
}
