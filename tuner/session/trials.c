/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/figures.h"
#include "search/racing.h"
#include "tuner/measure/measure.h"
#include "tuner/session/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- trials by their plans */

enum { ROOM_LEAST = 64 };

/* Fowler, Noll and Vo's hash (FNV-1a) of the values' places. */
static uint64_t point_hash(const struct dt_space *space, const struct dt_point *point)
{
    uint64_t value = 14695981039346656037U;
    for (int axis = 0; axis < dt_space_axes(space); axis++)
        value = (value ^ (uint64_t)point->index[axis]) * 1099511628211U;
    return value ^ value >> 32;
}

/* The slot of the plan, or the free one where it belongs. */
static int *slot_of(const struct dt_session *session, const struct dt_point *point)
{
    const struct dt_session_tried *tried = &session->tried;
    int at = (int)(point_hash(session->target->space, point) & (uint64_t)(tried->room - 1));
    while (tried->slots[at] != 0 &&
           !dt_point_equal(session->target->space, &session->trials[tried->slots[at] - 1].point,
                           point))
        at = (at + 1) & (tried->room - 1);
    return &tried->slots[at];
}

/* Of several attempts the last one counts that was not interrupted. */
static void tried_enter(struct dt_session *session, int i)
{
    int *slot = slot_of(session, &session->trials[i].point);
    if (*slot == 0 || session->trials[i].outcome != DT_TRIAL_INTERRUPTED)
        *slot = i + 1;
}

static dt_status tried_grow(struct dt_session *session)
{
    struct dt_session_tried *tried = &session->tried;
    int room = tried->room > 0 ? 2 * tried->room : ROOM_LEAST;
    int *slots = calloc((size_t)room, sizeof *slots);
    if (slots == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for %d trials", room / 2);
    free(tried->slots);
    tried->slots = slots;
    tried->room = room;
    for (int i = 0; i < session->count; i++)
        tried_enter(session, i);
    return DT_OK;
}

const struct dt_result *dt_session_trial(const struct dt_session *session,
                                         const struct dt_point *point)
{
    int slot = session->tried.room > 0 ? *slot_of(session, point) : 0;
    return slot > 0 ? &session->trials[slot - 1] : NULL;
}

bool dt_session_counts(const struct dt_session *session, int i)
{
    return dt_session_trial(session, &session->trials[i].point) == &session->trials[i];
}

const struct dt_result *dt_session_leader(const struct dt_session *session)
{
    return session->tried.leader > 0 ? &session->trials[session->tried.leader - 1] : NULL;
}

/* Of the trials that count: the best one was made again, and is slower. */
static void find_leader(struct dt_session *session)
{
    session->tried.leader = 0;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *leader = dt_session_leader(session);
        if (dt_session_counts(session, i) && dt_session_eligible(session, &session->trials[i]) &&
            (leader == NULL ||
             dt_session_value(session, &session->trials[i]) < dt_session_value(session, leader)))
            session->tried.leader = i + 1;
    }
}

void dt_session_undo(struct dt_session *session, const struct dt_point *point)
{
    int slot = session->tried.room > 0 ? *slot_of(session, point) : 0;
    if (slot > 0)
        session->trials[slot - 1].undone = true;
    find_leader(session);
}

dt_status dt_session_keep(struct dt_session *session, const struct dt_result *result)
{
    const struct dt_result *leader = dt_session_leader(session);
    bool leads =
        dt_session_eligible(session, result) &&
        (leader == NULL || dt_session_value(session, result) < dt_session_value(session, leader));
    struct dt_point led = leader != NULL ? leader->point : result->point; /* trials may move */
    if (2 * (session->count + 1) > session->tried.room)
        DT_TRY(tried_grow(session));
    DT_TRY(DT_GROW(session->trials, session->count, 1));
    session->trials[session->count++] = *result;
    tried_enter(session, session->count - 1);
    int64_t took = (int64_t)(result->cost_seconds * 1e9);
    if (result->samples.n > 0 && took > session->slowest_ns)
        session->slowest_ns = took;
    if (leads)
        session->tried.leader = session->count;
    else if (leader != NULL && dt_point_equal(session->target->space, &led, &result->point))
        find_leader(session);
    return DT_OK;
}

int dt_session_tried_count(const struct dt_session *session, int *failed)
{
    int tried = 0;
    *failed = 0;
    for (int i = 0; i < session->count; i++) {
        enum dt_outcome outcome = session->trials[i].outcome;
        bool counts = dt_session_counts(session, i) && outcome != DT_TRIAL_INTERRUPTED &&
                      !dt_target_breaks(session->target, &session->trials[i].point);
        tried += counts;
        *failed += counts && outcome != DT_TRIAL_OK && outcome != DT_TRIAL_SLOW;
    }
    return tried;
}

static void skipped_add(const char *what, struct dt_text *out)
{
    dt_text_add(out, "%s%s", out->size > 0 ? "; " : "", what);
}

/* The one-rank plan of the final comparison was dropped, so that the others got their sets. */
static bool baseline_dropped(const struct dt_session *session)
{
    for (int i = 1; i < session->finals.entrant_count; i++)
        if (session->finals.entrants[i].role == DT_ENTRANT_BASELINE &&
            session->finals.entrants[i].out &&
            session->finals.entrants[i].result.outcome == DT_TRIAL_INTERRUPTED)
            return true;
    return false;
}

void dt_session_skipped(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_result *top[DT_CANDIDATES];
    int failed, tried = dt_session_tried_count(session, &failed);
    int64_t plans = session->target->plans;
    if (session->count == 0 || (session->search.stopped && failed == tried))
        return; /* no time would have helped */
    if (!session->search.stopped && plans > tried)
        dt_text_add(out, "%lld of %lld plans", (long long)(plans - tried), (long long)plans);
    else if (!session->search.stopped && plans < 0)
        dt_text_add(out, "all but %d plans", tried);
    if (session->finals.entrant_count == 0 || dt_sets_rounds(&session->finals.sets) == 0) {
        skipped_add("the final comparison", out);
        return;
    }
    if (session->finals.shot_count == 0 && dt_verdict_candidates(session, top) > 1)
        skipped_add("the shoot-out of the best trials", out);
    if (baseline_dropped(session))
        skipped_add("the one-rank plan in the final comparison", out);
    if (!dt_session_enough(session))
        skipped_add("sets of the final comparison", out);
}

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
#define LINKS_SHARE   0.05 /* of the time, to measure the links between hosts */
#define LINKS_SECONDS 10   /* or so long, for the start of two groups, */
#define LINKS_MOST    0.25 /* but at most this share */
/* seconds of warm-up in a session's first trial, at most this share of the time */
#define SOAK_SECONDS       3
#define SOAK_SHARE         0.02
#define DISTURBED_ATTEMPTS 3
#define DISTURBED_SHARE    0.68 /* of the time: until then disturbed trials are made again */
#define SETTLE_SECONDS     5    /* time for the memory of a killed trial to be freed */

/* Cores kept busy, in the mean: before any plan ran, a plan that computes so much is cut off, not hung. Later it is hung: it had four times the
 * time of the slowest trial. */
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
static dt_status settle_memory(struct dt_session *session, const struct dt_result *result)
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
    return dt_history_result(session, "trial", result);
}

/* The prior's value of the plan over the default's; 0: it has none. */
static double predicted_ratio(const struct dt_session *session, const struct dt_point *point)
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
        dt_store_now(session, how.deadline_ns - dt_clock_ns());
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
    result.predicted = predicted_ratio(session, point);
    result.slowdown = session->pace.level;
    DT_TRY(keep_trial(session, &result));
    return settle_memory(session, &result);
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
static dt_status retry_known(struct dt_session *session, bool late)
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
            dt_store_now(session, INT64_MAX);
    }
    DT_TRY(retry_known(session, false));
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
    return retry_known(session, true);
}

/* ---- visits of the incumbent */

/* A slow phase between two visits is not seen: it lasts VISIT_SECONDS, or VISIT_SHARE of the budget, and one trial at most. */

#define VISIT_TRIALS     8    /* between two visits, when none of them was dropped */
#define VISIT_SECONDS    20   /* between two visits, */
#define VISIT_SHARE      0.02 /* or this share of the budget */
#define COST_SHARE       0.1  /* of visits, in the time */
#define SLOW_SHARE       0.25 /* while the machine is slower */
#define LEVEL_MARGIN     0.1  /* of noise: a smaller change is none */
#define VISIT_HALF_WIDTH 0.05

double dt_visits_times(const struct dt_session *session, const struct dt_result *incumbent)
{
    double level = session->pace.level > 0 ? session->pace.level : 1;
    return incumbent != NULL ? level / dt_result_slowdown(incumbent) : 1;
}

/* The best trial before the last visit: at what level later ones were made is not known yet. */
static const struct dt_result *anchor_of(const struct dt_session *session)
{
    const struct dt_result *best = NULL;
    for (int i = 0; i < session->pace.since && i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (dt_session_counts(session, i) && dt_session_eligible(session, trial) &&
            (best == NULL || dt_session_value(session, trial) < dt_session_value(session, best)))
            best = trial;
    }
    return best;
}

static bool any_drop(const struct dt_session *session)
{
    for (int i = session->pace.since; i < session->count; i++)
        if (session->trials[i].outcome == DT_TRIAL_SLOW)
            return true;
    return false;
}

static bool visit_is_due(const struct dt_session *session, const struct dt_result *anchor)
{
    const struct dt_session_pace *pace = &session->pace;
    bool slow = pace->level > 1 + LEVEL_MARGIN;
    double all = (double)(session->clock.deadline_ns - session->clock.began_ns) * 1e-9;
    double passed = (double)(dt_clock_ns() - pace->at_ns) * 1e-9;
    double left = (double)(session->clock.search_deadline_ns - dt_clock_ns()) * 1e-9;
    if (anchor == NULL || session->count == pace->since)
        return false;
    bool stay = dt_rig_classes(&session->rig).stay;
    double cost = pace->cost_seconds > 0 ? pace->cost_seconds
                                         : dt_session_trial_seconds(anchor->summary.median) +
                                               (stay ? 0 : dt_rig_load_seconds(&session->rig));
    return left > 2 * cost && passed >= cost / (slow ? SLOW_SHARE : COST_SHARE) &&
           (slow || passed >= fmin(VISIT_SECONDS, VISIT_SHARE * all)) &&
           (slow || any_drop(session) || session->count - pace->since >= VISIT_TRIALS);
}

/* Beyond noise: the intervals are apart, and the medians by more than the margin. times: by which those of `before` are longer. */
static bool is_other_pace(const struct dt_summary *before, const struct dt_summary *now,
                          double times)
{
    bool apart = times * before->interval.low > now->interval.high ||
                 now->interval.low > times * before->interval.high;
    return apart && fabs(log(now->median / (times * before->median))) > log1p(LEVEL_MARGIN);
}

/* Undoes the trials since the visit before, and, of those made while the machine was slower, what may be better than the incumbent. */
static dt_status undo_trials(struct dt_session *session, const struct dt_result *anchor,
                             bool slower, int *count)
{
    double most = DT_RACE_HOPELESS * dt_session_value(session, anchor);
    for (int i = slower ? session->pace.since : session->pace.from; i < session->count; i++) {
        struct dt_result *trial = &session->trials[i];
        if (!dt_session_counts(session, i) || trial == anchor || trial->samples.n == 0 ||
            !dt_trials_may_try(session, &trial->point) ||
            dt_trials_is_known(session, &trial->point) ||
            (i < session->pace.since && !(dt_session_value(session, trial) <= most)))
            continue;
        dt_session_undo(session, &trial->point);
        ++*count;
        DT_TRY(dt_history_plan(session, "undone", &trial->point));
    }
    return DT_OK;
}

/* Compares the visit with the incumbent's trial; a change begins a new level. */
static dt_status take_visit(struct dt_session *session, const struct dt_result *anchor,
                            const struct dt_result *visit)
{
    struct dt_session_pace *pace = &session->pace;
    double times = dt_visits_times(session, anchor), old = times * dt_result_slowdown(anchor);
    int undone = 0;
    if (visit->outcome != DT_TRIAL_OK || visit->samples.n == 0)
        return DT_OK;
    if (is_other_pace(&anchor->summary, &visit->summary, times)) {
        double level = dt_result_slowdown(anchor) * visit->summary.median / anchor->summary.median;
        bool slower = level > old;
        DT_TRY(undo_trials(session, anchor, slower, &undone));
        pace->level = level;
        pace->from = slower ? pace->since : session->count;
        dt_session_note(session,
                        "this machine is %.2f times as %s as at the visit before, by its best plan "
                        "so far: %d plan%s tried since %s tried again",
                        fmax(level / old, old / level), slower ? "slow" : "fast", undone,
                        undone == 1 ? "" : "s", undone == 1 ? "is" : "are");
    }
    pace->since = session->count;
    return DT_OK;
}

static dt_status visit_incumbent(struct dt_session *session, const struct dt_result *anchor)
{
    int64_t now = dt_clock_ns(), end = session->clock.search_deadline_ns;
    struct dt_measure how = {.deadline_ns = end,
                             .until_ns = now + (end - now) / 2,
                             .rest_ns = now,
                             .half_width = VISIT_HALF_WIDTH};
    struct dt_result result;
    dt_status status = dt_measure_plan(&session->rig, &anchor->point, &how, &result);
    if (status == DT_OK)
        status = take_visit(session, anchor, &result);
    if (status == DT_OK)
        status = dt_history_result(session, "visit", &result);
    session->pace.at_ns = dt_clock_ns();
    session->pace.cost_seconds = result.cost_seconds;
    dt_result_fini(&result);
    return status;
}

dt_status dt_visits_make(struct dt_session *session)
{
    int tried;
    do {
        const struct dt_result *anchor = anchor_of(session);
        if (visit_is_due(session, anchor))
            DT_TRY(visit_incumbent(session, anchor));
        tried = session->count;
        DT_TRY(dt_trials_undone(session));
    } while (session->count > tried);
    return DT_OK;
}
