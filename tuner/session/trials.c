/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include "base/clock.h"
#include "base/figures.h"
#include "tuner/measure/measure.h"
#include "tuner/session/history.h"
#include "tuner/session/record.h"

#include <math.h>
#include <stdio.h>

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
#define LINKS_SHARE   0.05 /* of the time, to measure the links between hosts */
#define LINKS_SECONDS 10   /* or so long, for the start of two groups, */
#define LINKS_MOST    0.25 /* but at most this share */
/* seconds of warm-up in a session's first trial, at most this share of the time */
#define SOAK_SECONDS       3
#define SOAK_SHARE         0.02
#define DISTURBED_ATTEMPTS 3
#define DISTURBED_SHARE    0.68 /* of the time: until then disturbed trials are made again */
#define SETTLE_SECONDS     5    /* time for the memory of a killed trial to be freed */

/* Mean cores: while no plan has run, one that keeps so much of them busy is not said to hang, as its time may be too short. Later it is:
 * it had four times as long as the slowest one. */
#define COMPUTING 0.1

/* Longest a trial may take while its worker is silent: its share of the time, but enough for what the slowest one needed. */
static int64_t trial_deadline(const struct dt_session *session, double share)
{
    int64_t all = session->clock.deadline_ns - session->clock.began_ns;
    int64_t most = (int64_t)((double)all * share);
    int64_t seen = SLOWEST_TIMES * session->slowest_ns;
    int64_t least = seen > LEAST_NS ? seen : LEAST_NS;
    int64_t deadline = dt_clock_ns() + (most > least ? most : least);
    return deadline < session->clock.search_deadline_ns ? deadline
                                                        : session->clock.search_deadline_ns;
}

/* How far heartbeats extend a trial: the first one to the end of the time for trials, as nothing can be decided without it;
 * any other to half of it, so that a hung worker that goes on sending them does not take all. */
static int64_t extended_deadline(const struct dt_session *session)
{
    int64_t now = dt_clock_ns(), end = session->clock.search_deadline_ns;
    return session->count == 0 ? end : now + (end - now) / 2;
}

static dt_status look_at_hosts(struct dt_session *session)
{
    char lost[256];
    if (session->rig.hosts.left.count < 2)
        return DT_OK;
    dt_rig_fresh(&session->rig, DT_NS_PER_SECOND);
    DT_TRY(dt_rig_hosts_look(&session->rig, lost, sizeof lost));
    if (lost[0] != '\0')
        dt_session_note(session,
                        "host %s did not answer twice and is left out: plans that need more than "
                        "%d host%s are not run any more",
                        lost, session->rig.hosts.left.count,
                        session->rig.hosts.left.count == 1 ? "" : "s");
    return DT_OK;
}

/* The driver frees the GPU memory of a killed worker after a while. Parked groups keep theirs, so they are stopped. */
static dt_status settle(struct dt_session *session, const struct dt_result *result)
{
    const struct dt_backend *gpus = dt_target_gpus(session->target);
    bool killed = result->outcome == DT_TRIAL_CRASHED || result->outcome == DT_TRIAL_HUNG;
    if (killed)
        DT_TRY(look_at_hosts(session));
    if (!killed || gpus == NULL || gpus->shared)
        return DT_OK;
    dt_rig_fresh(&session->rig, DT_NS_PER_SECOND);
    return dt_backend_settle(gpus, gpus->gpus.count,
                             dt_clock_ns() + SETTLE_SECONDS * DT_NS_PER_SECOND);
}

/* Once a session, what the worker read as the first time: a wrong unit shows. */
static void note_read(const struct dt_session *session, const struct dt_result *result)
{
    const char *read = dt_json_text_at(result->report.remarks, "read");
    for (int i = 0; i < session->count; i++)
        if (dt_json_text_at(session->trials[i].report.remarks, "read")[0] != '\0')
            return;
    if (read[0] != '\0')
        dt_session_note(session, "%s", read);
}

static dt_status keep_trial(struct dt_session *session, const struct dt_result *result)
{
    int64_t paused_ns = dt_clock_skipped_ns() - session->clock.paused_ns;
    note_read(session, result);
    DT_TRY(dt_session_keep(session, result));
    if (dt_session_leader(session) == &session->trials[session->count - 1] &&
        session->store.unstored_ns == 0)
        session->store.unstored_ns = dt_clock_ns();
    if (session->watch != NULL)
        session->watch->ended(session->watch->context, session, result);
    if (paused_ns > 0)
        dt_session_note(session,
                        "the session was stopped for %s: its deadlines are moved, steps in "
                        "which it was stopped are run again",
                        dt_figure_span_of((double)paused_ns * 1e-9).text);
    session->clock.paused_ns += paused_ns;
    return dt_history_trial(session, result);
}

/* The prior's value of the plan over the default's; 0: it has none. */
static double predict(const struct dt_session *session, const struct dt_point *point)
{
    const struct dt_prior *prior = dt_belief_prior(&session->search.belief);
    double ratio = prior != NULL ? prior->value(prior->context, point) /
                                       prior->value(prior->context, &session->target->fallback)
                                 : 0;
    return isfinite(ratio) && ratio > 0 ? ratio : 0;
}

/* The ceilings of the report's roofline, once: not on GPUs, whose memory must stay as the plans of the group find it, nor of
 * a worker whose operations are not known. */
static bool wants_peak(const struct dt_target *target)
{
    return target->image.flops > 0 && !target->hardware.backend.cuda;
}

/* The trial's time ended before anything showed that it hangs: before its request's own limit; while it computed, and no plan has run so far;
 * or where each step is a run of a program, which has a limit of its own (--timeout). */
static bool share_ended(const struct dt_session *session, const struct dt_result *result)
{
    return result->report.share_ended || session->target->image.starts ||
           (session->slowest_ns == 0 && result->busy > COMPUTING);
}

dt_status dt_trials_try(struct dt_session *session, const struct dt_point *point, bool racing,
                        double share)
{
    int64_t all = session->clock.deadline_ns - session->clock.began_ns;
    double rest = racing ? RACING_SHARE : KNOWN_SHARE;
    struct dt_measure how = {.deadline_ns = trial_deadline(session, share),
                             .until_ns = extended_deadline(session),
                             .rest_ns = dt_clock_ns() + (int64_t)(rest * (double)all),
                             .half_width = HALF_WIDTH,
                             .incumbent = racing ? dt_session_leader(session) : NULL};
    how.incumbent_times = dt_visits_times(session, how.incumbent);
    if (session->count == 0) { /* a slow start of the machine must not count against a plan */
        how.warm_seconds = fmin(SOAK_SECONDS, SOAK_SHARE * (double)all * 1e-9);
        how.peak = wants_peak(session->target);
    }
    struct dt_result result;
    if (racing)
        dt_record_now(session, how.deadline_ns - dt_clock_ns());
    if (session->watch != NULL)
        session->watch->begins(session->watch->context, point);
    DT_TRY(dt_history_plan(session, "begin", point));
    dt_status status = dt_measure_plan(&session->rig, point, &how, &result);
    if (result.outcome == DT_TRIAL_HUNG && result.report.early) {
        result.outcome = DT_TRIAL_INTERRUPTED;
    } else if (result.outcome == DT_TRIAL_HUNG && dt_clock_ns() >= how.deadline_ns &&
               share_ended(session, &result)) {
        result.outcome = DT_TRIAL_INTERRUPTED;
        if (result.cost_seconds < 0.5)
            snprintf(result.cause, sizeof result.cause, "no time was left for it");
        else
            snprintf(result.cause, sizeof result.cause,
                     "the trial's share of the budget, %s, ended",
                     dt_figure_span_of(result.cost_seconds).text);
    }
    if (result.outcome == DT_TRIAL_HUNG && dt_clock_ns() >= session->clock.search_deadline_ns) {
        result.outcome = DT_TRIAL_INTERRUPTED;
        snprintf(result.cause, sizeof result.cause, "the time for trials ended first");
    }
    if (status < 0) {
        dt_result_fini(&result);
        return status;
    }
    result.predicted = predict(session, point);
    result.slowdown = session->pace.level;
    int64_t took = (int64_t)(result.cost_seconds * 1e9);
    if (result.samples.n > 0 && took > session->slowest_ns)
        session->slowest_ns = took;
    DT_TRY(keep_trial(session, &result));
    return settle(session, &result);
}

/* The default is first; on GPUs the 1-rank plan, which needs no NCCL, so that there is a result even if NCCL fails. */
int dt_trials_first(const struct dt_session *session, const struct dt_point *known[DT_FIRST_MOST])
{
    const struct dt_target *target = session->target;
    bool one_first = target->hardware.backend.cuda;
    const struct dt_point *all[DT_FIRST_MOST] = {one_first ? &target->baseline : &target->fallback,
                                                 one_first ? &target->fallback : &target->baseline,
                                                 session->has_against ? &session->against : NULL};
    int n = 0;
    for (int i = 0; i < DT_FIRST_MOST && all[i] != NULL; i++) {
        bool twice = false;
        for (int k = 0; k < n; k++)
            twice = twice || dt_point_equal(target->space, known[k], all[i]);
        if (!twice)
            known[n++] = all[i];
    }
    return n;
}

/* The failure may be temporary. After out of memory the plan is tried again when the search is over, since other users
 * of the memory may have ended. A plan above --max-bytes is not. */
static bool may_pass(const struct dt_session *session, const struct dt_result *trial, bool late)
{
    bool cut_off = trial->outcome == DT_TRIAL_INTERRUPTED && !late &&
                   !session->target->image.starts; /* whose next attempt would have less time */
    return cut_off || dt_outcome_may_pass(trial->outcome) ||
           (late && dt_session_lacks_memory(session, trial));
}

/* Retries the known plans with temporary failures, while there is time for trials. */
static dt_status try_again(struct dt_session *session, bool late)
{
    const struct dt_point *known[DT_FIRST_MOST];
    int n = dt_trials_first(session, known);
    for (int i = 0; i < n && dt_clock_ns() < session->clock.search_deadline_ns; i++) {
        const struct dt_result *trial = dt_session_trial(session, known[i]);
        if (trial != NULL && may_pass(session, trial, late))
            DT_TRY(dt_trials_try(session, known[i], false, AGAIN_SHARE));
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

dt_status dt_trials_links(struct dt_session *session)
{
    struct dt_host_link inside, across;
    struct dt_text text = {0};
    int64_t all = session->clock.deadline_ns - session->clock.began_ns;
    if (session->target->hardware.hosts.count < 2)
        return DT_OK;
    double limit = fmax(LINKS_SHARE, fmin(LINKS_SECONDS * 1e9 / (double)all, LINKS_MOST));
    DT_TRY(dt_rig_hosts_links(&session->rig, dt_clock_ns() + (int64_t)(limit * (double)all),
                              &inside, &across));
    add_link(&inside, "on one host", &text);
    add_link(&across, "between hosts", &text);
    dt_session_note(session, "links: %s", text.size > 0 ? dt_text_at(&text) : "not measured");
    dt_text_fini(&text);
    return dt_history_links(session, &inside, &across);
}

dt_status dt_trials_known(struct dt_session *session)
{
    const struct dt_point *known[DT_FIRST_MOST];
    int n = dt_trials_first(session, known);
    if (session->target->broken[0] != '\0')
        dt_session_note(session,
                        "the default plan breaks a rule of its space, and is measured as it is: %s",
                        session->target->broken);
    for (int i = 0; i < n; i++) {
        if (dt_session_trial(session, known[i]) == NULL) /* of the session that this one resumes */
            DT_TRY(dt_trials_try(session, known[i], false, i == 0 ? FIRST_SHARE : FIRST_SHARE / 2));
        if (i == 1 || n == 1)
            dt_record_now(session, INT64_MAX);
    }
    DT_TRY(try_again(session, false));
    struct dt_text need = {0};
    dt_doubts_budget(session);
    dt_session_need(session, "", &need);
    if (need.size > 0)
        dt_session_note(session, "%s", dt_text_at(&need));
    dt_text_fini(&need);
    return DT_OK;
}

bool dt_trials_is_known(const struct dt_session *session, const struct dt_point *point)
{
    const struct dt_point *known[DT_FIRST_MOST];
    int n = dt_trials_first(session, known);
    for (int i = 0; i < n; i++)
        if (dt_point_equal(session->target->space, known[i], point))
            return true;
    return false;
}

dt_status dt_trials_strays(struct dt_session *session)
{
    struct dt_point strays[STRAYS];
    int n = 0;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (!dt_session_counts(session, i) || !dt_outcome_may_pass(trial->outcome) ||
            dt_trials_is_known(session, &trial->point))
            continue;
        if (n == STRAYS)
            return DT_OK;
        strays[n++] = trial->point;
    }
    for (int i = 0; i < n && dt_clock_ns() < session->clock.search_deadline_ns; i++)
        DT_TRY(dt_trials_try(session, &strays[i], true, AGAIN_SHARE));
    return DT_OK;
}

bool dt_trials_may_try(const struct dt_session *session, const struct dt_point *point)
{
    int attempts = 0;
    for (int i = 0; i < session->count; i++)
        attempts += dt_point_equal(session->target->space, &session->trials[i].point, point);
    return attempts < DISTURBED_ATTEMPTS;
}

/* The fastest plan whose trial was disturbed or undone, and that was tried fewer than three times; -1: none. undone: only of those. */
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

static dt_status try_promising(struct dt_session *session, int at)
{
    struct dt_point point = session->trials[at].point;
    return dt_trials_try(session, &point, !dt_trials_is_known(session, &point), AGAIN_SHARE);
}

dt_status dt_trials_undone(struct dt_session *session)
{
    int at = most_promising(session, true);
    return at >= 0 && dt_clock_ns() < session->clock.search_deadline_ns ? try_promising(session, at)
                                                                        : DT_OK;
}

dt_status dt_trials_disturbed(struct dt_session *session)
{
    int64_t all = session->clock.deadline_ns - session->clock.began_ns;
    int64_t end = session->clock.began_ns + (int64_t)(DISTURBED_SHARE * (double)all);
    int at = most_promising(session, false);
    if (at >= 0 && session->clock.search_deadline_ns < end)
        session->clock.search_deadline_ns = end;
    for (; at >= 0 && dt_clock_ns() < session->clock.search_deadline_ns;
         at = most_promising(session, false))
        DT_TRY(try_promising(session, at));
    return DT_OK;
}

dt_status dt_trials_last(struct dt_session *session)
{
    int64_t now = dt_clock_ns();
    session->clock.search_deadline_ns = now + (session->clock.deadline_ns - now) / 2;
    return try_again(session, true);
}
